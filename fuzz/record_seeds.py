"""Records what the official SDKs and an SMB client send, and keeps it as seeds of the fuzz targets.

Usage: .local/python/bin/python fuzz/record_seeds.py PROGRAM
The program is `holdfast`; it is started with its data in memory and ended again. Seeds that are there
are left alone, so that a second run only adds what is new.
"""

import contextlib
import datetime
import hashlib
import io
import pathlib
import re
import socket
import struct
import sys
import threading
import urllib.parse
import uuid

from azure.core import MatchConditions
from azure.data.tables import TableServiceClient, UpdateMode
from azure.storage.blob import (
    BlobServiceClient,
    ContainerSasPermissions,
    DelimitedTextDialect,
    generate_account_sas,
    generate_container_sas,
)
from azure.storage.fileshare import ShareServiceClient
from azure.storage.queue import QueueServiceClient
import smbclient
from smbprotocol.change_notify import CompletionFilter, FileSystemWatcher
from smbprotocol.connection import Connection
from smbprotocol.open import (
    CreateDisposition,
    CreateOptions,
    FilePipePrinterAccessMask,
    ImpersonationLevel,
    Open,
    RequestedOplockLevel,
    ShareAccess,
    SMB2LockElement,
    SMB2LockRequest,
)
from smbprotocol.session import Session
from smbprotocol.tree import TreeConnect

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "tests/harness"))

from server_process import SERVICES, ServerProcess, connection_string

SEEDS = pathlib.Path(__file__).parent / "seeds"
SEED_BYTES_MAX = 4096
# More requests of one kind add nothing.
REQUESTS_OF_A_KIND_MAX = 1
ACCOUNT, KEY = "devstoreaccount1", "YSBrZXkgb2YgdGhlIGZ1enplcnM="
SDDL = "O:BAG:SYD:(A;;FA;;;SY)(A;OICI;0x1200a9;;;BU)"
CSV = b"id,name\n1,Ada\n2,\"Gr\"\"ace\"\n"


def keep(target: str, seed: bytes) -> None:
    if 0 < len(seed) <= SEED_BYTES_MAX:
        folder = SEEDS / target
        folder.mkdir(parents=True, exist_ok=True)
        (folder / hashlib.sha256(seed).hexdigest()[:12]).write_bytes(seed)


class Recorder:
    """A relay to a port that records what clients send."""

    def __init__(self, port: int):
        self.target = port
        self.sent: list[bytearray] = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                server = socket.create_connection(("127.0.0.1", self.target))
                kept = bytearray()
                self.sent.append(kept)
                for source, sink, record in ((client, server, kept), (server, client, None)):
                    threading.Thread(target=relay, args=(source, sink, record), daemon=True).start()


def relay(source, sink, record):
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            if record is not None:
                record.extend(data)
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)


def requests_of(sent: bytes):
    """The head and the body of each request on a connection."""
    while b"\r\n\r\n" in sent:
        head, rest = sent.split(b"\r\n\r\n", 1)
        lines = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, value in (line.split(":", 1) for line in lines[1:])}
        length = int(headers.get("content-length", 0))
        yield head + b"\r\n\r\n", lines[0].split(" ")[1], headers, rest[:length]
        sent = rest[length:]


def kind_of(head: bytes, target: str) -> tuple:
    names = sorted(line.split(b":")[0].lower() for line in head.split(b"\r\n")[1:-2])
    query = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(target).query))
    told = tuple(query.get(name) for name in ("comp", "restype", "$filter"))
    return head.split(b" ")[0], target.count("/"), tuple(names), tuple(sorted(query)), told


def keep_http(sent: bytes, kinds: dict) -> None:
    for head, target, headers, body in requests_of(bytes(sent)):
        kind = kind_of(head, target)
        kinds[kind] = kinds.get(kind, 0) + 1
        if kinds[kind] > REQUESTS_OF_A_KIND_MAX:
            continue
        keep("request", head)
        keep("authorization", f"{target}\n{headers.get('authorization', '')}".encode())
        query = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(target).query))
        for name in ("range", "x-ms-range"):
            keep("ranges", headers.get(name, "").encode())
        for text in (headers.get("x-ms-if-tags"), headers.get("x-ms-tags"), query.get("where")):
            keep("tag_predicate", (text or "").encode())
        keep("odata_filter", query.get("$filter", "").encode())
        keep("source_url", headers.get("x-ms-copy-source", "").encode())
        keep("security_descriptor", headers.get("x-ms-file-permission", "").encode())
        if "x-ms-structured-body" in headers:
            keep("structured_body", body)
        elif headers.get("content-type", "").startswith("multipart/"):
            keep("batch", headers["content-type"].encode() + b"\n" + body)
        elif body.lstrip(b"\xef\xbb\xbf").startswith(b"<"):
            keep("xml", body)
            for expression in re.findall(rb"<Expression>(.*?)</Expression>", body, re.DOTALL):
                keep("sql", expression)
        elif headers.get("content-type", "").startswith("application/json"):
            keep("entity", body)


def use_blobs(connection: str) -> None:
    service = BlobServiceClient.from_connection_string(connection, retry_total=0)
    container = service.create_container("seeds")
    blob = container.get_blob_client("folder/a blob.csv")
    blob.upload_blob(CSV, tags={"project": "alpha", "stage": "2"}, metadata={"Name": "value"})
    blob.upload_blob(CSV, overwrite=True, validate_content=True, if_tags_match_condition="\"project\" = 'alpha'")
    structured = container.get_blob_client("structured")
    structured.stage_block("AAAA", io.BytesIO(CSV), len(CSV), validate_content="crc64")
    properties = blob.get_blob_properties()
    condition = {"etag": properties["etag"], "match_condition": MatchConditions.IfNotModified}
    blob.download_blob(offset=1, length=7, **condition).readall()
    blob.set_blob_tags({"project": "beta"})
    list(service.find_blobs_by_tags("\"project\" = 'beta' AND @container = 'seeds'"))
    list(container.find_blobs_by_tags("\"project\" >= 'a' AND \"project\" < 'z'"))
    dialect = DelimitedTextDialect(delimiter=",", has_header=True)
    blob.query_blob("SELECT name, id FROM BlobStorage WHERE id > 1", blob_format=dialect).readall()
    blocks = container.get_blob_client("blocks")
    blocks.stage_block("AAAA", b"one")
    blocks.commit_block_list(["AAAA"])
    blocks.get_block_list("all")
    lease = blob.acquire_lease(15)
    lease.release()
    container.get_blob_client("copy").start_copy_from_url(blob.url)
    container.set_container_access_policy({"policy": None}, public_access="blob")
    service.set_service_properties(cors=[])
    pages = container.get_blob_client("pages")
    pages.create_page_blob(1024)
    pages.upload_page(b"x" * 512, 0, 512)
    pages.get_page_ranges()
    container.delete_blobs("copy", "blocks")
    list(container.walk_blobs())
    end = datetime.datetime.now(datetime.UTC) + datetime.timedelta(hours=1)
    allowed = ContainerSasPermissions(read=True, list=True)
    token = generate_container_sas(ACCOUNT, "seeds", KEY, permission=allowed, expiry=end)
    list(BlobServiceClient(service.url, credential=token).get_container_client("seeds").list_blobs())
    token = generate_account_sas(ACCOUNT, KEY, resource_types="sco", permission="rl", expiry=end)
    list(BlobServiceClient(service.url, credential=token).list_containers())


def use_tables(connection: str) -> None:
    service = TableServiceClient.from_connection_string(connection, retry_total=0)
    table = service.create_table("seeds")
    now = datetime.datetime.now(datetime.UTC)
    row = {"PartitionKey": "p", "RowKey": "r", "Id": uuid.uuid4(), "When": now, "Size": 1.5, "Bytes": b"\0\1"}
    table.create_entity(row)
    table.upsert_entity({**row, "Count": 7}, mode=UpdateMode.MERGE)
    for text in (
        "PartitionKey eq 'p' and RowKey ge 'a' and RowKey lt 'z'",
        "Size gt 1.0 or not (Count le 7 and Name ne 'it''s')",
        f"Id eq guid'{row['Id']}' and When ge datetime'2020-01-01T00:00:00Z' and Bytes eq X'0001'",
    ):
        list(table.query_entities(text, select=["RowKey"]))
    rows = [("upsert", {"PartitionKey": "p", "RowKey": str(at), "Text": "a"}) for at in range(3)]
    table.submit_transaction(rows)
    table.delete_entity("p", "r")
    table.set_table_access_policy({"policy": None})


def use_queues(connection: str) -> None:
    service = QueueServiceClient.from_connection_string(connection, retry_total=0)
    queue = service.create_queue("seeds")
    queue.send_message("a <message>")
    message = queue.receive_message(visibility_timeout=30)
    message = queue.update_message(message, content="another")
    queue.peek_messages()
    queue.delete_message(message)


def use_files(connection: str) -> None:
    service = ShareServiceClient.from_connection_string(connection, retry_total=0)
    share = service.create_share("seeds")
    directory = share.create_directory("folder")
    file = directory.get_file_client("file.txt")
    file.create_file(100, file_permission=SDDL)
    file.upload_range(b"abc", 0, 3)
    file.download_file(0, 3).readall()
    file.get_ranges()
    share.create_permission_for_share(SDDL)
    list(directory.list_directories_and_files())
    directory.get_file_client("copy").start_copy_from_url(file.url)


def use_smb(port: int) -> None:
    connection = Connection(uuid.uuid4(), "127.0.0.1", port)
    connection.connect()
    session = Session(connection, ACCOUNT, KEY, require_encryption=False)
    session.connect()
    tree = TreeConnect(session, r"\\127.0.0.1\seeds")
    tree.connect()
    opened = Open(tree, r"folder\smb.txt")
    access = FilePipePrinterAccessMask.GENERIC_READ | FilePipePrinterAccessMask.GENERIC_WRITE
    sharing = ShareAccess.FILE_SHARE_READ
    options = CreateOptions.FILE_NON_DIRECTORY_FILE
    opened.create(ImpersonationLevel.Impersonation, access, 0, sharing, CreateDisposition.FILE_OPEN_IF, options)
    opened.write(b"abc")
    opened.flush()
    opened.read(0, 3)
    opened.close()
    folder = Open(tree, "folder")
    options = CreateOptions.FILE_DIRECTORY_FILE
    folder.create(ImpersonationLevel.Impersonation, access, 0, sharing, CreateDisposition.FILE_OPEN, options)
    folder.query_directory("*", 37)
    folder.close()
    tree.disconnect()
    session.disconnect()
    connection.disconnect()


def use_smb_rarely(port: int, encrypt: bool) -> None:
    """What few clients do: locks, notices, oplocks, copies on the server, compounds, envelopes."""
    connection = Connection(uuid.uuid4(), "127.0.0.1", port)
    connection.connect()
    options = {"port": port, "connection_cache": {f"127.0.0.1:{port}": connection}}
    session = smbclient.register_session("127.0.0.1", ACCOUNT, KEY, encrypt=encrypt, **options)
    base = r"\\127.0.0.1\seeds"
    with smbclient.open_file(rf"{base}\one.txt", mode="w", **options) as file:
        file.write("abc")
    smbclient.copyfile(rf"{base}\one.txt", rf"{base}\two.txt", **options)
    smbclient.truncate(rf"{base}\two.txt", 2, **options)
    smbclient.utime(rf"{base}\two.txt", (1, 2), **options)
    smbclient.rename(rf"{base}\two.txt", rf"{base}\three.txt", **options)
    smbclient.stat(rf"{base}\three.txt", **options)
    smbclient.stat_volume(base, **options)
    list(smbclient.scandir(base, **options))
    smbclient.remove(rf"{base}\three.txt", **options)
    tree = TreeConnect(session, base)
    tree.connect()
    opened = Open(tree, "one.txt")
    access = FilePipePrinterAccessMask.GENERIC_READ | FilePipePrinterAccessMask.GENERIC_WRITE
    kind, oplock = CreateOptions.FILE_NON_DIRECTORY_FILE, RequestedOplockLevel.SMB2_OPLOCK_LEVEL_BATCH
    opened.create(
        ImpersonationLevel.Impersonation, access, 0, 0, CreateDisposition.FILE_OPEN, kind, oplock_level=oplock
    )
    element, request = SMB2LockElement(), SMB2LockRequest()
    element["offset"], element["length"], element["flags"] = 1, 2, 2
    request["file_id"], request["locks"] = opened.file_id, [element]
    connection.receive(connection.send(request, session.session_id, tree.tree_connect_id))
    opened.close()
    folder = Open(tree, "")
    kind = CreateOptions.FILE_DIRECTORY_FILE
    sharing = ShareAccess.FILE_SHARE_READ
    folder.create(ImpersonationLevel.Impersonation, access, 0, sharing, CreateDisposition.FILE_OPEN, kind)
    watcher = FileSystemWatcher(folder)
    watcher.start(CompletionFilter.FILE_NOTIFY_CHANGE_FILE_NAME)
    watcher.cancel()
    folder.close()
    connection.echo(session.session_id)
    connection.disconnect()


def smb_kind_of(packet: bytes) -> tuple:
    """An envelope, or the commands of a packet with the level that two of them ask for."""
    kind, at = [packet[:4]], 0
    while packet[at : at + 4] == b"\xfeSMB":
        command, following = struct.unpack_from("<H", packet, at + 12)[0], struct.unpack_from("<I", packet, at + 20)[0]
        told = packet[at + 66 : at + 68] if command in (16, 17) else b""
        kind.append((command, told))
        if not following:
            break
        at += following
    return tuple(kind)


def keep_smb(sent: bytes, kinds: dict) -> None:
    tokens = b""
    while len(sent) > 4:
        length = struct.unpack(">I", sent[:4])[0]
        packet, sent = sent[4 : 4 + length], sent[4 + length :]
        kind = smb_kind_of(packet)
        kinds[kind] = kinds.get(kind, 0) + 1
        # The second logon, creation and closing differ from the first.
        if kinds[kind] <= 2:
            keep("smb_packet", packet)
        if len(packet) > 80 and packet[:4] == b"\xfeSMB" and struct.unpack_from("<H", packet, 12)[0] == 1:
            at, size = struct.unpack_from("<HH", packet, 76)
            tokens += struct.pack("<H", size) + packet[at : at + size]
    keep("smb_logon", tokens)


def compound(*requests: tuple[int, bytes]) -> bytes:
    """Requests of SMB in one message, by their commands and bodies."""
    message = b""
    for at, (command, body) in enumerate(requests):
        is_last = at + 1 == len(requests)
        padded = body if is_last else body.ljust((len(body) + 7) // 8 * 8, b"\0")
        following = 0 if is_last else 64 + len(padded)
        message += struct.pack("<4sHHIHHIIQ32x", b"\xfeSMB", 64, 128, 0, command, 1, 0, following, 128 * at) + padded
    return message


def keep_compounds() -> None:
    """Requests whose answers together exceed one message."""
    length = 8 * 1024 * 1024
    read = (8, struct.pack("<HBBIQ16xIIIHHB", 49, 80, 0, length, 0, 0, 0, 0, 0, 0, 0))
    directory = (14, struct.pack("<HBBI16xHHIH", 33, 37, 1, 0, 96, 2, length, 0x2A))
    information = (16, struct.pack("<HBBIHHIII16x", 41, 1, 18, length, 0, 0, 0, 0, 0))
    control = (11, struct.pack("<HHI16xIIIIIIII", 57, 0, 0x940CF, 0, 0, 0, 0, 0, length, 1, 0))
    watch = (15, struct.pack("<HHI16xII", 32, 1, length, 0x1FF, 0))
    keep("smb_answers", compound(read, read))
    keep("smb_answers", compound(read, directory, information, control, watch))
    keep("smb_answers", compound(*[read] * 64))


def keep_written() -> None:
    """What none of our clients sends."""
    keep("chunked_body", b"3;a=b\r\nabc\r\n10\r\n0123456789abcdef\r\n0\r\nname: value\r\n\r\n")
    keep("query_text", CSV)
    keep("query_text", b'{"id":1,"in":{"a":[1,{"b":null}]}}\n{"id":"2"}\n')
    keep("query_text", b'[{"id":1.5e3,"in":{"x":"\\u00e9"}},{"id":true}]')
    keep("like", b"%a_c%\nabcabxaac")
    keep("like", b"a%b%_c\naXbXbYc")
    keep("like", b"50!%%!_\n50% of it_")
    keep("like", b"%%__%%\nab")
    keep("like", b"%\xc3\xbc_%\nGr\xc3\xbcn")
    keep("sql", b"SELECT * FROM BlobStorage WHERE name LIKE 'A%' AND id BETWEEN 1 AND 2 LIMIT 3")
    keep("sql", b"SELECT COUNT(*) FROM BlobStorage WHERE CAST(id AS INT) IN (1, 2) OR name IS NULL")
    keep("sql", b"SELECT SUBSTRING(name, 1, 2), TRIM(name) || 'x', -id * 2 + 1 FROM BlobStorage[*].in.a[0]")
    keep("sql", b"SELECT sys.split(1048576) FROM BlobStorage")
    keep("sql", b"SELECT DATE_ADD(day, 1, TO_TIMESTAMP(\"when\")) FROM BlobStorage WHERE NOT (id = 1)")
    parquet = pathlib.Path(__file__).parent.parent / "tests/conformance/python/items.parquet"
    keep("parquet", parquet.read_bytes())
    keep("structured_body", bytes.fromhex(
        "015600000000000000010003000100040000000000000068656c6c53063d2980bcddf2020004000000000000006f20776f"
        "ae8e5b98434aa0b903000300000000000000726c64abb6c3b13b832934be8eeaf6c3d5298d"
    ))
    keep("smb_packet", bytes.fromhex(  # the first call of the pipe srvsvc
        "05000b03100000004800000001000000b810b81000000000010000000000010"
        "0c84f324b7016d30112785a47bf6ee18803000000045d888aeb1cc9119fe808002b10486002000000"
    ))
    keep("smb_packet", struct.pack("<4sHHIHH", b"\xfeSMB", 64, 1, 0, 18, 1) + bytes(48) + struct.pack("<HB21x", 24, 1))
    keep_compounds()
    keep("ranges", b"bytes=0-511")
    keep("ranges", b"bytes=5-")
    keep("security_descriptor", SDDL.encode())
    keep("security_descriptor", bytes.fromhex(
        "0100048014000000240000000000000034000000010200000000000520000000200200000102000000000005200000"
        "0020020000020030000200000000001400ff011f00010100000000000512000000000014008900120001010000000000"
        "0501000000"
    ))
    for url in ("https://[::1]:443/a/b?sig=x&snapshot=1", "http://account.blob.localhost:10000/a/%2e%2e/b", "//host/a"):
        keep("source_url", url.encode())


def main() -> None:
    settings = ["--memory", "--log=off", f"--account={ACCOUNT}:{KEY}"]
    with ServerProcess(sys.argv[1], *settings, listening=[*SERVICES, "smb"]) as server:
        recorders = {name: Recorder(server.ports[name]) for name in (*SERVICES, "smb")}
        addresses = {name: f"http://127.0.0.1:{recorders[name].port}" for name in SERVICES}
        connection = connection_string(addresses, ACCOUNT, KEY)
        for use in (use_blobs, use_tables, use_queues, use_files):
            use(connection)
        use_smb(recorders["smb"].port)
        for encrypt in (False, True):
            use_smb_rarely(recorders["smb"].port, encrypt)
    kinds: dict = {}
    for name, recorder in recorders.items():
        for sent in recorder.sent:
            if name == "smb":
                keep_smb(bytes(sent), kinds)
            else:
                keep_http(sent, kinds)
    keep_written()
    print({folder.name: len(list(folder.iterdir())) for folder in sorted(SEEDS.iterdir())})


if __name__ == "__main__":
    main()
