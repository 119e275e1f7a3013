"""One job of one side, followed from its submission until nothing of its cluster is left."""

import contextlib
import secrets
import time
from dataclasses import dataclass, field
from pathlib import Path

from testbed import command, processes
from testbed.slurm import Site

from bench import journal, machine
from bench.journal import Entry, Journal
from bench.processor import Group, container_group, seconds_of
from bench.remains import Remains, clusters_of_job
from ksi_hooks.lifecycle.context import Context
from ksi_hooks.render import render

PORTS = range(30000, 32768)  # Kubernetes' node ports
JOBS = Path(__file__).resolve().parent / "jobs"
OPTIONS = {"A": [], "B": ["--constraint=k8s"]}
POLL_SECONDS = 0.05
POLL_END_SECONDS = 0.02
ASK_SECONDS = 1.0  # between questions whether the job still runs
OVER_SECONDS = 60.0  # for a job to leave the queue


@dataclass(frozen=True)
class Stand:
    """What all trials share."""

    site: Site
    room: Path
    context: Context
    book: Journal
    tools: Path  # the directory of programs that count themselves
    real: Path  # the directory of the programs behind them
    group: Group
    limit: float  # seconds; a trial that fails counts as having taken them


@dataclass
class Trial:
    """A job, and what has been seen of it."""

    stand: Stand
    side: str
    remains: Remains | None = None
    conmons: list[processes.Process] = field(default_factory=list)
    volume_dirs: list[Path] = field(default_factory=list)
    container: Path | None = None
    container_seconds: float = 0.0
    create_seconds: float | None = None  # of the processor, until the cluster was usable
    all_seconds: float | None = None
    others: float | None = None  # processors that all else on the machine kept busy meanwhile
    left: list[str] = field(default_factory=list)
    entries: list[Entry] = field(default_factory=list)
    job: str = ""

    def run(self) -> "Trial":
        """Submit, follow, see it gone; whatever happens, nothing of the cluster stays."""
        group = self.stand.group
        self.stand.book.begin()
        before = group.seconds()
        busy, began = machine.busy_seconds(), journal.now()
        end = journal.now() + self.stand.limit
        self._submit()
        try:
            self._follow(end, before)
            self._watch_end(end)
        finally:
            self._end_job()
            self.entries = self.stand.book.entries()
            self._clean()
        after = group.seconds()
        if before is not None and after is not None:
            self.all_seconds = after - before + self.container_seconds
            busy = machine.busy_seconds() - busy - self.all_seconds
            self.others = busy / (journal.now() - began)
        return self

    def _submit(self) -> None:
        stand = self.stand
        variables = {
            **stand.site.env,
            "PATH": f"{stand.tools}:/usr/local/bin:/usr/bin:/usr/sbin:/bin",
            "BENCH_JOURNAL": str(stand.book.path),
            "BENCH_JOBS": str(JOBS),
            "BENCH_POD": str(JOBS / "pod.yaml"),
        }
        if self.side == "A":
            variables |= self._prepare_a()
        argv = ["sbatch", "--parsable", "--time=30", "--mem=1G", f"--output={stand.room / 'job-%j.log'}"]
        argv += [f"--chdir={stand.room / 'work'}", *OPTIONS[self.side], JOBS / f"{self.side.lower()}.sh"]
        stand.book.stamp("submit")
        self.job = command.capture(argv, env=variables).strip()

    def _prepare_a(self) -> dict[str, str]:
        """Render A's kind configuration from our template: the same cluster, without what makes it faster."""
        stand = self.stand
        port = PORTS[secrets.randbelow(len(PORTS))]
        self.remains = Remains(secrets.token_hex(3)[:5], port, stand.real / "podman")
        settings = stand.context.settings
        values = {
            "cluster": self.remains.cluster,
            "image": settings.node_image,
            "work_dir": str(stand.room / "work"),
            "port": port,
            "listen_address": settings.listen_address,
            "api_address": "127.0.0.1",
            "cgroup_v1": not Path("/sys/fs/cgroup/cgroup.controllers").exists(),
            "accelerate": False,
        }
        config = stand.room / "a-kind.yaml"
        config.write_text(render("kind-config.yaml.j2", values), encoding="utf-8")
        return {
            "BENCH_CLUSTER": self.remains.cluster,
            "BENCH_CONFIG": str(config),
            "KUBECONFIG": str(stand.room / f"a-{self.remains.cluster}.kubeconfig"),
            "KIND_EXPERIMENTAL_PROVIDER": "podman",
        }

    def _follow(self, end: float, before: float | None) -> None:
        """Wait for the job's work to be done, and look at its node container as soon as it is handed over."""
        asked = journal.now()
        while journal.now() < end:
            entries = self.stand.book.entries()
            reached = journal.stamps(entries)
            if "usable" in reached and not self.conmons:
                self._meet(entries)
                now = self.stand.group.seconds()
                if before is not None and now is not None:
                    self.create_seconds = now - before + self._sample()
            if "done" in reached:
                return
            if journal.now() - asked > ASK_SECONDS:
                asked = journal.now()
                if not self._in_queue():
                    return
            self._sample()
            time.sleep(POLL_SECONDS)

    def _meet(self, entries: list[Entry]) -> None:
        if self.remains is None:
            port = int(journal.note(entries, "port"))
            self.remains = Remains(journal.note(entries, "cluster"), port, self.stand.real / "podman")
        found = (processes.identify(pid) for pid in self.remains.conmons())
        self.conmons = [process for process in found if process]
        self.volume_dirs = list(self.remains.volumes().values())
        first = self.remains.first_process()
        self.container = container_group(first) if first else None

    def _sample(self) -> float:
        """Keep what the container has used so far: with it goes its counter."""
        if self.container and (seconds := seconds_of(self.container)) is not None:
            self.container_seconds = seconds
        return self.container_seconds

    def _watch_end(self, end: float) -> None:
        """Stamp the moment from which on nothing is left.

        Podman forgets a volume before it has removed its files, so those are looked at as well. It is asked
        only after all has gone that can be seen without it, and the stamp follows its answer.
        """
        if self.remains is None or "done" not in journal.stamps(self.stand.book.entries()):
            return
        while journal.now() < end:
            self._sample()
            seen = any(c.alive() for c in self.conmons) or any(d.exists() for d in self.volume_dirs)
            if not seen and not self.remains.listed():
                self.stand.book.stamp("gone")
                return
            time.sleep(POLL_END_SECONDS)

    def _in_queue(self) -> bool:
        listing = command.capture(["squeue", "--noheader", "--format=%A"], env=self.stand.site.env)
        return self.job in listing.split()

    def _end_job(self) -> None:
        """Let the job leave the queue, by scancel when the work has not been done."""
        if "gone" not in journal.stamps(self.stand.book.entries()):
            command.succeeds(["scancel", self.job], env=self.stand.site.env)
        end = journal.now() + OVER_SECONDS
        while self._in_queue():
            if journal.now() > end:
                raise command.TestbedError(f"job {self.job} does not leave the queue")
            time.sleep(0.2)

    def _clean(self) -> None:
        """Note what the side left behind, then remove it."""
        podman = self.stand.real / "podman"
        known = [self.remains] if self.remains else []
        known += [Remains(name, PORTS[0], podman) for name in clusters_of_job(podman, self.job)]
        for remains in known:
            self.left += remains.listed()
            remains.remove()
        registry = self.stand.context.registry
        for record in registry.of_node(self.stand.context.node).records:
            self.left.append(f"record {record.cluster}")
            with contextlib.suppress(OSError):
                registry.remove(record)
