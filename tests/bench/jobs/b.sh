#!/bin/sh
# B, ksi_hooks: the job finds its cluster and leaves it behind.
set -eu
. "$BENCH_JOBS/work.sh"
say stamp script
[ -s "$KUBECONFIG" ] && [ -n "$K8S_CLUSTER_API_TOKEN" ] || fail "no cluster was exported"
say note cluster "${K8S_CLUSTER_NAME#kind-}"
say note port "$K8S_PORT"
say stamp usable
trap 'say stamp done; say stamp script-end' EXIT
work
