"""Set Blob Expiry and the expiry of new blobs, which the SDK for blobs does not have."""

import time
from datetime import datetime, timedelta, timezone
from email.utils import format_datetime

import pytest
from support import quoted, readable, refused


def set_expiry(raw, blob, option, expiry_time=None):
    path = f"/{blob.container_name}/{quoted(blob.blob_name)}"
    headers = {"x-ms-expiry-option": option, "x-ms-expiry-time": expiry_time}
    return raw.send("PUT", path, "comp=expiry", headers)


def in_an_hour():
    return format_datetime(datetime.now(timezone.utc) + timedelta(hours=1), usegmt=True)


def shown(raw, blob):
    path = f"/{blob.container_name}/{quoted(blob.blob_name)}"
    return raw.send("HEAD", path).headers.get("x-ms-expiry-time")


def test_an_expiry_is_set_shown_and_taken_back(raw, blob):
    before = blob.get_blob_properties()
    until = in_an_hour()
    answer = set_expiry(raw, blob, "Absolute", until)
    assert answer.status == 200
    assert answer.headers["ETag"] == blob.get_blob_properties().etag != before.etag
    assert shown(raw, blob) == until
    assert set_expiry(raw, blob, "NeverExpire").status == 200
    assert shown(raw, blob) is None
    for option in ("RelativeToNow", "RelativeToCreation"):
        assert set_expiry(raw, blob, option, "3600000").status == 200
        assert shown(raw, blob) is not None


def test_an_expired_blob_is_gone(raw, container):
    blob = container.upload_blob("b", b"content", tags={"a": "1"})
    other = container.upload_blob("other", b"content")
    assert set_expiry(raw, blob, "RelativeToNow", "500").status == 200
    assert blob.download_blob().readall() == b"content"
    time.sleep(0.6)
    with refused(404, "BlobNotFound"):
        blob.download_blob()
    with refused(404, "BlobNotFound"):
        blob.set_blob_metadata({})
    assert [listed.name for listed in container.list_blobs()] == ["other"]
    assert list(container.find_blobs_by_tags("a = '1'")) == []
    blob.upload_blob(b"again")
    assert blob.download_blob().readall() == b"again"
    assert shown(raw, blob) is None
    assert other.exists()


@pytest.mark.parametrize(
    ("option", "expiry_time", "code"),
    [
        (None, None, "MissingRequiredHeader"),
        ("Someday", "1000", "InvalidHeaderValue"),
        ("NeverExpire", "1000", "InvalidHeaderValue"),
        ("RelativeToNow", None, "MissingRequiredHeader"),
        ("RelativeToNow", "soon", "InvalidHeaderValue"),
        ("RelativeToCreation", "0", "InvalidHeaderValue"),
        ("Absolute", "1000", "InvalidHeaderValue"),
        ("Absolute", "Mon, 01 Jan 2001 00:00:00 GMT", "InvalidHeaderValue"),
    ],
)
def test_what_is_no_expiry_is_refused(raw, blob, option, expiry_time, code):
    answer = set_expiry(raw, blob, option, expiry_time)
    assert (answer.status, answer.code) == (400, code)


def test_no_blob_no_expiry(raw, container):
    answer = set_expiry(raw, container.get_blob_client("missing"), "NeverExpire")
    assert (answer.status, answer.code) == (404, "BlobNotFound")


# New blobs

BLOCK_LIST = b"<BlockList><Latest>YQ==</Latest></BlockList>"
KINDS = {
    "Put Blob, block": ("", {"x-ms-blob-type": "BlockBlob"}, b"content"),
    "Put Blob, page": ("", {"x-ms-blob-type": "PageBlob", "x-ms-blob-content-length": "512"}, b""),
    "Put Blob, append": ("", {"x-ms-blob-type": "AppendBlob"}, b""),
    "Put Block List": ("comp=blocklist", {}, BLOCK_LIST),
    "Put Blob From URL": ("", {"x-ms-blob-type": "BlockBlob"}, b""),
}


@pytest.fixture(params=KINDS.items(), ids=KINDS.keys())
def put_new(request, raw, container):
    """Puts the blob `new` by each operation that creates blobs."""
    kind, (query, headers, body) = request.param
    path = f"/{container.container_name}/new"
    if kind == "Put Blob From URL":
        headers = headers | {"x-ms-copy-source": readable(container.upload_blob("source", b"content"))}

    def send(more, version="2023-08-03"):
        if kind == "Put Block List":
            assert raw.send("PUT", path, "comp=block&blockid=YQ%3D%3D", body=b"content").status == 201
        return raw.send("PUT", path, query, headers | more, body, version=version)

    return send


def test_a_new_blob_expires(raw, container, put_new):
    new = container.get_blob_client("new")
    assert put_new({"x-ms-expiry-option": "RelativeToNow", "x-ms-expiry-time": "500"}).status == 201
    assert shown(raw, new) is not None
    time.sleep(0.6)
    assert not new.exists()
    until = in_an_hour()
    assert put_new({"x-ms-expiry-option": "Absolute", "x-ms-expiry-time": until}).status == 201
    assert shown(raw, new) == until
    assert put_new({"x-ms-expiry-option": "NeverExpire"}).status == 201
    assert shown(raw, new) is None


def test_an_overwrite_takes_the_expiry_away(raw, container, put_new):
    new = container.get_blob_client("new")
    asked = {"x-ms-expiry-option": "RelativeToCreation", "x-ms-expiry-time": "3600000"}
    assert put_new(asked).status == 201
    assert shown(raw, new) is not None
    assert put_new({}).status == 201
    assert shown(raw, new) is None


def test_versions_that_do_not_know_the_expiry_of_new_blobs_pass_over_it(raw, container):
    headers = {"x-ms-blob-type": "BlockBlob", "x-ms-expiry-option": "RelativeToNow", "x-ms-expiry-time": "1"}
    path = f"/{container.container_name}/new"
    assert raw.send("PUT", path, headers=headers, body=b"x", version="2023-05-03").status == 201
    assert shown(raw, container.get_blob_client("new")) is None


@pytest.mark.parametrize(
    ("option", "expiry_time", "code"),
    [
        (None, "1000", "MissingRequiredHeader"),
        ("Someday", "1000", "InvalidHeaderValue"),
        ("NeverExpire", "1000", "InvalidHeaderValue"),
        ("RelativeToNow", None, "MissingRequiredHeader"),
        ("RelativeToCreation", "0", "InvalidHeaderValue"),
        ("Absolute", "Mon, 01 Jan 2001 00:00:00 GMT", "InvalidHeaderValue"),
    ],
)
def test_what_is_no_expiry_of_a_new_blob_stores_nothing(raw, container, option, expiry_time, code):
    headers = {"x-ms-blob-type": "BlockBlob", "x-ms-expiry-option": option, "x-ms-expiry-time": expiry_time}
    answer = raw.send("PUT", f"/{container.container_name}/new", headers=headers, body=b"x")
    assert (answer.status, answer.code) == (400, code)
    assert not container.get_blob_client("new").exists()
