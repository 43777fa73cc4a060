"""SMB and REST on one share: a lock or an open that shares nothing is respected by both.

A program that has locked any part of a file over SMB keeps REST writes out of the whole file, since a
REST write is an open of all of it; a lease taken by REST keeps SMB writers out.
"""

import uuid

from azure.storage.fileshare import ShareLeaseClient, ShareServiceClient
from smbprotocol.connection import Connection
from smbprotocol.exceptions import SMBResponseException
from smbprotocol.header import NtStatus
from smbprotocol.open import (
    CreateDisposition,
    CreateOptions,
    FilePipePrinterAccessMask,
    ImpersonationLevel,
    Open,
    ShareAccess,
    SMB2LockElement,
    SMB2LockRequest,
)
from smbprotocol.session import Session
from smbprotocol.tree import TreeConnect

from account import CONNECTION, SMB, attempt, credentials, unique

EXCLUSIVE, FAIL_AT_ONCE, UNLOCK = 2, 16, 4
READ_AND_WRITE = (
    FilePipePrinterAccessMask.FILE_READ_DATA | FilePipePrinterAccessMask.FILE_WRITE_DATA
)
SHARE_ALL = ShareAccess.FILE_SHARE_READ | ShareAccess.FILE_SHARE_WRITE | ShareAccess.FILE_SHARE_DELETE


def connected(share: str) -> TreeConnect:
    host, port = SMB.removeprefix("smb://").rstrip("/").rsplit(":", 1)
    connection = Connection(uuid.uuid4(), host, int(port))
    connection.connect()
    session = Session(connection, *credentials(), require_encryption=False)
    session.connect()
    tree = TreeConnect(session, rf"\\{host}\{share}")
    tree.connect()
    return tree


def opened(tree: TreeConnect, name: str, sharing: int) -> Open:
    file = Open(tree, name)
    file.create(
        ImpersonationLevel.Impersonation,
        READ_AND_WRITE,
        0,
        sharing,
        CreateDisposition.FILE_OPEN,
        CreateOptions.FILE_NON_DIRECTORY_FILE,
    )
    return file


def lock(file: Open, offset: int, length: int, flags: int):
    element = SMB2LockElement()
    element["offset"], element["length"], element["flags"] = offset, length, flags
    request = SMB2LockRequest()
    request["file_id"], request["locks"] = file.file_id, [element]
    tree = file.tree_connect
    connection, session = tree.session.connection, tree.session.session_id
    sent = connection.send(request, session, tree.tree_connect_id)
    connection.receive(sent)


def try_open(what: str, tree: TreeConnect, name: str):
    try:
        opened(tree, name, SHARE_ALL).close()
        print(f"{what}: done")
    except SMBResponseException as error:
        names = {value: name for name, value in vars(NtStatus).items() if name.startswith("STATUS")}
        print(f"{what}: {names[error.status]}")


with ShareServiceClient.from_connection_string(CONNECTION) as service:
    share = service.create_share(unique("locks"))
    rest = share.get_file_client("report")
    rest.upload_file(b"0123456789")
    tree = connected(share.share_name)

    file = opened(tree, "report", SHARE_ALL)
    lock(file, 0, 4, EXCLUSIVE | FAIL_AT_ONCE)
    print("SMB locks bytes 0 to 3")
    attempt("REST writes byte 2", lambda: rest.upload_range(b"x", offset=2, length=1))
    attempt("REST writes byte 7, beside them", lambda: rest.upload_range(b"x", offset=7, length=1))
    attempt("REST reads byte 2", lambda: rest.download_file(offset=2, length=1).readall())
    lock(file, 0, 4, UNLOCK)
    print("SMB unlocks them")
    attempt("REST writes byte 2", lambda: rest.upload_range(b"x", offset=2, length=1))
    file.close()

    file = opened(tree, "report", 0)
    print("SMB opens it and shares nothing")
    attempt("REST reads", lambda: rest.download_file().readall())
    attempt("REST deletes", lambda: rest.delete_file())
    file.close()
    print("SMB closes it")

    lease = ShareLeaseClient(rest)
    attempt("REST takes the lease", lease.acquire)
    try_open("SMB opens it to write", tree, "report")
    attempt("REST writes without the lease", lambda: rest.upload_range(b"y", offset=0, length=1))
    attempt(
        "REST writes with it", lambda: rest.upload_range(b"y", offset=0, length=1, lease=lease)
    )
    attempt("REST releases it", lease.release)
    try_open("SMB opens it to write", tree, "report")
    print(f"the file is {rest.download_file().readall().decode()}")

    tree.disconnect()
    tree.session.disconnect()
    tree.session.connection.disconnect()
    share.delete_share()
