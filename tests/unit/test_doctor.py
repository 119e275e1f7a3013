"""The doctor's judgements on recorded answers of programs."""

import errno
from pathlib import Path

import pytest

from ksi_hooks.cli import doctor as command
from ksi_hooks.config import Settings
from ksi_hooks.doctor import examine, node, programs, slurm, storage
from ksi_hooks.doctor.finding import Level, error, ok, warning
from ksi_hooks.doctor.storage import Mount
from ksi_hooks.errors import KsiError
from ksi_hooks.registry.store import Registry

SETTINGS = Settings(registry_dir=Path("/shared/ksi"))
HOOK = Path("/opt/ksi/libexec/ksi/ksi-task-prolog")

# cut from `scontrol show config`
SLURM_22_05 = """\
Configuration data as of 2026-11-30T10:11:12
Epilog                  = /opt/ksi/libexec/ksi/ksi-epilog
KillWait                = 30 sec
Prolog                  = /opt/ksi/libexec/ksi/ksi-prolog
PrologEpilogTimeout     = 65534
PrologSlurmctld         = (null)
PrologFlags             = Alloc
SLURM_CONF              = /etc/slurm/slurm.conf
SLURM_VERSION           = 22.05.8
TaskEpilog              = /opt/ksi/libexec/ksi/ksi-task-epilog
TaskPlugin              = task/affinity
TaskProlog              = /opt/ksi/libexec/ksi/ksi-task-prolog

Cgroup Support Configuration:
ConstrainCores          = yes

Slurmctld(primary) at slurmctld is UP
"""
SLURM_25_11 = """\
Configuration data as of 2026-11-30T10:11:12
Epilog[0]               = /site/epilog
Epilog[1]               = /opt/ksi/libexec/ksi/ksi-epilog
KillWait                = 10 sec
Prolog[0]               = /site/prolog.d/*
PrologEpilogTimeout     = 20
PrologFlags             = (null)
SLURM_VERSION           = 25.11.4
TaskEpilog              = (null)
TaskProlog              = (null)
"""
MOUNTINFO = """\
22 1 254:1 / / rw,relatime shared:1 - ext4 /dev/vda1 rw
30 22 0:26 / /tmp rw,nosuid,nodev shared:2 - tmpfs tmpfs rw
41 22 0:40 / /shared rw,relatime shared:3 - nfs4 filer:/export rw,vers=4.2
42 22 0:41 / /my\\040disk rw,relatime shared:4 master:1 - xfs /dev/vdb rw
"""
PODMAN_INFO = {
    "host": {"cgroupControllers": ["memory", "pids"], "cgroupVersion": "v2", "cgroupManager": "systemd"},
    "store": {"graphDriverName": "overlay", "graphRoot": "/home/alice/.local/share/containers/storage"},
}


def fine(program):
    return ""


def test_slurm_conf_of_both_forms_is_read():
    old, new = slurm.parse(SLURM_22_05), slurm.parse(SLURM_25_11)
    assert old["TaskProlog"] == [str(HOOK)]
    assert new["Epilog"] == ["/site/epilog", "/opt/ksi/libexec/ksi/ksi-epilog"]
    assert "TaskProlog" not in new and "PrologSlurmctld" not in old
    assert (slurm.version(old).seen, slurm.version(new).seen) == ("22.05.8", "25.11.4")


def test_a_hook_in_slurm_conf_is_fine_when_it_is_ours():
    assert slurm.task_hook("TaskProlog", slurm.parse(SLURM_22_05), HOOK, fine).level is Level.OK


def test_a_missing_task_hook_is_an_error_with_the_line_to_write():
    found = slurm.task_hook("TaskProlog", slurm.parse(SLURM_25_11), HOOK, fine)
    assert (found.level, found.remedy) == (Level.ERROR, f"slurm.conf: TaskProlog={HOOK}")


def test_a_task_hook_that_cannot_run_is_an_error():
    found = slurm.task_hook(
        "TaskProlog", slurm.parse(SLURM_22_05), HOOK, lambda _p: "no such file on this node"
    )
    assert found.level is Level.ERROR and "no such file on this node" in found.seen


def test_a_sites_own_task_hook_is_to_be_chained():
    found = slurm.task_hook("TaskProlog", {"TaskProlog": ["/site/task_prolog"]}, HOOK, fine)
    assert found.level is Level.WARNING and "task_prolog_next in ksi.yaml" in found.remedy
    found = slurm.task_hook("TaskEpilog", {"TaskEpilog": ["/site/task_epilog"]}, HOOK, fine)
    assert "task_epilog_next in ksi.yaml" in found.remedy


def test_node_hooks_may_be_one_of_many_or_a_pattern():
    facts = slurm.parse(SLURM_25_11)
    assert slurm.node_hook("Epilog", facts, Path("/opt/ksi/libexec/ksi/ksi-epilog"), fine).level is Level.OK
    assert slurm.node_hook("Prolog", facts, Path("/opt/ksi/libexec/ksi/ksi-prolog"), fine).level is Level.OK
    assert slurm.node_hook("Epilog", {}, None, fine).level is Level.WARNING


def test_a_pattern_is_not_looked_for_as_a_file():
    found = slurm.node_hook("Prolog", slurm.parse(SLURM_25_11), None, lambda _p: "no such file on this node")
    assert found.level is Level.OK


@pytest.mark.parametrize(
    ("text", "levels"),
    [
        (SLURM_22_05, {"KillWait": Level.OK}),
        (SLURM_25_11, {"KillWait": Level.ERROR, "PrologEpilogTimeout": Level.ERROR}),
        ("KillWait = 25 sec", {"KillWait": Level.ERROR}),
        ("PrologEpilogTimeout = 26", {}),
        ("", {}),
    ],
)
def test_epilog_timeout_fits_slurms_limits(text, levels):
    assert {f.name: f.level for f in slurm.times(slurm.parse(text), SETTINGS)} == levels


@pytest.mark.parametrize(
    ("flags", "level"),
    [
        ("Alloc", Level.OK),
        ("Contain", Level.OK),
        ("RunInJob,X11", Level.OK),
        ("NoHold", Level.WARNING),
        ("", Level.WARNING),
    ],
)
def test_prolog_flags(flags, level):
    found = slurm.prolog_flags({"Prolog": ["/p"], "PrologFlags": [flags] if flags else []})
    assert [f.level for f in found] == [level]
    assert slurm.prolog_flags({}) == []


def test_marks_without_a_prolog_keep_every_job_out():
    facts = slurm.parse(SLURM_22_05)
    jobs = Path("/run/ksi/jobs")
    assert slurm.marks(jobs, facts, present=True) == slurm.marks(jobs, {}, present=False) == []
    (found,) = slurm.marks(jobs, {}, present=True)
    assert found.level is Level.ERROR and "/run/ksi/jobs" in found.remedy


def test_the_feature_is_counted_as_a_whole_word():
    assert slurm.feature("k8s", ["gpu,k8s", "nok8s,k8s-old", "(null)"]).seen == "k8s on 1 of 3 nodes"
    assert slurm.feature("k8s", ["nok8s"]).level is Level.ERROR


def test_installed_hooks():
    assert slurm.installed([]).level is Level.OK
    assert slurm.installed(["/x differs"]).level is Level.ERROR
    assert slurm.installed(None).level is Level.WARNING


@pytest.mark.parametrize(
    ("path", "mount"),
    [
        ("/var/lib", Mount("/", "ext4")),
        ("/tmp/x", Mount("/tmp", "tmpfs")),
        ("/tmpfile", Mount("/", "ext4")),
        ("/shared/ksi", Mount("/shared", "nfs4")),
        ("/my disk/run", Mount("/my disk", "xfs")),
    ],
)
def test_the_mount_of_a_path(path, mount):
    assert storage.mount_of(Path(path), MOUNTINFO) == mount


def test_run_dir_is_local_and_outside_of_tmp():
    def level(path):
        found = storage.run_dir(Path(path), storage.mount_of(Path(path), MOUNTINFO), problem="", hint="")
        return found[0].level

    assert level("/var/lib/ksi/run/7") is Level.OK
    assert level("/shared/run/7") is Level.ERROR
    assert level("/tmp/run/7") is Level.WARNING


def test_a_registry_of_many_nodes_is_on_shared_storage():
    local, shared = Mount("/", "ext4"), Mount("/shared", "lustre")
    assert storage.registry_sharing(Path("/r"), local, nodes=1).level is Level.OK
    assert storage.registry_sharing(Path("/r"), local, nodes=2).level is Level.WARNING
    assert storage.registry_sharing(Path("/r"), shared, nodes=2).level is Level.OK


@pytest.mark.parametrize(
    ("free", "ephemeral", "levels"),
    [
        (2768, (32768, 60999), [Level.OK]),
        (0, (32768, 60999), [Level.ERROR]),
        (3, (), [Level.WARNING]),
        (2768, (15000, 65000), [Level.OK, Level.WARNING]),
    ],
)
def test_ports(free, ephemeral, levels):
    assert [f.level for f in storage.ports((30000, 32767), free, ephemeral)] == levels


def test_a_program_that_is_missing_or_old():
    assert programs.program("kind", version="0.31.0", problem="", needed=True).level is Level.OK
    assert programs.program("podman", version="3.4.4", problem="", needed=True).level is Level.WARNING
    assert programs.program("podman", version="4.3.1", problem="", needed=True).level is Level.OK
    assert programs.program("kubectl", version="v1.34.4", problem="", needed=True).level is Level.OK
    missing = programs.program(
        "kind", version=None, problem="program not found: kind (searched /a)", needed=True
    )
    assert missing.level is Level.ERROR and "tools_path" in missing.remedy
    assert programs.program("squeue", version=None, problem="x", needed=False).level is Level.WARNING


def test_podmans_store_and_controllers():
    def levels(info, **facts):
        found = programs.podman_store(info, **{"free_bytes": 50 * 2**30, "network": False, "uid": 0, **facts})
        return {f.name: f.level for f in found}

    assert levels(PODMAN_INFO) == {"podman storage": Level.OK, "storage space": Level.OK}
    assert levels(PODMAN_INFO, uid=1000)["cgroup controllers"] is Level.WARNING
    assert levels(PODMAN_INFO, network=True)["podman storage"] is Level.ERROR
    assert levels(PODMAN_INFO, free_bytes=2**30)["storage space"] is Level.WARNING
    assert levels({"store": {"graphDriverName": "vfs"}})["podman storage"] is Level.WARNING


def test_node_image():
    assert programs.node_image("kindest/node:v1", present=True).level is Level.OK
    assert programs.node_image("kindest/node:v1", present=False).level is Level.ERROR
    unasked = programs.node_image("kindest/node:v1", present=None, problem="podman failed (status 125): x")
    assert unasked.level is Level.ERROR and "status 125" in unasked.seen
    assert programs.node_image(None, present=None).level is Level.WARNING


def test_the_kernel_and_the_session():
    assert node.cgroups(v2=False, uid=1000).level is Level.ERROR
    assert node.cgroups(v2=False, uid=0).level is Level.WARNING
    assert node.modules({"ip_tables", "iptable_nat", "ip6_tables", "ip6table_nat"}).level is Level.OK
    assert "ip6table_nat" in node.modules({"ip_tables", "iptable_nat", "ip6_tables"}).remedy
    assert node.inotify(128).level is Level.WARNING
    assert node.inotify(None).level is Level.OK
    assert node.session(user="alice", uid=1000, has_bus=False, lingers=True).level is Level.ERROR
    lingerless = node.session(user="alice", uid=1000, has_bus=True, lingers=False)
    assert lingerless.level is Level.WARNING and lingerless.remedy == "loginctl enable-linger alice"
    assert node.session(user="alice", uid=1000, has_bus=True, lingers=True).level is Level.OK


def test_subordinate_ids_are_by_name_or_number():
    rows = "bob:100000:65536\n1000:165536:65536\n"
    assert node.subordinate_ids("alice", 1000, rows, rows).level is Level.OK
    assert node.subordinate_ids("alice", 1001, rows, rows).level is Level.WARNING
    assert (
        node.subordinate_ids("bob", 1001, rows, "bob:1:10\nbroken\n").seen
        == "fewer than 65536 for bob in /etc/subgid"
    )


def test_probing_the_registry_leaves_nothing(tmp_path, monkeypatch):
    registry = Registry(tmp_path / "registry", 1.0)
    registry.prepare(["n1"])
    before = sorted(registry.top.rglob("*"))
    examine.probe(registry, "n1")
    assert sorted(registry.top.rglob("*")) == before

    def full(*_args, **_options):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(examine.files, "create", full)
    with pytest.raises(KsiError, match="No space left on device"):
        examine.probe(registry, "n1")


def test_what_slurmd_could_not_start(tmp_path):
    program = tmp_path / "hook"
    assert examine.program_problem(str(program)) == "no such file on this node"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o644)
    assert examine.program_problem(str(program)) == "not executable"
    program.chmod(0o755)
    assert examine.program_problem(str(program)) == ""


def test_a_person_reads_effect_and_remedy_only_where_something_is_wrong():
    findings = [
        ok("kind", "0.31.0"),
        warning("ports", "3 free", "few", "widen"),
        error("x", "a\nb", "none", "mend"),
    ]
    assert command.text(findings).splitlines() == [
        "ok       kind   0.31.0",
        "warning  ports  3 free",
        "           effect: few",
        "           remedy: widen",
        "error    x      a?b",
        "           effect: none",
        "           remedy: mend",
        "1 errors, 1 warnings, 1 in order",
    ]


@pytest.mark.parametrize(
    ("findings", "status"),
    [([ok("a", "b")], 0), ([warning("a", "b", "c", "d")], 0), ([error("a", "b", "c", "d")], 1)],
)
def test_only_errors_make_the_status(findings, status, monkeypatch, capsys):
    monkeypatch.setattr(command.site, "of", lambda _args: command.site.Site(SETTINGS, None))
    monkeypatch.setattr(command.Examination, "run", lambda _self: findings)
    assert command.main(command.argparse.Namespace(json=True, lock=False, config=None)) == status
