"""Directories: create, properties, metadata, delete, and conflicts with files."""

from datetime import datetime, timezone

import pytest
from azure.storage.fileshare import NTFSAttributes
from support import ETAG, refused, unique

MOMENT = "2020-01-02T03:04:05.1234567Z"


@pytest.fixture
def directory(share):
    return share.create_directory("Photos")


def directory_call(file_raw, method, share, path, query="", headers=None, version=""):
    query = f"restype=directory{'&' if query else ''}{query}"
    return file_raw.send(method, f"/{share.share_name}/{path}", query, headers, version=version)


def test_a_directory_is_created_once(share):
    directory = share.get_directory_client("a dir")
    created = directory.create_directory(metadata={"Colour": "blue"})
    assert ETAG.match(created["etag"])
    assert created["request_server_encrypted"]
    assert created["file_attributes"] == "Directory"
    properties = directory.get_directory_properties()
    assert properties.metadata == {"Colour": "blue"}
    assert properties.file_id == created["file_id"] and properties.parent_id == created["file_parent_id"]
    assert properties.creation_time == properties.last_write_time == properties.change_time
    for name in ("a dir", "A DIR"):
        with refused(409, "ResourceAlreadyExists"):
            share.create_directory(name)


def test_a_parent_must_exist_and_be_a_directory(share, directory):
    with refused(404, "ParentNotFound"):
        share.create_directory("Nowhere/child")
    share.get_file_client("file").create_file(0)
    with refused(404, "ParentNotFound"):
        share.create_directory("file/child")
    child = directory.create_subdirectory("child")
    parent = directory.get_directory_properties()
    assert child.get_directory_properties().parent_id == parent.file_id


def test_the_share_must_exist(shares):
    share = shares.get_share_client(unique("none"))
    with refused(404, "ShareNotFound"):
        share.create_directory("d")
    with refused(404, "ShareNotFound"):
        share.get_directory_client("d").get_directory_properties()


def test_files_and_directories_share_their_names(share, directory):
    with refused(409, "ResourceTypeMismatch"):
        share.get_file_client("photos").create_file(0)
    share.get_file_client("file").create_file(0)
    with refused(409, "ResourceTypeMismatch"):
        share.create_directory("FILE")
    # az checks so whether a path is a file or a directory.
    assert not share.get_directory_client("file").exists()
    assert not share.get_file_client("photos").exists()
    with refused(404, "ResourceNotFound"):
        share.get_directory_client("file").get_directory_properties()
    with refused(409, "ResourceTypeMismatch"):
        share.get_file_client("Photos").delete_file()


def test_metadata_is_set_and_read(file_raw, share, directory):
    before = directory.get_directory_properties()
    set_ = directory.set_directory_metadata({"One": "1"})
    assert set_["etag"] != before.etag
    answer = directory_call(file_raw, "GET", share, "Photos", "comp=metadata")
    assert (answer.status, answer.headers["x-ms-meta-One"]) == (200, "1")
    assert answer.headers["ETag"] == set_["etag"]
    assert directory_call(file_raw, "HEAD", share, "photos", "comp=metadata").status == 200


def test_properties_of_smb_are_set_and_kept(share):
    directory = share.get_directory_client("d")
    moment = datetime(2020, 1, 2, 3, 4, 5, tzinfo=timezone.utc)
    attributes = NTFSAttributes(read_only=True, hidden=True, directory=True)
    directory.create_directory(
        file_attributes=attributes, file_creation_time=moment, file_last_write_time=moment, file_change_time=moment
    )
    properties = directory.get_directory_properties()
    assert properties.file_attributes == "ReadOnly | Hidden | Directory"
    times = (properties.creation_time, properties.last_write_time, properties.change_time)
    assert {time.replace(tzinfo=timezone.utc) for time in times} == {moment}
    key = properties.permission_key
    assert key

    directory.set_http_headers(file_attributes="none", file_creation_time="preserve", file_last_write_time="preserve")
    properties = directory.get_directory_properties()
    assert properties.file_attributes == "Directory"
    assert properties.creation_time.replace(tzinfo=timezone.utc) == moment
    assert properties.permission_key == key


def test_times_have_seven_digits(file_raw, share):
    headers = {"x-ms-file-creation-time": MOMENT}
    created = directory_call(file_raw, "PUT", share, "d", headers=headers)
    assert (created.status, created.headers["x-ms-file-creation-time"]) == (201, MOMENT)
    read = directory_call(file_raw, "HEAD", share, "d")
    assert read.headers["x-ms-file-creation-time"] == MOMENT


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("x-ms-file-attributes", "Compressed"),
        ("x-ms-file-attributes", "Temporary"),
        ("x-ms-file-attributes", "None|ReadOnly"),
        ("x-ms-file-attributes", "preserve"),
        ("x-ms-file-creation-time", "yesterday"),
        ("x-ms-file-last-write-time", "source"),
        ("x-ms-file-change-time", "2020-13-01T00:00:00Z"),
        ("x-ms-file-property-semantics", "Old"),
        ("x-ms-allow-trailing-dot", "maybe"),
    ],
)
def test_properties_that_mean_nothing_are_refused(file_raw, share, name, value):
    answer = directory_call(file_raw, "PUT", share, "d", headers={name: value})
    assert (answer.status, answer.code) == (400, "InvalidHeaderValue")


def test_properties_were_required_until_2021_04_10(file_raw, share):
    headers = {
        "x-ms-file-attributes": "None",
        "x-ms-file-creation-time": "now",
        "x-ms-file-last-write-time": "now",
        "x-ms-file-permission": "inherit",
    }
    for left_out in headers:
        sent = {name: value for name, value in headers.items() if name != left_out}
        answer = directory_call(file_raw, "PUT", share, "old", headers=sent, version="2021-04-10")
        assert (answer.status, answer.code) == (400, "MissingRequiredHeader"), left_out
    assert directory_call(file_raw, "PUT", share, "old", headers=headers, version="2019-02-02").status == 201
    assert directory_call(file_raw, "PUT", share, "older", version="2018-11-09").status == 201
    answer = directory_call(file_raw, "HEAD", share, "older", version="2018-11-09")
    assert "x-ms-file-id" not in answer.headers


def test_only_an_empty_directory_is_deleted(share, directory):
    file = directory.get_file_client("file")
    file.create_file(0)
    with refused(409, "DirectoryNotEmpty"):
        directory.delete_directory()
    file.delete_file()
    directory.delete_directory()
    with refused(404, "ResourceNotFound"):
        directory.delete_directory()
    assert not directory.exists()
    share.create_directory("photos")


def test_the_root_is_there_and_stays(share):
    root = share.get_directory_client()
    properties = root.get_directory_properties()
    assert properties.file_attributes == "Directory"
    with refused(409, "CannotDeleteFileOrDirectory"):
        root.delete_directory()
    with refused(409, "ResourceAlreadyExists"):
        root.create_directory()
    root.set_directory_metadata({"of": "root"})
    assert root.get_directory_properties().metadata == {"of": "root"}


@pytest.mark.parametrize("name", ["a%3Ab", "a%7Cb", "a%2Ab", "CON", "lpt1", "a%22", "a%5Cb", "n" * 256])
def test_a_name_that_nothing_can_have_is_refused(file_raw, share, name):
    answer = directory_call(file_raw, "PUT", share, name)
    assert (answer.status, answer.code) == (400, "InvalidFileOrDirectoryPathName")


def test_dots_at_the_end_are_removed_unless_they_are_meant(shares, share):
    share.create_directory("plain...")
    assert share.get_directory_client("plain").exists()
    from azure.storage.fileshare import ShareClient
    from support import connection_string

    dotted = ShareClient.from_connection_string(connection_string(), share.share_name, allow_trailing_dot=True)
    with dotted:
        dotted.create_directory("dots..")
        names = {entry["name"] for entry in dotted.list_directories_and_files()}
    assert names == {"plain", "dots.."}
    with refused(404, "ResourceNotFound"):
        share.get_directory_client("dots..").get_directory_properties()


def test_a_snapshot_is_read_and_not_written(file_raw, share, directory):
    snapshot = share.create_snapshot()["snapshot"]
    directory.set_directory_metadata({"later": "1"})
    directory.create_subdirectory("later")
    query = f"sharesnapshot={snapshot}"
    answer = directory_call(file_raw, "HEAD", share, "Photos", query)
    assert answer.status == 200 and "x-ms-meta-later" not in answer.headers
    assert directory_call(file_raw, "HEAD", share, "Photos/later", query).status == 404
    for method, more in (("PUT", ""), ("DELETE", ""), ("PUT", "&comp=metadata"), ("PUT", "&comp=properties")):
        answer = directory_call(file_raw, method, share, "Photos", query + more)
        assert (answer.status, answer.code) == (400, "InvalidQueryParameterValue"), (method, more)
