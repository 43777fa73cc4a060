"""SMB clients that ask for much and read nothing of it: what the server holds for them is bounded, others
are served, and what they said last still counts. And answers of one compound that are longer together than
one message can be."""

import contextlib
import os
import pathlib
import re
import struct
import subprocess
import tempfile
import threading
import time

import pytest
from azure.storage.fileshare import ShareServiceClient
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

MIB = 1024 * 1024
READ_BYTES = 8 * MIB
CREDITS_OF_READ = READ_BYTES // 65536
CONNECTIONS, READS = 12, 60
# What answers may take, and as much again for what else the process does.
GROWTH_KIB_MAX = 2 * 256 * 1024
SHARE = "alpha"
ALL = ShareAccess.FILE_SHARE_READ | ShareAccess.FILE_SHARE_WRITE | ShareAccess.FILE_SHARE_DELETE
ASYNC = 2


class Server:
    """A process of its own, on a data folder, so that its memory is not its data."""

    def __init__(self, folder: str):
        program = os.environ.get("CONFORMANCE_PROGRAM")
        if program is None:
            pytest.skip("CONFORMANCE_PROGRAM does not name the server's program")
        off = [f"--{name}-port=off" for name in ("blob", "queue", "table", "admin")]
        settings = ["--file-port=0", "--smb-port=0", "--log=warn", f"--account={ACCOUNT}:{FIRST_KEY}"]
        self.process = subprocess.Popen(
            [program, "--data", folder, *off, *settings], stdout=subprocess.PIPE, text=True
        )
        endpoints = dict(re.findall(r"\b(\w+)=(\S+)", self.process.stdout.readline()))
        self.port = int(endpoints["smb"].rsplit(":", 1)[1])
        credential = {"account_name": ACCOUNT, "account_key": FIRST_KEY}
        file = endpoints["file"].rstrip("/")
        self.content = os.urandom(READ_BYTES)
        with ShareServiceClient(f"{file}/{ACCOUNT}", credential=credential) as service:
            share = service.create_share(SHARE)
            share.get_file_client("large").upload_file(self.content)
            share.create_directory("directory")

    def memory_kib(self) -> int:
        text = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+) kB", text).group(1))

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(30)
        self.process.stdout.close()


@pytest.fixture(scope="module")
def server():
    with tempfile.TemporaryDirectory() as folder:
        server = Server(folder)
        try:
            yield server
        finally:
            server.stop()


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
    """A client that sends what it likes and reads only if it is told to."""

    def __init__(self, tree):
        self.tree, self.session, self.stop = tree, tree.session, threading.Event()
        self.connection = tree.session.connection
        self.file = opened(tree, "large")
        self.directory = opened(tree, "directory", directory=True)
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
        """Sends a request; its number."""
        message_id = self.message_id
        self.send(self.request(command, body, charge, async_id))
        return message_id

    def read(self) -> int:
        body = struct.pack("<HBBIQ16sIIIHHB", 49, 80, 0, READ_BYTES, 0, self.file.file_id, 0, 0, 0, 0, 0, 0)
        return self.packet(Commands.SMB2_READ, body, CREDITS_OF_READ)

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
        # Sooner than those who do not read are given up.
        assert time.monotonic() - began < 4


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
