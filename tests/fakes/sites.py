"""A site for one test: settings, registry, hook files, and fake programs whose calls can be read."""

import json
import os
import shlex
import shutil
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import ksi_hooks
from fakes.steps import Step
from ksi_hooks import config, proc
from ksi_hooks.environment import CLUSTER_MARK
from ksi_hooks.install import plan
from ksi_hooks.registry.record import Record
from ksi_hooks.registry.store import Registry

HERE = Path(__file__).parent
PACKAGE = Path(ksi_hooks.__file__).parent
# Tests that run at the same time keep out of each other's way.
PORTS = 150
FIRST_PORT = 30000 + PORTS * (os.getpid() % 12)
PROGRAMS = ("kind", "podman", "kubectl", "squeue", "sinfo", "scontrol", "systemd-run", "systemctl")


@dataclass(frozen=True)
class Call:
    """One call of a fake program."""

    program: str
    argv: list[str]
    env: dict[str, str]
    time: float

    def __str__(self) -> str:
        return shlex.join([self.program, *self.argv])


class Site:
    """Everything that a site has on a node, below one directory."""

    def __init__(self, base: Path, **settings: object) -> None:
        self.base = base
        self.tools_dir, self.state_dir = base / "tools", base / "state"
        self.node_state_dir, self.run_root = base / "node", base / "run"
        self.work_dir, self.home = base / "work", base / "home"
        for directory in (self.tools_dir, self.state_dir, self.run_root, self.work_dir, self.home):
            directory.mkdir()
        for directory in (self.state_dir, self.run_root, self.work_dir):
            directory.chmod(0o1777)
        self.registry = Registry(base / "registry", 10.0)
        self.registry.prepare(["n1", "n2", "localhost"])
        self.package = PACKAGE
        self._install_programs(sys.executable, HERE)
        self.configure(**settings)

    # Setting up

    def configure(self, *, python: str = sys.executable, **settings: object) -> None:
        """Write the settings and the hook files, as an installation does."""
        values = {
            "registry_dir": str(self.registry.top),
            "run_dir": f"{self.run_root}/%u",
            "node_state_dir": str(self.node_state_dir),
            "tools_path": [str(self.tools_dir)],
            "listen_address": "127.0.0.1",
            "port_range": f"{FIRST_PORT}-{FIRST_PORT + PORTS - 1}",
            "create_timeout": 30,
            "attach_timeout": 30,
            **settings,
        }
        installation = plan.Site(self.base, python, self.package)
        installation.settings_file.parent.mkdir(parents=True, exist_ok=True)
        self.settings_file = installation.settings_file
        self.settings_file.write_text(json.dumps(values))  # JSON is YAML
        self.settings = config.parse(values, "the test's settings")
        for hook in plan.hooks(installation, self.settings):
            hook.path.parent.mkdir(parents=True, exist_ok=True)
            hook.path.write_text(hook.text)
            hook.path.chmod(hook.mode)
        self.task_prolog, self.task_epilog = map(installation.hook, ("task-prolog", "task-epilog"))
        self.node_prolog, self.node_epilog = map(installation.hook, ("prolog", "epilog"))

    def mark(self, job_id: int) -> None:
        """Leave the root pair's marker for a job, which makes it a k8s job."""
        markers = self.node_state_dir / "jobs"
        markers.mkdir(parents=True, exist_ok=True)
        (markers / str(job_id)).write_text("{}")

    def script(self, call: str, **rule: object) -> None:
        """Make calls with these words behave so: status, stdout, stderr, delay, leaves, at, times."""
        file = self.state_dir / "script.json"
        rules = json.loads(file.read_text()) if file.exists() else []
        file.write_text(json.dumps([*rules, {"call": call, **rule}]))

    def slurm_says(self, *jobs: dict[str, object], nodes: dict[str, str] | None = None) -> None:
        """Set what squeue and sinfo know: A (id), N (nodes), f (constraint), T (state), S (start)."""
        (self.state_dir / "jobs.json").write_text(json.dumps(jobs))
        (self.state_dir / "nodes.json").write_text(json.dumps(nodes or {}))

    def environment(
        self, job_id: int, node: str, *, uid: int | None = None, start_time: int | None = None
    ) -> dict[str, str]:
        """Return a task's environment: Slurm's variables, and what a user may have about him."""
        uid = os.getuid() if uid is None else uid
        start = int(time.time()) - 1 if start_time is None else start_time
        return {
            "SLURM_JOB_ID": str(job_id),
            "SLURM_JOBID": str(job_id),
            "SLURM_JOB_UID": str(uid),
            "SLURM_JOB_NODELIST": node,
            "SLURM_JOB_NUM_NODES": "1",
            "SLURM_JOB_PARTITION": "main",
            "SLURM_JOB_START_TIME": str(start),
            "SLURM_JOB_END_TIME": str(start + 3600),
            "SLURMD_NODENAME": node,
            "HOME": str(self.home),
            "KUBECONFIG": str(self.home / ".kube/config"),
            "XDG_RUNTIME_DIR": str(self.base / "nowhere"),
            "PYTHONHOME": "/nonexistent",
            "PYTHONPATH": "/nonexistent",
            "PYTHONSTARTUP": "/nonexistent",
            "BASH_ENV": "/nonexistent",
            "ENV": "/nonexistent",
        }

    def step(self, job_id: int, kind: str = "batch", **options: object) -> Step:
        """Return a step's slurmstepd; to be closed."""
        return Step(self, job_id, kind, **options)

    # Looking

    def hook_file(self, module: str) -> Path:
        """Return the Python file behind a sh gate."""
        return self.package / "hooks" / f"{module}.py"

    def calls(self, words: str = "") -> list[Call]:
        """Return the calls, in order, whose command line begins with these words."""
        logs = self.state_dir.glob("store-*/calls.jsonl")
        found = [Call(**json.loads(line)) for log in logs for line in log.read_text().splitlines()]
        wanted = words.split()
        matching = [c for c in found if [c.program, *c.argv][: len(wanted)] == wanted]
        return sorted(matching, key=lambda call: call.time)

    def refused(self) -> list[str]:
        """Return the calls that the fakes do not know."""
        logs = self.state_dir.glob("store-*/refused.jsonl")
        return [line for log in logs for line in log.read_text().splitlines()]

    def state(self, what: str) -> list[dict]:
        """Return what exists: container, volume, network."""
        return [json.loads(f.read_text()) for f in sorted(self.state_dir.glob(f"store-*/{what}-*.json"))]

    def records(self, node: str = "n1") -> list[Record]:
        """Return the registry's records of a node; every one has to be readable."""
        listing = self.registry.of_node(node)
        assert listing.problems == []
        return listing.records

    def user_dir(self, uid: int | None = None) -> Path:
        """Return a user's directory on the node."""
        return self.run_root / str(os.getuid() if uid is None else uid)

    def log(self) -> str:
        """Return all logs of clusters as one text."""
        return "".join(f.read_text() for f in sorted(self.run_root.glob("*/logs/*.log")))

    def leftovers(self) -> list[str]:
        """Return everything of a cluster that still exists; nothing after a job has ended."""
        found = [f"{what} {item}" for what in ("container", "volume", "network") for item in self.state(what)]
        found += [f"record {r.cluster}" for node in self.registry.nodes() for r in self.records(node)]
        found += [f"directory {d}" for d in self.run_root.glob("*/ksi-*")]
        found += [f"directory {d}" for d in self.registry.top.glob("secrets-*")]
        found += [f"job {d}" for d in self.run_root.glob("*/jobs/*")]
        clusters = {name for log in self.run_root.glob("*/logs/ksi-*.log") if (name := log.stem)}
        found += [f"process {p}" for c in clusters for p in proc.marked(CLUSTER_MARK, c)]
        return found

    def close(self) -> None:
        """End the processes that the fakes left, and remove everything."""
        for container in self.state("container"):
            helper = proc.find(container["helper"])
            if helper and proc.name_of(helper.pid) == "fake-conmon":
                proc.send(helper, signal.SIGKILL)
        shutil.rmtree(self.base, ignore_errors=True)

    def open_for_tenants(self, python: str, package: Path) -> None:
        """Let other users run hooks and fakes, who may not read this interpreter and this checkout."""
        self.package = package
        shutil.copytree(HERE / "programs", self.base / "programs")
        self.tenant_python = python
        self._install_programs(python, self.base)
        self.configure(python=python)

    def _install_programs(self, python: str, library: Path) -> None:
        program = f"import sys\nsys.path.insert(0, {str(library)!r})\nimport programs\nprograms.main()\n"
        for name in PROGRAMS:
            file = self.tools_dir / name
            file.write_text(f"#!{python} -IS\n{program}")
            file.chmod(0o755)
        for name in ("ca.pem", "server.pem"):
            shutil.copy(HERE / "data" / name, self.state_dir / name)
        for name in ("podman-ps", "podman-volume-ls"):
            shutil.copy(HERE / "recorded" / "podman-4.3.1" / f"{name}.json", self.state_dir)
        (self.state_dir / "images.json").write_text(json.dumps(["docker.io/kindest/node:v1.34.4"]))
