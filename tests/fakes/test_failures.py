"""Bad input of every kind: one sentence with the value, one with the remedy, and nothing half made stays."""

import json
import os
import re
import socket
import stat
import time

import pytest


def fails(site, *, text, job_id=101, said_by="error", creates=None, **options):
    """Run a k8s job's only task, which has to fail with this text in its message and leave nothing."""
    site.mark(job_id)
    with site.step(job_id, **options) as step:
        prolog = step.prolog()
        assert (prolog.status, prolog.exports, prolog.dropped) == (1, {}, []), prolog
        (error,) = (line for line in prolog.prints if line.startswith("ksi: error: "))
        hints = [line for line in prolog.prints if line.startswith("ksi: hint: ")]
        assert len(hints) == 1, prolog
        assert re.search(text, error if said_by == "error" else hints[0], re.IGNORECASE), prolog
        step.end()
    if creates is not None:
        assert len(site.calls("kind create")) == creates
    return prolog


def nothing_left(site):
    assert site.leftovers() == []


@pytest.mark.parametrize("program", ["kind", "kubectl", "podman"])
def test_kb_04b_missing_program(site, program):
    site.configure(node_image="docker.io/kindest/node:v1.34.4")
    (site.tools_dir / program).unlink()
    fails(site, text=rf"program not found: {program} \(searched {site.tools_dir}\)")
    if program != "podman":  # without it nothing can be verified
        nothing_left(site)


def test_kb_04d_broken_settings_name_file_and_line(site):
    site.settings_file.write_text("feature: [")
    fails(site, text=rf"{site.settings_file}: line 1 ", creates=0)


def test_missing_settings(site):
    site.settings_file.unlink()
    fails(site, text=rf"cannot read the settings: {site.settings_file}", creates=0)


def test_settings_with_several_faults_list_them_all(site):
    site.settings_file.write_text(
        json.dumps({"featur": "x", "port_range": "80-90", "registry_dir": "relative"})
    )
    error = fails(site, text="featur: unknown setting, perhaps feature", creates=0).said
    assert "port_range: " in error
    assert "registry_dir: " in error


@pytest.mark.parametrize("variable", ["create_slots", "on_failure"])
def test_settings_with_a_bad_value_name_it(site, variable):
    values = json.loads(site.settings_file.read_text())
    site.settings_file.write_text(json.dumps({**values, variable: "nonsense"}))
    fails(site, text=f"{variable}: .*'nonsense'", creates=0)


def test_missing_registry(site):
    site.registry.top.rename(site.base / "elsewhere")
    fails(site, text=f"no registry: {site.registry.top}", creates=0)


def test_registry_that_is_not_prepared(site):
    (site.registry.top / ".lock").unlink()
    fails(site, text=rf"not prepared .*{site.registry.top}", creates=0)


def test_kb_39_registry_without_the_sticky_bit(site):
    site.registry.top.chmod(0o777)
    fails(site, text=rf"world-writable without the sticky bit: {site.registry.top}", creates=0)


def test_kb_39_registry_that_is_a_link(site):
    victim = site.base / "victim"
    site.registry.top.rename(victim)
    site.registry.top.symlink_to(victim)
    before = sorted(victim.rglob("*"))
    fails(site, text=rf"not a directory: {site.registry.top}", creates=0)
    assert sorted(victim.rglob("*")) == before


def test_kb_39_lock_that_is_a_fifo(site):
    lock = site.registry.top / "n1" / ".lock"
    lock.unlink()
    os.mkfifo(lock)
    site.configure(lock_timeout=1)
    started = time.monotonic()
    site.mark(101)
    with site.step(101) as step:
        prolog = step.prolog(timeout=20)
        step.end()
    assert prolog.status in (0, 1)
    assert "internal error" not in prolog.said
    assert time.monotonic() - started < 10


def test_missing_node_image(site):
    site.configure(node_image="docker.io/kindest/node:v0")
    fails(site, text=r"node image is not on this node: docker.io/kindest/node:v0", creates=0)
    nothing_left(site)


@pytest.mark.parametrize(
    ("output", "keyword", "creates"),
    [
        ("ERROR: could not find a log line that matches", "resources", 2),
        ("create keyring _ses.1: Disk quota exceeded", "kernel.keys.maxkeys", 1),
        ("xyzzy", "xyzzy", 1),
    ],
)
def test_kb_24_cause_of_a_failed_creation(site, output, keyword, creates):
    site.script("kind create", status=1, stderr=f"{output}\n")
    prolog = fails(site, text="", creates=creates)
    assert keyword.lower() in prolog.said.lower()
    assert f"{site.user_dir()}/logs/ksi-101-" in prolog.said
    assert output in site.log()
    nothing_left(site)


def test_kb_24_passing_cause_is_tried_again(site):
    site.script(
        "kind create", status=1, stderr="could not find a log line that matches\n", at="container", times=1
    )
    site.mark(101)
    with site.step(101) as step:
        assert step.prolog().status == 0
        assert len(site.state("container")) == len(site.state("volume")) == 1
        step.end()
    nothing_left(site)


@pytest.mark.parametrize("stage", ["volume", "container", "end"])
def test_failed_creation_leaves_nothing(site, stage):
    site.script("kind create", status=1, stderr="xyzzy\n", at=stage)
    fails(site, text="xyzzy", creates=1)
    nothing_left(site)


@pytest.mark.parametrize("call", ["kubectl wait", "kubectl apply", "kubectl create token"])
def test_kubectl_that_fails(site, call):
    site.script(call, status=1, stderr="xyzzy\n")
    fails(site, text="xyzzy")
    nothing_left(site)


def test_kb_29_default_account_that_comes_late(site):
    site.mark(101)
    site.script("kubectl get serviceaccount", status=1, stderr="NotFound\n", times=2)
    with site.step(101) as step:
        assert step.prolog().status == 0
    assert len([c for c in site.calls("kubectl") if "get" in c.argv]) == 3


def test_kb_29_default_account_that_never_comes(site):
    site.configure(create_timeout=1)
    site.script("kubectl get serviceaccount", status=1, stderr="NotFound\n")
    fails(site, text="service account")
    nothing_left(site)


def test_api_that_refuses_the_token(site):
    site.script("kubectl create token", stdout="forged.token.value\n", status=0)
    fails(site, text="API refuses")
    nothing_left(site)


def test_kb_26_no_free_port(site):
    with socket.socket() as first, socket.socket() as second:
        for number, taken in ((31990, first), (31991, second)):
            taken.bind(("127.0.0.1", number))
            taken.listen()
        site.configure(port_range="31990-31991")
        fails(site, text="no free port in 31990-31991", creates=0)
    nothing_left(site)


@pytest.mark.parametrize("value", ["80", "abc"])
def test_kb_26_preset_port_that_is_none(site, value):
    fails(site, text=re.escape(value), env={"K8S_PORT": value}, creates=0)
    nothing_left(site)


def test_kb_26_preset_port_that_is_taken(site):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 31992))
        taken.listen()
        fails(site, text="K8S_PORT is in use on this node: 31992", env={"K8S_PORT": "31992"}, creates=0)
    nothing_left(site)


def test_kb_26_preset_port_is_honoured(site):
    site.mark(101)
    with site.step(101, env={"K8S_PORT": "31993"}) as step:
        assert step.prolog().exports["K8S_PORT"] == "31993"


def test_kb_26_port_taken_between_looking_and_binding(site):
    site.script(
        "kind create", status=1, stderr="listen tcp: bind: address already in use\n", at="container", times=2
    )
    site.mark(101)
    with site.step(101) as step:
        prolog = step.prolog()
        assert prolog.status == 0
        step.end()
    tries = site.calls("kind create")
    assert len(tries) == 3
    assert len({c.argv[3] for c in tries}) == 1
    nothing_left(site)


def test_kb_26_ten_jobs_at_once_have_ten_ports(site):
    site.script("kind create", status=1, stderr="xyzzy", delay=2)
    steps = [site.step(600 + number) for number in range(10)]
    try:
        for number, step in enumerate(steps):
            site.mark(600 + number)
            step.start(0)
        seen = {}
        end = time.monotonic() + 15
        while len(seen) < 10 and time.monotonic() < end:
            seen |= {r.cluster: r.port for r in site.records()}
            time.sleep(0.05)
        assert len(set(seen.values())) == 10, seen
    finally:
        for step in steps:
            step.close()


@pytest.mark.parametrize(("name", "shown"), [("co:lon", "':'"), ("new\nline", r"'\\n'")])
def test_kb_30_directory_that_cannot_be_mounted(site, name, shown):
    directory = site.work_dir / name
    directory.mkdir()
    fails(
        site,
        text=re.escape(shown) if ":" in shown else shown.replace("\\\\", r"\\"),
        cwd=directory,
        creates=0,
    )
    nothing_left(site)


def test_kb_30_root_directory_is_refused(site):
    fails(site, text="working directory /", cwd="/", creates=0)


def test_working_directory_that_is_missing(site):
    """Slurm falls back to /tmp in silence."""
    fails(
        site, text=f"directory is missing on this node: {site.base}/gone", cwd=site.base / "gone", creates=0
    )
    nothing_left(site)


def test_working_directory_that_vanishes(site):
    """The shell of the gate complains before it reads its script, which slurmstepd drops."""
    vanishing = site.base / "vanishing"
    vanishing.mkdir()
    site.mark(101)
    with site.step(101, cwd=vanishing, cwd_vanishes=True) as step:
        prolog = step.prolog()
        assert (prolog.status, prolog.exports) == (1, {})
        assert f"directory is missing on this node: {vanishing}" in prolog.said
        assert "ksi: hint: " in prolog.said
        assert all(line.startswith("sh: ") for line in prolog.dropped)
    with site.step(102, cwd=site.base / "gone") as step:
        assert step.prolog().status == 0


def test_home_that_is_missing(site):
    site.mark(101)
    with site.step(101, env={"HOME": "/nonexistent"}) as step:
        assert step.prolog().status == 0
        step.end()
    nothing_left(site)


def test_home_and_user_that_are_not_set(site):
    site.mark(101)
    with site.step(101, drop=("HOME", "USER", "SLURM_JOB_UID")) as step:
        assert step.prolog().status == 0
        step.end()
    nothing_left(site)


def test_run_directory_that_is_a_link(site):
    victim = site.base / "victim"
    victim.mkdir()
    site.user_dir().symlink_to(victim)
    fails(site, text=f"{site.user_dir()}", creates=0)
    assert list(victim.iterdir()) == []


def test_on_failure_continue_starts_the_job_and_tells(site):
    site.configure(on_failure="continue")
    site.script("kind create", status=1, stderr="xyzzy\n")
    site.mark(101)
    with site.step(101) as step:
        prolog = step.prolog()
        assert (prolog.status, prolog.exports) == (0, {})
        assert "xyzzy" in prolog.said
        step.end()
    nothing_left(site)


def test_full_disk(site, full_disk):
    registry = full_disk / "registry"
    site.registry.top.rename(site.base / "unused")
    moved = type(site.registry)(registry, 10.0)
    moved.prepare(["n1"])
    (full_disk / "filler").write_bytes(b"")
    with (full_disk / "filler").open("wb", buffering=0) as filler:
        try:
            while filler.write(b"x" * 4096):
                pass
        except OSError:
            pass
    site.configure(registry_dir=str(registry))
    fails(site, text="cannot write the registry: .*no space left", creates=0)
    assert sorted(f.name for f in (registry / "n1").iterdir()) == [".lock"]


def test_kb_33_registry_that_is_not_writable_names_owner_and_mode(site, tenant):
    site.registry.top.chmod(0o755)
    (site.registry.top / "n1").chmod(0o755)
    mode = stat.S_IMODE(site.registry.top.stat().st_mode)
    fails(
        site, text=rf"not writable: {site.registry.top} \(owner 0, mode {mode:o}\)", uid=tenant.uid, creates=0
    )
