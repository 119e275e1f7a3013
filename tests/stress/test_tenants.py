"""Several users on one node, none of them root: the scope around kind, and what one can do to another."""

import os
import signal
import stat
import subprocess

from fakes.waiting import wait_until


def test_user_gets_a_cluster_in_a_scope_of_his_own_manager(site, tenant):
    site.mark(701)
    with site.step(701, uid=tenant.uid, env=tenant.environment) as step:
        prolog = step.prolog()
        assert prolog.status == 0, prolog
        (record,) = site.records()
        assert record.uid == tenant.uid
        (scope,) = site.calls("systemd-run")
        assert scope.argv[:2] == ["--user", "--scope"]
        assert f"--unit={record.cluster}-create.scope" in scope.argv
        assert "--property=Delegate=yes" in scope.argv
        assert scope.env["DBUS_SESSION_BUS_ADDRESS"] == f"unix:path={tenant.runtime_dir}/bus"
        assert site.user_dir(tenant.uid).stat().st_uid == tenant.uid
        assert stat.S_IMODE(site.user_dir(tenant.uid).stat().st_mode) == 0o700
        step.end()
    assert site.leftovers() == []


def test_kb_14_no_user_manager_is_one_clear_error(site, tenant):
    site.mark(701)
    with site.step(701, uid=tenant.uid) as step:  # XDG_RUNTIME_DIR names a directory that does not exist
        prolog = step.prolog()
        assert (prolog.status, prolog.exports) == (1, {})
        assert "no user service manager on this node" in prolog.said
        assert "loginctl enable-linger" in prolog.said
        assert site.calls("kind") == []
        step.end()
    assert site.leftovers() == []


def test_scancel_during_creation_ends_the_scope(site, tenant):
    site.mark(701)
    site.script("kind create", delay=300, at="container")
    with site.step(701, uid=tenant.uid, env=tenant.environment) as step:
        step.start(0)
        wait_until(lambda: site.state("container"))
        step.signal_hook(signal.SIGKILL)
        step.finish()
        (record,) = site.records()
        step.end()
        for kill, work in zip(site.calls("systemctl"), ("create", "load"), strict=True):
            assert kill.argv == ["--user", "kill", "--signal=SIGKILL", f"{record.cluster}-{work}.scope"]
    assert site.leftovers() == []


def test_kb_33_first_tenants_umask_locks_nobody_out(site, tenant, other_tenant):
    for job_id, user, umask in ((701, tenant, 0o077), (702, other_tenant, 0o022), (703, tenant, 0o077)):
        site.mark(job_id)
        with site.step(job_id, uid=user.uid, env=user.environment, umask=umask) as step:
            prolog = step.prolog()
            assert prolog.status == 0, prolog
    assert sorted((r.job_id, r.uid) for r in site.records()) == [
        (701, tenant.uid),
        (702, other_tenant.uid),
        (703, tenant.uid),
    ]


def test_kb_39_record_that_a_stranger_planted_is_nobodys_cluster(site, tenant, other_tenant):
    site.mark(701)
    with site.step(701, uid=tenant.uid, env=tenant.environment) as step:
        exports = step.prolog().exports
        (real,) = site.records()
        planted = site.registry.path_of("n1", "ksi-701-fffff")
        planted.write_bytes(real.to_bytes().replace(real.cluster.encode(), b"ksi-701-fffff"))
        os.chown(planted, other_tenant.uid, other_tenant.uid)
        with site.step(701, "0", uid=tenant.uid, env={**exports, **tenant.environment}) as srun:
            assert srun.prolog().exports == exports
            srun.end()
        step.end()
    assert [r.cluster for r in site.records()] == ["ksi-701-fffff"]
    assert site.state("container") == []


def test_lock_that_a_tenant_never_lets_go_stops_nobody(site, tenant, other_tenant):
    site.configure(lock_timeout=0.5, python=site.tenant_python)
    lock = site.registry.top / "n1" / ".lock"
    code = f"import fcntl; fcntl.flock(open({str(lock)!r}, 'r+'), 2); print(1, flush=True); input()"
    holder = subprocess.Popen(
        [site.tenant_python, "-Ic", code],
        user=other_tenant.uid,
        group=other_tenant.uid,
        extra_groups=[],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        assert holder.stdout.readline()
        site.mark(701)
        with site.step(701, uid=tenant.uid, env=tenant.environment) as step:
            prolog = step.prolog()
            assert prolog.status == 0, prolog
            step.end()
        assert site.leftovers() == []
    finally:
        holder.communicate(b"\n", timeout=10)


def test_node_epilog_deletes_as_the_owner(site, tenant):
    site.mark(701)
    with site.step(701, uid=tenant.uid, env=tenant.environment) as step:
        assert step.prolog().status == 0
        step.kill()
    environment = {"SLURM_JOB_ID": "701", "SLURM_JOB_UID": str(tenant.uid), "SLURMD_NODENAME": "n1"}
    subprocess.run([site.node_epilog], env=environment, check=True, timeout=30)
    assert site.leftovers() == []
    assert not (site.state_dir / "store-0").exists()  # root's own store was never asked


def test_run_directory_that_a_stranger_made_first(site, tenant, other_tenant):
    stolen = site.user_dir(tenant.uid)
    stolen.mkdir(mode=0o777)
    os.chown(stolen, other_tenant.uid, other_tenant.uid)
    site.mark(701)
    with site.step(701, uid=tenant.uid, env=tenant.environment) as step:
        prolog = step.prolog()
        assert prolog.status == 1
        assert f"not a directory of user {tenant.uid}: {stolen}" in prolog.said
    assert list(stolen.iterdir()) == []
