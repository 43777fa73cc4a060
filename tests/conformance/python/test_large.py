"""A blob too large to be held in memory: it streams in and out, and the server does not grow with it."""

import hashlib
import os

import pytest
from azure.storage.blob import BlobServiceClient
from server_process import memory_kib
from support import connection_string, unique

pytestmark = pytest.mark.alone

MIB = 1024 * 1024
SIZE = 300 * MIB
GROWTH_MAX = 160 * MIB


class Pattern:
    """A readable stream of SIZE bytes that repeat with a prime period, made as it is read."""

    block = hashlib.shake_128(b"pattern").digest(1_000_003)

    def __init__(self, size=SIZE):
        self.size, self.position = size, 0

    def read(self, count=-1):
        count = min(self.size - self.position, self.size if count is None or count < 0 else count)
        start = self.position % len(self.block)
        repeated = self.block * (count // len(self.block) + 2)
        self.position += count
        return repeated[start : start + count]

    def seekable(self):
        return True

    def tell(self):
        return self.position

    def seek(self, offset, whence=0):
        self.position = {0: 0, 1: self.position, 2: self.size}[whence] + offset
        return self.position


def digest_of(parts):
    digest = hashlib.md5()
    for part in parts:
        digest.update(part)
    return digest.digest()


def memory_peak(pid):
    return memory_kib(pid, "VmHWM") * 1024


@pytest.fixture(scope="module")
def client():
    # One request carries all of it: uploads in blocks are another operation.
    with BlobServiceClient.from_connection_string(
        connection_string(), max_single_put_size=SIZE, max_single_get_size=SIZE, retry_total=0, read_timeout=120
    ) as service:
        container = service.create_container(unique("large"))
        yield container.get_blob_client("large")
        container.delete_container()


@pytest.fixture(scope="module")
def growth():
    """How far the peak of the server's memory rose while the module ran, in bytes; None if not known."""
    pid = os.environ.get("CONFORMANCE_SERVER_PID")
    before = memory_peak(pid) if pid else None
    return lambda: memory_peak(pid) - before if pid else None


@pytest.fixture(scope="module")
def uploaded(growth, client):
    client.upload_blob(Pattern(), length=SIZE, max_concurrency=1)
    return client


def test_large_blob_streams_through(uploaded):
    expected = digest_of(iter(lambda stream=Pattern(): stream.read(MIB), b""))
    properties = uploaded.get_blob_properties()
    assert properties.size == SIZE
    assert bytes(properties.content_settings.content_md5) == expected
    assert digest_of(uploaded.download_blob(max_concurrency=1).chunks()) == expected


@pytest.mark.parametrize("offset", [0, 4 * MIB - 1, 64 * MIB + 3, SIZE - 1000])
def test_range_of_a_large_blob(uploaded, offset):
    stream = Pattern()
    stream.seek(offset)
    assert uploaded.download_blob(offset=offset, length=1000).readall() == stream.read(1000)


def test_server_memory_does_not_grow_with_the_blob(uploaded, growth):
    """Comes last here: by now the blob went in once and out once."""
    if (risen := growth()) is None:
        pytest.skip("CONFORMANCE_SERVER_PID is not set")
    assert risen < GROWTH_MAX
