"""Snapshot Blob, and reading, listing and deleting snapshots."""

import pytest
from azure.core import MatchConditions
from azure.storage.blob import BlobClient, BlobLeaseClient
from support import refused


def of(blob, snapshot):
    """The client of a snapshot."""
    return BlobClient.from_blob_url(blob.url, credential=blob.credential, snapshot=snapshot, retry_total=0)


@pytest.fixture
def snapshot(blob):
    return of(blob, blob.create_snapshot()["snapshot"])


def test_snapshot_is_a_time_with_seven_digits_and_keeps_the_etag(blob):
    base = blob.get_blob_properties()
    made = blob.create_snapshot()
    assert len(made["snapshot"]) == len("2024-01-31T12:34:56.1234567Z")
    assert (made["etag"], made["last_modified"]) == (base.etag, base.last_modified)
    assert made["version_id"] is None


def test_snapshot_stays_as_the_blob_was(blob, snapshot):
    blob.upload_blob(b"the second content", overwrite=True, metadata={"new": "1"})
    assert snapshot.download_blob().readall() == b"the first content"
    assert snapshot.download_blob(offset=4, length=5).readall() == b"first"
    assert snapshot.get_blob_properties().metadata == {}


def test_snapshot_tells_no_lease_and_takes_no_lease_id(blob, snapshot):
    lease = BlobLeaseClient(blob)
    lease.acquire()
    properties = snapshot.get_blob_properties()
    assert (properties.lease.status, properties.lease.state) == (None, None)
    with refused(412, "LeaseNotPresentWithBlobOperation"):
        snapshot.get_blob_properties(lease=lease)
    lease.release()


def test_snapshot_takes_metadata_of_its_own(blob):
    blob.set_blob_metadata({"base": "1"})
    copied = blob.create_snapshot()
    own = blob.create_snapshot(metadata={"own": "2"})
    assert of(blob, copied["snapshot"]).get_blob_properties().metadata == {"base": "1"}
    assert of(blob, own["snapshot"]).get_blob_properties().metadata == {"own": "2"}
    assert blob.get_blob_properties().metadata == {"base": "1"}
    assert own["etag"] != copied["etag"]


def test_snapshot_conditions_and_lease(blob):
    etag = blob.get_blob_properties().etag
    blob.create_snapshot(etag=etag, match_condition=MatchConditions.IfNotModified)
    with refused(412, "ConditionNotMet"):
        blob.create_snapshot(etag=etag, match_condition=MatchConditions.IfModified)
    lease = BlobLeaseClient(blob)
    lease.acquire()
    blob.create_snapshot()
    blob.create_snapshot(lease=lease)
    with refused(412, "LeaseIdMismatchWithBlobOperation"):
        blob.create_snapshot(lease="00000000-0000-0000-0000-000000000001")
    lease.release()


def test_snapshot_of_what_is_not_there(container):
    with refused(404, "BlobNotFound"):
        container.get_blob_client("missing").create_snapshot()


@pytest.mark.parametrize("query", ["comp=metadata", "comp=properties", "comp=snapshot", "comp=lease"])
def test_snapshots_are_not_written_to(raw, container, blob, snapshot, query):
    name = f"/{container.container_name}/a%20blob"
    headers = {"x-ms-lease-action": "acquire", "x-ms-lease-duration": "15"} if "lease" in query else {}
    answer = raw.send("PUT", name, f"{query}&snapshot={snapshot.snapshot}", headers)
    assert (answer.status, answer.code) == (400, "InvalidOperation")


def test_delete_of_a_blob_with_snapshots(blob, snapshot):
    with refused(409, "SnapshotsPresent"):
        blob.delete_blob()
    blob.delete_blob(delete_snapshots="only")
    assert not snapshot.exists()
    assert blob.exists()
    other = of(blob, blob.create_snapshot()["snapshot"])
    blob.delete_blob(delete_snapshots="include")
    assert not blob.exists()
    assert not other.exists()


def test_delete_of_a_snapshot(raw, container, blob, snapshot):
    name = f"/{container.container_name}/a%20blob"
    query = f"snapshot={snapshot.snapshot}"
    answer = raw.send("DELETE", name, query, {"x-ms-delete-snapshots": "only"})
    assert (answer.status, answer.code) == (400, "InvalidOperation")
    other = of(blob, blob.create_snapshot()["snapshot"])
    snapshot.delete_blob()
    with refused(404, "BlobNotFound"):
        snapshot.delete_blob()
    assert other.exists()
    assert blob.exists()


@pytest.mark.parametrize("value", ["yesterday", "2024-01-31T25:00:00Z", "%00"])
def test_snapshot_that_is_no_time(raw, container, blob, value):
    answer = raw.send("GET", f"/{container.container_name}/a%20blob", f"snapshot={value}")
    assert (answer.status, answer.code) == (400, "InvalidQueryParameterValue")


def test_deleting_for_good_needs_a_deleted_snapshot(raw, container, blob, snapshot):
    name = f"/{container.container_name}/a%20blob"
    for query in ("deletetype=permanent", f"deletetype=permanent&snapshot={snapshot.snapshot}"):
        answer = raw.send("DELETE", name, query)
        assert answer.status == 409
    assert raw.send("DELETE", name, "deletetype=forever").status == 400


def test_undelete_of_a_live_blob_and_of_none(blob, container):
    blob.undelete_blob()
    with refused(404, "BlobNotFound"):
        container.get_blob_client("missing").undelete_blob()


def test_large_snapshot_outlives_its_blob_and_its_bytes_are_its_own(container):
    blob = container.get_blob_client("large")
    first, second = bytes(300_000), b"x" * 300_000
    blob.upload_blob(first)
    snapshots = [of(blob, blob.create_snapshot()["snapshot"]) for _ in range(3)]
    blob.upload_blob(second, overwrite=True)
    snapshots[0].delete_blob()
    assert snapshots[1].download_blob().readall() == first
    snapshots[1].delete_blob()
    assert snapshots[2].download_blob().readall() == first
    assert blob.download_blob().readall() == second
