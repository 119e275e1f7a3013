"""Running a k8s job whose hook has to refuse it."""

import re


def fails(site, *, text, job_id=101, said_by="error", creates=None, **options):
    """Run a k8s job's only task, which has to fail with this text in its message and leave nothing."""
    site.mark(job_id)
    with site.step(job_id, **options) as step:
        prolog = step.prolog()
        assert (prolog.status, prolog.exports, prolog.dropped) == (1, {}, []), prolog
        (error,) = (line for line in prolog.prints if line.startswith("ksi: error: "))
        hints = [line for line in prolog.prints if line.startswith("ksi: hint: ")]
        assert len(hints) == 1, prolog
        assert re.search(text, error if said_by == "error" else hints[0], re.IGNORECASE), prolog
        step.end()
    if creates is not None:
        assert len(site.calls("kind create")) == creates
    return prolog


def nothing_left(site):
    assert site.leftovers() == []
