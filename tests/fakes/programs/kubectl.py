"""Kubectl for a cluster that kind has made here."""

import json
import os
import sys
import time

from programs.state import STATE, find, read, save


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
        sys.stderr.write("The connection to the server was refused\n")
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
    save("token", os.urandom(8).hex(), {"token": token})  # a file for each: several are made at once
    return token
