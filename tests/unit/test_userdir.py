"""A user's directory on a node: who holds what, why there is no cluster, what is old."""

import os
import time

import pytest

from ksi_hooks import config, proc
from ksi_hooks.errors import KsiError
from ksi_hooks.lifecycle.userdir import DAY, UserDir
from ksi_hooks.proc import Process
from ksi_hooks.slurm.job import Step

ME = proc.find(os.getpid())
DEAD = Process(2**22, 1)


@pytest.fixture
def user_dir(tmp_path):
    (tmp_path / "run").mkdir()
    settings = config.parse({"registry_dir": "/x", "run_dir": f"{tmp_path}/run/%u"}, "test")
    return UserDir.make(settings, os.getuid())


def step(stepd=ME, task=DEAD, owns=False):
    return Step(stepd, owns, task)


def test_holders_are_those_with_a_living_slurmstepd(user_dir):
    user_dir.add_holder(7, step(owns=True))
    user_dir.add_holder(7, step(stepd=DEAD))
    user_dir.add_holder(7, step(stepd=Process(ME.pid, ME.start + 1)))
    user_dir.add_holder(8, step())
    (holder,) = user_dir.holders(7)
    assert (holder.stepd, holder.owns_job) == (ME, True)
    assert len(list((user_dir.path / "jobs" / "7").iterdir())) == 1


@pytest.mark.parametrize("name", ["holder-", "holder-x-y-z-a-b", "holder-1-2-3", "holder-1-2-3-4-own-more"])
def test_marks_that_cannot_be_read_do_not_count(user_dir, name):
    user_dir.add_holder(7, step())
    (user_dir.path / "jobs" / "7" / name).touch()
    assert len(user_dir.holders(7)) == 1


def test_step_that_has_ended_is_dropped_with_all_its_tasks(user_dir):
    other = Process(os.getppid(), proc.find(os.getppid()).start)
    user_dir.add_holder(7, step(task=Process(1, 1)))
    user_dir.add_holder(7, step(task=Process(2, 2)))
    user_dir.add_holder(7, step(stepd=other))
    user_dir.drop_holder(7, step())
    assert [h.stepd for h in user_dir.holders(7)] == [other]


def test_failure_is_known_to_the_tasks_of_the_same_step(user_dir):
    user_dir.note_failure(7, step(), KsiError("no\nway", hint="try"))
    found = user_dir.failure(7, step(task=Process(9, 9)))
    assert (str(found), found.hint) == ("no\nway", "try")
    assert user_dir.failure(7, step(stepd=DEAD)) is None
    assert user_dir.failure(8, step()) is None
    user_dir.forget_job(7)
    assert user_dir.failure(7, step()) is None
    user_dir.forget_job(7)


def test_failure_of_the_step_that_owns_the_job_holds_for_all_while_it_lives(user_dir):
    other = Process(os.getppid(), proc.find(os.getppid()).start)
    user_dir.note_failure(7, step(owns=True), KsiError("no way"))
    assert str(user_dir.failure(7, step(stepd=other))) == "no way"
    user_dir.forget_job(7)
    user_dir.note_failure(7, step(stepd=DEAD, owns=True), KsiError("no way"))
    assert user_dir.failure(7, step(stepd=other)) is None


@pytest.mark.parametrize("text", ["", "{", "[1]", "[1, 2, 3]"])
def test_failure_that_cannot_be_read(user_dir, text):
    user_dir.note_failure(7, step(), KsiError("x"))
    next((user_dir.path / "jobs" / "7").glob("failed-*")).write_text(text)
    assert user_dir.failure(7, step()) is None


def test_old_things_go_and_what_is_in_use_stays(user_dir):
    old, new = user_dir.log_file("ksi-1-00000"), user_dir.log_file("ksi-2-00000")
    for file in (old, new):
        file.touch()
    user_dir.add_holder(7, step())
    user_dir.add_holder(8, step(stepd=DEAD))
    long_ago = time.time() - 30 * DAY
    for path in (old, user_dir.path / "jobs" / "7", user_dir.path / "jobs" / "8"):
        os.utime(path, (long_ago, long_ago))
    user_dir.prune(keep_days=14)
    assert [p.name for p in (user_dir.path / "logs").iterdir()] == [new.name]
    assert [p.name for p in (user_dir.path / "jobs").iterdir()] == ["7"]
