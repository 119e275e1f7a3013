"""A Slurm site on this machine: munged, slurmctld and several slurmd, all of our own, on loopback."""

import os
import secrets
import socket
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from subprocess import Popen
from types import TracebackType

from testbed import command, packages, processes

SBIN = Path("/usr/sbin")
START_SECONDS = 30
STOP_SECONDS = 10
CANCEL_SECONDS = 2  # for jobs to go the ordinary way; what lives on is killed
SLURM_CONF = """ClusterName=testbed
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
AuthType=auth/munge
AuthInfo=socket={state}/munge/socket
SlurmUser=root
SlurmdUser=root
StateSaveLocation={state}/slurmctld
SlurmdSpoolDir={state}/spool/%n
SlurmctldPidFile={state}/run/slurmctld.slurm
SlurmdPidFile={state}/run/%n.slurm
SlurmctldLogFile={state}/log/slurmctld.log
SlurmdLogFile={state}/log/%n.log
SlurmctldDebug=verbose
SlurmdDebug=verbose
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
DefMemPerCPU={memory_per_cpu}
JobAcctGatherType=jobacct_gather/none
SlurmdParameters=config_overrides
MailProg=/bin/true
MpiDefault=none
ReturnToService=2
MinJobAge=60
SlurmctldTimeout=30
SlurmdTimeout=60
{nodes}
PartitionName=main Nodes=ALL Default=YES DefaultTime=10 MaxTime=60 State=UP
{extra}
"""


class Site:
    """Slurm daemons whose files all lie in `state_dir`, which every user must be able to reach.

    before_slurmd: the words in front of a node's slurmd, which end with exec.
    """

    def __init__(
        self,
        state_dir: Path,
        *,
        nodes: Sequence[str] = ("n1",),
        cpus: int = 2,
        slurm_conf_lines: Sequence[str] = (),
        before_slurmd: Callable[[str], Sequence[str | Path]] = lambda _node: (),
    ) -> None:
        self.state_dir = state_dir
        self.before_slurmd = before_slurmd
        self.nodes = tuple(nodes)
        self.cpus = cpus
        self.slurm_conf_lines = tuple(slurm_conf_lines)
        self._children: list[Popen[bytes]] = []

    def __enter__(self) -> "Site":
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def conf_file(self) -> Path:
        """The site's slurm.conf."""
        return self.state_dir / "slurm.conf"

    @property
    def env(self) -> dict[str, str]:
        """What a process needs in its environment to talk to this site."""
        return {"SLURM_CONF": str(self.conf_file)}

    def start(self) -> None:
        """Start all daemons and wait until every node is idle; on failure nothing stays running."""
        if missing := packages.missing(packages.SLURM):
            raise command.TestbedError(f"packages are not installed: {' '.join(missing)}")
        if running := self.running():
            raise command.TestbedError(f"site in {self.state_dir} already runs: {' '.join(running)}")
        self._write_files()
        try:
            self._start_daemons()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End jobs and daemons of this site by process id, and see them gone."""
        controller = self._process("slurmctld")
        if controller and controller.alive():
            self._cancel_jobs()
        left = processes.end(
            [p for name in self._node_names() if (p := self._process(name))], grace=STOP_SECONDS
        )
        stepds = processes.named_with_file_below("slurmstepd", self.state_dir)
        left += processes.end([*stepds, *processes.descendants(stepds)], grace=2)
        for name in ("slurmctld", "munged"):
            if process := self._process(name):
                left += processes.end([process], grace=STOP_SECONDS)
        self._children = [child for child in self._children if child.poll() is None]
        if left:
            pids = " ".join(str(process.pid) for process in left)
            raise command.TestbedError(f"processes of the site in {self.state_dir} do not end: {pids}")
        for file in (self.state_dir / "run").glob("*.pid"):
            file.unlink()

    def start_node(self, name: str) -> None:
        """Start the slurmd of a node."""
        slurmd = [SBIN / "slurmd", "-D", "-N", name, "-f", self.conf_file]
        self._launch(f"slurmd-{name}", [*self.before_slurmd(name), *slurmd])

    def kill_node(self, name: str) -> None:
        """Kill the slurmd of a node; the jobs there go on."""
        if process := self._process(f"slurmd-{name}"):
            processes.kill([process])

    def running(self) -> list[str]:
        """The names of the daemons that run now."""
        files = sorted((self.state_dir / "run").glob("*.pid"))
        return [file.stem for file in files if (p := processes.recall(file)) and p.alive()]

    def _node_names(self) -> list[str]:
        files = sorted((self.state_dir / "run").glob("slurmd-*.pid"))
        return [file.stem for file in files]

    def _process(self, name: str) -> processes.Process | None:
        return processes.recall(self.state_dir / "run" / f"{name}.pid")

    def _write_files(self) -> None:
        for part in ("munge", "slurmctld", "spool", "run", "log"):
            (self.state_dir / part).mkdir(parents=True, exist_ok=True)
            (self.state_dir / part).chmod(0o755)
        self.state_dir.chmod(0o755)
        key = self.state_dir / "munge" / "key"
        if not key.exists():
            key.touch(0o600)
            key.write_bytes(secrets.token_bytes(128))
        host = socket.gethostname().split(".")[0]
        ports = free_ports(len(self.nodes) + 1)
        megabytes = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2**20
        memory = megabytes // len(self.nodes)
        lines = [
            f"NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs={self.cpus}"
            f" RealMemory={memory} Feature=k8s State=UNKNOWN"
            for name, port in zip(self.nodes, ports[1:], strict=True)
        ]
        text = SLURM_CONF.format(
            host=host,
            port=ports[0],
            state=self.state_dir,
            memory_per_cpu=memory // self.cpus,
            nodes="\n".join(lines),
            extra="\n".join(self.slurm_conf_lines),
        )
        self.conf_file.write_text(text, encoding="utf-8")
        self.conf_file.chmod(0o644)

    def _start_daemons(self) -> None:
        munge = self.state_dir / "munge"
        files = {
            "key-file": "key",
            "socket": "socket",
            "pid-file": "pid",
            "log-file": "log",
            "seed-file": "seed",
        }
        options = [f"--{option}={munge / name}" for option, name in files.items()]
        self._launch("munged", [SBIN / "munged", "--foreground", *options])
        self._await("munged", lambda: (munge / "socket").exists(), munge / "log")
        self._launch("slurmctld", [SBIN / "slurmctld", "-D", "-f", self.conf_file])
        self._await("slurmctld", self._controller_answers, self.state_dir / "log" / "slurmctld.log")
        for name in self.nodes:
            self.start_node(name)
        for name in self.nodes:
            log = self.state_dir / "log" / f"{name}.log"
            self._await(f"slurmd-{name}", partial(self._is_idle, name), log)

    def _launch(self, name: str, argv: Sequence[str | Path]) -> None:
        child = command.daemon(argv, log=self.state_dir / "log" / f"{name}.out", env=self.env)
        self._children.append(child)
        process = processes.identify(child.pid)
        if process:
            processes.remember(process, self.state_dir / "run" / f"{name}.pid")

    def _await(self, name: str, ready: Callable[[], bool], log: Path) -> None:
        deadline = time.monotonic() + START_SECONDS
        process = self._process(name)
        while not ready():
            ended = process is None or not process.alive()
            if ended or time.monotonic() > deadline:
                reason = "ended" if ended else f"is not ready after {START_SECONDS} s"
                said = command.tail(self.state_dir / "log" / f"{name}.out")
                raise command.TestbedError(f"{name} {reason}, see {log}", command.tail(log) or said)
            time.sleep(0.05)

    def _controller_answers(self) -> bool:
        return command.succeeds(["scontrol", "ping"], env=self.env)

    def _is_idle(self, node: str) -> bool:
        argv = ["sinfo", "--noheader", f"--nodes={node}", "--format=%T"]
        return command.capture(argv, env=self.env).strip() == "idle"

    def _cancel_jobs(self) -> None:
        states = "pending,running,suspended,configuring"
        if not command.succeeds(["scancel", "--quiet", f"--state={states}"], env=self.env):
            command.succeeds(["scancel", "--quiet", "--user=root"], env=self.env)
        deadline = time.monotonic() + CANCEL_SECONDS
        while processes.named_with_file_below("slurmstepd", self.state_dir) and time.monotonic() < deadline:
            time.sleep(0.1)


def free_ports(count: int) -> list[int]:
    """Ports of loopback that nobody uses at the moment."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()


def new_state_dir() -> Path:
    """A fresh directory for a site that other users can reach, unlike pytest's own."""
    directory = Path(tempfile.mkdtemp(prefix="ksi-site-", dir="/var/tmp"))
    directory.chmod(0o755)
    return directory
