"""The lines that slurmstepd understands on a TaskProlog's standard output: export, unset, print.

Slurm reads the output line by line, takes a value literally up to the line's end, and drops everything else
(`_proc_stdout` in slurmstepd's task.c).
"""

# Releases up to 20.02 read with fgets into a buffer of 4096 bytes; a longer line would be cut in two.
MAX_LINE_BYTES = 4000


def export_line(name: str, value: str) -> str:
    """Return the line that sets a variable in the task's environment.

    Raises ValueError when slurmstepd would read something else than what is meant.
    """
    _require_name(name)
    return _require_line(f"export {name}={value}")


def print_line(text: str) -> str:
    """Return the line that shows text in the job's output.

    An empty text would make slurmstepd compute a wrong length, so it is refused; control characters are
    replaced.
    """
    clean = "".join(c if c.isprintable() else " " for c in text).strip()
    if not clean:
        raise ValueError("an empty print line must not reach slurmstepd")
    cut = clean.encode("utf-8", "replace")[: MAX_LINE_BYTES - 10].decode("utf-8", "ignore")
    return _require_line(f"print {cut}")


def _require_name(name: str) -> None:
    if not (name.isascii() and name.isidentifier()):
        raise ValueError(f"not the name of a variable: {name!r}")


def _require_line(line: str) -> str:
    if any(c in line for c in "\n\r\0"):
        raise ValueError(f"a value is one line without control characters: {line.split('=')[0]}")
    if len(line.encode("utf-8", "surrogateescape")) > MAX_LINE_BYTES:
        raise ValueError(f"line longer than {MAX_LINE_BYTES} bytes: {line.split('=')[0]}")
    return line + "\n"
