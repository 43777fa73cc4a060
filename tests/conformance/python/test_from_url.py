"""The writes that take their bytes from a URL: Put Blob, Put Block, Append Block and Put Page From URL."""

import base64
from datetime import datetime, timedelta, timezone

import pytest
from azure.core import MatchConditions
from azure.core.exceptions import ResourceNotFoundError
from azure.storage.blob import BlobBlock, BlobServiceClient, BlobType, ContentSettings
from copy_source import copy_source
from own_server import own_server
from support import base64_text, crc64_text, md5, readable, refused, unique

CONTENT = bytes(range(256)) * 40
EARLIER = datetime.now(timezone.utc) - timedelta(hours=1)
LATER = datetime.now(timezone.utc) + timedelta(hours=1)


@pytest.fixture
def source(container):
    client = container.get_blob_client("the source")
    settings = ContentSettings(content_type="text/plain", content_language="de")
    client.upload_blob(CONTENT, content_settings=settings, metadata={"who": "source"}, tags={"t": "source"})
    return client


@pytest.fixture
def destination(container):
    return container.get_blob_client("the destination")


# Put Blob From URL


def test_a_blob_is_put_from_a_url(source, destination):
    put = destination.upload_blob_from_url(readable(source))
    assert put["content_md5"] == bytearray(md5(CONTENT)) and put["etag"]
    written = destination.get_blob_properties()
    assert destination.download_blob().readall() == CONTENT
    assert written.content_settings.content_type == "text/plain"
    assert written.content_settings.content_language == "de"
    assert (written.metadata, written.tag_count) == ({"who": "source"}, None)
    assert written.copy.id is None


def test_properties_can_be_left_behind_or_replaced(source, destination):
    destination.upload_blob_from_url(readable(source), include_source_blob_properties=False)
    written = destination.get_blob_properties()
    assert written.content_settings.content_type == "application/octet-stream" and written.metadata == {}
    destination.upload_blob_from_url(
        readable(source), overwrite=True, metadata={"mine": "1"}, tags={"a": "b"},
        content_settings=ContentSettings(content_type="text/x-mine"),
    )
    written = destination.get_blob_properties()
    assert written.content_settings.content_type == "text/x-mine"
    assert written.content_settings.content_language == "de"
    assert (written.metadata, written.tag_count) == ({"mine": "1"}, 1)


def test_tags_of_the_source_are_put_where_that_is_asked(raw, container, source):
    path = f"/{container.container_name}/tagged"
    asked = {"x-ms-blob-type": "BlockBlob", "x-ms-copy-source": readable(source), "x-ms-copy-source-tag-option": "COPY"}
    assert raw.send("PUT", path, headers=asked).status == 201
    assert raw.send("HEAD", path).headers["x-ms-tag-count"] == "1"
    answer = raw.send("PUT", path, headers=asked | {"x-ms-tags": "a=b"})
    assert (answer.status, answer.code) == (400, "BothUserTagsAndSourceTagsCopyPresentException")


def test_a_blob_is_put_only_where_there_is_none(source, destination):
    destination.upload_blob_from_url(readable(source))
    with refused(409, "BlobAlreadyExists"):
        destination.upload_blob_from_url(readable(source), overwrite=False)


def test_a_blob_is_put_onto_itself(source):
    source.upload_blob_from_url(readable(source), overwrite=True, metadata={"again": "1"})
    assert source.download_blob().readall() == CONTENT
    assert source.get_blob_properties().metadata == {"again": "1"}


def test_the_bytes_must_be_what_they_are_said_to_be(source, destination):
    destination.upload_blob_from_url(readable(source), source_content_md5=bytearray(md5(CONTENT)))
    with refused(400, "Md5Mismatch"):
        destination.upload_blob_from_url(readable(source), overwrite=True, source_content_md5=bytearray(md5(b"x")))


def test_conditions_on_the_source_of_a_put(source, destination):
    etag = source.get_blob_properties().etag
    with refused(412, "CannotVerifyCopySource"):
        destination.upload_blob_from_url(
            readable(source), source_etag=etag, source_match_condition=MatchConditions.IfModified
        )
    assert not destination.exists()
    # The SDK takes it for a source that is not there, and its own tests rely on that.
    for condition in ({"source_if_modified_since": LATER}, {"source_if_unmodified_since": EARLIER}):
        with pytest.raises(ResourceNotFoundError):
            destination.upload_blob_from_url(readable(source), **condition)


@pytest.mark.parametrize("kind", ["AppendBlob", "PageBlob"])
def test_every_kind_of_source_becomes_a_block_blob(container, destination, kind):
    source = container.get_blob_client(kind)
    source.upload_blob(CONTENT, blob_type=BlobType(kind))
    destination.upload_blob_from_url(readable(source))
    assert destination.get_blob_properties().blob_type == "BlockBlob"
    assert destination.download_blob().readall() == CONTENT


def test_a_body_beside_the_url_is_refused(raw, container, source):
    headers = {"x-ms-blob-type": "BlockBlob", "x-ms-copy-source": readable(source)}
    answer = raw.send("PUT", f"/{container.container_name}/b", headers=headers, body=b"body")
    assert (answer.status, answer.code) == (400, "InvalidHeaderValue")
    answer = raw.send("PUT", f"/{container.container_name}/b", headers=headers | {"x-ms-source-range": "bytes=0-1"})
    assert (answer.status, answer.code) == (400, "InvalidHeaderValue")


# Put Block From URL


def test_blocks_are_put_from_a_url(source, destination):
    destination.stage_block_from_url("a", readable(source), source_offset=0, source_length=1000)
    destination.stage_block_from_url("b", readable(source), source_offset=1000, source_length=500)
    destination.stage_block_from_url("c", readable(source))
    destination.commit_block_list([BlobBlock("b"), BlobBlock("a"), BlobBlock("c")])
    assert destination.download_blob().readall() == CONTENT[1000:1500] + CONTENT[:1000] + CONTENT


def test_a_block_must_be_what_it_is_said_to_be(raw, container, source):
    path = f"/{container.container_name}/blocks"
    query = f"comp=block&blockid={base64.b64encode(b'a').decode().replace('=', '%3D')}"
    part = CONTENT[:100]
    asked = {"x-ms-copy-source": readable(source), "x-ms-source-range": "bytes=0-99"}
    for name, right, wrong, code in [
        ("md5", base64_text(md5(part)), base64_text(md5(b"x")), "Md5Mismatch"),
        ("crc64", crc64_text(part), crc64_text(b"x"), "Crc64Mismatch"),
    ]:
        answer = raw.send("PUT", path, query, asked | {f"x-ms-source-content-{name}": right})
        assert answer.status == 201, answer.body
        answer = raw.send("PUT", path, query, asked | {f"x-ms-source-content-{name}": wrong})
        assert (answer.status, answer.code) == (400, code)
    assert raw.send("PUT", path, query, asked | {"x-ms-source-range": "bytes=99999-"}).status == 416
    assert raw.send("PUT", path, query, asked | {"x-ms-source-range": "bytes"}).status == 400
    refused_body = raw.send("PUT", path, query, asked, b"body")
    assert (refused_body.status, refused_body.code) == (400, "InvalidHeaderValue")
    condition = {"x-ms-source-if-match": '"0x1"'}
    answer = raw.send("PUT", path, query, asked | condition)
    assert (answer.status, answer.code) == (412, "SourceConditionNotMet")
    # Put Block takes no conditions of its own.
    answer = raw.send("PUT", path, query, asked | {"If-Match": "*"})
    assert (answer.status, answer.code) == (400, "ConditionHeadersNotSupported")


# Append Block From URL


def test_blocks_are_appended_from_a_url(container, source, destination):
    destination.create_append_blob()
    first = destination.append_block_from_url(readable(source), source_offset=0, source_length=1000)
    assert (first["blob_append_offset"], first["blob_committed_block_count"]) == ("0", 1)
    second = destination.append_block_from_url(
        readable(source), source_offset=1000, source_length=24, appendpos_condition=1000
    )
    assert (second["blob_append_offset"], second["blob_committed_block_count"]) == ("1000", 2)
    assert destination.download_blob().readall() == CONTENT[:1024]
    with refused(412, "AppendPositionConditionNotMet"):
        destination.append_block_from_url(readable(source), source_offset=0, source_length=1, appendpos_condition=7)
    with refused(400, "Md5Mismatch"):
        destination.append_block_from_url(
            readable(source), source_offset=0, source_length=1, source_content_md5=bytearray(md5(b"x"))
        )
    with refused(404, "CannotVerifyCopySource"):
        destination.append_block_from_url(readable(container.get_blob_client("missing")), source_offset=0, source_length=1)
    for condition in (
        {"source_if_modified_since": LATER},
        {"source_if_unmodified_since": EARLIER},
        {"source_etag": '"0x1"', "source_match_condition": MatchConditions.IfNotModified},
        {"source_etag": source.get_blob_properties().etag, "source_match_condition": MatchConditions.IfModified},
    ):
        with refused(412, "CannotVerifyCopySource") as caught:
            destination.append_block_from_url(readable(source), source_offset=0, source_length=1, **condition)
        assert isinstance(caught.value, ResourceNotFoundError)
        assert caught.value.message.startswith("The condition specified using HTTP conditional header(s) is not met.")


# Put Page From URL


def test_pages_are_put_from_a_url(raw, container, source, destination):
    destination.create_page_blob(4096)
    destination.upload_pages_from_url(readable(source), offset=512, length=1024, source_offset=2)
    expected = bytes(512) + CONTENT[2:1026]
    assert destination.download_blob().readall() == expected + bytes(4096 - len(expected))
    with refused(412, "SequenceNumberConditionNotMet"):
        destination.upload_pages_from_url(
            readable(source), offset=0, length=512, source_offset=0, if_sequence_number_lt=0
        )
    with refused(412, "SourceConditionNotMet"):
        destination.upload_pages_from_url(
            readable(source), offset=0, length=512, source_offset=0,
            source_etag='"0x1"', source_match_condition=MatchConditions.IfNotModified,
        )
    path = f"/{container.container_name}/{destination.blob_name.replace(' ', '%20')}"
    asked = {"x-ms-page-write": "update", "x-ms-copy-source": readable(source), "x-ms-range": "bytes=0-511"}
    for source_range, status, code in [
        (None, 400, "MissingRequiredHeader"),
        ("bytes=0-1023", 400, "InvalidHeaderValue"),
        ("bytes=0-", 400, "InvalidHeaderValue"),
        (f"bytes={len(CONTENT) - 256}-{len(CONTENT) + 255}", 416, "InvalidRange"),
    ]:
        answer = raw.send("PUT", path, "comp=page", asked | {"x-ms-source-range": source_range})
        assert (answer.status, answer.code) == (status, code), source_range
    large = {"x-ms-range": "bytes=0-4194815", "x-ms-source-range": "bytes=0-4194815"}
    answer = raw.send("PUT", path, "comp=page", asked | large)
    assert (answer.status, answer.code) == (413, "RequestBodyTooLarge")


# From elsewhere


@pytest.fixture(scope="module")
def elsewhere():
    with copy_source() as (source, host), own_server(f"--copy-source-host={host}") as connection:
        with BlobServiceClient.from_connection_string(connection, retry_total=0) as client:
            source.serve("/far", CONTENT, Content_Type="text/x-far")
            yield f"http://{host}/far", client.create_container("from-url")


def test_all_of_them_read_from_elsewhere(elsewhere):
    url, container = elsewhere
    blob = container.get_blob_client(unique("blob"))
    blob.upload_blob_from_url(url)
    assert blob.download_blob().readall() == CONTENT
    assert blob.get_blob_properties().content_settings.content_type == "text/x-far"
    blob.stage_block_from_url("a", url, source_offset=5, source_length=10)
    blob.commit_block_list([BlobBlock("a")])
    assert blob.download_blob().readall() == CONTENT[5:15]
    log = container.get_blob_client(unique("log"))
    log.create_append_blob()
    log.append_block_from_url(url, source_offset=5, source_length=10)
    assert log.download_blob().readall() == CONTENT[5:15]
    disk = container.get_blob_client(unique("disk"))
    disk.create_page_blob(512)
    disk.upload_pages_from_url(url, offset=0, length=512, source_offset=7)
    assert disk.download_blob().readall() == CONTENT[7:519]
    with refused(404, "CannotVerifyCopySource"):
        blob.upload_blob_from_url(url + "-missing", overwrite=True)
