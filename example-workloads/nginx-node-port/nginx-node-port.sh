#!/bin/bash
#SBATCH --job-name=nginx-node-port
#SBATCH --constraint=k8s
#SBATCH --nodes=1

# nginx behind the port K8S_PORT of the Slurm node, and a request to it.

set -euo pipefail

name=nginx-node-port
namespace=$name-$$
image=${KSI_EXAMPLE_NGINX_IMAGE:-${KSI_EXAMPLE_IMAGE:-docker.io/library/nginx:stable}}
serve_seconds=${KSI_EXAMPLE_SERVE_SECONDS:-0}
timeout=${KSI_EXAMPLE_TIMEOUT:-5m}
text="Hello from $namespace"

if [ -z "${K8S_CLUSTER_NAME:-}" ] || [ -z "${K8S_PORT:-}" ]; then
  echo "$name: K8S_CLUSTER_NAME or K8S_PORT is not set:" \
    "submit with sbatch --constraint=k8s, or start with ksi run" >&2
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
      k -n "$namespace" logs deployment/web || true
      reason=$(k -n "$namespace" get pods -o jsonpath='{..state.*.reason} {..state.*.message}' || true)
      echo "$name: failed with status $status; state of the pod: $reason"
    } >&2
  fi
  k -n "$namespace" delete service/web >/dev/null || true  # at once, so that the port is free for a second run
  k delete namespace "$namespace" --wait=false >/dev/null || true
}

k create namespace "$namespace"
trap finish EXIT

k -n "$namespace" create -f - <<EOF
apiVersion: v1
kind: ConfigMap
metadata:
  name: web
data:
  index.html: |
    $text
  nginx.conf: |
    daemon off;
    user root;
    pid /tmp/nginx.pid;
    error_log /dev/stderr;
    events {}
    http {
      access_log /dev/stdout;
      server {
        listen 8080;
        root /web/html;
      }
    }
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
spec:
  selector:
    matchLabels: {app: web}
  template:
    metadata:
      labels: {app: web}
    spec:
      containers:
        - name: nginx
          image: $image
          imagePullPolicy: IfNotPresent
          command: [nginx, -c, /web/nginx.conf]
          readinessProbe:
            httpGet: {path: /, port: 8080}
            periodSeconds: 1
          volumeMounts:
            - name: web
              mountPath: /web
      volumes:
        - name: web
          configMap:
            name: web
            items:
              - {key: nginx.conf, path: nginx.conf}
              - {key: index.html, path: html/index.html}
---
apiVersion: v1
kind: Service
metadata:
  name: web
spec:
  type: NodePort
  selector: {app: web}
  ports:
    - port: 80
      targetPort: 8080
      nodePort: $K8S_PORT
EOF

k -n "$namespace" wait deployment/web --for=condition=Available --timeout="$timeout"
# The pod is ready; that the node's port leads to it may take a moment longer.
url=http://127.0.0.1:$K8S_PORT/
page=$(curl --silent --fail --noproxy '*' --max-time 5 --retry 20 --retry-delay 1 --retry-all-errors "$url") || {
  echo "$name: no page from $url: curl ended with status $?" >&2
  exit 1
}
echo "$page"
if [ "$page" != "$text" ]; then
  echo "$name: $url is not the page of this script" >&2
  exit 1
fi

if [ "$serve_seconds" -gt 0 ]; then
  echo "$name: serving for $serve_seconds s on http://$(hostname):$K8S_PORT/"
  sleep "$serve_seconds"
fi

echo "$name: ok"
