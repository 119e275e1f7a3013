"""The node image: a Debian with systemd, kind's node files, Kubernetes, and all images a cluster needs."""

import json
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

from testbed import archive, command, programs, roots, versions
from testbed.cache import Cache, key

PACKAGES = (
    *("systemd", "systemd-sysv", "dbus", "conntrack", "iptables", "nftables", "iproute2", "ethtool"),
    *("util-linux", "mount", "kmod", "libseccomp2", "pigz", "fuse-overlayfs", "bash", "ca-certificates"),
    *("curl", "jq", "procps", "runc", "hostname"),
)
POD_RANGE = "10.244.0.0/24"
CNI_CONFIG: dict[str, Any] = {
    "cniVersion": "1.0.0",
    "name": "testbed",
    "plugins": [
        {
            "type": "bridge",
            "bridge": "cni0",
            "isGateway": True,
            "ipMasq": True,
            "hairpinMode": True,
            "ipam": {
                "type": "host-local",
                "ranges": [[{"subnet": POD_RANGE}]],
                "routes": [{"dst": "0.0.0.0/0"}],
            },
        },
        {"type": "portmap", "capabilities": {"portMappings": True}},
    ],
}
# kind applies this manifest; the network itself is the static file above
CNI_MANIFEST = """apiVersion: v1
kind: ConfigMap
metadata:
  name: testbed-cni
  namespace: kube-system
data:
  note: the pod network is configured by /etc/cni/net.d in the node image
"""
# the steps of kind's images/base/Dockerfile that follow the installation of packages
FINISH = """
cd "$1"
chmod 755 kind kind/bin kind/bin/* usr/local/bin/*
rm -f usr/lib/systemd/system/sysinit.target.wants/systemd-tmpfiles-setup.service
rm -f usr/lib/systemd/system/multi-user.target.wants/* etc/systemd/system/*.wants/*
rm -f usr/lib/systemd/system/local-fs.target.wants/* usr/lib/systemd/system/basic.target.wants/*
rm -f usr/lib/systemd/system/sockets.target.wants/*udev* usr/lib/systemd/system/sockets.target.wants/*initctl*
mkdir -p etc/systemd/journald.conf.d etc/kubernetes/manifests
printf '[Journal]\\nReadKMsg=no\\n' > etc/systemd/journald.conf.d/kind.conf
[ -e sbin/init ] || ln -s /usr/lib/systemd/systemd sbin/init
chroot . systemctl enable kubelet.service containerd.service undo-mount-hacks.service
chroot . systemctl mask systemd-binfmt.service
sed -i 's/restrict_oom_score_adj = false/restrict_oom_score_adj = true/' etc/containerd/config.toml
rm -f etc/hostname etc/machine-id
"""
IMPORT_CONFIG = """version = 3
root = "{root}"
state = "{state}"
disabled_plugins = ["io.containerd.cri.v1.images",
  "io.containerd.cri.v1.runtime", "io.containerd.grpc.v1.cri",
  "io.containerd.nri.v1.nri", "io.containerd.internal.v1.opt", "io.containerd.snapshotter.v1.blockfile",
  "io.containerd.snapshotter.v1.erofs"]
[grpc]
address = "{state}/s"
[ttrpc]
address = "{state}/t"
"""
START_SECONDS = 30


def build(built: dict[str, Path], image_archives: list[Path], cache: Cache) -> Path:
    """Return the archive of the node image."""
    root_identity = key(
        *(programs.identity(program) for program in programs.ALL),
        *(roots.layer_identity(PACKAGES), CNI_CONFIG, CNI_MANIFEST, FINISH, archive.PACK, fill_root),
    )
    root = (
        cache.artifact("node-root", root_identity, lambda out: make_root(out, built, cache)) / "layer.tar.gz"
    )
    identity = key(
        root_identity,
        *(path.parent.name for path in image_archives),
        make_image,
        import_images,
        IMPORT_CONFIG,
    )
    made = cache.artifact(
        "node-image",
        identity,
        lambda out: make_image(out, root, built, image_archives, cache.log("node-image")),
    )
    return made / "image.tar"


def make_root(out: Path, built: dict[str, Path], cache: Cache) -> None:
    """Pack the node's root directory, without images, as `out`/layer.tar.gz."""
    log = cache.log("node-root")
    root = out / "root"
    roots.install_whole(roots.base(cache), root, PACKAGES, log)
    fill_root(root, built)
    command.run(["sh", "-euc", FINISH, "sh", root], log=log)
    archive.pack(out / "layer.tar.gz", root, log=log)
    shutil.rmtree(root)


def fill_root(root: Path, built: dict[str, Path]) -> None:
    """Put kind's node files, the programs and the configuration into the node's root directory."""
    shutil.copytree(built["kind"] / "files", root, dirs_exist_ok=True)
    for path in (built["kind"] / "files").rglob("*"):
        (root / path.relative_to(built["kind"] / "files")).chmod(0o755 if path.is_dir() else 0o644)
    places = {
        "usr/bin": [built["kubernetes"] / "bin" / name for name in ("kubeadm", "kubectl", "kubelet")],
        "usr/local/bin": [*(built["containerd"] / "bin").iterdir(), *(built["cri-tools"] / "bin").iterdir()],
        "opt/cni/bin": [*(built["cni-plugins"] / "bin").iterdir()],
    }
    for place, files in places.items():
        (root / place).mkdir(parents=True, exist_ok=True)
        for file in files:
            shutil.copy(file, root / place / file.name)
    spec = json.loads(command.capture([built["containerd"] / "bin" / "ctr", "oci", "spec"]))
    spec["process"].pop("rlimits", None)
    hooks = spec.setdefault("hooks", {}).setdefault("createContainer", [])
    hooks.append({"path": "/kind/bin/mount-product-files.sh"})
    (root / "etc/containerd/cri-base.json").write_text(json.dumps(spec), encoding="utf-8")
    (root / "kind/version").write_text(versions.KUBERNETES, encoding="utf-8")
    (root / "kind/manifests").mkdir()
    (root / "kind/manifests/default-cni.yaml").write_text(CNI_MANIFEST, encoding="utf-8")
    (root / "etc/cni/net.d").mkdir(parents=True)
    (root / "etc/cni/net.d/10-testbed.conflist").write_text(json.dumps(CNI_CONFIG), encoding="utf-8")


def make_image(out: Path, root: Path, built: dict[str, Path], image_archives: list[Path], log: Path) -> None:
    """Write `out`/image.tar from the packed root and a layer that holds containerd's images."""
    store = out / "tree" / "var" / "lib" / "containerd"
    store.mkdir(parents=True)
    import_images(store, built["containerd"] / "bin", image_archives, log)
    layer = archive.pack(out / "images.tar.gz", out / "tree", log=log)
    shutil.rmtree(out / "tree")
    config = {
        "Entrypoint": ["/usr/local/bin/entrypoint", "/sbin/init"],
        "Env": ["container=docker", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"],
        "StopSignal": "SIGRTMIN+3",
    }
    archive.write(out / "image.tar", [archive.Image((versions.NODE_IMAGE,), (root, layer), config)])
    layer.unlink()


def import_images(store: Path, containerd: Path, image_archives: list[Path], log: Path) -> None:
    """Have a containerd of our own take in image archives, packed, into the directory `store`."""
    state = Path(tempfile.mkdtemp(prefix="ksi-import-", dir="/run"))
    config = state / "config.toml"
    config.write_text(IMPORT_CONFIG.format(root=store, state=state), encoding="utf-8")
    server = command.daemon([containerd / "containerd", "--config", config], log=log)
    try:
        ctr = [str(containerd / "ctr"), "--address", f"{state}/s", "--namespace", "k8s.io"]
        deadline = time.monotonic() + START_SECONDS
        while not command.succeeds([*ctr, "version"]):
            if server.poll() is not None or time.monotonic() > deadline:
                raise command.TestbedError(f"containerd does not start, see {log}", command.tail(log))
            time.sleep(0.1)
        for path in image_archives:
            command.run([*ctr, "images", "import", "--no-unpack", path], log=log)
    finally:
        server.terminate()
        server.wait(START_SECONDS)
        shutil.rmtree(state)
