"""Snapshots of shares, leases on both, the end of a share and what may come after it."""

import uuid

import pytest
from azure.storage.fileshare import ShareLeaseClient, ShareServiceClient
from own_server import own_server
from support import Account, Raw, refused, unique

WHOLE = "restype=share"
NEVER = "2020-01-01T00:00:00.0000000Z"


def at(shares, share, snapshot):
    return shares.get_share_client(share.share_name, snapshot=snapshot)


def listed(shares, share, **include):
    return [
        (entry.snapshot, bool(entry.deleted)) for entry in shares.list_shares(share.share_name, **include)
    ]


# Snapshots


def test_a_snapshot_keeps_what_the_share_was(shares, share):
    share.set_share_metadata({"state": "one"})
    share.set_share_properties(quota=5)
    before = share.get_share_properties()
    taken = share.create_snapshot()
    assert (taken["etag"], taken["last_modified"]) == (before.etag, before.last_modified)
    share.set_share_metadata({"state": "two"})
    share.set_share_properties(quota=6)
    then = at(shares, share, taken["snapshot"]).get_share_properties()
    assert (then.metadata, then.quota) == ({"state": "one"}, 5)
    other = share.create_snapshot(metadata={"own": "metadata"})
    assert other["snapshot"] > taken["snapshot"]
    assert at(shares, share, other["snapshot"]).get_share_properties().metadata == {"own": "metadata"}
    assert share.get_share_properties().metadata == {"state": "two"}


def test_snapshots_are_listed_before_their_share(shares, share):
    moments = [share.create_snapshot()["snapshot"] for _ in range(3)]
    expected = [(moment, False) for moment in moments] + [(None, False)]
    assert listed(shares, share, include_snapshots=True) == expected
    assert listed(shares, share) == [(None, False)]
    pages = shares.list_shares(share.share_name, include_snapshots=True, results_per_page=1).by_page()
    assert [[entry.snapshot for entry in page] for page in pages] == [[moment] for moment in [*moments, None]]


def test_a_snapshot_is_not_written(file_raw, share):
    moment = share.create_snapshot()["snapshot"]
    for query, body in (
        (WHOLE, None),
        (f"{WHOLE}&comp=properties", None),
        (f"{WHOLE}&comp=metadata", None),
        (f"{WHOLE}&comp=acl", b"<SignedIdentifiers/>"),
        (f"{WHOLE}&comp=snapshot", None),
        (f"{WHOLE}&comp=undelete", None),
    ):
        answer = file_raw.send("PUT", f"/{share.share_name}", f"{query}&sharesnapshot={moment}", body=body)
        assert (answer.status, answer.code) == (400, "InvalidQueryParameterValue"), query
    stats = file_raw.send("GET", f"/{share.share_name}", f"{WHOLE}&comp=stats&sharesnapshot={moment}")
    assert (stats.status, stats.code) == (400, "InvalidQueryParameterValue")


@pytest.mark.parametrize(("moment", "status", "code"), [
    (NEVER, 404, "ShareSnapshotNotFound"),
    ("yesterday", 400, "InvalidQueryParameterValue"),
])
def test_a_snapshot_that_is_not_there_is_not_found(file_raw, share, moment, status, code):
    path, query = f"/{share.share_name}", f"{WHOLE}&sharesnapshot={moment}"
    lease = {"x-ms-lease-action": "acquire", "x-ms-lease-duration": "-1"}
    for answer in (
        file_raw.send("HEAD", path, query),
        file_raw.send("GET", path, f"{query}&comp=metadata"),
        file_raw.send("DELETE", path, query),
        file_raw.send("PUT", path, f"{query}&comp=lease", lease),
    ):
        assert (answer.status, answer.code) == (status, code)


def test_a_share_has_at_most_200_snapshots(shares, share):
    for _ in range(200):
        share.create_snapshot()
    with refused(409, "ShareSnapshotCountExceeded"):
        share.create_snapshot()
    first = next(iter(shares.list_shares(share.share_name, include_snapshots=True)))
    at(shares, share, first.snapshot).delete_share()
    share.create_snapshot()


# Delete


def test_a_share_with_snapshots_is_deleted_only_with_them(file_raw, shares, share):
    moment = share.create_snapshot()["snapshot"]
    with refused(409, "ShareHasSnapshots"):
        share.delete_share()
    path, query = f"/{share.share_name}", f"{WHOLE}&sharesnapshot={moment}"
    both = file_raw.send("DELETE", path, query, {"x-ms-delete-snapshots": "include"})
    assert (both.status, both.code) == (400, "InvalidHeaderValue")
    wrong = file_raw.send("DELETE", path, WHOLE, {"x-ms-delete-snapshots": "only"})
    assert (wrong.status, wrong.code) == (400, "InvalidHeaderValue")
    share.delete_share(delete_snapshots="include")
    assert listed(shares, share, include_snapshots=True) == []
    with refused(404, "ShareNotFound"):
        at(shares, share, moment).get_share_properties()


def test_a_snapshot_is_deleted_alone(shares, share):
    first, second = (share.create_snapshot()["snapshot"] for _ in range(2))
    at(shares, share, first).delete_share()
    assert listed(shares, share, include_snapshots=True) == [(second, False), (None, False)]
    with refused(404, "ShareSnapshotNotFound"):
        at(shares, share, first).delete_share()
    at(shares, share, second).delete_share()
    share.delete_share()


# Leases


def test_a_lease_guards_all_changes_of_a_share(share):
    lease = share.acquire_lease(lease_duration=-1)
    properties = share.get_share_properties().lease
    assert (properties.status, properties.state, properties.duration) == ("locked", "leased", "infinite")
    changes = (
        lambda **lease: share.set_share_metadata({"a": "b"}, **lease),
        lambda **lease: share.set_share_properties(quota=3, **lease),
        lambda **lease: share.set_share_access_policy({}, **lease),
        lambda **lease: share.delete_share(**lease),
    )
    other = str(uuid.uuid4())
    for change in changes:
        with refused(412, "LeaseIdMissing"):
            change()
        with refused(412, "LeaseIdMismatchWithShareOperation"):
            change(lease=other)
    reads = (share.get_share_properties, share.get_share_access_policy, share.get_share_stats)
    for read in reads:
        read()
        read(lease=lease)
        with refused(412, "LeaseIdMismatchWithShareOperation"):
            read(lease=other)
    for change in changes[:-1]:
        change(lease=lease)
    lease.release()
    for call in (*changes, *reads):
        with refused(412, "LeaseNotPresentWithShareOperation"):
            call(lease=other)
    changes[-1]()


def test_the_actions_of_a_lease(share):
    first, second = str(uuid.uuid4()), str(uuid.uuid4())
    lease = ShareLeaseClient(share, first)
    lease.acquire(lease_duration=15)
    with refused(409, "LeaseAlreadyPresent"):
        ShareLeaseClient(share, second).acquire(lease_duration=15)
    lease.renew()
    lease.change(second)
    assert lease.id == second
    assert 0 < lease.break_lease() <= 15
    assert share.get_share_properties().lease.state == "breaking"
    with refused(409, "LeaseIsBreakingAndCannotBeAcquired"):
        ShareLeaseClient(share, second).acquire(lease_duration=15)
    with refused(409, "LeaseIsBreakingAndCannotBeChanged"):
        lease.change(first)
    with refused(409, "LeaseIsBrokenAndCannotBeRenewed"):
        lease.renew()
    assert lease.break_lease(lease_break_period=0) == 0
    assert share.get_share_properties().lease.state == "broken"
    lease.release()
    assert share.get_share_properties().lease.state == "available"
    with refused(409, "LeaseNotPresentWithLeaseOperation"):
        lease.break_lease()
    with refused(409, "LeaseIdMismatchWithLeaseOperation"):
        ShareLeaseClient(share, second).release()


@pytest.mark.parametrize("duration", ["14", "61", "0", "x"])
def test_a_lease_is_of_15_to_60_seconds_or_without_end(file_raw, share, duration):
    headers = {"x-ms-lease-action": "acquire", "x-ms-lease-duration": duration}
    answer = file_raw.send("PUT", f"/{share.share_name}", f"{WHOLE}&comp=lease", headers)
    assert (answer.status, answer.code) == (400, "InvalidHeaderValue")


def test_a_lease_on_a_snapshot_guards_the_snapshot(shares, share):
    moment = share.create_snapshot()["snapshot"]
    snapshot = at(shares, share, moment)
    lease = snapshot.acquire_lease(lease_duration=-1)
    assert snapshot.get_share_properties().lease.state == "leased"
    assert share.get_share_properties().lease.state == "available"
    with refused(412, "LeaseIdMissing"):
        snapshot.delete_share()
    with refused(409, "DeleteShareWhenSnapshotLeased"):
        share.delete_share(delete_snapshots="include")
    lease.renew()
    lease.change(str(uuid.uuid4()))
    snapshot.delete_share(lease=lease)
    second = at(shares, share, share.create_snapshot()["snapshot"])
    second.acquire_lease(lease_duration=-1)
    share.delete_share(delete_snapshots="include-leased")


# Soft delete


RETENTION = b"""<StorageServiceProperties><ShareDeleteRetentionPolicy>
<Enabled>true</Enabled><Days>7</Days></ShareDeleteRetentionPolicy></StorageServiceProperties>"""


@pytest.fixture(scope="module")
def retaining():
    """A server whose deleted shares are retained, as the SDK and as raw requests reach it."""
    with own_server("--share-name-hold-seconds=30") as connection:
        raw = Raw(Account.of(connection, "File"))
        assert raw.send("PUT", "/", "restype=service&comp=properties", body=RETENTION).status == 202
        with ShareServiceClient.from_connection_string(connection, retry_total=0) as service:
            yield service, raw


def versions(service, name):
    return [entry for entry in service.list_shares(name, include_deleted=True) if entry.deleted]


def test_a_deleted_share_is_restored_while_it_is_retained(retaining):
    service, raw = retaining
    name = unique("kept")
    share = service.create_share(name, metadata={"kept": "yes"}, quota=3)
    moment = share.create_snapshot()["snapshot"]
    lease = share.acquire_lease(lease_duration=-1)
    share.delete_share(delete_snapshots="include", lease=lease)
    with refused(404, "ShareNotFound"):
        share.get_share_properties()
    assert [entry.name for entry in service.list_shares(name)] == []
    (entry,) = versions(service, name)
    assert entry.version and entry.deleted_time and entry.remaining_retention_days == 7
    for other, status, code in (
        ("0000000000000001", 404, "ShareNotFound"),
        ("version", 404, "ShareNotFound"),
    ):
        with refused(status, code):
            service.undelete_share(name, other)
    headers = {"x-ms-deleted-share-name": name, "x-ms-deleted-share-version": entry.version}
    elsewhere = raw.send("PUT", f"/{unique('new')}", f"{WHOLE}&comp=undelete", headers)
    assert (elsewhere.status, elsewhere.code) == (400, "InvalidHeaderValue")
    # The name is held for others, and yet the share comes back under it.
    with refused(409, "ShareBeingDeleted"):
        service.create_share(name)
    restored = service.undelete_share(name, entry.version)
    properties = restored.get_share_properties()
    assert (properties.metadata, properties.quota, properties.lease.state) == ({"kept": "yes"}, 3, "available")
    assert [found.snapshot for found in service.list_shares(name, include_snapshots=True)] == [moment, None]
    with refused(409, "ShareAlreadyExists"):
        service.undelete_share(name, entry.version)
    share.delete_share(delete_snapshots="include")
    (again,) = versions(service, name)
    assert again.version != entry.version
    with refused(404, "ShareNotFound"):
        service.undelete_share(name, entry.version)
    missing = raw.send("PUT", f"/{name}", f"{WHOLE}&comp=undelete")
    assert (missing.status, missing.code) == (400, "MissingRequiredHeader")


def test_without_retention_a_deleted_share_is_gone(shares):
    share = shares.create_share(unique("gone"))
    share.delete_share()
    assert versions(shares, share.share_name) == []
