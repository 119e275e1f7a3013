"""Where the fakes keep what exists, and the log of calls."""

import json
import os
import sys

NAME = os.path.basename(sys.argv[0])
STATE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(sys.argv[0]))), "state")
STORE = os.path.join(STATE, f"store-{os.getuid()}")


def save(what, name, fields):
    path = os.path.join(STORE, f"{what}-{name}.json")
    with open(f"{path}.{os.getpid()}", "w") as file:
        json.dump(fields, file)
    os.rename(f"{path}.{os.getpid()}", path)


def find(what, name):
    return read(os.path.join(STORE, f"{what}-{name}.json"), None)


def listing(what):
    names = sorted(n for n in os.listdir(STORE) if n.startswith(f"{what}-") and n.endswith(".json"))
    return [found for name in names if (found := read(os.path.join(STORE, name), None))]


def drop(what, name, complaint, ending=""):
    try:
        os.unlink(os.path.join(STORE, f"{what}-{name}.json"))
    except FileNotFoundError:
        if complaint:
            sys.stderr.write(f"Error: {complaint} {name}{ending}\n")
        return 1
    return 0


def read(path, default):
    try:
        with open(path) as file:
            return json.load(file)
    except FileNotFoundError:
        return default


def log(entry, name="calls.jsonl"):
    descriptor = os.open(os.path.join(STORE, name), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.write(descriptor, json.dumps(entry).encode() + b"\n")
    os.close(descriptor)
