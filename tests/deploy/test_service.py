"""The systemd unit and the files of the Debian package."""

import re
import shutil
import subprocess
import tomllib

import pytest
from server_process import ServerProcess

from conftest import LISTENING
from web import get

UNIT = "deploy/systemd/holdfast.service"
DROP_IN = "deploy/systemd/port-445.conf"
# 2.0; systemd counts in tenths here.
EXPOSURE_MAX = "20"


def exposure(tool, folder):
    arguments = ["security", "--no-pager", "--offline=true", f"--threshold={EXPOSURE_MAX}", f"--root={folder}"]
    return subprocess.run([tool("systemd-analyze"), *arguments, "holdfast.service"], capture_output=True, text=True)


@pytest.fixture
def installed(root, tmp_path):
    """A file system with the unit, and a program that systemd finds."""
    units = tmp_path / "usr/lib/systemd/system"
    units.mkdir(parents=True)
    shutil.copy(root / UNIT, units)
    (tmp_path / "usr/bin").mkdir()
    shutil.copy("/bin/true", tmp_path / "usr/bin/holdfast")
    return tmp_path


def test_unit_is_hardened(tool, installed):
    done = exposure(tool, installed)
    assert done.returncode == 0, done.stdout[-400:] + done.stderr


def test_unit_with_port_445_is_hardened(tool, root, installed):
    drop_ins = installed / "etc/systemd/system/holdfast.service.d"
    drop_ins.mkdir(parents=True)
    shutil.copy(root / DROP_IN, drop_ins)
    done = exposure(tool, installed)
    assert done.returncode == 0, done.stdout[-400:] + done.stderr
    assert re.search(r"✗ PrivateUsers=", done.stdout), "the drop-in was not read"


def test_unit_has_no_unknown_settings(tool, root, tmp_path):
    unit = (root / UNIT).read_text().replace("/usr/bin/holdfast", "/bin/true")
    # Without the manual page, which is in the package.
    (tmp_path / "holdfast.service").write_text(re.sub(r"^Documentation=.*\n", "", unit, flags=re.MULTILINE))
    command = [tool("systemd-analyze"), "verify", "--recursive-errors=no", tmp_path / "holdfast.service"]
    done = subprocess.run(command, capture_output=True, text=True)
    about_it = [line for line in done.stderr.splitlines() if "holdfast.service" in line]
    assert done.returncode == 0 and about_it == [], done.stderr


def settings_with_every_comment_taken_away(text):
    """Keys that are commented out are suggestions: they have to work too."""
    return re.sub(r"^# (?=[a-z0-9-]+ = )", "", text, flags=re.MULTILINE)


@pytest.mark.parametrize("change", [str, settings_with_every_comment_taken_away], ids=["as it is", "uncommented"])
def test_settings_of_the_package_are_accepted(root, program, certificate, tmp_path, change):
    text = change((root / "deploy/debian/holdfast.toml").read_text())
    (tmp_path / "holdfast.toml").write_text(text)
    for file in certificate.iterdir():
        shutil.copy(file, tmp_path)
    settings = ["--config", tmp_path / "holdfast.toml", "--data", tmp_path / "data"]
    with ServerProcess(program, *map(str, settings), listening=LISTENING) as server:
        assert get(server.addresses["admin"] + "/readyz")[0] == 200


@pytest.mark.parametrize("script", ["postinst", "postrm"])
def test_maintainer_script_is_shell_and_takes_what_cargo_deb_adds(root, script):
    path = root / "deploy/debian/scripts" / script
    assert subprocess.run(["sh", "-n", path]).returncode == 0
    assert "\n#DEBHELPER#\n" in path.read_text()


def test_files_that_the_package_names_are_there(root):
    folder = root / "crates/server"
    package = tomllib.loads((folder / "Cargo.toml").read_text())["package"]["metadata"]["deb"]
    sources = [asset[0] for asset in package["assets"] if not asset[0].startswith("target/")]
    for source in [*sources, package["maintainer-scripts"], package["license-file"][0]]:
        assert (folder / source).exists(), source
    # cargo-deb finds the unit by the name of the package.
    assert (folder / package["systemd-units"]["unit-scripts"] / f"{package['name']}.service").exists()
