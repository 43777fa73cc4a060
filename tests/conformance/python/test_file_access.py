"""Authorization of file operations: service SAS, account SAS, stored policies, user delegation, tokens."""

from datetime import timedelta

import pytest
from azure.storage.fileshare import (
    AccessPolicy,
    AccountSasPermissions,
    FileSasPermissions,
    ResourceTypes,
    ShareFileClient,
    ShareSasPermissions,
    generate_account_sas,
    generate_file_sas,
    generate_share_sas,
)
from support import refused
from test_access import HOUR, now, unsigned_token


@pytest.fixture
def file(share):
    share.create_directory("d")
    client = share.get_file_client("d/file")
    client.upload_file(b"content")
    return client


def with_sas(file, sas, path="d/file"):
    account = file.url.split("/" + file.share_name)[0]
    return ShareFileClient(account, file.share_name, path, credential=sas, retry_total=0)


def file_sas(account, file, permission, **more):
    more = {"expiry": now() + HOUR} | more
    return generate_file_sas(
        account.name, file.share_name, "d/file".split("/"), account.key, permission=permission, **more
    )


def test_a_signature_for_a_file(file_account, share, file):
    reader = with_sas(file, file_sas(file_account, file, FileSasPermissions(read=True)))
    assert reader.download_file().readall() == b"content"
    for call in (
        lambda: reader.upload_range(b"x", 0, 1),
        lambda: reader.set_file_metadata({}),
        reader.delete_file,
        lambda: reader.create_file(1),
    ):
        with refused(403, "AuthorizationPermissionMismatch"):
            call()
    writer = with_sas(file, file_sas(file_account, file, FileSasPermissions(write=True)))
    writer.upload_range(b"x", 0, 1)
    writer.create_file(7)
    with refused(403, "AuthorizationPermissionMismatch"):
        writer.download_file()
    with_sas(file, file_sas(file_account, file, FileSasPermissions(delete=True))).delete_file()
    other = share.get_file_client("d/other")
    other.create_file(1)
    stranger = with_sas(other, file_sas(file_account, file, FileSasPermissions(read=True)), "d/other")
    with refused(403, "AuthenticationFailed"):
        stranger.get_file_properties()


def test_to_create_is_not_to_replace(file_account, share, file):
    creator = with_sas(file, file_sas(file_account, file, FileSasPermissions(create=True)))
    with pytest.raises(Exception) as caught:
        creator.create_file(1)
    assert caught.value.status_code in (403, 409)
    file.delete_file()
    creator.create_file(1)


def test_a_signature_for_a_share(file_account, share, file):
    sas = generate_share_sas(
        file_account.name,
        share.share_name,
        file_account.key,
        permission=ShareSasPermissions(read=True, list=True),
        expiry=now() + HOUR,
    )
    from azure.storage.fileshare import ShareClient

    account = share.url.split("/" + share.share_name)[0]
    with ShareClient(account, share.share_name, credential=sas, retry_total=0) as client:
        assert [entry["name"] for entry in client.list_directories_and_files("d")] == ["file"]
        assert client.get_file_client("d/file").download_file().readall() == b"content"
        with refused(403, "AuthorizationPermissionMismatch"):
            client.create_directory("e")


def test_a_signature_overrides_headers(file_account, file):
    sas = file_sas(
        file_account, file, FileSasPermissions(read=True), content_type="text/html", cache_control="no-store"
    )
    settings = with_sas(file, sas).get_file_properties().content_settings
    assert (settings.content_type, settings.cache_control) == ("text/html", "no-store")


def test_a_stored_policy(file_account, share, file):
    policy = AccessPolicy(permission=ShareSasPermissions(read=True), expiry=now() + HOUR, start=now() - HOUR)
    share.set_share_access_policy({"readers": policy})
    sas = generate_file_sas(
        file_account.name, share.share_name, ["d", "file"], file_account.key, policy_id="readers"
    )
    reader = with_sas(file, sas)
    assert reader.download_file().readall() == b"content"
    with refused(403, "AuthorizationPermissionMismatch"):
        reader.delete_file()
    share.set_share_access_policy({"empty": AccessPolicy()})
    [empty] = share.get_share_access_policy()["signed_identifiers"]
    assert (empty.id, empty.access_policy) == ("empty", None)
    with refused(403, "AuthenticationFailed"):
        reader.download_file()


def test_a_signature_for_the_account(file_account, share, file):
    sas = generate_account_sas(
        file_account.name,
        file_account.key,
        ResourceTypes(object=True),
        AccountSasPermissions(read=True),
        now() + HOUR,
    )
    reader = with_sas(file, sas)
    assert reader.download_file().readall() == b"content"
    with refused(403, "AuthorizationPermissionMismatch"):
        reader.upload_range(b"x", 0, 1)


def test_a_rename_needs_both_signatures(file_account, file):
    sas = generate_share_sas(
        file_account.name,
        file.share_name,
        file_account.key,
        permission=ShareSasPermissions(write=True, create=True, delete=True, read=True),
        expiry=now() + HOUR,
    )
    renamed = with_sas(file, sas).rename_file("d/renamed")
    assert renamed.download_file().readall() == b"content"
    create_only = generate_share_sas(
        file_account.name,
        file.share_name,
        file_account.key,
        permission=ShareSasPermissions(read=True, create=True),
        expiry=now() + HOUR,
    )
    thief = with_sas(file, create_only, "d/renamed")
    with refused(403, "AuthorizationPermissionMismatch"):
        thief.rename_file("d/stolen")


def test_a_source_needs_its_own_signature(file_account, share, file):
    copy = share.get_file_client("d/copy")
    sas = generate_file_sas(
        file_account.name,
        share.share_name,
        ["d", "copy"],
        file_account.key,
        permission=FileSasPermissions(write=True, create=True),
        expiry=now() + HOUR,
    )
    writer = with_sas(copy, sas, "d/copy")
    with pytest.raises(Exception) as caught:
        writer.start_copy_from_url(file.url)
    assert caught.value.status_code in (401, 403)
    source = f"{file.url}?{file_sas(file_account, file, FileSasPermissions(read=True))}"
    writer.start_copy_from_url(source)
    properties = copy.get_file_properties()
    assert properties.copy.source == file.url
    assert copy.download_file().readall() == b"content"


def test_without_credentials(file_raw, file):
    answer = file_raw.send("GET", f"/{file.share_name}/d/file", sign=False)
    assert (answer.status, answer.code) in ((401, "NoAuthenticationInformation"), (404, "ResourceNotFound"))


# Tokens


def by_token(raw, method, path, query="", headers=None, body=None, version=""):
    headers = {"Authorization": f"Bearer {unsigned_token()}", "x-ms-file-request-intent": "backup"} | (headers or {})
    return raw.send(method, path, query, headers, body, sign=False, version=version)


def test_a_token_does_what_roles_allow(unsigned_tokens, file_raw, file):
    path = f"/{file.share_name}/d"
    assert by_token(file_raw, "GET", f"{path}/file").body == b"content"
    assert by_token(file_raw, "GET", path, "restype=directory&comp=list").status == 200
    headers = {"x-ms-type": "file", "x-ms-content-length": "5"}
    assert by_token(file_raw, "PUT", f"{path}/new", headers=headers).status == 201
    headers = {"x-ms-write": "update", "x-ms-range": "bytes=0-4"}
    assert by_token(file_raw, "PUT", f"{path}/new", "comp=range", headers, b"12345").status == 201
    assert by_token(file_raw, "DELETE", f"{path}/new").status == 202
    assert by_token(file_raw, "PUT", f"{path}/sub", "restype=directory").status == 201


def test_a_token_says_what_it_intends(unsigned_tokens, file_raw, file):
    path = f"/{file.share_name}/d/file"
    answer = by_token(file_raw, "GET", path, headers={"x-ms-file-request-intent": None})
    assert (answer.status, answer.code) == (400, "MissingRequiredHeader")
    answer = by_token(file_raw, "GET", path, headers={"x-ms-file-request-intent": "theft"})
    assert (answer.status, answer.code) == (400, "InvalidHeaderValue")


def test_tokens_are_taken_from_2022_11_02(unsigned_tokens, file_raw, file):
    path = f"/{file.share_name}/d/file"
    assert by_token(file_raw, "GET", path, version="2021-12-02").status in (400, 401, 403)
    assert by_token(file_raw, "GET", path, version="2022-11-02").status == 200


def test_a_user_delegation_signature(unsigned_tokens, file_account, file_raw, file):
    start, expiry = now() - timedelta(minutes=5), now() + HOUR
    text = lambda moment: moment.strftime("%Y-%m-%dT%H:%M:%SZ")
    body = f"<KeyInfo><Start>{text(start)}</Start><Expiry>{text(expiry)}</Expiry></KeyInfo>".encode()
    query = "restype=service&comp=userdelegationkey"
    answer = by_token(file_raw, "POST", "/", query, {"x-ms-file-request-intent": None}, body)
    assert answer.status == 200, answer.body
    from azure.storage.fileshare import UserDelegationKey

    key = UserDelegationKey()
    xml = answer.xml()
    key.signed_oid, key.signed_tid = xml.findtext("SignedOid"), xml.findtext("SignedTid")
    key.signed_start, key.signed_expiry = xml.findtext("SignedStart"), xml.findtext("SignedExpiry")
    key.signed_service, key.signed_version = xml.findtext("SignedService"), xml.findtext("SignedVersion")
    key.value = xml.findtext("Value")
    sas = generate_file_sas(
        file_account.name,
        file.share_name,
        ["d", "file"],
        user_delegation_key=key,
        permission=FileSasPermissions(read=True),
        expiry=expiry,
    )
    reader = with_sas(file, sas)
    assert reader.download_file().readall() == b"content"
    with refused(403, "AuthorizationPermissionMismatch"):
        reader.delete_file()
