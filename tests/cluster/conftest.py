"""One real site for the whole layer; after each test everything on the machine is as before."""

from collections.abc import Iterator
from functools import partial

import pytest
from testbed import cache, census, podman, versions
from testbed.hooked_site import HookedSite

ENV = {"KSI_EXAMPLE_IMAGE": versions.WORKLOAD_IMAGE}


def real_site(**options) -> HookedSite:
    programs = podman.bin_dir(cache.default_root())
    env = {**ENV, "PATH": f"{programs}:/usr/bin:/bin"}
    settings = {"node_image": versions.NODE_IMAGE, **options.pop("settings", {})}
    if not (programs / "podman").exists():
        pytest.fail(f"not built: {programs}; run tests/testbed/testbed build")
    store = partial(census.of_podman, programs / "podman")
    return HookedSite(programs, count_store=store, settings=settings, env=env, **options)


@pytest.fixture(scope="session")
def plain_site() -> Iterator[HookedSite]:
    """A site with the two task hooks alone."""
    with real_site() as made:
        yield made


@pytest.fixture
def site(plain_site: HookedSite) -> Iterator[HookedSite]:
    """The site with the two task hooks, counted before and after."""
    yield from counted(plain_site)


def counted(hooked: HookedSite) -> Iterator[HookedSite]:
    before = hooked.census()
    yield hooked
    left = hooked.left(before)
    assert not left, "left on the machine: " + ", ".join(map(str, left))
