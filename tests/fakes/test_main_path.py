"""The main path: a batch job of several tasks gets one cluster, and nothing is left when it ends."""

import re


def test_batch_job_has_a_cluster_from_first_to_last_line(site):
    site.mark(101)
    with site.step(101) as step:
        prolog = step.prolog()
        assert prolog.status == 0, prolog
        assert prolog.dropped == []
        record = site.records()[0]
        assert re.fullmatch(r"ksi-101-[0-9a-f]{5}", record.cluster)
        assert prolog.exports["K8S_CLUSTER_NAME"] == f"kind-{record.cluster}"
        assert len(site.state("container")) == 1
        assert step.end_task().status == 0
    assert site.leftovers() == []
