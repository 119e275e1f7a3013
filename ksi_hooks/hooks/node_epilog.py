"""Slurm's Epilog on the node, as root: the safety net that deletes what a job's own hooks left.

Called by the sh gate, which then removes the job's marker, with: settings file. Always ends with 0: a
failing Epilog drains the node.
"""

import os
import sys


def main(argv: list[str]) -> int:
    """Delete the ended job's clusters on this node as their owner, within epilog_timeout."""
    from ksi_hooks.hooks import boundary

    report = boundary.Report("epilog", job=os.environ.get("SLURM_JOB_ID", "?"))
    boundary.guard(lambda: clean(argv[1], dict(os.environ), report), report)
    report.send()
    return 0


def clean(config_file: str, environ: dict[str, str], report: object) -> None:
    """Delete every cluster that is recorded for the job; raises KsiError."""
    import dataclasses
    from pathlib import Path

    from ksi_hooks import config
    from ksi_hooks.gc import tenants
    from ksi_hooks.hooks.boundary import Report
    from ksi_hooks.registry.store import Registry
    from ksi_hooks.slurm import job as jobs

    assert isinstance(report, Report)
    settings = config.load(Path(config_file))
    settings = dataclasses.replace(settings, gc_tenant_timeout=settings.epilog_timeout)
    ids = {
        int(i) for name in ("SLURM_JOB_ID", "SLURM_HET_JOB_ID") if (i := environ.get(name, "")).isdecimal()
    }
    uid = int(environ.get("SLURM_JOB_UID", "-1"))
    node = jobs.node_name(environ)
    found = [r for i in sorted(ids) for r in Registry.of(settings).of_job(node, i, uid)]
    outcome = (
        tenants.delete(Path(config_file), settings, node, uid, [r.cluster for r in found]) if found else {}
    )
    report.facts |= {"node": node, "uid": uid, "clusters": len(found)}
    left = [f"{name}: {', '.join(parts)}" for name, parts in outcome.items() if parts]
    if left:
        report.result, report.detail = "incomplete", "; ".join(left)


if __name__ == "__main__":
    sys.exit(main(sys.argv))
