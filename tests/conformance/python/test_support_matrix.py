"""Every row that the support matrix calls served is asked for once: none may answer that it is not built."""

import uuid
from pathlib import Path

from support import Account, readable_address, unique

MATRIX = Path(__file__).parents[3] / "docs" / "support-matrix.md"

LEASE_ID = str(uuid.uuid4())
OTHER_ID = str(uuid.uuid4())


def served_operations(service):
    parts = MATRIX.read_text().split("\n## ")
    part = next(part for part in parts if part.startswith(service))
    cells = (line.strip("| ").split(" | ") for line in part.splitlines())
    return {row[0] for row in cells if row[-1] == "served"}


def lease_calls(kind, path, query):
    actions = {
        "acquire": {"x-ms-lease-duration": "-1", "x-ms-proposed-lease-id": LEASE_ID},
        "renew": {"x-ms-lease-id": LEASE_ID},
        "change": {"x-ms-lease-id": LEASE_ID, "x-ms-proposed-lease-id": OTHER_ID},
        "break": {"x-ms-lease-break-period": "0"},
        "release": {"x-ms-lease-id": OTHER_ID},
    }
    for action, headers in actions.items():
        yield f"Lease {kind}: {action}", "PUT", path, query, {"x-ms-lease-action": action, **headers}, None


def batch(path):
    """A batch of one part, which has no credentials: the batch is served, the part is refused."""
    body = "--b\r\nContent-Type: application/http\r\n\r\nDELETE {} HTTP/1.1\r\n\r\n--b--\r\n"
    return {"Content-Type": "multipart/mixed; boundary=b"}, body.format(path).encode()


def page_calls(blob, source):
    page = {"x-ms-range": "bytes=0-511"}
    kind, length = {"x-ms-blob-type": "PageBlob"}, {"x-ms-blob-content-length": "1024"}
    yield "Put Blob (page blob)", "PUT", blob, "", kind | length, None
    yield "Put Page: update", "PUT", blob, "comp=page", page | {"x-ms-page-write": "update"}, b"p" * 512
    from_url = {"x-ms-page-write": "update", "x-ms-copy-source": source, "x-ms-source-range": "bytes=0-511"}
    yield "Put Page From URL", "PUT", blob, "comp=page", page | from_url, None
    yield "Put Page: clear", "PUT", blob, "comp=page", page | {"x-ms-page-write": "clear"}, None
    yield "Get Page Ranges", "GET", blob, "comp=pagelist", {}, None
    yield "Set Blob Properties (page blob resize)", "PUT", blob, "comp=properties", length, None
    address = Account.under_test().endpoint.geturl().rstrip("/") + blob
    source = {"x-ms-copy-source": readable_address(address), "x-ms-source-range": "bytes=0-511"}
    yield "Put Page From URL", "PUT", blob, "comp=page", page | {"x-ms-page-write": "update"} | source, None
    action = {"x-ms-sequence-number-action": "increment"}
    yield "Set Blob Properties (page blob sequence number)", "PUT", blob, "comp=properties", action, None
    # Refused: these need snapshots.
    source.pop("x-ms-source-range")
    yield "Incremental Copy Blob", "PUT", f"{blob}-copy", "comp=incrementalcopy", source, None
    since = "comp=pagelist&prevsnapshot=2020-01-01T00:00:00.0000000Z"
    yield "Get Page Ranges (diff)", "GET", blob, since, {}, None


def calls(container, endpoint):
    """In an order in which each finds what it needs."""
    prefix, endpoint = endpoint.path, endpoint.geturl().rstrip("/")
    blob, whole = f"{container}/b", "restype=container"
    key_info = b"<KeyInfo><Expiry>2031-01-01T00:00:00Z</Expiry></KeyInfo>"
    asked = {"Origin": "http://a.example", "Access-Control-Request-Method": "GET"}
    yield "Create Container", "PUT", container, whole, {}, None
    yield "Get Container Properties", "GET", container, whole, {}, None
    yield "Get Container Metadata", "GET", container, f"{whole}&comp=metadata", {}, None
    yield "Set Container Metadata", "PUT", container, f"{whole}&comp=metadata", {}, None
    yield "Get Container ACL", "GET", container, f"{whole}&comp=acl", {}, None
    yield "Set Container ACL", "PUT", container, f"{whole}&comp=acl", {}, b"<SignedIdentifiers/>"
    yield from lease_calls("Container", container, f"{whole}&comp=lease")
    yield "List Containers", "GET", "/", "comp=list", {}, None
    yield "Put Blob (block blob)", "PUT", blob, "", {"x-ms-blob-type": "BlockBlob"}, b"content"
    here = {"x-ms-copy-source": readable_address(f"{endpoint}{blob}")}
    copy, put = f"{container}/copy", here | {"x-ms-blob-type": "BlockBlob"}
    yield "Copy Blob (asynchronous)", "PUT", copy, "", here, None
    yield "Copy Blob From URL (synchronous)", "PUT", copy, "", here | {"x-ms-requires-sync": "true"}, None
    yield "Put Blob From URL", "PUT", copy, "", put, None
    yield "Abort Copy Blob", "PUT", copy, "comp=copy&copyid=none", {"x-ms-copy-action": "abort"}, None
    yield "Get Blob", "GET", blob, "", {}, None
    yield "Get Blob Properties", "HEAD", blob, "", {}, None
    yield "Get Blob Metadata", "GET", blob, "comp=metadata", {}, None
    yield "Set Blob Metadata", "PUT", blob, "comp=metadata", {}, None
    yield "Set Blob Properties", "PUT", blob, "comp=properties", {}, None
    yield "Set Blob Tier", "PUT", blob, "comp=tier", {"x-ms-access-tier": "Cool"}, None
    tags = b"<Tags><TagSet><Tag><Key>a</Key><Value>b</Value></Tag></TagSet></Tags>"
    yield "Set Blob Tags", "PUT", blob, "comp=tags", {}, tags
    yield "Get Blob Tags", "GET", blob, "comp=tags", {}, None
    where = "where=a%3D%27b%27"
    yield "Find Blobs by Tags", "GET", "/", f"comp=blobs&{where}", {}, None
    yield "Find Blobs by Tags in Container", "GET", container, f"{whole}&comp=blobs&{where}", {}, None
    until = {"x-ms-immutability-policy-until-date": "Fri, 01 Jan 2094 00:00:00 GMT"}
    yield "Set Blob Immutability Policy", "PUT", blob, "comp=immutabilityPolicies", until, None
    yield "Delete Blob Immutability Policy", "DELETE", blob, "comp=immutabilityPolicies", {}, None
    yield "Set Blob Legal Hold", "PUT", blob, "comp=legalhold", {"x-ms-legal-hold": "false"}, None
    never = {"x-ms-expiry-option": "NeverExpire"}
    yield "Set Blob Expiry (hierarchical namespace)", "PUT", blob, "comp=expiry", never, None
    yield from lease_calls("Blob", blob, "comp=lease")
    yield from page_calls(f"{container}/pages", readable_address(f"{endpoint}{container}/pages"))
    block_list = b"<BlockList><Latest>YQ==</Latest></BlockList>"
    yield "Put Block", "PUT", blob, "comp=block&blockid=YQ%3D%3D", {}, b"block"
    yield "Put Block From URL", "PUT", blob, "comp=block&blockid=Yg%3D%3D", here, None
    yield "Put Block List", "PUT", blob, "comp=blocklist", {}, block_list
    yield "Get Block List", "GET", blob, "comp=blocklist", {}, None
    log = f"{container}/log"
    yield "Put Blob (append blob)", "PUT", log, "", {"x-ms-blob-type": "AppendBlob"}, None
    yield "Append Block", "PUT", log, "comp=appendblock", {}, b"block"
    yield "Append Block From URL", "PUT", log, "comp=appendblock", here, None
    yield "Append Blob Seal", "PUT", log, "comp=seal", {}, None
    yield "List Blobs (flat)", "GET", container, f"{whole}&comp=list", {}, None
    yield "List Blobs (delimiter)", "GET", container, f"{whole}&comp=list&delimiter=%2F", {}, None
    arrow = {"Accept": "application/vnd.apache.arrow.stream"}
    yield "List Blobs (flat, Apache Arrow body)", "GET", container, f"{whole}&comp=list", arrow, None
    by_delimiter = f"{whole}&comp=list&delimiter=%2F"
    yield "List Blobs (delimiter, Apache Arrow body)", "GET", container, by_delimiter, arrow, None
    yield "Blob Batch (account)", "POST", "/", "comp=batch", *batch(f"{prefix}{blob}")
    yield "Blob Batch (container)", "POST", container, f"{whole}&comp=batch", *batch(f"{prefix}{blob}")
    information = "restype=account&comp=properties"
    yield "Get Account Information (service URL)", "GET", "/", information, {}, None
    yield "Get Account Information (container URL)", "GET", container, information, {}, None
    yield "Get Account Information (blob URL)", "GET", blob, information, {}, None
    query = b"<QueryRequest><QueryType>SQL</QueryType><Expression>SELECT _1 FROM BlobStorage</Expression></QueryRequest>"
    yield "Query Blob Contents", "POST", blob, "comp=query", {}, query
    yield "Snapshot Blob", "PUT", blob, "comp=snapshot", {}, None
    yield "Undelete Blob", "PUT", blob, "comp=undelete", {}, None
    yield "Delete Blob", "DELETE", blob, "", {"x-ms-delete-snapshots": "include"}, None
    source, deleted = {"x-ms-source-container-name": container[1:]}, {"x-ms-deleted-container-name": "name"}
    yield "Rename Container", "PUT", f"{container}-new", f"{whole}&comp=rename", source, None
    container += "-new"
    deleted["x-ms-deleted-container-version"] = "0000000000000001"
    yield "Restore Container", "PUT", container, f"{whole}&comp=undelete", deleted, None
    yield "Delete Container", "DELETE", container, whole, {}, None
    properties = "restype=service&comp=properties"
    yield "Get Blob Service Properties", "GET", "/", properties, {}, None
    # Nothing in it: nothing is changed.
    yield "Set Blob Service Properties", "PUT", "/", properties, {}, b"<StorageServiceProperties/>"
    # Those that are refused: one is asked at the primary, one takes tokens only, one finds no rule.
    yield "Get Blob Service Stats", "GET", "/", "restype=service&comp=stats", {}, None
    yield "Get User Delegation Key", "POST", "/", "restype=service&comp=userdelegationkey", {}, key_info
    yield "Preflight Blob Request", "OPTIONS", container, "", asked, None


REFUSED = {
    "Abort Copy Blob": 409,
    "Restore Container": 409,
    "Get Blob Service Stats": 400,
    "Get User Delegation Key": 403,
    "Preflight Blob Request": 403,
    "Get Page Ranges (diff)": 409,
    "Incremental Copy Blob": 409,
}


def test_served_operations_are_built(raw):
    asked = {}
    for name, method, path, query, headers, body in calls(f"/{unique('matrix')}", raw.account.endpoint):
        asked[name] = raw.send(method, path, query, headers, body).status
    assert asked.keys() == served_operations("Blob")
    unserved = {
        name: status for name, status in asked.items() if status != REFUSED.get(name) and status >= 300
    }
    assert unserved == {}
