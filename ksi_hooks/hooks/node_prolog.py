"""Slurm's Prolog on the node, as root: leaves a marker for every k8s job, since only here the constraint is
known.

Called by the sh gate with: settings file, node_state_dir. Always ends with 0: a failing Prolog drains the
node.
"""

import os
import sys


def main(argv: list[str]) -> int:
    """Write the marker when the job's constraint asks for the feature; what goes wrong is told to syslog."""
    from ksi_hooks.hooks import boundary

    report = boundary.Report("prolog", job=os.environ.get("SLURM_JOB_ID", "?"))
    error = boundary.guard(lambda: mark(argv[1], argv[2], dict(os.environ)), report)
    if error:
        report.send()
    return 0


def mark(config_file: str, state_dir: str, environ: dict[str, str]) -> None:
    """Leave the marker below node_state_dir, and for a component of a heterogeneous job under the leader's id
    too.

    A job whose settings cannot be read is marked all the same when the default feature is in its constraint:
    its task hook then tells the user what is wrong. Raises KsiError and OSError.
    """
    import json
    from pathlib import Path

    from ksi_hooks import files, gate
    from ksi_hooks.environment import base_environment
    from ksi_hooks.gc import reclaim
    from ksi_hooks.hooks.trigger import settings_or_defaults
    from ksi_hooks.run import Tools
    from ksi_hooks.slurm import job as jobs
    from ksi_hooks.slurm.features import wanted

    settings = settings_or_defaults(Path(config_file))
    partition = environ.get("SLURM_JOB_PARTITION", "")
    tools = Tools(settings.tools_path, base_environment(settings.tools_path, os.getuid(), environ))
    node = jobs.node_name(environ)

    def node_features() -> str:
        return tools.capture(["sinfo", "-h", "-n", node, "-o", "%f"], timeout=settings.query_timeout).strip()

    in_partition = not settings.partitions or partition in settings.partitions
    if not in_partition or not wanted(
        environ.get("SLURM_JOB_CONSTRAINTS", ""), settings.feature, node_features
    ):
        return
    marker = {
        "version": 1,
        "job_id": environ.get("SLURM_JOB_ID"),
        "uid": environ.get("SLURM_JOB_UID"),
        "nodes": environ.get("SLURM_JOB_NODELIST"),
        "restart": environ.get("SLURM_JOB_RESTART_COUNT") or environ.get("SLURM_RESTART_COUNT") or "0",
    }
    if (uid := environ.get("SLURM_JOB_UID", "")).isdecimal():
        reclaim.run_dir(settings, int(uid))
    directory = Path(state_dir) / gate.MARKER_DIR
    directory.mkdir(mode=0o755, parents=True, exist_ok=True)
    for job_id in {environ.get("SLURM_JOB_ID", ""), environ.get("SLURM_HET_JOB_ID", "")}:
        if job_id.isdecimal():
            files.replace(directory / job_id, json.dumps(marker).encode() + b"\n", mode=0o644)


if __name__ == "__main__":
    sys.exit(main(sys.argv))
