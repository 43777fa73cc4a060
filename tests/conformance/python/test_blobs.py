"""Block blobs: what is stored comes back, overwriting, properties, metadata, deletion, names."""

import hashlib
from datetime import datetime, timezone

import pytest
from azure.storage.blob import BlobType, ContentSettings, StandardBlobTier
from support import ETAG, base64_text, md5, quoted, refused

SETTINGS = ContentSettings(
    content_type="text/csv; charset=utf-8",
    content_encoding="identity",
    content_language="de-DE",
    content_disposition='attachment; filename="report.csv"',
    cache_control="max-age=3600, private",
)


def as_tuple(settings):
    return (
        settings.content_type,
        settings.content_encoding,
        settings.content_language,
        settings.content_disposition,
        settings.cache_control,
    )


def test_upload_answer_names_the_stored_blob(container):
    client = container.get_blob_client("b")
    before = datetime.now(timezone.utc).replace(microsecond=0)
    answer = client.upload_blob(b"content")
    assert ETAG.match(answer["etag"])
    assert before <= answer["last_modified"] <= datetime.now(timezone.utc)
    assert answer["request_server_encrypted"] is True
    assert bytes(answer["content_md5"]) == md5(b"content")
    properties = client.get_blob_properties()
    assert (properties.etag, properties.last_modified) == (answer["etag"], answer["last_modified"])


def test_every_property_comes_back(container):
    client = container.get_blob_client("b")
    content = b"0123456789" * 100
    client.upload_blob(content, content_settings=SETTINGS, metadata={"Key": "Value", "other": "a b"})
    for properties in (client.get_blob_properties(), client.download_blob().properties):
        assert properties.size == len(content)
        assert properties.blob_type == BlobType.BlockBlob
        assert as_tuple(properties.content_settings) == as_tuple(SETTINGS)
        assert bytes(properties.content_settings.content_md5) == md5(content)
        assert properties.metadata == {"Key": "Value", "other": "a b"}
        assert properties.server_encrypted is True
        assert properties.creation_time == properties.last_modified
        assert (properties.lease.status, properties.lease.state) == ("unlocked", "available")
    properties = client.get_blob_properties()
    assert (properties.blob_tier, properties.blob_tier_inferred) == ("Hot", True)
    assert properties.archive_status is None
    assert properties.is_append_blob_sealed is None
    assert properties.tag_count is None


def test_answer_headers_of_get_blob(blob, container, raw):
    answer = raw.send("GET", f"/{container.container_name}/{quoted(blob.blob_name)}")
    assert answer.status == 200
    assert answer.headers["Accept-Ranges"] == "bytes"
    assert answer.headers["Content-Length"] == str(len(b"the first content"))
    assert answer.headers["Content-Type"] == "application/octet-stream"
    assert answer.headers["Content-MD5"] == base64_text(md5(b"the first content"))
    assert answer.headers["x-ms-blob-type"] == "BlockBlob"
    assert answer.headers["x-ms-server-encrypted"] == "true"
    assert answer.headers["x-ms-lease-status"] == "unlocked"
    assert answer.headers["x-ms-lease-state"] == "available"
    assert "x-ms-creation-time" in answer.headers
    assert "x-ms-lease-duration" not in answer.headers


def test_head_answers_the_headers_of_get(container, raw):
    client = container.get_blob_client("b")
    client.upload_blob(b"some content", content_settings=SETTINGS, metadata={"Case_Kept": "yes"})
    path = f"/{container.container_name}/b"
    of_each_request = {"date", "x-ms-request-id", "x-ms-client-request-id"}
    only_of_properties = {"x-ms-access-tier", "x-ms-access-tier-inferred", "x-ms-access-tier-change-time"}
    only_of_properties |= {"x-ms-smart-access-tier", "vary", "connection", "keep-alive"}

    def comparable(answer):
        assert answer.status == 200
        skipped = of_each_request | only_of_properties
        return {name.lower(): value for name, value in answer.headers.items() if name.lower() not in skipped}

    head, get = raw.send("HEAD", path), raw.send("GET", path)
    assert comparable(head) == comparable(get)
    assert (head.body, get.body) == (b"", b"some content")
    assert head.headers["x-ms-access-tier"] == "Hot"


@pytest.mark.parametrize("size", [0, 1, 100, 4096, 65536, 65537, 300_000, 5_000_000])
def test_content_of_every_size_comes_back(container, size):
    content = hashlib.shake_128(b"%d" % size).digest(size)
    client = container.get_blob_client(f"size-{size}")
    client.upload_blob(content)
    assert client.get_blob_properties().size == size
    assert client.download_blob().readall() == content


def test_upload_without_overwrite_keeps_the_existing_blob(blob):
    with refused(409, "BlobAlreadyExists"):
        blob.upload_blob(b"other")
    assert blob.download_blob().readall() == b"the first content"


def test_overwrite_replaces_content_properties_and_metadata(container):
    client = container.get_blob_client("b")
    first = client.upload_blob(b"first", content_settings=SETTINGS, metadata={"a": "1"})
    second = client.upload_blob(b"second!", overwrite=True)
    assert second["etag"] != first["etag"]
    properties = client.get_blob_properties()
    assert properties.size == 7
    assert properties.metadata == {}
    assert as_tuple(properties.content_settings) == ("application/octet-stream", None, None, None, None)
    assert client.download_blob().readall() == b"second!"


def test_etags_never_repeat_within_a_second(container):
    client = container.get_blob_client("b")
    seen = [client.upload_blob(b"x", overwrite=True)["etag"] for _ in range(30)]
    seen += [client.set_blob_metadata({"n": str(index)})["etag"] for index in range(30)]
    assert len(set(seen)) == 60
    assert seen == sorted(seen, key=lambda etag: int(etag.strip('"'), 16))


def test_plain_content_headers_are_stored_and_blob_headers_win(container, raw):
    path = f"/{container.container_name}/b"
    plain = {
        "x-ms-blob-type": "BlockBlob",
        "Content-Type": "text/plain",
        "Content-Encoding": "x-plain",
        "Content-Language": "en",
        "Cache-Control": "no-store",
    }
    assert raw.send("PUT", path, headers=plain, body=b"x").status == 201
    stored = raw.send("HEAD", path).headers
    assert [stored[name] for name in ("Content-Type", "Content-Encoding", "Content-Language", "Cache-Control")] == [
        "text/plain",
        "x-plain",
        "en",
        "no-store",
    ]
    both = plain | {"x-ms-blob-content-type": "text/html", "x-ms-blob-cache-control": "max-age=1"}
    assert raw.send("PUT", path, headers=both, body=b"x").status == 201
    stored = raw.send("HEAD", path).headers
    assert (stored["Content-Type"], stored["Cache-Control"]) == ("text/html", "max-age=1")


def test_access_tier_given_at_upload_is_not_inferred(container):
    client = container.get_blob_client("b")
    client.upload_blob(b"x", standard_blob_tier=StandardBlobTier.COOL)
    properties = client.get_blob_properties()
    assert properties.blob_tier == "Cool"
    assert not properties.blob_tier_inferred
    assert properties.blob_tier_change_time is not None


def test_set_metadata_replaces_the_whole_set_and_keeps_the_rest(container):
    client = container.get_blob_client("b")
    client.upload_blob(b"x", content_settings=SETTINGS, metadata={"a": "1", "b": "2"})
    before = client.get_blob_properties()
    updated = client.set_blob_metadata({"C": "3"})
    after = client.get_blob_properties()
    assert after.metadata == {"C": "3"}
    assert after.etag == updated["etag"] != before.etag
    assert as_tuple(after.content_settings) == as_tuple(SETTINGS)
    assert after.creation_time == before.creation_time
    client.set_blob_metadata({})
    assert client.get_blob_properties().metadata == {}
    assert client.download_blob().readall() == b"x"


def test_get_metadata_answers_metadata_only(container, raw):
    container.get_blob_client("b").upload_blob(b"content", metadata={"color": "red"})
    for method in ("GET", "HEAD"):
        answer = raw.send(method, f"/{container.container_name}/b", "comp=metadata")
        assert (answer.status, answer.body, answer.headers["x-ms-meta-color"]) == (200, b"", "red")
        assert "x-ms-blob-type" not in answer.headers


def test_set_properties_clears_what_is_not_sent(container):
    client = container.get_blob_client("b")
    client.upload_blob(b"x", content_settings=SETTINGS, metadata={"a": "1"})
    before = client.get_blob_properties()
    client.set_http_headers(ContentSettings(content_type="image/png"))
    after = client.get_blob_properties()
    assert as_tuple(after.content_settings) == ("image/png", None, None, None, None)
    assert after.content_settings.content_md5 is None
    assert after.metadata == {"a": "1"}
    assert after.etag != before.etag
    assert after.creation_time == before.creation_time


def test_set_properties_stores_what_is_sent(container):
    client = container.get_blob_client("b")
    client.upload_blob(b"x")
    digest = bytearray(range(16))
    client.set_http_headers(ContentSettings(**{**SETTINGS.__dict__, "content_md5": digest}))
    after = client.get_blob_properties()
    assert as_tuple(after.content_settings) == as_tuple(SETTINGS)
    assert after.content_settings.content_md5 == digest


def test_a_type_that_is_cleared_is_not_told(container, raw):
    client = container.get_blob_client("b")
    client.upload_blob(b"x", content_settings=SETTINGS)
    client.set_http_headers(ContentSettings(content_language="es"))
    for method in ["HEAD", "GET"]:
        answer = raw.send(method, f"/{container.container_name}/b")
        assert (answer.status, answer.headers["Content-Language"]) == (200, "es")
        assert "Content-Type" not in answer.headers
    assert [blob.content_settings.content_type for blob in container.list_blobs()] == [None]
    client.upload_blob(b"x", overwrite=True)
    assert client.get_blob_properties().content_settings.content_type == "application/octet-stream"


def test_an_md5_may_be_any_bytes_where_the_content_is_not_seen(container, raw):
    path, stored = f"/{container.container_name}/b", {"x-ms-blob-content-md5": base64_text(b"md5")}
    for kind, more in [("AppendBlob", {}), ("PageBlob", {"x-ms-blob-content-length": "512"})]:
        answer = raw.send("PUT", path, headers={"x-ms-blob-type": kind} | more | stored)
        assert answer.status == 201
        assert raw.send("HEAD", path).headers["Content-MD5"] == base64_text(b"md5")
        assert raw.send("DELETE", path).status == 202
    answer = raw.send("PUT", path, headers={"x-ms-blob-type": "BlockBlob"} | stored, body=b"x")
    assert (answer.status, answer.code) == (400, "InvalidMd5")
    container.upload_blob("b", b"x")
    client = container.get_blob_client("b")
    client.set_http_headers(ContentSettings(content_md5=bytearray(b"longer than sixteen bytes")))
    assert client.get_blob_properties().content_settings.content_md5 == b"longer than sixteen bytes"
    answer = raw.send("PUT", path, "comp=properties", {"x-ms-blob-content-md5": "not base64!"})
    assert (answer.status, answer.code) == (400, "InvalidMd5")


def test_content_length_header_is_refused_for_block_blobs(blob, container, raw):
    path = f"/{container.container_name}/{quoted(blob.blob_name)}"
    answer = raw.send("PUT", path, "comp=properties", {"x-ms-blob-content-length": "512"})
    # With this header it is the resizing of a page blob, which a server may not have yet.
    assert 400 <= answer.status < 500 or (answer.status, answer.code) == (501, "NotImplemented")
    assert blob.get_blob_properties().size == len(b"the first content")


def test_delete_removes_the_blob(blob):
    assert blob.exists()
    blob.delete_blob()
    assert not blob.exists()
    with refused(404, "BlobNotFound"):
        blob.delete_blob()
    with refused(404, "BlobNotFound"):
        blob.download_blob()
    with refused(404, "BlobNotFound"):
        blob.get_blob_properties()
    with refused(404, "BlobNotFound"):
        blob.set_blob_metadata({"a": "b"})
    with refused(404, "BlobNotFound"):
        blob.set_http_headers(SETTINGS)
    with refused(404, "BlobNotFound"):
        blob.acquire_lease(15)


def test_delete_answer_tells_that_it_is_permanent(blob, container, raw):
    answer = raw.send("DELETE", f"/{container.container_name}/{quoted(blob.blob_name)}")
    assert (answer.status, answer.body) == (202, b"")
    assert answer.headers["x-ms-delete-type-permanent"] == "true"


def test_recreated_blob_gets_a_new_creation_time_and_etag(blob):
    before = blob.get_blob_properties()
    blob.delete_blob()
    blob.upload_blob(b"again")
    after = blob.get_blob_properties()
    assert after.etag != before.etag
    assert after.creation_time >= before.creation_time


NAMES = [
    "plain.txt",
    "with space",
    "plus+sign",
    "percent%20sign",
    "percent%sign%",
    "a/b/c/d",
    "dots..in/.names/..x/x..",
    ".hidden",
    "dot.at.end.",
    "double//slash",
    "ümläut-ß",
    "日本語/ファイル",
    "emoji-🦀🗄️",
    "combining-e\u0301-and-\u00e9",
    "question?mark",
    "hash#mark",
    "amp&equals=semi;colon:",
    "quotes'\"<xml>&amp;",
    "tilde~star*bang!(paren)[bracket]{brace}@$,|^`",
    "trailing/",
    "UPPER",
    "upper",
    "0",
    "a" * 1024,
    "/".join(["s"] * 254),
]


@pytest.mark.parametrize("name", NAMES, ids=lambda name: ascii(name[:30]))
def test_name_comes_back_as_written(container, name):
    client = container.get_blob_client(name)
    client.upload_blob(name.encode())
    assert client.download_blob().readall() == name.encode()
    assert [item.name for item in container.list_blobs()] == [name]
    assert [item.name for item in container.list_blobs(name_starts_with=name)] == [name]
    client.delete_blob()
    assert list(container.list_blobs()) == []


@pytest.mark.parametrize("name", ["a" * 1025, "/".join(["s"] * 255)], ids=["1025 characters", "255 segments"])
def test_name_over_the_limit_is_refused(container, raw, name):
    answer = raw.send("PUT", f"/{container.container_name}/{name}", headers={"x-ms-blob-type": "BlockBlob"})
    assert answer.status == 400
    assert answer.code in ("InvalidUri", "InvalidResourceName", "OutOfRangeInput")
    assert list(container.list_blobs()) == []


def test_backslashes_in_names_are_slashes(container, raw):
    answer = raw.send("PUT", f"/{container.container_name}/a%5Cb%5cc", "", {"x-ms-blob-type": "BlockBlob"}, b"x")
    assert answer.status == 201
    assert [blob.name for blob in container.list_blobs()] == ["a/b/c"]
    assert [blob.name for blob in container.walk_blobs()] == ["a/"]
    assert container.get_blob_client("a/b/c").download_blob().readall() == b"x"
    assert container.get_blob_client("a\\b/c").download_blob().readall() == b"x"
    copy = container.get_blob_client("copy")
    copy.start_copy_from_url(f"{container.url}/a%5Cb%5Cc")
    assert copy.download_blob().readall() == b"x"


def test_names_that_xml_cannot_carry_are_listed_encoded(container, raw):
    names = ["a\uffff", "dir\ufffe/b"]
    for name in names:
        container.upload_blob(name, b"x")
        assert container.get_blob_client(name).download_blob().readall() == b"x"
    assert [blob.name for blob in container.list_blobs()] == names
    # The SDK tells the prefixes of a page before its blobs.
    assert [blob.name for blob in container.walk_blobs()] == ["dir\ufffe/", names[0]]
    answer = raw.send("GET", f"/{container.container_name}", "restype=container&comp=list")
    assert [name.get("Encoded") for name in answer.xml().iter("Name")] == ["true", "true"]


def test_names_differ_by_case_and_by_normalization(container):
    names = ["a", "A", "\u00e9", "e\u0301"]
    for name in names:
        container.upload_blob(name, name.encode())
    assert {name: container.download_blob(name).readall() for name in names} == {n: n.encode() for n in names}


@pytest.mark.parametrize(
    "headers, code",
    [
        ({"x-ms-meta-": "x"}, "EmptyMetadataKey"),
        ({"x-ms-meta-with-dash": "x"}, "InvalidMetadata"),
        ({"x-ms-meta-1digit": "x"}, "InvalidMetadata"),
        ({"x-ms-meta-big": "x" * 8192}, "MetadataTooLarge"),
    ],
    ids=["empty name", "dash", "digit first", "over 8 KiB"],
)
def test_bad_metadata_is_refused(container, raw, headers, code):
    answer = raw.send("PUT", f"/{container.container_name}/b", headers={"x-ms-blob-type": "BlockBlob"} | headers)
    assert (answer.status, answer.code) == (400, code)
    assert list(container.list_blobs()) == []


def test_metadata_of_eight_kib_is_taken(container):
    client = container.get_blob_client("b")
    metadata = {f"name{index}": "v" * 250 for index in range(31)}
    client.upload_blob(b"x", metadata=metadata)
    assert client.get_blob_properties().metadata == metadata


@pytest.mark.parametrize(
    "headers, status, code",
    [
        ({}, 400, "MissingRequiredHeader"),
        ({"x-ms-blob-type": "Nonsense"}, 400, "InvalidHeaderValue"),
        ({"x-ms-blob-type": "BlockBlob", "x-ms-blob-content-length": "512"}, 400, None),
        ({"x-ms-blob-type": "BlockBlob", "x-ms-access-tier": "Lukewarm"}, 400, None),
    ],
    ids=["no type", "unknown type", "length of a page blob", "unknown tier"],
)
def test_put_blob_checks_its_headers(container, raw, headers, status, code):
    answer = raw.send("PUT", f"/{container.container_name}/b", headers=headers, body=b"x")
    assert answer.status == status
    assert code in (None, answer.code)
    assert not container.get_blob_client("b").exists()
