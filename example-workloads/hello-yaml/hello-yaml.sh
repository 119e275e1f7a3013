#!/bin/bash
#SBATCH --job-name=hello-yaml
#SBATCH --constraint=k8s
#SBATCH --nodes=1

# Hello world: a Job from a YAML file, which lies beside this script.

set -euo pipefail

name=hello-yaml
namespace=$name-$$
image=${KSI_EXAMPLE_SHELL_IMAGE:-${KSI_EXAMPLE_IMAGE:-docker.io/library/busybox:stable}}
timeout=${KSI_EXAMPLE_TIMEOUT:-5m}

if [ -z "${K8S_CLUSTER_NAME:-}" ]; then
  echo "$name: K8S_CLUSTER_NAME is not set: submit with sbatch --constraint=k8s, or start with ksi run" >&2
  exit 1
fi

# sbatch runs a copy of this script from a spool directory; Slurm knows where the original lies.
folder=$(dirname "${BASH_SOURCE[0]}")
if [ ! -e "$folder/hello.yaml" ] && [ -n "${SLURM_JOB_ID:-}" ]; then
  folder=$(dirname "$(scontrol show job "$SLURM_JOB_ID" | sed -n 's/^ *Command=//p' | head -n 1)")
fi
if [ ! -e "$folder/hello.yaml" ]; then
  echo "$name: hello.yaml is not found: give sbatch this script by its path, or submit from the folder $name" >&2
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

# Only the image is replaced, for sites with a registry of their own; else this would be: k create -f hello.yaml
k set image --local -f "$folder/hello.yaml" "hello=$image" -o yaml | k -n "$namespace" create -f -

# A Job with a start time has its pod.
k -n "$namespace" wait job/hello --timeout="$timeout" --for=jsonpath='{.status.startTime}'
# A container with an id has started; it may have ended, too, so Ready would be the wrong thing to wait for.
k -n "$namespace" wait pod -l job-name=hello --timeout="$timeout" --for=jsonpath='{.status.containerStatuses[0].containerID}'
k -n "$namespace" logs --follow job/hello
# The end, good or bad: waiting for success would not notice a failure before the time is up.
k -n "$namespace" wait pod -l job-name=hello --timeout="$timeout" --for=jsonpath='{.status.containerStatuses[0].state.terminated}'
status=$(k -n "$namespace" get pod -l job-name=hello -o jsonpath='{..state.terminated.exitCode}')
[ "$status" -eq 0 ] || exit "$status"

echo "$name: ok"
