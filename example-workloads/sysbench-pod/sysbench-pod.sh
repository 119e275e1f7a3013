#!/bin/bash
#SBATCH --job-name=sysbench-pod
#SBATCH --constraint=k8s
#SBATCH --nodes=1

# The CPU benchmark of sysbench in a pod, with as many threads as the pod sees CPUs.

set -euo pipefail

name=sysbench-pod
namespace=$name-$$
image=${KSI_EXAMPLE_SYSBENCH_IMAGE:-${KSI_EXAMPLE_IMAGE:-docker.io/severalnines/sysbench}}
seconds=${KSI_EXAMPLE_SYSBENCH_SECONDS:-5}
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
apiVersion: v1
kind: Pod
metadata:
  name: sysbench
spec:
  restartPolicy: Never
  containers:
    - name: sysbench
      image: $image
      imagePullPolicy: IfNotPresent
      command:
        - sh
        - -c
        - exec sysbench cpu --threads="\$(nproc)" --time=$seconds --report-interval=1 run
EOF

# A container with an id has started; it may have ended, too, so Ready would be the wrong thing to wait for.
k -n "$namespace" wait pod/sysbench --timeout="$timeout" --for=jsonpath='{.status.containerStatuses[0].containerID}'
k -n "$namespace" logs --follow pod/sysbench
# The end, good or bad: waiting for success would not notice a failure before the time is up.
k -n "$namespace" wait pod/sysbench --timeout="$timeout" --for=jsonpath='{.status.containerStatuses[0].state.terminated}'
status=$(k -n "$namespace" get pod/sysbench -o jsonpath='{..state.terminated.exitCode}')
[ "$status" -eq 0 ] || exit "$status"

echo "$name: $(k -n "$namespace" logs pod/sysbench | sed -n 's/^ *\(events per second\): */\1 /p')"
echo "$name: ok"
