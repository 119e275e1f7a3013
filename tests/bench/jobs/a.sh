#!/bin/sh
# A, the predecessor's way: the job makes its cluster itself, checks it, gets a token, works, deletes it.
set -eu
. "$BENCH_JOBS/work.sh"
say stamp script

finish() {
    say stamp done
    kind delete cluster --name "$BENCH_CLUSTER"
    say stamp script-end
}
trap finish EXIT

kind create cluster --name "$BENCH_CLUSTER" --config "$BENCH_CONFIG" --wait 5m ||
    fail "kind create cluster ended with status $?"
K8S_CLUSTER_NAME=kind-$BENCH_CLUSTER
kubectl get nodes --context "$K8S_CLUSTER_NAME"
kubectl cluster-info --context "$K8S_CLUSTER_NAME"
K8S_CLUSTER_API=$(kubectl config view \
    -o jsonpath="{.clusters[?(@.name == \"$K8S_CLUSTER_NAME\")].cluster.server}")
kubectl --context "$K8S_CLUSTER_NAME" create serviceaccount admin-user --namespace kube-system
kubectl --context "$K8S_CLUSTER_NAME" create clusterrolebinding admin-user \
    --clusterrole=cluster-admin --serviceaccount=kube-system:admin-user
K8S_CLUSTER_API_TOKEN=$(kubectl --context "$K8S_CLUSTER_NAME" create token admin-user --namespace kube-system)
[ -n "$K8S_CLUSTER_API_TOKEN" ] || fail "no token"
say stamp usable
work
