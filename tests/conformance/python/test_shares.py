"""Shares: create, properties, metadata, policies, delete, list, names."""

from datetime import datetime, timedelta, timezone

import pytest
from azure.core.exceptions import ResourceNotFoundError
from azure.storage.fileshare import AccessPolicy, ShareSasPermissions, ShareServiceClient
from own_server import own_server
from support import ETAG, refused, unique

WHOLE = "restype=share"


def now():
    return datetime.now(timezone.utc).replace(microsecond=0)


# Create and delete


def test_a_share_is_created_once(shares):
    share = shares.get_share_client(unique("once"))
    created = share.create_share(metadata={"Name": "value"})
    assert ETAG.match(created["etag"])
    assert abs(created["last_modified"] - now()) < timedelta(minutes=1)
    with refused(409, "ShareAlreadyExists"):
        share.create_share()
    assert share.get_share_properties().metadata == {"Name": "value"}
    share.delete_share()
    with refused(404, "ShareNotFound"):
        share.delete_share()


def test_a_deleted_share_is_gone_and_its_name_free(shares, share):
    share.delete_share()
    for call in (
        share.get_share_properties,
        lambda: share.set_share_properties(quota=1),
        lambda: share.set_share_metadata({"a": "b"}),
        share.get_share_access_policy,
        lambda: share.set_share_access_policy({}),
        share.create_snapshot,
        lambda: share.acquire_lease(lease_duration=-1),
    ):
        with refused(404, "ShareNotFound"):
            call()
    shares.create_share(share.share_name, metadata={"new": "share"})
    assert share.get_share_properties().metadata == {"new": "share"}


def test_the_name_of_a_deleted_share_can_be_held():
    with own_server("--share-name-hold-seconds=30") as connection:
        with ShareServiceClient.from_connection_string(connection, retry_total=0) as service:
            service.create_share("photos").delete_share()
            with refused(409, "ShareBeingDeleted"):
                service.create_share("photos")


@pytest.mark.parametrize("name", ["ab", "a" * 64, "Upper", "a--b", "-ab", "ab-", "a_b", "$root"])
def test_a_name_that_no_share_can_have_is_refused(file_raw, name):
    answer = file_raw.send("PUT", f"/{name}", WHOLE)
    assert (answer.status, answer.code) in ((400, "InvalidResourceName"), (400, "OutOfRangeInput"))


# Properties


def test_a_new_share_has_the_service_s_defaults(share):
    properties = share.get_share_properties()
    assert properties.quota == 5120
    assert properties.access_tier == "TransactionOptimized"
    assert properties.protocols == ["SMB"]
    assert (properties.lease.status, properties.lease.state) == ("unlocked", "available")
    assert properties.root_squash is None
    assert properties.metadata == {}


def test_what_a_share_is_created_with_is_told(shares):
    share = shares.get_share_client(unique("set"))
    share.create_share(
        quota=7,
        access_tier="Hot",
        provisioned_iops=3000,
        provisioned_bandwidth_mibps=125,
        paid_bursting_enabled=True,
        paid_bursting_iops=5000,
        paid_bursting_bandwidth_mibps=1000,
    )
    properties = share.get_share_properties()
    assert (properties.quota, properties.access_tier) == (7, "Hot")
    assert (properties.provisioned_iops, properties.provisioned_bandwidth) == (3000, 125)
    assert properties.paid_bursting_enabled is True
    assert (properties.paid_bursting_iops, properties.paid_bursting_bandwidth_mibps) == (5000, 1000)
    before = properties
    share.set_share_properties(quota=9)
    properties = share.get_share_properties()
    assert (properties.quota, properties.access_tier) == (9, "Hot")
    assert properties.etag != before.etag
    share.set_share_properties(access_tier="Cool")
    properties = share.get_share_properties()
    assert (properties.quota, properties.access_tier) == (9, "Cool")
    share.delete_share()


def test_a_change_of_tier_is_told_as_pending(file_raw, shares):
    def told(name):
        header = file_raw.send("GET", f"/{name}", WHOLE).headers["x-ms-access-tier-transition-state"]
        listed = file_raw.send("GET", "/", f"comp=list&prefix={name}").xml()
        assert listed.findtext(".//AccessTierTransitionState") == header
        return header

    share = shares.get_share_client(unique("moved"))
    share.create_share()
    assert told(share.share_name) is None
    for tier, state in (
        ("Hot", "pending-from-transactionOptimized"),
        ("Cool", "pending-from-hot"),
        ("Cool", None),
        ("TransactionOptimized", "pending-from-cool"),
    ):
        share.set_share_properties(access_tier=tier)
        assert told(share.share_name) == state
    share.delete_share()
    share.create_share(access_tier="Hot")
    assert told(share.share_name) is None
    share.delete_share()


def test_a_share_of_nfs_has_a_root_squash(shares):
    share = shares.get_share_client(unique("nfs"))
    share.create_share(protocols="NFS", root_squash="AllSquash")
    properties = share.get_share_properties()
    assert (properties.protocols, properties.root_squash) == (["NFS"], "AllSquash")
    assert properties.enable_snapshot_virtual_directory_access is True
    share.set_share_properties(root_squash="RootSquash", enable_snapshot_virtual_directory_access=False)
    properties = share.get_share_properties()
    assert properties.root_squash == "RootSquash"
    assert properties.enable_snapshot_virtual_directory_access is False
    share.delete_share()


@pytest.mark.parametrize(
    ("header", "value"),
    [
        ("x-ms-share-quota", "0"),
        ("x-ms-share-quota", "-1"),
        ("x-ms-share-quota", "many"),
        ("x-ms-share-quota", "262145"),
        ("x-ms-access-tier", "Lukewarm"),
        ("x-ms-enabled-protocols", "FTP"),
        ("x-ms-root-squash", "Some"),
        ("x-ms-root-squash", "RootSquash"),  # Of a share that is not of NFS.
        ("x-ms-enable-smb-directory-lease", "maybe"),
        ("x-ms-share-provisioned-iops", "fast"),
        ("x-ms-share-paid-bursting-enabled", "yes"),
        ("x-ms-file-request-intent", "restore"),
    ],
)
def test_what_a_share_cannot_have_is_refused(file_raw, header, value):
    answer = file_raw.send("PUT", f"/{unique('bad')}", WHOLE, {header: value})
    assert (answer.status, answer.code) == (400, "InvalidHeaderValue")


def test_old_versions_are_told_what_they_know(file_raw, share):
    path = f"/{share.share_name}"
    newest = file_raw.send("GET", path, WHOLE).headers
    old = file_raw.send("GET", path, WHOLE, version="2015-02-21").headers
    for name in ("x-ms-access-tier", "x-ms-lease-state", "x-ms-enabled-protocols", "x-ms-enable-smb-directory-lease"):
        assert newest[name] is not None and old[name] is None, name
    assert old["x-ms-share-quota"] == "5120"
    tier = {"x-ms-access-tier": "Premium"}
    answer = file_raw.send("PUT", path, f"{WHOLE}&comp=properties", tier, version="2024-11-04")
    assert (answer.status, answer.code) == (400, "InvalidHeaderValue")
    assert file_raw.send("PUT", path, f"{WHOLE}&comp=properties", tier).status == 200


def test_metadata_is_replaced_as_a_whole(file_raw, share):
    share.set_share_metadata({"First": "1", "second": "two words"})
    assert share.get_share_properties().metadata == {"First": "1", "second": "two words"}
    got = file_raw.send("GET", f"/{share.share_name}", f"{WHOLE}&comp=metadata")
    assert (got.status, got.headers["x-ms-meta-first"]) == (200, "1")
    assert got.headers["x-ms-share-quota"] is None
    share.set_share_metadata({})
    assert share.get_share_properties().metadata == {}


# Policies


def test_policies_come_back_and_are_replaced(share):
    start, expiry = now() - timedelta(hours=1), now() + timedelta(hours=1)
    policy = AccessPolicy(ShareSasPermissions.from_string("rcwdl"), expiry, start)
    share.set_share_access_policy({"one": policy, "bare": AccessPolicy()})
    policies = {found.id: found.access_policy for found in share.get_share_access_policy()["signed_identifiers"]}
    assert policies["one"].permission == "rcwdl"
    assert policies["bare"] is None or policies["bare"].permission is None
    assert share.get_share_access_policy()["public_access"] is None
    share.set_share_access_policy({})
    assert share.get_share_access_policy()["signed_identifiers"] == []


def test_letters_that_shares_do_not_have_are_refused(file_raw, share):
    body = b"<SignedIdentifiers><SignedIdentifier><Id>a</Id><AccessPolicy><Permission>u</Permission></AccessPolicy>"
    body += b"</SignedIdentifier></SignedIdentifiers>"
    answer = file_raw.send("PUT", f"/{share.share_name}", f"{WHOLE}&comp=acl", body=body)
    assert (answer.status, answer.code) == (400, "InvalidXmlNodeValue")


# Lists


def names(pages):
    return [[entry.name for entry in page] for page in pages]


def test_shares_are_listed_by_name_in_pages(shares):
    prefix = unique("list")
    wanted = [f"{prefix}-{at}" for at in range(5)]
    for name in wanted:
        shares.create_share(name, metadata={"at": name[-1]})
    (page,) = names(shares.list_shares(prefix).by_page())
    assert page == wanted
    pages = names(shares.list_shares(prefix, results_per_page=2).by_page())
    assert pages == [wanted[:2], wanted[2:4], wanted[4:]]
    listed = list(shares.list_shares(prefix, include_metadata=True))
    assert [entry.metadata for entry in listed] == [{"at": str(at)} for at in range(5)]
    assert all(entry.quota == 5120 and entry.access_tier == "TransactionOptimized" for entry in listed)
    assert [entry.metadata for entry in shares.list_shares(prefix)] == [None] * 5
    for name in wanted:
        shares.delete_share(name)
    assert list(shares.list_shares(prefix)) == []


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("maxresults=0", "OutOfRangeQueryParameterValue"),
        ("maxresults=x", "InvalidQueryParameterValue"),
        ("include=versions", "InvalidQueryParameterValue"),
        ("marker=a%2Fb", "InvalidMarker"),
    ],
)
def test_a_list_that_cannot_be_is_refused(file_raw, query, code):
    answer = file_raw.send("GET", "/", f"comp=list&{query}")
    assert (answer.status, answer.code) == (400, code)


def test_a_share_that_is_not_there_does_not_exist(shares):
    with pytest.raises(ResourceNotFoundError):
        shares.get_share_client(unique("none")).get_share_properties()
