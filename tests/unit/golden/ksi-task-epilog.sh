#!/bin/sh
# TaskEpilog of ksi_hooks 1.2.3, written by ksi install. To change it, edit the settings and run ksi install again.
# Slurm runs this for every task of every job, one after another: no fork unless the prolog has left a note of the job.
state=/run/ksi
run=/var/lib/ksi/run
if [ -z "${SLURM_JOB_UID-}" ] || [ -d "$run/$SLURM_JOB_UID/jobs/${SLURM_JOB_ID-}" ]; then
    /usr/bin/python3 -I /usr/lib/python3/ksi_hooks/hooks/task_epilog.py /etc/ksi/ksi.yaml $PPID "$state" "$run" >/dev/null 2>&1
fi
exit 0
