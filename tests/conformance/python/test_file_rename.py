"""Rename File and Rename Directory."""

import uuid
from datetime import datetime, timezone

import pytest
from azure.storage.fileshare import ContentSettings, NTFSAttributes
from support import refused

A, B = (str(uuid.uuid4()) for _ in range(2))


@pytest.fixture
def file(share):
    client = share.get_file_client("file")
    client.upload_file(b"content", metadata={"kept": "1"})
    return client


def test_a_file_gets_another_name(share, file):
    before = file.get_file_properties()
    renamed = file.rename_file("other")
    after = renamed.get_file_properties()
    assert renamed.download_file().readall() == b"content"
    assert after.metadata == {"kept": "1"}
    assert (after.file_id, after.creation_time) == (before.file_id, before.creation_time)
    assert after.last_write_time == before.last_write_time
    with refused(404, "ResourceNotFound"):
        file.get_file_properties()


def test_a_file_moves_to_another_directory(share, file):
    share.create_directory("d")
    moved = file.rename_file("d/inside")
    assert [entry["name"] for entry in share.list_directories_and_files("d")] == ["inside"]
    parent = share.get_directory_client("d").get_directory_properties().file_id
    assert moved.get_file_properties().parent_id == parent
    with refused(404, "ParentNotFound"):
        moved.rename_file("nowhere/x")


def test_only_the_case_of_a_name_changes(share, file):
    file.rename_file("FILE")
    assert [entry["name"] for entry in share.list_directories_and_files()] == ["FILE"]


def test_what_is_there_is_replaced_only_on_demand(share, file):
    other = share.get_file_client("other")
    other.upload_file(b"other")
    with refused(409, "ResourceAlreadyExists"):
        file.rename_file("other")
    assert other.download_file().readall() == b"other"
    file.rename_file("other", overwrite=True)
    assert other.download_file().readall() == b"content"
    assert not file.exists()


def test_a_read_only_target_is_replaced_if_that_is_ignored(file_raw, share, file):
    other = share.get_file_client("other")
    other.create_file(1, file_attributes=NTFSAttributes(read_only=True))
    with refused(409, "ReadOnlyAttribute"):
        file.rename_file("other", overwrite=True)
    file.rename_file("other", overwrite=True, ignore_read_only=True)
    headers = {"x-ms-file-rename-source": other.url, "x-ms-file-rename-ignore-readonly": "true"}
    answer = file_raw.send("PUT", f"/{share.share_name}/third", "comp=rename", headers)
    assert (answer.status, answer.code) == (400, "InvalidHeaderValue")


def test_properties_that_are_sent_are_set(share, file):
    moment = datetime(2019, 1, 2, 3, 4, 5, tzinfo=timezone.utc)
    renamed = file.rename_file(
        "other",
        metadata={"new": "2"},
        content_type="text/plain",
        file_attributes=NTFSAttributes(hidden=True),
        file_creation_time=moment,
        file_change_time=moment,
    )
    properties = renamed.get_file_properties()
    assert properties.metadata == {"new": "2"}
    assert properties.content_settings.content_type == "text/plain"
    assert properties.file_attributes == "Hidden"
    assert properties.creation_time.replace(tzinfo=timezone.utc) == moment


def test_leases_of_both_names_are_asked_for(share, file):
    other = share.get_file_client("other")
    other.upload_file(b"other")
    file.acquire_lease(A)
    other.acquire_lease(B)
    with refused(412, "LeaseIdMissing"):
        file.rename_file("other", overwrite=True)
    with refused(412, "LeaseIdMissing"):
        file.rename_file("other", overwrite=True, source_lease=A)
    with refused(412, "LeaseIdMismatchWithFileOperation"):
        file.rename_file("other", overwrite=True, source_lease=B, destination_lease=B)
    file.rename_file("other", overwrite=True, source_lease=A, destination_lease=B)
    assert other.download_file().readall() == b"content"


def test_a_directory_takes_along_what_is_in_it(share):
    directory = share.create_directory("d")
    directory.create_subdirectory("inner").get_file_client("file").upload_file(b"deep")
    before = directory.get_directory_properties().file_id
    renamed = directory.rename_directory("e", metadata={"new": "1"})
    assert share.get_file_client("e/inner/file").download_file().readall() == b"deep"
    properties = renamed.get_directory_properties()
    assert (properties.file_id, properties.metadata) == (before, {"new": "1"})
    assert not directory.exists()


def test_a_directory_replaces_a_file_on_demand(share, file):
    directory = share.create_directory("d")
    directory.get_file_client("inside").upload_file(b"inside")
    file.acquire_lease(A)
    with refused(409, "ResourceAlreadyExists"):
        directory.rename_directory("file")
    with refused(412, "LeaseIdMissing"):
        directory.rename_directory("file", overwrite=True)
    with refused(412, "LeaseIdMismatchWithFileOperation"):
        directory.rename_directory("file", overwrite=True, destination_lease=B)
    assert file.download_file(lease=A).readall() == b"content"
    renamed = directory.rename_directory("file", overwrite=True, destination_lease=A)
    assert renamed.get_directory_properties().is_directory
    assert share.get_file_client("file/inside").download_file().readall() == b"inside"
    assert [entry["name"] for entry in share.list_directories_and_files()] == ["file"]


def test_a_directory_replaces_no_directory_and_moves_not_into_itself(share, file):
    directory = share.create_directory("d")
    share.create_directory("e")
    with refused(409, "ResourceAlreadyExists"):
        directory.rename_directory("e")
    with refused(409, "ResourceAlreadyExists"):
        directory.rename_directory("e", overwrite=True)
    with refused(409, "ResourceAlreadyExists"):
        directory.rename_directory("file")
    with refused(400, "InvalidHeaderValue"):
        directory.rename_directory("d/inside")
    with refused(409, "ResourceTypeMismatch"):
        share.get_directory_client("file").rename_directory("g")
    with refused(409, "ResourceTypeMismatch"):
        share.get_file_client("d").rename_file("g")


def test_the_source_is_one_of_the_same_share(file_raw, shares, share, file):
    rename = lambda source: file_raw.send(
        "PUT", f"/{share.share_name}/new", "comp=rename", {"x-ms-file-rename-source": source}
    )
    root = file.url.rsplit("/", 2)[0]
    assert rename(None).code == "MissingRequiredHeader"
    for source in ("file", "http://other.example/share/file", f"{root}/other-share/file", f"{root}/{share.share_name}"):
        assert (rename(source).status, rename(source).code) == (400, "InvalidHeaderValue"), source
    assert rename(f"{file.url}none").code == "ResourceNotFound"


def test_the_content_of_a_snapshot_stays_where_it_was(share, file):
    from azure.storage.fileshare import ShareClient
    from support import connection_string

    share.create_directory("d").get_file_client("inside").upload_file(b"inside")
    snapshot = share.create_snapshot()
    file.rename_file("other")
    share.get_directory_client("d").rename_directory("e")
    with ShareClient.from_connection_string(connection_string(), share.share_name, snapshot=snapshot) as past:
        assert past.get_file_client("file").download_file().readall() == b"content"
        assert past.get_file_client("d/inside").download_file().readall() == b"inside"
        with refused(404, "ParentNotFound"):
            past.get_file_client("e/inside").get_file_properties()
    assert share.get_file_client("e/inside").download_file().readall() == b"inside"
