"""Leases of files: four actions, and what a lease prevents."""

import uuid

import pytest
from azure.storage.fileshare import ContentSettings, ShareLeaseClient
from support import refused

A, B, C = (str(uuid.uuid4()) for _ in range(3))


@pytest.fixture
def file(share):
    client = share.get_file_client("file")
    client.upload_file(b"content")
    yield client
    try:
        ShareLeaseClient(client).break_lease()
    except Exception:
        pass


def lease_call(file_raw, file, action, **headers):
    sent = {"x-ms-lease-action": action} | {name.replace("_", "-"): value for name, value in headers.items()}
    return file_raw.send("PUT", f"/{file.share_name}/{'/'.join(file.file_path)}", "comp=lease", sent)


def state(file):
    lease = file.get_file_properties().lease
    return lease.status, lease.state, lease.duration


def leased(file, id_=A):
    return file.acquire_lease(id_)


def broken(file):
    lease = leased(file)
    lease.break_lease()
    return lease


def test_states(file):
    before = file.get_file_properties().etag
    assert state(file) == ("unlocked", "available", None)
    lease = leased(file)
    assert lease.id == A
    assert state(file) == ("locked", "leased", "infinite")
    lease.break_lease()
    assert state(file) == ("unlocked", "broken", None)
    leased(file).release()
    assert state(file) == ("unlocked", "available", None)
    assert file.get_file_properties().etag == before


def test_actions_on_a_file_without_a_lease(file):
    assert file.acquire_lease().id
    ShareLeaseClient(file).break_lease()
    file.acquire_lease(A).release()
    with refused(409, "LeaseNotPresentWithLeaseOperation"):
        ShareLeaseClient(file).break_lease()
    with refused(409, "LeaseNotPresentWithLeaseOperation"):
        ShareLeaseClient(file, A).change(B)
    with refused(409, "LeaseIdMismatchWithLeaseOperation"):
        ShareLeaseClient(file, A).release()


def test_actions_on_a_leased_file(file):
    leased(file)
    with refused(409, "LeaseAlreadyPresent"):
        file.acquire_lease()
    with refused(409, "LeaseAlreadyPresent"):
        file.acquire_lease(B)
    assert file.acquire_lease(A).id == A
    with refused(409, "LeaseIdMismatchWithLeaseOperation"):
        ShareLeaseClient(file, B).change(C)
    with refused(409, "LeaseIdMismatchWithLeaseOperation"):
        ShareLeaseClient(file, B).release()
    lease = ShareLeaseClient(file, A)
    lease.change(B)
    assert lease.id == B
    # A second time, as after an answer that was lost.
    ShareLeaseClient(file, A).change(B)
    lease.release()


def test_actions_on_a_broken_lease(file):
    broken(file)
    ShareLeaseClient(file).break_lease()
    with refused(409, "LeaseNotPresentWithLeaseOperation"):
        ShareLeaseClient(file, A).change(B)
    with refused(409, "LeaseIdMismatchWithLeaseOperation"):
        ShareLeaseClient(file, B).release()
    ShareLeaseClient(file, A).release()
    broken(file)
    assert file.acquire_lease(B).id == B


def writes(file, lease=None):
    more = {"lease": lease} if lease else {}
    return [
        lambda: file.upload_range(b"x", 0, 1, **more),
        lambda: file.clear_range(0, 512, **more) if False else file.upload_range(b"y", 0, 1, **more),
        lambda: file.set_file_metadata({"a": "b"}, **more),
        lambda: file.set_http_headers(ContentSettings(), **more),
        lambda: file.resize_file(7, **more),
        lambda: file.create_file(7, **more),
        lambda: file.start_copy_from_url(file.url, **more),
    ]


def reads(file, lease=None):
    more = {"lease": lease} if lease else {}
    return [
        lambda: file.get_file_properties(**more),
        lambda: file.download_file(**more).readall(),
        lambda: file.get_ranges(**more),
    ]


def test_without_a_lease(file):
    for call in writes(file) + reads(file):
        call()
    for call in writes(file, A) + reads(file, A):
        with refused(412, "LeaseNotPresentWithFileOperation"):
            call()


def test_under_a_lease(file):
    leased(file)
    for call in writes(file, A) + reads(file, A) + reads(file):
        call()
    for call in writes(file):
        with refused(412, "LeaseIdMissing"):
            call()
    with refused(412, "LeaseIdMissing"):
        file.delete_file()
    for call in writes(file, B) + reads(file, B):
        with refused(412, "LeaseIdMismatchWithFileOperation"):
            call()
    file.delete_file(lease=A)


def test_a_broken_lease_lets_everybody_in(file):
    broken(file)
    for call in reads(file):
        call()
    for call in reads(file, A):
        with refused(412, "LeaseNotPresentWithFileOperation"):
            call()
    with refused(412, "LeaseNotPresentWithFileOperation"):
        file.upload_range(b"x", 0, 1, lease=A)
    for call in writes(file):
        call()


def test_a_lease_stays_when_the_file_is_replaced(file):
    leased(file)
    file.create_file(3, lease=A)
    assert state(file) == ("locked", "leased", "infinite")


def test_a_lease_id_needs_a_file(share):
    with refused(412, "LeaseNotPresentWithFileOperation"):
        share.get_file_client("none").create_file(1, lease=A)


@pytest.mark.parametrize(
    ("action", "headers", "code"),
    [
        ("acquire", {}, "MissingRequiredHeader"),
        ("acquire", {"x_ms_lease_duration": "15"}, "InvalidHeaderValue"),
        ("acquire", {"x_ms_lease_duration": "-1", "x_ms_proposed_lease_id": "x"}, "InvalidHeaderValue"),
        ("renew", {"x_ms_lease_id": A}, "InvalidHeaderValue"),
        ("change", {"x_ms_lease_id": A}, "MissingRequiredHeader"),
        ("release", {}, "MissingRequiredHeader"),
        ("break", {"x_ms_lease_break_period": "5"}, "InvalidHeaderValue"),
    ],
)
def test_what_is_no_action_is_refused(file_raw, file, action, headers, code):
    answer = lease_call(file_raw, file, action, **headers)
    assert (answer.status, answer.code) == (400, code)


def test_only_files_of_the_present_are_leased(file_raw, share, file):
    snapshot = share.create_snapshot()["snapshot"]
    headers = {"x-ms-lease-action": "acquire", "x-ms-lease-duration": "-1"}
    answer = file_raw.send("PUT", f"/{share.share_name}/file", f"comp=lease&sharesnapshot={snapshot}", headers)
    assert (answer.status, answer.code) == (400, "InvalidQueryParameterValue")
    with refused(404, "ResourceNotFound"):
        share.get_file_client("none").acquire_lease()
    share.create_directory("d")
    with refused(409, "ResourceTypeMismatch"):
        share.get_file_client("d").acquire_lease()
