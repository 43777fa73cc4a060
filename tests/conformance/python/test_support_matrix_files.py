"""Every row of the File service that the support matrix calls served is asked for once."""

import json

from support import readable_address, unique
from test_support_matrix import LEASE_ID, OTHER_ID, lease_calls, served_operations

SDDL = "O:S-1-5-21-1-2-3-4G:S-1-5-21-1-2-3-5D:(A;;FA;;;SY)"


def share_calls(share):
    whole = "restype=share"
    yield "Create Share", "PUT", share, whole, {}, None
    yield "Get Share Properties", "GET", share, whole, {}, None
    yield "Set Share Properties", "PUT", share, f"{whole}&comp=properties", {"x-ms-share-quota": "10"}, None
    yield "Get Share Metadata", "GET", share, f"{whole}&comp=metadata", {}, None
    yield "Set Share Metadata", "PUT", share, f"{whole}&comp=metadata", {}, None
    yield "Get Share ACL", "GET", share, f"{whole}&comp=acl", {}, None
    yield "Set Share ACL", "PUT", share, f"{whole}&comp=acl", {}, b"<SignedIdentifiers/>"
    yield "Get Share Stats", "GET", share, f"{whole}&comp=stats", {}, None
    yield "Snapshot Share", "PUT", share, f"{whole}&comp=snapshot", {}, None
    body = json.dumps({"permission": SDDL}).encode()
    yield "Create Permission", "PUT", share, f"{whole}&comp=filepermission", {}, body
    # Refused: this share has no such key.
    key = {"x-ms-file-permission-key": "1"}
    yield "Get Permission", "GET", share, f"{whole}&comp=filepermission", key, None
    yield from lease_calls("Share", share, f"{whole}&comp=lease")
    yield "Restore Share", "PUT", f"{share}-none", f"{whole}&comp=undelete", {
        "x-ms-deleted-share-name": f"{share}-none".strip("/"),
        "x-ms-deleted-share-version": "01D60F8BB59A4652",
    }, None


def directory_calls(share, root):
    directory, kind = f"{share}/d", "restype=directory"
    yield "Create Directory", "PUT", directory, kind, {}, None
    yield "Get Directory Properties", "GET", directory, kind, {}, None
    yield "Set Directory Properties", "PUT", directory, f"{kind}&comp=properties", {}, None
    yield "Get Directory Metadata", "GET", directory, f"{kind}&comp=metadata", {}, None
    yield "Set Directory Metadata", "PUT", directory, f"{kind}&comp=metadata", {}, None
    yield "List Directories and Files", "GET", share, f"{kind}&comp=list", {}, None
    yield "List Handles", "GET", directory, "comp=listhandles", {}, None
    yield "Force Close Handles", "PUT", directory, "comp=forceclosehandles", {"x-ms-handle-id": "*"}, None
    source = {"x-ms-file-rename-source": f"{root}{directory}"}
    yield "Rename Directory", "PUT", f"{share}/e", f"{kind}&comp=rename", source, None
    yield "Delete Directory", "DELETE", f"{share}/e", kind, {}, None


def file_calls(share, root):
    file = f"{share}/f"
    yield "Create File", "PUT", file, "", {"x-ms-type": "file", "x-ms-content-length": "1024"}, None
    yield "Get File", "GET", file, "", {}, None
    yield "Get File Properties", "HEAD", file, "", {}, None
    yield "Set File Properties", "PUT", file, "comp=properties", {"x-ms-content-type": "text/plain"}, None
    yield "Get File Metadata", "GET", file, "comp=metadata", {}, None
    yield "Set File Metadata", "PUT", file, "comp=metadata", {}, None
    leases = {
        "acquire": {"x-ms-lease-duration": "-1", "x-ms-proposed-lease-id": LEASE_ID},
        "change": {"x-ms-lease-id": LEASE_ID, "x-ms-proposed-lease-id": OTHER_ID},
        "break": {},
        "release": {"x-ms-lease-id": OTHER_ID},
    }
    for action, headers in leases.items():
        yield f"Lease File: {action}", "PUT", file, "comp=lease", {"x-ms-lease-action": action, **headers}, None
    update = {"x-ms-write": "update", "x-ms-range": "bytes=0-4"}
    yield "Put Range (update or clear)", "PUT", file, "comp=range", update, b"bytes"
    source = {"x-ms-copy-source": readable_address(f"{root}{file}")}
    from_url = update | source | {"x-ms-source-range": "bytes=0-4"}
    yield "Put Range From URL", "PUT", file, "comp=range", from_url, None
    yield "List Ranges", "GET", file, "comp=rangelist", {}, None
    yield "Copy File", "PUT", f"{share}/g", "", source, None
    # Refused: no copy is pending.
    abort = {"x-ms-copy-action": "abort"}
    yield "Abort Copy File", "PUT", f"{share}/g", f"comp=copy&copyid={LEASE_ID}", abort, None
    yield "Rename File", "PUT", f"{share}/h", "comp=rename", {"x-ms-file-rename-source": f"{root}{file}"}, None
    yield "Delete File", "DELETE", f"{share}/h", "", {}, None


def link_calls(share):
    yield "Create Share", "PUT", share, "restype=share", {"x-ms-enabled-protocols": "NFS"}, None
    yield "Create File", "PUT", f"{share}/f", "", {"x-ms-type": "file", "x-ms-content-length": "0"}, None
    target = {"x-ms-type": "file", "x-ms-file-target-file": "/f"}
    yield "Create Hard Link (NFS)", "PUT", f"{share}/hard", "restype=hardlink", target, None
    link = {"x-ms-link-text": "f"}
    yield "Create Symbolic Link (NFS)", "PUT", f"{share}/soft", "restype=symboliclink", link, None
    yield "Get Symbolic Link (NFS)", "GET", f"{share}/soft", "restype=symboliclink", {}, None
    yield "Delete Share", "DELETE", share, "restype=share", {}, None


def service_calls():
    properties = b"<StorageServiceProperties><Cors/></StorageServiceProperties>"
    yield "Get File Service Properties", "GET", "/", "restype=service&comp=properties", {}, None
    yield "Set File Service Properties", "PUT", "/", "restype=service&comp=properties", {}, properties
    yield "List Shares", "GET", "/", "comp=list", {}, None
    key_info = b"<KeyInfo><Expiry>2031-01-01T00:00:00Z</Expiry></KeyInfo>"
    yield "Get User Delegation Key (file)", "POST", "/", "restype=service&comp=userdelegationkey", {}, key_info
    asked = {"Origin": "http://a.example", "Access-Control-Request-Method": "GET"}
    yield "Preflight File Request", "OPTIONS", "/", "", asked, None


# What the calls above cannot have, by the nature of the operation or of the state it finds.
REFUSED = {
    "Get Permission": 400,
    "Restore Share": 404,
    "Abort Copy File": 409,
    "Get User Delegation Key (file)": 403,
    "Preflight File Request": 403,
}


def test_served_operations_are_built(file_raw):
    share, nfs = f"/{unique('matrix')}", f"/{unique('matrix')}"
    root = file_raw.account.endpoint.geturl().rstrip("/")
    asked = {}
    parts = (service_calls(), share_calls(share), directory_calls(share, root), file_calls(share, root), link_calls(nfs))
    for part in parts:
        for name, method, path, query, headers, body in part:
            asked[name] = file_raw.send(method, path, query, headers, body).status
    file_raw.send("DELETE", share, "restype=share", {"x-ms-delete-snapshots": "include"})
    assert asked.keys() == served_operations("File")
    unserved = {
        name: status for name, status in asked.items() if status != REFUSED.get(name) and status >= 300
    }
    assert unserved == {}
