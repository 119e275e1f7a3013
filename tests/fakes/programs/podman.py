"""Podman: containers and volumes are files, removing a container ends its process."""

import contextlib
import json
import os
import sys

from programs.state import STATE, drop, find, listing, read

LABEL = "io.x-k8s.kind.cluster"


def podman(arguments, play):  # noqa: PLR0911, PLR0912 - a table of calls
    if arguments == ["--version"]:
        print("podman version 4.3.1")
        return 0
    if arguments[:2] == ["image", "exists"] and len(arguments) == 3:
        return 0 if arguments[2] in read(os.path.join(STATE, "images.json"), []) else 1
    if arguments == ["info", "--format", "json"]:
        print(json.dumps(read(os.path.join(STATE, "info.json"), {})))
        return 0
    if arguments == ["ps", "--all", "--filter", f"label={LABEL}", "--format", "json"]:
        rows = [ps_row(c) for c in listing("container") if LABEL in c["Labels"]]
        print(json.dumps(rows, indent=2))
        return 0
    if arguments == ["volume", "ls", "--format", "json"]:
        print(json.dumps(listing("volume"), indent=5))
        return 0
    if arguments[:5] == ["rm", "--force", "--time", "0", "--volumes"] and len(arguments) > 5:
        return podman_rm(arguments[5:])
    if arguments[:3] == ["volume", "rm", "--force"] and len(arguments) > 3:
        for name in arguments[3:]:
            drop("volume", name, "")
        return 0  # with --force a volume that is not there is no error
    if arguments[:2] == ["network", "rm"] and len(arguments) == 3:
        if listing("container"):
            sys.stderr.write(f"Error: {arguments[2]} has associated containers with it\n")
            return 2
        return drop("network", arguments[2], "unable to find network with name or ID", ": network not found")
    if arguments[:3] == ["load", "--quiet", "--input"] and len(arguments) == 4:
        return 0 if os.path.exists(arguments[3]) else 125
    return None


def ps_row(container):
    recorded = read(os.path.join(STATE, "podman-ps.json"), [{}])[0]
    return recorded | {key: container[key] for key in ("Names", "Labels", "Created", "State", "Id", "Image")}


def podman_rm(names):
    import signal

    for name in names:
        container = find("container", name)
        if container and container["helper"]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(container["helper"], signal.SIGKILL)
        drop("container", name, "")
        print(name)
    return 0  # with --force a container that is not there is no error
