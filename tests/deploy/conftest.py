"""What the tests of deploy/ share: the program, a server under load, and a Prometheus that scrapes it. All on
127.0.0.1, on free ports, in temporary folders."""

import os
import re
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from server_process import SERVICES, ServerProcess, stop

from web import get, query

ROOT = Path(__file__).resolve().parents[2]
LISTENING = (*SERVICES, "smb", "admin")
START_SECONDS = 60
# A second between two scrapes: rates over RATE_SECONDS have enough of them.
RATE_SECONDS = 10


@pytest.fixture(scope="session")
def root():
    return ROOT


@pytest.fixture(scope="session")
def program():
    path = os.environ.get("HOLDFAST_PROGRAM")
    if not path:
        pytest.fail("HOLDFAST_PROGRAM names the binary to test (scripts/check-deploy sets it)")
    return os.path.abspath(path)


@pytest.fixture(scope="session")
def version(root):
    return re.search(r'^version = "(.+)"$', (root / "Cargo.toml").read_text(), re.MULTILINE)[1]


@pytest.fixture(scope="session")
def tool():
    """A program of the environment that runs this, or of the system."""

    def find(name):
        beside = Path(sys.executable).parent / name
        path = str(beside) if beside.exists() else shutil.which(name)
        return path or pytest.fail(f"{name} is missing (scripts/setup installs it)")

    return find


@pytest.fixture(scope="session")
def certificate(tmp_path_factory, tool):
    """A folder with server.pem and server.key, as a certificate of this machine's own."""
    folder = tmp_path_factory.mktemp("certificate")
    made = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost"
    files = ["-keyout", folder / "server.key", "-out", folder / "server.pem"]
    subprocess.run([tool("openssl"), *made.split(), *files], check=True, capture_output=True)
    return folder


@pytest.fixture(scope="session")
def server(program, tmp_path_factory):
    data = tmp_path_factory.mktemp("data") / "data"
    with ServerProcess(program, "--data", str(data), "--log", "warn", listening=LISTENING) as server:
        yield server


@pytest.fixture(scope="session")
def prometheus(program, server, root, tmp_path_factory, tool):
    """The address of a Prometheus that has watched the server under load of every service, with the alerts
    loaded. Some seconds of the load are kept up until the last test that asks is through."""
    folder = tmp_path_factory.mktemp("prometheus")
    shutil.copy(root / "deploy/prometheus/alerts.yaml", folder)
    admin = server.addresses["admin"].removeprefix("http://")
    (folder / "prometheus.yml").write_text(
        f"global: {{scrape_interval: 1s, evaluation_interval: 1s}}\n"
        f"rule_files: [alerts.yaml]\n"
        f"scrape_configs: [{{job_name: holdfast, static_configs: [{{targets: ['{admin}']}}]}}]\n"
    )
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    with open(folder / "log", "wb") as log:
        watching = subprocess.Popen(
            [
                tool("prometheus"),
                f"--config.file={folder}/prometheus.yml",
                f"--storage.tsdb.path={folder}/data",
                f"--web.listen-address={address}",
            ],
            stderr=log,
        )
    load = subprocess.Popen(
        [program, "verify", "--clients=4", "--seconds=3600", "--connection-string", server.connection_string()],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        make_refusals(server, tool)
        wait_until_rates_are_known(f"http://{address}", folder / "log")
        assert load.poll() is None, "holdfast verify, which makes the load, has ended"
        yield f"http://{address}"
    finally:
        load.kill()
        load.wait()
        stop(watching)


def make_refusals(server, tool):
    """One request of each protocol with credentials that are wrong."""
    url = f"{server.addresses['blob']}/devstoreaccount1/refused?restype=container"
    assert get(url, {"Authorization": "SharedKey devstoreaccount1:d3Jvbmc=", "x-ms-version": "2021-12-02"})[0] == 403
    assert get(f"{server.addresses['file']}/devstoreaccount1/refused?restype=share")[0] >= 400
    port = server.addresses["smb"].rsplit(":", 1)[1]
    arguments = ["-p", port, "-U", "devstoreaccount1%wrong", "-L", "127.0.0.1"]
    tried = subprocess.run([tool("smbclient"), *arguments], capture_output=True, text=True)
    assert "LOGON_FAILURE" in tried.stdout + tried.stderr


def wait_until_rates_are_known(address, log):
    deadline = time.monotonic() + START_SECONDS
    seconds = f"count_over_time(holdfast_requests_total{{operation='Insert Entity'}}[{RATE_SECONDS}s])"
    while time.monotonic() < deadline:
        try:
            samples = query(address, f"max({seconds})")
        except (OSError, ValueError):
            # It does not listen yet, or answers that it is starting.
            samples = []
        if samples and float(samples[0]["value"][1]) >= RATE_SECONDS - 1:
            return
        time.sleep(0.5)
    pytest.fail(f"Prometheus has no rates after {START_SECONDS} s:\n{log.read_text()}")
