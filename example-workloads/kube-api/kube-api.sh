#!/bin/bash
#SBATCH --job-name=kube-api
#SBATCH --constraint=k8s
#SBATCH --nodes=1

# The Kubernetes REST API by curl alone, with the job's token and the cluster's CA.

set -euo pipefail

name=kube-api
namespace=$name-$$

if [ -z "${K8S_CLUSTER_NAME:-}" ] || [ -z "${K8S_CLUSTER_API:-}" ] || [ -z "${K8S_CLUSTER_CA:-}" ]; then
  echo "$name: K8S_CLUSTER_NAME, K8S_CLUSTER_API or K8S_CLUSTER_CA is not set:" \
    "submit with sbatch --constraint=k8s, or start with ksi run" >&2
  exit 1
fi

if [ -n "${K8S_CLUSTER_API_TOKEN_FILE:-}" ]; then
  token=$(<"$K8S_CLUSTER_API_TOKEN_FILE")
else
  token=${K8S_CLUSTER_API_TOKEN:?is not set, and neither is K8S_CLUSTER_API_TOKEN_FILE}
fi

# api METHOD PATH [JSON]: the token goes in by standard input, as every user of the node can read a command line.
api() {
  local data=() answer status
  [ $# -lt 3 ] || data=(--header 'Content-Type: application/json' --data "$3")
  answer=$(
    printf 'Authorization: Bearer %s\n' "$token" |
      curl --silent --show-error --fail-with-body --noproxy '*' --max-time 30 --cacert "$K8S_CLUSTER_CA" \
        --header @- --request "$1" "${data[@]}" "$K8S_CLUSTER_API$2"
  ) || {
    status=$?
    echo "$name: $1 $2 failed with curl's status $status: $answer" >&2
    return "$status"
  }
  echo "$answer"
}

# field KEY: the value of a key in the API's JSON, which it indents for curl.
field() { sed -n "s/^ *\"$1\": \"\(.*\)\",\{0,1\}$/\1/p"; }

finish() { api DELETE "/api/v1/namespaces/$namespace" >/dev/null || true; }

version=$(api GET /version | field gitVersion)
echo "Kubernetes: $version"
nodes=$(api GET /api/v1/nodes | field kubeletVersion)
echo "kubelet: $nodes"

api POST /api/v1/namespaces "{\"metadata\": {\"name\": \"$namespace\"}}" >/dev/null
trap finish EXIT

api POST "/api/v1/namespaces/$namespace/configmaps" \
  '{"metadata": {"name": "note"}, "data": {"greeting": "hello from curl"}}' >/dev/null
greeting=$(api GET "/api/v1/namespaces/$namespace/configmaps/note" | field greeting)
echo "greeting: $greeting"
if [ "$greeting" != "hello from curl" ]; then
  echo "$name: this is not what was written" >&2
  exit 1
fi

echo "$name: ok"
