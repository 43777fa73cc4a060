"""Copy Blob, Copy Blob From URL and Abort Copy Blob: what is copied, from where, and by whom."""

import base64
import contextlib
import time
from datetime import datetime, timedelta, timezone

import pytest
from azure.core import MatchConditions
from azure.storage.blob import (
    BlobClient,
    BlobSasPermissions,
    BlobServiceClient,
    ContentSettings,
    PublicAccess,
    StandardBlobTier,
    generate_blob_sas,
)
from copy_source import copy_source
from own_server import own_server
from server_process import KEY as WELL_KNOWN_KEY
from support import base64_text, md5, readable, refused, unique, wait_for
from test_access import unsigned_token

HOUR = timedelta(hours=1)
# Of Put Blob From URL the SDK has no such argument.
COPY_TAGS = {"x-ms-copy-source-tag-option": "COPY"}
OTHER_ACCOUNT, OTHER_KEY = "otheraccount", base64.b64encode(b"o" * 64).decode()
UNSERVED = "http://127.0.0.1:9/nothing"


def sas_url(client, key, permission="r", expiry=HOUR, **arguments):
    name = client.account_name
    expires = datetime.now(timezone.utc) + expiry
    token = generate_blob_sas(
        name, client.container_name, client.blob_name, account_key=key,
        permission=BlobSasPermissions.from_string(permission), expiry=expires, **arguments,
    )
    return f"{client.url.split('?')[0]}?{token}"


@pytest.fixture
def source(container):
    client = container.get_blob_client("the source, ä+b")
    settings = ContentSettings(content_type="text/plain", content_language="de", cache_control="no-cache")
    client.upload_blob(
        b"copied content" * 5000, content_settings=settings, metadata={"Who": "source"}, tags={"t": "source"}
    )
    return client


@pytest.fixture
def destination(container):
    return container.get_blob_client("the destination")


# Copy Blob within the account


def test_a_copy_has_the_bytes_headers_and_metadata_of_its_source_but_not_its_tags(source, destination):
    started = destination.start_copy_from_url(source.url)
    assert started["copy_status"] == "success" and started["copy_id"]
    copied = destination.get_blob_properties()
    assert copied.etag.strip('"') == started["etag"].strip('"')
    assert copied.content_settings.content_type == "text/plain"
    assert copied.content_settings.content_language == "de"
    assert copied.content_settings.cache_control == "no-cache"
    assert copied.content_settings.content_md5 == md5(b"copied content" * 5000)
    assert copied.metadata == {"Who": "source"}
    assert copied.tag_count is None
    assert destination.download_blob().readall() == b"copied content" * 5000
    state = copied.copy
    assert (state.id, state.status) == (started["copy_id"], "success")
    assert state.source == source.url and state.progress == "70000/70000"
    assert state.completion_time is not None and state.status_description is None


def test_metadata_and_tags_that_are_sent_replace_those_of_the_source(source, destination):
    destination.start_copy_from_url(source.url, metadata={"who": "me"}, tags={"a": "b"}, standard_blob_tier=StandardBlobTier.COOL)
    copied = destination.get_blob_properties()
    assert (copied.metadata, copied.tag_count, copied.blob_tier) == ({"who": "me"}, 1, "Cool")


def test_a_copy_stays_when_its_source_changes_or_goes(source, destination):
    destination.start_copy_from_url(source.url)
    source.upload_blob(b"other", overwrite=True)
    assert destination.download_blob().readall() == b"copied content" * 5000
    source.delete_blob()
    assert destination.download_blob().readall() == b"copied content" * 5000
    destination.delete_blob()


def test_an_inline_and_an_empty_blob_are_copied(container, destination):
    for content in (b"small", b""):
        source = container.upload_blob("little", content, overwrite=True)
        destination.start_copy_from_url(source.url)
        assert destination.download_blob().readall() == content


def test_a_blob_is_copied_onto_itself(source):
    before = source.get_blob_properties().etag
    source.start_copy_from_url(source.url, metadata={"now": "this"}, standard_blob_tier=StandardBlobTier.COOL)
    after = source.get_blob_properties()
    assert (after.metadata, after.blob_tier) == ({"now": "this"}, "Cool")
    assert after.etag != before
    assert source.download_blob().readall() == b"copied content" * 5000


def test_the_state_of_a_copy_goes_with_the_next_write(source, destination):
    destination.start_copy_from_url(source.url)
    destination.set_blob_metadata({"a": "b"})
    assert destination.get_blob_properties().copy.id is None


def test_source_conditions(source, destination):
    etag = source.get_blob_properties().etag
    destination.start_copy_from_url(
        source.url, source_etag=etag, source_match_condition=MatchConditions.IfNotModified
    )
    with refused(412, "SourceConditionNotMet"):
        destination.start_copy_from_url(
            source.url, source_etag=etag, source_match_condition=MatchConditions.IfModified
        )
    with refused(412, "SourceConditionNotMet"):
        later = datetime.now(timezone.utc) + HOUR
        destination.start_copy_from_url(source.url, source_if_modified_since=later)
    with refused(412, "SourceConditionNotMet"):
        earlier = datetime.now(timezone.utc) - HOUR
        destination.start_copy_from_url(source.url, source_if_unmodified_since=earlier)


def test_source_conditions_on_tags(raw, container, source):
    path = f"/{container.container_name}/tagged-copy"
    headers = {"x-ms-copy-source": source.url, "x-ms-source-if-tags": "\"t\" = 'source'"}
    assert raw.send("PUT", path, headers=headers).status == 202
    headers["x-ms-source-if-tags"] = "\"t\" = 'other'"
    answer = raw.send("PUT", path, headers=headers)
    assert (answer.status, answer.code) == (412, "ConditionNotMet")
    headers |= {"x-ms-requires-sync": "true", "x-ms-copy-source": readable(source)}
    answer = raw.send("PUT", path, headers=headers)
    assert (answer.status, answer.code) == (412, "ConditionNotMet")


def test_destination_conditions(source, destination):
    destination.start_copy_from_url(source.url)
    etag = destination.get_blob_properties().etag
    with refused(412, "TargetConditionNotMet"):
        destination.start_copy_from_url(source.url, etag=etag, match_condition=MatchConditions.IfModified)
    destination.start_copy_from_url(source.url, etag=etag, match_condition=MatchConditions.IfNotModified)
    with refused(409, "BlobAlreadyExists"):
        destination.start_copy_from_url(source.url, match_condition=MatchConditions.IfMissing)


def test_a_leased_destination_needs_its_id_and_a_lease_without_end(source, destination):
    destination.upload_blob(b"before")
    lease = destination.acquire_lease(lease_duration=15)
    with refused(412, "LeaseIdMissing"):
        destination.start_copy_from_url(source.url)
    with refused(412, "InfiniteLeaseDurationRequired"):
        destination.start_copy_from_url(source.url, destination_lease=lease)
    # It is complete when it is answered, so no lease can end before it.
    destination.start_copy_from_url(readable(source), requires_sync=True, destination_lease=lease)
    lease.release()
    lease = destination.acquire_lease(lease_duration=-1)
    destination.start_copy_from_url(source.url, destination_lease=lease)
    lease.release()


def test_a_leased_source_is_copied(source, destination):
    source.acquire_lease(lease_duration=-1)
    assert destination.start_copy_from_url(source.url)["copy_status"] == "success"


@pytest.mark.parametrize("requires_sync", [True, None])
def test_a_source_that_is_not_there(container, destination, requires_sync):
    missing = readable(container.get_blob_client("missing"))
    with refused(404, "CannotVerifyCopySource") as caught:
        destination.start_copy_from_url(missing, requires_sync=requires_sync)
    headers = caught.value.response.headers
    assert headers["x-ms-copy-source-status-code"] == "404"
    assert headers["x-ms-copy-source-error-code"] == "BlobNotFound"


@pytest.mark.parametrize("url", ["", "nothing", "http://", "ftp://127.0.0.1/c/b", "http://a@127.0.0.1/c/b"])
def test_urls_that_are_none(raw, container, url):
    answer = raw.send("PUT", f"/{container.container_name}/b", headers={"x-ms-copy-source": url})
    assert answer.status == 400, url


def test_a_host_that_is_not_allowed_is_not_asked(destination):
    for requires_sync in (True, None):
        with refused(403, "CannotVerifyCopySource"):
            destination.start_copy_from_url(UNSERVED, requires_sync=requires_sync)
    assert not destination.exists()


def test_a_copy_into_a_container_that_is_not_there(service, source):
    with refused(404, "ContainerNotFound"):
        service.get_blob_client(unique("missing"), "b").start_copy_from_url(source.url)


# Copy Blob From URL


def test_a_synchronous_copy(source, destination):
    copied = destination.start_copy_from_url(readable(source), requires_sync=True, tags={"a": "b"})
    assert copied["copy_status"] == "success"
    assert destination.download_blob().readall() == b"copied content" * 5000
    properties = destination.get_blob_properties()
    assert (properties.metadata, properties.tag_count) == ({"Who": "source"}, 1)
    assert properties.copy.status == "success"


def test_a_synchronous_copy_verifies_the_md5_of_its_source(raw, container, source):
    path = f"/{container.container_name}/verified"
    asked = {"x-ms-copy-source": readable(source), "x-ms-requires-sync": "true"}
    right, wrong = (base64_text(md5(content)) for content in (b"copied content" * 5000, b"other"))
    answer = raw.send("PUT", path, headers=asked | {"x-ms-source-content-md5": right})
    assert (answer.status, answer.headers["Content-MD5"]) == (202, right)
    answer = raw.send("PUT", path, headers=asked | {"x-ms-source-content-md5": wrong})
    assert (answer.status, answer.code) == (400, "Md5Mismatch")
    answer = raw.send("PUT", path, headers=asked | {"x-ms-source-content-md5": "x"})
    assert (answer.status, answer.code) == (400, "InvalidMd5")


def test_tags_are_copied_where_that_is_asked(raw, container, source):
    path = f"/{container.container_name}/tags"
    asked = {"x-ms-copy-source": readable(source), "x-ms-requires-sync": "true", "x-ms-copy-source-tag-option": "COPY"}
    assert raw.send("PUT", path, headers=asked).status == 202
    assert raw.send("HEAD", path).headers["x-ms-tag-count"] == "1"
    answer = raw.send("PUT", path, headers=asked | {"x-ms-tags": "a=b"})
    assert (answer.status, answer.code) == (400, "BothUserTagsAndSourceTagsCopyPresentException")
    asked["x-ms-copy-source-tag-option"] = "REPLACE"
    assert raw.send("PUT", path, headers=asked).status == 202
    assert "x-ms-tag-count" not in raw.send("HEAD", path).headers
    asked["x-ms-copy-source-tag-option"] = "SOME"
    assert raw.send("PUT", path, headers=asked).code == "InvalidHeaderValue"


def test_a_synchronous_copy_has_the_scope_that_is_asked_for(raw, container, source):
    path = f"/{container.container_name}/scoped"
    asked = {"x-ms-copy-source": readable(source), "x-ms-requires-sync": "true", "x-ms-encryption-scope": "scope1"}
    answer = raw.send("PUT", path, headers=asked)
    assert (answer.status, answer.headers["x-ms-encryption-scope"]) == (202, "scope1")
    assert raw.send("HEAD", path).headers["x-ms-encryption-scope"] == "scope1"


def test_nothing_is_pending(source, destination):
    destination.start_copy_from_url(source.url)
    with refused(409, "NoPendingCopyOperation"):
        destination.abort_copy(destination.get_blob_properties().copy.id)


# Incremental Copy Blob


def test_snapshots_of_pages_are_copied_one_after_the_other(container, destination):
    source = container.get_blob_client("disk")
    source.create_page_blob(1024)

    def snapshot_of(letter, offset):
        source.upload_page(letter * 512, offset=offset, length=512)
        return f"{source.url}?snapshot={source.create_snapshot()['snapshot']}"

    first, second = snapshot_of(b"a", 0), snapshot_of(b"b", 512)
    with refused(409, "IncrementalCopySourceMustBeSnapshot"):
        destination.start_copy_from_url(source.url, incremental_copy=True)
    backups = []
    for url in (first, second):
        assert destination.start_copy_from_url(url, incremental_copy=True)["copy_status"] == "success"
        copy = destination.get_blob_properties().copy
        assert copy.incremental_copy and copy.source == url
        backups.append(copy.destination_snapshot)
    with refused(409, "IncrementalCopyOfEarlierVersionSnapshotNotAllowed"):
        destination.start_copy_from_url(first, incremental_copy=True)
    for backup, content in zip(backups, [b"a" * 512 + bytes(512), b"a" * 512 + b"b" * 512]):
        past = container.get_blob_client(destination.blob_name, snapshot=backup)
        assert past.download_blob().readall() == content
    for call in (destination.download_blob, destination.create_snapshot, lambda: destination.resize_blob(512)):
        with refused(409, "OperationNotAllowedOnIncrementalCopyBlob"):
            call()
    ranges, _ = container.get_blob_client(destination.blob_name, snapshot=backups[1]).get_page_ranges(
        previous_snapshot_diff=backups[0]
    )
    assert [(found["start"], found["end"]) for found in ranges] == [(512, 1023)]
    other = container.get_blob_client("other disk")
    other.create_page_blob(512)
    with refused(409, "IncrementalCopyBlobMismatch"):
        url = f"{other.url}?snapshot={other.create_snapshot()['snapshot']}"
        destination.start_copy_from_url(url, incremental_copy=True)
    destination.delete_blob(delete_snapshots="include")


# Who may read the source


def test_the_source_is_read_by_its_own_signature(account, source, destination):
    destination.start_copy_from_url(sas_url(source, account.key))
    shown = destination.get_blob_properties().copy.source
    assert "sig=" not in shown and shown == source.url
    with refused(403, "CannotVerifyCopySource"):
        destination.start_copy_from_url(sas_url(source, account.key, permission="w"))
    with refused(403, "CannotVerifyCopySource"):
        destination.start_copy_from_url(sas_url(source, account.key, expiry=-HOUR))
    # The key of the request does not replace an invalid signature.
    broken = sas_url(source, account.key).replace("sig=", "sig=AAAA")
    with refused(403, "CannotVerifyCopySource"):
        destination.start_copy_from_url(broken)


def test_a_signature_for_the_destination_does_not_open_the_source(account, container, source, destination):
    container.set_container_access_policy({})
    writer = BlobClient.from_blob_url(sas_url(destination, account.key, permission="cw"), retry_total=0)
    for requires_sync in (True, None):
        with refused(401, "CannotVerifyCopySource"):
            writer.start_copy_from_url(source.url, requires_sync=requires_sync)
        writer.start_copy_from_url(sas_url(source, account.key), requires_sync=requires_sync)


def test_a_public_source_needs_no_signature(account, container, source, destination):
    container.set_container_access_policy({}, public_access=PublicAccess.BLOB)
    writer = BlobClient.from_blob_url(sas_url(destination, account.key, permission="cw"), retry_total=0)
    writer.start_copy_from_url(source.url)
    assert destination.download_blob().readall() == b"copied content" * 5000


@contextlib.contextmanager
def two_accounts(*settings):
    """Clients of two accounts on one server."""
    accounts = [f"--account=devstoreaccount1:{WELL_KNOWN_KEY}", f"--account={OTHER_ACCOUNT}:{OTHER_KEY}"]
    with own_server(*accounts, *settings) as connection:
        other = connection.replace(WELL_KNOWN_KEY, OTHER_KEY).replace("devstoreaccount1", OTHER_ACCOUNT)
        with (
            BlobServiceClient.from_connection_string(connection, retry_total=0) as mine,
            BlobServiceClient.from_connection_string(other, retry_total=0) as theirs,
        ):
            yield mine, theirs


@pytest.fixture(scope="module")
def accounts():
    with two_accounts() as clients:
        yield clients


def test_another_account_is_read_by_its_signature_only(accounts):
    mine, theirs = accounts
    source = theirs.create_container(unique("theirs")).upload_blob("secret", b"theirs")
    destination = mine.create_container(unique("mine")).get_blob_client("copy")
    for requires_sync in (True, None):
        with refused(401, "CannotVerifyCopySource"):
            destination.start_copy_from_url(source.url, requires_sync=requires_sync)
        # The key of one account signs nothing of another.
        with refused(403, "CannotVerifyCopySource"):
            destination.start_copy_from_url(sas_url(source, WELL_KNOWN_KEY), requires_sync=requires_sync)
        destination.start_copy_from_url(sas_url(source, OTHER_KEY), requires_sync=requires_sync)
        assert destination.download_blob().readall() == b"theirs"


def test_no_spelling_of_an_address_opens_another_account(accounts):
    mine, theirs = accounts
    container = theirs.create_container(unique("theirs"))
    container.upload_blob("secret", b"theirs")
    destination = mine.create_container(unique("mine")).get_blob_client("copy")
    scheme, _, rest = theirs.url.partition("://")
    port = rest.split("/")[0].rpartition(":")[2]
    inside = f"{container.container_name}/secret"
    for url in [
        f"{scheme}://127.0.0.1:{port}/{OTHER_ACCOUNT}/{inside}",
        f"{scheme}://localhost:{port}/{OTHER_ACCOUNT}/{inside}",
        f"{scheme}://[::1]:{port}/{OTHER_ACCOUNT}/{inside}",
        f"{scheme}://[::ffff:127.0.0.1]:{port}/{OTHER_ACCOUNT}/{inside}",
        f"{scheme}://0.0.0.0:{port}/{OTHER_ACCOUNT}/{inside}",
        f"{scheme}://LOCALHOST.:{port}/{OTHER_ACCOUNT}/{inside}",
        f"{scheme}://{OTHER_ACCOUNT}.blob.localhost:{port}/{inside}",
        f"{scheme}://{OTHER_ACCOUNT.upper()}.BLOB.localhost:{port}/{inside}",
        f"{scheme}://{OTHER_ACCOUNT}-secondary.blob.localhost:{port}/{inside}",
        f"{scheme}://127.0.0.1:{port}/{OTHER_ACCOUNT}-secondary/{inside}",
        f"{scheme}://127.0.0.1:{port}/devstoreaccount1/../{OTHER_ACCOUNT}/{inside}",
        f"{scheme}://127.0.0.1:{port}/devstoreaccount1/%2e%2e/{OTHER_ACCOUNT}/{inside}",
        f"{scheme}://127.0.0.1:{port}//{OTHER_ACCOUNT}/{inside}",
        f"{scheme}://127.0.0.1:{port}/%6ftheraccount/{inside}",
        f"{scheme}://devstoreaccount1.blob.localhost:{port}/{OTHER_ACCOUNT}/{inside}",
        f"https://127.0.0.1:{port}/{OTHER_ACCOUNT}/{inside}",
    ]:
        for requires_sync in (True, None):
            with pytest.raises(Exception) as caught:
                destination.start_copy_from_url(url, requires_sync=requires_sync)
            assert caught.value.status_code in (400, 401, 403, 404, 500), url
            assert not destination.exists(), url


def test_a_token_opens_the_source(unsigned_tokens, account, container, source, destination):
    container.set_container_access_policy({})
    writer = BlobClient.from_blob_url(sas_url(destination, account.key, permission="cw"), retry_total=0)
    writer.start_copy_from_url(source.url, requires_sync=True, source_authorization=f"Bearer {unsigned_token()}")
    assert destination.download_blob().readall() == b"copied content" * 5000
    with refused(401, "CannotVerifyCopySource"):
        writer.start_copy_from_url(source.url, requires_sync=True, source_authorization="Bearer a.b.c")
    with refused(400, "InvalidHeaderValue"):
        writer.start_copy_from_url(source.url, requires_sync=True, source_authorization="Basic x")


# From elsewhere


@pytest.fixture(scope="module")
def elsewhere():
    """A source, where it is, and a server that may read from there."""
    with copy_source() as (source, host), own_server(f"--copy-source-host={host}") as connection:
        with BlobServiceClient.from_connection_string(connection, retry_total=0) as client:
            yield source, f"http://{host}", client.create_container("copies"), connection


@pytest.fixture
def remote(elsewhere):
    source, url, container, _ = elsewhere
    yield source, url, container.get_blob_client(unique("copy"))
    source.go_on.set()


@pytest.fixture(scope="module")
def other_server():
    """A blob with tags on one server, and a container of another that may read from there."""
    with own_server() as theirs, BlobServiceClient.from_connection_string(theirs, retry_total=0) as there:
        source = there.create_container("sources").get_blob_client("tagged")
        source.upload_blob(b"content", tags={"who": "source", "a b": "c+d"})
        host = source.url.split("/")[2]
        with own_server(f"--copy-source-host={host}") as mine:
            with BlobServiceClient.from_connection_string(mine, retry_total=0) as here:
                yield source, here.create_container("copies")


def signed(source, **permissions):
    sas = generate_blob_sas(
        source.account_name, source.container_name, source.blob_name,
        account_key=WELL_KNOWN_KEY, permission=BlobSasPermissions(**permissions),
        expiry=datetime.now(timezone.utc) + HOUR,
    )
    return f"{source.url}?{sas}"


def test_tags_come_from_another_server_too(other_server):
    source, container = other_server
    url = signed(source, read=True, tag=True)
    copied = container.get_blob_client(unique("copied"))
    copied.start_copy_from_url(url, requires_sync=True, tags="COPY")
    put = container.get_blob_client(unique("put"))
    put.upload_blob_from_url(url, headers=COPY_TAGS)
    for blob in (copied, put):
        assert blob.get_blob_tags() == {"who": "source", "a b": "c+d"}
        assert blob.download_blob().readall() == b"content"


def test_tags_of_another_server_need_the_permission_to_read_them(other_server):
    source, container = other_server
    blob = container.get_blob_client(unique("copied"))
    url = signed(source, read=True)
    with refused(403, "CannotVerifyCopySource"):
        blob.start_copy_from_url(url, requires_sync=True, tags="COPY")
    with refused(403, "CannotVerifyCopySource"):
        blob.upload_blob_from_url(url, headers=COPY_TAGS)
    assert not blob.exists()


def test_a_source_that_knows_no_tags_has_none_to_copy(remote):
    source, url, destination = remote
    source.serve("/untagged", b"no document of tags")
    with refused(500, "CannotVerifyCopySource"):
        destination.start_copy_from_url(f"{url}/untagged", requires_sync=True, tags="COPY")
    source.serve("/long", b"x" * 100_000)
    with refused(500, "CannotVerifyCopySource"):
        destination.upload_blob_from_url(f"{url}/long", headers=COPY_TAGS)
    assert not destination.exists()


def status(client):
    return client.get_blob_properties().copy.status


def test_a_blob_comes_from_elsewhere(remote):
    source, url, destination = remote
    content = b"far away" * 100_000
    source.serve("/far", content, Content_Type="text/x-far", x_ms_meta_who="far")
    assert destination.start_copy_from_url(f"{url}/far?sig=secret")["copy_status"] == "pending"
    wait_for(lambda: status(destination) != "pending")
    copied = destination.get_blob_properties()
    assert (copied.copy.status, copied.copy.progress) == ("success", f"{len(content)}/{len(content)}")
    assert "secret" not in copied.copy.source
    assert copied.content_settings.content_type == "text/x-far" and copied.metadata == {"who": "far"}
    assert destination.download_blob().readall() == content


@pytest.mark.parametrize("kind", ["PageBlob", "AppendBlob", "BlockBlob"])
def test_a_blob_from_elsewhere_keeps_its_type(remote, kind):
    source, url, destination = remote
    source.serve("/typed", b"p" * 1024, x_ms_blob_type=kind)
    destination.start_copy_from_url(f"{url}/typed")
    wait_for(lambda: status(destination) == "success")
    assert destination.get_blob_properties().blob_type == kind
    assert destination.download_blob().readall() == b"p" * 1024


def test_while_a_copy_is_pending_its_destination_is_its_own(remote):
    source, url, destination = remote
    source.serve("/slow", b"s" * 400_000)
    source.go_on.clear()
    started = destination.start_copy_from_url(f"{url}/slow")
    assert started["copy_status"] == "pending"
    properties = destination.get_blob_properties()
    assert (properties.size, properties.copy.id) == (0, started["copy_id"])
    assert destination.download_blob().readall() == b""
    for write in [
        lambda: destination.start_copy_from_url(f"{url}/slow"),
        lambda: destination.upload_blob(b"mine", overwrite=True),
        lambda: destination.set_blob_metadata({"a": "b"}),
        lambda: destination.delete_blob(),
        lambda: destination.acquire_lease(),
    ]:
        with refused(409, "PendingCopyOperation"):
            write()
    wait_for(lambda: destination.get_blob_properties().copy.progress == "200000/400000")
    source.go_on.set()
    wait_for(lambda: status(destination) == "success")
    assert destination.download_blob().readall() == b"s" * 400_000
    destination.delete_blob()


def test_a_pending_copy_is_aborted(remote):
    source, url, destination = remote
    source.serve("/endless", b"e" * 400_000)
    source.go_on.clear()
    started = destination.start_copy_from_url(f"{url}/endless", metadata={"kept": "yes"})
    with refused(409, "CopyIdMismatch"):
        destination.abort_copy("11111111-2222-3333-4444-555555555555")
    destination.abort_copy(started["copy_id"])
    properties = destination.get_blob_properties()
    assert (properties.copy.status, properties.size) == ("aborted", 0)
    assert properties.metadata == {"kept": "yes"}
    with refused(409, "NoPendingCopyOperation"):
        destination.abort_copy(started["copy_id"])
    source.go_on.set()
    time.sleep(0.5)
    assert status(destination) == "aborted"
    destination.upload_blob(b"mine", overwrite=True)


def test_a_source_that_changes_fails_the_copy(remote, monkeypatch):
    source, url, destination = remote
    source.serve("/changing", b"one")
    original = source.etags

    class Changing(dict):
        """The ETag changes between the first request and the next."""

        def __init__(self):
            super().__init__(original)
            self.seen = 0

        def __getitem__(self, path):
            return '"v1"' if len(source.asked) <= first else '"v2"'

    first = len(source.asked) + 1
    monkeypatch.setattr(source, "etags", Changing())
    destination.start_copy_from_url(f"{url}/changing")
    wait_for(lambda: status(destination) == "failed")
    copied = destination.get_blob_properties()
    assert copied.copy.status_description.startswith("412 ") and copied.size == 0


def test_a_source_that_is_not_there_elsewhere(remote):
    _, url, destination = remote
    with refused(404, "CannotVerifyCopySource"):
        destination.start_copy_from_url(f"{url}/missing")
    with refused(404, "CannotVerifyCopySource"):
        destination.start_copy_from_url(f"{url}/missing", requires_sync=True)


def test_a_synchronous_copy_from_elsewhere(remote):
    source, url, destination = remote
    source.serve("/near", b"n" * 300_000, Content_Type="text/x-near")
    destination.start_copy_from_url(f"{url}/near", requires_sync=True)
    assert destination.download_blob().readall() == b"n" * 300_000
    copied = destination.get_blob_properties()
    assert (copied.content_settings.content_type, copied.copy.status) == ("text/x-near", "success")
