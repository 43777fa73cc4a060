"""Deleted blobs and snapshots that can be restored, on servers with retention."""

import datetime
from urllib.parse import urlsplit

import pytest
from azure.storage.blob import BlobBlock, BlobServiceClient, RetentionPolicy
from own_server import own_server
from support import Account, Raw, refused, unique
from test_snapshots import of


def retaining(*settings):
    with own_server(*settings) as connection_string:
        with BlobServiceClient.from_connection_string(connection_string, retry_total=0) as client:
            client.set_service_properties(delete_retention_policy=RetentionPolicy(enabled=True, days=5))
            yield client


@pytest.fixture(scope="module")
def retaining_service():
    yield from retaining()


@pytest.fixture(scope="module")
def versioned_service():
    yield from retaining("--versioning")


@pytest.fixture
def container(retaining_service):
    return retaining_service.create_container(unique("deleted"))


@pytest.fixture
def blob(container):
    client = container.get_blob_client("a")
    client.upload_blob(b"first")
    return client


def states(container, include):
    return [
        (item.name, item.size, bool(item.deleted), item.snapshot is not None)
        for item in container.list_blobs(include=include)
    ]


def test_deleted_blob_is_listed_and_restored(container, blob):
    blob.delete_blob()
    with refused(404, "BlobNotFound"):
        blob.get_blob_properties()
    assert list(container.list_blobs()) == []
    (listed,) = container.list_blobs(include=["deleted"])
    assert (listed.name, listed.deleted, listed.remaining_retention_days) == ("a", True, 5)
    now = datetime.datetime.now(datetime.timezone.utc)
    assert abs(now - listed.deleted_time) < datetime.timedelta(minutes=1)
    assert listed.lease.state is None
    blob.undelete_blob()
    assert blob.download_blob().readall() == b"first"
    (listed,) = container.list_blobs(include=["deleted"])
    assert not listed.deleted


def test_overwritten_blob_is_a_deleted_snapshot(container, blob):
    blob.upload_blob(b"second one", overwrite=True)
    assert states(container, ["deleted"]) == [("a", 10, False, False)]
    expected = [("a", 5, True, True), ("a", 10, False, False)]
    assert states(container, ["deleted", "snapshots"]) == expected
    blob.undelete_blob()
    snapshot, _ = container.list_blobs(include=["snapshots"])
    assert of(blob, snapshot.snapshot).download_blob().readall() == b"first"
    assert blob.download_blob().readall() == b"second one"


def test_snapshots_are_deleted_and_restored_with_their_blob(container, blob):
    snapshot = of(blob, blob.create_snapshot()["snapshot"])
    blob.delete_blob(delete_snapshots="include")
    assert states(container, ["deleted", "snapshots"]) == [("a", 5, True, True), ("a", 5, True, False)]
    with refused(404, "BlobNotFound"):
        snapshot.get_blob_properties()
    blob.undelete_blob()
    assert snapshot.download_blob().readall() == b"first"
    assert states(container, ["snapshots"]) == [("a", 5, False, True), ("a", 5, False, False)]


def test_blocks_put_on_a_deleted_name_make_a_new_blob(container, blob):
    blob.delete_blob()
    blob.stage_block("1", b"new block")
    blob.commit_block_list([BlobBlock("1")])
    assert blob.download_blob().readall() == b"new block"
    expected = [("a", 5, True, True), ("a", 9, False, False)]
    assert states(container, ["deleted", "snapshots"]) == expected


def test_metadata_and_properties_leave_nothing(container, blob):
    blob.set_blob_metadata({"new": "1"})
    blob.set_http_headers()
    assert states(container, ["deleted", "snapshots"]) == [("a", 5, False, False)]


def test_deleting_for_good(retaining_service, container, blob):
    account = Account(
        retaining_service.account_name,
        retaining_service.credential.account_key,
        urlsplit(retaining_service.primary_endpoint.rstrip("/")),
    )
    raw = Raw(account)
    name = f"/{container.container_name}/a"
    snapshot = blob.create_snapshot()["snapshot"]
    query = f"snapshot={snapshot}&deletetype=permanent"
    assert raw.send("DELETE", name, query).status == 409
    policy = (
        b"<StorageServiceProperties><DeleteRetentionPolicy><Enabled>true</Enabled><Days>5</Days>"
        b"<AllowPermanentDelete>%s</AllowPermanentDelete></DeleteRetentionPolicy></StorageServiceProperties>"
    )
    properties = "restype=service&comp=properties"
    assert raw.send("PUT", "/", properties, {}, policy % b"true").status == 202
    try:
        assert raw.send("DELETE", name, query).status == 409
        deleted = raw.send("DELETE", name, f"snapshot={snapshot}")
        assert (deleted.status, deleted.headers["x-ms-delete-type-permanent"]) == (202, "false")
        deleted = raw.send("DELETE", name, query)
        assert (deleted.status, deleted.headers["x-ms-delete-type-permanent"]) == (202, "true")
        assert states(container, ["deleted", "snapshots"]) == [("a", 5, False, False)]
        assert raw.send("DELETE", name, query).status == 404
    finally:
        assert raw.send("PUT", "/", properties, {}, policy % b"false").status == 202


def test_deleted_versions_are_restored_and_none_becomes_current(versioned_service):
    container = versioned_service.create_container(unique("deleted"))
    blob = container.get_blob_client("a")
    first = blob.upload_blob(b"1")["version_id"]
    blob.upload_blob(b"22", overwrite=True)
    blob.delete_blob(version_id=first)
    listed = container.list_blobs(include=["versions", "deleted"])
    assert [(item.version_id == first, bool(item.deleted)) for item in listed] == [
        (True, True),
        (False, False),
    ]
    blob.delete_blob()
    blob.undelete_blob()
    with refused(404, "BlobNotFound"):
        blob.get_blob_properties()
    assert blob.download_blob(version_id=first).readall() == b"1"


def test_pages_of_deleted_blobs(container):
    for name in ("x/1", "x/2", "y", "z/1"):
        container.upload_blob(name, b"content")
        container.delete_blob(name)
    pages = container.list_blobs(include=["deleted"], results_per_page=1).by_page()
    assert [[item.name for item in page] for page in pages] == [["x/1"], ["x/2"], ["y"], ["z/1"]]
    listed = [item.name for item in container.walk_blobs(include=["deleted"])]
    assert sorted(listed) == ["x/", "y", "z/"]
