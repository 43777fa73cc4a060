"""Prints the licences of all crates that the program is made of, for one target.

    python3 deploy/third_party_licenses.py x86_64-unknown-linux-musl

The texts are those that the crates bring, each once. A crate that brings none is named with the licence it
declares; deny.toml says which ones are allowed.
"""

import collections
import json
import pathlib
import subprocess
import sys

# As crates name the files.
PATTERNS = ["LICEN[CS]E*", "COPYING*", "COPYRIGHT*", "NOTICE*", "UNLICENSE*"]


def main(target):
    metadata = json.loads(subprocess.run(
        ["cargo", "metadata", "--locked", "--format-version", "1", "--filter-platform", target],
        check=True, capture_output=True, text=True,
    ).stdout)
    packages = {package["id"]: package for package in metadata["packages"]}
    users = collections.defaultdict(list)
    for identity in sorted(linked(metadata, packages), key=lambda it: (packages[it]["name"], packages[it]["version"])):
        package = packages[identity]
        if package["source"] is None:
            continue
        name = f"{package['name']} {package['version']}"
        texts = license_texts(pathlib.Path(package["manifest_path"]).parent)
        for text in texts or [f"(no text of its own; declared as {package['license'] or 'unknown'})"]:
            users[text].append(name)
    print("Holdfast contains the following crates. Their licences follow, each with the crates that are under it.\n")
    for text, names in users.items():
        print("=" * 80, "\n".join(names), "-" * 80, text, sep="\n", end="\n\n")


def linked(metadata, packages):
    """The crates that the server is linked of: neither those of tests nor those that only run in the build."""
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    waiting = [identity for identity, package in packages.items() if package["name"] == "holdfast-server"]
    found = set(waiting)
    while waiting:
        for dependency in nodes[waiting.pop()]["deps"]:
            is_normal = any(kind["kind"] is None for kind in dependency["dep_kinds"])
            if is_normal and dependency["pkg"] not in found:
                found.add(dependency["pkg"])
                waiting.append(dependency["pkg"])
    return found


def license_texts(folder):
    files = sorted({file for pattern in PATTERNS for file in folder.glob(pattern) if file.is_file()})
    return [file.read_text(errors="replace").strip() for file in files]


if __name__ == "__main__":
    main(*sys.argv[1:])
