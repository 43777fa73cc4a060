"""Containers: life cycle, properties, metadata, dates as conditions, listing of the account."""

from datetime import datetime, timedelta, timezone

import pytest
from azure.core.exceptions import ResourceExistsError
from azure.storage.blob import BlobServiceClient, PublicAccess
from support import ETAG, connection_string, refused, unique

HOUR = timedelta(hours=1)


def test_create_returns_etag_and_last_modified(service):
    client = service.get_container_client(unique("create"))
    before = datetime.now(timezone.utc).replace(microsecond=0)
    created = client.create_container(metadata={"Purpose": "tests", "empty_ok": "x"})
    assert ETAG.match(created["etag"])
    assert before <= created["last_modified"] <= datetime.now(timezone.utc)
    properties = client.get_container_properties()
    assert properties.etag == created["etag"]
    assert properties.last_modified == created["last_modified"]
    assert properties.metadata == {"Purpose": "tests", "empty_ok": "x"}
    assert properties.public_access is None
    assert properties.has_immutability_policy is False
    assert properties.has_legal_hold is False
    assert (properties.lease.status, properties.lease.state, properties.lease.duration) == (
        "unlocked",
        "available",
        None,
    )
    client.delete_container()


def test_create_existing_is_refused(container):
    with refused(409, "ContainerAlreadyExists"):
        container.create_container()


def test_exists_follows_creation_and_deletion(service):
    client = service.get_container_client(unique("exists"))
    assert not client.exists()
    client.create_container()
    assert client.exists()
    client.delete_container()
    assert not client.exists()


def test_deleted_container_answers_not_found_everywhere(service):
    client = service.create_container(unique("gone"))
    client.upload_blob("b", b"x")
    client.delete_container()
    with refused(404, "ContainerNotFound"):
        client.get_container_properties()
    with refused(404, "ContainerNotFound"):
        client.set_container_metadata({"a": "b"})
    with refused(404, "ContainerNotFound"):
        list(client.list_blobs())
    with refused(404, "ContainerNotFound"):
        client.delete_container()
    with refused(404, "ContainerNotFound"):
        client.upload_blob("b", b"x")
    with refused(404, "ContainerNotFound"):
        client.get_blob_client("b").download_blob()
    with refused(404, "ContainerNotFound"):
        client.get_container_access_policy()


def test_recreated_container_is_empty(service):
    """The service may block the name for a while; afterwards nothing of the old one is left."""
    client = service.create_container(unique("again"))
    client.upload_blob("old", b"x")
    client.delete_container()
    try:
        client.create_container()
    except ResourceExistsError as blocked:
        assert blocked.error_code == "ContainerBeingDeleted"
        return
    assert list(client.list_blobs()) == []
    client.delete_container()


@pytest.mark.parametrize("name", ["ab", "a" * 64, "Upper", "under_score", "-start", "end-", "two--dashes", "dot.ted"])
def test_invalid_container_name_is_refused(raw, name):
    answer = raw.send("PUT", f"/{name}", "restype=container")
    assert answer.status == 400
    assert answer.code in ("InvalidResourceName", "OutOfRangeInput")


@pytest.mark.parametrize("name", ["abc", "a" * 63, "0-1-2", "9a9"])
def test_valid_container_name_is_taken(service, name):
    client = service.get_container_client(name)
    if client.exists():
        client.delete_container()
        pytest.skip("left over from another run; its name may be blocked")
    client.create_container()
    client.delete_container()


def test_metadata_is_replaced_as_a_whole(container):
    before = container.get_container_properties()
    updated = container.set_container_metadata({"one": "1", "Two": "2"})
    assert updated["etag"] != before.etag
    assert container.get_container_properties().metadata == {"one": "1", "Two": "2"}
    container.set_container_metadata({"three": "3"})
    assert container.get_container_properties().metadata == {"three": "3"}
    container.set_container_metadata({})
    assert container.get_container_properties().metadata == {}


def test_get_metadata_answers_get_and_head_alike(container, raw):
    container.set_container_metadata({"color": "blue"})
    for method in ("GET", "HEAD"):
        answer = raw.send(method, f"/{container.container_name}", "restype=container&comp=metadata")
        assert answer.status == 200
        assert answer.headers["x-ms-meta-color"] == "blue"
        assert answer.headers["ETag"] == container.get_container_properties().etag
        assert answer.body == b""


def test_dates_condition_container_writes(container):
    modified = container.get_container_properties().last_modified
    with refused(412, "ConditionNotMet"):
        container.set_container_metadata({"a": "b"}, if_modified_since=modified + HOUR)
    container.set_container_metadata({"a": "b"}, if_modified_since=modified - HOUR)
    with refused(412, "ConditionNotMet"):
        container.delete_container(if_unmodified_since=modified - HOUR)
    with refused(412, "ConditionNotMet"):
        container.delete_container(if_modified_since=modified + HOUR)
    container.delete_container(if_unmodified_since=modified + HOUR)
    assert not container.exists()


def test_etag_condition_on_container_delete_never_deletes_wrongly(container, raw):
    """Containers take dates only; an ETag that does not match must not end in a deletion."""
    answer = raw.send(
        "DELETE", f"/{container.container_name}", "restype=container", {"If-Match": '"0x8D0000000000000"'}
    )
    assert answer.status in (400, 412)
    assert container.exists()


def test_list_containers_by_prefix_with_metadata_and_pages(service):
    prefix = unique("listing")
    names = [f"{prefix}-{index}" for index in range(5)]
    for name in names:
        service.create_container(name, metadata={"name": name[-1]}, public_access=PublicAccess.BLOB)
    listed = list(service.list_containers(name_starts_with=prefix, include_metadata=True))
    assert [item.name for item in listed] == names
    assert [item.metadata["name"] for item in listed] == list("01234")
    assert all(item.public_access == "blob" for item in listed)
    assert all(ETAG.match(item.etag) or item.etag.startswith("0x") for item in listed)
    assert all(item.lease.state == "available" and item.lease.status == "unlocked" for item in listed)
    assert [item.metadata for item in service.list_containers(name_starts_with=prefix)] == [None] * 5

    sizes, seen, token = [], [], None
    while True:
        iterator = service.list_containers(name_starts_with=prefix, results_per_page=2).by_page(token)
        page = list(next(iterator))
        sizes.append(len(page))
        seen += [item.name for item in page]
        token = iterator.continuation_token
        if not token:
            break
    assert (sizes, seen) == ([2, 2, 1], names)
    for name in names:
        service.delete_container(name)
    assert list(service.list_containers(name_starts_with=prefix)) == []


def test_root_container_serves_blobs_at_the_top(service, raw):
    root = service.get_container_client("$root")
    if not root.exists():
        root.create_container()
    root.upload_blob("top-level.txt", b"root content", overwrite=True)
    assert raw.send("GET", "/$root/top-level.txt").body == b"root content"
    assert raw.send("GET", "/top-level.txt").body == b"root content"
    root.delete_blob("top-level.txt")


def test_service_client_with_wrong_key_is_refused(account):
    wrong = connection_string().replace(account.key, "AAAA" + account.key[4:])
    with BlobServiceClient.from_connection_string(wrong, retry_total=0) as client:
        with refused(403, "AuthenticationFailed") as caught:
            client.get_container_client("any").get_container_properties()
        assert caught.value.response.headers["x-ms-request-id"]
