"""The images inside the node image: single programs for the control plane, Debian for workloads."""

import shutil
from pathlib import Path

from testbed import archive, command, programs, roots, versions
from testbed.cache import Cache, key

PROXY_PACKAGES = ("iptables", "nftables", "kmod")
WORKLOAD_PACKAGES = (
    "busybox",
    "ca-certificates",
    "curl",
    "nginx-light",
    "procps",
    "python3",
    "python3-numpy",
    "sysbench",
)
PATH = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def control_plane_names(kubeadm: Path) -> dict[str, tuple[str, ...]]:
    """The image names kubeadm wants, by program; pause also as kind's containerd configuration has it."""
    text = command.capture([kubeadm, "config", "images", "list", "--kubernetes-version", versions.KUBERNETES])
    names: dict[str, tuple[str, ...]] = {
        name.rsplit("/", 1)[1].split(":")[0]: (name,) for name in text.split()
    }
    repository = names["pause"][0].rsplit(":", 1)[0]
    names["pause"] = tuple(dict.fromkeys((*names["pause"], f"{repository}:3.10")))
    return names


def control_plane(built: dict[str, Path], cache: Cache) -> Path:
    """The archive of the control plane's images."""
    parts = [programs.identity(program) for program in programs.ALL]
    proxy_root = roots.layer("kube-proxy-root", PROXY_PACKAGES, cache)
    debian = debian_layer(cache)
    identity = key(
        *parts, roots.layer_identity(PROXY_PACKAGES), pack_control_plane, archive.write, archive.PACK
    )
    made = cache.artifact(
        "control-plane-images",
        identity,
        lambda out: pack_control_plane(out, built, (debian, proxy_root), cache.log("control-plane-images")),
    )
    return made / "images.tar"


def pack_control_plane(out: Path, built: dict[str, Path], proxy: tuple[Path, Path], log: Path) -> None:
    """One layer with one program per image; kube-proxy has a Debian with iptables below it."""
    kubernetes = built["kubernetes"] / "bin"
    files = {
        name: kubernetes / name
        for name in (
            "kube-apiserver",
            "kube-controller-manager",
            "kube-scheduler",
            "kube-proxy",
        )
    } | {name: built[name] / "bin" / name for name in ("etcd", "coredns", "pause")}
    images = []
    for name, image_names in control_plane_names(kubernetes / "kubeadm").items():
        tree = out / "tree" / name / "usr" / "local" / "bin"
        tree.mkdir(parents=True)
        shutil.copy(files[name], tree / name)
        layers = [archive.pack(out / f"{name}.tar.gz", out / "tree" / name, log=log)]
        if name == "kube-proxy":
            layers = [proxy[0], archive.pack(out / "proxy-root.tar.gz", proxy[1], log=log), *layers]
        config = {"Entrypoint": [f"/usr/local/bin/{name}"], "Env": [PATH]}
        images.append(archive.Image(image_names, tuple(layers), config))
    archive.write(out / "images.tar", images)
    for path in out.iterdir():
        if path.name != "images.tar":
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def debian_layer(cache: Cache) -> Path:
    """The base root as a compressed layer, shared by all images that stand on it."""
    root = roots.base(cache)
    name = "debian-layer"
    identity = key(versions.DEBIAN_SUITE, roots.EXCLUDES, roots.STRIP, roots.bootstrap, archive.PACK)

    def make(out: Path) -> None:
        archive.pack(out / "layer.tar.gz", root, log=cache.log(name))

    return cache.artifact(name, identity, make) / "layer.tar.gz"


def workload(cache: Cache) -> Path:
    """The archive of the images that tests and example workloads run."""
    debian = debian_layer(cache)
    upper = roots.layer("workload-root", WORKLOAD_PACKAGES, cache)
    name = "workload-images"
    identity = key(roots.layer_identity(WORKLOAD_PACKAGES), pack_workload, archive.write, archive.PACK)
    made = cache.artifact(name, identity, lambda out: pack_workload(out, debian, upper, cache.log(name)))
    return made / "images.tar"


def pack_workload(out: Path, debian: Path, upper: Path, log: Path) -> None:
    """A plain Debian, and a Debian with what the workloads use."""
    layer = archive.pack(out / "layer.tar.gz", upper, log=log)
    config = {"Cmd": ["bash"], "Env": [PATH]}
    archive.write(
        out / "images.tar",
        [
            archive.Image((versions.DEBIAN_IMAGE,), (debian,), config),
            archive.Image((versions.WORKLOAD_IMAGE,), (debian, layer), config),
        ],
    )
    layer.unlink()
