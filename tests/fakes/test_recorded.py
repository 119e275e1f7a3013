"""The fakes answer in the form of the real programs, as it was recorded from them."""

import json
import subprocess
from pathlib import Path

import pytest

from ksi_hooks.run import Tools
from ksi_hooks.tools import podman

RECORDED = Path(__file__).parent / "recorded"
CALLS = {
    "podman-ps": ["ps", "--all", "--filter", f"label={podman.CLUSTER_LABEL}", "--format", "json"],
    "podman-volume-ls": ["volume", "ls", "--format", "json"],
}


def shape(value):
    """Return the types in a JSON value; names of labels do not matter."""
    if isinstance(value, dict):
        if all(isinstance(v, str) for v in value.values()):
            return "strings by name"
        return {name: shape(inner) for name, inner in sorted(value.items())}
    if isinstance(value, list):
        return [shape(value[0])] if value else "list"
    return type(value).__name__


@pytest.fixture
def cluster(site):
    site.mark(101)
    with site.step(101) as step:
        assert step.prolog().status == 0
        yield site


@pytest.mark.parametrize("version", sorted(p.name for p in RECORDED.iterdir()))
@pytest.mark.parametrize("name", sorted(CALLS))
def test_fake_podman_answers_like_the_real_one(cluster, version, name):
    answer = subprocess.run([cluster.tools_dir / "podman", *CALLS[name]], capture_output=True, check=True)
    recorded = json.loads((RECORDED / version / f"{name}.json").read_text())
    assert shape(json.loads(answer.stdout)) == shape(recorded)


@pytest.mark.parametrize("version", sorted(p.name for p in RECORDED.iterdir()))
def test_recorded_answers_are_understood(site, version):
    """What the real Podman said about a cluster of job 101 is read as that cluster."""
    for call, name in (("podman ps", "podman-ps"), ("podman volume ls", "podman-volume-ls")):
        site.script(call, stdout=(RECORDED / version / f"{name}.json").read_text(), status=0)
    tools = Tools([site.tools_dir])
    (container,) = podman.containers(tools, timeout=10)
    assert (container.name, container.cluster) == ("ksi-101-0af3c-control-plane", "ksi-101-0af3c")
    assert container.created > 1.7e9
    assert len(podman.volumes(tools, label="ksi-101-0af3c-control-plane", timeout=10)) == 1
    assert podman.volumes(tools, label="ksi-101-0af3c", timeout=10) == []
