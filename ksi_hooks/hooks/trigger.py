"""Asking Slurm once per job and node whether the job wants a cluster, and remembering the answer."""

import contextlib
import os
import time
from collections.abc import Mapping
from pathlib import Path

from ksi_hooks import config, files, gate
from ksi_hooks.config import Settings
from ksi_hooks.environment import base_environment
from ksi_hooks.errors import ConfigError, KsiError
from ksi_hooks.run import Tools
from ksi_hooks.slurm import job as jobs
from ksi_hooks.slurm import query
from ksi_hooks.slurm.query import Answer

UNKNOWN_SECONDS = 60.0  # how long a controller that did not answer is left alone
KEEP_SECONDS = 86400.0  # a controller that starts afresh gives the same ids again
POLL_SECONDS = 0.02


def settings_or_defaults(config_file: Path) -> Settings:
    """Return the site's settings; where they are broken, the defaults, so that a k8s job is told and others
    are not.
    """
    try:
        return config.load(config_file)
    except ConfigError:
        return Settings(registry_dir=Path("/nonexistent"))


def refusal(settings: Settings, environ: Mapping[str, str]) -> str:
    """Return why the site does not grant a cluster that was asked for by KSI=1; nothing when it does."""
    if not settings.allow_request:
        return f"this site wants #SBATCH --constraint={settings.feature} instead"
    if not _in_partition(settings, environ):
        return f"clusters are for the partitions {', '.join(settings.partitions)}"
    return ""


def wants_cluster(settings: Settings, environ: Mapping[str, str], user_dir: Path) -> bool:
    """Return Slurm's answer for the job of this task, asked by the first task only; unknown means no.

    The files are written by the user for himself: whoever forges one deceives only his own job.
    """
    try:
        answers = files.private_dir(user_dir) / gate.ANSWER_DIR
        answers.mkdir(mode=0o700, exist_ok=True)
    except (KsiError, OSError):
        # Nothing can be remembered: one task of a step asks, so that not thousands ask the controller.
        return environ.get("SLURM_LOCALID", "0") == "0" and _ask(settings, environ) is Answer.YES
    name = answers / gate.answer_name(dict(environ))
    if _is_recent(answers / "unknown", UNKNOWN_SECONDS):
        return False
    asking = name.with_name(name.name + ".asking")
    try:
        files.create(asking, b"", mode=0o600)
    except FileExistsError:
        return _wait_for_answer(name, asking, settings.query_timeout + 2)
    try:
        answer = _remembered(name)  # another task may have asked between the gate's look and here
        if answer is None:
            answer = _ask(settings, environ)
            _remember(answers, name, answer)
    finally:
        asking.unlink(missing_ok=True)
    return answer is Answer.YES


def _ask(settings: Settings, environ: Mapping[str, str]) -> Answer:
    number = jobs.job_id(environ)
    if number is None:
        return Answer.NO
    tools = Tools(settings.tools_path, base_environment(settings.tools_path, os.getuid(), environ))
    answer = query.asks_for_cluster(
        tools,
        job_id=number,
        node=jobs.node_name(environ),
        feature=settings.feature,
        timeout=settings.query_timeout,
    )
    return Answer.NO if answer is Answer.YES and not _in_partition(settings, environ) else answer


def _in_partition(settings: Settings, environ: Mapping[str, str]) -> bool:
    return not settings.partitions or environ.get("SLURM_JOB_PARTITION", "") in settings.partitions


def _remembered(name: Path) -> Answer | None:
    for answer in (Answer.YES, Answer.NO):
        if name.with_name(f"{name.name}.{answer.value}").exists():
            return answer
    if _is_recent(name.with_name("unknown"), UNKNOWN_SECONDS):
        return Answer.UNKNOWN
    return None


def _remember(answers: Path, name: Path, answer: Answer) -> None:
    if answer is Answer.UNKNOWN:
        (answers / "unknown").touch(mode=0o600)
        return
    files.replace(name.with_name(f"{name.name}.{answer.value}"), b"", mode=0o600)
    for old in answers.iterdir():
        if not _is_recent(old, KEEP_SECONDS):
            old.unlink(missing_ok=True)


def _wait_for_answer(name: Path, asking: Path, timeout: float) -> bool:
    end = time.monotonic() + timeout
    while time.monotonic() < end:
        if name.with_name(name.name + ".yes").exists():
            return True
        if not asking.exists():
            return name.with_name(name.name + ".yes").exists()
        time.sleep(POLL_SECONDS)
    if not _is_recent(asking, timeout):  # whoever asked was killed meanwhile
        asking.unlink(missing_ok=True)
    return False


def _is_recent(path: Path, seconds: float) -> bool:
    with contextlib.suppress(OSError):
        return path.lstat().st_mtime > time.time() - seconds
    return False
