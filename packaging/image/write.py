#!/usr/bin/env python3
"""Writes a container image from the tar file of its root filesystem.

The result is an OCI image layout (oci-layout, index.json, blobs) that is also an archive of Docker (manifest.json), in
one tar file: `docker load`, `podman load` and `skopeo copy oci-archive:FILE` read it. The health check is not a part of
the OCI specification. Docker reads it from the configuration; Podman does if it reads the file as Docker's archive:
`podman pull docker-archive:FILE`.
"""

import argparse
import datetime
import gzip
import hashlib
import io
import json
import shutil
import tarfile
import tempfile

SECOND = 1_000_000_000  # nanoseconds


def digest(file):
    file.seek(0)
    return "sha256:" + hashlib.file_digest(file, "sha256").hexdigest()


def size(file):
    return file.seek(0, io.SEEK_END)


def as_json(value):
    return io.BytesIO(json.dumps(value, sort_keys=True, separators=(",", ":")).encode())


def configuration(options, layer_digest):
    created = datetime.datetime.fromtimestamp(options.time, datetime.timezone.utc)
    created = created.strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        "architecture": options.architecture,
        "os": "linux",
        "created": created,
        "config": {
            "User": "10001:10001",
            "ExposedPorts": {"8080/tcp": {}},
            "Env": ["PATH=/usr/sbin:/usr/bin:/sbin:/bin"],
            "Entrypoint": ["/usr/bin/switchboard"],
            "Cmd": ["serve"],
            "WorkingDir": "/var/lib/switchboard",
            "Volumes": {"/var/lib/switchboard": {}},
            "StopSignal": "SIGTERM",
            "Healthcheck": {
                "Test": ["CMD", "/usr/bin/switchboard", "health"],
                "Interval": 10 * SECOND,
                "Timeout": 10 * SECOND,
                "StartPeriod": 60 * SECOND,
                "Retries": 3,
            },
            "Labels": {
                "org.opencontainers.image.title": "Switchboard",
                "org.opencontainers.image.version": options.version,
                "org.opencontainers.image.licenses": "Apache-2.0",
            },
        },
        "rootfs": {"type": "layers", "diff_ids": [layer_digest]},
        "history": [{"created": created, "created_by": "scripts/package image"}],
    }


def descriptor(kind, file):
    return {"mediaType": kind, "digest": digest(file), "size": size(file)}


def add(archive, name, file, time):
    entry = tarfile.TarInfo(name)
    entry.size = size(file)
    entry.mtime = time
    file.seek(0)
    archive.addfile(entry, file)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--layer", required=True, help="the tar file of the root filesystem")
    parser.add_argument("--output", required=True)
    parser.add_argument("--version", required=True)
    parser.add_argument("--architecture", required=True, help="as Debian and Go name it: amd64, arm64")
    parser.add_argument("--time", required=True, type=int, help="the time of creation, in seconds since 1970")
    options = parser.parse_args()

    layer = tempfile.TemporaryFile()
    with open(options.layer, "rb") as plain:
        layer_digest = digest(plain)
        plain.seek(0)
        with gzip.GzipFile(fileobj=layer, mode="wb", filename="", mtime=0) as packed:
            shutil.copyfileobj(plain, packed)
    config = as_json(configuration(options, layer_digest))
    manifest = as_json({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": descriptor("application/vnd.oci.image.config.v1+json", config),
        "layers": [descriptor("application/vnd.oci.image.layer.v1.tar+gzip", layer)],
    })
    name = f"localhost/switchboard:{options.version}"
    index = {
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.index.v1+json",
        "manifests": [
            descriptor("application/vnd.oci.image.manifest.v1+json", manifest) | {
                "annotations": {
                    "io.containerd.image.name": name,
                    "org.opencontainers.image.ref.name": options.version,
                },
            },
        ],
    }

    def blob(file):
        return "blobs/" + digest(file).replace(":", "/")

    for_docker = [{"Config": blob(config), "RepoTags": [name], "Layers": [blob(layer)]}]
    with tarfile.open(options.output, "w") as archive:
        for file in [config, layer, manifest]:
            add(archive, blob(file), file, options.time)
        for file, value in [
            ("oci-layout", {"imageLayoutVersion": "1.0.0"}),
            ("index.json", index),
            ("manifest.json", for_docker),
        ]:
            add(archive, file, as_json(value), options.time)


main()
