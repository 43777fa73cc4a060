"""Page blobs: creation, pages written and cleared, ranges and their differences, size and sequence number."""

import pytest
from azure.storage.blob import BlobType, ContentSettings, PremiumPageBlobTier, SequenceNumberAction
from support import base64_text, crc64_text, md5, readable, refused

PAGE = 512
TIB = 1024**4


@pytest.fixture
def pages(container):
    """A page blob of eight pages, of which the third and fourth are written."""
    client = container.get_blob_client("pages")
    client.create_page_blob(8 * PAGE)
    client.upload_page(b"a" * 2 * PAGE, offset=2 * PAGE, length=2 * PAGE)
    return client


def written(client, **options):
    ranges, cleared = client.get_page_ranges(**options)
    assert cleared == []
    return [(found["start"], found["end"]) for found in ranges]


def told(items):
    """The ranges of a difference by the service: whether each was cleared, and where it is."""
    return [(item.cleared, item.start, item.end) for item in items]


def pages_path(client):
    return f"/{client.container_name}/{client.blob_name}"


def put_page(raw, client, first, last, body=None, action="update", **headers):
    sent = {"x-ms-page-write": action, "x-ms-range": f"bytes={first}-{last}", **headers}
    return raw.send("PUT", pages_path(client), "comp=page", sent, body)


def test_created_blob_is_all_zeros_and_has_no_pages(container):
    client = container.get_blob_client("b")
    settings = ContentSettings(content_type="text/plain", cache_control="no-cache")
    client.create_page_blob(
        2 * PAGE, content_settings=settings, metadata={"Key": "value"}, sequence_number=7, tags={"a": "b"}
    )
    properties = client.get_blob_properties()
    assert properties.blob_type == BlobType.PAGEBLOB
    assert properties.size == 2 * PAGE
    assert properties.page_blob_sequence_number == 7
    assert properties.content_settings.content_type == "text/plain"
    assert properties.content_settings.cache_control == "no-cache"
    assert properties.metadata == {"Key": "value"}
    assert client.download_blob().readall() == bytes(2 * PAGE)
    assert written(client) == []
    listed = next(container.list_blobs())
    assert (listed.blob_type, listed.size, listed.page_blob_sequence_number) == (BlobType.PAGEBLOB, 2 * PAGE, 7)


def test_empty_page_blob(container):
    client = container.get_blob_client("b")
    client.create_page_blob(0)
    assert client.download_blob().readall() == b""
    assert written(client) == []


def test_upload_blob_skips_what_is_zero(container):
    client = container.get_blob_client("b")
    content = b"x" * PAGE + bytes(5 * 1024 * 1024 - PAGE) + b"y" * PAGE
    client.upload_blob(content, blob_type="PageBlob")
    assert client.download_blob().readall() == content


@pytest.mark.parametrize(
    "headers, status, code",
    [
        ({}, 400, "MissingRequiredHeader"),
        ({"x-ms-blob-content-length": "513"}, 400, "InvalidHeaderValue"),
        ({"x-ms-blob-content-length": "-512"}, 400, "InvalidHeaderValue"),
        ({"x-ms-blob-content-length": str(8 * TIB + PAGE)}, 400, "InvalidHeaderValue"),
        ({"x-ms-blob-content-length": "512", "x-ms-blob-sequence-number": "-1"}, 400, "InvalidHeaderValue"),
        ({"x-ms-blob-content-length": "512", "x-ms-blob-sequence-number": str(2**63)}, 400, "InvalidHeaderValue"),
        ({"x-ms-blob-content-length": "512", "x-ms-access-tier": "Hot"}, 400, "InvalidHeaderValue"),
    ],
    ids=["no size", "no whole pages", "negative", "too large", "negative number", "number too large", "tier"],
)
def test_creation_checks_its_headers(container, raw, headers, status, code):
    path = f"/{container.container_name}/b"
    answer = raw.send("PUT", path, headers={"x-ms-blob-type": "PageBlob"} | headers)
    assert (answer.status, answer.code) == (status, code)
    assert not container.get_blob_client("b").exists()


def test_creation_takes_no_bytes(container, raw):
    headers = {"x-ms-blob-type": "PageBlob", "x-ms-blob-content-length": "512"}
    answer = raw.send("PUT", f"/{container.container_name}/b", headers=headers, body=b"x" * PAGE)
    assert (answer.status, answer.code) == (400, "InvalidHeaderValue")


def test_premium_tier_is_kept(container):
    client = container.get_blob_client("b")
    client.create_page_blob(PAGE, premium_page_blob_tier=PremiumPageBlobTier.P10)
    assert client.get_blob_properties().blob_tier == "P10"


def test_creation_over_a_blob(pages, container, raw):
    pages.create_page_blob(PAGE)
    assert (pages.get_blob_properties().size, written(pages)) == (PAGE, [])
    with refused(409, "BlobAlreadyExists"):
        pages.create_page_blob(PAGE, if_none_match="*")
    container.upload_blob("block", b"x")
    with refused(409, "InvalidBlobType"):
        container.get_blob_client("block").create_page_blob(PAGE)
    with refused(409, "InvalidBlobType"):
        pages.upload_blob(b"x", overwrite=True)


def test_pages_that_were_not_written_read_as_zeros(pages):
    assert pages.download_blob().readall() == bytes(2 * PAGE) + b"a" * 2 * PAGE + bytes(4 * PAGE)
    part = pages.download_blob(offset=2 * PAGE - 3, length=6).readall()
    assert part == b"\0\0\0aaa"
    assert written(pages) == [(2 * PAGE, 4 * PAGE - 1)]


def test_overlapping_writes_and_clears(pages):
    before = pages.get_blob_properties()
    answer = pages.upload_page(b"b" * 2 * PAGE, offset=3 * PAGE, length=2 * PAGE)
    assert answer["etag"] != before.etag
    assert answer["blob_sequence_number"] == 0
    assert pages.get_blob_properties().etag == answer["etag"]
    assert written(pages) == [(2 * PAGE, 5 * PAGE - 1)]
    pages.clear_page(offset=3 * PAGE, length=PAGE)
    assert written(pages) == [(2 * PAGE, 3 * PAGE - 1), (4 * PAGE, 5 * PAGE - 1)]
    content = bytes(2 * PAGE) + b"a" * PAGE + bytes(PAGE) + b"b" * PAGE + bytes(3 * PAGE)
    assert pages.download_blob().readall() == content
    pages.clear_page(offset=0, length=8 * PAGE)
    assert written(pages) == []
    assert pages.download_blob().readall() == bytes(8 * PAGE)


def test_the_largest_write(container):
    client = container.get_blob_client("b")
    size = 4 * 1024 * 1024
    client.create_page_blob(3 * size)
    content = bytes(range(256)) * (size // 256)
    client.upload_page(content, offset=PAGE, length=size)
    assert client.download_blob(offset=PAGE, length=size).readall() == content
    assert written(client) == [(PAGE, PAGE + size - 1)]


def test_write_over_four_mib_is_too_large(container, raw):
    client = container.get_blob_client("b")
    size = 4 * 1024 * 1024 + PAGE
    client.create_page_blob(2 * size)
    answer = put_page(raw, client, 0, size - 1, bytes(size))
    assert (answer.status, answer.code) == (413, "RequestBodyTooLarge")
    # To clear as much is allowed.
    client.clear_page(offset=0, length=size)


@pytest.mark.parametrize(
    "first, last, length, status, code",
    [
        (1, 512, 512, 416, "InvalidPageRange"),
        (0, 512, 513, 416, "InvalidPageRange"),
        (0, 510, 511, 416, "InvalidPageRange"),
        (8 * PAGE, 9 * PAGE - 1, PAGE, 416, "InvalidPageRange"),
        (7 * PAGE, 9 * PAGE - 1, 2 * PAGE, 416, "InvalidPageRange"),
        (0, 511, 1024, 400, "InvalidHeaderValue"),
        (0, 1023, 512, 400, "InvalidHeaderValue"),
        (0, 511, 0, 400, "InvalidHeaderValue"),
        (512, 0, 512, 400, "InvalidHeaderValue"),
        ("x", 511, 512, 400, "InvalidHeaderValue"),
        (0, "", 512, 400, "InvalidHeaderValue"),
    ],
)
def test_ranges_of_writes_are_checked(pages, raw, first, last, length, status, code):
    answer = put_page(raw, pages, first, last, b"x" * length)
    assert (answer.status, answer.code) == (status, code)
    assert written(pages) == [(2 * PAGE, 4 * PAGE - 1)]


def test_write_needs_a_range_and_clear_takes_no_bytes(pages, raw):
    answer = raw.send("PUT", pages_path(pages), "comp=page", {"x-ms-page-write": "update"}, b"x" * PAGE)
    assert (answer.status, answer.code) == (400, "MissingRequiredHeader")
    answer = put_page(raw, pages, 0, PAGE - 1, b"x" * PAGE, action="clear")
    assert (answer.status, answer.code) == (400, "InvalidHeaderValue")
    answer = put_page(raw, pages, 0, PAGE - 1, b"x" * PAGE, action="nonsense")
    assert (answer.status, answer.code) == (400, "InvalidHeaderValue")


def test_write_by_the_plain_range_header(pages, raw):
    headers = {"x-ms-page-write": "update", "Range": "bytes=0-511"}
    answer = raw.send("PUT", pages_path(pages), "comp=page", headers, b"r" * PAGE)
    assert answer.status == 201
    assert pages.download_blob(offset=0, length=PAGE).readall() == b"r" * PAGE


def test_digests_of_a_write_are_verified_and_returned(pages, raw):
    page = b"d" * PAGE
    for name, value in [("Content-MD5", base64_text(md5(page))), ("x-ms-content-crc64", crc64_text(page))]:
        answer = put_page(raw, pages, 0, PAGE - 1, page, **{name: value})
        assert answer.status == 201
        assert answer.headers[name] == value
    answer = put_page(raw, pages, 0, PAGE - 1, page, **{"Content-MD5": base64_text(md5(b"other"))})
    assert (answer.status, answer.code) == (400, "Md5Mismatch")
    answer = put_page(raw, pages, 0, PAGE - 1, page, **{"x-ms-content-crc64": crc64_text(b"other")})
    assert (answer.status, answer.code) == (400, "Crc64Mismatch")


def test_pages_from_a_url(pages, container, raw):
    container.upload_blob("source", b"s" * 3 * PAGE)
    source = container.get_blob_client("source")
    answer = pages.upload_pages_from_url(readable(source), offset=0, length=2 * PAGE, source_offset=PAGE)
    assert answer["etag"] == pages.get_blob_properties().etag
    assert pages.download_blob(offset=0, length=2 * PAGE).readall() == b"s" * 2 * PAGE
    assert written(pages) == [(0, 4 * PAGE - 1)]
    # Pages onto pages of the same blob.
    pages.upload_pages_from_url(readable(pages), offset=6 * PAGE, length=PAGE, source_offset=2 * PAGE)
    assert pages.download_blob(offset=6 * PAGE, length=PAGE).readall() == b"a" * PAGE

    with refused(412, "SequenceNumberConditionNotMet"):
        pages.upload_pages_from_url(readable(source), offset=0, length=PAGE, source_offset=0, if_sequence_number_lt="0")
    with refused(404, "CannotVerifyCopySource"):
        pages.upload_pages_from_url(readable(container.get_blob_client("missing")), offset=0, length=PAGE, source_offset=0)
    copied = {"x-ms-copy-source": readable(source)}
    for headers, status, code in [
        ({}, 400, "MissingRequiredHeader"),
        ({"x-ms-source-range": "bytes=0-1023"}, 400, "InvalidHeaderValue"),
        ({"x-ms-source-range": "bytes=0-511", "x-ms-range": "bytes=1-512"}, 416, "InvalidPageRange"),
    ]:
        answer = put_page(raw, pages, 0, PAGE - 1, **(copied | headers))
        assert (answer.status, answer.code) == (status, code)


def test_missing_blob_and_other_kinds(container, raw):
    client = container.get_blob_client("missing")
    with refused(404, "BlobNotFound"):
        client.upload_page(b"x" * PAGE, offset=0, length=PAGE)
    with refused(404, "BlobNotFound"):
        client.get_page_ranges()
    container.upload_blob("block", b"x" * PAGE)
    client = container.get_blob_client("block")
    with refused(409, "InvalidBlobType"):
        client.upload_page(b"x" * PAGE, offset=0, length=PAGE)
    with refused(409, "InvalidBlobType"):
        client.clear_page(offset=0, length=PAGE)
    with refused(409, "InvalidBlobType"):
        client.get_page_ranges()
    with refused(400, "InvalidHeaderValue"):
        client.resize_blob(PAGE)
    with refused(409, "InvalidBlobType"):
        client.set_sequence_number(SequenceNumberAction.Increment)


def test_conditions_on_the_sequence_number(pages):
    pages.set_sequence_number(SequenceNumberAction.Update, "5")
    page = {"page": b"s" * PAGE, "offset": 0, "length": PAGE}
    for condition, number, met in [
        ("lte", 5, True),
        ("lte", 4, False),
        ("lt", 6, True),
        ("lt", 5, False),
        ("eq", 5, True),
        ("eq", 6, False),
    ]:
        condition = {f"if_sequence_number_{condition}": str(number)}
        if met:
            assert pages.upload_page(**page, **condition)["blob_sequence_number"] == 5
            pages.clear_page(offset=0, length=PAGE, **condition)
        else:
            with refused(412, "SequenceNumberConditionNotMet"):
                pages.upload_page(**page, **condition)
            with refused(412, "SequenceNumberConditionNotMet"):
                pages.clear_page(offset=0, length=PAGE, **condition)


def test_sequence_number_actions(pages, raw):
    def current():
        return pages.get_blob_properties().page_blob_sequence_number

    answer = pages.set_sequence_number(SequenceNumberAction.Update, "7")
    assert (answer["blob_sequence_number"], current()) == (7, 7)
    pages.set_sequence_number(SequenceNumberAction.Max, "3")
    assert current() == 7
    pages.set_sequence_number(SequenceNumberAction.Max, "9")
    assert current() == 9
    pages.set_sequence_number(SequenceNumberAction.Increment)
    assert current() == 10
    pages.set_sequence_number(SequenceNumberAction.Update, str(2**63 - 1))
    with refused(409, "SequenceNumberIncrementTooLarge"):
        pages.set_sequence_number(SequenceNumberAction.Increment)

    action, number = "x-ms-sequence-number-action", "x-ms-blob-sequence-number"
    for headers, code in [
        ({action: "max"}, "MissingRequiredHeader"),
        ({action: "update"}, "MissingRequiredHeader"),
        ({number: "5"}, "MissingRequiredHeader"),
        ({action: "increment", number: "5"}, "InvalidHeaderValue"),
        ({action: "update", number: "-5"}, "InvalidHeaderValue"),
        ({action: "halve", number: "5"}, "InvalidHeaderValue"),
    ]:
        answer = raw.send("PUT", pages_path(pages), "comp=properties", headers)
        assert (answer.status, answer.code) == (400, code), headers
    assert current() == 2**63 - 1


def test_resizing_clears_what_lies_beyond(pages):
    pages.set_http_headers(ContentSettings(content_type="text/plain"))
    answer = pages.resize_blob(3 * PAGE)
    assert answer["blob_sequence_number"] == 0
    properties = pages.get_blob_properties()
    assert (properties.size, properties.content_settings.content_type) == (3 * PAGE, "text/plain")
    assert written(pages) == [(2 * PAGE, 3 * PAGE - 1)]
    pages.resize_blob(5 * PAGE)
    assert pages.download_blob().readall() == bytes(2 * PAGE) + b"a" * PAGE + bytes(2 * PAGE)
    pages.resize_blob(0)
    assert (written(pages), pages.download_blob().readall()) == ([], b"")


def test_headers_and_size_in_one_request(pages, raw):
    headers = {"x-ms-blob-content-length": "512", "x-ms-blob-content-type": "text/css"}
    headers |= {"x-ms-sequence-number-action": "update", "x-ms-blob-sequence-number": "4"}
    answer = raw.send("PUT", pages_path(pages), "comp=properties", headers)
    assert (answer.status, answer.headers["x-ms-blob-sequence-number"]) == (200, "4")
    properties = pages.get_blob_properties()
    assert (properties.size, properties.content_settings.content_type) == (512, "text/css")
    assert properties.page_blob_sequence_number == 4
    for length in ["513", "x", str(8 * TIB + PAGE)]:
        answer = raw.send("PUT", pages_path(pages), "comp=properties", {"x-ms-blob-content-length": length})
        assert (answer.status, answer.code) == (400, "InvalidHeaderValue")


def test_page_ranges_of_a_part(pages):
    pages.upload_page(b"b" * PAGE, offset=6 * PAGE, length=PAGE)
    assert written(pages, offset=3 * PAGE, length=2 * PAGE) == [(3 * PAGE, 4 * PAGE - 1)]
    assert written(pages, offset=4 * PAGE, length=PAGE) == []
    with refused(416, "InvalidRange"):
        pages.get_page_ranges(offset=8 * PAGE, length=PAGE)


def test_page_ranges_by_pages(container, raw):
    client = container.get_blob_client("b")
    client.create_page_blob(40 * PAGE)
    for page in range(0, 40, 2):
        client.upload_page(b"x" * PAGE, offset=page * PAGE, length=PAGE)
    expected = [page * PAGE for page in range(0, 40, 2)]
    assert [found.start for found in client.list_page_ranges()] == expected
    by_page = list(client.list_page_ranges(results_per_page=7).by_page())
    sizes = [[found.start for found in page] for page in by_page]
    assert [len(page) for page in sizes] == [7, 7, 6]
    assert sum(sizes, []) == expected
    for query, code in [
        ("maxresults=0", "OutOfRangeQueryParameterValue"),
        ("maxresults=-1", "OutOfRangeQueryParameterValue"),
        ("maxresults=x", "InvalidQueryParameterValue"),
        ("marker=x", "InvalidQueryParameterValue"),
    ]:
        answer = raw.send("GET", pages_path(client), f"comp=pagelist&{query}")
        assert (answer.status, answer.code) == (400, code)
    # Before there were pages all ranges came at once.
    answer = raw.send("GET", pages_path(client), "comp=pagelist&maxresults=7", version="2020-08-04")
    assert len(answer.xml().findall("PageRange")) == 20


def test_answer_of_page_ranges(pages, raw):
    answer = raw.send("GET", pages_path(pages), "comp=pagelist")
    assert answer.status == 200
    assert answer.headers["x-ms-blob-content-length"] == str(8 * PAGE)
    assert answer.headers["ETag"] == pages.get_blob_properties().etag
    body = answer.body.decode("utf-8-sig")
    assert body.endswith("<PageList><PageRange><Start>1024</Start><End>2047</End></PageRange></PageList>")


def test_a_write_cut_into_many_ranges(container):
    client = container.get_blob_client("b")
    size = 4 * 1024 * 1024
    client.create_page_blob(size)
    client.upload_page(b"x" * size, offset=0, length=size)
    cleared = range(0, size // PAGE, 32)
    for page in cleared:
        client.clear_page(offset=page * PAGE, length=PAGE)
    assert written(client) == [((page + 1) * PAGE, (page + 32) * PAGE - 1) for page in cleared]


def test_eight_tebibytes_cost_what_is_written(container):
    client = container.get_blob_client("b")
    client.create_page_blob(8 * TIB)
    offset = 5 * TIB + 3 * PAGE
    client.upload_page(b"z" * PAGE, offset=offset, length=PAGE)
    client.upload_page(b"y" * PAGE, offset=8 * TIB - PAGE, length=PAGE)
    assert written(client) == [(offset, offset + PAGE - 1), (8 * TIB - PAGE, 8 * TIB - 1)]
    assert client.download_blob(offset=offset - 1, length=PAGE + 2).readall() == b"\0" + b"z" * PAGE + b"\0"
    client.clear_page(offset=0, length=8 * TIB)
    assert written(client) == []
    client.resize_blob(PAGE)
    assert client.download_blob().readall() == bytes(PAGE)


def test_leases_guard_pages(pages):
    lease = pages.acquire_lease()
    lease_id = lease.id
    page = {"page": b"l" * PAGE, "offset": 0, "length": PAGE}
    with refused(412, "LeaseIdMissing"):
        pages.upload_page(**page)
    with refused(412, "LeaseIdMissing"):
        pages.clear_page(offset=0, length=PAGE)
    with refused(412, "LeaseIdMissing"):
        pages.resize_blob(PAGE)
    pages.upload_page(**page, lease=lease)
    pages.get_page_ranges()
    pages.get_page_ranges(lease=lease)
    lease.release()
    with refused(412, "LeaseNotPresentWithBlobOperation"):
        pages.upload_page(**page, lease=lease_id)


def test_conditions_of_writes_and_reads(pages):
    etag = pages.get_blob_properties().etag
    page = {"page": b"c" * PAGE, "offset": 0, "length": PAGE}
    with refused(412, "ConditionNotMet"):
        pages.upload_page(**page, if_match='"0x1"')
    with refused(412, "ConditionNotMet"):
        pages.upload_page(**page, if_none_match=etag)
    with refused(412, "ConditionNotMet"):
        pages.clear_page(offset=0, length=PAGE, if_match='"0x1"')
    with refused(412, "ConditionNotMet"):
        pages.resize_blob(PAGE, if_match='"0x1"')
    pages.upload_page(**page, if_match=etag)
    with refused(412, "ConditionNotMet"):
        pages.get_page_ranges(if_match=etag)


def test_differences_since_a_snapshot(pages, raw):
    first = pages.create_snapshot()["snapshot"]
    pages.upload_page(b"b" * PAGE, offset=0, length=PAGE)
    pages.clear_page(offset=2 * PAGE, length=PAGE)
    second = pages.create_snapshot()["snapshot"]
    pages.upload_page(b"c" * 2 * PAGE, offset=5 * PAGE, length=2 * PAGE)
    pages.clear_page(offset=0, length=PAGE)

    changed, cleared = pages.get_page_ranges(previous_snapshot_diff=first)
    assert [(found["start"], found["end"]) for found in changed] == [(5 * PAGE, 7 * PAGE - 1)]
    # Nothing was in the first page before, but it has been written and cleared since.
    assert [(found["start"], found["end"]) for found in cleared] == [(0, PAGE - 1), (2 * PAGE, 3 * PAGE - 1)]
    assert told(pages.list_page_ranges(previous_snapshot=second)) == [
        (True, 0, PAGE - 1),
        (False, 5 * PAGE, 7 * PAGE - 1),
    ]
    answer = raw.send("GET", pages_path(pages), f"comp=pagelist&snapshot={second}&prevsnapshot={first}")
    assert answer.status == 200
    assert [node.tag for node in answer.xml()] == ["PageRange", "ClearRange"]
    answer = raw.send("GET", pages_path(pages), f"comp=pagelist&snapshot={first}")
    assert [node.findtext("Start") for node in answer.xml()] == [str(2 * PAGE)]
    # The snapshot itself has not changed.
    answer = raw.send("GET", pages_path(pages), f"snapshot={first}")
    assert answer.body == bytes(2 * PAGE) + b"a" * 2 * PAGE + bytes(4 * PAGE)

    url = {"x-ms-previous-snapshot-url": f"{pages.url}?snapshot={second}"}
    answer = raw.send("GET", pages_path(pages), "comp=pagelist", url)
    assert [node.tag for node in answer.xml()] == ["ClearRange", "PageRange"]
    url = {"x-ms-previous-snapshot-url": f"{pages.url}x?snapshot={second}"}
    answer = raw.send("GET", pages_path(pages), "comp=pagelist", url)
    assert (answer.status, answer.code) == (400, "InvalidHeaderValue")


def test_snapshots_that_cannot_be_compared_with(pages, raw):
    first = pages.create_snapshot()["snapshot"]
    second = pages.create_snapshot()["snapshot"]
    for target, previous, status, code in [
        (first, second, 400, "PreviousSnapshotCannotBeNewer"),
        (first, first, 400, "PreviousSnapshotCannotBeNewer"),
        (second, "2020-01-01T00:00:00.0000000Z", 409, "PreviousSnapshotNotFound"),
        (second, "yesterday", 400, "InvalidQueryParameterValue"),
    ]:
        query = f"comp=pagelist&snapshot={target}&prevsnapshot={previous}"
        answer = raw.send("GET", pages_path(pages), query)
        assert (answer.status, answer.code) == (status, code)
    pages.create_page_blob(8 * PAGE)
    with refused(409, "BlobOverwritten"):
        pages.get_page_ranges(previous_snapshot_diff=first)


def test_incremental_copies_follow_the_snapshots_of_their_source(pages, container, raw):
    copy = container.get_blob_client("copy")
    first = pages.create_snapshot()["snapshot"]
    pages.upload_page(b"b" * PAGE, offset=0, length=PAGE)
    pages.clear_page(offset=2 * PAGE, length=PAGE)
    second = pages.create_snapshot()["snapshot"]

    with refused(409, "IncrementalCopySourceMustBeSnapshot"):
        copy.start_copy_from_url(pages.url, incremental_copy=True)
    started = copy.start_copy_from_url(f"{pages.url}?snapshot={first}", incremental_copy=True)
    assert started["copy_status"] == "success"
    properties = copy.get_blob_properties()
    assert properties.copy.id == started["copy_id"]
    assert properties.copy.incremental_copy
    copied_first = properties.copy.destination_snapshot
    copy.start_copy_from_url(f"{pages.url}?snapshot={second}", incremental_copy=True)
    copied_second = copy.get_blob_properties().copy.destination_snapshot
    assert copied_first < copied_second
    for snapshot in [first, second]:
        with refused(409, "IncrementalCopyOfEarlierVersionSnapshotNotAllowed"):
            copy.start_copy_from_url(f"{pages.url}?snapshot={snapshot}", incremental_copy=True)

    for own, of_source in [(copied_first, first), (copied_second, second)]:
        expected = raw.send("GET", pages_path(pages), f"snapshot={of_source}").body
        assert raw.send("GET", pages_path(copy), f"snapshot={own}").body == expected
    query = f"comp=pagelist&snapshot={copied_second}&prevsnapshot={copied_first}"
    assert [node.tag for node in raw.send("GET", pages_path(copy), query).xml()] == ["PageRange", "ClearRange"]

    for call in [
        copy.download_blob,
        copy.get_page_ranges,
        copy.create_snapshot,
        copy.acquire_lease,
        lambda: copy.upload_page(b"x" * PAGE, offset=0, length=PAGE),
        lambda: copy.set_blob_metadata({"a": "b"}),
        lambda: copy.create_page_blob(PAGE),
    ]:
        with refused(409, "OperationNotAllowedOnIncrementalCopyBlob"):
            call()
    copy.delete_blob(delete_snapshots="include")
    assert not copy.exists()


def test_incremental_copies_of_other_sources_are_refused(pages, container):
    other = container.get_blob_client("other")
    other.create_page_blob(PAGE)
    copy = container.get_blob_client("copy")
    first, second = pages.create_snapshot()["snapshot"], other.create_snapshot()["snapshot"]
    copy.start_copy_from_url(f"{pages.url}?snapshot={first}", incremental_copy=True)
    with refused(409, "IncrementalCopyBlobMismatch"):
        copy.start_copy_from_url(f"{other.url}?snapshot={second}", incremental_copy=True)
    with refused(409, "IncrementalCopyBlobMismatch"):
        other.start_copy_from_url(f"{pages.url}?snapshot={first}", incremental_copy=True)
    block = container.upload_blob("block", b"x")
    snapshot = block.create_snapshot()["snapshot"]
    with refused(409, "InvalidSourceBlobType"):
        container.get_blob_client("new").start_copy_from_url(f"{block.url}?snapshot={snapshot}", incremental_copy=True)
