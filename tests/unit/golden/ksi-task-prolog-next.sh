#!/bin/sh
# TaskProlog of ksi_hooks 1.2.3, written by ksi install. To change it, edit the settings and run ksi install again.
# Slurm runs this for every task of every job: no fork until the job may be one of ours.
state=/run/ksi
run=/var/lib/ksi/run
ours=ask
wish=${KSI-}
[ "${KSI_JOB_ID-${SLURM_JOB_ID-}}" = "${SLURM_JOB_ID-}" ] || wish= # came along from another job
if [ "$wish" = 0 ]; then
    ours=no
elif [ "$wish" = 1 ]; then
    :
elif [ -f "$state/jobs/${SLURM_JOB_ID-}" ]; then
    ours=yes
elif [ -d "$state/jobs" ] && [ "${SLURM_RESTART_COUNT:-0}" = 0 ]; then
    ours=no # ksi-prolog is installed and marks every k8s job, but slurmd may start a requeued one without waiting for it
elif [ -O "$run/${SLURM_JOB_UID-}/answers/${SLURM_JOB_ID-}-${SLURM_JOB_START_TIME-}.no" ]; then
    ours=no
fi
status=0
if [ $ours != no ]; then
    /usr/bin/python3 -I /usr/lib/python3/ksi_hooks/hooks/task_prolog.py /etc/ksi/ksi.yaml $PPID "$state" "$run" 2>/dev/null
    status=$?
    case $status in
    0 | 137 | 143) ;; # fine, or ended from outside
    100) status=1 ;; # a k8s job without its cluster; the hook has told why
    *) # no interpreter, no package, a broken one: that must not end a job that may be none of ours
        status=0
        if [ $ours = yes ]; then
            echo 'print ksi: error: the hook of ksi_hooks cannot be started: /usr/bin/python3 /usr/lib/python3/ksi_hooks/hooks/task_prolog.py'
            echo 'print ksi: hint: the administrator installs ksi_hooks again'
            status=1
        fi
        ;;
    esac
fi
[ $ours = no ] && exec /etc/slurm/prolog
/etc/slurm/prolog
next_status=$?
[ $status -ne 0 ] || status=$next_status
exit $status
