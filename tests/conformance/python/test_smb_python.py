"""What people do on a share, by the Python package smbprotocol: every dialect, plain, signed and encrypted."""

import hashlib
import os
import uuid

import pytest
import smb_support
import smbclient
import smbclient.shutil
from azure.storage.fileshare import ShareServiceClient
from smbprotocol.connection import Connection, Dialects
from smbprotocol.exceptions import SMBOSError, SMBResponseException
from smbprotocol.file_info import FileInformationClass
from smbprotocol.header import NtStatus
from smbprotocol.open import CreateOptions
from support import Account, connection_string, unique

PLAIN, SIGNED, ENCRYPTED = "plain", "signed", "encrypted"
DIALECTS = {
    "2.0.2": Dialects.SMB_2_0_2,
    "2.1": Dialects.SMB_2_1_0,
    "3.0": Dialects.SMB_3_0_0,
    "3.0.2": Dialects.SMB_3_0_2,
    "3.1.1": Dialects.SMB_3_1_1,
}
WAYS = [(dialect, how) for dialect in DIALECTS for how in (PLAIN, SIGNED, ENCRYPTED)
        if how != ENCRYPTED or dialect.startswith("3")]
SOME_WAYS = [("2.1", SIGNED), ("3.0", ENCRYPTED), ("3.1.1", PLAIN), ("3.1.1", ENCRYPTED)]
BIG_BYTES = 20 * 1024 * 1024 + 12345
SMALL_FILES = 2000


@pytest.fixture(scope="module")
def share():
    smb_support.endpoint()
    with ShareServiceClient.from_connection_string(connection_string(), retry_total=0) as service:
        client = service.create_share(unique("python"), quota=1)
        yield client
        client.delete_share()


class Client:
    """The functions of smbclient in one session; paths are below the share."""

    def __init__(self, share: str, dialect: str, how: str):
        host, self.port = smb_support.endpoint()
        account = Account.under_test("File")
        connection = Connection(uuid.uuid4(), host, self.port, require_signing=how == SIGNED)
        connection.connect(DIALECTS[dialect])
        self.base = rf"\\{host}\{share}"
        self.cache = {f"{host}:{self.port}": connection}
        self.options = {"port": self.port, "connection_cache": self.cache}
        session = smbclient.register_session(
            host, account.name, account.key, encrypt=how == ENCRYPTED, require_signing=how == SIGNED, **self.options)
        assert (connection.dialect, session.encrypt_data) == (DIALECTS[dialect], how == ENCRYPTED)

    def path(self, *names: str) -> str:
        return "\\".join([self.base, *names])

    def __getattr__(self, function: str):
        call = getattr(smbclient, function)
        return lambda *arguments, **options: call(*arguments, **self.options, **options)

    def write(self, path: str, content: bytes) -> None:
        with self.open_file(path, mode="wb") as file:
            file.write(content)

    def read(self, path: str) -> bytes:
        with self.open_file(path, mode="rb") as file:
            return file.read()

    def close(self) -> None:
        smbclient.reset_connection_cache(fail_on_error=False, connection_cache=self.cache)


@pytest.fixture
def connect(share):
    clients = []

    def connect(dialect: str = "3.1.1", how: str = PLAIN) -> Client:
        clients.append(Client(share.share_name, dialect, how))
        return clients[-1]

    yield connect
    for client in clients:
        client.close()


def rest_names(share, directory: str = "") -> list[str]:
    return sorted(entry["name"] for entry in share.get_directory_client(directory).list_directories_and_files())


@pytest.mark.parametrize("dialect, how", WAYS)
def test_a_folder_and_a_file_come_and_go(connect, share, dialect, how):
    client, folder = connect(dialect, how), unique("folder")
    client.mkdir(client.path(folder))
    note, other = client.path(folder, "Note.txt"), client.path(folder, "other.txt")
    client.write(note, b"some words")
    assert client.stat(client.path(folder, "note.TXT")).st_size == 10
    client.rename(note, other)
    assert client.listdir(client.path(folder)) == ["other.txt"]
    assert client.read(other) == b"some words"
    assert share.get_file_client(f"{folder}/other.txt").download_file().readall() == b"some words"
    with client.open_file(other, mode="ab") as file:
        file.write(b" more")
    with client.open_file(other, mode="r+b") as file:
        file.seek(5)
        file.write(b"WORDS")
        file.truncate(12)
    assert client.read(other) == b"some WORDS m"
    client.remove(other)
    client.rmdir(client.path(folder))
    assert folder not in rest_names(share)


@pytest.mark.parametrize("dialect, how", SOME_WAYS)
def test_a_big_file_comes_back_as_it_was(connect, share, dialect, how):
    client, name = connect(dialect, how), unique("big")
    content = os.urandom(1024 * 1024) * (BIG_BYTES // 1024**2) + bytes(BIG_BYTES % 1024**2)
    client.write(client.path(name), content)
    digest = hashlib.sha256(content).digest()
    assert hashlib.sha256(client.read(client.path(name))).digest() == digest
    file = share.get_file_client(name)
    assert hashlib.sha256(file.download_file().readall()).digest() == digest
    with client.open_file(client.path(name), mode="rb") as opened:
        opened.seek(7 * 1024 * 1024 + 1)
        assert opened.read(100) == content[7 * 1024 * 1024 + 1 :][:100]
    client.remove(client.path(name))


def test_thousands_of_small_files_come_and_go(connect, share):
    client, folder = connect(), unique("many")
    client.mkdir(client.path(folder))
    names = [f"file {number}" for number in range(SMALL_FILES)]
    for name in names:
        client.write(client.path(folder, name), name.encode())
    listed = {entry.name: entry.smb_info.end_of_file for entry in client.scandir(client.path(folder))}
    assert listed == {name: len(name) for name in names}
    assert rest_names(share, folder) == sorted(names)
    assert client.read(client.path(folder, names[-1])) == names[-1].encode()
    with pytest.raises(SMBOSError):
        client.rmdir(client.path(folder))
    for name in names:
        client.remove(client.path(folder, name))
    client.rmdir(client.path(folder))
    assert folder not in rest_names(share)


def test_a_tree_of_folders_is_walked_copied_and_removed(connect, share):
    client, top = connect(), unique("tree")
    client.makedirs(client.path(top, "a", "b"))
    client.write(client.path(top, "one"), b"1")
    client.write(client.path(top, "a", "b", "two"), b"22")
    found = {(directory.removeprefix(client.path(top)), tuple(names))
             for directory, _, names in client.walk(client.path(top))}
    assert found == {("", ("one",)), (r"\a", ()), (r"\a\b", ("two",))}
    smbclient.shutil.copyfile(client.path(top, "a", "b", "two"), client.path(top, "copy"), **client.options)
    assert client.read(client.path(top, "copy")) == b"22"
    client.replace(client.path(top, "copy"), client.path(top, "one"))
    assert client.read(client.path(top, "one")) == b"22"
    with pytest.raises(SMBOSError):
        client.rename(client.path(top, "one"), client.path(top, "a", "b", "two"))
    client.rename(client.path(top, "a"), client.path(top, "moved"))
    assert rest_names(share, f"{top}/moved/b") == ["two"]
    smbclient.shutil.rmtree(client.path(top), **client.options)
    assert top not in rest_names(share)


def test_the_room_that_is_left_is_the_quota_without_what_is_there(connect, share):
    client, name = connect(), unique("room")
    before = client.stat_volume(client.base)
    assert before.total_size == 1 << 30
    client.write(client.path(name), bytes(5 << 20))
    after = client.stat_volume(client.base)
    assert before.caller_available_size - after.caller_available_size == 5 << 20
    client.remove(client.path(name))


def test_a_name_that_has_no_room_in_the_answer_comes_with_the_next(connect, share):
    folder, name = unique("long"), "n" * 200
    share.get_directory_client(folder).create_directory()
    share.get_file_client(f"{folder}/{name}").create_file(0)
    account = Account.under_test("File")
    tree = smb_support.Tree(share.share_name, account.name, account.key)
    try:
        opened = tree.open(folder, options=CreateOptions.FILE_DIRECTORY_FILE)
        first = opened.query_directory("*", FileInformationClass.FILE_NAMES_INFORMATION, max_output=64)
        assert [entry["file_name"].get_value().decode("utf-16-le") for entry in first] == [".", ".."]
        with pytest.raises(SMBResponseException) as refused:
            opened.query_directory("*", FileInformationClass.FILE_NAMES_INFORMATION, max_output=64)
        assert refused.value.status == NtStatus.STATUS_INFO_LENGTH_MISMATCH
        rest = opened.query_directory("*", FileInformationClass.FILE_NAMES_INFORMATION, max_output=4096)
        assert [entry["file_name"].get_value().decode("utf-16-le") for entry in rest] == [name]
    finally:
        tree.disconnect()
