"""Kind: making a cluster; deleting is Podman's work, because kind's own takes ten seconds longer and tells
nothing.
"""

from pathlib import Path

from ksi_hooks.run import Tools


def version(tools: Tools, *, timeout: float) -> str:
    """Return kind's version."""
    return tools.capture(["kind", "version", "--quiet"], timeout=timeout).strip()


def create(tools: Tools, *, cluster: str, config: Path, kubeconfig: Path, timeout: float) -> None:
    """Make a cluster and write its kubeconfig; raises CommandFailed.

    No `--wait`: it ends with 0 even when the cluster is not ready, so readiness is asked for afterwards.
    `--retain` keeps what a failure leaves for the log; the caller deletes it faster than kind would.
    """
    argv = ["kind", "create", "cluster", "--name", cluster, "--config", str(config)]
    tools.run([*argv, "--kubeconfig", str(kubeconfig), "--retain"], timeout=timeout)


def load_image(tools: Tools, *, cluster: str, image: str, timeout: float) -> None:
    """Copy an image of the Podman store into the cluster's nodes; raises CommandFailed."""
    tools.run(["kind", "load", "docker-image", image, "--name", cluster], timeout=timeout)
