"""What people do on a share, by smbclient (Debian) in every dialect, signed and encrypted."""

import hashlib
import os
import subprocess

import pytest
import smb_support
from azure.storage.fileshare import ShareServiceClient
from support import Account, connection_string, unique

WAYS = {
    "2.1": ["-m", "SMB2_10"],
    "2.1 signed": ["-m", "SMB2_10", "--client-protection=sign"],
    "3.0": ["-m", "SMB3_00", "--option=client min protocol=SMB3_00"],
    "3.0 signed": ["-m", "SMB3_00", "--client-protection=sign"],
    "3.0 encrypted": ["-m", "SMB3_00", "--client-protection=encrypt"],
    "3.0.2 encrypted": ["-m", "SMB3_02", "--client-protection=encrypt"],
    "3.1.1": ["-m", "SMB3_11"],
    "3.1.1 signed": ["-m", "SMB3_11", "--client-protection=sign"],
    "3.1.1 encrypted": ["-m", "SMB3_11", "--client-protection=encrypt"],
}
BIG_BYTES = 40 * 1024 * 1024 + 12345
SMALL_FILES = 1000


@pytest.fixture(scope="module")
def share():
    smb_support.endpoint()
    with ShareServiceClient.from_connection_string(connection_string(), retry_total=0) as service:
        client = service.create_share(unique("people"))
        yield client
        client.delete_share(delete_snapshots=True)


@pytest.fixture
def smbclient(share, tmp_path):
    """Runs commands on the share from a folder of its own, and gives what smbclient says."""
    host, port = smb_support.endpoint()
    account = Account.under_test("File")

    def run(commands: list[str], way: str = "3.1.1") -> str:
        address = [f"//{host}/{share.share_name}", "-p", str(port), "-U", f"{account.name}%{account.key}"]
        done = subprocess.run(
            ["smbclient", *address, *WAYS[way], "-c", "; ".join(commands)],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            timeout=300,
        )
        said = done.stdout + done.stderr
        assert done.returncode == 0 and "NT_STATUS" not in said, said
        return said

    return run


def digest(path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@pytest.mark.parametrize("way", WAYS)
def test_a_folder_and_a_file_come_and_go(smbclient, share, tmp_path, way):
    folder = unique("folder")
    (tmp_path / "note.txt").write_bytes(b"some words")
    said = smbclient(
        [
            f"mkdir {folder}",
            f"cd {folder}",
            "put note.txt Note.txt",
            "allinfo note.TXT",
            "rename Note.txt other.txt",
            "ls",
            "get other.txt back.txt",
        ],
        way,
    )
    assert "other.txt" in said and "10" in said
    assert (tmp_path / "back.txt").read_bytes() == b"some words"
    assert share.get_file_client(f"{folder}/other.txt").download_file().readall() == b"some words"
    smbclient([f"del {folder}\\other.txt", f"rmdir {folder}"], way)
    assert folder not in [entry["name"] for entry in share.list_directories_and_files()]


@pytest.mark.parametrize("way", ["2.1 signed", "3.0 encrypted", "3.1.1", "3.1.1 signed", "3.1.1 encrypted"])
def test_a_big_file_comes_back_as_it_was(smbclient, share, tmp_path, way):
    (tmp_path / "big").write_bytes(os.urandom(1024 * 1024) * (BIG_BYTES // 1024**2) + bytes(BIG_BYTES % 1024**2))
    smbclient(["put big big", "get big back"], way)
    assert digest(tmp_path / "back") == digest(tmp_path / "big")
    assert share.get_file_client("big").get_file_properties().size == BIG_BYTES
    smbclient(["del big"], way)


def test_thousands_of_small_files_come_and_go(smbclient, share, tmp_path):
    folder = tmp_path / "many"
    folder.mkdir()
    for number in range(SMALL_FILES):
        (folder / f"file {number}").write_bytes(str(number).encode())
    smbclient(["prompt OFF", "recurse ON", "mput many"])
    listed = smbclient(["cd many", "ls"])
    assert sum("file " in line for line in listed.splitlines()) == SMALL_FILES
    names = [entry["name"] for entry in share.get_directory_client("many").list_directories_and_files()]
    assert sorted(names) == sorted(f"file {number}" for number in range(SMALL_FILES))
    smbclient(["prompt OFF", "cd many", 'del "file *"', "cd ..", "rmdir many"])
    assert "many" not in [entry["name"] for entry in share.list_directories_and_files()]


def test_the_past_is_read_in_a_snapshot(smbclient, share, tmp_path):
    file = share.get_file_client("kept.txt")
    file.upload_file(b"before")
    share.create_snapshot()
    file.upload_file(b"after!")
    versions = [line for line in smbclient(["allinfo kept.txt"]).splitlines() if line.startswith("@GMT-")]
    assert len(versions) == 1
    smbclient([f"get {versions[0].strip()}\\kept.txt old.txt"])
    assert (tmp_path / "old.txt").read_bytes() == b"before"
