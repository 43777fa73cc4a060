"""What every request passes: versions, request ids, error bodies, CORS, addresses, and malformed input."""

import re
import socket
import ssl
import uuid
from email.utils import formatdate

import pytest
from azure.storage.blob import CorsRule
from support import REQUEST_ID, quoted, unique

# Every version the service has had, and the two that only the newest clients send.
VERSIONS = """
2009-09-19 2011-08-18 2012-02-12 2013-08-15 2014-02-14 2015-02-21 2015-04-05 2015-07-08 2015-12-11 2016-05-31
2017-04-17 2017-07-29 2017-11-09 2018-03-28 2018-11-09 2019-02-02 2019-07-07 2019-10-10 2019-12-12 2020-02-10
2020-04-08 2020-06-12 2020-08-04 2020-10-02 2020-12-06 2021-02-12 2021-04-10 2021-06-08 2021-08-06 2021-10-04
2021-12-02 2022-11-02 2023-01-03 2023-05-03 2023-08-03 2023-11-03 2024-05-04 2024-08-04 2024-11-04 2025-01-05
2025-05-05 2025-07-05 2025-11-05 2026-02-06 2026-04-06 2026-06-06 2026-10-06 2026-12-06 2027-03-07
""".split()


@pytest.mark.parametrize("version", VERSIONS)
def test_every_version_is_served(container, raw, version):
    path = f"/{container.container_name}/b"
    put = raw.send("PUT", path, headers={"x-ms-blob-type": "BlockBlob"}, body=b"x", version=version)
    get = raw.send("GET", path, version=version)
    listing = raw.send("GET", f"/{container.container_name}", "restype=container&comp=list", version=version)
    empty = raw.send("PUT", path, "comp=metadata", version=version)
    assert [answer.status for answer in (put, get, listing, empty)] == [201, 200, 200, 200]
    assert {answer.headers["x-ms-version"] for answer in (put, get, listing, empty)} == {version}
    assert get.body == b"x"
    quoted_etag = get.headers["ETag"].startswith('"')
    assert quoted_etag == (version >= "2011-08-18")
    assert listing.xml().findtext("Blobs/Blob/Name") == "b"


@pytest.mark.parametrize("version", ["", "newest", "2026", "2026-13-01", "06-10-2026", "2026-10-06;", "2026-10-6"])
def test_version_that_is_no_date_is_refused(container, raw, version):
    answer = raw.send("GET", f"/{container.container_name}", "restype=container", {"x-ms-version": version})
    assert (answer.status, answer.code) == (400, "InvalidHeaderValue")
    assert answer.xml().findtext("HeaderName") == "x-ms-version"


def test_error_code_header_came_with_2017_07_29(container, raw):
    path = f"/{container.container_name}/missing"
    old, new = (raw.send("GET", path, version=version) for version in ("2017-04-17", "2017-07-29"))
    assert (old.status, new.status) == (404, 404)
    assert "x-ms-error-code" not in old.headers
    assert new.headers["x-ms-error-code"] == "BlobNotFound"
    assert old.xml().findtext("Code") == "BlobNotFound"


@pytest.mark.parametrize("path, status", [("/{container}/b", 200), ("/{container}/missing", 404)])
def test_common_headers_of_every_answer(container, raw, path, status):
    container.upload_blob("b", b"x")
    client_id = str(uuid.uuid4())
    answer = raw.send(
        "GET", path.format(container=container.container_name), headers={"x-ms-client-request-id": client_id}
    )
    assert answer.status == status
    assert REQUEST_ID.match(answer.headers["x-ms-request-id"])
    assert answer.headers["x-ms-client-request-id"] == client_id
    assert answer.headers["x-ms-version"] == raw.version
    assert answer.headers["Date"].endswith(" GMT")
    assert answer.headers["Server"].startswith("Windows-Azure-Blob/1.0")


def test_request_ids_differ(container, raw):
    ids = {
        raw.send("GET", f"/{container.container_name}", "restype=container").headers["x-ms-request-id"]
        for _ in range(20)
    }
    assert len(ids) == 20


@pytest.mark.parametrize("value", ["x" * 1025, "bell\x07", "é"], ids=["too long", "control character", "not ASCII"])
def test_unusable_client_request_id_is_not_echoed(container, raw, value):
    answer = raw.send(
        "GET",
        f"/{container.container_name}",
        "restype=container",
        {"x-ms-client-request-id": value.encode("latin-1").decode("latin-1")},
    )
    assert answer.headers.get("x-ms-client-request-id") != value
    assert answer.status < 500


def test_error_body_names_the_request(container, raw):
    answer = raw.send("GET", f"/{container.container_name}/missing")
    assert answer.headers["Content-Type"] == "application/xml"
    error = answer.xml()
    assert error.tag == "Error"
    assert error.findtext("Code") == "BlobNotFound"
    message = error.findtext("Message")
    assert re.search(r"\nRequestId:" + answer.headers["x-ms-request-id"] + r"\nTime:\d{4}-\d\d-\d\dT", message)


def test_error_of_head_has_no_body(container, raw):
    answer = raw.send("HEAD", f"/{container.container_name}/missing")
    assert (answer.status, answer.body, answer.headers["x-ms-error-code"]) == (404, b"", "BlobNotFound")


# Operations that are known but not built, and those that do not exist


@pytest.mark.parametrize(
    "method, path, query",
    [
        ("POST", "/{container}/b", "comp=query"),
        ("PUT", "/{container}/b", "comp=snapshot"),
        ("PUT", "/{container}/b", "comp=tier"),
        ("GET", "/{container}/b", "comp=tags"),
        ("PUT", "/{container}/b", "comp=undelete"),
        ("PUT", "/{container}/b", "comp=block&blockid=AAAA"),
        ("GET", "/{container}/b", "comp=blocklist&blocklisttype=all"),
        ("PUT", "/{container}/b", "comp=seal"),
        ("POST", "/{container}", "restype=container&comp=batch"),
        ("GET", "/", "restype=service&comp=stats"),
        ("GET", "/", "restype=account&comp=properties"),
        ("GET", "/", "comp=blobs&where=a%3D%271%27"),
    ],
)
def test_known_operation_is_served_or_says_that_it_is_not(container, raw, method, path, query):
    """Never an unknown operation: it is 501 `NotImplemented` until the day it is built."""
    container.upload_blob("b", b"a,b\n")
    answer = raw.send(method, path.format(container=container.container_name), query)
    if answer.status >= 500:
        assert (answer.status, answer.code) == (501, "NotImplemented")
    assert answer.status != 405
    assert container.download_blob("b").readall() == b"a,b\n"


@pytest.mark.parametrize(
    "method, path, query",
    [
        ("GET", "/{container}", "comp=nonsense&restype=container"),
        ("PUT", "/{container}", "comp=nonsense&restype=container"),
        ("GET", "/{container}", "restype=nonsense"),
        ("PUT", "/{container}/b", "comp=nonsense"),
        ("GET", "/", "comp=nonsense"),
        ("POST", "/{container}/b", ""),
    ],
)
def test_unknown_operation_is_refused(container, raw, method, path, query):
    answer = raw.send(method, path.format(container=container.container_name), query)
    assert answer.status in (400, 404, 405)
    assert answer.code


@pytest.mark.parametrize("method", ["PATCH", "TRACE", "BREW", "MERGE"])
def test_unknown_method_is_refused(container, raw, method):
    answer = raw.send(method, f"/{container.container_name}/b")
    assert answer.status in (400, 405)


def test_unknown_account_is_refused(account, raw):
    if not account.is_path_style:
        pytest.skip("the account is in the host name")
    answer = raw.exchange("GET", "/nobody/container?restype=container", {"x-ms-version": raw.version}, None)
    assert 400 <= answer.status < 500


# Addresses


def test_host_style_address_reaches_the_same_blob(account, container, raw):
    container.upload_blob("b", b"x")
    host = f"{account.name}.blob.localhost:{account.endpoint.port}"
    answer = raw.send("GET", f"/{container.container_name}/b", host=host)
    assert (answer.status, answer.body) == (200, b"x")
    listing = raw.send("GET", f"/{container.container_name}", "restype=container&comp=list", host=host)
    assert listing.status == 200
    assert account.name in listing.xml().attrib["ServiceEndpoint"]


def test_secondary_address_reads_and_does_not_write(account, container, raw):
    if not account.is_path_style:
        pytest.skip("needs a path-style address")
    container.upload_blob("b", b"x")
    secondary = f"/{account.name}-secondary/{container.container_name}/b"

    def send(method, headers=None):
        sent = {"x-ms-date": formatdate(usegmt=True), "x-ms-version": raw.version} | (headers or {})
        # The signature is over the account without the suffix; the path is signed as sent.
        sent["Authorization"] = raw.authorization(method, secondary, "", sent)
        return raw.exchange(method, secondary, sent, None)

    answer = send("GET")
    assert (answer.status, answer.body) == (200, b"x")
    refusal = send("DELETE")
    assert 400 <= refusal.status < 500
    assert container.get_blob_client("b").exists()


# CORS


@pytest.fixture
def cors(service):
    """One exact origin and one wildcard; the rules before are put back afterwards."""
    before = service.get_service_properties()["cors"]
    rules = [
        CorsRule(
            ["http://app.example"],
            ["GET", "PUT"],
            max_age_in_seconds=600,
            allowed_headers=["x-ms-*", "content-type"],
            exposed_headers=["x-ms-meta-*", "etag"],
        ),
        CorsRule(["http://*.wild.example"], ["GET"], max_age_in_seconds=5, allowed_headers=["*"]),
    ]
    service.set_service_properties(cors=rules)
    yield
    service.set_service_properties(cors=before)


def preflight(raw, container, origin, method="GET", headers=None):
    sent = {"Origin": origin, "Access-Control-Request-Method": method}
    if headers:
        sent["Access-Control-Request-Headers"] = headers
    path = f"{raw.account.endpoint.path.rstrip('/')}/{container.container_name}/any"
    return raw.exchange("OPTIONS", path, sent, None)


def test_preflight_that_a_rule_allows(cors, container, raw):
    answer = preflight(raw, container, "http://app.example", "PUT", "x-ms-version,content-type")
    assert answer.status == 200
    assert answer.headers["Access-Control-Allow-Origin"] == "http://app.example"
    assert "PUT" in answer.headers["Access-Control-Allow-Methods"]
    assert answer.headers["Access-Control-Max-Age"] == "600"
    assert answer.headers["Access-Control-Allow-Credentials"] == "true"
    assert preflight(raw, container, "http://any.wild.example").status == 200


@pytest.mark.parametrize(
    "origin, method, headers",
    [
        ("http://other.example", "GET", None),
        ("http://APP.example", "GET", None),
        ("http://app.example", "DELETE", None),
        ("http://app.example", "GET", "authorization"),
        ("http://wild.example.evil", "GET", None),
    ],
    ids=["origin", "case of the origin", "method", "header", "not a subdomain"],
)
def test_preflight_that_no_rule_allows(cors, container, raw, origin, method, headers):
    answer = preflight(raw, container, origin, method, headers)
    assert answer.status == 403
    assert "Access-Control-Allow-Origin" not in answer.headers


def test_preflight_without_its_headers_is_refused(cors, container, raw):
    path = f"{raw.account.endpoint.path.rstrip('/')}/{container.container_name}"
    assert raw.exchange("OPTIONS", path, {"Origin": "http://app.example"}, None).status == 400
    assert raw.exchange("OPTIONS", path, {"Access-Control-Request-Method": "GET"}, None).status == 400


def test_answer_to_a_cross_origin_request(cors, container, raw):
    container.upload_blob("b", b"x")
    path = f"/{container.container_name}/b"
    matched = raw.send("GET", path, headers={"Origin": "http://app.example"})
    assert matched.status == 200
    assert matched.headers["Access-Control-Allow-Origin"] == "http://app.example"
    assert matched.headers["Access-Control-Allow-Credentials"] == "true"
    assert "etag" in matched.headers["Access-Control-Expose-Headers"].lower()
    assert matched.headers["Vary"] == "Origin"
    other = raw.send("GET", path, headers={"Origin": "http://other.example"})
    assert other.status == 200
    assert "Access-Control-Allow-Origin" not in other.headers
    assert other.headers["Vary"] == "Origin"


# Malformed input: always the client's fault, never a 500, and the connection or the server survives

MALFORMED = [
    ("GET", "/{c}/%", "", {}),
    ("GET", "/{c}/%zz", "", {}),
    ("GET", "/{c}/%C3%28", "", {}),
    ("GET", "/{c}/%00", "", {}),
    ("GET", "/{c}/a/../../b", "", {}),
    ("GET", "/{c}/%2E%2E/%2E%2E/etc", "", {}),
    ("GET", "//", "", {}),
    ("GET", "/{c}//", "", {}),
    ("GET", "/{c}/b", "snapshot=yesterday", {}),
    ("GET", "/{c}/b", "versionid=x", {}),
    ("GET", "/{c}/b", "timeout=-1", {}),
    ("GET", "/{c}/b", "timeout=forever", {}),
    ("GET", "/{c}/b", "comp=", {}),
    ("GET", "/{c}/b", "comp=metadata&comp=lease", {}),
    ("GET", "/{c}/b", "%ff=%ff", {}),
    ("GET", "/{c}/b", "=&&=;", {}),
    ("GET", "/{c}", "restype=container&comp=list&marker=%00garbage", {}),
    ("GET", "/{c}", "restype=container&comp=list&marker=" + "A" * 5000, {}),
    ("GET", "/{c}", "restype=container&comp=list&maxresults=99999999999999999999", {}),
    ("GET", "/{c}", "restype=container&comp=list&prefix=%ff%fe", {}),
    ("GET", "/{c}", "restype=container&comp=list&delimiter=", {}),
    ("GET", "/{c}/b", "", {"x-ms-range": "bytes=18446744073709551615-18446744073709551616"}),
    ("GET", "/{c}/b", "", {"x-ms-range": "bytes=99999999999999999999999-"}),
    ("GET", "/{c}/b", "", {"x-ms-lease-id": "no guid"}),
    ("GET", "/{c}/b", "", {"If-Match": ""}),
    ("GET", "/{c}/b", "", {"If-Match": '"'}),
    ("GET", "/{c}/b", "", {"If-Match": ",,,"}),
    ("GET", "/{c}/b", "", {"If-Modified-Since": "Mon, 99 Xxx 9999 99:99:99 GMT"}),
    ("GET", "/{c}/b", "", {"x-ms-if-tags": "((((((((((" * 50}),
    ("GET", "/{c}/b", "", {"x-ms-if-tags": "a = 'unterminated"}),
    ("GET", "/{c}/b", "", {"Accept": "\x7f"}),
    ("PUT", "/{c}/b", "", {"x-ms-blob-type": "BlockBlob", "Content-MD5": "=" * 24}),
    ("PUT", "/{c}/b", "", {"x-ms-blob-type": "BlockBlob", "x-ms-tags": "a=1&a=2&=&&&"}),
    ("PUT", "/{c}/b", "", {"x-ms-blob-type": "BlockBlob", "x-ms-blob-content-type": "x" * 9000}),
    ("PUT", "/{c}/b", "", {"x-ms-blob-type": "BlockBlob", "x-ms-meta-x": "\x01"}),
    ("PUT", "/{c}/b", "", {"x-ms-blob-type": "BlockBlob", "x-ms-structured-body": "XSM/9.9"}),
    ("PUT", "/{c}/b", "comp=lease", {"x-ms-lease-action": "acquire", "x-ms-lease-duration": "9" * 40}),
    ("PUT", "/{c}", "restype=container&comp=acl", {"x-ms-blob-public-access": "everyone"}),
    ("DELETE", "/{c}/b", "", {"x-ms-delete-snapshots": "maybe"}),
]


@pytest.mark.parametrize("method, path, query, headers", MALFORMED, ids=range(len(MALFORMED)))
def test_malformed_request_is_never_a_server_error(container, raw, method, path, query, headers):
    container.upload_blob("b", b"x")
    answer = raw.send(method, path.format(c=container.container_name), query, headers)
    assert answer.status < 500, answer.body
    assert container.exists()


BODIES = [
    b"",
    b"<",
    b"<a/>",
    b"\xff\xfe",
    b"<SignedIdentifiers>",
    b"<!DOCTYPE a [<!ENTITY b 'c'>]><SignedIdentifiers/>",
    b"<SignedIdentifiers>" + b"<a>" * 5000,
    b"<SignedIdentifiers><SignedIdentifier/></SignedIdentifiers>",
]


@pytest.mark.parametrize("body", BODIES, ids=range(len(BODIES)))
def test_malformed_xml_is_never_a_server_error(container, raw, body):
    answer = raw.send("PUT", f"/{container.container_name}", "restype=container&comp=acl", body=body)
    assert answer.status < 500
    answer = raw.send("PUT", "/", "restype=service&comp=properties", body=body)
    assert answer.status == 400


BYTES = {
    "no request": b"\r\n\r\n",
    "no version": b"GET /\r\n\r\n",
    "old version": b"GET / HTTP/0.9\r\n\r\n",
    "binary": bytes(range(256)) * 4,
    "two lengths": b"PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
    "negative length": b"PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: -1\r\n\r\n",
    "length and chunks": b"PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "bad chunk": b"PUT / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    "huge header": b"GET / HTTP/1.1\r\nHost: h\r\nX: " + b"x" * 300_000 + b"\r\n\r\n",
    "many headers": b"GET / HTTP/1.1\r\nHost: h\r\n" + b"".join(b"X%d: y\r\n" % n for n in range(5000)) + b"\r\n",
}


@pytest.mark.parametrize("sent", BYTES.values(), ids=BYTES.keys())
def test_bytes_that_are_no_request_do_not_hurt(account, service, sent):
    address = (account.endpoint.hostname, account.endpoint.port)
    with socket.create_connection(address, timeout=20) as connection:
        if account.endpoint.scheme == "https":
            connection = ssl._create_unverified_context().wrap_socket(connection)
        try:
            connection.sendall(sent)
            connection.shutdown(socket.SHUT_WR)
            received = connection.recv(4096)
        except OSError:
            received = b""
    assert not received.startswith((b"HTTP/1.1 500", b"HTTP/1.1 503"))
    assert list(service.list_containers(name_starts_with=unique("none"))) == []


def test_upload_that_ends_early_stores_nothing(account, container, raw):
    path = f"{account.endpoint.path.rstrip('/')}/{container.container_name}/short"
    headers = {
        "x-ms-blob-type": "BlockBlob",
        "x-ms-date": formatdate(usegmt=True),
        "x-ms-version": raw.version,
        "Content-Length": "1000",
    }
    headers["Authorization"] = raw.authorization("PUT", path, "", headers)
    lines = [f"PUT {path} HTTP/1.1", f"Host: {account.endpoint.netloc}", *(f"{k}: {v}" for k, v in headers.items())]
    with socket.create_connection((account.endpoint.hostname, account.endpoint.port), timeout=20) as connection:
        connection.sendall("\r\n".join(lines).encode() + b"\r\n\r\n" + b"x" * 500)
    assert not container.get_blob_client("short").exists()


def test_upload_in_chunks_needs_its_length(container, raw):
    """Put Blob wants Content-Length; a chunked body without it is 411, or stored whole, never in part."""
    path = f"/{container.container_name}/chunked"
    headers = {"x-ms-blob-type": "BlockBlob", "Transfer-Encoding": "chunked", "Content-Length": None}
    answer = raw.send("PUT", path, headers=headers, body=b"5\r\nhello\r\n0\r\n\r\n")
    assert (answer.status, answer.code) == (411, "MissingContentLengthHeader")
    assert not container.get_blob_client("chunked").exists()


def test_keep_alive_serves_many_requests_on_one_connection(account, container, raw):
    """Two requests sent at once are answered in order on the same connection."""
    for name in ("one", "two"):
        container.upload_blob(name, name.encode())
    text = b""
    for name in ("one", "two"):
        path = f"{account.endpoint.path.rstrip('/')}/{container.container_name}/{quoted(name)}"
        headers = {"x-ms-date": formatdate(usegmt=True), "x-ms-version": raw.version, "Host": account.endpoint.netloc}
        headers["Authorization"] = raw.authorization("GET", path, "", headers)
        if name == "two":
            headers["Connection"] = "close"
        text += "\r\n".join([f"GET {path} HTTP/1.1", *(f"{k}: {v}" for k, v in headers.items())]).encode() + b"\r\n\r\n"
    with socket.create_connection((account.endpoint.hostname, account.endpoint.port), timeout=20) as connection:
        connection.sendall(text)
        received = b""
        while part := connection.recv(65536):
            received += part
    assert received.count(b"HTTP/1.1 200") == 2
    assert received.index(b"\r\n\r\none") < received.index(b"\r\n\r\ntwo")
