"""One program behind the names kind, podman, kubectl, squeue, sinfo, scontrol, systemd-run and systemctl.

Stateful through the directory `state` beside its own; logs every call; fails, hangs or is slow as state/script.json says;
refuses (97) what it does not know. Runs without site packages (`python -IS`), so that a call costs little.
"""

import json
import os
import sys
import time

NAME = os.path.basename(sys.argv[0])
STATE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(sys.argv[0]))), "state")
STORE = os.path.join(STATE, f"store-{os.getuid()}")
REFUSED = 97
LABEL = "io.x-k8s.kind.cluster"


def main():
    arguments = sys.argv[1:]
    os.umask(0o022)
    os.makedirs(STORE, exist_ok=True)
    log({"program": NAME, "argv": arguments, "env": dict(os.environ), "time": time.time()})
    play = Play([NAME, *(a for a in arguments if not a.startswith("-"))])
    play.at("start")
    handler = HANDLERS.get(NAME)
    status = handler(arguments, play) if handler else None
    if status is None:
        log({"refused": NAME, "argv": arguments}, "refused.jsonl")
        sys.stderr.write(f"fake {NAME}: unknown call: {arguments}\n")
        status = REFUSED
    sys.stdout.flush()
    sys.exit(status)


class Play:
    """The rules of the script that fit this call; a rule with `times` is used up by that many calls."""

    def __init__(self, words):
        self.rules = []
        for number, rule in enumerate(read(os.path.join(STATE, "script.json"), [])):
            wanted = rule["call"].split()
            rest = iter(words)
            if words[0] == wanted[0] and all(word in rest for word in wanted[1:]) and take(number, rule):
                self.rules.append(rule)

    def at(self, stage):
        """Do what the script wants at this stage of the call: write, wait, leave a child, end."""
        for rule in self.rules:
            if rule.get("at", "start") != stage:
                continue
            sys.stdout.write(rule.get("stdout", ""))
            sys.stderr.write(rule.get("stderr", ""))
            sys.stdout.flush()
            sys.stderr.flush()
            if "leaves" in rule and os.fork() == 0:
                os.setsid()
                os.execv("/bin/sleep", ["left-behind", str(rule["leaves"])])
            time.sleep(rule.get("delay", 0))
            if "status" in rule:
                os._exit(rule["status"])


def take(number, rule):
    for turn in range(rule.get("times", 0)):
        try:
            os.close(os.open(os.path.join(STORE, f"rule-{number}-{turn}"), os.O_CREAT | os.O_EXCL, 0o600))
        except FileExistsError:
            continue
        return True
    return "times" not in rule


# kind

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
    save("volume", volume, {
        "Name": volume, "Driver": "local", "Mountpoint": f"/var/lib/containers/storage/volumes/{volume}/_data",
        "CreatedAt": time.strftime("%Y-%m-%dT%H:%M:%S.000000000Z", time.gmtime()), "Labels": {f"{node}": "true"},
        "Scope": "local", "Options": {}, "UID": 0, "GID": 0, "Anonymous": False, "MountCount": 0, "NeedsCopyUp": True,
        "NeedsChown": True,
    })  # fmt: skip
    play.at("volume")
    container = {"Names": [node], "Labels": {LABEL: cluster, "io.x-k8s.kind.role": "control-plane"},
                 "Created": int(time.time()), "State": "created", "Id": os.urandom(32).hex(), "Image": image,
                 "volume": volume, "helper": 0}  # fmt: skip
    save("container", node, container)
    play.at("container")
    try:
        api, port = listen(value(config, "apiServerAddress"), 0), None
        port = listen(value(config, "listenAddress"), int(value(config, "hostPort")))
    except OSError as error:
        return fail(f"command \"podman run\" failed: rootlessport listen tcp :{value(config, 'hostPort')}: "
                    f"bind: {error.strerror.lower()}", 126)  # fmt: skip
    server = f"https://{value(config, 'apiServerAddress')}:{api.getsockname()[1]}"
    container |= {"State": "running", "helper": conmon(api, port)}
    save("container", node, container)
    write_kubeconfig(wanted["kubeconfig"], cluster, server)
    play.at("end")
    return 0


def fail(text, status=1):
    sys.stderr.write(f"ERROR: failed to create cluster: {text}\n")
    return status


def listen(address, port):
    import socket

    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((address, port))
    listener.listen(16)
    return listener


def conmon(api, port):
    """Leave the process that holds the cluster's ports and answers as its API, in a session of its own."""
    reader, writer = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if os.fork():
            os._exit(0)
        with open("/proc/self/comm", "w") as comm:
            comm.write("conmon")
        os.write(writer, str(os.getpid()).encode())
        nowhere = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(nowhere, descriptor)
        os.close(reader)
        os.close(writer)
        serve(api, port)
    os.wait()
    os.close(writer)
    return int(os.read(reader, 20))


def serve(api, _port):
    import ssl

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(os.path.join(STATE, "server.pem"))
    while True:
        connection, _ = api.accept()
        connection.settimeout(5)
        try:
            with context.wrap_socket(connection, server_side=True) as secure:
                request = secure.recv(16384).decode("latin-1")
                token = request.partition("Bearer ")[2].split("\r\n")[0]
                known = read(os.path.join(STORE, "tokens"), [])
                answer = "200 OK" if token in known else "401 Unauthorized"
                secure.sendall(f"HTTP/1.1 {answer}\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{{}}".encode())
        except OSError:
            continue


def write_kubeconfig(path, cluster, server):
    import base64

    with open(os.path.join(STATE, "ca.pem"), "rb") as file:
        ca = base64.b64encode(file.read()).decode()
    context = f"kind-{cluster}"
    text = json.dumps({
        "apiVersion": "v1", "kind": "Config", "current-context": context, "preferences": {},
        "clusters": [{"name": context, "cluster": {"server": server, "certificate-authority-data": ca}}],
        "contexts": [{"name": context, "context": {"cluster": context, "user": context}}],
        "users": [{"name": context, "user": {"client-certificate-data": "", "client-key-data": ""}}],
    })  # fmt: skip
    with open(path, "w") as file:  # JSON is YAML
        file.write(text)


# podman

def podman(arguments, play):
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
        return max(drop("volume", name, "no such volume") for name in arguments[3:])
    if arguments[:2] == ["network", "rm"] and len(arguments) == 3:
        if listing("container"):
            sys.stderr.write(f"Error: {arguments[2]} has associated containers with it. Use -f to forcefully delete\n")
            return 2
        return drop("network", arguments[2], "unable to find network with name or ID")
    if arguments[:3] == ["load", "--quiet", "--input"] and len(arguments) == 4:
        return 0 if os.path.exists(arguments[3]) else 125
    return None


def ps_row(container):
    row = read(os.path.join(STATE, "recorded-ps-row.json"), {})
    return row | {key: container[key] for key in ("Names", "Labels", "Created", "State", "Id", "Image")}


def podman_rm(names):
    import signal

    for name in names:
        container = find("container", name)
        if container and container["helper"]:
            try:
                os.kill(container["helper"], signal.SIGKILL)
            except ProcessLookupError:
                pass
        drop("container", name, "")
        print(name)
    return 0  # with --force a container that is not there is no error


# kubectl

def kubectl(arguments, play):
    if arguments == ["version", "--client", "--output=json"]:
        print(json.dumps({"clientVersion": {"gitVersion": "v1.34.4"}, "kustomizeVersion": "v5.7.1"}))
        return 0
    if not arguments or not arguments[0].startswith("--kubeconfig="):
        return None
    config = read(arguments[0].partition("=")[2], None)
    if config is None:
        sys.stderr.write("error: no configuration has been provided\n")
        return 1
    cluster = config["current-context"].removeprefix("kind-")
    if not find("container", f"{cluster}-control-plane"):
        sys.stderr.write("The connection to the server was refused - did you specify the right host or port?\n")
        return 1
    return kubectl_call(arguments[1:], cluster)


def kubectl_call(words, cluster):
    if words[:4] == ["wait", "--for=condition=Ready", "nodes", "--all"] and words[4].startswith("--timeout="):
        print(f"node/{cluster}-control-plane condition met")
        return 0
    if words == ["get", "serviceaccount", "default", "--namespace", "default", "--output", "name"]:
        print("serviceaccount/default")
        return 0
    if words == ["apply", "--filename", "-"]:
        save("applied", cluster, {"manifest": sys.stdin.read()})
        print("serviceaccount/admin-user created")
        return 0
    if words[:5] == ["create", "token", "admin-user", "--namespace", "kube-system"] and len(words) == 6:
        if not find("applied", cluster):
            sys.stderr.write('error: failed to create token: serviceaccounts "admin-user" not found\n')
            return 1
        print(new_token(int(words[5].removeprefix("--duration=").removesuffix("s"))))
        return 0
    return None


def new_token(seconds):
    import base64

    granted = min(seconds, read(os.path.join(STATE, "longest-token.json"), seconds))
    claims = json.dumps({"exp": int(time.time()) + granted, "jti": os.urandom(4).hex()}).encode()
    token = "e30." + base64.urlsafe_b64encode(claims).decode().rstrip("=") + ".fakesignature"
    path = os.path.join(STORE, "tokens")
    tokens = [*read(path, []), token]
    with open(path, "w") as file:
        json.dump(tokens, file)
    return token


# Slurm

def squeue(arguments, play):
    """`-h -j IDS -t all -o FORMAT` from state/jobs.json: rows with the keys A, N, f, T, S and `leader`."""
    if len(arguments) != 7 or [*arguments[:2], *arguments[3:6]] != ["-h", "-j", "-t", "all", "-o"]:
        return None
    ids = arguments[2].split(",")
    rows = [r for r in read(os.path.join(STATE, "jobs.json"), []) if {str(r["A"]), str(r.get("leader"))} & set(ids)]
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


# systemd

def systemd_run(arguments, play):
    if "--" not in arguments or arguments[:2] != ["--user", "--scope"]:
        return None
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


# state

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


def drop(what, name, complaint):
    try:
        os.unlink(os.path.join(STORE, f"{what}-{name}.json"))
    except FileNotFoundError:
        if complaint:
            sys.stderr.write(f"Error: {complaint}: {name}\n")
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


HANDLERS = {
    "kind": kind, "podman": podman, "kubectl": kubectl, "squeue": squeue, "sinfo": sinfo,
    "systemd-run": systemd_run, "systemctl": systemctl,
}  # fmt: skip

main()
