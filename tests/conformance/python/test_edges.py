"""What a careless server would pass over in silence, and what clients do that break off half-way."""

import contextlib
import socket
import time
import uuid
from datetime import datetime, timedelta, timezone
from email.utils import formatdate

import pytest
from azure.storage.blob import BlobSasPermissions, generate_blob_sas
from support import NEWEST_VERSION, base64_text, md5, unique

KEY = {
    "x-ms-encryption-key": base64_text(b"k" * 32),
    "x-ms-encryption-key-sha256": base64_text(b"h" * 32),
    "x-ms-encryption-algorithm": "AES256",
}
NOT_BUILT = {
    "key": KEY,
    "encryption scope": {"x-ms-encryption-scope": "scope1"},
    "legal hold": {"x-ms-legal-hold": "true"},
    "immutability": {
        "x-ms-immutability-policy-until-date": formatdate(time.time() + 3600, usegmt=True),
        "x-ms-immutability-policy-mode": "Unlocked",
    },
    "expiry": {"x-ms-expiry-option": "RelativeToNow", "x-ms-expiry-time": "1000"},
}


# Snapshots and versions, of which there are none yet

SNAPSHOT = "2026-01-02T03:04:05.0000000Z"


# Headers


# Clients that go away, and bodies that nobody wants


def head(account, raw, method, path, headers):
    sent = {"x-ms-date": formatdate(usegmt=True), "x-ms-version": raw.version, **headers}
    target = account.endpoint.path.rstrip("/") + path
    sent["Authorization"] = raw.authorization(method, target, "", sent)
    lines = [f"{method} {target} HTTP/1.1", f"Host: {account.endpoint.netloc}"]
    return "\r\n".join(lines + [f"{name}: {value}" for name, value in sent.items()]).encode() + b"\r\n\r\n"


def connect(account):
    if account.endpoint.scheme == "https":
        pytest.skip("the bytes are sent without TLS")
    address = (account.endpoint.hostname, account.endpoint.port)
    return contextlib.closing(socket.create_connection(address, timeout=30))


def test_blobs_of_clients_that_went_away_are_whole(account, container, raw):
    """A client that is gone may find its blob written or not, but never a blob without its bytes."""
    contents = {f"b{number}": bytes([number]) * 100_000 for number in range(1, 41)}
    for name, content in contents.items():
        headers = {"x-ms-blob-type": "BlockBlob", "Content-Length": str(len(content))}
        with connect(account) as connection:
            connection.sendall(head(account, raw, "PUT", f"/{container.container_name}/{name}", headers) + content)
            time.sleep(0.0005 * len(name) * (contents[name][0] % 5))
    # Space that was given back by mistake would be taken by these.
    for number in range(40):
        container.upload_blob(f"other{number}", b"\xff" * 100_000)
    for blob in container.list_blobs(name_starts_with="b"):
        assert container.download_blob(blob.name).readall() == contents[blob.name]
