"""Makes a file as `docker save` does: image.py OUT ROOT NAME [EVIL-LINK]. The image has one layer, the files below ROOT."""

import gzip
import hashlib
import io
import json
import sys
import tarfile


def archive(entries):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as whole:
        for name, content in entries:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            whole.addfile(info, io.BytesIO(content))
    return out.getvalue()


def layer(root, evil):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as whole:
        whole.add(root, arcname=".")
        if evil:
            info = tarfile.TarInfo("evil")
            info.type = tarfile.SYMTYPE
            info.linkname = evil
            whole.addfile(info)
    return out.getvalue()


def digest(content):
    return hashlib.sha256(content).hexdigest()


out, root, name = sys.argv[1:4]
files = layer(root, sys.argv[4] if len(sys.argv) > 4 else None)
config = json.dumps({
    "os": "linux",
    "config": {"Entrypoint": ["/bin/sh", "-c"], "Cmd": ["echo loaded; sleep 1000"], "Env": ["PATH=/bin"], "User": "web"},
    "rootfs": {"type": "layers", "diff_ids": ["sha256:" + digest(files)]},
}).encode()
manifest = json.dumps([{"Config": digest(config) + ".json", "RepoTags": [name], "Layers": ["layer.tar"]}]).encode()
with open(out, "wb") as file:
    parts = [("manifest.json", manifest), (digest(config) + ".json", config), ("layer.tar", gzip.compress(files))]
    file.write(archive(parts))
