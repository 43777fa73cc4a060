"""Error codes that no other file tests, each by the only request that leads to it.

`docs/error-codes.md` lists all codes with the file that tests them, and why some are never answered.
"""

import base64
import socket
from datetime import datetime, timedelta, timezone
from email.utils import formatdate

import pytest
from azure.storage.blob import (
    AccountSasPermissions,
    BlobBlock,
    BlobSasPermissions,
    BlobServiceClient,
    ContainerClient,
    PremiumPageBlobTier,
    ResourceTypes,
    generate_account_sas,
    generate_blob_sas,
)
from own_server import own_server
from server_process import KEY as WELL_KNOWN_KEY
from support import Account, readable, refused

OTHER_ACCOUNT, OTHER_KEY = "otheraccount", base64.b64encode(b"o" * 64).decode()
ACCOUNTS = (f"--account=devstoreaccount1:{WELL_KNOWN_KEY}", f"--account={OTHER_ACCOUNT}:{OTHER_KEY}")
MIB, GIB = 1024**2, 1024**3
FUTURE = "2099-01-01T00:00:00Z"


def outcome(answer):
    return answer.status, answer.code


@pytest.fixture
def path(container):
    return f"/{container.container_name}/b"


# Accounts and access


def test_disabled_account():
    with own_server(*ACCOUNTS, f"--disabled-account={OTHER_ACCOUNT}") as connection:
        other = connection.replace(WELL_KNOWN_KEY, OTHER_KEY).replace("devstoreaccount1", OTHER_ACCOUNT)
        with BlobServiceClient.from_connection_string(other, retry_total=0) as client:
            with refused(403, "AccountIsDisabled"):
                client.create_container("theirs")
            with refused(403, "AccountIsDisabled"):
                list(client.list_containers())
        with BlobServiceClient.from_connection_string(connection, retry_total=0) as client:
            source = client.create_container("mine").upload_blob("b", b"x")
            with refused(403, "CannotVerifyCopySource"):
                source.start_copy_from_url(source.url.replace("devstoreaccount1", OTHER_ACCOUNT))


def test_policies_are_not_for_signatures(account, container):
    sas = generate_account_sas(
        account.name, account.key, ResourceTypes(container=True), AccountSasPermissions(read=True, write=True),
        datetime.now(timezone.utc) + timedelta(hours=1),
    )
    with ContainerClient(container.primary_endpoint.split("?")[0].rsplit("/", 1)[0], container.container_name,
                         credential=sas, retry_total=0) as client:
        with refused(403, "AuthorizationFailure"):
            client.get_container_access_policy()


def test_the_secondary_is_not_written_to(raw, account, container):
    target = f"/{account.name}-secondary/{container.container_name}/b"
    sent = {"x-ms-date": formatdate(usegmt=True), "x-ms-version": raw.version}
    sent |= {"x-ms-blob-type": "BlockBlob", "Content-Length": "1"}
    sent["Authorization"] = raw.authorization("PUT", target, "", sent)
    answer = raw.exchange("PUT", target, sent, b"x")
    assert outcome(answer) == (403, "InsufficientAccountPermissions")


@pytest.mark.parametrize(
    ("signature", "status", "code"),
    [
        ("sv=2019-12-12&sr=d&sdd=1", 409, "DirectorySasNotSupportedVersion"),
        ("sv=2020-02-10&sr=d", 403, "QueryParameterSasMandatory"),
        ("sv=2020-02-10&sr=d&sdd=5", 403, "QueryParameterSddInvalid"),
        ("sv=2020-02-10&sr=d&sdd=one", 403, "QueryParameterSddInvalid"),
    ],
)
def test_signature_for_a_directory(raw, path, signature, status, code):
    answer = raw.send("GET", path, f"{signature}&sp=r&se={FUTURE}&sig={'A' * 43}%3D", sign=False)
    assert outcome(answer) == (status, code)


def test_preflight_that_no_rule_allows(raw, path):
    headers = {"Origin": "http://nobody.example", "Access-Control-Request-Method": "PUT"}
    answer = raw.send("OPTIONS", path, headers=headers, sign=False)
    assert outcome(answer) == (403, "CorsPreflightFailure")


# Requests


def test_method_that_nobody_knows(raw, path):
    assert outcome(raw.send("BREW", path)) == (400, "InvalidHttpVerb")
    assert outcome(raw.send("PATCH", path)) == (405, "UnsupportedHttpVerb")


@pytest.mark.parametrize("broken", ["/c/%zz", "/c/%FF", "/c?comp=%zz", "/c?prefix=%C3%28"])
def test_address_that_cannot_be_read(raw, account, broken):
    target = account.endpoint.path + broken
    answer = raw.exchange("GET", target, {"x-ms-version": raw.version}, None)
    assert outcome(answer) == (400, "RequestUrlFailedToParse")


@pytest.mark.parametrize(
    ("method", "query", "headers"),
    [
        ("PUT", "", {"x-ms-blob-type": "PageBlob", "x-ms-blob-content-length": "512"}),
        ("PUT", "comp=page", {"x-ms-page-write": "clear", "x-ms-range": "bytes=0-511"}),
        ("GET", "comp=pagelist", {}),
    ],
)
def test_versions_before_there_were_page_blobs(raw, path, method, query, headers):
    answer = raw.send(method, path, query, headers, version="2009-07-17")
    assert outcome(answer) == (400, "InvalidVersionForPageBlobOperation")
    answer = raw.send("GET", path, version="2009-07-17")
    assert outcome(answer) == (400, "InvalidHeaderValue")


def test_body_that_does_not_come(account):
    """The client has one second; it sends the first bytes, and then none."""
    with own_server("--body-timeout=300ms") as connection:
        endpoint = Account.of(connection).endpoint
        with BlobServiceClient.from_connection_string(connection, retry_total=0) as client:
            container = client.create_container("slow")
            sas = generate_blob_sas(
                account.name, "slow", "b", account_key=account.key,
                permission=BlobSasPermissions(create=True, write=True),
                expiry=datetime.now(timezone.utc) + timedelta(hours=1),
            )
            with socket.create_connection((endpoint.hostname, endpoint.port), timeout=10) as stream:
                target = f"/{account.name}/slow/b?{sas}"
                stream.sendall(
                    f"PUT {target} HTTP/1.1\r\nHost: {endpoint.hostname}\r\nx-ms-version: 2021-12-02\r\n"
                    f"x-ms-blob-type: BlockBlob\r\nContent-Length: 10\r\n\r\nabc".encode()
                )
                answer = stream.recv(65536).decode()
            assert answer.startswith("HTTP/1.1 500 ")
            assert "x-ms-error-code: OperationTimedOut" in answer
            assert not container.get_blob_client("b").exists()


# States of blobs


@pytest.mark.parametrize("query", ["comp=metadata", "comp=properties", "comp=snapshot", "comp=undelete", "comp=expiry"])
def test_what_is_for_no_state_but_the_current(raw, blob, query):
    snapshot = blob.create_snapshot()["snapshot"]
    path = f"/{blob.container_name}/a%20blob"
    answer = raw.send("PUT", path, f"{query}&snapshot={snapshot}", {"x-ms-expiry-option": "NeverExpire"})
    assert outcome(answer) == (400, "InvalidOperation")
    answer = raw.send("PUT", path, f"{query}&versionid={snapshot}", {"x-ms-expiry-option": "NeverExpire"})
    assert outcome(answer) == (400, "UnsupportedQueryParameter")


def test_deletion_for_good_where_it_is_not_allowed(raw, blob):
    snapshot = blob.create_snapshot()["snapshot"]
    answer = raw.send("DELETE", f"/{blob.container_name}/a%20blob", f"snapshot={snapshot}&deletetype=permanent")
    assert outcome(answer) == (409, "BlobOperationNotSupported")


def test_page_blob_in_a_tier_has_its_limits(container):
    blob = container.get_blob_client("premium")
    blob.create_page_blob(512, premium_page_blob_tier=PremiumPageBlobTier.P4)
    blob.resize_blob(32 * GIB)
    with refused(409, "ContentLengthLargerThanTierLimit"):
        blob.resize_blob(32 * GIB + 512)
    blob.create_snapshot()
    with refused(409, "SnapshotOperationRateExceeded"):
        blob.create_snapshot()
    plain = container.get_blob_client("plain")
    plain.create_page_blob(512)
    plain.create_snapshot()
    plain.create_snapshot()


# Copies


@pytest.mark.parametrize("kind", ["page", "append"])
def test_source_of_a_type_that_is_not_copied(container, kind):
    source = container.get_blob_client(kind)
    if kind == "page":
        source.create_page_blob(512)
    else:
        source.create_append_blob()
    with refused(409, "InvalidSourceBlobType"):
        container.get_blob_client("copy").start_copy_from_url(readable(source), requires_sync=True)
    if kind == "append":
        snapshot = source.create_snapshot()["snapshot"]
        with refused(409, "InvalidSourceBlobType"):
            container.get_blob_client("copy").start_copy_from_url(
                f"{source.url}?snapshot={snapshot}", incremental_copy=True
            )


def test_source_of_an_incremental_copy_that_is_no_blob_here(container):
    url = "https://account.blob.example.com/container/blob?snapshot=2020-01-01T00:00:00.0000000Z"
    with refused(409, "InvalidSourceBlobUrl"):
        container.get_blob_client("copy").start_copy_from_url(url, incremental_copy=True)


def test_copies_of_before_2012_stay_in_their_account(raw, account, container, blob):
    """A source was named without its host then."""
    path, name = f"/{container.container_name}/copy", f"{container.container_name}/a%20blob"
    for source, expected in [
        (f"/{account.name}/{name}", None),
        (blob.url, None),
        (f"/{OTHER_ACCOUNT}/{name}", "CopyAcrossAccountsNotSupported"),
        (blob.url.replace(account.name, OTHER_ACCOUNT), "CopyAcrossAccountsNotSupported"),
        ("http://elsewhere.example/blob", "CopyAcrossAccountsNotSupported"),
    ]:
        answer = raw.send("PUT", path, headers={"x-ms-copy-source": source}, version="2011-08-18")
        if expected is None:
            assert answer.status in (201, 202)
            assert container.download_blob("copy").readall() == b"the first content"
            container.delete_blob("copy")
        else:
            assert outcome(answer) == (400, expected)
    answer = raw.send("PUT", path, headers={"x-ms-copy-source": f"/{account.name}/{name}"})
    assert outcome(answer) == (400, "InvalidHeaderValue")


# Leases


def test_lease_of_before_2012_is_broken_once(raw, blob):
    path = f"/{blob.container_name}/a%20blob"
    lease = {"x-ms-lease-action": "acquire"}
    assert raw.send("PUT", path, "comp=lease", lease, version="2011-08-18").status == 201
    lease = {"x-ms-lease-action": "break"}
    assert raw.send("PUT", path, "comp=lease", lease, version="2011-08-18").status == 202
    answer = raw.send("PUT", path, "comp=lease", lease, version="2011-08-18")
    assert outcome(answer) == (409, "LeaseAlreadyBroken")
    assert raw.send("PUT", path, "comp=lease", lease).status == 202


# Blocks


def test_blocks_that_earlier_versions_do_not_know(raw, container):
    """A block of more than 100 MiB, which no client has to send: it is read from an empty page blob."""
    source = container.get_blob_client("source")
    source.create_page_blob(104 * MIB)
    blob = container.get_blob_client("blocks")
    blob.stage_block_from_url("a", readable(source), source_offset=0, source_length=100 * MIB + 512)
    path = f"/{container.container_name}/blocks"
    for committed in (False, True):
        if committed:
            blob.commit_block_list([BlobBlock("a")])
        listed = "comp=blocklist&blocklisttype=all"
        assert outcome(raw.send("GET", path, listed, version="2019-07-07")) == (409, "FeatureVersionMismatch")
        assert raw.send("GET", path, listed, version="2019-12-12").status == 200


def test_more_blocks_than_an_append_blob_can_have(account):
    """50,001 of them, sent without waiting for the answers, to a server that keeps them in memory."""
    with own_server() as connection:
        with BlobServiceClient.from_connection_string(connection, retry_total=0) as client:
            log = client.create_container("logs").get_blob_client("log")
            log.create_append_blob()
            append_many(account, log.url, 50_000)
            properties = log.get_blob_properties()
            assert (properties.size, properties.append_blob_committed_block_count) == (50_000, 50_000)
            with refused(409, "BlockCountExceedsLimit"):
                log.append_block(b"x")
            assert log.get_blob_properties().size == 50_000


def append_many(account, url, count):
    sas = generate_blob_sas(
        account.name, "logs", "log", account_key=account.key, permission=BlobSasPermissions(add=True, write=True),
        expiry=datetime.now(timezone.utc) + timedelta(hours=1),
    )
    host, port = url.split("/")[2].split(":")
    request = (
        f"PUT /{account.name}/logs/log?comp=appendblock&{sas} HTTP/1.1\r\nHost: {host}:{port}\r\n"
        "x-ms-version: 2021-12-02\r\nContent-Length: 1\r\n\r\nx"
    ).encode()
    batch = 500
    with socket.create_connection((host, int(port)), timeout=60) as stream:
        for _ in range(count // batch):
            stream.sendall(request * batch)
            answers, rest = 0, b""
            while answers < batch:
                rest += stream.recv(1 << 20)
                answers += rest.count(b"HTTP/1.1 201 Created\r\n")
                assert b"HTTP/1.1 4" not in rest, rest
                rest = rest[-30:].rpartition(b"HTTP/1.1 201 Created\r\n")[2]
