"""Ranges of a download, and every way a client can have the bytes checked."""

import pytest
from support import base64_text, crc64_text, md5, refused

CONTENT = bytes(range(256)) * 40
SIZE = len(CONTENT)


@pytest.fixture
def known(container):
    client = container.get_blob_client("known")
    client.upload_blob(CONTENT)
    return client


@pytest.fixture
def path(known):
    return f"/{known.container_name}/{known.blob_name}"


@pytest.mark.parametrize(
    "offset, length",
    [(0, 1), (0, SIZE), (1, 1), (255, 2), (SIZE - 1, 1), (SIZE - 1, 100), (100, None), (0, SIZE + 1000)],
)
def test_range_of_the_sdk_returns_exactly_its_bytes(known, offset, length):
    expected = CONTENT[offset:] if length is None else CONTENT[offset : offset + length]
    assert known.download_blob(offset=offset, length=length).readall() == expected


@pytest.mark.parametrize(
    "value, expected, content_range",
    [
        ("bytes=0-9", CONTENT[:10], f"bytes 0-9/{SIZE}"),
        ("bytes=10-", CONTENT[10:], f"bytes 10-{SIZE - 1}/{SIZE}"),
        (f"bytes={SIZE - 5}-{SIZE + 5}", CONTENT[-5:], f"bytes {SIZE - 5}-{SIZE - 1}/{SIZE}"),
        (f"bytes=0-{SIZE - 1}", CONTENT, f"bytes 0-{SIZE - 1}/{SIZE}"),
    ],
)
@pytest.mark.parametrize("header", ["Range", "x-ms-range"])
def test_partial_content(raw, path, header, value, expected, content_range):
    answer = raw.send("GET", path, headers={header: value})
    assert answer.status == 206
    assert answer.body == expected
    assert answer.headers["Content-Range"] == content_range
    assert answer.headers["Content-Length"] == str(len(expected))
    assert answer.headers["x-ms-blob-content-md5"] == base64_text(md5(CONTENT))
    assert "Content-MD5" not in answer.headers


def test_service_range_wins_over_plain_range(raw, path):
    answer = raw.send("GET", path, headers={"Range": "bytes=0-4", "x-ms-range": "bytes=5-9"})
    assert (answer.status, answer.body) == (206, CONTENT[5:10])


@pytest.mark.parametrize("value", [f"bytes={SIZE}-", f"bytes={SIZE}-{SIZE + 1}", "bytes=999999999999-"])
def test_range_past_the_end_is_refused(raw, path, value):
    answer = raw.send("GET", path, headers={"x-ms-range": value})
    assert (answer.status, answer.code) == (416, "InvalidRange")
    assert answer.headers["Content-Range"] == f"bytes */{SIZE}"


def test_range_of_an_empty_blob_is_refused(container):
    client = container.get_blob_client("empty")
    client.upload_blob(b"")
    with refused(416, "InvalidRange"):
        client._client.blob.download(range="bytes=0-0")
    assert client.download_blob().readall() == b""


@pytest.mark.parametrize("value", ["bytes=-5", "bytes=9-3", "bytes=0-1,4-5", "bytes=a-b", "items=0-1", "bytes="])
def test_unusable_range_is_ignored_or_refused_but_never_wrong(raw, path, value):
    answer = raw.send("GET", path, headers={"Range": value})
    if answer.status == 200:
        assert answer.body == CONTENT
    else:
        assert answer.status in (400, 416)


def test_range_md5_and_crc64(raw, path):
    part = CONTENT[7:100]
    answer = raw.send("GET", path, headers={"x-ms-range": "bytes=7-99", "x-ms-range-get-content-md5": "true"})
    assert (answer.status, answer.headers["Content-MD5"]) == (206, base64_text(md5(part)))
    answer = raw.send("GET", path, headers={"x-ms-range": "bytes=7-99", "x-ms-range-get-content-crc64": "true"})
    assert (answer.status, answer.headers["x-ms-content-crc64"]) == (206, crc64_text(part))


@pytest.mark.parametrize(
    "headers",
    [
        {"x-ms-range-get-content-md5": "true"},
        {"x-ms-range-get-content-crc64": "true"},
        {"x-ms-range": "bytes=0-9", "x-ms-range-get-content-md5": "true", "x-ms-range-get-content-crc64": "true"},
        {"x-ms-range": f"bytes=0-{4 * 1024 * 1024}", "x-ms-range-get-content-md5": "true"},
    ],
    ids=["md5 without range", "crc64 without range", "both", "over 4 MiB"],
)
def test_range_checksum_is_refused_where_it_is_not_offered(container, raw, headers):
    client = container.get_blob_client("five-mib")
    client.upload_blob(bytes(5 * 1024 * 1024))
    answer = raw.send("GET", f"/{container.container_name}/five-mib", headers=headers)
    assert answer.status == 400


@pytest.mark.parametrize("validate", [True, "md5", "crc64", "auto"])
@pytest.mark.parametrize("size", [0, 10, 70_000, 6_000_000])
def test_sdk_validates_content_both_ways(container, validate, size):
    content = (CONTENT * (size // SIZE + 1))[:size]
    client = container.get_blob_client("validated")
    client.upload_blob(content, validate_content=validate)
    assert client.download_blob(validate_content=validate).readall() == content
    if size:
        assert client.download_blob(offset=3, length=500, validate_content=validate).readall() == content[3:503]


@pytest.mark.parametrize("size", [0, 10, 70_000, 9_000_000])
def test_structured_body_is_decoded(container, size):
    """The SDK sends `XSM/1.0` segments; the blob must hold the plain bytes."""
    content = (CONTENT * (size // SIZE + 1))[:size]
    client = container.get_blob_client("structured")
    sent = []
    client.upload_blob(
        content,
        validate_content="crc64-sm",
        raw_response_hook=lambda answer: sent.append(answer.http_request.headers),
    )
    assert all("x-ms-structured-body" in headers for headers in sent) and sent
    properties = client.get_blob_properties()
    assert properties.size == size
    assert bytes(properties.content_settings.content_md5) == md5(content)
    assert client.download_blob().readall() == content


def put(raw, container, headers, body=b"hello world"):
    headers = {"x-ms-blob-type": "BlockBlob"} | headers
    return raw.send("PUT", f"/{container.container_name}/b", headers=headers, body=body)


def test_right_checksums_are_taken(container, raw):
    answer = put(raw, container, {"Content-MD5": base64_text(md5(b"hello world"))})
    assert (answer.status, answer.headers["Content-MD5"]) == (201, base64_text(md5(b"hello world")))
    answer = put(raw, container, {"x-ms-content-crc64": "vo7q9sPVKY0="})
    assert (answer.status, answer.headers["x-ms-content-crc64"]) == (201, "vo7q9sPVKY0=")
    assert container.get_blob_client("b").get_blob_properties().content_settings.content_md5 == md5(b"hello world")


def test_the_md5_that_is_to_be_stored_is_the_one_that_is_verified(container, raw):
    right, wrong = base64_text(md5(b"hello world")), base64_text(md5(b"other"))
    answer = put(raw, container, {"x-ms-blob-content-md5": right, "Content-MD5": wrong})
    assert (answer.status, answer.headers["Content-MD5"]) == (201, right)


@pytest.mark.parametrize(
    "headers, code",
    [
        ({"Content-MD5": base64_text(md5(b"other"))}, "Md5Mismatch"),
        ({"Content-MD5": "not base64!"}, "InvalidMd5"),
        ({"Content-MD5": base64_text(b"short")}, "InvalidMd5"),
        ({"x-ms-content-crc64": crc64_text(b"other")}, "Crc64Mismatch"),
        ({"x-ms-content-crc64": "AAAA"}, None),
        (
            {"x-ms-content-crc64": "vo7q9sPVKY0=", "Content-MD5": base64_text(md5(b"hello world"))},
            "BothCrc64AndMd5HeaderPresent",
        ),
        (
            {
                "x-ms-blob-content-md5": base64_text(md5(b"other")),
                "Content-MD5": base64_text(md5(b"hello world")),
            },
            "Md5Mismatch",
        ),
    ],
    ids=["wrong md5", "md5 not base64", "md5 too short", "wrong crc64", "crc64 too short", "both", "wrong stored md5"],
)
def test_wrong_checksum_stores_nothing(container, raw, headers, code):
    answer = put(raw, container, headers)
    assert answer.status == 400
    assert code in (None, answer.code)
    assert not container.get_blob_client("b").exists()


def test_wrong_checksum_keeps_the_previous_content(container, raw):
    assert put(raw, container, {}).status == 201
    assert put(raw, container, {"Content-MD5": base64_text(md5(b"other"))}, b"new content").status == 400
    assert container.download_blob("b").readall() == b"hello world"


def test_md5_given_for_the_blob_is_stored_as_given(container, raw):
    """x-ms-blob-content-md5 of Put Blob describes the blob; the server checks it against the content."""
    digest = base64_text(md5(b"hello world"))
    assert put(raw, container, {"x-ms-blob-content-md5": digest}).status == 201
    assert raw.send("HEAD", f"/{container.container_name}/b").headers["Content-MD5"] == digest


STRUCTURED = {"x-ms-structured-body": "XSM/1.0; properties=crc64", "x-ms-structured-content-length": "11"}


def structured(content=b"hello world", **damage):
    """One segment, written by the rules of the format, with a named part damaged."""
    from azure.storage.extensions import checksums

    crc = checksums.crc64.compute(content, 0).to_bytes(8, "little")
    total = 13 + 10 + len(content) + 8 + 8
    header = damage.get("version", b"\x01") + damage.get("total", total).to_bytes(8, "little") + b"\x01\x00\x01\x00"
    segment = b"\x01\x00" + damage.get("length", len(content)).to_bytes(8, "little") + content
    return header + segment + damage.get("segment_crc", crc) + damage.get("message_crc", crc)


def test_structured_body_by_hand(container, raw):
    answer = put(raw, container, STRUCTURED, structured())
    assert answer.status == 201
    assert answer.headers["x-ms-structured-body"] == STRUCTURED["x-ms-structured-body"]
    assert container.download_blob("b").readall() == b"hello world"


@pytest.mark.parametrize(
    "body",
    [
        structured(version=b"\x02"),
        structured(total=10),
        structured(length=12),
        structured(length=2**63),
        structured(segment_crc=bytes(8)),
        structured(message_crc=bytes(8)),
        structured()[:-3],
        structured() + b"extra",
        structured(b"hello worl"),
        b"",
        b"\x01",
    ],
    ids="version total length huge-length segment-crc message-crc short long content-length empty tiny".split(),
)
def test_damaged_structured_body_stores_nothing(container, raw, body):
    answer = put(raw, container, STRUCTURED, body)
    assert answer.status == 400
    assert not container.get_blob_client("b").exists()


def test_download_as_structured_body(known, raw, path):
    answer = raw.send("GET", path, headers={"x-ms-structured-body": STRUCTURED["x-ms-structured-body"]})
    assert answer.status in (200, 206)
    assert answer.headers["x-ms-structured-body"] == STRUCTURED["x-ms-structured-body"]
    assert answer.headers["x-ms-structured-content-length"] == str(SIZE)
    assert int.from_bytes(answer.body[1:9], "little") == len(answer.body)
    assert answer.body[23 : 23 + SIZE] == CONTENT
