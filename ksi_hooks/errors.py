"""What can go wrong, as exceptions that carry one sentence for a person and a remedy."""


class KsiError(Exception):
    """One sentence about what failed (lower case, the value after a colon) and a hint what to do next."""

    exit_status = 1

    def __init__(self, message: str, *, hint: str = "", blame: str = "site") -> None:
        super().__init__(message)
        self.hint = hint
        self.blame = blame  # "user" or "site": who can mend it


class UsageError(KsiError):
    """The command line asks for something that makes no sense."""

    exit_status = 2


class ConfigError(KsiError):
    """The settings file is missing, unreadable or wrong; 78 is EX_CONFIG of sysexits.h."""

    exit_status = 78


class ProgramMissing(KsiError):
    """A program is in none of the directories of `tools_path`."""


class CommandFailed(KsiError):
    """A program ended with a bad status or ran into its time limit."""

    def __init__(self, argv: list[str], status: int | None, tail: str, *, timeout: float = 0) -> None:
        program = argv[0].rsplit("/", 1)[-1]
        how = f"no end after {timeout:g} s" if status is None else f"status {status}"
        last = tail.strip().splitlines()[-1].strip() if tail.strip() else "no output"
        super().__init__(f"{program} failed ({how}): {last}")
        self.argv = argv
        self.status = status  # None: the time limit ended it
        self.tail = tail


class LockTimeout(KsiError):
    """A lock was not free within its time limit."""


class AlreadyTold(KsiError):
    """The job has no cluster, for a reason that another of its tasks has told."""


class RecordError(KsiError):
    """A file of the registry cannot be trusted or understood."""


class PortTaken(KsiError):
    """The wanted port is in use."""


class Interrupted(KsiError):
    """Slurm or a person asked this process to stop (SIGTERM, SIGINT)."""

    exit_status = 143
