"""SMB by the package smbprotocol, for tests of both protocols on one share."""

import contextlib
import os
import struct
import threading
import time
import uuid
from collections import OrderedDict

import pytest
from smbprotocol.change_notify import SMB2ChangeNotifyRequest, SMB2ChangeNotifyResponse
from smbprotocol.connection import Connection, Request
from smbprotocol.file_info import FileDispositionInformation
from smbprotocol.header import Commands, SMB2HeaderRequest
from smbprotocol.open import (
    CreateDisposition,
    CreateOptions,
    FilePipePrinterAccessMask as Access,
    ImpersonationLevel,
    Open,
    RequestedOplockLevel,
    ShareAccess,
    SMB2LockElement,
    SMB2LockRequest,
    SMB2SetInfoRequest,
)
from smbprotocol.session import Session
from smbprotocol.structure import BytesField, IntField, Structure
from smbprotocol.tree import TreeConnect

READ = Access.FILE_READ_DATA | Access.FILE_READ_ATTRIBUTES
WRITE = Access.FILE_WRITE_DATA | Access.FILE_WRITE_ATTRIBUTES
DELETE = Access.DELETE
SHARE_NONE = 0
SHARE_ALL = ShareAccess.FILE_SHARE_READ | ShareAccess.FILE_SHARE_WRITE | ShareAccess.FILE_SHARE_DELETE
BREAK_MESSAGE_ID = 0xFFFFFFFFFFFFFFFF
# The machine name that the package sends.
MACHINE = "CONFORMANCE"
os.environ["NETBIOS_COMPUTER_NAME"] = MACHINE
LOCK_EXCLUSIVE, LOCK_UNLOCK, LOCK_FAIL_IMMEDIATELY = 2, 4, 16


def endpoint() -> tuple[str, int]:
    """The address of the SMB server; tests are skipped if there is none."""
    text = os.environ.get("CONFORMANCE_SMB_ENDPOINT")
    if not text:
        pytest.skip("no SMB endpoint is under test")
    host, port = text.removeprefix("smb://").rstrip("/").rsplit(":", 1)
    return host, int(port)


class OplockBreakAcknowledgement(Structure):
    COMMAND = Commands.SMB2_OPLOCK_BREAK

    def __init__(self):
        self.fields = OrderedDict(
            structure_size=IntField(size=2, default=24),
            oplock_level=IntField(size=1),
            reserved=IntField(size=1),
            reserved2=IntField(size=4),
            file_id=BytesField(size=16),
        )
        super().__init__()


class Tree:
    """A connection, a session and a tree."""

    def __init__(self, share: str, user: str, password: str, guid: uuid.UUID | None = None, **connection):
        host, port = endpoint()
        self.connection = Connection(guid or uuid.uuid4(), host, port)
        self.connection.connect(**connection)
        self.session = Session(self.connection, user, password, require_encryption=False)
        self.session.connect()
        self.tree = TreeConnect(self.session, rf"\\{host}\{share}")
        self.tree.connect()
        # The package expects no unsolicited messages.
        self.broken = Request(SMB2HeaderRequest(), None, self.connection, self.session.session_id)
        self.connection.outstanding_requests[BREAK_MESSAGE_ID] = self.broken

    def open(
        self,
        name: str,
        access: int = READ,
        sharing: int = SHARE_ALL,
        disposition: int = CreateDisposition.FILE_OPEN,
        options: int = CreateOptions.FILE_NON_DIRECTORY_FILE,
        oplock: int = RequestedOplockLevel.SMB2_OPLOCK_LEVEL_NONE,
    ) -> Open:
        opened = Open(self.tree, name)
        opened.create(
            ImpersonationLevel.Impersonation, access, 0, sharing, disposition, options, oplock_level=oplock
        )
        return opened

    def lock(self, opened: Open, offset: int, length: int, flags: int) -> None:
        element = SMB2LockElement()
        element["offset"], element["length"], element["flags"] = offset, length, flags
        request = SMB2LockRequest()
        request["file_id"] = opened.file_id
        request["locks"] = [element]
        sent = self.connection.send(request, self.session.session_id, self.tree.tree_connect_id)
        self.connection.receive(sent)

    def send(self, request) -> Request:
        return self.connection.send(request, self.session.session_id, self.tree.tree_connect_id)

    def dispose(self, opened: Open, delete: bool = True) -> None:
        """Marks a file or directory for deletion, or unmarks it."""
        information = FileDispositionInformation()
        information["delete_pending"] = delete
        request = SMB2SetInfoRequest()
        request["info_type"] = information.INFO_TYPE
        request["file_info_class"] = information.INFO_CLASS
        request["file_id"] = opened.file_id
        request["buffer"] = information
        self.connection.receive(self.send(request))

    def watch(self, opened: Open, recursive: bool = False, filter: int = 0x1FF) -> Request:
        """Waits for changes in a directory; returns when the server does too."""
        request = SMB2ChangeNotifyRequest()
        request["flags"] = int(recursive)
        request["output_buffer_length"] = 65536
        request["file_id"] = opened.file_id
        request["completion_filter"] = filter
        waiting = self.send(request)
        while waiting.async_id is None:
            time.sleep(0.01)
        return waiting

    def changes(self, waiting: Request, seconds: int = 10) -> list[tuple[int, str]]:
        """The actions and names that a watch ends with."""
        answer = self.connection.receive(waiting, timeout=seconds, resolve_symlinks=False)
        response = SMB2ChangeNotifyResponse()
        response.unpack(answer["data"].get_value())
        buffer, found, offset = response["buffer"].get_value(), [], 0
        while buffer:
            following, action, length = struct.unpack_from("<III", buffer, offset)
            name = buffer[offset + 12 : offset + 12 + length].decode("utf-16-le")
            found.append((action, name))
            if following == 0:
                break
            offset += following
        return found

    def acknowledge_break(self, opened: Open, before=lambda: None, seconds: float = 10) -> threading.Thread:
        """Waits for the break of an oplock in the background; does `before`, then acknowledges it."""

        def acknowledge():
            if not self.broken.response_event.wait(seconds):
                return
            level = struct.unpack_from("<HB", self.broken.response["data"].get_value())[1]
            before()
            request = OplockBreakAcknowledgement()
            request["oplock_level"] = level
            request["file_id"] = opened.file_id
            sent = self.connection.send(request, self.session.session_id, self.tree.tree_connect_id)
            self.connection.receive(sent)

        thread = threading.Thread(target=acknowledge)
        thread.start()
        return thread

    def disconnect(self) -> None:
        self.connection.outstanding_requests.pop(BREAK_MESSAGE_ID, None)
        with contextlib.suppress(Exception):
            self.connection.disconnect(True)
