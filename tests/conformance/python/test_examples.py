"""The programs of examples/concurrency print their expected output."""

import os
import pathlib
import subprocess
import sys

import pytest
from support import connection_string
from table_support import table_connection_string

FOLDER = pathlib.Path(__file__).parents[3] / "examples" / "concurrency"
PROGRAMS = sorted(path.stem for path in (FOLDER / "expected").glob("*.txt"))


def environment(program: str) -> dict[str, str]:
    table = program.startswith("table")
    connection = table_connection_string() if table else connection_string()
    variables = {**os.environ, "AZURE_STORAGE_CONNECTION_STRING": connection}
    if smb := os.environ.get("CONFORMANCE_SMB_ENDPOINT"):
        variables["EXAMPLES_SMB_ENDPOINT"] = smb
    elif program.startswith("smb"):
        pytest.skip("no SMB endpoint is under test")
    return variables


def test_every_program_has_its_output():
    scripts = {path.stem for path in FOLDER.glob("*.py")} - {"account"}
    assert scripts == set(PROGRAMS)


@pytest.mark.parametrize("program", PROGRAMS)
def test_output(program):
    ran = subprocess.run(
        [sys.executable, f"{program}.py"],
        cwd=FOLDER,
        env=environment(program),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == (FOLDER / "expected" / f"{program}.txt").read_text()
