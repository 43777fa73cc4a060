"""Links and the properties of NFS, in shares of that protocol."""

import pytest
from azure.storage.fileshare import ContentSettings
from support import refused, unique


@pytest.fixture
def nfs(shares):
    client = shares.create_share(unique("nfs"), protocols="NFS")
    yield client
    client.delete_share()


def test_mode_and_owners(nfs):
    file = nfs.get_file_client("file")
    created = file.create_file(10, file_mode="0754", owner="1000", group="1001")
    assert (created["mode"], created["owner"], created["group"]) == ("0754", "1000", "1001")
    assert created["file_file_type"] == "Regular"
    properties = file.get_file_properties()
    assert (properties.file_mode, properties.owner, properties.group) == ("0754", "1000", "1001")
    assert (properties.link_count, properties.nfs_file_type) == (1, "Regular")
    assert properties.file_attributes is None
    file.set_http_headers(ContentSettings(), file_mode="0600", owner="5")
    properties = file.get_file_properties()
    assert (properties.file_mode, properties.owner, properties.group) == ("0600", "5", "1001")

    directory = nfs.get_directory_client("d")
    directory.create_directory(file_mode="rwxr-x---", owner="7", group="8")
    properties = directory.get_directory_properties()
    assert (properties.file_mode, properties.owner, properties.group) == ("0750", "7", "8")
    assert properties.nfs_file_type == "Directory"


def test_a_symbolic_link_is_kept_as_it_is_written(nfs):
    link = nfs.get_file_client("link")
    created = link.create_symlink("../some where/file", owner="1", group="2")
    assert created["file_file_type"] == "SymLink"
    assert link.get_symlink()["link_text"] == "../some where/file"
    properties = link.get_file_properties()
    assert (properties.nfs_file_type, properties.owner, properties.group) == ("SymLink", "1", "2")
    link.set_file_metadata({"a": "b"})
    assert link.get_file_properties().metadata == {"a": "b"}
    assert [entry["name"] for entry in nfs.list_directories_and_files()] == ["link"]
    link.delete_file()
    with refused(404, "ResourceNotFound"):
        link.get_symlink()


def test_a_hard_link_is_another_name(file_raw, nfs):
    file = nfs.get_file_client("file")
    file.upload_file(b"content")
    link = nfs.get_file_client("link")
    created = link.create_hardlink("/file")
    assert (created["link_count"], created["file_id"]) == (2, file.get_file_properties().file_id)
    link.upload_range(b"changed", 0, 7)
    assert file.download_file().readall() == b"changed"
    path = f"/{nfs.share_name}"
    assert file_raw.send("DELETE", f"{path}/file").headers["x-ms-link-count"] == "1"
    assert link.download_file().readall() == b"changed"
    assert link.get_file_properties().link_count == 1
    assert file_raw.send("DELETE", f"{path}/link").headers["x-ms-link-count"] == "0"
    with refused(404, "ResourceNotFound"):
        link.get_file_properties()


def test_links_have_their_rules(nfs, share):
    with refused(404, "ResourceNotFound"):
        nfs.get_file_client("link").create_hardlink("/none")
    nfs.create_directory("d")
    with refused(409, "ResourceTypeMismatch"):
        nfs.get_file_client("link").create_hardlink("/d")
    nfs.get_file_client("file").create_file(0)
    with refused(409, "ResourceTypeMismatch"):
        nfs.get_file_client("file").get_symlink()
    with refused(400, "InvalidQueryParameterValue"):
        share.get_file_client("link").create_symlink("file")
    share.get_file_client("file").create_file(0)
    with refused(400, "InvalidQueryParameterValue"):
        share.get_file_client("link").create_hardlink("/file")


def test_modes_that_are_none_are_refused(file_raw, nfs):
    for name, value in (("x-ms-mode", "999"), ("x-ms-owner", "root"), ("x-ms-file-file-type", "Pipe")):
        headers = {"x-ms-type": "file", "x-ms-content-length": "0", name: value}
        answer = file_raw.send("PUT", f"/{nfs.share_name}/f", headers=headers)
        assert (answer.status, answer.code) == (400, "InvalidHeaderValue"), name
