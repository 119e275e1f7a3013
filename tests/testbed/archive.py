"""Writes container images as OCI archives: directories become compressed layers, layers become an archive."""

import hashlib
import json
import tarfile
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any

from testbed import command

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"
LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"

# one tree of all directories, compressed, and beside it the digest of what it was before compression
PACK = """
out=$1 && shift
mkfifo "$out.fifo"
sha256sum < "$out.fifo" | cut -d' ' -f1 > "$out.diff_id" &
tar --create --numeric-owner --sort=name --xattrs --xattrs-include='*' "$@" |
    tee "$out.fifo" | pigz --fast > "$out"
wait $!
rm "$out.fifo"
"""


@dataclass(frozen=True)
class Image:
    """What an image is made of: its names, its layer files, and its configuration as OCI words it."""

    names: tuple[str, ...]
    layers: tuple[Path, ...]
    config: dict[str, Any] = field(default_factory=dict)


def pack(target: Path, *directories: Path, log: Path) -> Path:
    """Write the layer `target` from what is below the directories."""
    sources = [word for directory in directories for word in ("--directory", str(directory), ".")]
    command.run(["bash", "-euo", "pipefail", "-c", PACK, "sh", target, *sources], log=log)
    return target


def write(target: Path, images: list[Image]) -> None:
    """Write one archive that holds all the images."""
    manifests: list[dict[str, Any]] = []
    seen: set[str] = set()
    with tarfile.open(target, "w") as archive:
        for image in images:
            described = [add_layer(archive, layer, seen) for layer in image.layers]
            config = {
                "architecture": "amd64",
                "os": "linux",
                "config": image.config,
                "rootfs": {"type": "layers", "diff_ids": [diff_id(layer) for layer in image.layers]},
            }
            manifest = {
                "schemaVersion": 2,
                "mediaType": MANIFEST,
                "config": add_json(archive, CONFIG, config, seen),
                "layers": described,
            }
            entry = add_json(archive, MANIFEST, manifest, seen)
            for name in image.names:
                annotations = {"io.containerd.image.name": name, "org.opencontainers.image.ref.name": name}
                manifests.append({**entry, "annotations": annotations})
        add_bytes(archive, "oci-layout", b'{"imageLayoutVersion": "1.0.0"}')
        add_bytes(archive, "index.json", json.dumps({"schemaVersion": 2, "manifests": manifests}).encode())


def diff_id(layer: Path) -> str:
    """The digest of a layer before compression, as `pack` left it."""
    return "sha256:" + Path(f"{layer}.diff_id").read_text(encoding="ascii").strip()


def add_layer(archive: tarfile.TarFile, layer: Path, seen: set[str]) -> dict[str, Any]:
    """Store a layer once and describe it."""
    with layer.open("rb") as handle:
        digest = hashlib.file_digest(handle, "sha256").hexdigest()
    if digest not in seen:
        seen.add(digest)
        archive.add(layer, f"blobs/sha256/{digest}")
    return {"mediaType": LAYER, "digest": f"sha256:{digest}", "size": layer.stat().st_size}


def add_json(archive: tarfile.TarFile, kind: str, value: dict[str, Any], seen: set[str]) -> dict[str, Any]:
    """Store a JSON document once and describe it."""
    data = json.dumps(value, sort_keys=True).encode()
    digest = hashlib.sha256(data).hexdigest()
    if digest not in seen:
        seen.add(digest)
        add_bytes(archive, f"blobs/sha256/{digest}", data)
    return {"mediaType": kind, "digest": f"sha256:{digest}", "size": len(data)}


def add_bytes(archive: tarfile.TarFile, name: str, data: bytes) -> None:
    """Store a file."""
    info = tarfile.TarInfo(name)
    info.size = len(data)
    archive.addfile(info, BytesIO(data))
