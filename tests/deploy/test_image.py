"""The images of scripts/build-image. Their programs run by buildah in a chroot, which needs no daemon and no
privileges beyond those of a user namespace."""

import json
import subprocess
import tarfile

import pytest
from server_process import stop

from conftest import ROOT

USER = "10001:10001"


@pytest.fixture(scope="session")
def archives(program, version, tool, tmp_path_factory):
    """The archive of each image, by the ending of its tag."""
    linkage = subprocess.run(["ldd", program], capture_output=True, text=True)
    if "not a dynamic executable" not in linkage.stderr and "statically linked" not in linkage.stdout:
        pytest.skip("the binary is not static, so there is no image of it")
    tool("buildah")
    folder = tmp_path_factory.mktemp("images")
    subprocess.run([ROOT / "scripts/build-image", program, folder], check=True)
    endings = {"": f"holdfast-{version}.docker.tar", "busybox": f"holdfast-{version}-busybox.docker.tar"}
    return {ending: folder / name for ending, name in endings.items()}


def configuration(archive):
    with tarfile.open(archive) as tar:
        (image,) = json.load(tar.extractfile("manifest.json"))
        return json.load(tar.extractfile(image["Config"]))["config"]


@pytest.fixture(scope="session")
def in_image(archives, tool, tmp_path_factory):
    """The command line that runs a program in an image, up to the name of the program."""
    folder = tmp_path_factory.mktemp("containers")
    buildah = [tool("buildah"), "--root", folder / "root", "--runroot", folder / "run", "--storage-driver", "vfs"]

    def container(ending):
        made = [*buildah, "from", f"docker-archive:{archives[ending]}"]
        name = subprocess.run(made, check=True, capture_output=True, text=True).stdout.strip()
        return [*buildah, "run", "--isolation", "chroot", name, "--"]

    return {ending: container(ending) for ending in archives}


@pytest.mark.parametrize("ending", ["", "busybox"])
def test_image_says_how_it_is_run(archives, version, ending):
    config = configuration(archives[ending])
    assert config["User"] == USER
    assert config["Entrypoint"] == ["/usr/bin/holdfast"]
    assert config["Volumes"] == {"/data": {}}
    assert config["WorkingDir"] == "/data"
    assert config["Healthcheck"]["Test"] == ["CMD", "/usr/bin/holdfast", "health"]
    assert config["Labels"]["org.opencontainers.image.version"] == version
    # The development account is the default, and only the default.
    assert config["Cmd"] == ["--allow-well-known-key"]


def started(in_image, arguments):
    """A server in the image without a shell, and its lines up to the ready line."""
    run = [*in_image[""], "/usr/bin/holdfast", *arguments]
    process = subprocess.Popen(run, stdout=subprocess.PIPE, text=True)
    lines = []
    for line in process.stdout:
        lines.append(line)
        if line.startswith("ready "):
            return process, lines
    pytest.fail(f"it ended with {process.wait()}: {lines}")


def test_server_keeps_its_data_in_the_volume(in_image):
    ports = [f"--{name}-port=0" for name in ("blob", "queue", "table", "file", "smb", "admin")]
    process, lines = started(in_image, ["--host=127.0.0.1", *ports])
    stop(process)
    assert "blob=http://127.0.0.1:" in lines[-1]


@pytest.mark.parametrize("name", ["azurite", "azurite-blob", "azurite-queue", "azurite-table"])
def test_names_of_azurite_are_programs(in_image, name):
    """Testcontainers for .NET, Go and Node give such a name as the entrypoint."""
    shown = subprocess.run([*in_image[""], name, "--version"], capture_output=True, text=True)
    assert "holdfast" in shown.stdout, shown.stderr


def test_word_azurite_is_taken(in_image):
    hosts = [f"--{name}Host=127.0.0.1" for name in ("blob", "queue", "table")]
    ports = [f"--{name}Port=0" for name in ("blob", "queue", "table")]
    process, lines = started(in_image, ["azurite", "--location=/data", *hosts, *ports])
    stop(process)
    assert lines[0].startswith("Azurite Blob service is starting at http://127.0.0.1:"), lines


def test_health_fails_where_no_server_is(in_image):
    """1, not 2: `health` is a subcommand, and it has asked."""
    run = [*in_image[""], "/usr/bin/holdfast", "health"]
    assert subprocess.run(run, capture_output=True).returncode == 1


def test_busybox_has_what_health_checks_of_others_call(in_image):
    script = "id -u; for name in sh nc wget; do which $name; done; touch /data/here && ls /data/here"
    done = subprocess.run([*in_image["busybox"], "sh", "-c", script], capture_output=True, text=True)
    assert done.stdout.split() == ["10001", "/bin/sh", "/bin/nc", "/bin/wget", "/data/here"], done.stderr
