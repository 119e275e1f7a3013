"""Systemd: a scope is a mark in the environment."""

import os
import sys


def systemd_run(arguments, play):
    if "--" not in arguments or arguments[:2] != ["--user", "--scope"]:
        return
    unit = next(a for a in arguments if a.startswith("--unit="))
    command = arguments[arguments.index("--") + 1 :]
    os.environ["FAKE_SCOPE"] = unit.removeprefix("--unit=").removesuffix(".scope") + ".scope"
    os.execv(command[0], command)


def systemctl(arguments, play):
    import signal

    if arguments[:3] != ["--user", "kill", "--signal=SIGKILL"] or len(arguments) != 4:
        return None
    wanted, killed = f"FAKE_SCOPE={arguments[3]}".encode(), 0
    for entry in os.listdir("/proc"):
        try:
            with open(f"/proc/{entry}/environ", "rb") as file:
                inside = entry.isdecimal() and wanted in file.read().split(b"\0")
            if inside:
                os.kill(int(entry), signal.SIGKILL)
                killed += 1
        except OSError:
            continue
    if not killed:
        sys.stderr.write(f"Failed to kill unit {arguments[3]}: Unit {arguments[3]} not loaded.\n")
    return 0 if killed else 1
