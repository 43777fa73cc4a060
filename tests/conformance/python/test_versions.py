"""Versions of blobs, on a server that keeps them."""

import pytest
from azure.storage.blob import BlobServiceClient
from own_server import own_server
from support import refused, unique


@pytest.fixture(scope="module")
def versioned_service():
    with own_server("--versioning") as connection_string:
        with BlobServiceClient.from_connection_string(connection_string, retry_total=0) as client:
            yield client


@pytest.fixture
def container(versioned_service):
    return versioned_service.create_container(unique("versions"))


def states(container, include="versions"):
    """What is listed of each version: its content, and whether it is the current one."""
    listed = container.list_blobs(include=include if isinstance(include, list) else [include])
    return [(item.name, item.version_id, bool(item.is_current_version)) for item in listed]


def test_every_write_tells_its_version_and_all_stay_readable(container):
    blob = container.get_blob_client("a")
    first = blob.upload_blob(b"1")["version_id"]
    second = blob.upload_blob(b"22", overwrite=True)["version_id"]
    third = blob.set_blob_metadata({"new": "yes"})["version_id"]
    assert first < second < third
    assert blob.get_blob_properties().version_id == third
    assert blob.get_blob_properties().is_current_version
    contents = [blob.download_blob(version_id=version).readall() for version in (first, second, third)]
    assert contents == [b"1", b"22", b"22"]
    assert blob.get_blob_properties(version_id=second).metadata == {}
    assert not blob.get_blob_properties(version_id=first).is_current_version
    assert states(container) == [("a", first, False), ("a", second, False), ("a", third, True)]
    assert states(container, []) == [("a", third, True)]


def test_properties_make_no_version(container):
    blob = container.get_blob_client("a")
    version = blob.upload_blob(b"1")["version_id"]
    blob.set_http_headers()
    assert blob.get_blob_properties().version_id == version
    assert len(states(container)) == 1


def test_deleted_blob_has_no_current_version(container):
    blob = container.get_blob_client("a")
    version = blob.upload_blob(b"1")["version_id"]
    blob.delete_blob()
    with refused(404, "BlobNotFound"):
        blob.download_blob()
    assert blob.download_blob(version_id=version).readall() == b"1"
    assert states(container, []) == []
    assert states(container) == [("a", version, False)]
    listed = list(container.list_blobs(include=["deletedwithversions"]))
    assert [(item.name, item.has_versions_only) for item in listed] == [("a", True)]


def test_deletion_of_versions(container):
    blob = container.get_blob_client("a")
    first = blob.upload_blob(b"1")["version_id"]
    second = blob.upload_blob(b"22", overwrite=True)["version_id"]
    with refused(403, "OperationNotAllowedOnRootBlob"):
        blob.delete_blob(version_id=second)
    blob.delete_blob(version_id=first)
    with refused(404, "BlobNotFound"):
        blob.get_blob_properties(version_id=first)
    assert states(container) == [("a", second, True)]


def test_snapshot_makes_a_version(container):
    blob = container.get_blob_client("a")
    first = blob.upload_blob(b"1")["version_id"]
    made = blob.create_snapshot()
    assert first < made["version_id"]
    assert blob.get_blob_properties().version_id == made["version_id"]
    listed = list(container.list_blobs(include=["versions", "snapshots"]))
    assert [(item.version_id, item.snapshot) for item in listed] == [
        (first, None),
        (None, made["snapshot"]),
        (made["version_id"], None),
    ]


@pytest.mark.parametrize("page", [1, 2, 3, 7])
def test_pages_of_versions(container, page):
    expected = []
    for name in ("a", "b"):
        blob = container.get_blob_client(name)
        versions = [blob.upload_blob(bytes(size), overwrite=True)["version_id"] for size in range(3)]
        expected += [(name, version) for version in versions]
    pages = container.list_blobs(include=["versions"], results_per_page=page).by_page()
    listed = [[(item.name, item.version_id) for item in items] for items in pages]
    assert sum(listed, []) == expected
    assert all(len(items) <= page for items in listed)
