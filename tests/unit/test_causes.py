"""Why a creation failed, told by kind's output."""

import pytest

from ksi_hooks.lifecycle import causes

KNOWN = [
    (
        'ERROR: could not find a log line that matches "Reached target .*Multi-User System.*"',
        "resources",
        True,
    ),
    ("runc: create keyring _ses.1: Disk quota exceeded: OCI runtime error", "kernel.keys.maxkeys", False),
    ("failed to create fsnotify watcher: too many open files", "fs.inotify.max_user_instances", False),
    ("open /proc/sys/net/netfilter/nf_conntrack_max: permission denied", "conntrack", False),
    ("open /proc/sys/net/ipv6/conf/eth0/accept_dad: no such file or directory", "IPv6", False),
    (
        "ip6tables v1.8.7 (legacy): can't initialize ip6tables table `nat': Table does not exist",
        "ip6_tables",
        False,
    ),
    ("failed to mount rootfs component &{overlay overlay}", "storage", False),
    ("write /var/x: no space left on device", "free space", False),
    ("mkdir /home/x: disk quota exceeded", "quota", False),
    ("toomanyrequests: You have reached your pull rate limit", "rate limit", False),
    ("dial tcp: lookup docker.io: no such host", "network", False),
    ("manifest unknown: manifest unknown", "image", False),
    (
        'running kind with rootless provider requires setting systemd property "Delegate=yes"',
        "Delegate=yes",
        False,
    ),
    ("timed out waiting for the condition", "in time", True),
]


@pytest.mark.parametrize(("output", "keyword", "passes"), KNOWN)
def test_kb_24_known_causes(output, keyword, passes):
    cause = causes.explain(f"Creating cluster ...\n{output}\nStack trace:\n")
    assert keyword.lower() in f"{cause.reason} {cause.hint}".lower()
    assert cause.passes is passes


def test_kb_24_unknown_text_has_no_cause():
    assert causes.explain("xyzzy") is None
    assert causes.explain("") is None


@pytest.mark.parametrize(
    ("output", "taken"),
    [
        ("rootlessport listen tcp 0.0.0.0:30000: bind: address already in use", True),
        ("Bind for 0.0.0.0:30000 failed: port is already allocated", True),
        ("node(s) already exist for a cluster with the name", False),
    ],
)
def test_port_in_use(output, taken):
    assert causes.port_in_use(output) is taken


def test_every_cause_has_a_reason_and_a_remedy():
    for cause in causes.CAUSES:
        assert cause.reason
        assert cause.hint
        assert not cause.reason.endswith(".")
