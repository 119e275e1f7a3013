#!/bin/bash
#SBATCH --job-name=train-model
#SBATCH --constraint=k8s
#SBATCH --nodes=1

# Trains a model in a Job, which writes it to ./out of the directory in which the Slurm job started.

set -euo pipefail

name=train-model
namespace=$name-$$
image=${KSI_EXAMPLE_PYTHON_IMAGE:-${KSI_EXAMPLE_IMAGE:-docker.io/pytorch/pytorch}}
timeout=${KSI_EXAMPLE_TIMEOUT:-30m}

if [ -z "${K8S_CLUSTER_NAME:-}" ]; then
  echo "$name: K8S_CLUSTER_NAME is not set: submit with sbatch --constraint=k8s, or start with ksi run" >&2
  exit 1
fi

# sbatch runs a copy of this script from a spool directory; Slurm knows where the original lies.
folder=$(dirname "${BASH_SOURCE[0]}")
if [ ! -e "$folder/train.py" ] && [ -n "${SLURM_JOB_ID:-}" ]; then
  folder=$(dirname "$(scontrol show job "$SLURM_JOB_ID" | sed -n 's/^ *Command=//p' | head -n 1)")
fi
if [ ! -e "$folder/train.py" ]; then
  echo "$name: train.py is not found: give sbatch this script by its path, or submit from the folder $name" >&2
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

# A model of an earlier run would pass for this one's.
rm -f out/model.pt out/model.npz
k -n "$namespace" create configmap train --from-file="$folder/train.py"
k -n "$namespace" create -f - <<EOF
apiVersion: batch/v1
kind: Job
metadata:
  name: train
spec:
  backoffLimit: 0
  template:
    spec:
      restartPolicy: Never
      securityContext:
        runAsUser: 0  # root in the pod is the job's user outside, under rootless Podman
      containers:
        - name: train
          image: $image
          imagePullPolicy: IfNotPresent
          command: [python3, -u, /train/train.py, out]
          workingDir: /app
          volumeMounts:
            - name: train
              mountPath: /train
            - name: job-directory
              mountPath: /app
      volumes:
        - name: train
          configMap:
            name: train
        - name: job-directory
          hostPath:
            path: /app
            type: Directory
EOF

# A Job with a start time has its pod.
k -n "$namespace" wait job/train --timeout="$timeout" --for=jsonpath='{.status.startTime}'
# A container with an id has started; it may have ended, too, so Ready would be the wrong thing to wait for.
k -n "$namespace" wait pod -l job-name=train --timeout="$timeout" --for=jsonpath='{.status.containerStatuses[0].containerID}'
k -n "$namespace" logs --follow job/train
# The end, good or bad: waiting for success would not notice a failure before the time is up.
k -n "$namespace" wait pod -l job-name=train --timeout="$timeout" --for=jsonpath='{.status.containerStatuses[0].state.terminated}'
status=$(k -n "$namespace" get pod -l job-name=train -o jsonpath='{..state.terminated.exitCode}')
[ "$status" -eq 0 ] || exit "$status"

# The pod's last line is that of sha256sum: the same file has to be here.
if ! k -n "$namespace" logs job/train --tail=1 | sha256sum --check --quiet; then
  echo "$name: the model is not in $PWD/out: is this the directory in which the Slurm job started?" >&2
  exit 1
fi

echo "$name: ok"
