"""Requests that a careless server would accept silently, and clients that disconnect half-way."""

import contextlib
import socket
import time
import uuid
from datetime import datetime, timedelta, timezone
from email.utils import formatdate

import pytest
from azure.storage.blob import BlobSasPermissions, generate_blob_sas
from support import NEWEST_VERSION, readable, unique

NOT_OF_COPIES = {
    "encryption context": {"x-ms-encryption-context": "context"},
    "expiry": {"x-ms-expiry-option": "RelativeToNow", "x-ms-expiry-time": "1000"},
}


@pytest.mark.parametrize("manner", [{}, {"x-ms-requires-sync": "true"}], ids=["copy", "copy from url"])
@pytest.mark.parametrize("headers", NOT_OF_COPIES.values(), ids=NOT_OF_COPIES.keys())
def test_what_copies_do_not_have_is_refused_and_stores_nothing(container, raw, headers, manner):
    source = container.upload_blob("source", b"x")
    path = f"/{container.container_name}/b"
    answer = raw.send("PUT", path, headers={"x-ms-copy-source": readable(source), **manner, **headers})
    assert (answer.status, answer.code) == (400, "UnsupportedHeader")
    assert answer.xml().findtext("HeaderName") in headers
    assert not container.get_blob_client("b").exists()


def test_values_that_ask_for_nothing_are_taken(container, raw):
    headers = {"x-ms-blob-type": "BlockBlob", "x-ms-legal-hold": "false"}
    assert raw.send("PUT", f"/{container.container_name}/b", headers=headers, body=b"x").status == 201


@pytest.mark.parametrize(
    "value, code",
    [
        ("forever", "InvalidQueryParameterValue"),
        ("1.5", "InvalidQueryParameterValue"),
        ("0", "OutOfRangeQueryParameterValue"),
        ("-1", "OutOfRangeQueryParameterValue"),
    ],
)
def test_timeout_must_be_a_number_of_seconds(container, raw, value, code):
    path = f"/{container.container_name}/b"
    answer = raw.send("PUT", path, f"timeout={value}", {"x-ms-blob-type": "BlockBlob"}, b"x")
    assert (answer.status, answer.code) == (400, code)
    assert answer.xml().findtext("QueryParameterName") == "timeout"
    assert not container.get_blob_client("b").exists()
    assert raw.send("GET", f"/{container.container_name}", "restype=container&timeout=3600").status == 200


# Snapshots and versions, of which there are none yet

SNAPSHOT = "2026-01-02T03:04:05.0000000Z"


@pytest.mark.parametrize("name", ["snapshot", "versionid"])
@pytest.mark.parametrize("method", ["GET", "HEAD", "DELETE"])
def test_snapshot_that_does_not_exist_is_not_found(container, raw, method, name):
    container.upload_blob("b", b"x")
    path = f"/{container.container_name}/b"
    answer = raw.send(method, path, f"{name}={SNAPSHOT}")
    assert (answer.status, answer.code) == (404, "BlobNotFound")
    answer = raw.send(method, path, f"{name}=yesterday")
    assert (answer.status, answer.code) == (400, "InvalidQueryParameterValue")
    assert container.get_blob_client("b").exists()


@pytest.mark.parametrize("name", ["snapshot", "versionid"])
@pytest.mark.parametrize(
    "query, headers",
    [
        ("", {"x-ms-blob-type": "BlockBlob"}),
        ("comp=metadata&", {}),
        ("comp=properties&", {}),
        ("comp=lease&", {"x-ms-lease-action": "acquire", "x-ms-lease-duration": "-1"}),
    ],
    ids=["put", "metadata", "properties", "lease"],
)
def test_snapshot_cannot_be_written(container, raw, query, headers, name):
    before = container.upload_blob("b", b"x", metadata={"a": "1"}).get_blob_properties()
    answer = raw.send("PUT", f"/{container.container_name}/b", f"{query}{name}={SNAPSHOT}", headers)
    code = "InvalidOperation" if name == "snapshot" else "UnsupportedQueryParameter"
    assert (answer.status, answer.code) == (400, code)
    after = container.get_blob_client("b").get_blob_properties()
    assert (after.etag, after.metadata, after.lease.state) == (before.etag, {"a": "1"}, "available")


# Headers


def test_not_modified_keeps_the_headers_of_the_state(container, raw):
    etag = container.upload_blob("b", b"x").get_blob_properties().etag
    for method in ("GET", "HEAD"):
        answer = raw.send(method, f"/{container.container_name}/b", headers={"If-None-Match": etag})
        assert (answer.status, answer.body, answer.code) == (304, b"", "ConditionNotMet")
        assert answer.headers["ETag"] == etag
        assert answer.headers["Last-Modified"].endswith(" GMT")


@pytest.mark.parametrize(
    "action, header, value",
    [
        ("renew", "x-ms-lease-duration", "15"),
        ("release", "x-ms-lease-duration", "15"),
        ("break", "x-ms-lease-duration", "15"),
        ("acquire", "x-ms-lease-break-period", "0"),
        ("renew", "x-ms-lease-break-period", "0"),
    ],
)
def test_lease_header_of_another_action_is_refused(container, raw, action, header, value):
    container.upload_blob("b", b"x")
    headers = {"x-ms-lease-action": action, "x-ms-lease-id": str(uuid.uuid4()), header: value}
    if action == "acquire":
        headers["x-ms-lease-duration"] = "-1"
    for path, query in (("/b", "comp=lease"), ("", "restype=container&comp=lease")):
        answer = raw.send("PUT", f"/{container.container_name}{path}", query, headers)
        assert (answer.status, answer.code) == (400, "InvalidHeaderValue")
        assert answer.xml().findtext("HeaderName") == header


def test_lease_of_an_old_version_lasts_a_minute(container, raw):
    container.upload_blob("b", b"x")
    headers = {"x-ms-lease-action": "acquire"}
    path = f"/{container.container_name}/b"
    assert raw.send("PUT", path, "comp=lease", headers).code == "MissingRequiredHeader"
    assert raw.send("PUT", path, "comp=lease", headers, version="2011-08-18").status == 201
    assert container.get_blob_client("b").get_blob_properties().lease.duration == "fixed"


def test_tier_conditions_of_a_deletion(container, raw):
    container.upload_blob("b", b"x")
    path = f"/{container.container_name}/b"
    hour_ago = formatdate(time.time() - 3600, usegmt=True)
    answer = raw.send("DELETE", path, headers={"x-ms-access-tier-if-unmodified-since": hour_ago})
    assert (answer.status, answer.code) == (412, "ConditionNotMet")
    assert raw.send("DELETE", path, headers={"x-ms-access-tier-if-modified-since": hour_ago}).status == 202


def test_blob_of_the_root_container_has_no_slash(service, raw):
    created = raw.send("PUT", "/$root", "restype=container")
    assert created.status in (201, 409)
    answer = raw.send("PUT", "/$root/a/b", headers={"x-ms-blob-type": "BlockBlob"}, body=b"x")
    assert (answer.status, answer.code) == (400, "InvalidUri")


@pytest.mark.parametrize("method, path", [("GET", "/%zz"), ("PATCH", "/{c}/b"), ("GET", "/{c}/b?comp=nothing")])
def test_answer_to_a_request_that_fails_early_has_the_common_headers(container, raw, method, path):
    path, _, query = path.format(c=container.container_name).partition("?")
    answer = raw.send(method, path, query, {"x-ms-client-request-id": "early"})
    assert answer.status in (400, 405)
    assert answer.headers["x-ms-client-request-id"] == "early"
    assert answer.headers["x-ms-version"] == NEWEST_VERSION


def test_tier_is_told_with_the_bytes_from_2026_10_06(container, raw):
    container.upload_blob("b", b"x")
    path = f"/{container.container_name}/b"
    assert raw.send("GET", path).headers["x-ms-access-tier"] == "Hot"
    assert "x-ms-access-tier" not in raw.send("GET", path, version="2026-06-06").headers


def test_listing_of_an_old_version_gives_addresses(account, container, raw):
    container.upload_blob("a b/c", b"x")
    endpoint, name = account.endpoint.geturl().rstrip("/"), container.container_name
    listing = raw.send("GET", f"/{name}", "restype=container&comp=list", version="2012-02-12").xml()
    assert listing.attrib == {"ContainerName": f"{endpoint}/{name}"}
    assert listing.findtext("Blobs/Blob/Url") == f"{endpoint}/{name}/a%20b/c"
    listing = raw.send("GET", "/", f"comp=list&prefix={name}", version="2012-02-12").xml()
    assert listing.attrib == {"AccountName": f"{endpoint}/"}
    assert listing.findtext("Containers/Container/Url") == f"{endpoint}/{name}"
    assert raw.send("GET", "/", "comp=list").xml().attrib == {"ServiceEndpoint": f"{endpoint}/"}


# Clients that disconnect, and unwanted bodies


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
    # Space that was freed by mistake would be used by these.
    for number in range(40):
        container.upload_blob(f"other{number}", b"\xff" * 100_000)
    for blob in container.list_blobs(name_starts_with="b"):
        assert container.download_blob(blob.name).readall() == contents[blob.name]


def test_refusal_reaches_a_client_that_is_still_sending(account, container, raw):
    body = b"x" * (8 * 1024 * 1024)
    headers = {"x-ms-blob-type": "BlockBlob", "x-ms-date": formatdate(0, usegmt=True)}
    answer = raw.send("PUT", f"/{container.container_name}/b", headers=headers, body=body)
    assert (answer.status, answer.code) == (403, "AuthenticationFailed")


def test_refused_body_is_not_asked_for(account, container, raw):
    """A client that waits for 100 Continue gets the refusal instead, without sending the body."""
    headers = {"x-ms-blob-type": "BlockBlob", "Content-Length": str(10**13), "Expect": "100-continue"}
    with connect(account) as connection:
        connection.sendall(head(account, raw, "PUT", f"/{container.container_name}/b", headers))
        assert connection.recv(65536).startswith(b"HTTP/1.1 413 ")
    headers["Content-Length"] = "1"
    with connect(account) as connection:
        connection.sendall(head(account, raw, "PUT", f"/{container.container_name}/b", headers))
        assert connection.recv(65536) == b"HTTP/1.1 100 Continue\r\n\r\n"
        connection.sendall(b"x")
        assert connection.recv(65536).startswith(b"HTTP/1.1 201 ")


def test_body_longer_than_declared_is_cut_where_it_was_declared_to_end(account, container, raw):
    headers = {"x-ms-blob-type": "BlockBlob", "Content-Length": "5"}
    with connect(account) as connection:
        connection.sendall(head(account, raw, "PUT", f"/{container.container_name}/b", headers) + b"whole and more\r\n\r\n")
        received = b""
        with contextlib.suppress(OSError):
            while part := connection.recv(65536):
                received += part
    assert received.startswith(b"HTTP/1.1 201 ")
    assert b"HTTP/1.1 400 " in received
    assert container.download_blob("b").readall() == b"whole"


def test_old_and_absolute_forms_of_a_request(account, container, raw):
    container.upload_blob("b", b"content")
    path = f"/{container.container_name}/b"
    request = head(account, raw, "GET", path, {})
    oldest = request.replace(b" HTTP/1.1", b" HTTP/1.0")
    absolute = request.replace(b"GET ", b"GET http://" + account.endpoint.netloc.encode()).replace(
        b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"
    )
    for sent in (oldest, absolute):
        with connect(account) as connection:
            connection.sendall(sent)
            received = b""
            while part := connection.recv(65536):
                received += part
        assert b" 200 " in received.split(b"\r\n")[0]
        assert received.endswith(b"\r\n\r\ncontent")


def test_header_that_is_sent_twice_is_refused(account, container, raw):
    """Not by the signature alone: a shared access signature does not sign headers."""
    container.upload_blob("b", b"x")
    token = generate_blob_sas(
        account.name,
        container.container_name,
        "b",
        account_key=account.key,
        permission=BlobSasPermissions(delete=True, read=True),
        expiry=datetime.now(timezone.utc) + timedelta(hours=1),
    )
    target = f"{account.endpoint.path.rstrip('/')}/{container.container_name}/b?{token}"
    lines = [f"DELETE {target} HTTP/1.1", f"Host: {account.endpoint.netloc}", f"x-ms-version: {raw.version}"]
    lines += ["If-Match: *", 'If-Match: "0x1"', "Connection: close"]
    with connect(account) as connection:
        connection.sendall("\r\n".join(lines).encode() + b"\r\n\r\n")
        assert connection.recv(65536).startswith(b"HTTP/1.1 400 ")
    assert container.get_blob_client("b").exists()
