"""Every example workload runs from submission to its documented last line, and nothing is left."""

from pathlib import Path

import pytest

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(240)]

WORKLOADS = Path(__file__).parents[2] / "example-workloads"


def scripts() -> list[Path]:
    return sorted(folder / f"{folder.name}.sh" for folder in WORKLOADS.iterdir() if folder.is_dir())


@pytest.mark.parametrize("script", scripts(), ids=lambda script: script.stem)
def test_workload_ends_with_its_last_line(site, script):
    job = site.jobs.submit(script).wait_end(200)
    assert job.output.splitlines()[-1] == f"{script.stem}: ok", job.output
    assert job.state == "COMPLETED"
