"""Persistent handles: opens that survive `kill -9` of the server with their locks, caches and share modes."""

import time
import uuid

import pytest
from azure.core.exceptions import HttpResponseError
from azure.storage.fileshare import ShareServiceClient
from smbprotocol.connection import Capabilities
from smbprotocol.create_contexts import (
    CreateContextName,
    DurableHandleFlags,
    SMB2CreateContextRequest,
    SMB2CreateDurableHandleReconnectV2,
    SMB2CreateDurableHandleRequestV2,
    SMB2CreateDurableHandleResponseV2,
    SMB2CreateRequestLeaseV2,
    SMB2CreateResponseLeaseV2,
)
from smbprotocol.exceptions import SMBResponseException
from smbprotocol.header import NtStatus
from smbprotocol.open import CreateDisposition, CreateOptions, ImpersonationLevel, Open, RequestedOplockLevel

import smb_support as smb
from own_server import own_program
from server_process import ACCOUNT, KEY, ServerProcess
from smb_support import READ, SHARE_ALL, SHARE_NONE, WRITE
from support import unique

PERSISTENT = DurableHandleFlags.SMB2_DHANDLE_FLAG_PERSISTENT
NO_OPLOCK = RequestedOplockLevel.SMB2_OPLOCK_LEVEL_NONE
BATCH = RequestedOplockLevel.SMB2_OPLOCK_LEVEL_BATCH
LEASE = RequestedOplockLevel.SMB2_OPLOCK_LEVEL_LEASE
LEASE_ALL = 7
CONTENT = b"the first content"
LOCK_NOT_GRANTED = 0xC0000055


class Server(ServerProcess):
    """A server on a folder or in memory, that is killed and started again on the same ports."""

    def __init__(self, folder=None):
        storage = ["--memory"] if folder is None else ["--data", str(folder)]
        super().__init__(own_program(), *storage, "--log=warn", listening=["file", "smb"])

    def start(self) -> None:
        super().start()
        self.rest = ShareServiceClient.from_connection_string(self.connection_string(), retry_total=0)


@pytest.fixture
def server(tmp_path):
    server = Server(tmp_path / "data")
    yield server
    server.kill()


@pytest.fixture
def client(server, monkeypatch):
    yield from clients(server, monkeypatch)


def clients(server, monkeypatch):
    monkeypatch.setenv("CONFORMANCE_SMB_ENDPOINT", server.addresses["smb"])
    share = server.rest.create_share(unique("persistent"))
    share.get_file_client("file").upload_file(CONTENT)
    client = Client(server, share.share_name)
    yield client
    client.leave()


class Client:
    """One machine: its connections come and go, its GUID stays."""

    def __init__(self, server: Server, share: str):
        self.server, self.share = server, share
        self.guid = uuid.uuid4()
        self.trees = []
        self.connect()

    def connect(self, guid=None) -> smb.Tree:
        tree = smb.Tree(self.share, ACCOUNT, KEY, guid=guid or self.guid)
        self.trees.append(tree)
        self.tree = tree
        return tree

    def leave(self) -> None:
        for tree in self.trees:
            tree.disconnect()

    def file(self):
        return self.server.rest.get_share_client(self.share).get_file_client("file")


class Handle:
    """An open of `file` with the contexts of durable handles."""

    def __init__(self, persistent=True, oplock=NO_OPLOCK, sharing=SHARE_ALL, timeout=0, name="file"):
        self.guid, self.lease_key = uuid.uuid4(), uuid.uuid4().bytes
        self.persistent, self.oplock, self.sharing, self.timeout, self.name = (
            persistent, oplock, sharing, timeout, name
        )

    def create(self, tree: smb.Tree) -> "Handle":
        context = SMB2CreateDurableHandleRequestV2()
        context["timeout"], context["create_guid"] = self.timeout, self.guid
        context["flags"] = PERSISTENT if self.persistent else 0
        name = CreateContextName.SMB2_CREATE_DURABLE_HANDLE_REQUEST_V2
        return self._open(tree, name, context)

    def reconnect(self, tree: smb.Tree, persistent=True) -> "Handle":
        context = SMB2CreateDurableHandleReconnectV2()
        context["file_id"], context["create_guid"] = self.open.file_id, self.guid
        context["flags"] = PERSISTENT if persistent else 0
        name = CreateContextName.SMB2_CREATE_DURABLE_HANDLE_RECONNECT_V2
        return self._open(tree, name, context)

    def _open(self, tree, name, durable) -> "Handle":
        contexts = [request_context(name, durable)]
        if self.oplock == LEASE:
            lease = SMB2CreateRequestLeaseV2()
            lease["lease_key"], lease["lease_state"] = self.lease_key, LEASE_ALL
            lease["parent_lease_key"], lease["epoch"] = bytes(16), bytes(2)
            contexts.append(request_context(CreateContextName.SMB2_CREATE_REQUEST_LEASE_V2, lease))
        opened = Open(tree.tree, self.name)
        answered = opened.create(
            ImpersonationLevel.Impersonation, READ | WRITE, 0, self.sharing, CreateDisposition.FILE_OPEN_IF,
            CreateOptions.FILE_NON_DIRECTORY_FILE, create_contexts=contexts, oplock_level=self.oplock,
        )
        self.tree, self.open = tree, opened

        def of(kind):
            return next((context for context in answered or [] if isinstance(context, kind)), None)

        self.granted, self.lease = of(SMB2CreateDurableHandleResponseV2), of(SMB2CreateResponseLeaseV2)
        return self

    @property
    def is_persistent(self) -> bool:
        return self.granted is not None and self.granted["flags"].has_flag(PERSISTENT)

    def lock(self, offset: int, length: int, flags=smb.LOCK_EXCLUSIVE | smb.LOCK_FAIL_IMMEDIATELY) -> None:
        self.tree.lock(self.open, offset, length, flags)


def request_context(name, data) -> SMB2CreateContextRequest:
    context = SMB2CreateContextRequest()
    context["buffer_name"], context["buffer_data"] = name, data
    return context


def smb_refusal(call) -> int:
    with pytest.raises(SMBResponseException) as refused:
        call()
    return refused.value.status


def rest_refusal(call) -> tuple[int, str]:
    with pytest.raises(HttpResponseError) as refused:
        call()
    return refused.value.status_code, refused.value.error_code


def test_persistence_is_offered_where_data_survives(client):
    assert client.tree.connection.server_capabilities.has_flag(Capabilities.SMB2_GLOBAL_CAP_PERSISTENT_HANDLES)
    assert client.tree.tree.is_ca_share
    assert Handle().create(client.tree).is_persistent
    plain = Handle(persistent=False, oplock=BATCH, name="other").create(client.tree)
    assert plain.granted is not None and not plain.is_persistent, "durable alone"


def test_nothing_is_promised_of_data_in_memory(monkeypatch):
    server = Server()
    try:
        for client in clients(server, monkeypatch):
            capabilities = client.tree.connection.server_capabilities
            assert not capabilities.has_flag(Capabilities.SMB2_GLOBAL_CAP_PERSISTENT_HANDLES)
            assert not client.tree.tree.is_ca_share
            handle = Handle(oplock=BATCH).create(client.tree)
            assert handle.granted is not None and not handle.is_persistent, "durable all the same"
    finally:
        server.kill()


@pytest.mark.parametrize("oplock", [NO_OPLOCK, BATCH, LEASE])
def test_an_open_survives_the_server_with_its_locks_and_caches(server, client, oplock):
    handle = Handle(oplock=oplock).create(client.tree)
    assert handle.is_persistent and handle.granted["timeout"].get_value() == 60_000
    handle.lock(0, 4)
    handle.lock(8, 4)
    handle.lock(0, 4, smb.LOCK_UNLOCK)
    file_id = handle.open.file_id
    for _ in range(2):
        server.restart()
        assert rest_refusal(lambda: client.file().upload_range(b"x", 0, 1)) == (409, "FileLockConflict")
        handle.reconnect(client.connect())
        assert handle.open.file_id == file_id
        if oplock == LEASE:
            assert handle.lease["lease_state"].get_value() == LEASE_ALL
        elif oplock == BATCH:
            assert handle.open.oplock_level == BATCH
    handle.open.write(b"THE", 0)
    if oplock == NO_OPLOCK:
        stranger = Handle(persistent=False).create(client.connect(uuid.uuid4()))
        assert smb_refusal(lambda: stranger.lock(8, 1)) == LOCK_NOT_GRANTED
        stranger.lock(0, 4)
        stranger.open.close()
    handle.open.close()
    server.restart()
    client.file().upload_range(b"x", 0, 1)
    assert smb_refusal(lambda: handle.reconnect(client.connect())) == NtStatus.STATUS_OBJECT_NAME_NOT_FOUND


@pytest.mark.parametrize("oplock", [NO_OPLOCK, BATCH, LEASE])
def test_an_orphaned_open_keeps_others_out_by_its_share_mode(server, client, oplock):
    handle = Handle(oplock=oplock, sharing=SHARE_NONE).create(client.tree)
    server.restart()
    began = time.monotonic()
    assert rest_refusal(client.file().download_file) == (409, "SharingViolation")
    assert rest_refusal(client.file().delete_file) == (409, "SharingViolation")
    stranger = client.connect(uuid.uuid4())
    assert smb_refusal(lambda: stranger.open("file")) == NtStatus.STATUS_SHARING_VIOLATION
    assert time.monotonic() - began < 20, "there is nobody to be asked"
    listed = list(client.file().list_handles())
    assert [entry.path for entry in listed] == ["file"]
    handle.reconnect(client.connect())
    assert handle.open.read(0, 100) == CONTENT
    handle.open.close()
    assert client.file().download_file().readall() == CONTENT


def test_only_its_own_client_gets_an_orphaned_open(server, client):
    handle = Handle(oplock=LEASE).create(client.tree)
    server.restart()
    not_found = NtStatus.STATUS_OBJECT_NAME_NOT_FOUND
    assert smb_refusal(lambda: handle.reconnect(client.connect(uuid.uuid4()))) == not_found
    assert smb_refusal(lambda: handle.reconnect(client.connect(), persistent=False)) == not_found
    guid, handle.guid = handle.guid, uuid.uuid4()
    assert smb_refusal(lambda: handle.reconnect(client.connect())) == not_found
    handle.guid = guid
    handle.reconnect(client.connect())


def test_a_client_that_stays_away_loses_its_open(server, client):
    handle = Handle(sharing=SHARE_NONE, timeout=3_000).create(client.tree)
    assert handle.granted["timeout"].get_value() == 3_000
    server.kill()
    # Time that goes by while the server is down is nobody's fault.
    time.sleep(4)
    server.start()
    assert rest_refusal(client.file().download_file) == (409, "SharingViolation")
    time.sleep(4)
    assert client.file().download_file().readall() == CONTENT
    server.restart()
    assert smb_refusal(lambda: handle.reconnect(client.connect())) == NtStatus.STATUS_OBJECT_NAME_NOT_FOUND
    assert client.file().download_file().readall() == CONTENT


def test_a_renamed_file_is_found_again(server, client):
    handle = Handle().create(client.tree)
    client.file().rename_file("renamed")
    server.restart()
    handle.reconnect(client.connect())
    assert handle.open.read(0, 100) == CONTENT


def test_an_open_without_the_flag_goes_with_the_server(server, client):
    handle = Handle(persistent=False, oplock=BATCH, sharing=SHARE_NONE).create(client.tree)
    assert handle.granted is not None and not handle.is_persistent
    server.restart()
    assert client.file().download_file().readall() == CONTENT
    assert smb_refusal(lambda: handle.reconnect(client.connect(), False)) == NtStatus.STATUS_OBJECT_NAME_NOT_FOUND
