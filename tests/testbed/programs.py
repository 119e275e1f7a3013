"""Builds the Go programs of a cluster from their modules, one cached artifact per module."""

import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from testbed import command, versions
from testbed.cache import Cache, key
from testbed.toolchain import Go

PAUSE_SOURCE = """package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGCHLD)
	for s := range signals {
		if s != syscall.SIGCHLD {
			return
		}
		for pid := 1; pid > 0; {
			pid, _ = syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
		}
	}
}
"""


@dataclass(frozen=True)
class Program:
    """What to build from one module; `keep` names a directory of it that is kept beside the programs."""

    name: str
    module: str
    version: str
    packages: tuple[str, ...] = ("",)
    tags: str = ""
    variables: tuple[str, ...] = ()
    keep: str = ""


def kubernetes_variables() -> tuple[str, ...]:
    """The version that Kubernetes programs report, set as its own build does."""
    major, minor, _ = versions.KUBERNETES.removeprefix("v").split(".")
    values = {
        "gitVersion": versions.KUBERNETES,
        "gitMajor": major,
        "gitMinor": minor,
        "gitTreeState": "clean",
    }
    places = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
    return tuple(f"{place}.{name}={value}" for place in places for name, value in values.items())


KUBERNETES = Program(
    "kubernetes",
    "k8s.io/kubernetes",
    versions.KUBERNETES,
    (
        "cmd/kube-apiserver",
        "cmd/kube-controller-manager",
        "cmd/kube-proxy",
        "cmd/kube-scheduler",
        "cmd/kubeadm",
        "cmd/kubectl",
        "cmd/kubelet",
    ),
    variables=kubernetes_variables(),
)
KIND = Program("kind", "sigs.k8s.io/kind", versions.KIND, keep="images/base/files")
CONTAINERD = Program(
    "containerd",
    "github.com/containerd/containerd/v2",
    versions.CONTAINERD,
    ("cmd/containerd", "cmd/ctr", "cmd/containerd-shim-runc-v2"),
    tags="no_aufs no_zfs no_btrfs no_devmapper",
)
CNI = Program(
    "cni-plugins",
    "github.com/containernetworking/plugins",
    versions.CNI_PLUGINS,
    (
        "plugins/main/bridge",
        "plugins/main/ptp",
        "plugins/main/loopback",
        "plugins/ipam/host-local",
        "plugins/meta/portmap",
    ),
)
CRI_TOOLS = Program("cri-tools", "sigs.k8s.io/cri-tools", versions.CRI_TOOLS, ("cmd/crictl",))
ETCD = Program("etcd", "go.etcd.io/etcd/server/v3", versions.ETCD)
COREDNS = Program("coredns", "github.com/coredns/coredns", versions.COREDNS)
PAUSE = Program("pause", "", "")
ALL = (KIND, CNI, CRI_TOOLS, CONTAINERD, ETCD, COREDNS, PAUSE, KUBERNETES)


def identity(program: Program) -> str:
    """The key of a program's artifact."""
    return key(program, versions.GO, build, replacements, PAUSE_SOURCE if program is PAUSE else "")


def artifact(program: Program, go: Go, cache: Cache) -> Path:
    """Return the directory with a program's bin/, built when it is not there."""
    return cache.artifact(program.name, identity(program), lambda out: build(program, go, cache, out))


def build(program: Program, go: Go, cache: Cache, out: Path) -> None:
    """Build in a module of our own that requires the program's, so that its `replace` lines do not hinder."""
    log = cache.log(program.name)
    source = out / "source"
    source.mkdir()
    (out / "bin").mkdir()
    command.run([go.program, "mod", "init", f"testbed.local/{program.name}"], log=log, env=go.env, cwd=source)
    if program.module:
        edits = [f"-require={program.module}@{program.version}", *replacements(program, go)]
        command.run([go.program, "mod", "edit", *edits], log=log, env=go.env, cwd=source)
        targets = [f"{program.module}/{package}".rstrip("/") for package in program.packages]
    else:
        (source / "main.go").write_text(PAUSE_SOURCE, encoding="utf-8")
        targets = ["."]
    ldflags = " ".join(["-s -w", *(f"-X {variable}" for variable in program.variables)])
    argv = [go.program, "build", "-trimpath", "-tags", program.tags, "-ldflags", ldflags, "-o", f"{out}/bin/"]
    command.run([*argv, *targets], log=log, env=go.env, cwd=source)
    if program is ETCD:
        (out / "bin" / "server").rename(out / "bin" / "etcd")
    if program.keep:
        shutil.copytree(go.download(program.module, program.version) / program.keep, out / "files")
    shutil.rmtree(source)


def replacements(program: Program, go: Go) -> list[str]:
    """Kubernetes requires its staging modules at v0.0.0; name the published ones."""
    if program is not KUBERNETES:
        return []
    go_mod = (go.download(program.module, program.version) / "go.mod").read_text(encoding="utf-8")
    staging = sorted(set(re.findall(r"^\s+(k8s\.io/\S+) v0\.0\.0(?:\s|$)", go_mod, re.MULTILINE)))
    return [f"-replace={module}={module}@{versions.KUBERNETES_STAGING}" for module in staging]
