"""Put Range, Put Range From URL, List Ranges."""

import pytest
from azure.storage.fileshare import ShareClient
from support import base64_text, connection_string, crc64_text, md5, readable, refused

MIB = 1024 * 1024


@pytest.fixture
def file(share):
    client = share.get_file_client("file")
    client.create_file(4 * MIB)
    return client


def put(file_raw, file, headers, body=b"", query="comp=range", version=""):
    return file_raw.send("PUT", f"/{file.share_name}/file", query, headers, body, version=version)


def ranges(file):
    return [(found["start"], found["end"]) for found in file.get_ranges()]


def test_ranges_are_written_and_told(file):
    assert ranges(file) == []
    file.upload_range(b"a" * 512, 0, 512)
    file.upload_range(b"b" * 1024, 4096, 1024)
    assert ranges(file) == [(0, 511), (4096, 5119)]
    content = file.download_file().readall()
    assert content[:512] == b"a" * 512 and content[512:4096] == bytes(3584) and content[4096:5120] == b"b" * 1024
    assert [(found["start"], found["end"]) for found in file.get_ranges(offset=300, length=4000)] == [
        (0, 511),
        (4096, 4607),
    ]
    assert len(list(file.list_ranges())) == 2


def test_ranges_need_no_alignment(file):
    file.upload_range(b"x" * 10, 100, 10)
    assert file.download_file(offset=95, length=20).readall() == bytes(5) + b"x" * 10 + bytes(5)
    [(start, end)] = ranges(file)
    assert start <= 100 and end >= 109


def test_whole_pieces_are_freed_and_the_rest_zeroed(file_raw, file):
    file.upload_range(b"x" * 2048, 0, 2048)
    # The SDK clears whole pieces only.
    assert put(file_raw, file, {"x-ms-range": "bytes=100-1535", "x-ms-write": "clear"}).status == 201
    assert file.download_file(offset=0, length=2048).readall() == b"x" * 100 + bytes(1436) + b"x" * 512
    assert ranges(file) == [(0, 511), (1536, 2047)]
    file.clear_range(0, 4 * MIB)
    assert ranges(file) == []


def test_four_mebibytes_at_once(file_raw, share):
    file = share.get_file_client("file")
    file.create_file(8 * MIB)
    body = bytes(range(256)) * (4 * MIB // 256)
    file.upload_range(body, 1000, len(body))
    assert file.download_file(offset=1000, length=len(body)).readall() == body
    answer = put(file_raw, file, {"x-ms-range": f"bytes=0-{4 * MIB}", "x-ms-write": "update"}, body + b"x")
    assert (answer.status, answer.code) == (413, "RequestBodyTooLarge")


def test_digests_are_checked(file_raw, file):
    headers = {"x-ms-range": "bytes=0-4", "x-ms-write": "update"}
    answer = put(file_raw, file, headers | {"Content-MD5": base64_text(md5(b"other"))}, b"bytes")
    assert (answer.status, answer.code) == (400, "Md5Mismatch")
    answer = put(file_raw, file, headers | {"Content-MD5": base64_text(md5(b"bytes"))}, b"bytes")
    assert (answer.status, answer.headers["Content-MD5"]) == (201, base64_text(md5(b"bytes")))
    answer = put(file_raw, file, headers | {"x-ms-content-crc64": crc64_text(b"other")}, b"bytes")
    assert (answer.status, answer.code) == (400, "Crc64Mismatch")
    file.upload_range(b"bytes", 0, 5, validate_content=True)


@pytest.mark.parametrize(
    ("headers", "body", "status", "code"),
    [
        ({"x-ms-write": "update"}, b"x", 400, "MissingRequiredHeader"),
        ({"x-ms-range": "bytes=0-", "x-ms-write": "update"}, b"x", 400, "InvalidHeaderValue"),
        ({"x-ms-range": "bytes=0-1", "x-ms-write": "update"}, b"x", 400, "InvalidHeaderValue"),
        ({"x-ms-range": "bytes=0-0", "x-ms-write": "clear"}, b"x", 400, "InvalidHeaderValue"),
        ({"x-ms-range": "bytes=0-0", "x-ms-write": "append"}, b"x", 400, "InvalidHeaderValue"),
        ({"x-ms-range": "bytes=0-0"}, b"x", 400, "MissingRequiredHeader"),
        ({"x-ms-range": f"bytes={4 * MIB}-{4 * MIB}", "x-ms-write": "update"}, b"x", 416, "InvalidRange"),
        ({"x-ms-range": f"bytes=0-{4 * MIB}", "x-ms-write": "clear"}, b"", 416, "InvalidRange"),
        (
            {"x-ms-range": "bytes=0-0", "x-ms-write": "update", "x-ms-file-last-write-time": "2020-01-01"},
            b"x",
            400,
            "InvalidHeaderValue",
        ),
    ],
)
def test_what_is_no_range_is_refused(file_raw, file, headers, body, status, code):
    answer = put(file_raw, file, headers, body)
    assert (answer.status, answer.code) == (status, code)


def test_the_time_of_the_last_write_can_stay(file):
    before = file.get_file_properties().last_write_time
    file.upload_range(b"x", 0, 1, file_last_write_mode="Preserve")
    assert file.get_file_properties().last_write_time == before
    file.upload_range(b"x", 0, 1, file_last_write_mode="Now")
    assert file.get_file_properties().last_write_time > before


# From a URL


@pytest.fixture
def source(share):
    client = share.get_file_client("source")
    client.upload_file(b"0123456789")
    return client


def test_a_range_comes_from_another_file(file, source):
    file.upload_range_from_url(readable(source), offset=100, length=5, source_offset=2)
    assert file.download_file(offset=98, length=9).readall() == bytes(2) + b"23456" + bytes(2)


def test_a_range_comes_from_a_blob(file, container):
    blob = container.upload_blob("b", b"of a blob")
    file.upload_range_from_url(readable(blob), offset=0, length=4, source_offset=5)
    assert file.download_file(offset=0, length=5).readall() == b"blob" + bytes(1)


def test_conditions_on_the_crc64_of_the_source(file_raw, file, source):
    headers = {
        "x-ms-write": "update",
        "x-ms-range": "bytes=0-4",
        "x-ms-source-range": "bytes=0-4",
        "x-ms-copy-source": readable(source),
    }
    right, wrong = crc64_text(b"01234"), crc64_text(b"x")
    for name, value, status in (
        ("x-ms-source-if-match-crc64", right, 201),
        ("x-ms-source-if-match-crc64", wrong, 412),
        ("x-ms-source-if-none-match-crc64", wrong, 201),
        ("x-ms-source-if-none-match-crc64", right, 412),
        ("x-ms-source-content-crc64", right, 201),
        ("x-ms-source-content-crc64", wrong, 400),
    ):
        answer = put(file_raw, file, headers | {name: value})
        assert answer.status == status, (name, answer.body)
        if status == 412:
            assert answer.code == "SourceConditionNotMet"
    assert put(file_raw, file, headers | {"x-ms-source-if-match-crc64": right}).headers["x-ms-content-crc64"] == right


def test_a_source_must_be_there_and_as_long(file_raw, share, file, source):
    missing = share.get_file_client("missing")
    headers = {"x-ms-write": "update", "x-ms-range": "bytes=0-4", "x-ms-copy-source": readable(missing)}
    answer = put(file_raw, file, headers | {"x-ms-source-range": "bytes=0-4"})
    assert (answer.status, answer.code) == (404, "CannotVerifyCopySource")
    headers["x-ms-copy-source"] = readable(source)
    answer = put(file_raw, file, headers | {"x-ms-source-range": "bytes=0-5"})
    assert (answer.status, answer.code) == (400, "InvalidHeaderValue")


# Against a snapshot


def test_what_has_changed_since_a_snapshot(share, file):
    file.upload_range(b"a" * 1024, 0, 1024)
    file.upload_range(b"b" * 1024, 8192, 1024)
    before = share.create_snapshot()
    file.upload_range(b"c" * 512, 512, 512)
    file.clear_range(8192, 512)
    written, cleared = file.get_ranges_diff(before)
    assert [(found["start"], found["end"]) for found in written] == [(512, 1023)]
    assert [(found["start"], found["end"]) for found in cleared] == [(8192, 8703)]
    # Nothing was there before, but it has been written and cleared since.
    file.upload_range(b"d" * 512, 16384, 512)
    file.clear_range(16384, 512)
    _, cleared = file.get_ranges_diff(before)
    assert [(found["start"], found["end"]) for found in cleared] == [(8192, 8703), (16384, 16895)]
    with refused(409, "PreviousSnapshotNotFound"):
        file.get_ranges_diff("2020-01-01T00:00:00.0000000Z")

    other = share.get_file_client("new")
    other.create_file(512)
    with refused(404, "ResourceNotFound"):
        other.get_ranges_diff(before)
    file.delete_file()
    file.create_file(4 * MIB)
    with refused(409, "FileGenerationMismatch"):
        file.get_ranges_diff(before)


def test_ranges_of_a_snapshot(share, file):
    file.upload_range(b"a" * 512, 0, 512)
    first = share.create_snapshot()
    file.upload_range(b"a" * 512, 1024, 512)
    with ShareClient.from_connection_string(connection_string(), share.share_name, snapshot=first) as past:
        assert ranges(past.get_file_client("file")) == [(0, 511)]
    assert ranges(file) == [(0, 511), (1024, 1535)]


def test_a_renamed_file_is_followed_if_that_is_asked_for(share, file):
    file.upload_range(b"a" * 512, 0, 512)
    before = share.create_snapshot()
    renamed = file.rename_file("renamed")
    renamed.upload_range(b"b" * 512, 512, 512)
    with refused(409, "FileGenerationMismatch"):
        renamed.get_ranges_diff(before)
    written, cleared = renamed.get_ranges_diff(before, include_renames=True)
    assert ([(found["start"], found["end"]) for found in written], cleared) == ([(512, 1023)], [])


def test_ranges_come_in_pages(file_raw, file):
    for number in range(5):
        file.upload_range(b"x" * 512, number * 1024, 512)

    def page(query):
        answer = file_raw.send("GET", f"/{file.share_name}/file", f"comp=rangelist{query}")
        assert answer.status == 200
        found = [(int(one.findtext("Start")), int(one.findtext("End"))) for one in answer.xml().findall("Range")]
        return found, answer.xml().findtext("NextMarker")

    first, marker = page("&maxresults=2")
    assert first == [(0, 511), (1024, 1535)] and marker
    second, marker = page(f"&maxresults=2&marker={marker}")
    assert second == [(2048, 2559), (3072, 3583)] and marker
    assert page(f"&maxresults=2&marker={marker}") == ([(4096, 4607)], None)
    assert len(page("")[0]) == 5
    answer = file_raw.send("GET", f"/{file.share_name}/file", "comp=rangelist&maxresults=0")
    assert answer.status == 400
