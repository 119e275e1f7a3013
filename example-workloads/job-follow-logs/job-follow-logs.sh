#!/bin/bash
#SBATCH --job-name=job-follow-logs
#SBATCH --constraint=k8s
#SBATCH --nodes=1

# A Kubernetes Job whose log is followed while it runs.

set -euo pipefail

name=job-follow-logs
namespace=$name-$$
image=${KSI_EXAMPLE_SHELL_IMAGE:-${KSI_EXAMPLE_IMAGE:-docker.io/library/busybox:stable}}
timeout=${KSI_EXAMPLE_TIMEOUT:-5m}

if [ -z "${K8S_CLUSTER_NAME:-}" ]; then
  echo "$name: K8S_CLUSTER_NAME is not set: submit with sbatch --constraint=k8s, or start with ksi run" >&2
  exit 1
fi

k() { kubectl --context "$K8S_CLUSTER_NAME" "$@"; }

# Tells why the script fails. Nobody waits for the namespace to go: the cluster ends with the job.
finish() {
  local status=$? reason
  if [ "$status" -ne 0 ]; then
    {
      k -n "$namespace" get pods || true
      k -n "$namespace" get events --sort-by=.metadata.creationTimestamp || true
      reason=$(k -n "$namespace" get pods -o jsonpath='{..state.*.reason} {..state.*.message}' || true)
      echo "$name: failed with status $status; state of the pod: $reason"
    } >&2
  fi
  k delete namespace "$namespace" --wait=false >/dev/null || true
}

k create namespace "$namespace"
trap finish EXIT

k -n "$namespace" create -f - <<EOF
apiVersion: batch/v1
kind: Job
metadata:
  name: steps
spec:
  backoffLimit: 0
  template:
    spec:
      restartPolicy: Never
      containers:
        - name: steps
          image: $image
          imagePullPolicy: IfNotPresent
          command:
            - sh
            - -c
            - for i in 1 2 3 4 5; do echo "\$(date +%T) step \$i of 5"; sleep 1; done
EOF

# A Job with a start time has its pod.
k -n "$namespace" wait job/steps --timeout="$timeout" --for=jsonpath='{.status.startTime}'
# A container with an id has started; it may have ended, too, so Ready would be the wrong thing to wait for.
k -n "$namespace" wait pod -l job-name=steps --timeout="$timeout" --for=jsonpath='{.status.containerStatuses[0].containerID}'
k -n "$namespace" logs --follow job/steps
# The end, good or bad: waiting for success would not notice a failure before the time is up.
k -n "$namespace" wait pod -l job-name=steps --timeout="$timeout" --for=jsonpath='{.status.containerStatuses[0].state.terminated}'
status=$(k -n "$namespace" get pod -l job-name=steps -o jsonpath='{..state.terminated.exitCode}')
[ "$status" -eq 0 ] || exit "$status"

echo "$name: ok"
