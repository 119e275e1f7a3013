"""The pinned version of everything the testbed builds."""

GO = "1.26.8"
KUBERNETES = "v1.34.4"
KUBERNETES_STAGING = "v0.34.4"
KIND = "v0.33.0"
ETCD = "v3.6.13"
CRI_TOOLS = "v1.34.0"
CONTAINERD = "v2.3.7"
CNI_PLUGINS = "v1.9.1"
COREDNS = "v1.14.7"

DEBIAN_SUITE = "trixie"

NODE_IMAGE = f"docker.io/kindest/node:{KUBERNETES}"
DEBIAN_IMAGE = f"docker.io/library/debian:{DEBIAN_SUITE}"
WORKLOAD_IMAGE = "localhost/ksi/workload:1"
