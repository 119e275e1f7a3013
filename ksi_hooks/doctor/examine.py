"""Gathers the facts of this node and has them judged; leaves nothing but the user's directory on the node."""

import contextlib
import os
import shutil
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import ksi_hooks
from ksi_hooks import files, gate
from ksi_hooks.config import Settings
from ksi_hooks.doctor import node, programs, slurm, storage
from ksi_hooks.doctor.finding import Finding, error, ok
from ksi_hooks.environment import base_environment
from ksi_hooks.errors import KsiError
from ksi_hooks.install import drift
from ksi_hooks.lifecycle.userdir import UserDir
from ksi_hooks.registry import ports
from ksi_hooks.registry.store import Registry
from ksi_hooks.run import Tools
from ksi_hooks.slurm import job as jobs
from ksi_hooks.tools import kind, kubectl, podman

ASK_SECONDS = 15.0
SLURM_SECONDS = 5.0


@dataclass(frozen=True)
class Examination:
    """One look at this node with the settings of a site, or a user's own (file None)."""

    settings: Settings
    file: Path | None
    uid: int
    environ: Mapping[str, str]

    def run(self) -> list[Finding]:
        """Return what every check found, in the order of what depends on what."""
        parts = (self._settings, self._programs, self._podman, self._registry, self._run_dir, self._ports)
        found = [finding for part in (*parts, self._node) for finding in part()]
        return found + self._slurm()

    @property
    def tools(self) -> Tools:
        """Return the programs with the environment that clusters are made in."""
        path = self.settings.tools_path
        return Tools(path, base_environment(path, self.uid, self.environ))

    def _settings(self) -> list[Finding]:
        return [ok("settings", str(self.file or "none of a site, your own"))]

    def _programs(self) -> list[Finding]:
        asked: dict[str, Callable[[], str]] = {
            "kind": lambda: kind.version(self.tools, timeout=ASK_SECONDS),
            "podman": lambda: podman.version(self.tools, timeout=ASK_SECONDS),
            "kubectl": lambda: kubectl.version(self.tools, timeout=ASK_SECONDS),
        }
        if self.uid != 0:
            asked |= {name: self._version_of(name) for name in ("systemd-run", "systemctl")}
        needed = set(asked)
        if self.file:
            asked |= {"squeue": lambda: self.tools.find("squeue"), "sinfo": lambda: self.tools.find("sinfo")}
        found = []
        for name, ask in asked.items():
            version, problem = None, ""
            try:
                version = ask()
            except (KsiError, ValueError, KeyError) as failure:
                problem = str(failure)
            found.append(programs.program(name, version=version, problem=problem, needed=name in needed))
        return found

    def _version_of(self, name: str) -> Callable[[], str]:
        def ask() -> str:
            answer = self.tools.capture([name, "--version"], timeout=ASK_SECONDS)
            return answer.splitlines()[0].strip() if answer.strip() else "version unknown"

        return ask

    def _podman(self) -> list[Finding]:
        image = self.settings.node_image
        try:
            info = podman.info(self.tools, timeout=ASK_SECONDS)
            present = bool(image) and podman.image_exists(self.tools, image or "", timeout=ASK_SECONDS)
        except KsiError as failure:
            return [programs.node_image(image, present=None, problem=str(failure))]
        root = Path(str(info.get("store", {}).get("graphRoot", "/")))
        mount = storage.mount_of(root.resolve(), _text("/proc/self/mountinfo"))
        free = shutil.disk_usage(_existing(root)).free
        found = programs.podman_store(info, free_bytes=free, network=mount.is_network, uid=self.uid)
        return [*found, programs.node_image(image, present=present)]

    def _registry(self) -> list[Finding]:
        registry, problem, hint = Registry.of(self.settings), "", ""
        started = time.monotonic()
        try:
            registry.require_usable()
            probe(registry, jobs.node_name(self.environ))
        except KsiError as failure:
            problem, hint = str(failure), failure.hint
        spent = (time.monotonic() - started) * 1000
        found = [storage.registry(registry.top, problem=problem, hint=hint, milliseconds=spent)]
        if self.file and not problem:
            mount = storage.mount_of(registry.top.resolve(), _text("/proc/self/mountinfo"))
            found.append(storage.registry_sharing(registry.top, mount, nodes=len(self._sinfo("%f"))))
        return found

    def _run_dir(self) -> list[Finding]:
        directory, problem, hint = self.settings.user_run_dir(self.uid), "", ""
        try:
            UserDir.make(self.settings, self.uid)
        except (KsiError, OSError) as failure:
            problem = str(failure)
            hint = getattr(failure, "hint", "") or "see run_dir in ksi.yaml"
        mount = storage.mount_of(_existing(directory).resolve(), _text("/proc/self/mountinfo"))
        return storage.run_dir(directory, mount, problem=problem, hint=hint)

    def _ports(self) -> list[Finding]:
        low, high = self.settings.port_range
        free = sum(ports.can_bind(port, self.settings.listen_address) for port in range(low, high + 1))
        kernel = [int(w) for w in _text("/proc/sys/net/ipv4/ip_local_port_range").split()]
        return storage.ports((low, high), free, kernel)

    def _node(self) -> list[Finding]:
        limit = _text("/proc/sys/fs/inotify/max_user_instances").strip()
        found = [
            node.cgroups(v2=Path("/sys/fs/cgroup/cgroup.controllers").exists(), uid=self.uid),
            node.modules(_modules()),
            node.inotify(int(limit) if limit.isdecimal() else None),
        ]
        if self.uid == 0:
            return found
        user = self.tools.environment.get("USER", str(self.uid))
        bus = "DBUS_SESSION_BUS_ADDRESS" in self.tools.environment
        lingers = Path("/var/lib/systemd/linger", user).exists()
        found.append(node.session(user=user, uid=self.uid, has_bus=bus, lingers=lingers))
        found.append(node.subordinate_ids(user, self.uid, _text("/etc/subuid"), _text("/etc/subgid")))
        return found

    def _slurm(self) -> list[Finding]:
        if self.file is None:
            return []
        package = Path(ksi_hooks.__file__).resolve().parent
        site = drift.site_of(self.file, python=sys.executable, package=package)
        found = [slurm.installed(drift.differences(site, self.settings) if site else None)]
        try:
            text = self.tools.capture(["scontrol", "show", "config"], timeout=SLURM_SECONDS)
        except KsiError as failure:
            effect = "jobs cannot be asked about, and slurm.conf is not checked"
            return [*found, error("slurm", str(failure), effect, "see whether slurmctld runs; SLURM_CONF")]
        facts = slurm.parse(text)
        found.append(slurm.version(facts))
        for key, judge in JUDGES.items():
            wanted = site.hook(slurm.HOOKS[key].removeprefix("ksi-")) if site else None
            found.append(judge(key, facts, wanted, program_problem))
        marks = self.settings.node_state_dir / gate.MARKER_DIR
        found += slurm.marks(marks, facts, present=marks.is_dir())
        found += [*slurm.prolog_flags(facts), *slurm.times(facts, self.settings)]
        return [*found, slurm.feature(self.settings.feature, self._sinfo("%f"))]

    def _sinfo(self, what: str) -> list[str]:
        with contextlib.suppress(KsiError):
            answer = self.tools.capture(["sinfo", "-h", "-N", "-o", f"%N {what}"], timeout=SLURM_SECONDS)
            by_node = dict(line.split(maxsplit=1) for line in answer.splitlines() if " " in line.strip())
            return [by_node[name] for name in sorted(by_node)]
        return []


JUDGES = {
    "TaskProlog": slurm.task_hook,
    "TaskEpilog": slurm.task_hook,
    "Prolog": slurm.node_hook,
    "Epilog": slurm.node_hook,
}


def probe(registry: Registry, node_name: str) -> None:
    """Take the node's lock, write a file and remove it; raises KsiError."""
    file = registry.top / f".probe-{node_name}-{os.getpid()}"
    with registry.locked(node_name):
        try:
            files.create(file, b"probe\n", mode=0o600)
            file.unlink()
        except OSError as failure:
            hint = "free space on it, or ksi config --init-registry"
            raise KsiError(f"cannot write the registry: {file}: {failure.strerror}", hint=hint) from failure


def program_problem(program: str) -> str:
    """Return why slurmd could not start a program, nothing when it can."""
    path = Path(program)
    if not path.is_file():
        return "no such file on this node"
    return "" if os.access(path, os.X_OK) else "not executable"


def _modules() -> set[str]:
    loaded = {line.split()[0] for line in _text("/proc/modules").splitlines() if line.strip()}
    builtin = _text(f"/lib/modules/{os.uname().release}/modules.builtin")
    return loaded | {Path(line).name.removesuffix(".ko").replace("-", "_") for line in builtin.splitlines()}


def _text(path: str) -> str:
    with contextlib.suppress(OSError):
        return Path(path).read_text(errors="replace")
    return ""


def _existing(path: Path) -> Path:
    return next((p for p in (path, *path.parents) if p.exists()), Path("/"))
