"""The part of the TaskProlog that only k8s jobs reach: from the environment to the export lines."""

from pathlib import Path

from ksi_hooks import config, gate
from ksi_hooks.config import Settings
from ksi_hooks.errors import AlreadyTold, Interrupted, KsiError
from ksi_hooks.hooks.boundary import Report
from ksi_hooks.lifecycle import exports, provision
from ksi_hooks.lifecycle.context import Context
from ksi_hooks.slurm import job as jobs


class PrologWork:
    """One task's way to its job's cluster, and what slurmstepd is told about it."""

    def __init__(self, config_file: str, task_pid: int, environ: dict[str, str]) -> None:
        self._config_file = Path(config_file)
        self._task_pid = task_pid
        self._environ = environ
        self._settings: Settings | None = None
        self._directives: list[str] = []
        self.report = Report("task-prolog", job=environ.get("SLURM_JOB_ID", "?"))

    def run(self) -> None:
        """Get the cluster and prepare the lines; raises KsiError."""
        settings = self._settings = config.load(self._config_file)
        job = jobs.from_environ(self._environ)
        self.report.facts |= {"node": job.node}
        context = Context.make(settings, job.node, self._environ)
        self.report.facts |= {"uid": context.uid}
        provided = provision.provide(context, job, jobs.step_of_task(self._task_pid, self._environ))
        record = provided.record
        self.report.log = context.user_dir.log_file(record.cluster)
        self.report.facts |= {"cluster": record.cluster, "created": str(provided.created).lower()}
        found = exports.variables(
            record,
            settings,
            secrets_dir=record.run_dir if job.is_home else record.secrets_dir or record.run_dir,
            no_proxy=exports.job_no_proxy(self._environ),
        )
        lines = exports.export_lines(found)
        if provided.created and settings.print:
            lines += exports.success_lines(record, provided.seconds)
            lines += exports.expiry_lines(found.get("K8S_CLUSTER_API_TOKEN", ""), job.end)
        self._directives = lines

    def lines(self, error: KsiError | None) -> list[str]:
        """Return what goes to slurmstepd: all exports or none."""
        if isinstance(error, Interrupted):
            return []  # the job is being ended; Slurm says so itself
        if isinstance(error, AlreadyTold) and self._is_lenient():
            return []  # the job goes on without a cluster, and its output stays its own
        return exports.failure_lines(error) if error else self._directives

    def status(self, error: KsiError | None) -> int:
        """Return the status: a job without its cluster must not start, unless the site says so."""
        if error is None:
            return 0
        if isinstance(error, Interrupted):
            return error.exit_status
        return 0 if self._is_lenient() else gate.NO_CLUSTER

    def _is_lenient(self) -> bool:
        return self._settings is not None and self._settings.on_failure == "continue"
