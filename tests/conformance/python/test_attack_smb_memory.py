"""SMB clients that ask for much and read nothing: what the server holds for them is bounded, others
are served, and what they said last still counts. And answers of one compound that are longer together than
one message can be."""

import contextlib
import os
import struct
import tempfile
import threading
import time

import pytest
from azure.storage.fileshare import ShareServiceClient
from own_server import own_program
from server_process import ServerProcess
from smb_relay import receive
from smbprotocol.connection import Dialects
from smbprotocol.header import Commands, NtStatus
from smbprotocol.open import (
    CreateDisposition,
    CreateOptions,
    FilePipePrinterAccessMask as Access,
    ImpersonationLevel,
    Open,
    ShareAccess,
    SMB2ReadRequest,
    SMB2ReadResponse,
)
from smbprotocol.tree import TreeConnect
from test_smb_logon import ACCOUNT, FIRST_KEY, logged_on

pytestmark = pytest.mark.alone

MIB = 1024 * 1024
READ_BYTES = 8 * MIB
CONNECTIONS, READS = 12, 60
# The limit of answers, and as much again for other memory of the process.
GROWTH_KIB_MAX = 2 * 256 * 1024
SHARE = "alpha"
# Answers short enough to be counted with their requests.
SMALL_CONNECTIONS, SMALL_READS, SMALL_READ_BYTES = 4, 8000, 4096
COPIES, CHUNKS_OF_COPY = 2000, 16
SHARES, PIPES = 300, 30
RESUME_KEY, COPY_CHUNK = 0x140078, 0x1440F2
ALL = ShareAccess.FILE_SHARE_READ | ShareAccess.FILE_SHARE_WRITE | ShareAccess.FILE_SHARE_DELETE
ASYNC = 2


class Server(ServerProcess):
    """A separate process, on a data folder, so that its data is not in memory."""

    def __init__(self, folder: str):
        settings = ["--data", folder, "--log=warn", f"--account={ACCOUNT}:{FIRST_KEY}"]
        super().__init__(own_program(), *settings, listening=["file", "smb"])
        self.port = self.ports["smb"]
        self.content = os.urandom(READ_BYTES)
        self.service = ShareServiceClient.from_connection_string(self.connection_string(ACCOUNT, FIRST_KEY))
        share = self.service.create_share(SHARE)
        share.get_file_client("large").upload_file(self.content)
        share.create_directory("directory")

    def stop(self) -> None:
        self.service.close()
        super().stop()


@pytest.fixture(scope="module")
def server():
    with tempfile.TemporaryDirectory() as folder, Server(folder) as server:
        yield server


def opened(tree, name: str, access=Access.GENERIC_READ, sharing=ALL, directory=False) -> Open:
    option = CreateOptions.FILE_DIRECTORY_FILE if directory else CreateOptions.FILE_NON_DIRECTORY_FILE
    file = Open(tree, name)
    file.create(ImpersonationLevel.Impersonation, access, 0, sharing, CreateDisposition.FILE_OPEN, option)
    return file


@contextlib.contextmanager
def connected(server, credits: int = 8000, **logon):
    """A tree with many credits."""
    with logged_on(server.port, signs=False, **logon) as session:
        tree = TreeConnect(session, rf"\\127.0.0.1\{SHARE}")
        tree.connect()
        for _ in range(2):
            session.connection.echo(sid=session.session_id, credit_request=credits)
        yield tree


class Mute:
    """A client that sends anything and reads only on request."""

    def __init__(self, tree, file: Open | None = None, directory: Open | None = None):
        self.tree, self.session, self.stop = tree, tree.session, threading.Event()
        self.connection = tree.session.connection
        self.file = file or opened(tree, "large")
        self.directory = directory or opened(tree, "directory", directory=True)
        transport = self.connection.transport
        self.socket = transport._sock
        transport.recv = self.forever
        # The answer that the package's thread waits for is the last that it gets.
        self.connection.echo(sid=self.session.session_id)
        self.message_id = self.connection.sequence_window["low"]

    def forever(self, timeout):
        self.stop.wait()

    def request(self, command: int, body: bytes, charge: int = 1, async_id: int | None = None, has_next=False) -> bytes:
        target = struct.pack("<II", 0, self.tree.tree_connect_id)
        flags = 0
        if async_id is not None:
            target, flags = struct.pack("<Q", async_id), ASYNC
        if has_next:
            body = body.ljust((len(body) + 7) // 8 * 8, b"\0")
        following = 64 + len(body) if has_next else 0
        header = struct.pack(
            "<4sHHIHHIIQ8sQ16s", b"\xfeSMB", 64, charge, 0, command, charge, flags, following, self.message_id, target,
            self.session.session_id, bytes(16),
        )  # fmt: skip
        self.message_id += 0 if command == Commands.SMB2_CANCEL else charge
        return header + body

    def send(self, *requests: bytes) -> None:
        message = b"".join(requests)
        self.socket.sendall(struct.pack(">I", len(message)) + message)

    def packet(self, command: int, body: bytes, charge: int = 1, async_id: int | None = None) -> int:
        """Sends a request; returns its number."""
        message_id = self.message_id
        self.send(self.request(command, body, charge, async_id))
        return message_id

    def read(self, length: int = READ_BYTES) -> int:
        body = struct.pack("<HBBIQ16sIIIHHB", 49, 80, 0, length, 0, self.file.file_id, 0, 0, 0, 0, 0, 0)
        return self.packet(Commands.SMB2_READ, body, (length + 65535) // 65536)

    def control(self, code: int, file: Open, data: bytes, answer_bytes: int) -> int:
        body = struct.pack(
            "<HHI16sIIIIIIII", 57, 0, code, file.file_id, 120, len(data), 0, 0, 0, answer_bytes, 1, 0
        )  # fmt: skip
        return self.packet(Commands.SMB2_IOCTL, body + data)

    def close(self, file: Open) -> int:
        return self.packet(Commands.SMB2_CLOSE, struct.pack("<HHI16s", 24, 0, 0, file.file_id))

    def write(self, file: Open, data: bytes) -> int:
        body = struct.pack("<HHIQ16sIIHHI", 49, 112, len(data), 0, file.file_id, 0, 0, 0, 0, 0)
        return self.packet(Commands.SMB2_WRITE, body + data)

    def watching(self) -> bytes:
        return struct.pack("<HHI16sII", 32, 1, 65536, self.directory.file_id, 0x1FF, 0)

    def watch(self) -> int:
        return self.packet(Commands.SMB2_CHANGE_NOTIFY, self.watching())

    def cancel(self, async_id: int) -> None:
        self.packet(Commands.SMB2_CANCEL, struct.pack("<HH", 4, 0), async_id=async_id)

    def answer(self) -> tuple[int, int, bytes]:
        """The number, the status and the rest of the next answer."""
        message = receive(self.socket)
        status, number = struct.unpack_from("<I", message, 8)[0], struct.unpack_from("<Q", message, 24)[0]
        return number, status, message


def peak_kib(server, seconds: float) -> int:
    peak, end = 0, time.monotonic() + seconds
    while time.monotonic() < end:
        peak = max(peak, server.memory_kib())
        time.sleep(0.05)
    return peak


def read_whole(tree) -> bytes:
    file = opened(tree, "large")
    try:
        return file.read(0, READ_BYTES)
    finally:
        file.close()


def test_answers_that_nobody_reads_are_bounded_and_others_are_served(server):
    before = server.memory_kib()
    with contextlib.ExitStack() as clients:
        for _ in range(CONNECTIONS):
            client = Mute(clients.enter_context(connected(server)))
            clients.callback(client.stop.set)
            for _ in range(READS):
                client.read()
        growth = peak_kib(server, 3) - before
        print(f"{CONNECTIONS} connections with {READS} reads of 8 MiB: {growth} KiB more at most")
        assert growth < GROWTH_KIB_MAX
        began = time.monotonic()
        with connected(server) as tree:
            for _ in range(5):
                assert read_whole(tree) == server.content
        # Before clients that do not read are disconnected.
        assert time.monotonic() - began < 4


def test_small_parts_of_a_file_do_not_keep_more_of_it_in_memory(server):
    before = server.memory_kib()
    with contextlib.ExitStack() as clients:
        for _ in range(SMALL_CONNECTIONS):
            client = Mute(clients.enter_context(connected(server, credits=8192)))
            clients.callback(client.stop.set)
            for _ in range(SMALL_READS):
                client.read(SMALL_READ_BYTES)
        growth = peak_kib(server, 3) - before
        print(f"{SMALL_CONNECTIONS} connections with {SMALL_READS} reads of 4 KiB: {growth} KiB more at most")
        # What the requests of each may take, with their answers.
        assert growth < SMALL_CONNECTIONS * 64 * 1024


def test_copies_on_the_server_take_turns_with_its_memory(server):
    with connected(server, credits=8192) as tree:
        writes = Access.GENERIC_READ | Access.GENERIC_WRITE
        target = Open(tree, "copy")
        target.create(
            ImpersonationLevel.Impersonation, writes, 0, ALL, CreateDisposition.FILE_OVERWRITE_IF,
            CreateOptions.FILE_NON_DIRECTORY_FILE,
        )  # fmt: skip
        client = Mute(tree)
        client.control(RESUME_KEY, client.file, b"", 32)
        key = client.answer()[2][112:136]
        chunks = b"".join(struct.pack("<QQII", 0, 0, MIB, 0) for _ in range(CHUNKS_OF_COPY))
        asked = key + struct.pack("<II", CHUNKS_OF_COPY, 0) + chunks
        before = server.memory_kib()
        copies = {client.control(COPY_CHUNK, target, asked, 12) for _ in range(COPIES)}
        growth = peak_kib(server, 5) - before
        print(f"{COPIES} copies of {CHUNKS_OF_COPY} MiB: {growth} KiB more at most")
        assert growth < GROWTH_KIB_MAX
        number, status, _ = client.answer()
        assert number in copies and status in (NtStatus.STATUS_SUCCESS, NtStatus.STATUS_PENDING)
        client.stop.set()


def rpc(kind: int, body: bytes) -> bytes:
    return struct.pack("<BBBBIHHI", 5, 0, kind, 3, 0x10, 16 + len(body), 0, 1) + body


BIND = rpc(
    11,
    struct.pack("<HHIIHH", 4280, 4280, 0, 1, 0, 1)
    + bytes.fromhex("c84f324b7016d30112785a47bf6ee18803000000")
    + bytes.fromhex("045d888aeb1cc9119fe808002b10486002000000"),
)
LIST_SHARES = rpc(0, struct.pack("<IHH9I", 0, 0, 15, 0, 1, 1, 4, 0, 0, 0xFFFFFFFF, 0, 0))


def test_lists_of_shares_that_nobody_reads_are_bounded(server):
    for number in range(SHARES):
        server.service.create_share(f"one-of-many-shares-with-a-long-name-{number:04}")
    with logged_on(server.port, signs=False) as session:
        tree = TreeConnect(session, r"\\127.0.0.1\IPC$")
        tree.connect()
        for _ in range(2):
            session.connection.echo(sid=session.session_id, credit_request=1000)
        pipes = [opened(tree, "srvsvc", Access.GENERIC_READ | Access.GENERIC_WRITE) for _ in range(PIPES)]
        client = Mute(tree, pipes[0], pipes[0])
        before = server.memory_kib()
        calls = LIST_SHARES * (60000 // len(LIST_SHARES))
        for pipe in pipes:
            client.write(pipe, BIND)
            client.write(pipe, calls)
        statuses = [client.answer()[1] for _ in range(2 * PIPES)]
        growth = server.memory_kib() - before
        print(f"{PIPES} pipes with {60000 // len(LIST_SHARES)} lists each: {growth} KiB more")
        assert growth < GROWTH_KIB_MAX / 8
        assert statuses[0] == NtStatus.STATUS_SUCCESS
        assert set(statuses) == {NtStatus.STATUS_SUCCESS, NtStatus.STATUS_INSUFFICIENT_RESOURCES}
        # A client that has closed a pipe has room again.
        for pipe in pipes[1:]:
            client.close(pipe)
        assert {client.answer()[1] for _ in pipes[1:]} == {NtStatus.STATUS_SUCCESS}
        client.close(pipes[0])
        assert client.answer()[1] == NtStatus.STATUS_SUCCESS
        client.stop.set()
    with logged_on(server.port, signs=False) as session:
        tree = TreeConnect(session, r"\\127.0.0.1\IPC$")
        tree.connect()
        pipe = opened(tree, "srvsvc", Access.GENERIC_READ | Access.GENERIC_WRITE)
        for _ in range(3):
            pipe.write(BIND)
            assert pipe.read(0, 4280)[2] == 12
            pipe.write(LIST_SHARES)
            fragments = [pipe.read(0, 4280)]
            while not fragments[-1][3] & 2:
                fragments.append(pipe.read(0, 4280))
            assert sum(fragment.count("one-of-many".encode("utf-16-le")) for fragment in fragments) == SHARES


def test_what_a_client_says_counts_while_it_reads_nothing(server):
    with connected(server) as tree:
        client = Mute(tree)
        watching = client.watch()
        number, status, interim = client.answer()
        assert (number, status) == (watching, NtStatus.STATUS_PENDING)
        reads = {client.read() for _ in range(20)}
        time.sleep(1)
        client.cancel(struct.unpack_from("<Q", interim, 32)[0])
        ends = {}
        while len(ends) < len(reads) + 1:
            number, status, message = client.answer()
            ends[number] = status
            if number in reads:
                assert message.endswith(server.content)
        assert ends.pop(watching) == NtStatus.STATUS_CANCELLED
        assert ends == dict.fromkeys(reads, NtStatus.STATUS_SUCCESS)
        client.stop.set()


def test_a_client_that_goes_away_without_reading_leaves_nothing_behind(server):
    with connected(server) as tree:
        client = Mute(tree)
        for _ in range(READS):
            client.read()
        time.sleep(1)
        client.stop.set()
    with connected(server) as tree:
        deadline = time.monotonic() + 20
        while True:
            try:
                opened(tree, "large", sharing=0).close()
                break
            except Exception:
                assert time.monotonic() < deadline, "its file is still open"
                time.sleep(0.2)


@pytest.mark.parametrize("encrypts", [False, True], ids=["plain", "encrypted"])
@pytest.mark.parametrize("count", [2, 3, 5])
def test_answers_of_a_compound_that_are_too_long_for_one_message_come_in_several(server, encrypts, count):
    with connected(server, dialect=Dialects.SMB_3_1_1, encrypts=encrypts) as tree:
        file = opened(tree, "large")
        requests = []
        for _ in range(count):
            request = SMB2ReadRequest()
            request["length"], request["file_id"] = READ_BYTES, file.file_id
            requests.append(request)
        connection, session = tree.session.connection, tree.session
        sent = connection.send_compound(requests, session.session_id, tree.tree_connect_id, related=False)
        for request in sent:
            response = SMB2ReadResponse()
            response.unpack(connection.receive(request, timeout=60)["data"].get_value())
            assert response["buffer"].get_value() == server.content
        assert connection.echo(sid=session.session_id) >= 1
        file.close()


def test_that_an_answer_will_take_time_is_told_in_a_message_of_its_own(server):
    """Linux loses the answers that come in one encrypted message with it."""
    with connected(server) as tree:
        client = Mute(tree)
        echo, watch = client.message_id, client.message_id + 1
        client.send(
            client.request(Commands.SMB2_ECHO, struct.pack("<HH", 4, 0), has_next=True),
            client.request(Commands.SMB2_CHANGE_NOTIFY, client.watching()),
        )
        number, status, message = client.answer()
        assert (number, status, len(message)) == (echo, NtStatus.STATUS_SUCCESS, 68)
        number, status, _ = client.answer()
        assert (number, status) == (watch, NtStatus.STATUS_PENDING)
        client.stop.set()
