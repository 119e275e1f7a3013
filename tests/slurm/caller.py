"""Tells a fake program which part of ksi_hooks has called it; runs inside the fakes."""

import re
from pathlib import Path

PART = re.compile(r"ksi_hooks[./](?:hooks/(task_prolog|task_epilog|node_epilog)|(gc)[./]main)")
# Where there is a systemd, the process that acts as a tenant is no child of who has asked for it.
TENANT = re.compile(r"gc/tenant\.py \S+ delete (\d+)")


def of(pid, epilog_seconds):
    """The nearest ancestor that is a part of ksi_hooks, as `PID NAME`; empty without one."""
    while pid > 1:
        try:
            line = Path(f"/proc/{pid}/cmdline").read_text(errors="replace").replace("\0", " ")
            parent = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            return ""
        if found := PART.search(line):
            return f"{pid} {found.group(1) or found.group(2)}"
        if (found := TENANT.search(line)) and Path("/run/systemd/system").is_dir():
            return f"{pid} {'node_epilog' if found.group(1) == epilog_seconds else 'gc'}"
        pid = parent
    return ""
