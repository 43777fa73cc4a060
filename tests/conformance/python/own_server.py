"""Servers started by a test, with settings that the one under test does not have.

The program is named by CONFORMANCE_PROGRAM, which `scripts/conformance` sets; without it these tests
are skipped. Every server listens on free ports of the loopback address and is ended with the test module
that asked for it.
"""

import contextlib
import os

import pytest
from server_process import ServerProcess


def own_program() -> str:
    program = os.environ.get("CONFORMANCE_PROGRAM")
    if program is None:
        pytest.skip("CONFORMANCE_PROGRAM does not name the server's program")
    return program


def own_process(*settings: str) -> ServerProcess:
    """With these settings; it serves all services and keeps its data in memory."""
    return ServerProcess(own_program(), "--memory", "--log=warn", *settings)


@contextlib.contextmanager
def own_server(*settings: str):
    """The connection string of such a process."""
    with own_process(*settings) as server:
        yield server.connection_string()


@contextlib.contextmanager
def own_azurite(folder):
    """The same under the name of Azurite, in an empty folder."""
    program = folder / "azurite"
    program.symlink_to(own_program())
    ports = [f"--{name}Port=0" for name in ("blob", "queue", "table")]
    with ServerProcess(program, "--inMemoryPersistence", *ports, listening=None) as server:
        yield server.connection_string()
