"""HTTP as attackers write it: lengths that disagree, headers without end, clients that wait for nothing.
Each test asks the server afterwards whether it still serves others.

HOLDFAST_ATTACK_CONNECTIONS=10000 and HOLDFAST_ATTACK_UPLOAD_MIB=10240 are the long form.
"""

import concurrent.futures
import contextlib
import os
import re
import resource
import socket
import tempfile
import threading
import time
import urllib.parse

import pytest
from own_server import own_program
from server_process import ServerProcess
from support import Account, Raw

CONNECTIONS = int(os.environ.get("HOLDFAST_ATTACK_CONNECTIONS", "500"))
UPLOAD_MIB = int(os.environ.get("HOLDFAST_ATTACK_UPLOAD_MIB", "300"))
CUT_SECONDS = 30
# What an idle connection may cost: its task, the buffer that it reads into (8 KiB) and that of an answer's head.
CONNECTION_KIB_MAX = 24
UPLOAD_GROWTH_KIB_MAX = 64 * 1024


class Server(ServerProcess):
    """A separate process, on a data folder, so that its data is not in memory."""

    def __init__(self, folder: str, *settings: str):
        super().__init__(own_program(), "--data", folder, "--log=off", *settings, listening=["blob"])
        self.raw = Raw(Account.of(self.connection_string()))

    def connect(self) -> socket.socket:
        endpoint = self.raw.account.endpoint
        return socket.create_connection((endpoint.hostname, endpoint.port), timeout=CUT_SECONDS + 30)

    def says(self, sent: bytes) -> bytes:
        """The whole answer until the server closes the connection."""
        with contextlib.closing(self.connect()) as client:
            client.sendall(sent)
            client.shutdown(socket.SHUT_WR)
            return b"".join(iter(lambda: client.recv(65536), b""))


@pytest.fixture(scope="module")
def server():
    with tempfile.TemporaryDirectory() as folder, Server(folder) as server:
        assert server.raw.send("PUT", "/attacked", "restype=container").status == 201
        yield server


@pytest.fixture(autouse=True)
def others_are_still_served(server):
    yield
    assert server.process.poll() is None
    assert server.raw.send("GET", "/attacked", "restype=container").status == 200


def statuses(answers: bytes) -> list[int]:
    return [int(status) for status in re.findall(rb"HTTP/1\.1 (\d{3}) ", answers)]


HIDDEN = b"GET /hidden HTTP/1.1\r\nHost: h\r\n\r\n"


@pytest.mark.parametrize(
    "headers",
    [
        b"Content-Length: 5\r\nContent-Length: 6\r\n",
        b"Content-Length: 5, 6\r\n",
        b"Content-Length: +5\r\n",
        b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
        b"Transfer-Encoding: identity, chunked\r\n",
        b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
        b"Transfer-Encoding : chunked\r\n",
        b"Transfer-Encoding: xchunked\r\n",
        b"Content-Length: 18446744073709551616\r\n",
        b"X-A: b\r\n folded\r\n",
        b"X-A: b\r\n\tTransfer-Encoding: chunked\r\n",
        b" X-A: b\r\n",
        b"X-A: b\rContent-Length: 5\r\n",
        b"X-A: \x00\r\n",
        b": nameless\r\n",
    ],
)
def test_a_request_that_two_servers_would_read_differently_is_refused_whole(server, headers):
    answers = server.says(b"PUT /a/b HTTP/1.1\r\nHost: h\r\n" + headers + b"\r\n" + HIDDEN)
    # One refusal; what follows is never taken for another request.
    assert len(statuses(answers)) == 1 and statuses(answers)[0] in (400, 501), answers


def test_a_request_behind_a_body_is_not_taken_for_another(server):
    length = len(HIDDEN)
    sent = b"PUT /a/b HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n%s" % (length, HIDDEN)
    assert len(statuses(server.says(sent))) == 1
    chunked = b"PUT /a/b HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n"
    assert len(statuses(server.says(chunked % (length, HIDDEN)))) == 1


@pytest.mark.parametrize(
    "flood",
    [b"X-A: b\r\n" * 100_000, b"X-A: " + b"b" * 5_000_000 + b"\r\n", b"X-" + b"a" * 5_000_000 + b": b\r\n"],
    ids=["many", "a long value", "a long name"],
)
def test_a_flood_of_headers_is_refused(server, flood):
    before = server.memory_kib()
    with contextlib.closing(server.connect()) as client:
        with contextlib.suppress(OSError):
            client.sendall(b"GET / HTTP/1.1\r\n" + flood + b"\r\n")
        answer = b""
        with contextlib.suppress(OSError):
            answer = client.recv(65536)
    assert answer == b"" or statuses(answer) == [431], answer[:200]
    assert server.memory_kib() - before < 8 * 1024


def test_a_long_request_line_is_refused(server):
    answers = server.says(b"GET /" + b"a" * 200_000 + b" HTTP/1.1\r\n\r\n")
    assert statuses(answers) in ([400], [414], [431]), answers[:200]


def slow_head(server, kind: str) -> bytes:
    """What is sent at once before the client becomes slow."""
    if kind == "headers":
        return b"PUT /devstoreaccount1/attacked/slow HTTP/1.1\r\nHost: h\r\n"
    raw, path = server.raw, "/devstoreaccount1/attacked/slow"
    headers = {"x-ms-date": time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime()), "x-ms-version": raw.version}
    headers |= {"x-ms-blob-type": "BlockBlob", "Content-Length": "1000000"}
    headers["Authorization"] = raw.authorization("PUT", path, "", headers)
    lines = [f"PUT {path} HTTP/1.1", "Host: h", *(f"{name}: {value}" for name, value in headers.items()), "", ""]
    return "\r\n".join(lines).encode()


def time_until_cut(server, kind: str, pace: float | None) -> tuple[float, bytes]:
    """How long a client that sends a byte every `pace` seconds, or nothing, keeps its connection."""
    with contextlib.closing(server.connect()) as client:
        client.sendall(slow_head(server, kind))
        client.settimeout(pace or CUT_SECONDS + 10)
        began, answer = time.monotonic(), b""
        while time.monotonic() - began < CUT_SECONDS + 10:
            try:
                if not (received := client.recv(65536)):
                    break
                answer += received
            except TimeoutError:
                with contextlib.suppress(OSError):
                    client.sendall(b"x")
            except OSError:
                break
        return time.monotonic() - began, answer


def test_slow_clients_are_cut_off(server):
    """All of them at once, since each takes long."""
    cases = [(kind, pace) for kind in ("headers", "body") for pace in (None, 1.0)]
    with concurrent.futures.ThreadPoolExecutor(len(cases)) as pool:
        cut = list(pool.map(lambda case: time_until_cut(server, *case), cases))
    for case, (took, answer) in zip(cases, cut, strict=True):
        # A client that gets an answer has a few more seconds to read it.
        assert took < CUT_SECONDS + 8, (case, took)
        assert statuses(answer) in ([], [408], [500], [503]), (case, answer)


def percentile(times: list[float], share: float) -> float:
    return sorted(times)[int(len(times) * share)]


def good_clients(server, seconds: float) -> list[float]:
    """How long small reads take, of four clients that read all the time."""
    times: list[float] = []

    def read():
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            began = time.monotonic()
            assert server.raw.send("GET", "/attacked", "restype=container").status == 200
            times.append(time.monotonic() - began)

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return times


@pytest.mark.alone
def test_idle_connections_cost_little_and_slow_nobody_down():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = CONNECTIONS + 256
    if hard < wanted:
        pytest.skip(f"{wanted} files cannot be open at once here")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
    with tempfile.TemporaryDirectory() as folder:
        server = Server(folder, f"--max-connections={CONNECTIONS + 100}")
        try:
            assert server.raw.send("PUT", "/attacked", "restype=container").status == 201
            good_clients(server, 1)
            alone = percentile(good_clients(server, 3), 0.99)
            before = server.memory_kib()
            with contextlib.ExitStack() as stack:
                for at in range(CONNECTIONS):
                    client = stack.enter_context(contextlib.closing(server.connect()))
                    # Half of them have had an answer, half send nothing.
                    if at % 2:
                        client.sendall(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n")
                        assert client.recv(4096)
                beside = percentile(good_clients(server, 3), 0.99)
                grown = server.memory_kib() - before
            print(f"{CONNECTIONS} idle connections: {grown} KiB, p99 {alone * 1000:.1f} ms, then {beside * 1000:.1f} ms")
            assert grown < CONNECTIONS * CONNECTION_KIB_MAX, f"{grown} KiB for {CONNECTIONS} connections"
            # Twice as long, or the noise of a busy machine.
            assert beside < max(2 * alone, alone + 0.05), (alone, beside)
        finally:
            server.stop()
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_large_upload_stays_within_fixed_memory(server):
    raw, path, piece = server.raw, "/devstoreaccount1/attacked/large", os.urandom(1024 * 1024)
    block_mib = min(UPLOAD_MIB, 2048)
    before = server.memory_kib()
    peak = before
    for at in range(UPLOAD_MIB // block_mib):
        query = f"comp=block&blockid={urllib.parse.quote('%04d' % at)}"
        headers = {"x-ms-date": time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime()), "x-ms-version": raw.version}
        headers["Content-Length"] = str(block_mib * len(piece))
        headers["Authorization"] = raw.authorization("PUT", path, query, headers)
        lines = [f"PUT {path}?{query} HTTP/1.1", "Host: h", *(f"{name}: {value}" for name, value in headers.items()), "", ""]
        with contextlib.closing(server.connect()) as client:
            client.settimeout(300)
            client.sendall("\r\n".join(lines).encode())
            for _ in range(block_mib):
                client.sendall(piece)
                peak = max(peak, server.memory_kib())
            assert statuses(client.recv(65536)) == [201]
    print(f"{UPLOAD_MIB} MiB: {peak - before} KiB more at most")
    assert peak - before < UPLOAD_GROWTH_KIB_MAX, peak - before
