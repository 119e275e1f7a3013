"""The slurmstepd of one step, as far as its hooks can tell.

Read from standard input by a Python whose whole command line is `slurmstepd: [7.batch]` (see steps.py). Tasks
are forked from it; each runs the TaskProlog as its child, reads its output to the end without a time limit,
kills what is left of its process group and becomes the user's program. TaskEpilogs are children of the
daemon, one after another.
"""
# ruff: noqa: PTH104, PTH106, PTH123

import json
import os
import signal
import time

SETUP = json.loads(os.environ["STEPD_SETUP"])
ROOM = SETUP["room"]


def main():
    os.environ.clear()
    name_process("slurmstepd")
    tasks = {}
    with os.fdopen(SETUP["commands"]) as commands:
        for line in commands:
            verb, number, environment = json.loads(line)
            if verb == "start":
                tasks[number] = os.fork()
                if tasks[number] == 0:
                    be_task(number, environment)
                note(f"task-{number}", identity(tasks[number]))
            else:
                end_task(tasks.pop(number), number, environment)
    for pid in tasks.values():
        stop(pid)


def be_task(number, environment):
    """The waiting task: runs the prolog, then is the user's program until the step ends it."""
    os.close(SETUP["commands"])
    os.setsid()
    become_user()
    result = run(SETUP["prolog"], environment, f"hook-{number}", keep=True)
    note(f"prolog-{number}", result)
    if result["status"]:
        os._exit(result["status"] if result["status"] > 0 else 1)
    os.execv("/bin/sleep", ["sleep", "3600"])


def end_task(pid, number, environment):
    stop(pid)
    note(f"epilog-{number}", run(SETUP["epilog"], environment, f"epilog-hook-{number}", keep=False))


def stop(pid):
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def run(program, environment, label, keep):
    """Run a hook as slurmstepd does; a negative status is a signal."""
    started = time.monotonic()
    reader, writer = os.pipe() if keep else (-1, os.open(os.devnull, os.O_WRONLY))
    pid = os.fork()
    if pid == 0:
        os.setpgid(0, 0)
        become_user()
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(writer, 1)
        os.dup2(writer, 2)
        os.closerange(3, 256)
        os.umask(SETUP["umask"])
        signal.pthread_sigmask(signal.SIG_SETMASK, [])
        try:
            os.chdir(SETUP["cwd"])
        except OSError:
            os.chdir("/tmp")
        if SETUP["cwd_vanishes"]:
            os.rmdir(SETUP["cwd"])
        try:
            os.execve(program, [program], environment)
        finally:
            os._exit(127)
    note(label, identity(pid))
    os.close(writer)
    output = read_all(reader) if keep else b""
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    kill_group(pid, keep)
    seconds = time.monotonic() - started
    return {"status": status, "output": output.decode("utf-8", "surrogateescape"), "seconds": seconds}


def read_all(reader):
    data = b""
    while piece := os.read(reader, 65536):
        data += piece
    os.close(reader)
    return data


def kill_group(group, gently):
    try:
        if gently:
            os.killpg(group, signal.SIGTERM)
            time.sleep(0.01)
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        pass


def become_user():
    uid = SETUP["uid"]
    if uid is not None and os.getuid() != uid:
        os.setgroups([])
        os.setgid(uid)
        os.setuid(uid)


def name_process(name):
    with open("/proc/self/comm", "w") as comm:
        comm.write(name)


def identity(pid):
    """Return number and start time, so that nobody takes a later process for this one."""
    with open(f"/proc/{pid}/stat") as stat:
        return {"pid": pid, "start": int(stat.read().rpartition(")")[2].split()[19])}


def note(name, value):
    """Leave a result for the test: whole or not at all."""
    path = f"{ROOM}/{name}"
    with open(f"{path}.new", "w", errors="surrogateescape") as file:
        json.dump(value, file)
    os.rename(f"{path}.new", path)


main()
