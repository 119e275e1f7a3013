# What both jobs do with their cluster, sourced by them: one pod, until it runs, and a question with the token.

say() { read -r now rest < /proc/uptime && echo "$now $*" >> "$BENCH_JOURNAL"; }

fail() {
    say note failure "$*"
    exit 1
}

work() {
    form='{.items[*].status.conditions[?(@.type=="Ready")].status}'
    ready=$(kubectl --context "$K8S_CLUSTER_NAME" get nodes -o jsonpath="$form") || ready=unknown
    [ "$ready" = True ] || fail "cluster was handed over with a node that is not ready: $ready"
    # a pod is refused until a controller has made the default account; the user's patience is the same on both sides
    refused=0
    until kubectl --context "$K8S_CLUSTER_NAME" create -f "$BENCH_POD"; do
        refused=$((refused + 1))
        [ $refused -lt 600 ] || fail "pod was refused $refused times"
        sleep 0.1
    done
    say stamp accepted
    say note refused $refused
    kubectl --context "$K8S_CLUSTER_NAME" wait --for=condition=Ready pod/first --timeout=300s ||
        fail "pod does not run after 300 s"
    say stamp pod
    # the token stands behind the words that are written down
    kubectl get nodes --output=name --kubeconfig=/dev/null --server="$K8S_CLUSTER_API" --insecure-skip-tls-verify \
        --request-timeout=30s --token="$K8S_CLUSTER_API_TOKEN" > /dev/null || fail "token does not work"
}
