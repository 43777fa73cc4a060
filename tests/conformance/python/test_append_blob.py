"""Append blobs: creation, Append Block and its conditions, Append Blob Seal."""

import io
from concurrent.futures import ThreadPoolExecutor

import pytest
from azure.core import MatchConditions
from azure.storage.blob import BlobType
from support import NEWEST_VERSION, base64_text, crc64_text, md5, refused


@pytest.fixture
def log(container):
    client = container.get_blob_client("log")
    client.create_append_blob()
    return client


@pytest.fixture
def path(container):
    return f"/{container.container_name}/log"


def outcome(answer):
    return answer.status, answer.code


def test_what_is_appended_comes_back_in_order(log):
    assert log.get_blob_properties().size == 0
    assert log.download_blob().readall() == b""
    expected = b""
    for number, size in enumerate([1, 700, 5000, 100_000, 3]):
        block = bytes([number]) * size
        answer = log.append_block(block)
        assert answer["blob_append_offset"] == str(len(expected))
        assert answer["blob_committed_block_count"] == number + 1
        expected += block
    assert log.download_blob().readall() == expected
    assert log.download_blob(offset=650, length=6000).readall() == expected[650:6650]
    properties = log.get_blob_properties()
    assert properties.blob_type == BlobType.AppendBlob
    assert properties.append_blob_committed_block_count == 5
    assert (properties.etag, properties.size) == (answer["etag"], len(expected))


def test_uploads_as_append_blobs_are_split_into_blocks(container):
    client = container.get_blob_client("b")
    client.upload_blob(io.BytesIO(b"one"), blob_type=BlobType.AppendBlob)
    client.upload_blob(io.BytesIO(b"two"), blob_type=BlobType.AppendBlob)
    assert client.download_blob().readall() == b"onetwo"
    client.upload_blob(io.BytesIO(b"new"), blob_type=BlobType.AppendBlob, overwrite=True)
    assert client.download_blob().readall() == b"new"


def test_creation(container, raw, path):
    kind = {"x-ms-blob-type": "AppendBlob"}
    assert outcome(raw.send("PUT", path, "", kind, b"content")) == (400, "InvalidHeaderValue")
    refused_length = {**kind, "x-ms-blob-content-length": "512"}
    assert outcome(raw.send("PUT", path, "", refused_length)) == (400, "InvalidHeaderValue")
    stored = {"x-ms-blob-content-type": "text/plain", "x-ms-meta-key": "value", "x-ms-tags": "one=1"}
    answer = raw.send("PUT", path, "", {**kind, **stored})
    assert answer.status == 201
    assert answer.headers["x-ms-request-server-encrypted"] == "true"
    properties = container.get_blob_client("log").get_blob_properties()
    assert (properties.etag, properties.tag_count) == (answer.headers["ETag"], 1)
    assert (properties.content_settings.content_type, properties.metadata) == ("text/plain", {"key": "value"})
    exists = {**kind, "If-None-Match": "*"}
    assert outcome(raw.send("PUT", path, "", exists)) == (409, "BlobAlreadyExists")
    block = {"x-ms-blob-type": "BlockBlob"}
    assert outcome(raw.send("PUT", path, "", block, b"x")) == (409, "InvalidBlobType")
    listed = list(container.list_blobs())
    assert [(blob.name, blob.blob_type) for blob in listed] == [("log", BlobType.AppendBlob)]


def test_appends_answer_digests_and_verify_them(log, raw, path):
    answer = raw.send("PUT", path, "comp=appendblock", {}, b"block")
    assert answer.status == 201
    # Since 2019-02-02 the MD5 is returned only to clients that send it.
    assert answer.headers["Content-MD5"] is None
    assert answer.headers["x-ms-content-crc64"] == crc64_text(b"block")
    for headers, code in (
        ({"Content-MD5": base64_text(md5(b"other"))}, "Md5Mismatch"),
        ({"x-ms-content-crc64": crc64_text(b"other")}, "Crc64Mismatch"),
        ({"x-ms-blob-condition-appendpos": "-1"}, "InvalidHeaderValue"),
        ({"x-ms-blob-condition-maxsize": "many"}, "InvalidHeaderValue"),
    ):
        assert outcome(raw.send("PUT", path, "comp=appendblock", headers, b"block")) == (400, code)
    assert outcome(raw.send("PUT", path, "comp=appendblock", {}, b"")) == (400, "InvalidHeaderValue")
    assert log.download_blob().readall() == b"block"


@pytest.mark.parametrize(("version", "mib"), [("2021-12-02", 4), ("2022-11-02", 100), (NEWEST_VERSION, 100)])
def test_appended_blocks_have_a_largest_length_by_version(log, raw, path, version, mib):
    too_long = {"Content-Length": str(mib * 1024 * 1024 + 1), "Expect": "100-continue"}
    answer = raw.send("PUT", path, "comp=appendblock", too_long, b"", version=version)
    assert outcome(answer) == (413, "RequestBodyTooLarge")
    assert answer.xml().findtext("MaxLimit") == str(mib * 1024 * 1024)


def test_position_and_size_conditions(log):
    log.append_block(b"0123456789", appendpos_condition=0)
    with refused(412, "AppendPositionConditionNotMet"):
        log.append_block(b"x", appendpos_condition=9)
    with refused(412, "MaxBlobSizeConditionNotMet"):
        log.append_block(b"x", maxsize_condition=10)
    log.append_block(b"x", maxsize_condition=11, appendpos_condition=10)
    with refused(412, "MaxBlobSizeConditionNotMet"):
        log.append_block(b"x", maxsize_condition=5)
    assert log.download_blob().readall() == b"0123456789x"


def test_other_conditions(log):
    before = log.get_blob_properties().etag
    log.append_block(b"x", etag=before, match_condition=MatchConditions.IfNotModified)
    with refused(412, "ConditionNotMet"):
        log.append_block(b"x", etag=before, match_condition=MatchConditions.IfNotModified)
    with refused(412, "ConditionNotMet"):
        log.append_block(b"x", if_tags_match_condition="one = '1'")
    with refused(412, "ConditionNotMet"):
        log.seal_append_blob(etag=before, match_condition=MatchConditions.IfNotModified)


def test_appends_are_for_append_blobs(container):
    with refused(404, "BlobNotFound"):
        container.get_blob_client("none").append_block(b"x")
    with refused(404, "BlobNotFound"):
        container.get_blob_client("none").seal_append_blob()
    container.upload_blob("block", b"x")
    with refused(409, "InvalidBlobType"):
        container.get_blob_client("block").append_block(b"x")
    with refused(409, "InvalidBlobType"):
        container.get_blob_client("block").seal_append_blob()


def test_leases_guard_appends(log):
    lease = log.acquire_lease()
    with refused(412, "LeaseIdMissing"):
        log.append_block(b"x")
    with refused(412, "LeaseIdMissing"):
        log.seal_append_blob()
    log.append_block(b"x", lease=lease)
    log.seal_append_blob(lease=lease)


def test_a_seal_ends_the_appends_and_nothing_else(log, raw, path):
    log.append_block(b"content")
    with refused(412, "AppendPositionConditionNotMet"):
        log.seal_append_blob(appendpos_condition=3)
    assert log.get_blob_properties().is_append_blob_sealed is None
    sealed = raw.send("PUT", path, "comp=seal", {"x-ms-blob-condition-appendpos": "7"})
    assert (sealed.status, sealed.headers["x-ms-blob-sealed"]) == (200, "true")
    assert log.seal_append_blob()["etag"] == sealed.headers["ETag"]
    with refused(409, "BlobIsSealed"):
        log.append_block(b"x")
    properties = log.get_blob_properties()
    assert (properties.is_append_blob_sealed, properties.etag) == (True, sealed.headers["ETag"])
    log.set_blob_metadata({"key": "value"})
    assert log.get_blob_properties().is_append_blob_sealed is True
    assert log.download_blob().readall() == b"content"
    log.create_append_blob()
    log.append_block(b"new")
    assert log.download_blob().readall() == b"new"


def test_many_appenders_lose_and_reorder_nothing(log):
    def append(appender):
        lines = [f"{appender:02} {number}\n".encode() for number in range(5)]
        return [(int(log.append_block(line)["blob_append_offset"]), line) for line in lines]

    with ThreadPoolExecutor(16) as threads:
        lines = sorted(line for lines in threads.map(append, range(16)) for line in lines)
    assert log.download_blob().readall() == b"".join(line for _, line in lines)
    assert log.get_blob_properties().append_blob_committed_block_count == 80
