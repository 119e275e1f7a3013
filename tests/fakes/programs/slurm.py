"""Slurm: squeue and sinfo, from what the test says about jobs and nodes."""

import os
import sys

from programs.state import STATE, read


def squeue(arguments, play):
    """`-h -j IDS -t all -o FORMAT` from state/jobs.json: rows with A, N, f, T, S and `leader`."""
    if len(arguments) != 7 or [*arguments[:2], *arguments[3:6]] != ["-h", "-j", "-t", "all", "-o"]:
        return None
    ids = arguments[2].split(",")
    rows = [
        r
        for r in read(os.path.join(STATE, "jobs.json"), [])
        if {str(r["A"]), str(r.get("leader"))} & set(ids)
    ]
    if not rows and len(ids) == 1:
        sys.stderr.write("slurm_load_jobs error: Invalid job id specified\n")
        return 1
    for row in rows:
        line = arguments[6]
        for key in "ANfTS":
            line = line.replace(f"%{key}", str(row.get(key, "")))
        print(line)
    return 0


def sinfo(arguments, play):
    if len(arguments) == 5 and arguments[0:2] == ["-h", "-n"] and arguments[3:] == ["-o", "%f"]:
        print(read(os.path.join(STATE, "nodes.json"), {}).get(arguments[2], "(null)"))
        return 0
    return None
