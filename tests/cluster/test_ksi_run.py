"""`ksi run` with a real cluster: without Slurm, in a job that has no cluster, in one that has."""

import contextlib
import re
import signal

import pytest
from testbed import processes

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(240)]

SCRIPT = """#!/bin/bash
kubectl get nodes -o name && echo "context=$K8S_CLUSTER_NAME port=$K8S_PORT arguments=$*"
exit 9
"""
NAME = re.compile(r"ksi-(?:local|\d+)-[0-9a-f]{5}")


@pytest.fixture
def script(site):
    path = site.jobs.work_dir / "by-hand.sh"
    path.write_text(SCRIPT)
    path.chmod(0o755)
    return path


def remember(site, text):
    """Have the clusters that a text names counted with those of this site's jobs."""
    site.local_clusters |= set(NAME.findall(text))


@contextlib.contextmanager
def started(site, script):
    """`ksi run` of a script that has printed its first line; killed in the end if it still runs."""
    with site.jobs.start(*site.ksi.ksi_argv("run", str(script))) as child:
        try:
            first = child.stdout.readline()
            assert first == "there\n", child.stderr.read()
            yield child
        finally:
            child.kill()


def test_without_slurm(site, script):
    result = site.jobs.command(*site.ksi.ksi_argv("run", str(script), "a", "b"), timeout=200)
    remember(site, result.err)
    assert result.status == 9, result
    assert "arguments=a b" in result.out and "context=kind-ksi-local-" in result.out, result
    assert "is deleted" in result.err, result


def test_interrupted_while_the_script_runs(site, script):
    script.write_text("#!/bin/bash\necho there; exec sleep 300\n")
    with started(site, script) as child:
        child.send_signal(signal.SIGTERM)
        _, said = child.communicate(timeout=60)
    remember(site, said)
    assert child.returncode == 128 + signal.SIGTERM
    assert "is deleted" in said, said


def test_killed_and_cleaned_by_gc(site, script):
    script.write_text("#!/bin/bash\necho there; exec sleep 300\n")
    with started(site, script) as child:
        records = list(site.ksi.registry.glob("**/*ksi-local-*.json"))
        remember(site, str(records))
        child.kill()
    processes.kill(processes.with_variable("K8S_CLUSTER_NAME", f"kind-{records[0].stem.partition('~')[2]}"))
    node = site.jobs.command("hostname", "-s").out.strip()
    status, said = site.gc(f"--node={node}", "--older-than=0")
    assert status == 0 and "deleted ksi-local-" in said, (said, records)


def test_inside_a_job_without_a_cluster(site, script):
    command = " ".join(site.ksi.ksi_argv("run", str(script)))
    job = site.jobs.submit(f"{command}; echo status=$?", constraint=None).wait_end(200)
    assert "status=9" in job.output and f"context=kind-ksi-{job.id}-" in job.output, job.output


def test_inside_a_job_with_a_cluster_uses_it(site, script):
    command = " ".join(site.ksi.ksi_argv("run", str(script)))
    job = site.jobs.submit(f"echo mine=$K8S_CLUSTER_NAME; {command}; kubectl get nodes -o name && echo last")
    job.wait_end(200)
    mine = job.output.partition("mine=")[2].split()[0]
    assert f"context={mine} " in job.output and job.output.splitlines()[-1] == "last", job.output


@pytest.mark.parametrize(("words", "status"), [([], 1), (["./no-such-script"], 2)])
def test_refused_before_anything_is_made(site, words, status):
    result = site.jobs.command(*site.ksi.ksi_argv("run", *words))
    assert result.status == status and "ksi: error: " in result.err, result
