"""Two sites for the whole layer, with and without the root pair; after each test all is as before."""

import time
from collections.abc import Iterator

import pytest
from testbed.hooked_site import HookedSite
from testbed.slurm import new_state_dir

from slurm import outcomes
from slurm.fake_tools import IMAGE, FakeTools
from slurm.outcomes import Outcomes, Row

NODES = ("n1", "n2")
CPUS = 8
SETTINGS = {
    "node_image": IMAGE,
    "create_timeout": 60,
    "attach_timeout": 60,
    "epilog_timeout": 10,
    "query_timeout": 12,  # a busy machine's controller is slow, which is no outage
}
# Quick to start jobs (those of several components, too) and to end them; everything else as in a site.
SLURM_CONF = (
    "SchedulerParameters=batch_sched_delay=0,sched_min_interval=0,bf_interval=1",
    "KillWait=12",
    "MessageTimeout=5",
    "LaunchParameters=use_interactive_step",
)


class FakedSite(HookedSite):
    """A site whose clusters are files."""

    def __init__(self, *, root_pair: bool) -> None:
        self.root_pair = root_pair
        self.tools = FakeTools(new_state_dir(), epilog_seconds=SETTINGS["epilog_timeout"])
        super().__init__(
            self.tools.bin,
            count_store=self.tools.things,
            root_pair=root_pair,
            nodes=NODES,
            cpus=CPUS,
            settings=SETTINGS,
            slurm_conf_lines=SLURM_CONF,
            env={"BASH_ENV": str(self.tools.witness)},
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
def plain(plain_site: FakedSite, request: pytest.FixtureRequest) -> Iterator[FakedSite]:
    """The site without the root pair, counted before and after."""
    yield from counted(plain_site, request)


@pytest.fixture
def paired(paired_site: FakedSite, request: pytest.FixtureRequest) -> Iterator[FakedSite]:
    """The site with the root pair, counted before and after."""
    yield from counted(paired_site, request)


@pytest.fixture(params=["plain", "paired"])
def site(request: pytest.FixtureRequest) -> FakedSite:
    """Both kinds of site, one after the other."""
    return request.getfixturevalue(request.param)


def counted(faked: FakedSite, request: pytest.FixtureRequest) -> Iterator[FakedSite]:
    before, failed = faked.census(), request.session.testsfailed
    began, lines = time.time(), len(faked.tools.seen.read_text().splitlines())
    yield faked
    faked.tools.forget_script()
    left = faked.left(before)
    assert not left, "left on the machine: " + ", ".join(map(str, left))
    assert faked.tools.refused() == []
    if request.session.testsfailed > failed:
        return  # what a failed test has observed is no outcome
    row = Row(
        case=outcomes.case_of(request.node.name),
        root_pair="yes" if faked.root_pair else "no",
        seen=outcomes.seen_by_tasks(faked.tools.seen.read_text().splitlines()[lines:]),
        left=", ".join(sorted({thing.kind for thing in left})) or "nothing",
        cleaned=outcomes.cleaners(faked.tools.calls(since=began)),
    )
    if request.config.getoption(OPTION):
        request.config.stash[OBSERVED].append(row)
    elif difference := Outcomes().difference(row):
        pytest.fail(f"not as in {outcomes.FILE.name}; to write it: {outcomes.REMEDY}\n{difference}", False)


OBSERVED = pytest.StashKey[list[Row]]()
OPTION = "--write-outcomes"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(OPTION, action="store_true", help=f"write {outcomes.FILE.name} from what is observed")


def pytest_configure(config: pytest.Config) -> None:
    config.stash[OBSERVED] = []


def pytest_unconfigure(config: pytest.Config) -> None:
    if rows := config.stash[OBSERVED]:
        table = Outcomes()
        for row in rows:
            table.add(row)
        table.write()
