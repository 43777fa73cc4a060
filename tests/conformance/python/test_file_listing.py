"""List Directories and Files."""

import pytest
from azure.storage.fileshare import ShareClient
from support import connection_string


@pytest.fixture
def filled(share):
    for name in ("b dir", "D dir"):
        share.create_directory(name)
    for name in ("A file", "c file", "e&<file>".replace("<", "(").replace(">", ")")):
        share.get_file_client(name).upload_file(b"x" * len(name))
    share.get_file_client("b dir/inner").create_file(0)
    return share


def listed(share, **options):
    return [(entry["name"], entry["is_directory"]) for entry in share.list_directories_and_files(**options)]


def page(file_raw, share, query="", path="", headers=None, version=""):
    query = f"restype=directory&comp=list{query}"
    answer = file_raw.send("GET", f"/{share.share_name}/{path}", query, headers, version=version)
    assert answer.status == 200, answer.body
    return answer.xml()


def test_one_level_in_the_order_of_names(filled):
    assert sorted(listed(filled)) == sorted(
        [("A file", False), ("b dir", True), ("c file", False), ("D dir", True), ("e&(file)", False)]
    )
    assert listed(filled, directory_name="b dir") == [("inner", False)]
    assert listed(filled, directory_name="D dir") == []


def test_files_and_directories_are_mixed(file_raw, filled):
    xml = page(file_raw, filled)
    names = [(entry.tag, entry.findtext("Name")) for entry in xml.find("Entries")]
    assert names == [
        ("File", "A file"),
        ("Directory", "b dir"),
        ("File", "c file"),
        ("Directory", "D dir"),
        ("File", "e&(file)"),
    ]
    assert xml.attrib["ShareName"] == filled.share_name and xml.attrib["DirectoryPath"] == ""
    assert [entry.findtext("Properties/Content-Length") for entry in xml.iter("File")] == ["6", "6", "8"]


def test_prefixes_have_no_case(filled):
    assert listed(filled, name_starts_with="B") == [("b dir", True)]
    assert listed(filled, name_starts_with="none") == []


def test_pages(filled):
    pages = filled.list_directories_and_files(results_per_page=2).by_page()
    found = [[entry["name"] for entry in page] for page in pages]
    assert [len(page) for page in found] == [2, 2, 1]
    assert sorted(sum(found, [])) == sorted(["A file", "b dir", "c file", "D dir", "e&(file)"])


def test_what_is_included(file_raw, filled):
    [entry] = page(file_raw, filled, "&prefix=A").find("Entries")
    assert entry.findtext("FileId")
    assert entry.find("Attributes") is None and entry.find("PermissionKey") is None
    assert entry.find("Properties/CreationTime") is None and entry.find("Properties/Etag") is None
    include = "&include=Timestamps,Etag,Attributes,PermissionKey"
    headers = {"x-ms-file-extended-info": "true"}
    [entry] = page(file_raw, filled, f"&prefix=A{include}", headers=headers).find("Entries")
    properties = filled.get_file_client("A file").get_file_properties()
    assert entry.findtext("FileId") == properties.file_id
    assert entry.findtext("Attributes") == "Archive"
    assert entry.findtext("PermissionKey") == properties.permission_key
    assert entry.findtext("Properties/Etag") == properties.etag
    for name in ("CreationTime", "LastAccessTime", "LastWriteTime", "ChangeTime", "Last-Modified"):
        assert entry.findtext(f"Properties/{name}")
    answer = file_raw.send("GET", f"/{filled.share_name}", "restype=directory&comp=list&include=everything")
    assert (answer.status, answer.code) == (400, "InvalidQueryParameterValue")


def test_the_sdk_reads_what_is_included(filled):
    options = {"include": ["timestamps", "Etag", "Attributes", "PermissionKey"], "include_extended_info": True}
    entries = {entry["name"]: entry for entry in filled.list_directories_and_files(**options)}
    assert entries["b dir"].file_attributes == "Directory"
    assert entries["A file"].file_attributes == "Archive"
    assert entries["A file"].last_write_time and entries["A file"].permission_key


def test_numbers_since_2020_10_02(file_raw, filled):
    assert page(file_raw, filled, version="2020-10-02").findtext("DirectoryId")
    old = page(file_raw, filled, version="2020-08-04")
    assert old.find("DirectoryId") is None and old.find("Entries/File/FileId") is None


def test_names_that_xml_cannot_carry(file_raw, share):
    share.get_file_client("odd\uffff").create_file(0)
    [entry] = page(file_raw, share).find("Entries")
    assert entry.find("Name").attrib == {"Encoded": "true"}
    assert entry.findtext("Name") == "odd%EF%BF%BF"
    assert listed(share) == [("odd\uffff", False)]


def test_a_listing_of_a_snapshot(filled):
    snapshot = filled.create_snapshot()
    filled.get_file_client("A file").delete_file()
    filled.get_file_client("new").create_file(0)
    with ShareClient.from_connection_string(connection_string(), filled.share_name, snapshot=snapshot) as past:
        names = {name for name, _ in listed(past)}
        assert "A file" in names and "new" not in names
        assert {entry["name"] for entry in past.list_directories_and_files("b dir")} == {"inner"}


def test_what_cannot_be_listed(file_raw, filled):
    list_ = lambda path, query="": file_raw.send(
        "GET", f"/{filled.share_name}/{path}", f"restype=directory&comp=list{query}"
    )
    assert (list_("none").status, list_("none").code) == (404, "ResourceNotFound")
    assert (list_("A%20file").status, list_("A%20file").code) == (409, "ResourceTypeMismatch")
    assert list_("", "&maxresults=0").code == "OutOfRangeQueryParameterValue"
    assert list_("", "&marker=!").code == "InvalidQueryParameterValue"
