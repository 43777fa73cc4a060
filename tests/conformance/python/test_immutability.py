"""Immutability policies and legal holds: what they prevent, and what ends them."""

from datetime import datetime, timedelta, timezone
from email.utils import format_datetime

import pytest
from azure.storage.blob import BlobClient, ImmutabilityPolicy, generate_blob_sas
from support import quoted, refused

UNTIL = "x-ms-immutability-policy-until-date"
MODE = "x-ms-immutability-policy-mode"
POLICY_QUERY = "comp=immutabilityPolicies"


def in_hours(hours):
    return (datetime.now(timezone.utc) + timedelta(hours=hours)).replace(microsecond=0)


def date(moment):
    return format_datetime(moment, usegmt=True)


def path(blob):
    return f"/{blob.container_name}/{quoted(blob.blob_name)}"


def policy(hours, mode="Unlocked"):
    return {UNTIL: date(in_hours(hours)), MODE: mode}


@pytest.fixture
def held(blob):
    """Ends what a test has left, so that the next can remove the container."""
    yield blob
    blob.set_legal_hold(False)


def test_a_policy_is_set_shown_and_deleted(held):
    before = held.get_blob_properties()
    until = in_hours(1)
    answer = held.set_immutability_policy(ImmutabilityPolicy(expiry_time=until, policy_mode="Unlocked"))
    assert answer["immutability_policy_until_date"] == until
    properties = held.get_blob_properties()
    assert properties.immutability_policy.expiry_time == until
    assert properties.immutability_policy.policy_mode.lower() == "unlocked"
    assert (properties.etag, properties.last_modified) == (before.etag, before.last_modified)
    held.delete_immutability_policy()
    assert held.get_blob_properties().immutability_policy.expiry_time is None
    held.delete_blob()
    held.upload_blob(b"")


def test_a_legal_hold_is_set_shown_and_ended(held):
    assert held.set_legal_hold(True)["legal_hold"] is True
    assert held.get_blob_properties().has_legal_hold
    with refused(409, "BlobImmutableDueToLegalHold"):
        held.delete_blob()
    assert held.set_legal_hold(False)["legal_hold"] is False
    assert not held.get_blob_properties().has_legal_hold
    held.upload_blob(b"new", overwrite=True)


WRITES = {
    "Set Blob Metadata": lambda blob: blob.set_blob_metadata({"a": "1"}),
    "Set Blob Properties": lambda blob: blob.set_http_headers(),
    "Delete Blob": lambda blob: blob.delete_blob(),
}
STILL_ALLOWED = {
    "Get Blob": lambda blob: blob.download_blob().readall(),
    "Set Blob Tier": lambda blob: blob.set_standard_blob_tier("Cool"),
    "Set Blob Tags": lambda blob: blob.set_blob_tags({"a": "1"}),
    "Lease Blob": lambda blob: blob.acquire_lease(15).release(),
}


@pytest.mark.parametrize("what", ["policy", "hold"])
def test_what_is_held_stays_as_it_is(held, what):
    if what == "policy":
        held.set_immutability_policy(ImmutabilityPolicy(expiry_time=in_hours(1), policy_mode="Unlocked"))
        code = "BlobImmutableDueToPolicy"
    else:
        held.set_legal_hold(True)
        code = "BlobImmutableDueToLegalHold"
    for write in WRITES.values():
        with refused(409, code):
            write(held)
    for allowed in STILL_ALLOWED.values():
        allowed(held)
    held.delete_immutability_policy()


def test_a_locked_policy_only_grows(raw, held):
    def set_policy(headers):
        answer = raw.send("PUT", path(held), POLICY_QUERY, headers)
        return answer.status, answer.code

    assert set_policy(policy(2)) == (200, None)
    assert set_policy(policy(1)) == (200, None)
    # The lock ends with the test.
    soon = {UNTIL: date(in_hours(0) + timedelta(seconds=3)), MODE: "Locked"}
    assert set_policy(soon) == (200, None)
    assert set_policy(soon | {MODE: "Unlocked"}) == (409, "BlobImmutableDueToPolicy")
    assert set_policy({UNTIL: date(in_hours(0) + timedelta(seconds=2)), MODE: "Locked"}) == (
        409,
        "BlobImmutableDueToPolicy",
    )
    with refused(409, "BlobImmutableDueToPolicy"):
        held.delete_immutability_policy()
    assert held.get_blob_properties().immutability_policy.policy_mode.lower() == "locked"


@pytest.mark.parametrize(
    ("headers", "status", "code"),
    [
        ({}, 400, "MissingRequiredHeader"),
        ({MODE: "Locked"}, 400, "MissingRequiredHeader"),
        ({UNTIL: "tomorrow"}, 400, "InvalidHeaderValue"),
        (policy(-1), 400, "InvalidHeaderValue"),
        (policy(1, "Mutable"), 400, "InvalidHeaderValue"),
        (policy(1) | {"If-Unmodified-Since": date(in_hours(-1))}, 412, "ConditionNotMet"),
        (policy(1) | {"If-Match": "*"}, 400, "ConditionHeadersNotSupported"),
    ],
)
def test_what_is_no_policy_is_refused(raw, held, headers, status, code):
    answer = raw.send("PUT", path(held), POLICY_QUERY, headers)
    assert (answer.status, answer.code) == (status, code)


@pytest.mark.parametrize(
    ("headers", "code"),
    [({}, "MissingRequiredHeader"), ({"x-ms-legal-hold": "perhaps"}, "InvalidHeaderValue")],
)
def test_what_is_no_hold_is_refused(raw, held, headers, code):
    answer = raw.send("PUT", path(held), "comp=legalhold", headers)
    assert (answer.status, answer.code) == (400, code)


def test_nothing_to_hold(container):
    missing = container.get_blob_client("missing")
    with refused(404, "BlobNotFound"):
        missing.set_legal_hold(True)
    with refused(404, "BlobNotFound"):
        missing.set_immutability_policy(ImmutabilityPolicy(expiry_time=in_hours(1), policy_mode="Unlocked"))
    with refused(404, "BlobNotFound"):
        missing.delete_immutability_policy()


def test_an_upload_brings_its_policy_and_hold(container):
    until = in_hours(1)
    blob = container.get_blob_client("b")
    blob.upload_blob(
        b"held",
        immutability_policy=ImmutabilityPolicy(expiry_time=until, policy_mode="Unlocked"),
        legal_hold=True,
    )
    properties = blob.get_blob_properties()
    assert properties.immutability_policy.expiry_time == until
    assert properties.has_legal_hold
    with refused(409, "BlobImmutableDueToLegalHold"):
        blob.delete_blob()
    blob.set_legal_hold(False)
    with refused(409, "BlobImmutableDueToPolicy"):
        blob.delete_blob()
    blob.delete_immutability_policy()
    blob.delete_blob()


def test_holding_needs_its_own_letter(account, held):
    def client(permission):
        sas = generate_blob_sas(
            account.name,
            held.container_name,
            held.blob_name,
            account_key=account.key,
            permission=permission,
            expiry=in_hours(1),
        )
        return BlobClient.from_blob_url(held.url, credential=sas, retry_total=0)

    client("i").set_legal_hold(True)
    client("i").set_legal_hold(False)
    with refused(403, "AuthorizationPermissionMismatch"):
        client("rwd").set_legal_hold(True)
    with refused(403, "AuthorizationPermissionMismatch"):
        client("rwd").upload_blob(b"", overwrite=True, legal_hold=True)
