"""Tiers that cannot be changed as asked (section 3.10 of the notes on the protocol), and methods that
nothing takes."""

import pytest
from azure.storage.blob import BlobServiceClient, PremiumPageBlobTier, StandardBlobTier
from own_server import own_server
from support import refused, unique

GIB = 1 << 30


@pytest.fixture(scope="module")
def slow():
    """A server where rehydration takes a minute."""
    with own_server("--rehydration-seconds=60") as connection, BlobServiceClient.from_connection_string(
        connection, retry_total=0
    ) as service:
        yield service.create_container(unique("slow"))


def test_a_blob_on_its_way_out_of_the_archive(slow):
    blob = slow.upload_blob("archived", b"cold", standard_blob_tier=StandardBlobTier.ARCHIVE)
    blob.set_standard_blob_tier(StandardBlobTier.HOT, rehydrate_priority="High")
    properties = blob.get_blob_properties()
    assert (properties.blob_tier, properties.archive_status) == ("Archive", "rehydrate-pending-to-hot")
    assert properties.rehydrate_priority == "High"
    with refused(409, "BlobBeingRehydrated"):
        blob.set_standard_blob_tier(StandardBlobTier.COOL)
    with refused(409, "BlobBeingRehydrated"):
        blob.set_standard_blob_tier(StandardBlobTier.ARCHIVE)
    with refused(409, "BlobArchived"):
        blob.download_blob()
    blob.set_standard_blob_tier(StandardBlobTier.HOT)


def test_tiers_of_page_blobs_only_rise(container):
    blob = container.get_blob_client("pages")
    blob.create_page_blob(GIB, premium_page_blob_tier=PremiumPageBlobTier.P10)
    with refused(409, "CannotChangeToLowerTier"):
        blob.set_premium_page_blob_tier(PremiumPageBlobTier.P6)
    blob.set_premium_page_blob_tier(PremiumPageBlobTier.P20)
    assert blob.get_blob_properties().blob_tier == "P20"


def test_a_page_blob_too_long_for_its_tier(container):
    blob = container.get_blob_client("pages")
    blob.create_page_blob(40 * GIB)
    with refused(409, "BlobTierInadequateForContentLength"):
        blob.set_premium_page_blob_tier(PremiumPageBlobTier.P4)


@pytest.mark.parametrize("method", ["PATCH", "TRACE"])
def test_a_method_that_no_resource_has(raw, container, method):
    answer = raw.send(method, f"/{container.container_name}/blob")
    assert (answer.status, answer.code) == (405, "UnsupportedHttpVerb")
    assert answer.headers["Allow"]
