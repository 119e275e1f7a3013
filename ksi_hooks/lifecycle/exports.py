"""What a job sees of its cluster: the variables, and the lines that tell it; the names are a public
interface.
"""

import time
from pathlib import Path

from ksi_hooks.config import Settings
from ksi_hooks.errors import KsiError
from ksi_hooks.protocol import export_line, print_line
from ksi_hooks.registry.record import Record
from ksi_hooks.tools.kubectl import token_expiry

LOOPBACK = "127.0.0.1,localhost"


def variables(
    record: Record, settings: Settings, *, secrets_dir: Path, no_proxy: str | None
) -> dict[str, str]:
    """Return the variables of a ready cluster; raises KsiError when its secrets cannot be read.

    no_proxy: the job's value when it uses a proxy at all, which then must not be asked for the cluster's own
    API.
    """
    token_file = secrets_dir / "token"
    found = {
        "KUBECONFIG": str(secrets_dir / "kubeconfig"),
        "K8S_CLUSTER_NAME": record.context,
        "K8S_CLUSTER_API": record.api,
        "K8S_CLUSTER_API_TOKEN_FILE": str(token_file),
        "K8S_CLUSTER_CA": str(secrets_dir / "ca.crt"),
        "K8S_PORT": str(record.port),
        "KIND_EXPERIMENTAL_PROVIDER": "podman",
    }
    if record.job_id is not None:
        found["KSI_JOB_ID"] = str(record.job_id)
    try:
        token = token_file.read_text()
    except OSError as error:
        raise KsiError(f"the cluster's token cannot be read: {token_file}: {error.strerror}") from error
    if settings.export_token:
        found["K8S_CLUSTER_API_TOKEN"] = token
    if no_proxy is not None:
        api_host = record.api.partition("://")[2].rpartition(":")[0]
        found["no_proxy"] = found["NO_PROXY"] = ",".join(filter(None, (no_proxy, LOOPBACK, api_host)))
    return found


def job_no_proxy(environ: dict[str, str]) -> str | None:
    """Return the job's no_proxy when the job uses a proxy, else None."""
    if not any(environ.get(name) for name in ("https_proxy", "HTTPS_PROXY", "http_proxy", "HTTP_PROXY")):
        return None
    return environ.get("no_proxy") or environ.get("NO_PROXY") or ""


def export_lines(found: dict[str, str]) -> list[str]:
    """Return one export line per variable; raises KsiError when slurmstepd would misread one."""
    try:
        return [export_line(name, value) for name, value in found.items()]
    except ValueError as error:
        raise KsiError(f"cannot be passed to the job: {error}") from error


def success_lines(record: Record, seconds: float) -> list[str]:
    """Return what the creating task tells the user."""
    return [
        print_line(
            f"ksi: cluster {record.cluster} is ready after {seconds:.1f} s "
            f"(node {record.node}, K8S_PORT {record.port}); kubectl is set up by KUBECONFIG"
        ),
        print_line("ksi: the job's directory is /app in the cluster node; the cluster ends with the job"),
    ]


def expiry_lines(token: str, job_end: int) -> list[str]:
    """Return a warning when the API server granted less time than the job has."""
    expires = token_expiry(token)
    if not expires or not job_end or expires >= job_end:
        return []
    moment = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(expires))
    return [print_line(f"ksi: warning: the API token ends before the job does: {moment}")]


def failure_lines(error: KsiError) -> list[str]:
    """Return what a task tells the user when there is no cluster: what failed and what to do."""
    lines = [print_line(f"ksi: error: {error}")]
    if error.hint:
        lines.append(print_line(f"ksi: hint: {error.hint}"))
    return lines
