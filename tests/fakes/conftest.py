"""Fixtures of the layer with fakes."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from fakes import tenants
from fakes.sites import Site
from fakes.tenants import Tenant


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
def shared_python() -> Iterator[tuple[str, Path]]:
    """An interpreter and a copy of the package that other users may read."""
    if os.getuid() != 0:
        pytest.skip("needs root to act as other users")
    place = Path(tempfile.mkdtemp(prefix="ksi-python-"))
    place.chmod(0o755)
    try:
        made = tenants.make_python(place)
        if made is None:
            pytest.skip("no interpreter from 3.11 on that other users may run")
        yield made
    finally:
        shutil.rmtree(place)


@pytest.fixture
def tenant(site: Site, shared_python: tuple[str, Path]) -> Iterator[Tenant]:
    """A user who is not root."""
    site.open_for_tenants(*shared_python)
    made = Tenant(site, tenants.NAMES[0])
    yield made
    made.close()


@pytest.fixture
def other_tenant(site: Site, tenant: Tenant) -> Iterator[Tenant]:
    """A second user."""
    made = Tenant(site, tenants.NAMES[1])
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
