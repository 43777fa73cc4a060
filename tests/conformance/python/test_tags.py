"""Tags of blobs: what is set comes back, nothing else changes, and blobs are found by them."""

from datetime import datetime, timedelta, timezone
from urllib.parse import quote

import pytest
from azure.storage.blob import (
    BlobClient,
    BlobLeaseClient,
    BlobServiceClient,
    ContainerClient,
    generate_account_sas,
    generate_blob_sas,
    generate_container_sas,
)
from support import base64_text, crc64_text, md5, quoted, refused, unique

TAGS = {"project": "holdfast", "a b": "1+1=2", "empty": ""}


def document(*tags):
    rows = "".join(f"<Tag><Key>{key}</Key><Value>{value}</Value></Tag>" for key, value in tags)
    return f"<Tags><TagSet>{rows}</TagSet></Tags>".encode()


def path(blob):
    return f"/{blob.container_name}/{quoted(blob.blob_name)}"


def names(found):
    return sorted(item.name for item in found)


def expiry():
    return datetime.now(timezone.utc) + timedelta(hours=1)


@pytest.fixture
def label():
    """A value that no other test has."""
    return unique("label")


def test_tags_come_back_and_nothing_else_changes(blob):
    before = blob.get_blob_properties()
    blob.set_blob_tags(TAGS)
    assert blob.get_blob_tags() == TAGS
    after = blob.get_blob_properties()
    assert (after.etag, after.last_modified, after.tag_count) == (before.etag, before.last_modified, 3)
    blob.set_blob_tags({"only": "one"})
    assert blob.get_blob_tags() == {"only": "one"}
    blob.set_blob_tags({})
    assert blob.get_blob_tags() == {}
    assert blob.get_blob_properties().tag_count is None


def test_tags_of_an_upload_come_back_and_go_with_the_next(blob):
    blob.upload_blob(b"tagged", overwrite=True, tags=TAGS)
    assert blob.get_blob_tags() == TAGS
    blob.upload_blob(b"untagged", overwrite=True)
    assert blob.get_blob_tags() == {}


def test_no_blob_no_tags(container):
    missing = container.get_blob_client("missing")
    with refused(404, "BlobNotFound"):
        missing.get_blob_tags()
    with refused(404, "BlobNotFound"):
        missing.set_blob_tags(TAGS)


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (document(("a", "b")), 204, None),
        (document(), 204, None),
        (document(*((f"k{number}", "v") for number in range(11))), 400, "TagsTooLarge"),
        (document(("k" * 129, "v")), 400, "TagsTooLarge"),
        (document(("k", "v" * 257)), 400, "TagsTooLarge"),
        (document(("", "v")), 400, "EmptyTagName"),
        (document(("a", "1"), ("a", "2")), 400, "DuplicateTagNames"),
        (document(("a&amp;b", "1")), 400, "InvalidTag"),
        (b"<Tags/>", 400, "MissingRequiredXmlNode"),
        (b"<Tags><TagSet><Tag><Key>a</Key></Tag></TagSet></Tags>", 400, "MissingRequiredXmlNode"),
        (b"<Tags><TagSet><Other/></TagSet></Tags>", 400, "UnsupportedXmlNode"),
        (b"", 400, "InvalidXmlDocument"),
        (b"<Tags><TagSet>", 400, "InvalidXmlDocument"),
    ],
)
def test_a_document_of_tags_is_checked(raw, blob, body, status, code):
    answer = raw.send("PUT", path(blob), "comp=tags", {}, body)
    assert (answer.status, answer.code) == (status, code)


def test_checksums_of_the_document_are_verified(raw, blob):
    body = document(("a", "b"))
    for header, right, wrong, code in [
        ("Content-MD5", base64_text(md5(body)), base64_text(md5(b"x")), "Md5Mismatch"),
        ("x-ms-content-crc64", crc64_text(body), crc64_text(b"x"), "Crc64Mismatch"),
    ]:
        assert raw.send("PUT", path(blob), "comp=tags", {header: right}, body).status == 204
        answer = raw.send("PUT", path(blob), "comp=tags", {header: wrong}, body)
        assert (answer.status, answer.code) == (400, code)


def test_conditions_of_the_calls_on_tags(raw, blob):
    blob.set_blob_tags({"a": "1"})
    etag = blob.get_blob_properties().etag
    other = '"0x8D000000000CAFE"'
    cases = [
        ({"x-ms-if-tags": "a = '1'"}, 204, 200),
        ({"x-ms-if-tags": "a = '2'"}, 412, 412),
        ({"x-ms-if-tags": "a ="}, 400, 400),
        ({"x-ms-if-tags": "a <> '$#'"}, 400, 400),
        ({"x-ms-if-tags": f"{'a' * 129} <> '1'"}, 412, 412),
        ({"x-ms-blob-if-match": etag}, 204, 200),
        ({"x-ms-blob-if-match": other}, 412, 412),
        ({"x-ms-blob-if-none-match": other}, 204, 200),
        ({"x-ms-blob-if-none-match": etag}, 412, 304),
        ({"x-ms-blob-if-unmodified-since": "Mon, 01 Jan 2001 00:00:00 GMT"}, 412, 412),
        ({"x-ms-blob-if-modified-since": "Mon, 01 Jan 2001 00:00:00 GMT"}, 204, 200),
        ({"If-Match": etag}, 400, 400),
    ]
    for headers, write, read in cases:
        answer = raw.send("PUT", path(blob), "comp=tags", headers, document(("a", "1")))
        assert answer.status == write, headers
        assert raw.send("GET", path(blob), "comp=tags", headers).status == read, headers
    # Versions before 2026-02-06 do not know them.
    headers = {"x-ms-blob-if-match": other}
    assert raw.send("GET", path(blob), "comp=tags", headers, version="2025-11-05").status == 200


def test_a_lease_guards_the_tags(blob):
    lease = BlobLeaseClient(blob)
    lease.acquire(60)
    with refused(412, "LeaseIdMissing"):
        blob.set_blob_tags(TAGS)
    blob.set_blob_tags(TAGS, lease=lease)
    assert blob.get_blob_tags() == TAGS
    assert blob.get_blob_tags(lease=lease) == TAGS
    ended = lease.id
    lease.release()
    with refused(412, "LeaseNotPresentWithBlobOperation"):
        blob.set_blob_tags(TAGS, lease=ended)


def test_tags_need_their_own_letter(account, blob):
    def client(permission):
        sas = generate_blob_sas(
            account.name,
            blob.container_name,
            blob.blob_name,
            account_key=account.key,
            permission=permission,
            expiry=expiry(),
        )
        return BlobClient.from_blob_url(blob.url, credential=sas, retry_total=0)

    client("t").set_blob_tags(TAGS)
    assert client("t").get_blob_tags() == TAGS
    for call in (client("rw").get_blob_tags, lambda: client("rw").set_blob_tags(TAGS)):
        with refused(403, "AuthorizationPermissionMismatch"):
            call()
    assert client("r").get_blob_properties().tag_count is None
    assert client("rt").get_blob_properties().tag_count == 3


def test_blobs_are_found_by_their_tags(service, container, label):
    for name, tags in {
        "a": {"label": label, "size": "1"},
        "b": {"label": label, "size": "2"},
        "c/ü &": {"label": label, "size": "30"},
        "d": {"label": "other", "size": "2"},
        "e": {"size": "2"},
        "f": {},
    }.items():
        container.upload_blob(name, b"", tags=tags)
    cases = [
        (f"label = '{label}'", ["a", "b", "c/ü &"]),
        (f"\"label\" = '{label}' AND size = '2'", ["b"]),
        (f"label = '{label}' AND size > '1'", ["b", "c/ü &"]),
        (f"label = '{label}' AND size >= '1' AND size < '3'", ["a", "b"]),
        (f"label = '{label}' AND size <= '2'", ["a", "b"]),
        (f"label = '{label}' AND missing = '1'", []),
        (f"label = '{label}x'", []),
        (f"label > '{label}' AND label <= '{label}y'", []),
        (f"label >= '{label}' AND label <= '{label}'", ["a", "b", "c/ü &"]),
    ]
    for where, expected in cases:
        assert names(service.find_blobs_by_tags(where)) == expected, where
        assert names(container.find_blobs_by_tags(where)) == expected, where
    inside = f"@container = '{container.container_name}' AND size >= '1'"
    assert names(service.find_blobs_by_tags(inside)) == ["a", "b", "c/ü &", "d", "e"]
    assert names(service.find_blobs_by_tags(f"@container = 'missing' AND label = '{label}'")) == []
    found = next(iter(service.find_blobs_by_tags(f"label = '{label}' AND size = '2'")))
    assert (found.container_name, found.tags) == (container.container_name, {"label": label, "size": "2"})
    found = next(iter(service.find_blobs_by_tags(f"label = '{label}'")))
    assert found.tags == {"label": label}


def test_what_is_found_follows_every_change(service, container, label):
    where = f"label = '{label}'"

    def found():
        return names(service.find_blobs_by_tags(where))

    blob = container.upload_blob("b", b"", tags={"label": label})
    assert found() == ["b"]
    blob.set_blob_tags({"label": "another"})
    assert found() == []
    blob.set_blob_tags({"label": label, "more": "1"})
    assert found() == ["b"]
    blob.set_blob_metadata({"a": "1"})
    assert found() == ["b"]
    blob.upload_blob(b"", overwrite=True)
    assert found() == []
    blob.upload_blob(b"", overwrite=True, tags={"label": label})
    assert found() == ["b"]
    blob.delete_blob()
    assert found() == []
    blob.upload_blob(b"", tags={"label": label})
    container.delete_container()
    assert found() == []


def test_queries_that_no_tag_can_meet_are_refused(raw, container):
    for where, said in [
        ("@container = 'c' AND a = '1'", "Error parsing query: Cannot have container in both uri and query"),
        (" AND ".join(f"k{number} = 'v'" for number in range(11)), "Error parsing query: there can be at most 10 unique tags in a query"),
        (f"{'n' * 129} = 'v'", "Error parsing query"),
        (f"n = '{'v' * 257}'", "Error parsing query"),
        ("n = 'v @'", "Error parsing query"),
    ]:
        query = f"restype=container&comp=blobs&where={quoted(where)}"
        answer = raw.send("GET", f"/{container.container_name}", query)
        assert (answer.status, answer.code) == (400, "InvalidQueryParameterValue"), where
        assert answer.xml().findtext("Message").startswith(said)
        assert answer.xml().findtext("QueryParameterName") == "where"


def test_pages_of_what_is_found(service, container, label):
    expected = [f"{number:02}" for number in range(13)]
    for name in expected:
        container.upload_blob(name, b"", tags={"label": label, "n": name})
    for where in (f"label = '{label}'", f"@container = '{container.container_name}' AND n >= '00'"):
        pages = service.find_blobs_by_tags(where, results_per_page=5).by_page()
        sizes, found = [], []
        for page in pages:
            page = names(page)
            sizes.append(len(page))
            found += page
        assert (sizes, found) == ([5, 5, 3], expected)


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("", "MissingRequiredQueryParameter"),
        ("where=", "MissingRequiredQueryParameter"),
        ("where=a", "InvalidQueryParameterValue"),
        ("where=" + quote("a <> 'b'"), "InvalidQueryParameterValue"),
        ("where=" + quote("a = 'b' OR a = 'c'"), "InvalidQueryParameterValue"),
        ("where=" + quote("@container = 'c'"), "InvalidQueryParameterValue"),
        ("where=" + quote("a = 'b'") + "&marker=!", "InvalidQueryParameterValue"),
        ("where=" + quote("a = 'b'") + "&marker=AAAA", "InvalidQueryParameterValue"),
        ("where=" + quote("a = 'b'") + "&maxresults=0", "OutOfRangeQueryParameterValue"),
        ("where=" + quote("a = 'b'") + "&include=everything", "InvalidQueryParameterValue"),
    ],
)
def test_a_query_that_is_not_one_is_refused(raw, query, code):
    answer = raw.send("GET", "/", "comp=blobs&" + query if query else "comp=blobs")
    assert (answer.status, answer.code) == (400, code)


def test_a_query_in_a_container_names_no_container(raw, container):
    where = quote("@container = 'c' AND a = '1'")
    query = f"restype=container&comp=blobs&where={where}"
    answer = raw.send("GET", f"/{container.container_name}", query)
    assert (answer.status, answer.code) == (400, "InvalidQueryParameterValue")
    where = quote("a = '1'")
    answer = raw.send("GET", f"/{unique('missing')}", f"restype=container&comp=blobs&where={where}")
    assert (answer.status, answer.code) == (404, "ContainerNotFound")


def test_the_form_of_the_answer_by_version(raw, container, label):
    container.upload_blob("b", b"", tags={"label": label})
    query = "comp=blobs&where=" + quote(f"label = '{label}'")
    new = raw.send("GET", "/", query).xml()
    assert new.findtext("Where") == f"label = '{label}'"
    assert new.findtext("Blobs/Blob/Tags/TagSet/Tag/Value") == label
    assert new.find("Blobs/Blob/TagValue") is None
    assert new.findtext("NextMarker") == ""
    old = raw.send("GET", "/", query, version="2020-02-10").xml()
    assert old.findtext("Blobs/Blob/TagValue") == label
    assert old.find("Blobs/Blob/Tags") is None


def test_finding_needs_its_own_letter(account, service, container, label):
    container.upload_blob("b", b"", tags={"label": label})
    where = f"label = '{label}'"

    def by_account(permission):
        sas = generate_account_sas(
            account.name, account.key, resource_types="sco", permission=permission, expiry=expiry()
        )
        return BlobServiceClient(service.url, credential=sas, retry_total=0)

    def by_container(permission):
        sas = generate_container_sas(
            account.name,
            container.container_name,
            account_key=account.key,
            permission=permission,
            expiry=expiry(),
        )
        return ContainerClient.from_container_url(container.url, credential=sas, retry_total=0)

    for client in (by_account("f"), by_container("f")):
        assert names(client.find_blobs_by_tags(where)) == ["b"]
    for client in (by_account("rlt"), by_container("rlt")):
        with refused(403, "AuthorizationPermissionMismatch"):
            names(client.find_blobs_by_tags(where))
