"""Fixtures of the layer with fakes."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from fakes.sites import Site, Tenant


@pytest.fixture
def site() -> Iterator[Site]:
    """A site with fakes, readable for other users too; no call may be unknown to the fakes."""
    base = Path(tempfile.mkdtemp(prefix="ksi-site-"))
    base.chmod(0o755)
    made = Site(base)
    try:
        yield made
        assert made.refused() == []
    finally:
        made.close()


@pytest.fixture(scope="session")
def other_users() -> None:
    """Skip unless this process can start our programs as another user."""
    if os.getuid() != 0:
        pytest.skip("needs root to act as other users")
    programs = str(Path(__file__).parent / "programs" / "__init__.py")
    try:
        subprocess.run(
            [sys.executable, "-I", "-c", f"import ksi_hooks.hooks.prolog_work; open({programs!r})"],
            user=4242,
            group=4242,
            extra_groups=[],
            check=True,
            capture_output=True,
            timeout=30,
        )
    except (subprocess.CalledProcessError, OSError):
        pytest.skip("other users cannot read the interpreter or the checkout")


@pytest.fixture
def tenant(site: Site, other_users: None) -> Iterator[Tenant]:
    """A user who is not root, with a user manager's bus."""
    made = Tenant(site, 4242)
    yield made
    made.close()


@pytest.fixture
def full_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 256 KiB."""
    place = tmp_path / "full"
    place.mkdir()
    if os.getuid() != 0:
        pytest.skip("needs root to mount a file system")
    command = ["mount", "-t", "tmpfs", "-o", "size=256k,mode=0755", "tmpfs", str(place)]
    if subprocess.run(command, check=False, capture_output=True).returncode != 0:
        pytest.skip("file systems cannot be mounted here")
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=True)
