"""Block blobs in blocks: Put Block, Put Block List, Get Block List, and what listings show of them."""

import os

import pytest
from azure.core import MatchConditions
from azure.storage.blob import BlobBlock, BlockState, ContentSettings
from support import NEWEST_VERSION, base64_text, crc64_text, md5, refused


def block_id(name):
    return base64_text(name.encode())


class RawBlob:
    """A blob by raw requests."""

    def __init__(self, raw, container, name="raw"):
        self.raw, self.path = raw, f"/{container.container_name}/{name}"

    def put_block(self, id, body=b"block", headers=None, **options):
        return self.raw.send("PUT", self.path, f"comp=block&blockid={id}", headers, body, **options)

    def put_list(self, entries, headers=None, **options):
        body = f"<?xml version='1.0' encoding='utf-8'?><BlockList>{entries}</BlockList>".encode()
        return self.raw.send("PUT", self.path, "comp=blocklist", headers, body, **options)

    def get_list(self, types="all", headers=None, **options):
        return self.raw.send("GET", self.path, f"comp=blocklist&blocklisttype={types}", headers, **options)

    def put(self, kind, headers=None):
        return self.raw.send("PUT", self.path, "", {"x-ms-blob-type": kind, **(headers or {})}, b"")


@pytest.fixture
def raw_blob(raw, container):
    return RawBlob(raw, container)


def outcome(answer):
    return answer.status, answer.code


def test_an_upload_in_blocks_comes_back_whole(container):
    content = os.urandom(1_000_000)
    service = type(container).from_container_url(
        container.url, credential=container.credential, max_single_put_size=1000, max_block_size=100_000
    )
    client = service.get_blob_client("b")
    settings = ContentSettings(content_type="text/plain", cache_control="no-cache")
    client.upload_blob(content, content_settings=settings, metadata={"key": "value"}, max_concurrency=4)
    assert client.download_blob().readall() == content
    assert client.download_blob(offset=99_990, length=100_020).readall() == content[99_990:200_010]
    properties = client.get_blob_properties()
    assert properties.size == len(content)
    assert (properties.content_settings.content_type, properties.content_settings.cache_control) == (
        "text/plain",
        "no-cache",
    )
    assert properties.content_settings.content_md5 is None
    assert properties.metadata == {"key": "value"}
    committed, uncommitted = client.get_block_list("all")
    assert [block.size for block in committed] == [100_000] * 10
    assert uncommitted == []
    client.upload_blob(content[:300_000], overwrite=True)
    assert client.download_blob().readall() == content[:300_000]


def test_blocks_are_committed_in_the_order_of_the_list(container):
    client = container.get_blob_client("b")
    for name, content in (("a", b"AAA"), ("b", b"BB"), ("c", b"C")):
        client.stage_block(name, content)
    committed, uncommitted = client.get_block_list("all")
    assert committed == []
    assert [(block.id, block.size) for block in uncommitted] == [("a", 3), ("b", 2), ("c", 1)]
    answer = client.commit_block_list([BlobBlock(name) for name in "bab"])
    assert client.get_blob_properties().etag == answer["etag"]
    assert client.download_blob().readall() == b"BBAAABB"
    committed, uncommitted = client.get_block_list("all")
    assert [(block.id, block.size) for block in committed] == [("b", 2), ("a", 3), ("b", 2)]
    assert uncommitted == [], "what is not in the list is dropped"

    client.stage_block("a", b"new")
    blocks = [
        BlobBlock("b", state=BlockState.Committed),
        BlobBlock("a", state=BlockState.Uncommitted),
    ]
    client.commit_block_list(blocks, metadata={"key": "value"})
    assert client.download_blob().readall() == b"BBnew"
    assert client.get_blob_properties().metadata == {"key": "value"}


def test_the_block_list_of_each_type(raw_blob):
    for name in ("zz", "0+", "0A"):
        assert raw_blob.put_block(block_id(name), name.encode() * 3).status == 201
    ids = [block_id(name) for name in ("zz", "0A")]
    assert raw_blob.put_list("".join(f"<Latest>{id}</Latest>" for id in ids)).status == 201
    for name in ("~~", "A0", "0~"):
        assert raw_blob.put_block(block_id(name).replace("+", "%2B"), b"x").status == 201

    def names(answer, part):
        return [block.findtext("Name") for block in answer.xml().iterfind(f"{part}Blocks/Block")]

    everything = raw_blob.get_list()
    assert names(everything, "Committed") == ids
    uncommitted = names(everything, "Uncommitted")
    assert uncommitted == sorted(uncommitted) and len(uncommitted) == 3
    assert everything.headers["x-ms-blob-content-length"] == "12"
    assert everything.headers["ETag"] and everything.headers["Last-Modified"]
    for types, present, absent in (
        ("committed", "Committed", "Uncommitted"),
        ("uncommitted", "Uncommitted", "Committed"),
        ("", "Committed", "Uncommitted"),
    ):
        answer = raw_blob.get_list(types)
        assert answer.xml().find(f"{present}Blocks") is not None
        assert answer.xml().find(f"{absent}Blocks") is None
    assert outcome(raw_blob.get_list("some")) == (400, "InvalidQueryParameterValue")


def test_a_blob_with_nothing_committed(container, raw_blob):
    assert outcome(raw_blob.get_list()) == (404, "BlobNotFound")
    assert raw_blob.put_block(block_id("a")).status == 201
    answer = raw_blob.get_list()
    assert answer.status == 200
    assert (answer.headers["ETag"], answer.headers["Last-Modified"]) == (None, None)
    assert answer.headers["x-ms-blob-content-length"] == "0"
    client = container.get_blob_client("raw")
    assert not client.exists()
    with refused(404, "BlobNotFound"):
        client.download_blob()
    with refused(412, "ConditionNotMet"):
        client.commit_block_list([], match_condition=MatchConditions.IfPresent)
    client.commit_block_list([], match_condition=MatchConditions.IfMissing)
    assert client.download_blob().readall() == b""


def test_listings_show_uncommitted_blobs_on_request(container):
    container.upload_blob("b", b"x")
    for name in ("a", "b", "c/d"):
        container.get_blob_client(name).stage_block("1", b"x")
    assert [blob.name for blob in container.list_blobs()] == ["b"]
    blobs = list(container.list_blobs(include=["uncommittedblobs"]))
    assert [blob.name for blob in blobs] == ["a", "b", "c/d"]
    assert [blob.etag is None for blob in blobs] == [True, False, True]
    assert blobs[0].size == 0 and blobs[0].last_modified is None
    pages = container.list_blobs(include=["uncommittedblobs"], results_per_page=1).by_page()
    assert [[blob.name for blob in page] for page in pages] == [["a"], ["b"], ["c/d"]]
    walked = container.walk_blobs(include=["uncommittedblobs"])
    assert sorted(entry.name for entry in walked) == ["a", "b", "c/"]


def test_put_block_answers_digests_and_leaves_the_blob_alone(container, raw_blob):
    container.upload_blob("raw", b"content")
    before = container.get_blob_client("raw").get_blob_properties()
    answer = raw_blob.put_block(block_id("a"), b"block")
    assert answer.status == 201
    # Since 2019-02-02 the MD5 is returned only to clients that send it.
    assert answer.headers["Content-MD5"] is None
    sent = {"Content-MD5": base64_text(md5(b"block"))}
    verified = raw_blob.put_block(block_id("a"), b"block", sent)
    assert (verified.status, verified.headers["Content-MD5"]) == (201, sent["Content-MD5"])
    assert answer.headers["x-ms-content-crc64"] == crc64_text(b"block")
    assert answer.headers["x-ms-request-server-encrypted"] == "true"
    assert (answer.headers["ETag"], answer.headers["Last-Modified"]) == (None, None)
    after = container.get_blob_client("raw").get_blob_properties()
    assert (before.etag, before.last_modified) == (after.etag, after.last_modified)


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({"Content-MD5": base64_text(md5(b"other"))}, "Md5Mismatch"),
        ({"Content-MD5": "short"}, "InvalidMd5"),
        ({"x-ms-content-crc64": crc64_text(b"other")}, "Crc64Mismatch"),
        ({"If-Match": "*"}, "ConditionHeadersNotSupported"),
    ],
)
def test_put_block_refuses_headers(raw_blob, headers, code):
    assert outcome(raw_blob.put_block(block_id("a"), headers=headers)) == (400, code)
    assert outcome(raw_blob.get_list()) == (404, "BlobNotFound")


def test_put_block_refuses_ids_and_lengths(raw_blob):
    longest = base64_text(b"x" * 64)
    for id, code in (
        ("", "MissingRequiredQueryParameter"),
        ("not-base64", "InvalidBlockId"),
        (base64_text(b"x" * 65), "InvalidBlockId"),
    ):
        assert outcome(raw_blob.put_block(id)) == (400, code), id
    assert outcome(raw_blob.put_block(block_id("a"), b"")) == (400, "InvalidHeaderValue")
    assert raw_blob.put_block(longest).status == 201
    assert outcome(raw_blob.put_block(block_id("a"))) == (400, "InvalidBlobOrBlock")
    missing = {"Content-Length": None, "Transfer-Encoding": "chunked"}
    answer = raw_blob.put_block(longest, b"0\r\n\r\n", missing)
    assert outcome(answer) == (411, "MissingContentLengthHeader")


@pytest.mark.parametrize(
    ("version", "mib"), [("2015-12-11", 4), ("2016-05-31", 100), ("2019-07-07", 100), (NEWEST_VERSION, 4000)]
)
def test_blocks_have_a_largest_length_by_version(raw_blob, version, mib):
    too_long = {"Content-Length": str(mib * 1024 * 1024 + 1), "Expect": "100-continue"}
    answer = raw_blob.put_block(block_id("a"), b"", too_long, version=version)
    assert outcome(answer) == (413, "RequestBodyTooLarge")
    assert answer.xml().findtext("MaxLimit") == str(mib * 1024 * 1024)


def test_put_block_list_answers_and_stores_what_it_was_told(container, raw_blob):
    raw_blob.put_block(block_id("a"))
    entries = f"<Uncommitted>{block_id('a')}</Uncommitted>"
    body = f"<?xml version='1.0' encoding='utf-8'?><BlockList>{entries}</BlockList>".encode()
    headers = {
        "Content-Type": "application/xml",
        "Content-MD5": base64_text(md5(body)),
        "x-ms-blob-content-type": "text/css",
        "x-ms-blob-content-md5": base64_text(md5(b"as the client says")),
        "x-ms-access-tier": "Cool",
        "x-ms-tags": "one=1",
        "x-ms-meta-key": "value",
    }
    answer = raw_blob.put_list(entries, headers)
    assert answer.status == 201
    assert answer.headers["x-ms-content-crc64"] == crc64_text(body)
    assert answer.headers["x-ms-request-server-encrypted"] == "true"
    properties = container.get_blob_client("raw").get_blob_properties()
    assert answer.headers["ETag"] == properties.etag
    assert properties.content_settings.content_type == "text/css"
    assert bytes(properties.content_settings.content_md5) == md5(b"as the client says")
    assert (properties.blob_tier, properties.tag_count) == ("Cool", 1)
    assert properties.metadata == {"key": "value"}

    assert raw_blob.put_list("").status == 201
    properties = container.get_blob_client("raw").get_blob_properties()
    assert properties.content_settings.content_type == "application/octet-stream"
    assert (properties.metadata, properties.tag_count, properties.size) == ({}, None, 0)


@pytest.mark.parametrize(
    ("entries", "code"),
    [
        ("<Latest>{b}</Latest>", "InvalidBlockList"),
        ("<Committed>{a}</Committed>", "InvalidBlockList"),
        ("<Latest>{a}</Latest><Uncommitted>{a}</Uncommitted>", "InvalidBlockList"),
        ("<Latest>{a}</Latest><Latest>{long}</Latest>", "InvalidBlobOrBlock"),
        ("<Latest>?</Latest>", "InvalidBlockId"),
        ("<Block>{a}</Block>", "UnsupportedXmlNode"),
        ("<Latest>", "InvalidXmlDocument"),
    ],
)
def test_put_block_list_refuses_lists(raw_blob, entries, code):
    assert raw_blob.put_block(block_id("a")).status == 201
    ids = {"a": block_id("a"), "b": block_id("b"), "long": block_id("longer")}
    assert outcome(raw_blob.put_list(entries.format(**ids))) == (400, code)
    assert raw_blob.put_list(f"<Latest>{ids['a']}</Latest>").status == 201, "the blocks are still there"


def test_a_list_has_at_most_50_000_entries(raw_blob):
    assert raw_blob.put_block(block_id("a"), b"x").status == 201
    entry = f"<Latest>{block_id('a')}</Latest>"
    assert outcome(raw_blob.put_list(entry * 50_001)) == (400, "BlockListTooLong")
    assert raw_blob.put_list(entry * 50_000).status == 201
    answer = raw_blob.get_list("committed")
    assert answer.headers["x-ms-blob-content-length"] == "50000"
    assert len(answer.xml().findall("CommittedBlocks/Block")) == 50_000


def test_blocks_are_for_block_blobs(raw_blob):
    assert raw_blob.put("AppendBlob").status == 201
    assert outcome(raw_blob.put_block(block_id("a"))) == (409, "InvalidBlobType")
    assert outcome(raw_blob.put_list("")) == (400, "InvalidBlobType")
    assert outcome(raw_blob.get_list()) == (409, "InvalidBlobType")


def test_archived_blobs_take_no_blocks(raw_blob):
    assert raw_blob.put("BlockBlob", {"x-ms-access-tier": "Archive"}).status == 201
    for answer in (raw_blob.put_block(block_id("a")), raw_blob.put_list(""), raw_blob.get_list()):
        assert outcome(answer) == (409, "BlobArchived")


def test_an_overwrite_drops_uncommitted_blocks(container):
    client = container.get_blob_client("b")
    client.stage_block("1", b"x")
    client.upload_blob(b"whole")
    assert client.get_block_list("all") == ([], [])


def test_conditions_of_put_block_list(container):
    client = container.get_blob_client("b")
    client.upload_blob(b"content")
    client.stage_block("1", b"block")
    etag = client.get_blob_properties().etag
    blocks = [BlobBlock("1")]
    with refused(409, "BlobAlreadyExists"):
        client.commit_block_list(blocks, match_condition=MatchConditions.IfMissing)
    with refused(412, "ConditionNotMet"):
        client.commit_block_list(blocks, etag=etag, match_condition=MatchConditions.IfModified)
    client.commit_block_list(blocks, etag=etag, match_condition=MatchConditions.IfNotModified)
    assert client.download_blob().readall() == b"block"


def test_tag_conditions_of_block_lists(container):
    client = container.get_blob_client("b")
    client.stage_block("1", b"block")
    client.commit_block_list([BlobBlock("1")], tags={"one": "1"})
    assert len(client.get_block_list(if_tags_match_condition="one = '1'")[0]) == 1
    with refused(412, "ConditionNotMet"):
        client.get_block_list(if_tags_match_condition="one = '2'")


def test_leases_guard_blocks(container):
    client = container.get_blob_client("b")
    client.upload_blob(b"content")
    lease = client.acquire_lease()
    other = "11111111-aaaa-4aaa-8aaa-111111111111"
    with refused(412, "LeaseIdMissing"):
        client.stage_block("1", b"block")
    with refused(412, "LeaseIdMismatchWithBlobOperation"):
        client.stage_block("1", b"block", lease=other)
    client.stage_block("1", b"block", lease=lease)
    with refused(412, "LeaseIdMissing"):
        client.commit_block_list([BlobBlock("1")])
    assert len(client.get_block_list("uncommitted")[1]) == 1
    with refused(412, "LeaseIdMismatchWithBlobOperation"):
        client.get_block_list(lease=other)
    client.commit_block_list([BlobBlock("1")], lease=lease)
    assert client.get_blob_properties().lease.state == "leased", "the lease stays"
    lease.release()
    with refused(412, "LeaseNotPresentWithBlobOperation"):
        client.stage_block("1", b"block", lease=other)
    with refused(412, "LeaseNotPresentWithBlobOperation"):
        container.get_blob_client("none").stage_block("1", b"block", lease=other)


def test_blocks_need_a_container(service):
    client = service.get_blob_client("there-is-no-such-container", "b")
    with refused(404, "ContainerNotFound"):
        client.stage_block("1", b"x")
    with refused(404, "ContainerNotFound"):
        client.commit_block_list([])
    with refused(404, "ContainerNotFound"):
        client.get_block_list()
