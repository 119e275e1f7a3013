"""Tells what is being built, how far the build is, and how many seconds it has taken."""

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

HEARTBEAT_SECONDS = 20.0


class Progress:
    """Numbers the steps of a build and prints a line when one starts, lasts, and ends."""

    def __init__(self, total: int) -> None:
        self.total = total
        self.current = 0
        self.began = time.monotonic()
        self.seen: set[str] = set()

    def say(self, text: str) -> None:
        """Print one line about the current step."""
        print(f"[{self.current}/{self.total}] {text}", file=sys.stderr, flush=True)

    def skip(self, title: str) -> None:
        """Count a step that has nothing to do, once however often it is asked for."""
        if title not in self.seen:
            self._count(title)
            self.say(f"{title}: already there")

    @contextmanager
    def step(self, title: str) -> Iterator[None]:
        """Count a step, report that it lives while it runs, and how long it took."""
        self._count(title)
        began = time.monotonic()
        ended = threading.Event()
        self.say(f"{title} ...")
        watcher = threading.Thread(target=self._report, args=(title, began, ended), daemon=True)
        watcher.start()
        try:
            yield
        finally:
            ended.set()
            watcher.join()
        self.say(f"{title}: {time.monotonic() - began:.0f} s")

    def _count(self, title: str) -> None:
        self.seen.add(title)
        self.current += 1
        self.total = max(self.total, self.current)

    def _report(self, title: str, began: float, ended: threading.Event) -> None:
        while not ended.wait(HEARTBEAT_SECONDS):
            now = time.monotonic()
            self.say(f"{title}: running for {now - began:.0f} s ({now - self.began:.0f} s in all)")
