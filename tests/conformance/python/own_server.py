"""Servers that a test starts for itself, with settings that the one under test does not have.

The program is named by CONFORMANCE_PROGRAM, which `scripts/conformance` sets; without it these tests
are skipped. Every server keeps its data in memory, listens on free ports of the loopback address and
is ended with the test module that asked for it.
"""

import contextlib
import os
import re
import subprocess

import pytest
from support import DEVELOPMENT_STORAGE

SERVICES = ("blob", "queue", "table", "file")
ENDPOINT = re.compile(r"\b(\w+)=(\S+)")


def own_program() -> str:
    program = os.environ.get("CONFORMANCE_PROGRAM")
    if program is None:
        pytest.skip("CONFORMANCE_PROGRAM does not name the server's program")
    return program


@contextlib.contextmanager
def own_server(*settings: str):
    """The connection string of a new server with these settings."""
    ports = [f"--{name}-port=0" for name in (*SERVICES, "admin")]
    ports += ["--smb-port=off"]
    with started(own_program(), "--memory", *ports, "--log=warn", *settings) as connection:
        yield connection


@contextlib.contextmanager
def own_azurite(folder):
    """The same under the name of Azurite, in an empty folder."""
    program = folder / "azurite"
    program.symlink_to(own_program())
    ports = [f"--{name}Port=0" for name in ("blob", "queue", "table")]
    with started(str(program), *ports, "--inMemoryPersistence") as connection:
        yield connection


@contextlib.contextmanager
def started(*command: str):
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        lines = iter(process.stdout.readline, "")
        ready = next((line for line in lines if line.startswith("ready ")), None)
        assert ready is not None, "the server did not become ready"
        endpoints = dict(ENDPOINT.findall(ready))
        parts = dict(part.split("=", 1) for part in DEVELOPMENT_STORAGE.split(";") if part)
        parts["DefaultEndpointsProtocol"] = endpoints["blob"].split(":")[0]
        for name in filter(endpoints.__contains__, SERVICES):
            endpoint = endpoints[name].rstrip("/").removesuffix("/devstoreaccount1")
            parts[f"{name.capitalize()}Endpoint"] = f"{endpoint}/devstoreaccount1"
        yield "".join(f"{name}={value};" for name, value in parts.items())
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()
