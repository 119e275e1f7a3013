"""Two sites for the whole layer, with and without the root pair; after each test all is as before."""

from collections.abc import Iterator

import pytest
from testbed.hooked_site import HookedSite
from testbed.slurm import new_state_dir

from slurm.fake_tools import IMAGE, FakeTools

NODES = ("n1", "n2")
CPUS = 8
SETTINGS = {"node_image": IMAGE, "create_timeout": 60, "attach_timeout": 60, "epilog_timeout": 10}
# Quick to start jobs and to end them; everything else as in a site.
SLURM_CONF = (
    "SchedulerParameters=batch_sched_delay=0,sched_min_interval=0",
    "KillWait=12",
    "MessageTimeout=5",
)


class FakedSite(HookedSite):
    """A site whose clusters are files."""

    def __init__(self, *, root_pair: bool) -> None:
        directory = new_state_dir()
        self.tools = FakeTools(directory)
        super().__init__(
            self.tools.bin,
            count_store=self.tools.things,
            root_pair=root_pair,
            nodes=NODES,
            cpus=CPUS,
            settings=SETTINGS,
            slurm_conf_lines=SLURM_CONF,
        )

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        self.tools.close()


@pytest.fixture(scope="session")
def plain_site() -> Iterator[FakedSite]:
    """A site with the two task hooks alone: they ask Slurm whose job it is."""
    with FakedSite(root_pair=False) as made:
        yield made


@pytest.fixture(scope="session")
def paired_site() -> Iterator[FakedSite]:
    """A site with the root pair: its markers tell whose job it is."""
    with FakedSite(root_pair=True) as made:
        yield made


@pytest.fixture
def plain(plain_site: FakedSite) -> Iterator[FakedSite]:
    """The site without the root pair, counted before and after."""
    yield from counted(plain_site)


@pytest.fixture
def paired(paired_site: FakedSite) -> Iterator[FakedSite]:
    """The site with the root pair, counted before and after."""
    yield from counted(paired_site)


@pytest.fixture(params=["plain", "paired"])
def site(request: pytest.FixtureRequest) -> FakedSite:
    """Both kinds of site, one after the other."""
    return request.getfixturevalue(request.param)


def counted(faked: FakedSite) -> Iterator[FakedSite]:
    before = faked.census()
    yield faked
    faked.tools.forget_script()
    left = faked.left(before)
    assert not left, "left on the machine: " + ", ".join(map(str, left))
    assert faked.tools.refused() == []
