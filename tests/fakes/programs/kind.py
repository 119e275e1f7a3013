"""Kind: containers, volumes and networks are files, a cluster is a process that holds its ports."""

import json
import os
import sys
import time

from programs.conmon import conmon, listen
from programs.podman import LABEL
from programs.state import STATE, find, read, save

KEY = "RkFLRSBLRVkgREFUQQ=="


def kind(arguments, play):
    if arguments == ["version", "--quiet"]:
        print("0.33.0")
        return 0
    if arguments[:2] == ["create", "cluster"]:
        return kind_create(options(arguments[2:]), play)
    if arguments[:2] == ["load", "docker-image"] and arguments[3:4] == ["--name"]:
        known = arguments[2] in read(os.path.join(STATE, "images.json"), [])
        return 0 if known and find("container", f"{arguments[4]}-control-plane") else 1
    return None


def kind_create(wanted, play):
    if set(wanted) - {"name", "config", "kubeconfig", "retain"} or "kubeconfig" not in wanted:
        return None
    cluster, node = wanted["name"], wanted["name"] + "-control-plane"
    with open(wanted["config"]) as file:
        config = file.read()
    sys.stderr.write(f'Creating cluster "{cluster}" ...\n')
    if find("container", node):
        return fail(f'node(s) already exist for a cluster with the name "{cluster}"')
    image = value(config, "image") or "docker.io/kindest/node:v1.36.0"
    if value(config, "image") and image not in read(os.path.join(STATE, "images.json"), []):
        return fail(f'failed to pull image "{image}": dial tcp: lookup docker.io: no such host')
    save("network", "kind", {"name": "kind", "driver": "bridge"})
    volume = os.urandom(32).hex()
    recorded = read(os.path.join(STATE, "podman-volume-ls.json"), [{}])[0]
    fields = {"Name": volume, "Mountpoint": f"/var/lib/containers/storage/volumes/{volume}/_data"}
    save("volume", volume, recorded | fields | {"Labels": {node: "true"}})
    play.at("volume")
    container = {
        "Names": [node],
        "Labels": {LABEL: cluster, "io.x-k8s.kind.role": "control-plane"},
        "Created": int(time.time()),
        "State": "created",
        "Id": os.urandom(32).hex(),
        "Image": image,
        "volume": volume,
        "helper": 0,
    }
    save("container", node, container)
    play.at("container")
    try:
        api, port = listen(value(config, "apiServerAddress"), 0), None
        port = listen(value(config, "listenAddress"), int(value(config, "hostPort")))
    except OSError as error:
        return fail(
            f'command "podman run" failed: rootlessport listen tcp :{value(config, "hostPort")}: '
            f"bind: {error.strerror.lower()}",
            126,
        )
    server = f"https://{value(config, 'apiServerAddress')}:{api.getsockname()[1]}"
    container |= {"State": "running", "helper": conmon(api, port)}
    save("container", node, container)
    write_kubeconfig(wanted["kubeconfig"], cluster, server)
    play.at("end")
    return 0


def fail(text, status=1):
    sys.stderr.write(f"ERROR: failed to create cluster: {text}\n")
    return status


def write_kubeconfig(path, cluster, server):
    import base64

    with open(os.path.join(STATE, "ca.pem"), "rb") as file:
        ca = base64.b64encode(file.read()).decode()
    context = f"kind-{cluster}"
    text = json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": context,
            "preferences": {},
            "clusters": [{"name": context, "cluster": {"server": server, "certificate-authority-data": ca}}],
            "contexts": [{"name": context, "context": {"cluster": context, "user": context}}],
            "users": [{"name": context, "user": {"client-certificate-data": "", "client-key-data": KEY}}],
        }
    )
    with open(path, "w") as file:  # JSON is YAML
        file.write(text)


def options(arguments):
    found, rest = {}, list(arguments)
    while rest:
        name = rest.pop(0).removeprefix("--")
        found[name] = rest.pop(0) if rest and not rest[0].startswith("--") else True
    return found


def value(config, key):
    """Return the first value of a key in the kind configuration, whose values are JSON."""
    for line in config.splitlines():
        name, colon, text = line.strip().removeprefix("- ").partition(": ")
        if colon and name == key:
            return str(json.loads(text))
    return None
