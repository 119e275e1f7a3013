"""Secrets of a user's cluster are in no argument, record or log, nor where another user can read."""

import contextlib
import os
import threading
from pathlib import Path

import pytest
from fakes.strangers import act_as
from fakes.waiting import wait_until

from ksi_hooks import proc

# Another run of these tests has steps on this machine, too: their jobs must be others.
JOB = 60_000_000 + os.getpid()
KEY = "RkFLRSBLRVkgREFUQQ=="  # what the fake kind writes as the key of the kubeconfig


class Watcher:
    """Notes every command line and every environment on the machine while a test runs."""

    def __init__(self, uid):
        self.uid, self.lines, self.environments = uid, set(), set()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_exc):
        self._stop.set()
        self._thread.join()

    def _watch(self):
        while not self._stop.wait(0.01):
            for pid in proc.pids():
                self.lines.add(proc.title_of(pid))
                if proc.owner_of(pid) != self.uid:  # what runs as somebody else than the user
                    with contextlib.suppress(OSError):
                        self.environments.add((proc.PROC / str(pid) / "environ").read_bytes())


def readable(root):
    """Return the contents of every file below a directory that this process can read."""
    found = {}
    for directory, _, names in os.walk(root):
        for name in names:
            with contextlib.suppress(OSError):
                path = Path(directory, name)
                if path.is_file():
                    found[str(path)] = path.read_bytes()
    return found


@pytest.mark.parametrize("nodes", [1, 2])
def test_nobody_else_sees_a_secret(site, tenant, other_tenant, nodes):
    many = {"SLURM_JOB_NODELIST": "localhost,n2", "SLURM_JOB_NUM_NODES": "2"} if nodes == 2 else {}
    node = "localhost" if nodes == 2 else "n1"
    site.script("kubectl create token", delay=1)
    site.mark(JOB)
    with (
        Watcher(tenant.uid) as seen,
        site.step(JOB, node=node, uid=tenant.uid, env={**tenant.environment, **many}, umask=0) as step,
    ):
        exports = step.prolog().exports
        token = exports["K8S_CLUSTER_API_TOKEN"]
        secret = [token.encode(), KEY.encode()]
        assert KEY in Path(exports["KUBECONFIG"]).read_text()

        def look():
            for root in (site.registry.top, site.run_root, site.node_state_dir, site.base / "etc"):
                for path, data in readable(root).items():
                    assert not [s for s in secret if s in data], path
            for pid in proc.pids():
                with contextlib.suppress(OSError):
                    assert token.encode() not in (proc.PROC / str(pid) / "environ").read_bytes()
            with contextlib.suppress(PermissionError):
                os.listdir(os.path.dirname(exports["KUBECONFIG"]))  # noqa: PTH120, PTH208
                raise AssertionError("the directory can be listed")

        act_as(other_tenant.uid, look)
        step.end()
    assert not [line for line in seen.lines if token in line or KEY in line]
    assert not [e for e in seen.environments if token.encode() in e or KEY.encode() in e]
    assert any("create token" in line for line in seen.lines)
    assert token not in site.log()
    assert KEY not in site.log()
    assert site.leftovers() == []


def test_name_for_secrets_that_a_stranger_took_first(site, tenant, other_tenant):
    many = {"SLURM_JOB_NODELIST": "localhost,n2", "SLURM_JOB_NUM_NODES": "2", **tenant.environment}
    site.script("kind create", delay=1, at="volume")
    site.mark(JOB)
    with (
        site.step(JOB, node="localhost", uid=tenant.uid, env=many) as home,
        site.step(JOB, "0", node="n2", uid=tenant.uid, env=many) as other,
    ):
        home.start(0)
        other.start(0)
        wait_until(lambda: site.state("volume"))
        (record,) = site.records("localhost")
        trap = site.registry.top / f"secrets-{record.cluster}"
        act_as(other_tenant.uid, lambda: trap.mkdir(mode=0o777))
        first, second = home.finish(), other.finish()
        assert (first.status, second.status) == (0, 0), (first, second)
        place = Path(second.exports["KUBECONFIG"]).parent
        assert place.stat().st_uid == tenant.uid
        assert list(trap.iterdir()) == []
        other.end()
        home.end()
    assert not place.exists()
    assert trap.exists()  # a stranger's own, which nobody of ours touches
    trap.rmdir()
    assert site.leftovers() == []
