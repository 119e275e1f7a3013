"""One start of a cluster with kind: its configuration, what shortens the start, readiness, images."""

import os
import shutil
import socket
from dataclasses import dataclass
from pathlib import Path

from ksi_hooks import files
from ksi_hooks.errors import ConfigError
from ksi_hooks.lifecycle.context import Context
from ksi_hooks.lifecycle.steps import reached
from ksi_hooks.registry.record import Record
from ksi_hooks.render import render, render_file
from ksi_hooks.run import Deadline, Tools
from ksi_hooks.tools import kind, scope
from ksi_hooks.tools.kubectl import Kubectl

READY_SECONDS = 300.0  # as the predecessor's --wait 5m


@dataclass(frozen=True)
class Boot:
    """What a cluster is started with: the directory for /app, and whether other nodes need its API."""

    work_dir: Path
    spans_nodes: bool


def start(context: Context, record: Record, boot: Boot, deadline: Deadline) -> None:
    """Start the claimed cluster and load its images; raises KsiError, and leaves what is made by then."""
    tools = context.creating_tools(record.cluster)
    files.private_dir(record.run_dir)
    text = kind_config(context, record, boot)
    config = record.run_dir / "kind.yaml"
    files.replace(config, text.encode("utf-8", "surrogateescape"), mode=0o600)
    reached(context, record, "configured")
    launcher = scope.enter(tools, scope.CREATE, cluster=record.cluster, uid=context.uid)
    if context.settings.accelerate and _has_one_node(text):
        launcher = _with_memory(launcher, record)
    kubeconfig = record.run_dir / "kubeconfig"
    kind.create(
        launcher, cluster=record.cluster, config=config, kubeconfig=kubeconfig, timeout=deadline.left()
    )
    kubeconfig.chmod(0o600)
    reached(context, record, "kind")
    Kubectl(tools, kubeconfig).wait_ready(Deadline(deadline.left(READY_SECONDS)))
    reached(context, record, "ready")
    loader = scope.enter(tools, scope.LOAD, cluster=record.cluster, uid=context.uid)
    for image in context.settings.images:
        kind.load_image(loader, cluster=record.cluster, image=image, timeout=deadline.left())


def kind_config(context: Context, record: Record, boot: Boot) -> str:
    """Render the kind configuration of a cluster from the built-in template or the site's."""
    settings = context.settings
    values = {
        "cluster": record.cluster,
        "image": settings.node_image,
        "work_dir": os.fspath(boot.work_dir),
        "port": record.port,
        "listen_address": settings.listen_address,
        "api_address": _api_address(context.node) if boot.spans_nodes else "127.0.0.1",
        "cgroup_v1": not Path("/sys/fs/cgroup/cgroup.controllers").exists(),
        "accelerate": settings.accelerate,
    }
    if settings.kind_config:
        return render_file(settings.kind_config, values)
    return render("kind-config.yaml.j2", values)


def _has_one_node(text: str) -> bool:
    """True when the configuration makes one cluster node; raises ConfigError when it is not YAML."""
    import yaml

    try:
        configuration = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ConfigError(f"the kind configuration is not YAML: {error}", hint="mend kind_config") from error
    nodes = configuration.get("nodes") if isinstance(configuration, dict) else None
    return not isinstance(nodes, list) or len(nodes) <= 1


def _with_memory(tools: Tools, record: Record) -> Tools:
    """Return tools for kind that find a Podman which remembers answers: half of kind's calls."""
    directory = record.run_dir / "bin"
    memory = record.run_dir / "answers"
    shutil.rmtree(memory, ignore_errors=True)  # of a start that failed
    for each in (directory, memory):
        files.private_dir(each)
    values = {
        "podman": tools.find("podman"),
        "memory": memory,
        "cluster": record.cluster,
        "node": record.node_container,
    }
    script = render("podman-memory.sh.j2", values)
    files.replace(directory / "podman", script.encode("utf-8", "surrogateescape"), mode=0o700)
    return tools.extended(PATH=f"{directory}:{tools.environment['PATH']}")


def _api_address(node: str) -> str:
    """Return an address of this node that other nodes reach: what its name says unless that is loopback."""
    for name in (node, socket.gethostname()):
        try:
            found = socket.getaddrinfo(name, None, socket.AF_INET, socket.SOCK_STREAM)
        except OSError:
            continue
        outside = sorted(address for entry in found if not (address := str(entry[4][0])).startswith("127."))
        return outside[0] if outside else "127.0.0.1"
    return "127.0.0.1"
