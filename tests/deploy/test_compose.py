"""The Compose files: by the schema of the specification, and their settings with a real server."""

import re
import shutil
import subprocess

import pytest
import yaml
from server_process import ServerProcess

from conftest import LISTENING
from web import get

FILES = ["deploy/compose/development.yaml", "deploy/compose/production/compose.yaml"]


@pytest.mark.parametrize("file", FILES)
def test_file_follows_the_specification(root, tool, file):
    arguments = ["--builtin-schema", "vendor.compose-spec", root / file]
    done = subprocess.run([tool("check-jsonschema"), *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("file", FILES)
def test_image_and_ports_are_those_of_the_server(root, version, file):
    service = yaml.safe_load((root / file).read_text())["services"]["storage"]
    assert service["image"] == f"holdfast:{version}"
    exposed = set(re.search(r"^EXPOSE (.+)$", (root / "deploy/image/Containerfile").read_text(), re.MULTILINE)[1].split())
    assert {port.rsplit(":", 1)[1] for port in service["ports"]} == exposed
    # The one without authentication, and in development all of them, are for this machine only.
    admin = next(port for port in service["ports"] if port.endswith(":10099"))
    assert admin.startswith("127.0.0.1:")
    if "development" in file:
        assert all(port.startswith("127.0.0.1:") for port in service["ports"])


def test_production_settings_serve_with_tls(root, program, certificate, tmp_path):
    """With flags in place of the variables of the image and of accounts.env."""
    shutil.copy(root / "deploy/compose/production/holdfast.toml", tmp_path)
    shutil.copytree(certificate, tmp_path / "tls")
    settings = ["--config", tmp_path / "holdfast.toml", "--data", tmp_path / "data", "--account", "mine:bXkga2V5"]
    with ServerProcess(program, *map(str, settings), listening=LISTENING) as server:
        assert server.addresses["blob"].startswith("https://")
        assert get(server.addresses["admin"] + "/readyz") == (200, "ready\n")
