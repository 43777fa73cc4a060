"""Authorization: stored policies, every kind of SAS, anonymous reading, Shared Key by hand, tokens."""

import base64
import json
import time
from datetime import datetime, timedelta, timezone
from email.utils import format_datetime

import pytest
from azure.core.exceptions import HttpResponseError
from azure.storage.blob import (
    AccessPolicy,
    AccountSasPermissions,
    BlobClient,
    BlobSasPermissions,
    BlobServiceClient,
    ContainerClient,
    ContainerSasPermissions,
    PublicAccess,
    ResourceTypes,
    UserDelegationKey,
    generate_account_sas,
    generate_blob_sas,
    generate_container_sas,
)
from support import quoted, refused, unique

HOUR = timedelta(hours=1)


def now():
    return datetime.now(timezone.utc)


@pytest.fixture
def url(account):
    return account.endpoint.geturl().rstrip("/")


def with_sas(client, sas):
    """The same blob or container, with the token as the only credential."""
    base = client.url.split("?")[0]
    kind = BlobClient.from_blob_url if isinstance(client, BlobClient) else ContainerClient.from_container_url
    return kind(base, credential=sas, retry_total=0)


def blob_sas(account, client, **arguments):
    arguments = {"account_key": account.key, "expiry": now() + HOUR} | arguments
    return generate_blob_sas(account.name, client.container_name, client.blob_name, **arguments)


def container_sas(account, client, **arguments):
    arguments = {"account_key": account.key, "expiry": now() + HOUR} | arguments
    return generate_container_sas(account.name, client.container_name, **arguments)


def account_sas(account, permission, types="sco", **arguments):
    arguments = {"expiry": now() + HOUR} | arguments
    return generate_account_sas(
        account.name,
        account.key,
        ResourceTypes.from_string(types),
        AccountSasPermissions.from_string(permission),
        **arguments,
    )


def status_of(call):
    try:
        call()
        return 200
    except HttpResponseError as error:
        return error.status_code


# Stored access policies


def test_policies_and_public_level_come_back(container):
    start, expiry = now().replace(microsecond=0), now().replace(microsecond=0) + HOUR
    policies = {
        "read-only": AccessPolicy(ContainerSasPermissions(read=True), expiry, start),
        "empty": AccessPolicy(),
    }
    container.set_container_access_policy(policies, public_access=PublicAccess.CONTAINER)
    stored = container.get_container_access_policy()
    assert stored["public_access"] == "container"
    by_id = {item.id: item.access_policy for item in stored["signed_identifiers"]}
    assert set(by_id) == {"read-only", "empty"}
    assert by_id["read-only"].permission == "r"
    assert by_id["empty"] is None
    assert container.get_container_properties().public_access == "container"
    container.set_container_access_policy({})
    stored = container.get_container_access_policy()
    assert (stored["public_access"], stored["signed_identifiers"]) == (None, [])


def test_six_policies_are_refused(container, raw):
    items = "".join(f"<SignedIdentifier><Id>{n}</Id><AccessPolicy/></SignedIdentifier>" for n in range(6))
    body = f"<SignedIdentifiers>{items}</SignedIdentifiers>".encode()
    answer = raw.send("PUT", f"/{container.container_name}", "restype=container&comp=acl", body=body)
    assert answer.status == 400


def test_setting_policies_changes_the_etag(container):
    before = container.get_container_properties().etag
    container.set_container_access_policy({})
    assert container.get_container_properties().etag != before


def test_sas_by_stored_policy_follows_the_policy(account, container, blob):
    policy = AccessPolicy(ContainerSasPermissions(read=True), now() + HOUR, now() - HOUR)
    container.set_container_access_policy({"p": policy})
    client = with_sas(blob, blob_sas(account, blob, policy_id="p", expiry=None))
    assert client.download_blob().readall() == b"the first content"
    with refused(403, "AuthorizationPermissionMismatch"):
        client.delete_blob()
    container.set_container_access_policy({})
    # The service may take 30 seconds to forget a policy.
    deadline = time.monotonic() + 35
    while True:
        answer = status_of(client.download_blob)
        if answer == 403 or time.monotonic() > deadline:
            break
        time.sleep(1)
    assert answer == 403


# Service SAS


def test_blob_sas_gives_what_its_letters_say(account, container):
    calls = {
        "r": lambda client: client.download_blob().readall(),
        "w": lambda client: client.set_blob_metadata({"a": "1"}),
        "d": lambda client: client.delete_blob(),
    }
    for letter in "rwd":
        for other, call in calls.items():
            blob = container.get_blob_client(f"{letter}-{other}")
            blob.upload_blob(b"x")
            client = with_sas(blob, blob_sas(account, blob, permission=letter))
            if letter == other:
                call(client)
            else:
                with refused(403, "AuthorizationPermissionMismatch"):
                    call(client)


def test_create_permission_cannot_overwrite(account, container):
    blob = container.get_blob_client("new")
    client = with_sas(blob, blob_sas(account, blob, permission="c"))
    client.upload_blob(b"first", overwrite=True)
    with refused(403, "UnauthorizedBlobOverwrite"):
        client.upload_blob(b"second", overwrite=True)
    assert blob.download_blob().readall() == b"first"


def test_container_sas_reaches_its_blobs_only(account, container, service):
    container.upload_blob("b", b"x")
    permission = ContainerSasPermissions(read=True, list=True, write=True)
    client = with_sas(container, container_sas(account, container, permission=permission))
    assert [item.name for item in client.list_blobs()] == ["b"]
    client.upload_blob("c", b"y")
    assert client.download_blob("c").readall() == b"y"
    with refused(403, "AuthorizationPermissionMismatch"):
        client.delete_blob("c")
    other = service.create_container(unique("other"))
    sas = container_sas(account, container, permission=permission)
    with refused(403, "AuthenticationFailed"):
        list(with_sas(other, sas).list_blobs())
    other.delete_container()


def test_service_sas_never_manages_containers(account, container):
    sas = container_sas(account, container, permission=ContainerSasPermissions.from_string("racwdl"))
    client = with_sas(container, sas)
    for call in (
        client.get_container_properties,
        client.delete_container,
        lambda: client.set_container_metadata({"a": "1"}),
        client.get_container_access_policy,
        lambda: client.set_container_access_policy({}),
    ):
        assert status_of(call) == 403
    assert container.exists()


@pytest.mark.parametrize("start, end", [(-2, -1), (1, 2)], ids=["expired", "not yet valid"])
def test_sas_outside_its_time_is_refused(account, blob, start, end):
    sas = blob_sas(account, blob, permission="r", start=now() + start * HOUR, expiry=now() + end * HOUR)
    with refused(403, "AuthenticationFailed"):
        with_sas(blob, sas).download_blob()


def test_sas_is_bound_to_its_address_and_protocol(account, blob):
    with refused(403, "AuthorizationSourceIPMismatch"):
        with_sas(blob, blob_sas(account, blob, permission="r", ip="10.1.2.3")).download_blob()
    assert with_sas(blob, blob_sas(account, blob, permission="r", ip="127.0.0.0-127.255.255.255")).exists()
    if account.endpoint.scheme == "http":
        with refused(403, "AuthorizationProtocolMismatch"):
            with_sas(blob, blob_sas(account, blob, permission="r", protocol="https")).download_blob()
    assert with_sas(blob, blob_sas(account, blob, permission="r", protocol="https,http")).exists()


def test_every_changed_field_breaks_the_signature(account, blob):
    sas = blob_sas(account, blob, permission="r")
    fields = dict(part.split("=", 1) for part in sas.split("&"))
    changes = {"sp": "rw", "se": "2099-01-01T00%3A00%3A00Z", "sr": "c", "sig": "AAAA", "sv": "2019-12-12"}
    for name, value in changes.items():
        changed = "&".join(f"{key}={text}" for key, text in (fields | {name: value}).items())
        with refused(403, "AuthenticationFailed"):
            with_sas(blob, changed).download_blob()


def test_sas_overrides_response_headers(account, blob):
    sas = blob_sas(
        account,
        blob,
        permission="r",
        cache_control="no-store",
        content_disposition="attachment; filename=x",
        content_encoding="identity",
        content_language="fr",
        content_type="text/fancy",
    )
    settings = with_sas(blob, sas).get_blob_properties().content_settings
    assert (
        settings.cache_control,
        settings.content_disposition,
        settings.content_encoding,
        settings.content_language,
        settings.content_type,
    ) == ("no-store", "attachment; filename=x", "identity", "fr", "text/fancy")


def test_sas_for_awkward_names(account, container):
    for name in ("with space", "plus+percent%", "ümläut/日本語", "amp&eq="):
        blob = container.get_blob_client(name)
        blob.upload_blob(b"x")
        assert with_sas(blob, blob_sas(account, blob, permission="r")).download_blob().readall() == b"x"


# Account SAS


def test_account_sas_works_for_all_levels(account, url):
    sas = account_sas(account, "rwdlac")
    with BlobServiceClient(url, credential=sas, retry_total=0) as client:
        container = client.create_container(unique("sas"))
        container.upload_blob("b", b"x")
        assert [item.name for item in client.list_containers(name_starts_with=container.container_name)]
        assert [item.name for item in container.list_blobs()] == ["b"]
        assert container.download_blob("b").readall() == b"x"
        container.delete_container()


@pytest.mark.parametrize("types, allowed", [("s", "service"), ("c", "container"), ("o", "object")])
def test_account_sas_is_bound_to_resource_types(account, container, blob, url, types, allowed):
    sas = account_sas(account, "rwdlac", types)
    with BlobServiceClient(url, credential=sas, retry_total=0) as client:
        calls = {
            "service": lambda: list(client.list_containers(name_starts_with="none")),
            "container": lambda: list(client.get_container_client(container.container_name).list_blobs()),
            "object": lambda: client.get_blob_client(container.container_name, blob.blob_name).get_blob_properties(),
        }
        for level, call in calls.items():
            if level == allowed:
                call()
            else:
                with refused(403, "AuthorizationResourceTypeMismatch"):
                    call()


def test_account_sas_for_another_service_is_refused(account, blob):
    sas = account_sas(account, "r", services="q")
    with refused(403, "AuthorizationServiceMismatch"):
        with_sas(blob, sas).get_blob_properties()


def test_account_sas_without_the_letter_is_refused(account, container):
    client = with_sas(container, account_sas(account, "r"))
    with refused(403, "AuthorizationPermissionMismatch"):
        list(client.list_blobs())
    with refused(403, "AuthorizationPermissionMismatch"):
        client.upload_blob("b", b"x")


# Anonymous


@pytest.mark.parametrize("level", [None, PublicAccess.BLOB, PublicAccess.CONTAINER])
def test_anonymous_reads_by_level(container, blob, raw, level):
    container.set_container_access_policy({}, public_access=level)
    path = f"/{container.container_name}"
    blob_path = f"{path}/{quoted(blob.blob_name)}"

    def status(method, path, query=""):
        return raw.send(method, path, query, sign=False).status

    blob_status = 200 if level else 401
    container_status = 200 if level is PublicAccess.CONTAINER else 401
    assert status("GET", blob_path) == blob_status
    assert status("HEAD", blob_path) == blob_status
    assert status("GET", blob_path, "comp=metadata") == blob_status
    assert status("GET", path, "restype=container&comp=list") in (container_status, 404)
    assert status("GET", path, "restype=container") in (container_status, 404)
    assert status("GET", path, "restype=container&comp=list") != 200 or level is PublicAccess.CONTAINER
    assert status("PUT", blob_path, "comp=metadata") in (401, 403, 404)
    assert status("DELETE", blob_path) in (401, 403, 404)
    assert blob.exists()


def test_anonymous_refusal_depends_on_the_version(blob, container, raw):
    path = f"/{container.container_name}/{quoted(blob.blob_name)}"
    answer = raw.send("GET", path, sign=False)
    assert (answer.status, answer.code) == (401, "NoAuthenticationInformation")
    old = raw.send("GET", path, sign=False, version="2015-02-21")
    assert (old.status, old.code) == (404, "ResourceNotFound")


def test_anonymous_refusal_carries_the_challenge_where_tokens_are_taken(unsigned_tokens, blob, container, raw):
    answer = raw.send("GET", f"/{container.container_name}/{quoted(blob.blob_name)}", sign=False)
    assert answer.status == 401
    assert answer.headers["WWW-Authenticate"].startswith("Bearer ")


# Shared Key by hand


def test_wrong_signature_explains_itself(blob, container, raw):
    headers = {"Authorization": f"SharedKey {raw.account.name}:{base64.b64encode(bytes(32)).decode()}"}
    answer = raw.send("GET", f"/{container.container_name}/{quoted(blob.blob_name)}", headers=headers, sign=False)
    assert (answer.status, answer.code) == (403, "AuthenticationFailed")
    assert answer.xml().findtext("AuthenticationErrorDetail")
    assert raw.account.key not in answer.body.decode()


@pytest.mark.parametrize("value", ["SharedKey", "SharedKey nonsense", "Basic dTpw", "SharedKey a:b:c d", "Negotiate"])
def test_malformed_authorization_is_refused(container, raw, value):
    answer = raw.send("GET", f"/{container.container_name}", "restype=container", {"Authorization": value}, sign=False)
    assert answer.status in (400, 401, 403)
    assert answer.code in ("InvalidAuthenticationInfo", "AuthenticationFailed", "NoAuthenticationInformation")


@pytest.mark.parametrize("minutes, status", [(-14, 200), (-16, 403), (14, 200), (16, 403)])
def test_requests_are_taken_within_fifteen_minutes(container, raw, minutes, status):
    date = format_datetime(now() + timedelta(minutes=minutes), usegmt=True)
    answer = raw.send("GET", f"/{container.container_name}", "restype=container", {"x-ms-date": date})
    assert answer.status == status
    if status == 403:
        assert answer.code == "AuthenticationFailed"


# Bearer tokens and user delegation


def unsigned_token():
    def part(value):
        return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()

    claims = {
        "aud": "https://storage.azure.com",
        "iss": "https://sts.windows.net/11111111-2222-3333-4444-555555555555/",
        "tid": "11111111-2222-3333-4444-555555555555",
        "oid": "aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee",
        "nbf": int(time.time()) - 60,
        "iat": int(time.time()) - 60,
        "exp": int(time.time()) + 3600,
    }
    return f"{part({'alg': 'none', 'typ': 'JWT'})}.{part(claims)}."


def user_delegation_key(raw, start, expiry):
    """Sent by hand: the SDK sends tokens over HTTPS only."""
    times = f"<Start>{start:%Y-%m-%dT%H:%M:%SZ}</Start><Expiry>{expiry:%Y-%m-%dT%H:%M:%SZ}</Expiry>"
    return raw.send(
        "POST",
        "/",
        "restype=service&comp=userdelegationkey",
        {"Authorization": f"Bearer {unsigned_token()}"},
        f"<KeyInfo>{times}</KeyInfo>".encode(),
        sign=False,
    )


def test_user_delegation_sas(unsigned_tokens, account, container, blob, raw):
    answer = user_delegation_key(raw, now() - HOUR, now() + HOUR)
    assert answer.status == 200
    fields = {child.tag: child.text for child in answer.xml()}
    key = UserDelegationKey()
    key.signed_oid, key.signed_tid = fields["SignedOid"], fields["SignedTid"]
    key.signed_start, key.signed_expiry = fields["SignedStart"], fields["SignedExpiry"]
    key.signed_service, key.signed_version, key.value = (
        fields["SignedService"],
        fields["SignedVersion"],
        fields["Value"],
    )
    assert (key.signed_oid, key.signed_service) == ("aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee", "b")
    sas = generate_blob_sas(
        account.name,
        container.container_name,
        blob.blob_name,
        user_delegation_key=key,
        permission=BlobSasPermissions(read=True),
        expiry=now() + HOUR,
    )
    client = with_sas(blob, sas)
    assert client.download_blob().readall() == b"the first content"
    with refused(403, "AuthorizationPermissionMismatch"):
        client.delete_blob()
    with refused(403, "AuthenticationFailed"):
        with_sas(blob, sas.replace("sp=r", "sp=rw")).download_blob()


def test_user_delegation_key_is_refused_for_more_than_seven_days(unsigned_tokens, raw):
    assert user_delegation_key(raw, now(), now() + timedelta(days=8)).status == 400
    assert user_delegation_key(raw, now(), now() - HOUR).status == 400


def test_user_delegation_key_is_only_for_tokens(raw):
    answer = raw.send("POST", "/", "restype=service&comp=userdelegationkey", body=b"<KeyInfo/>")
    assert answer.status == 403


def test_bearer_token_reads_a_blob(unsigned_tokens, container, blob, raw):
    path = f"/{container.container_name}/{quoted(blob.blob_name)}"
    answer = raw.send("GET", path, headers={"Authorization": f"Bearer {unsigned_token()}"}, sign=False)
    assert (answer.status, answer.body) == (200, b"the first content")


def test_broken_bearer_token_is_refused(container, blob, raw):
    path = f"/{container.container_name}/{quoted(blob.blob_name)}"
    for token in ("", "x", "a.b.c", unsigned_token()[:-20] + "AAAA."):
        answer = raw.send("GET", path, headers={"Authorization": f"Bearer {token}"}, sign=False)
        assert answer.status in (400, 401, 403)
