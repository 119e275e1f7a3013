"""kubectl and the API: is the cluster ready, who may use it, does the token work."""

import base64
import json
import time
from dataclasses import dataclass
from pathlib import Path

from ksi_hooks.errors import CommandFailed, KsiError
from ksi_hooks.run import Deadline, Tools

ACCOUNT = "admin-user"
NAMESPACE = "kube-system"
POLL_SECONDS = 0.2


@dataclass(frozen=True)
class Access:
    """Where the API is and the certificate (PEM) that proves it."""

    server: str
    ca: bytes


@dataclass(frozen=True)
class Kubectl:
    """kubectl bound to one kubeconfig; `~/.kube` is neither read nor written."""

    tools: Tools
    kubeconfig: Path

    def wait_ready(self, deadline: Deadline) -> None:
        """Wait until the cluster node is Ready; raises KsiError when it is not in time."""
        seconds = deadline.left()
        arguments = ["wait", "--for=condition=Ready", "nodes", "--all", f"--timeout={max(1, int(seconds))}s"]
        try:
            self._run(arguments, timeout=seconds + 2)
        except CommandFailed as error:
            raise KsiError(f"cluster node not ready within {deadline.seconds:.0f} s: {error}") from error

    def wait_for_default_account(self, deadline: Deadline) -> None:
        """Wait for the account without which every pod is refused; a controller makes it some time after the
        node.
        """
        while True:
            status, answer = self.tools.status(
                self._argv(
                    ["get", "serviceaccount", "default", "--namespace", "default", "--output", "name"]
                ),
                timeout=deadline.left(10),
            )
            if status == 0:
                return
            if deadline.passed:
                raise KsiError(f"service account default/default is missing: {answer.strip()[:200]}")
            time.sleep(POLL_SECONDS)

    def apply(self, manifest: str, *, timeout: float) -> None:
        """Apply a manifest; raises CommandFailed."""
        self.tools.run(self._argv(["apply", "--filename", "-"]), timeout=timeout, stdin=manifest.encode())

    def create_token(self, *, seconds: int, timeout: float) -> str:
        """Return a token of the admin account; the server may grant less than the wanted seconds."""
        arguments = ["create", "token", ACCOUNT, "--namespace", NAMESPACE, f"--duration={seconds}s"]
        return self.tools.capture(self._argv(arguments), timeout=timeout).strip()

    def _run(self, arguments: list[str], *, timeout: float) -> None:
        self.tools.run(self._argv(arguments), timeout=timeout)

    def _argv(self, arguments: list[str]) -> list[str]:
        return ["kubectl", f"--kubeconfig={self.kubeconfig}", *arguments]


def version(tools: Tools, *, timeout: float) -> str:
    """Return kubectl's version."""
    answer = tools.capture(["kubectl", "version", "--client", "--output=json"], timeout=timeout)
    return str(json.loads(answer)["clientVersion"]["gitVersion"])


def read_access(kubeconfig: Path) -> Access:
    """Return what a kubeconfig with one cluster says about the API; raises KsiError."""
    import yaml

    try:
        cluster = yaml.safe_load(kubeconfig.read_text())["clusters"][0]["cluster"]
        return Access(cluster["server"], base64.b64decode(cluster["certificate-authority-data"]))
    except (OSError, KeyError, IndexError, TypeError, ValueError, yaml.YAMLError) as error:
        raise KsiError(f"kubeconfig that kind wrote cannot be read: {kubeconfig}: {error}") from error


def check_token(access: Access, token: str, *, timeout: float) -> None:
    """Read the admin account with its own token; raises KsiError when the API refuses or is not there."""
    import ssl  # with urllib 50 ms that tasks which do not create never pay
    import urllib.error
    import urllib.request

    url = f"{access.server}/api/v1/namespaces/{NAMESPACE}/serviceaccounts/{ACCOUNT}"
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"})
    context = ssl.create_default_context(cadata=access.ca.decode())
    opener = urllib.request.build_opener(
        urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context)
    )
    try:
        opener.open(request, timeout=timeout).close()
    except (urllib.error.URLError, TimeoutError, OSError) as error:
        raise KsiError(f"the cluster's API refuses the new token: {access.server}: {error}") from error


def token_expiry(token: str) -> float:
    """Return when a token ends (epoch seconds), 0 when it does not say."""
    try:
        payload = token.split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
        return float(claims["exp"])
    except (IndexError, ValueError, KeyError, TypeError):
        return 0.0
