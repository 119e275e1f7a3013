#!/bin/sh
# Prolog of ksi_hooks 1.2.3, run by slurmd as root, written by ksi install. It never fails: that would drain the node.
state=/run/ksi
# The directory tells the task hooks that markers are left, so a job without one is none of ours.
[ -d "$state/jobs" ] || { umask 022; mkdir -p "$state/jobs"; }
case ${SLURM_JOB_CONSTRAINTS-} in
*k8s*)
    limit= # what hangs must not hang the node
    [ -x /usr/bin/timeout ] && limit='/usr/bin/timeout -s KILL 40'
    $limit /usr/bin/python3 -I /usr/lib/python3/ksi_hooks/hooks/node_prolog.py /etc/ksi/ksi.yaml "$state" </dev/null >/dev/null 2>&1
    ;;
esac
exit 0
