"""The first version that has an operation: before it, the service does not know the operation."""

import pytest
from support import NEWEST_VERSION, unique
from test_protocol import VERSIONS as KNOWN

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


@pytest.mark.parametrize("include, first", [
    ("copy", "2012-02-12"),
    ("deleted", "2017-07-29"),
    ("tags", "2019-12-12"),
    ("versions", "2019-12-12"),
    ("legalhold", "2020-06-12"),
    ("deletedwithversions", "2020-10-02"),
])
def test_what_a_listing_of_blobs_may_include_depends_on_the_version(raw, container, include, first):
    path, query = f"/{container.container_name}", f"restype=container&comp=list&include={include}"
    before = max(version for version in KNOWN if version < first)
    answer = raw.send("GET", path, query, version=before)
    assert (answer.status, answer.code) == (400, "InvalidQueryParameterValue")
    assert raw.send("GET", path, query, version=first).status == 200


@pytest.mark.parametrize("tier, first", [("Cold", "2021-12-02"), ("Smart", "2026-06-06")])
def test_tiers_are_known_from_their_version_on(raw, container, tier, first):
    path, headers = f"/{container.container_name}/b", {"x-ms-blob-type": "BlockBlob", "x-ms-access-tier": tier}
    before = max(version for version in KNOWN if version < first)
    answer = raw.send("PUT", path, headers=headers, body=b"content", version=before)
    assert (answer.status, answer.code) == (400, "InvalidHeaderValue")
    assert raw.send("PUT", path, headers=headers, body=b"content", version=first).status == 201
