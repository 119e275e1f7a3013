"""What a job sees of its cluster, what the others may see, and that nothing of it is left."""

import json
import os
import re
import stat
import time

import pytest
import yaml

EXPORTS = {
    "KUBECONFIG",
    "K8S_CLUSTER_NAME",
    "K8S_CLUSTER_API",
    "K8S_CLUSTER_API_TOKEN",
    "K8S_CLUSTER_API_TOKEN_FILE",
    "K8S_CLUSTER_CA",
    "K8S_PORT",
    "KSI_JOB_ID",
    "KIND_EXPERIMENTAL_PROVIDER",
}


def read(path):
    with open(path) as file:  # noqa: PTH123 - a path from the job's environment
        return file.read()


def mode(path):
    return stat.S_IMODE(os.stat(path).st_mode)  # noqa: PTH116


def test_batch_job_has_a_cluster_from_first_to_last_line(site):
    site.mark(101)
    with site.step(101) as step:
        prolog = step.prolog()
        assert (prolog.status, prolog.dropped) == (0, []), prolog
        (record,) = site.records()
        exports = prolog.exports
        assert set(exports) == EXPORTS
        assert re.fullmatch(r"ksi-101-[0-9a-f]{5}", record.cluster)
        assert exports["K8S_CLUSTER_NAME"] == f"kind-{record.cluster}"
        assert exports["K8S_CLUSTER_API"] == record.api
        assert re.fullmatch(r"https://127\.0\.0\.1:\d+", record.api)
        assert exports["K8S_PORT"] == str(record.port)
        assert exports["KSI_JOB_ID"] == "101"
        assert exports["KIND_EXPERIMENTAL_PROVIDER"] == "podman"
        assert read(exports["K8S_CLUSTER_API_TOKEN_FILE"]) == exports["K8S_CLUSTER_API_TOKEN"]
        assert "BEGIN CERTIFICATE" in read(exports["K8S_CLUSTER_CA"])
        assert json.loads(read(exports["KUBECONFIG"]))["current-context"] == exports["K8S_CLUSTER_NAME"]
        assert len(prolog.prints) in (2, 3)
        assert record.cluster in prolog.said
        assert re.search(r"after \d+\.\d s", prolog.said)
        assert step.end_task().status == 0
    assert site.leftovers() == []


def test_kb_01_every_line_is_one_that_slurmstepd_obeys(site):
    site.mark(101)
    with site.step(101) as step:
        output = step.prolog().output
    pattern = r"export [A-Za-z][A-Za-z0-9_]*=[^\r\n]*|unset [A-Z0-9_]+|print .+"
    assert all(re.fullmatch(pattern, line) for line in output.splitlines())
    assert output.endswith("\n")
    assert "export KUBECONFIG=/" in output  # no quotes
    assert max(map(len, output.splitlines())) < 4096


@pytest.mark.parametrize("umask", [0o000, 0o077])
def test_kb_21_modes_whatever_the_umask(site, umask):
    site.mark(101)
    with site.step(101, umask=umask) as step:
        exports = step.prolog().exports
        run_dir = os.path.dirname(exports["KUBECONFIG"])  # noqa: PTH120
        assert mode(site.user_dir()) == mode(run_dir) == 0o700
        secret = ("KUBECONFIG", "K8S_CLUSTER_API_TOKEN_FILE", "K8S_CLUSTER_CA")
        assert {mode(exports[name]) for name in secret} == {0o600}
        assert {mode(f) for f in site.run_root.glob("*/logs/*.log")} == {0o600}
        (record,) = site.records()
        assert mode(site.registry.path_of("n1", record.cluster)) == 0o644
        files = [f for f in site.user_dir().rglob("*") if f.is_file() and f.name != "lock"]
        assert files
        assert not [f for f in files if mode(f) & 0o077]


def test_kb_21_the_users_own_kubeconfig_is_neither_read_nor_changed(site):
    own = site.home / ".kube"
    own.mkdir()
    (own / "config").write_text("not: ours\n")
    (own / "config.lock").touch(mode=0)
    site.mark(101)
    site.mark(102)
    with site.step(101) as first, site.step(102) as second:
        first.start(0)
        second.start(0)
        assert (first.finish().status, second.finish().status) == (0, 0)
        assert first.finish().exports["KUBECONFIG"] != second.finish().exports["KUBECONFIG"]
        first.end()
        second.end()
    assert (own / "config").read_text() == "not: ours\n"
    assert sorted(f.name for f in own.iterdir()) == ["config", "config.lock"]
    assert all("--kubeconfig" in c.argv for c in site.calls("kind create"))
    assert site.leftovers() == []


def test_token_is_in_no_argument_log_or_record(site):
    site.mark(101)
    with site.step(101) as step:
        token = step.prolog().exports["K8S_CLUSTER_API_TOKEN"]
        assert len(token) > 20
        (record,) = site.records()
        assert token not in site.registry.path_of("n1", record.cluster).read_text()
        step.end()
    assert not [c for c in site.calls() if token in str(c) or token in str(c.env)]
    assert "kind create" in site.log() or "create cluster" in site.log()
    assert token not in site.log()


def test_tools_get_a_built_environment(site):
    site.mark(101)
    hostile = {
        "CONTAINER_HOST": "tcp://x",
        "KUBECONFIG": "/x",
        "LD_PRELOAD_": "x",
        "https_proxy": "http://p:1",
    }
    with site.step(101, env=hostile) as step:
        assert step.prolog().status == 0
        step.end()
    for call in site.calls():
        assert set(call.env) <= {
            *("PATH", "HOME", "USER", "LOGNAME", "LC_ALL", "KIND_EXPERIMENTAL_PROVIDER", "KSI_CREATING"),
            *("XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS", "https_proxy"),
        }, call  # fmt: skip
        assert call.env["PATH"].split(":")[-1] == str(site.tools_dir)
        assert "/usr" not in call.env["PATH"]


def test_kb_04_tools_come_from_the_settings_without_any_path(site):
    site.mark(101)
    with site.step(101, env={"PATH": ""}) as step:
        assert step.prolog().status == 0


def test_job_with_a_proxy_gets_the_cluster_excepted(site):
    site.mark(101)
    with site.step(101, env={"https_proxy": "http://proxy:3128", "no_proxy": "site.example"}) as step:
        exports = step.prolog().exports
    assert exports["no_proxy"] == exports["NO_PROXY"]
    assert {"site.example", "127.0.0.1", "localhost"} <= set(exports["no_proxy"].split(","))


def test_export_token_false_leaves_only_the_file(site):
    site.configure(export_token=False)
    site.mark(101)
    with site.step(101) as step:
        exports = step.prolog().exports
        assert set(exports) == EXPORTS - {"K8S_CLUSTER_API_TOKEN"}
        assert len(read(exports["K8S_CLUSTER_API_TOKEN_FILE"])) > 20


def test_print_false_is_silent(site):
    site.configure(print=False)
    site.mark(101)
    with site.step(101) as step:
        prolog = step.prolog()
    assert (prolog.status, prolog.prints) == (0, [])
    assert set(prolog.exports) == EXPORTS


@pytest.mark.parametrize("name", ["a b'c # {{ 7*7 }} ünï", '"$(touch pwn)`touch pwn`'])
def test_kb_30_working_directory_is_mounted_as_it_is_named(site, name):
    directory = site.work_dir / name
    directory.mkdir()
    site.mark(101)
    copy = site.base / "kind.yaml"
    (site.tools_dir / "kind").write_text(f"#!/bin/sh\n/bin/cp \"$6\" '{copy}'\nexit 1\n")
    with site.step(101, cwd=directory) as step:
        assert step.prolog().status == 1
    config = yaml.safe_load(copy.read_text())
    assert config["nodes"][0]["extraMounts"] == [{"hostPath": str(directory), "containerPath": "/app"}]
    assert not list(site.base.rglob("pwn"))


def test_kb_30_job_id_and_names_of_users_do_not_matter(site):
    site.mark(4294967200)
    with site.step(4294967200, env={"SLURM_JOB_NAME": "My_Job.1"}) as step:
        assert step.prolog().status == 0
    (record,) = site.records()
    assert re.fullmatch(r"[a-z]([a-z0-9-]{0,38}[a-z0-9])", record.cluster)


@pytest.mark.parametrize(
    ("left", "wanted"), [(36000, range(36590, 36611)), (None, range(86400, 366 * 86400))]
)
def test_kb_29_token_lives_until_the_job_ends(site, left, wanted):
    site.mark(101)
    environment = {"SLURM_JOB_END_TIME": str(int(time.time()) + left) if left else ""}
    with site.step(101, env=environment) as step:
        assert step.prolog().status == 0
    (call,) = (c for c in site.calls("kubectl") if "token" in c.argv)
    assert int(call.argv[-1].removeprefix("--duration=").removesuffix("s")) in wanted


def test_kb_29_token_that_ends_before_the_job_is_told(site):
    (site.state_dir / "longest-token.json").write_text("3600")
    site.mark(101)
    with site.step(101, env={"SLURM_JOB_END_TIME": str(int(time.time()) + 36000)}) as step:
        prolog = step.prolog()
    assert prolog.status == 0
    assert "token" in prolog.said


def test_several_nodes_share_the_cluster_of_the_first(site):
    """The node names of this test resolve to loopback, where the API then listens."""
    many = {"SLURM_JOB_NODELIST": "localhost,n2", "SLURM_JOB_NUM_NODES": "2"}
    site.mark(101)
    with (
        site.step(101, node="localhost", env=many) as home,
        site.step(101, "0", node="n2", env=many) as other,
    ):
        other.start(0)
        first = home.prolog()
        second = other.finish()
        assert (first.status, second.status) == (0, 0), (first, second)
        same = EXPORTS - {"KUBECONFIG", "K8S_CLUSTER_API_TOKEN_FILE", "K8S_CLUSTER_CA"}
        assert {n: first.exports[n] for n in same} == {n: second.exports[n] for n in same}
        shared = os.path.dirname(second.exports["KUBECONFIG"])  # noqa: PTH120
        assert shared.startswith(str(site.registry.top))
        assert mode(shared) == 0o700
        assert (
            mode(second.exports["KUBECONFIG"]) == mode(second.exports["K8S_CLUSTER_API_TOKEN_FILE"]) == 0o600
        )
        assert second.prints == []
        assert other.end_task().status == 0
        assert len(site.state("container")) == 1
        home.end()
    assert site.leftovers() == []
    assert len(site.calls("kind create")) == 1
