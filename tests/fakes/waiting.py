"""Waiting for what other processes do."""

import time
from collections.abc import Callable


def wait_until(happened: Callable[[], object], timeout: float = 15) -> None:
    """Return as soon as it has happened; fails after the timeout in seconds."""
    end = time.monotonic() + timeout
    while not happened():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.01)
