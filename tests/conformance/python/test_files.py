"""Files: create, read, properties, metadata, resize, delete."""

from datetime import datetime, timezone

import pytest
from azure.storage.fileshare import ContentSettings, NTFSAttributes
from support import ETAG, base64_text, crc64_text, md5, refused

CONTENT = bytes(range(256)) * 40


@pytest.fixture
def file(share):
    client = share.get_file_client("a file.bin")
    client.upload_file(CONTENT)
    return client


def path(file):
    return f"/{file.share_name}/{'/'.join(file.file_path).replace(' ', '%20')}"


def test_a_file_is_zeros_until_it_is_written(share):
    file = share.get_file_client("empty")
    created = file.create_file(1000, metadata={"Name": "value"})
    assert ETAG.match(created["etag"])
    assert created["file_attributes"] == "Archive"
    assert file.download_file().readall() == bytes(1000)
    properties = file.get_file_properties()
    assert (properties.size, properties.metadata) == (1000, {"Name": "value"})
    assert properties.lease.state == "available" and properties.lease.status == "unlocked"
    assert properties.file_type == "File"
    assert properties.server_encrypted
    assert properties.content_settings.content_type == "application/octet-stream"


def test_content_comes_back(file):
    assert file.download_file().readall() == CONTENT
    assert file.download_file(offset=100, length=50).readall() == CONTENT[100:150]
    assert file.download_file(offset=10_000).readall() == CONTENT[10_000:]


def test_ranges_of_a_download(file_raw, file):
    get = lambda headers: file_raw.send("GET", path(file), headers=headers)
    answer = get({"x-ms-range": "bytes=5-14"})
    assert (answer.status, answer.body) == (206, CONTENT[5:15])
    assert answer.headers["Content-Range"] == f"bytes 5-14/{len(CONTENT)}"
    answer = get({"Range": "bytes=5-14", "x-ms-range-get-content-md5": "true"})
    assert answer.headers["Content-MD5"] == base64_text(md5(CONTENT[5:15]))
    answer = get({"x-ms-range": f"bytes={len(CONTENT)}-"})
    assert (answer.status, answer.code) == (416, "InvalidRange")
    answer = get({"x-ms-range-get-content-md5": "true"})
    assert (answer.status, answer.code) == (400, "InvalidHeaderValue")
    answer = get({"x-ms-structured-body": "XSM/1.0; properties=crc64"})
    assert answer.headers["x-ms-structured-content-length"] == str(len(CONTENT))
    assert CONTENT in answer.body


def test_a_validated_download(file):
    assert file.download_file(validate_content=True).readall() == CONTENT


def test_a_file_is_replaced_as_a_whole(file):
    before = file.get_file_properties()
    file.create_file(5, content_settings=ContentSettings(content_type="text/plain"))
    after = file.get_file_properties()
    assert (after.size, after.content_settings.content_type) == (5, "text/plain")
    assert after.etag != before.etag
    assert file.download_file().readall() == bytes(5)


def test_names_keep_their_case_and_compare_without_it(share, file):
    other = share.get_file_client("A FILE.BIN")
    assert other.download_file().readall() == CONTENT
    assert [entry["name"] for entry in share.list_directories_and_files()] == ["a file.bin"]


def test_stored_headers(file):
    settings = ContentSettings(
        content_type="text/plain",
        content_encoding="utf-8",
        content_language="en",
        content_disposition="inline",
        cache_control="no-store",
        content_md5=bytearray(md5(CONTENT)),
    )
    file.set_http_headers(settings)
    got = file.get_file_properties().content_settings
    assert (got.content_type, got.content_encoding, got.content_language) == ("text/plain", "utf-8", "en")
    assert (got.content_disposition, got.cache_control) == ("inline", "no-store")
    assert bytes(got.content_md5) == md5(CONTENT)
    file.set_http_headers(ContentSettings(content_type="text/html"))
    got = file.get_file_properties().content_settings
    assert got.content_type == "text/html"
    assert (got.content_encoding, got.content_language, got.cache_control) == (None, None, None)
    file.set_http_headers(ContentSettings(content_language="es", content_md5=bytearray(b"md5")))
    got = file.get_file_properties().content_settings
    assert (got.content_type, got.content_language, got.content_md5) == (None, "es", b"md5")


def test_resizing_keeps_what_is_left_of_the_content(file_raw, file):
    settings = ContentSettings(content_type="text/plain")
    file.set_http_headers(settings)
    file.resize_file(100)
    assert file.download_file().readall() == CONTENT[:100]
    file.resize_file(200)
    assert file.download_file().readall() == CONTENT[:100] + bytes(100)
    assert file.get_file_properties().content_settings.content_type == "text/plain"
    file.resize_file(0)
    assert file.download_file().readall() == b""


def test_lengths_have_a_limit(file_raw, share):
    put = lambda length: file_raw.send(
        "PUT", f"/{share.share_name}/long", headers={"x-ms-type": "file", "x-ms-content-length": length}
    )
    assert put(str(4 << 40)).status == 201
    assert (put(str((4 << 40) + 1)).status, put("-1").code) == (400, "InvalidHeaderValue")
    assert put(None).code == "MissingRequiredHeader"


def test_properties_of_smb_are_set_and_kept(share):
    file = share.get_file_client("f")
    moment = datetime(2021, 5, 6, 7, 8, 9, 123456, tzinfo=timezone.utc)
    file.create_file(
        10,
        file_attributes=NTFSAttributes(hidden=True, temporary=True),
        file_creation_time=moment,
        file_last_write_time=moment,
        file_change_time=moment,
    )
    properties = file.get_file_properties()
    assert properties.file_attributes == "Hidden | Archive | Temporary"
    times = (properties.creation_time, properties.last_write_time, properties.change_time)
    assert {time.replace(tzinfo=timezone.utc) for time in times} == {moment}

    file.set_http_headers(ContentSettings(), file_attributes="none", file_last_write_time="now")
    properties = file.get_file_properties()
    assert properties.file_attributes == "None"
    assert properties.creation_time.replace(tzinfo=timezone.utc) == moment
    assert properties.last_write_time.replace(tzinfo=timezone.utc) > moment


def test_what_is_restored_is_as_it_is_sent(file_raw, share):
    headers = {
        "x-ms-type": "file",
        "x-ms-content-length": "0",
        "x-ms-file-attributes": "None",
        "x-ms-file-property-semantics": "Restore",
    }
    answer = file_raw.send("PUT", f"/{share.share_name}/restored", headers=headers)
    assert (answer.status, answer.headers["x-ms-file-attributes"]) == (201, "None")
    headers["x-ms-file-property-semantics"] = "New"
    answer = file_raw.send("PUT", f"/{share.share_name}/new", headers=headers)
    assert answer.headers["x-ms-file-attributes"] == "Archive"


def test_a_read_only_file_is_not_written(file):
    file.set_http_headers(ContentSettings(), file_attributes="ReadOnly")
    for call in (
        lambda: file.upload_range(b"x", 0, 1),
        lambda: file.create_file(1),
        lambda: file.set_file_metadata({"a": "b"}),
        lambda: file.set_http_headers(ContentSettings(), file_attributes="preserve"),
    ):
        with refused(409, "ReadOnlyAttribute"):
            call()
    file.set_http_headers(ContentSettings(), file_attributes="none")
    file.upload_range(b"x", 0, 1)


def test_metadata(file_raw, file):
    file.set_file_metadata({"One": "1"})
    assert file.get_file_properties().metadata == {"One": "1"}
    answer = file_raw.send("GET", path(file), "comp=metadata")
    assert (answer.status, answer.headers["x-ms-meta-One"]) == (200, "1")
    file.set_file_metadata({})
    assert file.get_file_properties().metadata == {}


def test_delete(share, file):
    file.delete_file()
    for call in (
        file.delete_file,
        file.get_file_properties,
        file.download_file,
        lambda: file.set_file_metadata({}),
        lambda: file.upload_range(b"x", 0, 1),
        lambda: file.set_http_headers(ContentSettings()),
    ):
        with refused(404, "ResourceNotFound"):
            call()
    assert not file.exists()
    with refused(404, "ParentNotFound"):
        share.get_file_client("nowhere/file").create_file(0)


def test_a_file_has_no_slash_at_its_end(file_raw, share):
    headers = {"x-ms-type": "file", "x-ms-content-length": "0"}
    answer = file_raw.send("PUT", f"/{share.share_name}/file/", headers=headers)
    assert (answer.status, answer.code) == (400, "InvalidUri")


def test_a_file_is_created_with_its_first_bytes(file_raw, share):
    def put(body, length, version="2026-02-06", **more):
        headers = {"x-ms-type": "file", "x-ms-content-length": str(length)} | more
        return file_raw.send("PUT", f"/{share.share_name}/with", headers=headers, body=body, version=version)

    answer = put(b"first", 8, **{"Content-MD5": base64_text(md5(b"first"))})
    assert (answer.status, answer.headers["Content-MD5"]) == (201, base64_text(md5(b"first")))
    file = share.get_file_client("with")
    assert file.download_file().readall() == b"first" + bytes(3)
    assert put(b"longer", 5).status in (400, 413)
    answer = put(b"first", 5, **{"Content-MD5": base64_text(md5(b"other"))})
    assert (answer.status, answer.code) == (400, "Md5Mismatch")
    assert put(b"first", 5, "2025-11-05").code == "InvalidHeaderValue"
    assert put(b"first", 5, **{"x-ms-content-crc64": crc64_text(b"first")}).status == 201


def test_the_sdk_creates_with_data(share):
    file = share.get_file_client("with data")
    file.create_file(4, data=b"data")
    assert file.download_file().readall() == b"data"


def test_conditions_are_refused(file_raw, file):
    for name in ("If-Match", "If-None-Match"):
        answer = file_raw.send("GET", path(file), headers={name: "*"})
        assert (answer.status, answer.code) == (400, "ConditionHeadersNotSupported")


def test_a_file_of_a_snapshot_stays_as_it_was(share, file):
    snapshot = share.create_snapshot()
    file.upload_range(b"changed", 0, 7)
    file.set_file_metadata({"later": "1"})
    from azure.storage.fileshare import ShareClient
    from support import connection_string

    with ShareClient.from_connection_string(connection_string(), share.share_name, snapshot=snapshot) as past:
        old = past.get_file_client("a file.bin")
        assert old.download_file().readall() == CONTENT
        assert old.get_file_properties().metadata == {}
        file.delete_file()
        assert old.download_file(offset=0, length=10).readall() == CONTENT[:10]
        with refused(400, "InvalidQueryParameterValue"):
            old.delete_file()


def test_a_full_share_takes_no_more(share):
    share.set_share_properties(quota=1)
    gib = 1 << 30
    file = share.get_file_client("large")
    file.create_file(gib)
    with refused(403, "ShareSizeLimitReached"):
        share.get_file_client("more").create_file(1)
    with refused(403, "ShareSizeLimitReached"):
        file.resize_file(gib + 1)
    share.get_file_client("empty").create_file(0)
    file.resize_file(10)
    share.get_file_client("more").create_file(1)
