"""Whose job it is: the marker of the root pair, the question to Slurm, the user's own request."""

import json
import subprocess

import pytest

K8S = {"A": 301, "N": "n1", "f": "gpu&k8s"}
NO = {"A": 301, "N": "n1", "f": "gpu&nok8s"}


def is_ours(prolog):
    assert prolog.dropped == []
    return prolog.status == 0 and "K8S_CLUSTER_API" in prolog.exports


def test_kb_10_eight_tasks_ask_slurm_once(site):
    site.slurm_says(K8S)
    site.script("squeue", delay=0.3)
    with site.step(301, "0", tasks=8) as step:
        prologs = step.prologs()
    assert all(map(is_ours, prologs)), prologs
    assert len(site.calls("squeue")) == 1
    assert len(site.calls("kind create")) == 1


def test_no_is_asked_once_and_answered_by_the_gate_afterwards(site):
    site.slurm_says(NO)
    with site.step(301, "0", tasks=8) as step:
        assert [(p.status, p.output) for p in step.prologs()] == [(0, "")] * 8
    site.configure(python="/nonexistent")
    with site.step(301, "1", start_time=int(step.environment["SLURM_JOB_START_TIME"])) as second:
        assert (second.prolog().status, second.finish().output) == (0, "")
    assert len(site.calls("squeue")) == 1


def test_answer_belongs_to_one_run_of_the_job(site):
    site.slurm_says(NO)
    with site.step(301, start_time=1_700_000_000) as step:
        step.prolog()
    site.slurm_says(K8S)
    with site.step(301, start_time=1_700_000_100) as step:
        assert is_ours(step.prolog())


@pytest.mark.parametrize(
    "fault",
    [
        {"delay": 60},
        {"status": 1, "stderr": "slurm_load_jobs error: Unable to contact slurm controller"},
        {"status": 0, "stdout": "slurm_load_jobs error: Socket timed out\n"},
        {"status": 0},
        {"status": 139},
    ],
)
def test_kb_10_unknown_is_not_ours_not_shown_and_asked_only_once(site, fault):
    site.configure(query_timeout=2 if "delay" in fault else 20)
    site.slurm_says(K8S)
    site.script("squeue", **fault)
    with site.step(301, "0", tasks=4) as step:
        assert [(p.status, p.output) for p in step.prologs()] == [(0, "")] * 4
    with site.step(302) as step:
        assert (step.prolog().status, step.finish().output) == (0, "")
    assert len(site.calls("squeue")) == 1


def test_kb_09_alternatives_are_decided_by_the_node(site):
    site.slurm_says({"A": 301, "N": "n1", "f": "gpu|k8s"}, nodes={"n1": "gpu"})
    with site.step(301) as step:
        assert (step.prolog().status, step.finish().output) == (0, "")
    site.slurm_says({"A": 302, "N": "n1", "f": "gpu|k8s"}, nodes={"n1": "gpu,k8s"})
    with site.step(302) as step:
        assert is_ours(step.prolog())


def test_kb_09_expression_is_not_evaluated(site):
    site.slurm_says({"A": 301, "N": "n1", "f": f"$(touch {site.base}/pwn)&k8s"})
    with site.step(301) as step:
        assert is_ours(step.prolog())
    assert not (site.base / "pwn").exists()


def test_component_of_a_heterogeneous_job(site):
    """Tasks of all components see the leader's id; the one on this node decides."""
    leader = {"A": 301, "N": "n9", "f": "(null)", "leader": 301}
    component = {"A": 302, "N": "n1", "f": "k8s", "leader": 301}
    site.slurm_says(leader, component)
    with site.step(301) as step:
        assert is_ours(step.prolog())


def test_partition_outside_of_the_settings(site):
    site.configure(partitions=["k8s-part"])
    site.slurm_says(K8S)
    with site.step(301) as step:
        assert (step.prolog().status, step.finish().output) == (0, "")


def test_own_feature_name(site):
    site.configure(feature="kube")
    site.slurm_says({"A": 301, "N": "n1", "f": "kube"}, {"A": 302, "N": "n1", "f": "k8s"})
    with site.step(301) as step:
        assert is_ours(step.prolog())
    with site.step(302) as step:
        assert step.prolog().output == ""


def test_root_pair_without_marker_means_no_and_slurm_is_not_asked(site):
    site.slurm_says(K8S)
    site.mark(999)
    with site.step(301) as step:
        assert (step.prolog().status, step.finish().output) == (0, "")
    assert site.calls() == []


@pytest.mark.parametrize("root_pair", [True, False])
def test_ksi_1_asks_for_a_cluster(site, root_pair):
    site.slurm_says(NO)
    if root_pair:
        site.mark(999)
    with site.step(301, env={"KSI": "1"}) as step:
        assert is_ours(step.prolog())
    assert site.calls("squeue") == []


@pytest.mark.parametrize("root_pair", [True, False])
def test_ksi_1_where_the_site_forbids_it(site, root_pair):
    site.configure(allow_request=False)
    site.slurm_says(NO)
    if root_pair:
        site.mark(999)
    with site.step(301, "0", tasks=2, env={"KSI": "1"}) as step:
        first, second = step.prologs()
    assert (first.status, first.exports, second.output) == (0, {}, "")
    assert "KSI=1 is ignored" in first.said
    assert site.calls("kind") == []


def run_root_hook(site, hook, **environ):
    environment = {"SLURMD_NODENAME": "n1", "SLURM_JOB_UID": "0", **environ}
    return subprocess.run([hook], env=environment, capture_output=True, text=True, check=False, timeout=30)


def test_node_prolog_marks_k8s_jobs_only(site):
    for number, constraint in enumerate(("k8s", "nok8s", "", "gpu&k8s", "k8s.v2", "!k8s")):
        done = run_root_hook(
            site, site.node_prolog, SLURM_JOB_ID=str(301 + number), SLURM_JOB_CONSTRAINTS=constraint
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    markers = site.node_state_dir / "jobs"
    assert sorted(f.name for f in markers.iterdir()) == ["301", "304"]
    marker = json.loads((markers / "301").read_text())
    assert (marker["job_id"], marker["uid"], marker["version"]) == ("301", "0", 1)
    assert (markers / "301").stat().st_mode & 0o777 == 0o644


def test_node_prolog_of_another_job_makes_a_missing_marker_mean_no(site):
    site.slurm_says(K8S)
    run_root_hook(site, site.node_prolog, SLURM_JOB_ID="999")
    with site.step(301) as step:
        assert (step.prolog().status, step.finish().output) == (0, "")


def test_node_prolog_marks_a_component_under_the_leaders_id(site):
    run_root_hook(
        site, site.node_prolog, SLURM_JOB_ID="302", SLURM_HET_JOB_ID="301", SLURM_JOB_CONSTRAINTS="k8s"
    )
    with site.step(301) as step:
        assert is_ours(step.prolog())


def test_node_prolog_with_broken_settings_marks_so_that_the_user_is_told(site):
    site.settings_file.write_text("feature: [")
    done = run_root_hook(site, site.node_prolog, SLURM_JOB_ID="301", SLURM_JOB_CONSTRAINTS="k8s")
    assert done.returncode == 0
    with site.step(301) as step:
        prolog = step.prolog()
    assert prolog.status == 1
    assert f"{site.settings_file}: line 1" in prolog.said


@pytest.mark.parametrize("hook", ["node_prolog", "node_epilog"])
def test_root_hooks_never_fail(site, hook):
    site.mark(301)
    site.configure(python="/nonexistent")
    (site.node_state_dir / "jobs" / "301").chmod(0)
    done = run_root_hook(site, getattr(site, hook), SLURM_JOB_ID="301", SLURM_JOB_CONSTRAINTS="k8s")
    assert (done.returncode, done.stdout) == (0, "")


def test_node_epilog_deletes_what_the_jobs_own_hooks_left(site):
    site.mark(301)
    with site.step(301) as step:
        assert is_ours(step.prolog())
        step.kill()
    done = run_root_hook(site, site.node_epilog, SLURM_JOB_ID="301")
    assert (done.returncode, done.stdout) == (0, "")
    assert site.leftovers() == []
    assert not (site.node_state_dir / "jobs" / "301").exists()


def test_job_submitted_from_inside_a_k8s_job_gets_a_cluster_of_its_own(site):
    site.slurm_says(K8S, {"A": 302, "N": "n1", "f": "k8s"}, {"A": 303, "N": "n1", "f": "(null)"})
    with site.step(301) as outer:
        first = outer.prolog()
        assert first.exports["KSI_JOB_ID"] == "301"
        with site.step(302, env=first.exports) as inner:
            second = inner.prolog()
            assert is_ours(second), second
            changed = ("K8S_PORT", "KUBECONFIG", "K8S_CLUSTER_NAME", "K8S_CLUSTER_API", "KSI_JOB_ID")
            assert all(first.exports[name] != second.exports[name] for name in changed)
            inner.end()
        with site.step(303, env=first.exports) as plain:
            assert plain.prolog().output == ""
            plain.end()
        assert [r.job_id for r in site.records()] == [301]
        outer.end()
    assert site.leftovers() == []


def test_wish_that_came_along_from_another_job_is_no_wish_of_this_one(site):
    site.slurm_says({"A": 302, "N": "n1", "f": "(null)"})
    with site.step(302, env={"KSI": "1", "KSI_JOB_ID": "301", "K8S_PORT": "80"}) as step:
        prolog = step.prolog()
    assert (prolog.status, prolog.output) == (0, "")


def test_port_that_came_along_from_another_job_is_no_wish_of_this_one(site):
    site.mark(302)
    with site.step(302, env={"KSI_JOB_ID": "301", "K8S_PORT": "80", "KUBECONFIG": "/nonexistent"}) as step:
        assert is_ours(step.prolog())
