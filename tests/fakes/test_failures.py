"""Bad input of every kind: one sentence with the value, one with the remedy, and nothing half made stays."""

import json
import os
import stat
import time

import pytest

from fakes.failing import fails, nothing_left


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
        ("Error: network name kind already used: network already exists", "at the same moment", 2),
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


def test_on_failure_continue_tries_once_for_a_batch_script_and_its_steps(site):
    site.configure(on_failure="continue")
    site.script("kind create", status=1, stderr="xyzzy\n")
    site.mark(101)
    with site.step(101) as batch:
        assert "xyzzy" in batch.prolog().said
        with site.step(101, kind="0") as step:
            prolog = step.prolog()
            assert (prolog.status, prolog.exports, prolog.prints) == (0, {}, [])
            step.end()
        batch.end()
    assert len(site.calls("kind")) == 1
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
