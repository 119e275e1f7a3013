"""Who may use a new cluster: the admin account, its token, and the files that the job is given."""

import dataclasses
import time

from ksi_hooks import files
from ksi_hooks.errors import KsiError
from ksi_hooks.lifecycle.context import Context
from ksi_hooks.registry import shared_secrets
from ksi_hooks.registry.record import Record
from ksi_hooks.render import render
from ksi_hooks.run import Deadline
from ksi_hooks.tools import kubectl
from ksi_hooks.tools.kubectl import Kubectl

STEP_SECONDS = 30.0
ACCOUNT_SECONDS = 300.0
MARGIN_SECONDS = 600  # the token outlives the job's end by this
DEFAULT_TOKEN_SECONDS = 30 * 86400  # when Slurm does not tell the job's end (before 23.02)
MAX_TOKEN_SECONDS = 365 * 86400


def make(context: Context, record: Record, *, job_end: int, spans_nodes: bool, deadline: Deadline) -> Record:
    """Give the cluster its admin account and write kubeconfig, token and certificate, 0600.

    Returns the record with the API's address. Raises KsiError, CommandFailed among them.
    """
    client = Kubectl(context.creating_tools(record.cluster), record.run_dir / "kubeconfig")
    api = kubectl.read_access(client.kubeconfig)
    account = {"account": kubectl.ACCOUNT, "namespace": kubectl.NAMESPACE}
    client.apply(render("admin-user.yaml.j2", account), timeout=deadline.left(STEP_SECONDS))
    seconds = token_seconds(job_end, time.time())
    token = client.create_token(seconds=seconds, timeout=deadline.left(STEP_SECONDS))
    if not token or not (token.isascii() and token.isprintable()) or " " in token:
        raise KsiError(f"kubectl create token gave no token but {len(token)} other characters")
    kubectl.check_token(api, token, timeout=deadline.left(STEP_SECONDS))
    client.wait_for_default_account(Deadline(deadline.left(ACCOUNT_SECONDS)))
    secrets = {"ca.crt": api.ca, "token": token.encode()}
    for name, data in secrets.items():
        files.replace(record.run_dir / name, data, mode=0o600)
    if not spans_nodes:
        return dataclasses.replace(record, api=api.server)
    shared = shared_secrets.make(context.registry, record.cluster)
    for name, data in {**secrets, "kubeconfig": client.kubeconfig.read_bytes()}.items():
        files.replace(shared / name, data, mode=0o600)
    return dataclasses.replace(record, api=api.server, secrets_dir=shared)


def token_seconds(job_end: int, now: float) -> int:
    """Return how long the token has to live: to the job's end and a margin."""
    if job_end <= now:
        return DEFAULT_TOKEN_SECONDS
    return min(int(job_end - now) + MARGIN_SECONDS, MAX_TOKEN_SECONDS)
