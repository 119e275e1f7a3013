"""Fixtures of the layer with fakes."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from fakes.sites import Site


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
