"""Leases of blobs and containers: the five states by every action, and what they protect.

A state is reached by real calls. Only `expired` needs waiting, so everything that is asked of it
shares one wait (`test_expired_leases`).
"""

import time
import uuid

import pytest
from azure.core import MatchConditions
from azure.storage.blob import BlobLeaseClient, ContentSettings
from support import refused

A = "11111111-aaaa-4aaa-8aaa-111111111111"
B = "22222222-bbbb-4bbb-8bbb-222222222222"
C = "33333333-cccc-4ccc-8ccc-333333333333"


class Leased:
    """A blob or a container whose lease is driven by raw requests, to see statuses and headers."""

    def __init__(self, raw, path, query, client):
        self.raw, self.path, self.query, self.client = raw, path, query, client

    def lease(self, action, **headers):
        names = {
            "id": "x-ms-lease-id",
            "proposed": "x-ms-proposed-lease-id",
            "duration": "x-ms-lease-duration",
            "period": "x-ms-lease-break-period",
        }
        sent = {names[name]: str(value) for name, value in headers.items() if value is not None}
        return self.raw.send("PUT", self.path, self.query, {"x-ms-lease-action": action} | sent)

    def properties(self):
        read = getattr(self.client, "get_blob_properties", None) or self.client.get_container_properties
        return read()

    def state(self):
        lease = self.properties().lease
        return lease.state, lease.status, lease.duration

    def reach(self, state):
        if state == "available":
            return self
        assert self.lease("acquire", proposed=A, duration=60).status == 201
        if state == "breaking":
            assert self.lease("break", period=60).status == 202
        if state == "broken":
            assert self.lease("break", period=0).status == 202
        return self


@pytest.fixture(params=["blob", "container"])
def leased(request, raw, container):
    if request.param == "container":
        return Leased(raw, f"/{container.container_name}", "restype=container&comp=lease", container)
    client = container.get_blob_client("leased")
    client.upload_blob(b"content")
    return Leased(raw, f"/{container.container_name}/leased", "comp=lease", client)


STATES = ["available", "leased", "breaking", "broken"]
PRESENT, BREAKING = "LeaseAlreadyPresent", "LeaseIsBreakingAndCannotBeAcquired"
ABSENT, MISMATCH = "LeaseNotPresentWithLeaseOperation", "LeaseIdMismatchWithLeaseOperation"
NO_CHANGE, BROKEN = "LeaseIsBreakingAndCannotBeChanged", "LeaseIsBrokenAndCannotBeRenewed"

# Action, its headers, and per state in the order of STATES: the state after it, or the refusal.
OUTCOMES = [
    ("acquire", dict(duration=-1), ["leased", PRESENT, PRESENT, "leased"]),
    ("acquire", dict(duration=-1, proposed=A), ["leased", "leased", BREAKING, "leased"]),
    ("acquire", dict(duration=-1, proposed=B), ["leased", PRESENT, PRESENT, "leased"]),
    ("break", dict(period=0), [ABSENT, "broken", "broken", "broken"]),
    ("break", dict(period=10), [ABSENT, "breaking", "breaking", "broken"]),
    ("break", dict(), [ABSENT, "breaking", "breaking", "broken"]),
    ("change", dict(id=A, proposed=B), [ABSENT, "leased", NO_CHANGE, ABSENT]),
    ("change", dict(id=B, proposed=A), [ABSENT, "leased", MISMATCH, ABSENT]),
    ("change", dict(id=B, proposed=C), [ABSENT, MISMATCH, MISMATCH, ABSENT]),
    ("renew", dict(id=A), [MISMATCH, "leased", BROKEN, BROKEN]),
    ("renew", dict(id=B), [MISMATCH, MISMATCH, MISMATCH, MISMATCH]),
    ("release", dict(id=A), [MISMATCH, "available", "available", "available"]),
    ("release", dict(id=B), [MISMATCH, MISMATCH, MISMATCH, MISMATCH]),
]
SUCCESS = {"acquire": 201, "renew": 200, "change": 200, "release": 200, "break": 202}


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("action, headers, outcomes", OUTCOMES, ids=[f"{o[0]} {o[1]}" for o in OUTCOMES])
def test_action_in_every_state(leased, action, headers, outcomes, state):
    expected = outcomes[STATES.index(state)]
    leased.reach(state)
    before = leased.properties()
    answer = leased.lease(action, **headers)
    after = leased.properties()
    if expected in ("available", "leased", "breaking", "broken"):
        assert (answer.status, answer.code) == (SUCCESS[action], None)
        assert after.lease.state == expected
        assert after.lease.status == ("locked" if expected in ("leased", "breaking") else "unlocked")
        if action in ("acquire", "renew", "change"):
            given = headers.get("proposed") or headers.get("id")
            assert answer.headers["x-ms-lease-id"] == (given or str(uuid.UUID(answer.headers["x-ms-lease-id"])))
    else:
        assert (answer.status, answer.code) == (409, expected)
        assert after.lease.state == state
    assert (after.etag, after.last_modified) == (before.etag, before.last_modified)


def test_duration_is_told_only_while_leased(leased):
    leased.lease("acquire", proposed=A, duration=-1)
    assert leased.state() == ("leased", "locked", "infinite")
    leased.lease("acquire", proposed=A, duration=60)
    assert leased.state() == ("leased", "locked", "fixed")
    leased.lease("break", period=60)
    assert leased.state() == ("breaking", "locked", None)
    leased.lease("release", id=A)
    assert leased.state() == ("available", "unlocked", None)


def test_break_answers_the_seconds_left(leased):
    leased.lease("acquire", proposed=A, duration=20)
    assert 15 <= int(leased.lease("break", period=60).headers["x-ms-lease-time"]) <= 20
    assert int(leased.lease("break", period=5).headers["x-ms-lease-time"]) <= 5
    assert int(leased.lease("break", period=50).headers["x-ms-lease-time"]) <= 5
    assert leased.lease("break", period=0).headers["x-ms-lease-time"] == "0"
    leased.lease("acquire", proposed=A, duration=-1)
    assert leased.lease("break").headers["x-ms-lease-time"] == "0"
    assert leased.state()[0] == "broken"


def test_ids_compare_without_case(leased):
    leased.lease("acquire", proposed=A, duration=-1)
    assert leased.lease("renew", id=A.upper()).status == 200
    assert leased.lease("release", id="{" + A.upper() + "}").status == 200


@pytest.mark.parametrize(
    "action, headers",
    [
        ("acquire", dict(duration=14)),
        ("acquire", dict(duration=61)),
        ("acquire", dict(duration=0)),
        ("acquire", dict(duration=-2)),
        ("acquire", dict(duration="long")),
        ("acquire", dict()),
        ("acquire", dict(duration=15, proposed="no guid")),
        ("change", dict(id=A)),
        ("change", dict(proposed=B)),
        ("renew", dict()),
        ("release", dict()),
        ("break", dict(period=61)),
        ("break", dict(period=-1)),
        ("borrow", dict()),
    ],
    ids=str,
)
def test_malformed_lease_request_is_refused(leased, action, headers):
    leased.reach("leased")
    answer = leased.lease(action, **headers)
    assert answer.status == 400
    assert answer.code in ("InvalidHeaderValue", "MissingRequiredHeader")
    assert leased.state() == ("leased", "locked", "fixed")


# What the lease of a blob protects

WRITES = {
    "Put Blob": lambda blob, **lease: blob.upload_blob(b"new", overwrite=True, **lease),
    "Set Blob Metadata": lambda blob, **lease: blob.set_blob_metadata({"a": "1"}, **lease),
    "Set Blob Properties": lambda blob, **lease: blob.set_http_headers(ContentSettings(), **lease),
    "Delete Blob": lambda blob, **lease: blob.delete_blob(**lease),
}
READS = {
    "Get Blob": lambda blob, **lease: blob.download_blob(**lease).readall(),
    "Get Blob Properties": lambda blob, **lease: blob.get_blob_properties(**lease),
}
NOT_PRESENT, WRONG = "LeaseNotPresentWithBlobOperation", "LeaseIdMismatchWithBlobOperation"

DATA_OUTCOMES = {
    # id sent: refusal per state in the order of STATES, None where the operation goes through
    "write": {
        A: [NOT_PRESENT, None, None, NOT_PRESENT],
        B: [NOT_PRESENT, WRONG, WRONG, NOT_PRESENT],
        None: [None, "LeaseIdMissing", "LeaseIdMissing", None],
    },
    "read": {
        A: [NOT_PRESENT, None, None, NOT_PRESENT],
        B: [NOT_PRESENT, WRONG, WRONG, NOT_PRESENT],
        None: [None, None, None, None],
    },
}


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("lease_id", [A, B, None], ids=["id A", "id B", "no id"])
@pytest.mark.parametrize("operation", [*WRITES, *READS])
def test_data_operation_in_every_state(container, raw, operation, lease_id, state):
    client = container.get_blob_client("leased")
    client.upload_blob(b"content")
    Leased(raw, f"/{container.container_name}/leased", "comp=lease", client).reach(state)
    kind, run = ("write", WRITES[operation]) if operation in WRITES else ("read", READS[operation])
    refusal = DATA_OUTCOMES[kind][lease_id][STATES.index(state)]
    lease = {"lease": BlobLeaseClient(client, lease_id)} if lease_id else {}
    if refusal:
        with refused(412, refusal):
            run(client, **lease)
        assert client.get_blob_properties().lease.state == state
        assert client.download_blob().readall() == b"content"
    else:
        run(client, **lease)
        if kind == "write" and operation != "Delete Blob":
            # A write that needs no id ends a broken lease; one that has it leaves the lease alone.
            assert client.get_blob_properties().lease.state == ("available" if state == "broken" else state)


def test_lease_stays_over_an_overwrite(blob):
    lease = blob.acquire_lease(-1, lease_id=A)
    blob.upload_blob(b"new", overwrite=True, lease=lease)
    properties = blob.get_blob_properties()
    assert (properties.lease.state, properties.lease.duration) == ("leased", "infinite")
    blob.delete_blob(lease=lease)
    blob.upload_blob(b"fresh")
    assert blob.get_blob_properties().lease.state == "available"


def test_holder_of_a_lease_replaces_a_block_blob_that_was_to_be_created_only(blob):
    with refused(409, "BlobAlreadyExists"):
        blob.upload_blob(b"new")
    lease = blob.acquire_lease(15, lease_id=A)
    with refused(409, "BlobAlreadyExists"):
        blob.upload_blob(b"new")
    with refused(409, "BlobAlreadyExists"):
        blob.upload_blob(b"new", lease=BlobLeaseClient(blob, B))
    blob.upload_blob(b"new", lease=lease)
    assert blob.download_blob().readall() == b"new"
    # Other ways to create a blob apply If-None-Match strictly.
    with refused(409, "BlobAlreadyExists"):
        blob.commit_block_list([], lease=lease, match_condition=MatchConditions.IfMissing)


def test_lease_id_for_a_missing_blob_creates_nothing(container):
    client = container.get_blob_client("missing")
    with refused(412, NOT_PRESENT):
        client.upload_blob(b"x", lease=BlobLeaseClient(client, A))
    assert not client.exists()


@pytest.mark.parametrize(("version", "created"), [("2012-02-12", True), ("2013-08-15", False)])
@pytest.mark.parametrize("operation", ["Put Blob", "Put Block List", "Copy Blob"])
def test_lease_id_for_a_missing_blob_by_version(container, raw, operation, version, created):
    """Versions before 2013-08-15 create it all the same, without a lease."""
    client = container.get_blob_client("missing")
    query, headers, body = {
        "Put Blob": ("", {"x-ms-blob-type": "BlockBlob"}, b"x"),
        "Put Block List": ("comp=blocklist", {}, b"<BlockList/>"),
        "Copy Blob": ("", {"x-ms-copy-source": container.upload_blob("source", b"x").url}, b""),
    }[operation]
    path = f"/{container.container_name}/missing"
    answer = raw.send("PUT", path, query, headers | {"x-ms-lease-id": A}, body, version=version)
    assert client.exists() == created
    if created:
        assert answer.status in (201, 202)
        assert client.get_blob_properties().lease.state == "available"
    else:
        assert (answer.status, answer.code) == (412, NOT_PRESENT)


def test_condition_and_lease_are_both_checked(blob):
    lease = blob.acquire_lease(-1, lease_id=A)
    with refused(412, "ConditionNotMet"):
        blob.set_blob_metadata(
            {"a": "1"}, lease=lease, etag='"0x8D000000000CAFE"', match_condition=MatchConditions.IfNotModified
        )
    lease.release()


def test_sdk_life_cycle_of_a_blob_lease(blob):
    lease = blob.acquire_lease(lease_duration=15)
    assert uuid.UUID(lease.id)
    assert lease.etag == blob.get_blob_properties().etag
    lease.renew()
    lease.change(proposed_lease_id=B)
    assert lease.id == B
    assert 0 <= lease.break_lease(lease_break_period=5) <= 5
    assert blob.get_blob_properties().lease.state == "breaking"
    lease.release()
    assert blob.get_blob_properties().lease.state == "available"


def test_listing_tells_the_lease(container):
    client = container.get_blob_client("leased")
    client.upload_blob(b"x")
    client.acquire_lease(-1)
    (item,) = container.list_blobs()
    assert (item.lease.state, item.lease.status, item.lease.duration) == ("leased", "locked", "infinite")


# What the lease of a container protects


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("lease_id", [A, B, None], ids=["id A", "id B", "no id"])
def test_container_delete_in_every_state(container, raw, lease_id, state):
    Leased(raw, f"/{container.container_name}", "restype=container&comp=lease", container).reach(state)
    absent, wrong = "LeaseNotPresentWithContainerOperation", "LeaseIdMismatchWithContainerOperation"
    refusal = {
        A: [absent, None, None, absent],
        B: [absent, wrong, wrong, absent],
        None: [None, "LeaseIdMissing", "LeaseIdMissing", None],
    }[lease_id][STATES.index(state)]
    lease = {"lease": lease_id} if lease_id else {}
    if refusal:
        with refused(412, refusal):
            container.delete_container(**lease)
        assert container.exists()
    else:
        container.delete_container(**lease)
        assert not container.exists()


def test_container_lease_does_not_hinder_blobs(container):
    lease = container.acquire_lease(-1)
    container.upload_blob("b", b"x")
    container.set_container_metadata({"a": "1"})
    container.delete_blob("b")
    with refused(412, "LeaseIdMismatchWithContainerOperation"):
        container.get_container_properties(lease=B)
    container.get_container_properties(lease=lease)
    lease.release()


def test_container_can_be_deleted_with_leased_blobs_inside(container):
    container.upload_blob("b", b"x")
    container.get_blob_client("b").acquire_lease(-1)
    container.delete_container()
    assert not container.exists()


# Expiry: one wait for all of it


def test_expired_leases(container, raw):
    path = f"/{container.container_name}"
    blobs = {}
    for name in ("release", "renew", "renew-after-write", "acquire", "break", "change", "write-with-id", "write"):
        client = container.get_blob_client(name)
        client.upload_blob(b"content")
        blobs[name] = Leased(raw, f"{path}/{name}", "comp=lease", client)
    held = Leased(raw, path, "restype=container&comp=lease", container)
    for resource in (*blobs.values(), held):
        assert resource.lease("acquire", proposed=A, duration=15).status == 201
    renewed = container.get_blob_client("kept")
    renewed.upload_blob(b"content")
    kept = renewed.acquire_lease(15)
    breaking = container.get_blob_client("breaking")
    breaking.upload_blob(b"content")
    breaking.acquire_lease(60).break_lease(lease_break_period=14)
    time.sleep(8)
    kept.renew()
    time.sleep(7.5)

    for resource in (*blobs.values(), held):
        assert resource.state() == ("expired", "unlocked", None)
    assert renewed.get_blob_properties().lease.state == "leased"
    assert breaking.get_blob_properties().lease.state == "broken"

    assert blobs["release"].lease("release", id=B).code == MISMATCH
    assert blobs["release"].lease("release", id=A).status == 200
    assert blobs["renew"].lease("renew", id=B).code == MISMATCH
    assert blobs["renew"].lease("renew", id=A).status == 200
    assert blobs["renew"].state() == ("leased", "locked", "fixed")
    blobs["renew-after-write"].client.set_blob_metadata({"a": "1"})
    assert blobs["renew-after-write"].state()[0] == "available"
    assert blobs["renew-after-write"].lease("renew", id=A).code == MISMATCH
    assert blobs["change"].lease("change", id=A, proposed=B).code == ABSENT
    assert blobs["acquire"].lease("acquire", proposed=B, duration=15).status == 201
    answer = blobs["break"].lease("break", period=10)
    assert (answer.status, answer.headers["x-ms-lease-time"]) == (202, "0")
    assert blobs["break"].state()[0] == "broken"
    with refused(412, "LeaseLost"):
        blobs["write-with-id"].client.set_blob_metadata({}, lease=BlobLeaseClient(blobs["write-with-id"].client, A))
    blobs["write"].client.upload_blob(b"new", overwrite=True)
    assert blobs["write"].state()[0] == "available"
    with refused(412, "LeaseLost"):
        container.delete_container(lease=A)
    with refused(412, "LeaseNotPresentWithContainerOperation"):
        container.delete_container(lease=B)
    assert held.lease("renew", id=A).status == 200
    assert held.lease("release", id=A).status == 200
    container.delete_container()
