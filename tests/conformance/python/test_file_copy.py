"""Copy File and Abort Copy File."""

import time
from datetime import datetime, timezone

import pytest
from azure.storage.fileshare import ContentSettings, NTFSAttributes, ShareServiceClient
from copy_source import copy_source
from own_server import own_server
from support import quoted, readable, refused, unique, wait_for

CONTENT = bytes(range(256)) * 100
MOMENT = datetime(2018, 1, 2, 3, 4, 5, tzinfo=timezone.utc)


@pytest.fixture
def source(share):
    client = share.get_file_client("source")
    client.upload_file(
        CONTENT,
        metadata={"of": "source"},
        content_settings=ContentSettings(content_type="text/plain"),
        file_attributes=NTFSAttributes(hidden=True),
        file_creation_time=MOMENT,
        file_last_write_time=MOMENT,
    )
    client.set_http_headers(
        ContentSettings(content_type="text/plain"),
        file_attributes="Hidden",
        file_creation_time=MOMENT,
        file_last_write_time=MOMENT,
    )
    return client


def test_a_file_is_copied(file_raw, share, source):
    copy = share.get_file_client("copy")
    started = copy.start_copy_from_url(source.url)
    assert started["copy_status"] == "success" and started["copy_id"]
    properties = copy.get_file_properties()
    assert copy.download_file().readall() == CONTENT
    assert properties.metadata == {"of": "source"}
    assert properties.content_settings.content_type == "text/plain"
    assert properties.copy.id == started["copy_id"] and properties.copy.status == "success"
    assert properties.copy.source == source.url
    assert properties.copy.progress == f"{len(CONTENT)}/{len(CONTENT)}"
    answer = file_raw.send("HEAD", f"/{share.share_name}/copy")
    assert answer.headers["x-ms-copy-completion-time"]
    source.upload_range(b"changed", 0, 7)
    assert copy.download_file().readall() == CONTENT


def test_metadata_that_is_sent_replaces_that_of_the_source(share, source):
    copy = share.get_file_client("copy")
    copy.start_copy_from_url(source.url, metadata={"own": "1"})
    assert copy.get_file_properties().metadata == {"own": "1"}


def test_properties_are_those_of_a_new_file_of_the_source_or_sent(share, source):
    new, like, own = (share.get_file_client(name) for name in ("new", "like", "own"))
    new.start_copy_from_url(source.url)
    properties = new.get_file_properties()
    assert properties.creation_time.replace(tzinfo=timezone.utc) > MOMENT

    like.start_copy_from_url(
        source.url,
        file_attributes="source",
        file_creation_time="source",
        file_last_write_time="source",
        file_permission="source",
    )
    properties = like.get_file_properties()
    assert properties.file_attributes == "Hidden"
    assert properties.creation_time.replace(tzinfo=timezone.utc) == MOMENT
    assert properties.last_write_time.replace(tzinfo=timezone.utc) == MOMENT
    assert properties.permission_key == source.get_file_properties().permission_key

    own.start_copy_from_url(
        source.url, file_attributes="System", file_creation_time=MOMENT, set_archive_attribute=True
    )
    properties = own.get_file_properties()
    assert properties.file_attributes == "System | Archive"
    assert properties.creation_time.replace(tzinfo=timezone.utc) == MOMENT


def test_a_read_only_target_is_replaced_if_that_is_ignored(share, source):
    copy = share.get_file_client("copy")
    copy.create_file(1, file_attributes=NTFSAttributes(read_only=True))
    with refused(409, "ReadOnlyAttribute"):
        copy.start_copy_from_url(source.url)
    copy.start_copy_from_url(source.url, ignore_read_only=True)
    assert copy.download_file().readall() == CONTENT


def test_a_copy_from_a_snapshot(share, source):
    snapshot = share.create_snapshot()["snapshot"]
    source.delete_file()
    copy = share.get_file_client("copy")
    with refused(404, "CannotVerifyCopySource"):
        copy.start_copy_from_url(source.url)
    copy.start_copy_from_url(f"{source.url}?sharesnapshot={quoted(snapshot)}")
    assert copy.download_file().readall() == CONTENT


def test_a_copy_between_shares(shares, share, source):
    other = shares.create_share(f"{share.share_name}-b")
    try:
        copy = other.get_file_client("copy")
        copy.start_copy_from_url(source.url, file_permission="source", file_attributes="source")
        assert copy.download_file().readall() == CONTENT
        assert copy.get_file_properties().file_attributes == "Hidden"
    finally:
        other.delete_share()


def test_a_blob_becomes_a_file(share, container):
    blob = container.upload_blob("blob", CONTENT, metadata={"of": "blob"})
    copy = share.get_file_client("copy")
    assert copy.start_copy_from_url(blob.url)["copy_status"] == "success"
    assert copy.download_file().readall() == CONTENT
    assert copy.get_file_properties().metadata == {"of": "blob"}
    copy.upload_range(b"written", 10, 7)
    assert copy.download_file(offset=9, length=9).readall() == CONTENT[9:10] + b"written" + CONTENT[17:18]


def test_a_page_blob_becomes_a_file(share, container):
    blob = container.get_blob_client("pages")
    blob.create_page_blob(4096)
    blob.upload_page(b"p" * 512, 1024, 512)
    copy = share.get_file_client("copy")
    copy.start_copy_from_url(blob.url)
    assert copy.download_file().readall() == bytes(1024) + b"p" * 512 + bytes(2560)


def test_a_file_becomes_a_block_of_a_blob(container, source):
    blob = container.get_blob_client("blob")
    blob.stage_block_from_url("AAAA", readable(source), source_offset=10, source_length=20)
    blob.commit_block_list(["AAAA"])
    assert blob.download_blob().readall() == CONTENT[10:30]
    other = container.get_blob_client("other")
    other.upload_blob_from_url(readable(source))
    assert other.download_blob().readall() == CONTENT


def test_a_file_becomes_a_blob(container, source):
    blob = container.get_blob_client("blob")
    assert blob.start_copy_from_url(source.url)["copy_status"] == "success"
    assert blob.download_blob().readall() == CONTENT
    properties = blob.get_blob_properties()
    assert (properties.blob_type, properties.metadata) == ("BlockBlob", {"of": "source"})
    assert (properties.copy.status, properties.copy.source) == ("success", source.url)
    source.upload_range(b"changed", 0, 7)
    assert blob.download_blob().readall() == CONTENT
    with refused(404, "CannotVerifyCopySource"):
        blob.start_copy_from_url(source.url + "none")


def test_nothing_is_to_be_aborted_when_it_has_ended(share, source):
    copy = share.get_file_client("copy")
    started = copy.start_copy_from_url(source.url)
    with refused(409, "NoPendingCopyOperation"):
        copy.abort_copy(started["copy_id"])


def test_what_cannot_be_copied(file_raw, share, source):
    copy = share.get_file_client("copy")
    with refused(404, "CannotVerifyCopySource"):
        copy.start_copy_from_url(source.url + "none")
    with refused(404, "ParentNotFound"):
        share.get_file_client("nowhere/copy").start_copy_from_url(source.url)
    with refused(403, "CannotVerifyCopySource"):
        copy.start_copy_from_url("http://other.example/share/file")
    for headers in (
        {"x-ms-copy-source": "source"},
        {"x-ms-copy-source": source.url, "x-ms-file-attributes": "preserve"},
        {"x-ms-copy-source": source.url, "x-ms-file-permission-copy-mode": "both"},
        {"x-ms-copy-source": source.url, "x-ms-file-copy-set-archive": "yes"},
    ):
        answer = file_raw.send("PUT", f"/{share.share_name}/copy", headers=headers)
        assert (answer.status, answer.code) == (400, "InvalidHeaderValue"), headers
    headers = {"x-ms-copy-source": source.url, "x-ms-file-permission-copy-mode": "override"}
    answer = file_raw.send("PUT", f"/{share.share_name}/copy", headers=headers)
    assert (answer.status, answer.code) == (400, "MissingRequiredHeader")


# From elsewhere


@pytest.fixture(scope="module")
def elsewhere():
    """A source, where it is, and a share of a server that may read from there."""
    with copy_source() as (source, host), own_server(f"--copy-source-host={host}") as connection:
        with ShareServiceClient.from_connection_string(connection, retry_total=0) as client:
            yield source, f"http://{host}", client.create_share("copies")


@pytest.fixture
def remote(elsewhere):
    source, url, share = elsewhere
    yield source, url, share.get_file_client(unique("copy"))
    source.go_on.set()


def status(file) -> str:
    return file.get_file_properties().copy.status


def test_a_file_comes_from_elsewhere(remote):
    source, url, copy = remote
    content = b"far away" * 100_000
    source.serve("/far", content, Content_Type="text/x-far", x_ms_meta_who="far")
    assert copy.start_copy_from_url(f"{url}/far?sig=secret")["copy_status"] == "pending"
    wait_for(lambda: status(copy) != "pending")
    properties = copy.get_file_properties()
    assert (properties.copy.status, properties.copy.progress) == ("success", f"{len(content)}/{len(content)}")
    assert "secret" not in properties.copy.source
    assert properties.content_settings.content_type == "text/x-far" and properties.metadata == {"who": "far"}
    assert copy.download_file().readall() == content


def test_a_pending_copy_is_aborted(remote):
    source, url, copy = remote
    source.serve("/endless", b"e" * 400_000)
    source.go_on.clear()
    started = copy.start_copy_from_url(f"{url}/endless", metadata={"kept": "yes"})
    assert (started["copy_status"], status(copy)) == ("pending", "pending")
    for write in [
        lambda: copy.start_copy_from_url(f"{url}/endless"),
        lambda: copy.upload_range(b"mine", 0, 4),
        lambda: copy.set_file_metadata({"a": "b"}),
        lambda: copy.delete_file(),
    ]:
        with refused(409, "PendingCopyOperation"):
            write()
    with refused(409, "CopyIdMismatch"):
        copy.abort_copy("11111111-2222-3333-4444-555555555555")
    copy.abort_copy(started["copy_id"])
    properties = copy.get_file_properties()
    assert (properties.copy.status, properties.size, properties.metadata) == ("aborted", 0, {"kept": "yes"})
    with refused(409, "NoPendingCopyOperation"):
        copy.abort_copy(started["copy_id"])
    source.go_on.set()
    time.sleep(0.5)
    assert (status(copy), copy.get_file_properties().size) == ("aborted", 0)
    copy.upload_file(b"mine")
    assert copy.download_file().readall() == b"mine"


def test_a_source_elsewhere_that_is_not_there(remote):
    _, url, copy = remote
    with refused(404, "CannotVerifyCopySource"):
        copy.start_copy_from_url(f"{url}/nothing")
