"""Fixtures of the unit layer; no test starts a program unless it asks for the fixture `real_programs`."""

import subprocess

import pytest


class ProgramStarted(BaseException):
    """A unit test started a program; not an Exception, so that no code under test swallows it."""


@pytest.fixture
def real_programs() -> None:
    """Let a test start programs."""


@pytest.fixture(autouse=True)
def no_programs(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make starting a program an error that nothing catches."""
    if "real_programs" in request.fixturenames:
        return

    def refuse(command: object, *_args: object, **_kwargs: object) -> None:
        raise ProgramStarted(f"a unit test started {command}")

    monkeypatch.setattr(subprocess, "Popen", refuse)
