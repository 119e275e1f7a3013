"""Decide in microseconds whether a task may concern ksi at all. Imports os, nothing else.

The sh gate in front has asked the same questions; here they are asked again, because only Python knows the
user for sure.
"""

import os

NO = "no"
YES = "yes"
REQUESTED = "requested"  # KSI=1: yes, where the site allows it
ASK = "ask"

# The hook's status for a k8s job that does not get its cluster, told apart from that of a broken interpreter.
NO_CLUSTER = 100

MARKER_DIR = "jobs"
ANSWER_DIR = "answers"


def decide(environ: dict[str, str], state_dir: str, user_dir: str) -> str:
    """Return NO, YES, REQUESTED or ASK (Slurm has to be asked) for the task with this environment."""
    job_id = environ.get("SLURM_JOB_ID") or environ.get("SLURM_JOBID") or ""
    # A wish that came along with another job's variables is not a wish of this one.
    wish = environ.get("KSI", "") if environ.get("KSI_JOB_ID", job_id) == job_id else ""
    if wish == "0" or not job_id[:1].isdecimal():
        return NO
    fallback = REQUESTED if wish == "1" else NO
    markers = os.path.join(state_dir, MARKER_DIR)
    if os.path.isfile(os.path.join(markers, job_id)):
        return YES
    # slurmd (22.05) may start a requeued job before its Prolog has left the marker; none tells nothing.
    restarted = environ.get("SLURM_RESTART_COUNT", "0") not in ("", "0")
    if os.path.isdir(markers) and not restarted:
        return fallback
    answer = os.path.join(user_dir, ANSWER_DIR, answer_name(environ))
    if os.path.exists(answer + ".yes"):
        return YES
    if wish == "1" or os.path.exists(answer + ".no"):
        return fallback
    return ASK


def answer_name(environ: dict[str, str]) -> str:
    """Return the name of a cached answer: the job and the start of this run, since the id repeats after a
    requeue.
    """
    job_id = environ.get("SLURM_JOB_ID") or environ.get("SLURM_JOBID") or ""
    return f"{job_id}-{environ.get('SLURM_JOB_START_TIME', '')}".replace("/", "_")
