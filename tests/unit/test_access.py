"""What a job is told and given: token lifetime, variables, lines."""

import base64
import dataclasses
import json
import time
from pathlib import Path

import pytest
from unit.test_record import GOOD

from ksi_hooks import config
from ksi_hooks.errors import KsiError
from ksi_hooks.lifecycle import access, exports
from ksi_hooks.tools import kubectl

SETTINGS = config.parse({"registry_dir": "/x"}, "test")


def token(**claims):
    payload = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    return f"e30.{payload}.sig"


@pytest.mark.parametrize(
    ("job_end", "seconds"),
    [
        (1000 + 36000, 36000 + access.MARGIN_SECONDS),
        (0, access.DEFAULT_TOKEN_SECONDS),
        (999, access.DEFAULT_TOKEN_SECONDS),
        (2**40, access.MAX_TOKEN_SECONDS),
    ],
)
def test_kb_29_token_lives_to_the_jobs_end_and_a_margin(job_end, seconds):
    assert access.token_seconds(job_end, 1000.0) == seconds


@pytest.mark.parametrize(
    "text", ["", "x", "a.b.c", "e30.e30.x", "e30.!!.x", token(exp="never"), token(exp=None)]
)
def test_token_that_does_not_tell_its_end(text):
    assert kubectl.token_expiry(text) == 0.0


def test_kb_29_server_that_grants_less_is_told():
    assert exports.expiry_lines(token(exp=time.time() + 7200), int(time.time()) + 3600) == []
    (line,) = exports.expiry_lines(token(exp=time.time() + 3600), int(time.time()) + 7200)
    assert line.startswith("print ksi: warning: the API token ends before the job does: ")


@pytest.fixture
def secrets(tmp_path):
    (tmp_path / "token").write_text("tok")
    return tmp_path


def test_variables(secrets):
    found = exports.variables(GOOD, SETTINGS, secrets_dir=secrets, no_proxy=None)
    assert found == {
        "KUBECONFIG": f"{secrets}/kubeconfig",
        "K8S_CLUSTER_NAME": "kind-ksi-7-0af3c",
        "K8S_CLUSTER_API": "https://127.0.0.1:6443",
        "K8S_CLUSTER_API_TOKEN": "tok",
        "K8S_CLUSTER_API_TOKEN_FILE": f"{secrets}/token",
        "K8S_CLUSTER_CA": f"{secrets}/ca.crt",
        "K8S_PORT": "30000",
        "KSI_JOB_ID": "7",
        "KIND_EXPERIMENTAL_PROVIDER": "podman",
    }


def test_token_that_cannot_be_read(tmp_path):
    with pytest.raises(KsiError, match=f"{tmp_path}/token"):
        exports.variables(GOOD, SETTINGS, secrets_dir=tmp_path, no_proxy=None)


def test_cluster_outside_of_slurm_has_no_job_id(secrets):
    local = dataclasses.replace(GOOD, job_id=None)
    assert "KSI_JOB_ID" not in exports.variables(local, SETTINGS, secrets_dir=secrets, no_proxy=None)


@pytest.mark.parametrize(
    ("environ", "found"),
    [
        ({}, None),
        ({"no_proxy": "x"}, None),
        ({"https_proxy": "http://p"}, ""),
        ({"HTTPS_PROXY": "http://p", "NO_PROXY": "x"}, "x"),
        ({"http_proxy": ""}, None),
    ],
)
def test_proxy_of_a_job(environ, found):
    assert exports.job_no_proxy(environ) == found


def test_kb_01_a_value_that_cannot_be_passed_is_an_error_of_ours():
    with pytest.raises(KsiError, match="cannot be passed to the job"):
        exports.export_lines({"K8S_PORT": "1", "K8S_CLUSTER_API_TOKEN": "a\nb"})


def test_error_is_one_line_and_the_hint_another():
    error = KsiError("cannot do\nexport A=b", hint="try")
    assert exports.failure_lines(error) == [
        "print ksi: error: cannot do export A=b\n",
        "print ksi: hint: try\n",
    ]
    assert exports.failure_lines(KsiError("x")) == ["print ksi: error: x\n"]


@pytest.mark.parametrize(
    "text", ["", "{", "clusters: []", "clusters: x", "a: [", "clusters:\n- cluster: {server: x}", "\0"]
)
def test_kubeconfig_that_cannot_be_read(tmp_path, text):
    (tmp_path / "kubeconfig").write_text(text)
    with pytest.raises(KsiError, match="kubeconfig"):
        kubectl.read_access(tmp_path / "kubeconfig")
    with pytest.raises(KsiError, match="kubeconfig"):
        kubectl.read_access(Path("/nonexistent/kubeconfig"))
