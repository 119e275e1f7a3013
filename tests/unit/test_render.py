"""Templates: their text (KSI_UPDATE_GOLDEN=1 writes it anew), and hostile values, which change nothing."""

import os
import subprocess
from pathlib import Path

import pytest
import yaml

from ksi_hooks import config, render
from ksi_hooks.errors import ConfigError
from ksi_hooks.install import plan

GOLDEN = Path(__file__).parent / "golden"
KIND = {
    "cluster": "ksi-7-0af3c",
    "image": None,
    "work_dir": "/home/alice/run",
    "port": 30000,
    "listen_address": "0.0.0.0",
    "api_address": "127.0.0.1",
    "cgroup_v1": False,
    "accelerate": False,
}
VARIANTS = {
    "plain": {},
    "all": {"image": "docker.io/kindest/node:v1.34.4", "cgroup_v1": True, "accelerate": True},
    "cgroup-v1": {"cgroup_v1": True},
}
HOSTILE = "/a b/q'uo\"te/#x/{{ 7*7 }}/$(touch pwn)/ünï/\\n: - &"
SITE = {"registry_dir": "/shared/ksi", "run_dir": "/var/lib/ksi/run/%u"}


def hooks(python="/usr/bin/python3", prefix="/", **settings):
    site = plan.Site(Path(prefix), python, Path("/usr/lib/python3/ksi_hooks"))
    return {p.path.name: p.text for p in plan.hooks(site, config.parse({**SITE, **settings}, "test"))}


def require_golden(name, text):
    file = GOLDEN / name
    if os.environ.get("KSI_UPDATE_GOLDEN"):
        file.write_text(text)
    assert text == file.read_text()


@pytest.mark.parametrize("variant", sorted(VARIANTS))
def test_kind_configuration(variant):
    text = render.render("kind-config.yaml.j2", {**KIND, **VARIANTS[variant]})
    require_golden(f"kind-config-{variant}.yaml", text)
    assert yaml.safe_load(text)["nodes"][0]["role"] == "control-plane"


@pytest.mark.parametrize("hook", ["ksi-task-prolog", "ksi-task-epilog", "ksi-prolog", "ksi-epilog"])
def test_hook_files(hook, monkeypatch):
    monkeypatch.setattr("ksi_hooks.__version__", "1.2.3")
    require_golden(f"{hook}.sh", hooks()[hook])


@pytest.mark.parametrize("hook", ["ksi-task-prolog", "ksi-task-epilog"])
def test_hook_files_with_the_sites_own(hook, monkeypatch):
    monkeypatch.setattr("ksi_hooks.__version__", "1.2.3")
    text = hooks(task_prolog_next="/etc/slurm/prolog", task_epilog_next="/etc/slurm/epilog")[hook]
    require_golden(f"{hook}-next.sh", text)


def test_admin_account():
    text = render.render("admin-user.yaml.j2", {"account": "admin-user", "namespace": "kube-system"})
    require_golden("admin-user.yaml", text)
    account, binding = yaml.safe_load_all(text)
    assert (account["kind"], account["metadata"]["namespace"]) == ("ServiceAccount", "kube-system")
    assert binding["roleRef"]["name"] == "cluster-admin"


@pytest.mark.parametrize(
    "work_dir", [HOSTILE, "a b", "q'uote", "hash # x", "{{ 7*7 }}", "ünï", "- x", "", "yes", "\u2028"]
)
def test_kb_30_any_path_is_one_string_in_the_configuration(work_dir):
    values = {**KIND, "work_dir": work_dir, "image": work_dir or None, "listen_address": work_dir}
    node = yaml.safe_load(render.render("kind-config.yaml.j2", values))["nodes"][0]
    assert node["extraMounts"][0]["hostPath"] == work_dir
    assert node.get("image", "") == work_dir
    assert node["extraPortMappings"][0]["listenAddress"] == work_dir


@pytest.mark.parametrize("hook", ["ksi-task-prolog", "ksi-task-epilog", "ksi-prolog", "ksi-epilog"])
def test_hook_files_with_hostile_paths_are_still_the_same_program(real_programs, tmp_path, hook):
    """Run below a directory with such a name, every value reaches its place as one word."""
    evil = tmp_path / "a b" / "q'uo\"te $(touch pwn) `touch pwn`"
    evil.mkdir(parents=True)
    spy = evil / "python"
    spy.write_text('#!/bin/sh\nprintf "%s\\n" "$@" > "${0%/*}/seen"\n')
    spy.chmod(0o755)
    text = hooks(
        python=str(spy),
        prefix=str(evil),
        node_state_dir=str(evil / "state"),
        run_dir=f"{evil}/run/%u",
        task_prolog_next=str(evil / "next"),
        task_epilog_next=str(evil / "next"),
    )[hook]
    (evil / "next").write_text("#!/bin/sh\n")
    (evil / "next").chmod(0o755)
    (evil / "state" / "jobs").mkdir(parents=True)
    (evil / "state" / "jobs" / "7").touch()
    (evil / "run" / "1000" / "jobs" / "7").mkdir(parents=True)
    file = tmp_path / "hook"
    file.write_text(text)
    file.chmod(0o755)
    environment = {
        "SLURM_JOB_ID": "7",
        "SLURM_JOB_UID": "1000",
        "SLURM_JOB_CONSTRAINTS": "k8s",
        "PATH": "/usr/bin:/bin",
    }
    subprocess.run([file], env=environment, check=True, cwd=tmp_path, timeout=10)
    seen = (evil / "seen").read_text().splitlines()
    assert seen[0] == "-I"
    assert seen[2] == str(evil / "etc/ksi/ksi.yaml")
    assert not list(tmp_path.rglob("pwn"))


def test_value_that_a_template_does_not_get_is_an_error(tmp_path):
    (tmp_path / "kind.yaml").write_text("a: {{ no_such_value }}\n")
    with pytest.raises(ConfigError, match="no_such_value"):
        render.render_file(tmp_path / "kind.yaml", KIND)


def test_broken_template_of_a_site_names_file_and_line(tmp_path):
    (tmp_path / "kind.yaml").write_text("a: 1\n{% if %}\n")
    with pytest.raises(ConfigError, match=rf"{tmp_path}/kind.yaml:2"):
        render.render_file(tmp_path / "kind.yaml", KIND)


def test_missing_template_of_a_site(tmp_path):
    with pytest.raises(ConfigError, match="no such template"):
        render.render_file(tmp_path / "gone.yaml", KIND)
