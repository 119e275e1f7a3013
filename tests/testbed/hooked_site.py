"""A Slurm site with ksi_hooks switched on as an administrator does it; counts what it leaves."""

import contextlib
import secrets
import shutil
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from testbed import census, installation, processes
from testbed.census import Thing
from testbed.installation import Installation
from testbed.jobs import Job, Jobs, wait_for
from testbed.slurm import Site, new_state_dir

IDS = 1000  # no site of the tests gets as far; so clusters of other sites on this machine have other names
LEAVE_SECONDS = 5
# A mount namespace in which the node's own directories are those of $1.
WITH_OWN_DIRECTORIES = """
for each in run node; do mkdir -p "$2/$each"; mount --bind "$1/$each" "$2/$each"; done
shift 2
exec "$@"
"""


class HookedSite:
    """Everything of a site below one directory; `tools_dir` holds kind, podman and kubectl, real or not."""

    def __init__(
        self,
        tools_dir: Path,
        *,
        count_store: Callable[[], set[Thing]],
        root_pair: bool = False,
        nodes: Sequence[str] = ("n1",),
        cpus: int = 2,
        settings: Mapping[str, object] | None = None,
        slurm_conf_lines: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
    ) -> None:
        self.directory = new_state_dir()
        self._count_store = count_store
        first = IDS * (1 + secrets.randbelow(60000))
        self.job_ids = range(first, first + IDS)
        self.local_clusters: set[str] = set()  # of `ksi run`, whose names have no job id
        python = installation.make_interpreter(self.directory / "python")
        basic = {
            "registry_dir": str(self.directory / "registry"),
            "run_dir": str(self.directory / "run" / "%u"),
            "node_state_dir": str(self.directory / "node"),
            "tools_path": [str(tools_dir), "/usr/bin", "/usr/sbin", "/bin"],
            "listen_address": "127.0.0.1",
        }
        self.ksi = Installation(python, self.directory / "prefix", {**basic, **(settings or {})}, nodes)
        lines = [*self.ksi.slurm_conf_lines(root_pair=root_pair), f"FirstJobId={first}", *slurm_conf_lines]
        self.site = Site(
            self.directory / "site",
            nodes=nodes,
            cpus=cpus,
            slurm_conf_lines=lines,
            before_slurmd=self._own_directories,
        )
        self.jobs = Jobs(self.site, self.directory / "work", env)

    def __enter__(self) -> "HookedSite":
        self.site.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self.site.stop()
        shutil.rmtree(self.directory, ignore_errors=True)

    def census(self) -> set[Thing]:
        """Everything that a cluster could leave here."""
        found = self._count_store() | census.of_processes() | census.of_ports()
        for top in (self.directory, *map(self._directory_of, self.site.nodes[1:])):
            found |= census.of_files(
                run_root=top / "run", registry=self.ksi.registry, node_state=top / "node"
            )
        return found

    def _directory_of(self, node: str) -> Path:
        return self.directory / f"local-{node}"

    def _own_directories(self, node: str) -> Sequence[str | Path]:
        """Give a node what is local to a node; the first one has the machine's."""
        if node == self.site.nodes[0]:
            return ()
        own = self._directory_of(node)
        for name, like in (("run", self.ksi.run_root), ("node", self.directory)):
            (own / name).mkdir(parents=True, exist_ok=True)
            shutil.copystat(like, own / name)
        unshare = ("unshare", "--mount", "--propagation", "private")
        return (*unshare, "sh", "-euc", WITH_OWN_DIRECTORIES, "sh", own, self.directory)

    def left(self, before: set[Thing]) -> list[Thing]:
        """What this site has left since; what is only slow to go gets a few seconds."""
        found: list[Thing] = []

        def nothing() -> bool:
            found[:] = census.left(before, self.census(), ours=self._is_ours)
            return not found

        try:
            wait_for(nothing, LEAVE_SECONDS, "nothing is left")
        except AssertionError:
            return found
        return []

    def _is_ours(self, cluster: str) -> bool:
        return census.job_of(cluster) in self.job_ids or cluster in self.local_clusters

    def gc(self, *options: str) -> "tuple[int, str]":
        """Run ksi-gc as root on the first node; returns its status and output."""
        result = self.jobs.command(*self.ksi.gc_argv(f"--node={self.site.nodes[0]}", *options))
        return result.status, result.out + result.err

    @contextlib.contextmanager
    def controller_frozen(self) -> Iterator[None]:
        """Let slurmctld answer nobody for a while."""
        controller = processes.recall(self.site.state_dir / "run" / "slurmctld.pid")
        assert controller
        controller.signal(signal.SIGSTOP)
        try:
            yield
        finally:
            controller.signal(signal.SIGCONT)

    def records(self) -> list[Path]:
        """The registry's files."""
        return sorted(self.ksi.registry.glob("*/ksi-*.json"))

    def things_of(self, job: Job) -> set[Thing]:
        """What there is of a job's cluster at the moment, files left out."""
        things = self._count_store() | census.of_processes() | census.of_ports()
        return {thing for thing in things if thing.cluster and census.job_of(thing.cluster) == job.id}

    def containers(self) -> list[str]:
        """Names of the containers of this site's clusters."""
        names = [thing.name for thing in self._count_store() if thing.kind == "container"]
        return [name for name in names if census.job_of(name) in self.job_ids]
