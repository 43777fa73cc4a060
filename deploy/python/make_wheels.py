"""Makes two wheels that carry the program: `holdfast`, and `holdfast-azurite` with the names of Azurite.

    python3 deploy/python/make_wheels.py BINARY LICENSES FOLDER

A wheel is a zip file in a known form. The usual build tools compile what they pack; this program is compiled
already. Times in the files are those of SOURCE_DATE_EPOCH, so that the same binary gives the same wheels.
"""

import base64
import hashlib
import os
import pathlib
import subprocess
import sys
import time
import zipfile

# Linked statically, so that it runs wherever the kernel does.
PLATFORMS = ["manylinux2014_x86_64", "musllinux_1_1_x86_64"]
NAMES = ["azurite", "azurite-blob", "azurite-queue", "azurite-table"]
README = pathlib.Path(__file__).with_name("README.md")


def main(binary, licenses, folder):
    version = subprocess.run([binary, "--version"], check=True, capture_output=True, text=True).stdout.split()[1]
    program = pathlib.Path(binary).read_bytes()
    texts = {"licenses/THIRD-PARTY-LICENSES.txt": pathlib.Path(licenses).read_bytes()}
    license_file = pathlib.Path(__file__).parents[2] / "LICENSE"
    texts["licenses/LICENSE"] = license_file.read_bytes()
    extra = [
        "Provides-Extra: azurite",
        f'Requires-Dist: holdfast-azurite (=={version}) ; extra == "azurite"',
    ]
    write_wheel(folder, "holdfast", version, PLATFORMS, {"holdfast": program}, extra, texts)
    scripts = {name: f'#!/bin/sh\nexec "$(dirname "$0")/holdfast" {name} "$@"\n'.encode() for name in NAMES}
    needed = [f"Requires-Dist: holdfast (=={version})"]
    write_wheel(folder, "holdfast-azurite", version, ["any"], scripts, needed, {})


def write_wheel(folder, name, version, platforms, scripts, metadata_lines, texts):
    stem = f"{name.replace('-', '_')}-{version}"
    information = f"{stem}.dist-info"
    summary = {
        "holdfast": "A storage account that you run yourself, with the wire protocols of Azure Storage",
        "holdfast-azurite": "Holdfast under the names of Azurite",
    }[name]
    metadata = [
        "Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}", f"Summary: {summary}",
        "License: Apache-2.0", "Requires-Python: >=3.8", "Description-Content-Type: text/markdown",
        *metadata_lines, "", README.read_text(),
    ]
    tags = [f"Tag: py3-none-{platform}" for platform in platforms]
    wheel = ["Wheel-Version: 1.0", "Generator: holdfast", "Root-Is-Purelib: false", *tags, ""]
    files = {f"{stem}.data/scripts/{script}": content for script, content in scripts.items()}
    files |= {f"{information}/{path}": content for path, content in texts.items()}
    files[f"{information}/METADATA"] = "\n".join(metadata).encode()
    files[f"{information}/WHEEL"] = "\n".join(wheel).encode()
    record = [f"{path},sha256={digest(content)},{len(content)}" for path, content in files.items()]
    files[f"{information}/RECORD"] = "\n".join([*record, f"{information}/RECORD,,", ""]).encode()
    path = pathlib.Path(folder) / f"{stem}-py3-none-{'.'.join(platforms)}.whl"
    when = time.gmtime(max(int(os.environ.get("SOURCE_DATE_EPOCH", "0")), 315532800))[:6]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for inside, content in files.items():
            entry = zipfile.ZipInfo(inside, when)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o100755 if "/scripts/" in inside else 0o100644) << 16
            archive.writestr(entry, content)
    print(path)


def digest(content):
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


if __name__ == "__main__":
    main(*sys.argv[1:])
