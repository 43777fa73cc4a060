"""The first version that has an operation: before it, the service does not know what is asked."""

import pytest
from support import NEWEST_VERSION, unique

# Operation, the newest version that does not have it, method, query, headers, what is refused.
CONTAINER = [
    ("container lease", "2011-08-18", "PUT", "comp=lease", {"x-ms-lease-action": "acquire"}, "comp"),
    ("container batch", "2020-02-10", "POST", "comp=batch", {}, "comp"),
    ("restore", "2019-10-10", "PUT", "comp=undelete", {"x-ms-deleted-container-name": "name"}, "comp"),
]
BLOB = [
    ("undelete", "2017-04-17", "PUT", "comp=undelete", {}, "comp"),
    ("tags", "2019-10-10", "GET", "comp=tags", {}, "comp"),
    ("account information", "2017-11-09", "GET", "restype=account&comp=properties", {}, "restype"),
    ("lease change", "2011-08-18", "PUT", "comp=lease", {"x-ms-lease-action": "change"}, "x-ms-lease-action"),
    ("append blob", "2014-02-14", "PUT", "", {"x-ms-blob-type": "AppendBlob"}, "x-ms-blob-type"),
    (
        "put from URL",
        "2020-02-10",
        "PUT",
        "",
        {"x-ms-blob-type": "BlockBlob", "x-ms-copy-source": "http://a.example/b"},
        "x-ms-copy-source",
    ),
]


@pytest.mark.parametrize("case", CONTAINER + BLOB, ids=lambda case: case[0])
def test_an_operation_is_not_known_before_its_version(raw, container, case):
    _, version, method, query, headers, refused = case
    if case in CONTAINER:
        path, query = f"/{container.container_name}", f"restype=container&{query}"
    else:
        path = f"/{container.container_name}/b"
    answer = raw.send(method, path, query, headers, version=version)
    assert answer.status == 400
    detail = answer.xml()
    named = detail.findtext("QueryParameterName") or detail.findtext("HeaderName")
    assert (answer.code, named) == (
        "InvalidHeaderValue" if refused.startswith("x-") else "InvalidQueryParameterValue",
        refused,
    )


def test_statistics_and_batches_of_the_account(raw):
    for version, query, method in (
        ("2012-02-12", "restype=service&comp=stats", "GET"),
        ("2018-03-28", "comp=batch", "POST"),
        ("2019-10-10", "comp=blobs&where=a%3D%271%27", "GET"),
    ):
        answer = raw.send(method, "/", query, version=version)
        assert (answer.status, answer.code) == (400, "InvalidQueryParameterValue"), query


def test_a_caller_without_credentials_and_version_is_told_none(raw, service):
    container = service.create_container(unique("test"), public_access="container")
    container.upload_blob("b", b"content")
    path = f"/{container.container_name}/b"
    assert raw.send("GET", path, sign=False, version=None).headers["x-ms-version"] is None
    assert raw.send("GET", path, sign=False).headers["x-ms-version"] == NEWEST_VERSION
    assert raw.send("GET", path, version=None).headers["x-ms-version"] == "2009-09-19"
    container.delete_container()


@pytest.mark.parametrize("version, quoted", [("2009-09-19", False), ("2011-08-18", True)])
def test_the_etag_of_an_answer_that_nothing_changed_is_written_as_its_version_does(raw, blob, version, quoted):
    path = f"/{blob.container_name}/a%20blob"
    etag = raw.send("HEAD", path, version=version).headers["ETag"]
    assert etag.startswith('"') == quoted
    answer = raw.send("GET", path, headers={"If-None-Match": etag}, version=version)
    assert (answer.status, answer.headers["ETag"]) == (304, etag)
