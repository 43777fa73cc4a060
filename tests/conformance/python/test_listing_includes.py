"""What `include` and the other parameters of List Blobs show, and from which version on."""

from datetime import datetime, timedelta, timezone

import pytest
from azure.storage.blob import ContentSettings, ImmutabilityPolicy, PremiumPageBlobTier, StandardBlobTier
from support import NEWEST_VERSION, md5

LIST = "restype=container&comp=list"

FIRST_VERSIONS = [
    ("copy", "2009-09-19", "2012-02-12"),
    ("deleted", "2017-04-17", "2017-07-29"),
    ("tags", "2019-07-07", "2019-12-12"),
    ("versions", "2019-07-07", "2019-12-12"),
    ("deletedwithversions", "2020-08-04", "2020-10-02"),
    ("immutabilitypolicy", "2020-04-08", "2020-06-12"),
    ("legalhold", "2020-04-08", "2020-06-12"),
]


@pytest.mark.parametrize(("name", "before", "first"), FIRST_VERSIONS)
def test_first_version_of_each_include(raw, container, name, before, first):
    query = f"{LIST}&include={name}"
    assert raw.send("GET", f"/{container.container_name}", query, version=first).status == 200
    answer = raw.send("GET", f"/{container.container_name}", query, version=before)
    assert (answer.status, answer.code) == (400, "InvalidQueryParameterValue")


REFUSED = [
    f"{LIST}&include=everything",
    f"{LIST}&include=snapshots&delimiter=%2F",
    f"{LIST}&showonly=deleted&include=deleted",
    f"{LIST}&showonly=everything",
    f"{LIST}&marker=nonsense",
]


@pytest.mark.parametrize("query", REFUSED)
def test_refused_parameters(raw, container, query):
    answer = raw.send("GET", f"/{container.container_name}", query)
    assert (answer.status, answer.code) == (400, "InvalidQueryParameterValue")


def test_snapshots_come_before_their_blob(container):
    for name in ("b", "a"):
        blob = container.upload_blob(name, b"1")
        blob.create_snapshot(metadata={"kept": "1"})
        blob.create_snapshot()
    listed = list(container.list_blobs(include=["snapshots", "metadata"]))
    assert [(item.name, item.snapshot is not None) for item in listed] == [
        ("a", True),
        ("a", True),
        ("a", False),
        ("b", True),
        ("b", True),
        ("b", False),
    ]
    assert listed[0].snapshot < listed[1].snapshot
    assert [item.metadata or {} for item in listed[:3]] == [{"kept": "1"}, {}, {}]
    assert [item.lease.state for item in listed[:3]] == [None, None, "available"]
    assert [item.name for item in container.list_blobs()] == ["a", "b"]


@pytest.mark.parametrize("page", [1, 2, 4, 5])
def test_pages_with_snapshots(container, page):
    for name in ("a", "b", "c"):
        blob = container.upload_blob(name, b"1")
        blob.create_snapshot()
        blob.create_snapshot()
    whole = [(item.name, item.snapshot) for item in container.list_blobs(include=["snapshots"])]
    pages = container.list_blobs(include=["snapshots"], results_per_page=page).by_page()
    listed = [[(item.name, item.snapshot) for item in items] for items in pages]
    assert len(whole) == 9
    assert sum(listed, []) == whole


def test_start_from_is_inclusive_at_every_version(raw, container):
    """It is newer than 2023-11-03, with which object_store sends it all the same."""
    for name in ("a", "b", "c"):
        container.upload_blob(name, b"1")

    def names(version):
        answer = raw.send("GET", f"/{container.container_name}", f"{LIST}&startFrom=b", version=version)
        return [element.text for element in answer.xml().iter("Name")]

    assert names(NEWEST_VERSION) == ["b", "c"]
    assert names("2023-11-03") == ["b", "c"]


def test_show_only_deleted_shows_no_blob_that_is_there(raw, container):
    container.upload_blob("a", b"1")
    answer = raw.send("GET", f"/{container.container_name}", f"{LIST}&showonly=deleted")
    assert answer.status == 200
    assert list(answer.xml().iter("Name")) == []


def test_arrow_listing(raw, container):
    container.upload_blob("folder/a", b"1")
    container.upload_blob("b", b"1")
    accept = {"Accept": "application/vnd.apache.arrow.stream"}
    for query in (LIST, f"{LIST}&delimiter=%2F", f"{LIST}&include=metadata,tags&maxresults=1"):
        answer = raw.send("GET", f"/{container.container_name}", query, accept)
        assert (answer.status, answer.headers["Content-Type"]) == (200, accept["Accept"])
        assert answer.body.startswith(b"\xff\xff\xff\xff")
        assert answer.body.endswith(b"\xff\xff\xff\xff\0\0\0\0")
        assert b"NextMarker" in answer.body
    answer = raw.send("GET", f"/{container.container_name}", LIST, accept, version="2026-06-06")
    assert (answer.status, answer.headers["Content-Type"]) == (200, "application/xml")


def test_arrow_listing_by_the_sdk(container):
    container.upload_blob("folder/a", b"1", metadata={"number": "1"}, tags={"one": "two"})
    container.upload_blob("b", b"22")
    include = ["metadata", "tags"]
    pages = container.list_blobs(include=include, response_format="arrow", results_per_page=1).by_page()
    first, second = (item for page in pages for item in page)
    assert (first.name, first.size, first.metadata) == ("b", 2, {})
    assert (second.name, second.metadata, second.tags) == ("folder/a", {"number": "1"}, {"one": "two"})
    walked = container.walk_blobs(response_format="arrow")
    assert [item.name for item in walked] == ["b", "folder/"]


def listed(container, **asked):
    """What the SDK knows of every blob, sub-objects taken apart. It has two words for what is not there."""
    items = container.list_blobs(include=INCLUDES, **asked)
    return {
        (item.name, item.snapshot, item.version_id): {
            name: (vars(value) if hasattr(value, "__dict__") else value) or None for name, value in vars(item).items()
        }
        for item in items
    }


INCLUDES = ["metadata", "tags", "copy", "snapshots", "immutabilitypolicy", "legalhold", "uncommittedblobs"]


def test_both_forms_of_a_listing_tell_the_same(container):
    settings = ContentSettings("text/plain", "gzip", "de", "attachment", "no-cache", bytearray(md5(b"1")))
    blob = container.upload_blob("block", b"1", content_settings=settings, metadata={"A": "1"}, tags={"t": "v"})
    blob.create_snapshot()
    blob.acquire_lease(60)
    page = container.get_blob_client("page")
    page.create_page_blob(1024, sequence_number=7, premium_page_blob_tier=PremiumPageBlobTier.P4)
    log = container.get_blob_client("log")
    log.create_append_blob()
    log.seal_append_blob()
    container.get_blob_client("copy").start_copy_from_url(blob.url)
    container.upload_blob("archived", b"1", standard_blob_tier=StandardBlobTier.ARCHIVE)
    held = container.upload_blob("held", b"1")
    until = datetime.now(timezone.utc) + timedelta(hours=1)
    held.set_immutability_policy(ImmutabilityPolicy(expiry_time=until, policy_mode="Unlocked"))
    held.set_legal_hold(True)
    container.get_blob_client("staged").stage_block("a", b"x")
    text, arrow = listed(container), listed(container, response_format="arrow")
    held.set_legal_hold(False)
    held.delete_immutability_policy()
    assert text.keys() == arrow.keys() and len(text) == 8
    for key, properties in text.items():
        assert arrow[key] == properties, key
