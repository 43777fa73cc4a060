"""The two tables of the service's guide to concurrency: which operations answer with an ETag, and which
take conditional headers. A lease call changes no ETag."""

import pytest
from support import unique

BLOCK_LIST = b"<BlockList><Latest>YQ==</Latest></BlockList>"
SIGNED_IDENTIFIERS = b"<SignedIdentifiers/>"
ACQUIRE = {"x-ms-lease-action": "acquire", "x-ms-lease-duration": "-1"}
BREAK = {"x-ms-lease-action": "break", "x-ms-lease-break-period": "0"}

# Name, whether it answers with an ETag, and the call.
CONTAINER_TABLE = [
    ("Create Container", True, ("PUT", "restype=container", {}, b"")),
    ("Get Container Properties", True, ("GET", "restype=container", {}, None)),
    ("Get Container Metadata", True, ("GET", "restype=container&comp=metadata", {}, None)),
    ("Set Container Metadata", True, ("PUT", "restype=container&comp=metadata", {}, b"")),
    ("Get Container ACL", True, ("GET", "restype=container&comp=acl", {}, None)),
    ("Set Container ACL", True, ("PUT", "restype=container&comp=acl", {}, SIGNED_IDENTIFIERS)),
    ("Lease Container", True, ("PUT", "restype=container&comp=lease", ACQUIRE, b"")),
    ("Lease Container: break", True, ("PUT", "restype=container&comp=lease", BREAK, b"")),
    ("List Blobs", False, ("GET", "restype=container&comp=list", {}, None)),
    ("Delete Container", False, ("DELETE", "restype=container", {}, None)),
]
BLOCK_BLOB = {"x-ms-blob-type": "BlockBlob"}
BLOB_TABLE = [
    ("Put Blob", True, ("PUT", "", BLOCK_BLOB, b"content")),
    ("Get Blob", True, ("GET", "", {}, None)),
    ("Get Blob Properties", True, ("HEAD", "", {}, None)),
    ("Set Blob Properties", True, ("PUT", "comp=properties", {"x-ms-blob-content-type": "a/b"}, b"")),
    ("Get Blob Metadata", True, ("GET", "comp=metadata", {}, None)),
    ("Set Blob Metadata", True, ("PUT", "comp=metadata", {"x-ms-meta-a": "b"}, b"")),
    ("Lease Blob", True, ("PUT", "comp=lease", ACQUIRE, b"")),
    ("Lease Blob: break", True, ("PUT", "comp=lease", BREAK, b"")),
    ("Snapshot Blob", True, ("PUT", "comp=snapshot", {}, b"")),
    ("Put Block", False, ("PUT", "comp=block&blockid=YQ%3D%3D", {}, b"block")),
    ("Put Block List", True, ("PUT", "comp=blocklist", {}, BLOCK_LIST)),
    ("Get Block List", True, ("GET", "comp=blocklist", {}, None)),
    ("Abort Copy Blob", False, ("PUT", "comp=copy&copyid=none", {"x-ms-copy-action": "abort"}, b"")),
    ("Delete Blob", False, ("DELETE", "", {"x-ms-delete-snapshots": "include"}, None)),
]
RANGE = {"x-ms-page-write": "update", "x-ms-range": "bytes=0-511"}
PAGE_BLOB = {"x-ms-blob-type": "PageBlob", "x-ms-blob-content-length": "1024"}
PAGE_TABLE = [
    ("Put Blob", True, ("PUT", "", PAGE_BLOB, b"")),
    ("Put Page", True, ("PUT", "comp=page", RANGE, b"p" * 512)),
    ("Get Page Ranges", True, ("GET", "comp=pagelist", {}, None)),
]


def check(raw, path, table):
    for name, has_etag, (method, query, headers, body) in table:
        answer = raw.send(method, path, query, headers, body)
        assert answer.status < 300 or name.startswith("Abort"), (name, answer.status, answer.code)
        assert (answer.headers["ETag"] is not None) == has_etag, name


def test_etags_of_containers(raw):
    check(raw, f"/{unique('guide')}", CONTAINER_TABLE)


def test_etags_of_blobs(raw, container):
    check(raw, f"/{container.container_name}/block", BLOB_TABLE)
    check(raw, f"/{container.container_name}/page", PAGE_TABLE)
    source = f"{raw.account.endpoint.geturl()}/{container.container_name}/page"
    copied = raw.send("PUT", f"/{container.container_name}/copy", "", {"x-ms-copy-source": source}, b"")
    assert (copied.status, copied.headers["ETag"] is not None) == (202, True)


@pytest.mark.parametrize(
    "path, query, create",
    [("", "restype=container&comp=lease", None), ("/blob", "comp=lease", BLOCK_BLOB)],
    ids=["container", "blob"],
)
def test_a_lease_call_changes_no_etag(raw, container, path, query, create):
    path = f"/{container.container_name}{path}"
    if create:
        raw.send("PUT", path, "", create, b"content")
    read = ("GET", path, "" if create else "restype=container")
    before = raw.send(*read).headers["ETag"]
    lease_id = "00000000-0000-0000-0000-000000000001"
    other_id = "00000000-0000-0000-0000-000000000002"
    held = {"x-ms-lease-id": lease_id}
    for action in [
        {**ACQUIRE, "x-ms-proposed-lease-id": lease_id},
        {"x-ms-lease-action": "renew", **held},
        {"x-ms-lease-action": "change", **held, "x-ms-proposed-lease-id": other_id},
        {"x-ms-lease-action": "release", "x-ms-lease-id": other_id},
        {**ACQUIRE, "x-ms-proposed-lease-id": lease_id},
        BREAK,
    ]:
        answer = raw.send("PUT", path, query, action, b"")
        assert answer.status < 300, (action, answer.code)
        assert answer.headers["ETag"] == before, action
        assert raw.send(*read).headers["ETag"] == before, action
