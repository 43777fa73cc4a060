"""Access tiers: possible changes, requests on archived blobs, and rehydration."""

import time

import pytest
from azure.storage.blob import BlobLeaseClient, ContentSettings, PremiumPageBlobTier, StandardBlobTier
from support import quoted, refused


def set_tier(raw, blob, tier, query="", headers=None, version=""):
    path = f"/{blob.container_name}/{quoted(blob.blob_name)}"
    headers = {"x-ms-access-tier": tier} | (headers or {})
    return raw.send("PUT", path, "comp=tier" + query, headers, version=version)


def wait_until_online(blob):
    for _ in range(300):
        properties = blob.get_blob_properties()
        if properties.archive_status is None:
            return properties
        time.sleep(0.1)
    raise AssertionError("the blob did not come back from the archive")


@pytest.mark.parametrize("tier", ["Hot", "Cool", "Cold", "Archive", "Smart", "cool"])
def test_a_tier_is_set_and_nothing_else_changes(raw, container, blob, tier):
    before = blob.get_blob_properties()
    assert (before.blob_tier, before.blob_tier_inferred) == ("Hot", True)
    assert set_tier(raw, blob, tier).status == 200
    after = blob.get_blob_properties()
    assert (after.blob_tier, after.blob_tier_inferred) == (tier.capitalize(), None)
    assert after.blob_tier_change_time is not None
    # The current tier of a blob in the smart tier.
    smart = "Hot" if tier == "Smart" else None
    listed = [item.smart_access_tier for item in container.list_blobs()]
    assert (after.smart_access_tier, listed) == (smart, [smart])
    assert (after.etag, after.last_modified) == (before.etag, before.last_modified)


def test_an_archived_blob_keeps_its_bytes_to_itself_until_it_is_back(raw, blob):
    assert set_tier(raw, blob, "Archive").status == 200
    assert set_tier(raw, blob, "Archive").status == 200
    with refused(409, "BlobArchived"):
        blob.download_blob()
    with refused(409, "BlobArchived"):
        blob.upload_blob(b"new", overwrite=True)
    assert blob.get_blob_properties().size == 17
    blob.set_blob_tags({"a": "1"})
    assert blob.get_blob_tags() == {"a": "1"}
    assert set_tier(raw, blob, "Cool", headers={"x-ms-rehydrate-priority": "High"}).status == 202
    properties = wait_until_online(blob)
    assert properties.blob_tier == "Cool"
    assert blob.download_blob().readall() == b"the first content"
    blob.upload_blob(b"new", overwrite=True)


def test_an_archived_blob_can_be_deleted(raw, blob):
    set_tier(raw, blob, "Archive")
    blob.delete_blob()
    assert not blob.exists()


@pytest.mark.parametrize(
    ("tier", "headers", "version", "status", "code"),
    [
        ("Lukewarm", {}, "", 400, "InvalidBlobTier"),
        (None, {}, "", 400, "MissingRequiredHeader"),
        ("Cold", {}, "2021-10-04", 400, "InvalidHeaderValue"),
        ("Cold", {}, "2021-12-02", 200, None),
        ("Smart", {}, "2026-04-06", 400, "InvalidHeaderValue"),
        ("P10", {}, "", 400, "AccessTierNotSupportedForBlobType"),
        ("Cool", {"x-ms-rehydrate-priority": "Soon"}, "", 400, "InvalidHeaderValue"),
        ("Cool", {"x-ms-rehydrate-priority": "Soon"}, "2018-11-09", 200, None),
        ("Cool", {"If-Match": "*"}, "", 400, "ConditionHeadersNotSupported"),
        ("Cool", {"x-ms-if-tags": "a = '1'"}, "", 412, "ConditionNotMet"),
        ("Cool", {"x-ms-if-tags": "here = 'yes'"}, "", 200, None),
    ],
)
def test_what_is_no_tier_is_refused(raw, blob, tier, headers, version, status, code):
    blob.set_blob_tags({"here": "yes"})
    answer = set_tier(raw, blob, tier, headers=headers, version=version)
    assert (answer.status, answer.code) == (status, code)


def test_no_blob_no_tier(container):
    with refused(404, "BlobNotFound"):
        container.get_blob_client("missing").set_standard_blob_tier("Cool")


def test_a_lease_does_not_guard_the_tier_of_a_block_blob(raw, blob):
    lease = BlobLeaseClient(blob)
    lease.acquire(60)
    assert set_tier(raw, blob, "Cool").status == 200
    assert set_tier(raw, blob, "Hot", headers={"x-ms-lease-id": lease.id}).status == 200
    wrong = {"x-ms-lease-id": "11111111-2222-3333-4444-555555555555"}
    answer = set_tier(raw, blob, "Cool", headers=wrong)
    assert (answer.status, answer.code) == (412, "LeaseIdMismatchWithBlobOperation")


def test_the_tier_of_an_upload_is_for_its_kind(container):
    blob = container.upload_blob("cool", b"", standard_blob_tier=StandardBlobTier.COOL)
    assert blob.get_blob_properties().blob_tier == "Cool"
    listed = next(iter(container.list_blobs()))
    assert listed.blob_tier == "Cool"
    with refused(400, "AccessTierNotSupportedForBlobType"):
        container.upload_blob("p10", b"", standard_blob_tier=PremiumPageBlobTier.P10)


def test_of_an_archived_blob_only_tags_and_tier_change(raw, container):
    """What the guide to tiers says: its metadata is read-only, its tags are not."""
    blob = container.upload_blob("archived", b"cold", metadata={"a": "1"}, standard_blob_tier=StandardBlobTier.ARCHIVE)
    before = blob.get_blob_properties()
    path = f"/{container.container_name}/archived"
    for change in [
        lambda: blob.set_blob_metadata({"b": "2"}),
        lambda: blob.set_http_headers(ContentSettings(content_type="text/plain")),
        lambda: blob.create_snapshot(),
        lambda: blob.stage_block("a", b"x"),
        lambda: blob.upload_blob(b"new", overwrite=True),
        lambda: blob.download_blob(),
    ]:
        with refused(409, "BlobArchived"):
            change()
    answer = raw.send("PUT", path, "comp=expiry", {"x-ms-expiry-option": "NeverExpire"})
    assert (answer.status, answer.code) == (409, "BlobArchived")
    after = blob.get_blob_properties()
    assert (after.etag, after.metadata) == (before.etag, {"a": "1"})
    blob.set_blob_tags({"t": "1"})
    assert blob.get_blob_tags() == {"t": "1"}
    assert [listed.metadata for listed in container.list_blobs(include=["metadata"])] == [{"a": "1"}]
    container.get_blob_client("copy").start_copy_from_url(blob.url, standard_blob_tier=StandardBlobTier.HOT)
    assert container.get_blob_client("copy").get_blob_properties().metadata == {"a": "1"}
    blob.set_standard_blob_tier(StandardBlobTier.COOL)
    blob.set_blob_metadata({"b": "2"})
    assert blob.get_blob_properties().metadata == {"b": "2"}
