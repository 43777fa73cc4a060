"""Deleted and renamed containers: restoring, renaming, listing deleted ones.

Whether a deleted container is retained is a setting of the account: CONFORMANCE_CONTAINER_RETENTION_DAYS
says for how many days, and CONFORMANCE_CONTAINER_NAME_HOLD for how many seconds its name is held.
"""

import os
import time
import uuid

import pytest
from azure.core.exceptions import HttpResponseError
from azure.storage.blob import BlobLeaseClient
from support import refused, unique

RETENTION_DAYS = int(os.environ.get("CONFORMANCE_CONTAINER_RETENTION_DAYS", "0"))
NAME_HOLD_SECONDS = int(os.environ.get("CONFORMANCE_CONTAINER_NAME_HOLD", "0"))
WHOLE = "restype=container"

retained = pytest.mark.skipif(RETENTION_DAYS == 0, reason="CONFORMANCE_CONTAINER_RETENTION_DAYS is not set")
held = pytest.mark.skipif(NAME_HOLD_SECONDS == 0, reason="CONFORMANCE_CONTAINER_NAME_HOLD is not set")


@pytest.fixture
def names(service):
    """Fresh names; containers with these names are deleted at the end."""
    fresh = []

    def name():
        fresh.append(unique("ends"))
        return fresh[-1]

    yield name
    for name in fresh:
        try:
            service.delete_container(name)
        except HttpResponseError as error:
            if error.status_code == 412:
                BlobLeaseClient(service.get_container_client(name)).break_lease(lease_break_period=0)
                service.delete_container(name)


def filled(service, name):
    container = service.create_container(name, metadata={"kept": "yes"})
    container.upload_blob("b", b"content")
    return container


def listed_deleted(service, name):
    return [entry for entry in service.list_containers(name, include_deleted=True) if entry.deleted]


@retained
def test_a_deleted_container_is_listed_and_restored(service, names):
    name = names()
    filled(service, name).delete_container()
    assert list(service.list_containers(name)) == []
    (entry,) = listed_deleted(service, name)
    assert (entry.name, entry.deleted) == (name, True)
    assert entry.version
    restored = service.undelete_container(name, entry.version)
    assert restored.download_blob("b").readall() == b"content"
    assert restored.get_container_properties().metadata == {"kept": "yes"}
    assert listed_deleted(service, name) == []


@retained
def test_the_listing_tells_when_it_was_deleted_and_how_long_it_stays(raw, service, names):
    name = names()
    filled(service, name).delete_container()
    answer = raw.send("GET", "/", f"comp=list&prefix={name}&include=deleted,metadata")
    container = answer.xml().find("Containers/Container")
    assert container.findtext("Deleted") == "true"
    assert container.findtext("Properties/RemainingRetentionDays") == str(RETENTION_DAYS)
    assert container.findtext("Properties/DeletedTime").endswith("GMT")
    assert container.findtext("Metadata/kept") == "yes"


@retained
def test_restoring_is_refused_when_there_is_nothing_to_restore_or_something_in_the_way(raw, service, names):
    name = names()
    filled(service, name).delete_container()
    (entry,) = listed_deleted(service, name)
    with refused(409, "ContainerNotFound"):
        service.undelete_container(name, "0000000000000001")
    with refused(409, "ContainerNotFound"):
        service.undelete_container(name, "no version")
    taken = names()
    service.create_container(taken)
    headers = {"x-ms-deleted-container-name": name, "x-ms-deleted-container-version": entry.version}
    answer = raw.send("PUT", f"/{taken}", f"{WHOLE}&comp=undelete", headers)
    assert (answer.status, answer.code) == (409, "ContainerAlreadyExists")
    other = names()
    assert raw.send("PUT", f"/{other}", f"{WHOLE}&comp=undelete", headers).status == 201
    assert raw.send("GET", f"/{other}/b").body == b"content"
    with refused(409, "ContainerNotFound"):
        service.undelete_container(name, entry.version)


@retained
def test_several_deleted_containers_of_one_name_are_told_apart(service, names):
    name = names()
    for content in (b"first", b"second"):
        container = service.create_container(name)
        container.upload_blob("b", content)
        container.delete_container()
    first, second = listed_deleted(service, name)
    assert service.undelete_container(name, first.version).download_blob("b").readall() == b"first"
    assert [entry.version for entry in listed_deleted(service, name)] == [second.version]


@held
def test_the_name_of_a_deleted_container_is_held(service, names):
    name = names()
    container = filled(service, name)
    container.delete_container()
    with refused(409, "ContainerBeingDeleted"):
        service.create_container(name)
    with refused(404, "ContainerNotFound"):
        container.get_container_properties()
    with refused(404, "ContainerNotFound"):
        container.upload_blob("b", b"content")
    time.sleep(NAME_HOLD_SECONDS + 0.1)
    assert list(service.create_container(name).list_blobs()) == []


def test_without_a_name_and_a_version_nothing_is_restored(raw):
    path, query = f"/{unique('ends')}", f"{WHOLE}&comp=undelete"
    assert raw.send("PUT", path, query).code == "MissingRequiredHeader"
    assert raw.send("PUT", path, query, {"x-ms-deleted-container-name": "name"}).code == "MissingRequiredHeader"


def rename(raw, source, target, lease_id=None):
    headers = {"x-ms-source-container-name": source, "x-ms-source-lease-id": lease_id}
    return raw.send("PUT", f"/{target}", f"{WHOLE}&comp=rename", headers)


def test_a_container_is_renamed_with_all_it_has(raw, service, names):
    old, new = names(), names()
    before = filled(service, old).get_container_properties()
    assert rename(raw, old, new).status == 200
    container = service.get_container_client(new)
    properties = container.get_container_properties()
    assert container.download_blob("b").readall() == b"content"
    assert properties.metadata == {"kept": "yes"}
    assert properties.etag > before.etag
    with refused(404, "ContainerNotFound"):
        service.get_container_client(old).get_container_properties()
    service.create_container(old)


def test_renaming_is_refused(raw, service, names):
    old, taken = names(), names()
    filled(service, old)
    service.create_container(taken)
    for source, target, status, code in (
        (old, taken, 409, "ContainerAlreadyExists"),
        (old, old, 409, "ContainerAlreadyExists"),
        (unique("absent"), names(), 404, "ContainerNotFound"),
        (old, "$web", 400, "InvalidResourceName"),
        ("$root", names(), 400, "InvalidResourceName"),
        ("UPPER", names(), 400, "InvalidResourceName"),
    ):
        answer = rename(raw, source, target)
        assert (answer.status, answer.code) == (status, code), (source, target)


def test_a_leased_container_is_renamed_by_its_holder(raw, service, names):
    old, new = names(), names()
    lease = filled(service, old).acquire_lease()
    for lease_id, code in ((None, "LeaseIdMissing"), (str(uuid.uuid4()), "LeaseIdMismatchWithContainerOperation")):
        answer = rename(raw, old, new, lease_id)
        assert (answer.status, answer.code) == (412, code)
    assert rename(raw, old, new, lease.id).status == 200
    assert service.get_container_client(new).get_container_properties().lease.state == "leased"


def test_what_the_service_writes_is_listed_only_when_asked(raw, service):
    created = []
    for name in ("$logs", "$root"):
        if raw.send("PUT", f"/{name}", WHOLE).status == 201:
            created.append(name)

    def listed(include):
        answer = raw.send("GET", "/", f"comp=list&prefix=%24{include}")
        return [name.text for name in answer.xml().findall("Containers/Container/Name")]

    assert "$logs" not in listed("")
    assert "$root" in listed("")
    assert {"$logs", "$root"} <= set(listed("&include=system"))
    for name in created:
        raw.send("DELETE", f"/{name}", WHOLE)


@pytest.mark.parametrize("include, version", [("deleted", "2019-10-10"), ("system", "2020-08-04")])
def test_what_may_be_included_depends_on_the_version(raw, include, version):
    answer = raw.send("GET", "/", f"comp=list&include={include}", version=version)
    assert (answer.status, answer.code) == (400, "InvalidQueryParameterValue")
    assert raw.send("GET", "/", f"comp=list&include={include}").status == 200


def test_blobs_of_the_root_container_have_no_slash_and_need_no_container(raw):
    created = raw.send("PUT", "/$root", WHOLE).status == 201
    block = {"x-ms-blob-type": "BlockBlob"}
    assert raw.send("PUT", "/rooted.txt", headers=block, body=b"content").status == 201
    assert raw.send("GET", "/rooted.txt").body == b"content"
    assert raw.send("GET", "/$root/rooted.txt").body == b"content"
    assert raw.send("PUT", "/$root/a/b", headers=block, body=b"content").status == 400
    assert raw.send("DELETE", "/rooted.txt").status == 202
    if created:
        raw.send("DELETE", "/$root", WHOLE)
