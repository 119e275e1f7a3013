"""The named steps of a cluster's life: written to its log with the time; tests end a hook at any of them."""

import contextlib
import os
import signal
import time

from ksi_hooks.lifecycle.context import Context
from ksi_hooks.registry.record import Record

CREATION = ("claimed", "checked", "configured", "kind", "ready", "account", "published")
DELETION = ("marked", "ended", "removed", "settled", "network", "files", "forgotten")
# A test sets this in a hook's environment; whoever sets it ends only his own hook.
KILL_VARIABLE = "KSI_TEST_KILL_AT"


def reached(context: Context, record: Record, step: str) -> None:
    """Note that a step is done, with the seconds since the claim."""
    log = context.user_dir.log_file(record.cluster)
    with contextlib.suppress(OSError):
        descriptor = os.open(
            log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600
        )
        with os.fdopen(descriptor, "w") as file:
            file.write(f"# {max(0.0, time.time() - record.created):.1f} s: {step}\n")
    if context.environ.get(KILL_VARIABLE) == step:
        os.kill(os.getpid(), signal.SIGKILL)
