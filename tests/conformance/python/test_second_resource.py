"""Requests that name a second resource: what they came with must be for that one, too."""

import pytest
from azure.storage.blob import BlobBlock, BlobSasPermissions, BlobServiceClient
from azure.storage.fileshare import (
    FileSasPermissions,
    ShareFileClient,
    ShareSasPermissions,
    generate_file_sas,
    generate_share_sas,
)
from own_server import own_azurite
from support import quoted, readable, refused, unique
from test_access import HOUR, blob_sas, now, with_sas


@pytest.fixture
def nfs(shares):
    client = shares.create_share(unique("nfs"), protocols="NFS")
    yield client
    client.delete_share()


def file_sas(account, share, path, letters):
    permission = FileSasPermissions.from_string(letters)
    return generate_file_sas(
        account.name, share.share_name, path.split("/"), account.key, permission=permission, expiry=now() + HOUR
    )


def share_sas(account, share, letters):
    permission = ShareSasPermissions.from_string(letters)
    return generate_share_sas(
        account.name, share.share_name, account.key, permission=permission, expiry=now() + HOUR
    )


def rename(raw, share, source, destination, sas="", source_sas="", directory=False, **headers):
    """With signatures only, as a client that has no key."""
    root = raw.account.endpoint.geturl().rstrip("/") + f"/{share.share_name}"
    query = "restype=directory&comp=rename" if directory else "comp=rename"
    headers = {"x-ms-file-rename-source": f"{root}/{source}?{source_sas}".rstrip("?"), **headers}
    path = f"/{share.share_name}/{destination}"
    return raw.send("PUT", path, f"{query}&{sas}", headers, b"", sign=not sas)


REPLACE = {"x-ms-file-rename-replace-if-exists": "true"}


@pytest.fixture
def secret(share):
    share.create_directory("private")
    client = share.get_file_client("private/secret.txt")
    client.upload_file(b"secret")
    return client


def test_a_signature_for_one_file_takes_no_other(file_account, file_raw, share, secret):
    share.get_file_client("drop.txt").upload_file(b"mine")
    for letters in ("rcd", "rcwd", "c"):
        sas = file_sas(file_account, share, "drop.txt", letters)
        answer = rename(file_raw, share, "private/secret.txt", "drop.txt", sas, **REPLACE)
        assert (answer.status, answer.code) == (403, "AuthorizationFailure"), letters
        # Nor a directory, under a name of its own.
        sas = file_sas(file_account, share, "taken", letters)
        answer = rename(file_raw, share, "private", "taken", sas, directory=True)
        assert answer.status == 403, letters
    assert secret.download_file().readall() == b"secret"
    assert share.get_file_client("drop.txt").download_file().readall() == b"mine"


def test_the_signature_of_the_source_takes_what_it_is_for(file_account, file_raw, share, secret):
    destination = file_sas(file_account, share, "taken.txt", "c")
    for letters, status in (("r", 403), ("c", 403), ("d", 200)):
        source = file_sas(file_account, share, "private/secret.txt", letters)
        answer = rename(file_raw, share, "private/secret.txt", "taken.txt", destination, source)
        assert answer.status == status, (letters, answer.body)
    back = file_sas(file_account, share, "private/secret.txt", "c")
    source = file_sas(file_account, share, "taken.txt", "w")
    assert rename(file_raw, share, "taken.txt", "private/secret.txt", back, source).status == 200


def test_a_signature_for_the_share_takes_what_its_letters_allow(file_account, file_raw, share, secret):
    for letters, status in (("r", 403), ("rc", 403), ("rw", 200)):
        sas = share_sas(file_account, share, letters)
        answer = rename(file_raw, share, "private/secret.txt", "taken.txt", sas)
        assert answer.status == status, (letters, answer.body)
    assert rename(file_raw, share, "private", "public", share_sas(file_account, share, "rw"), directory=True).status == 200


def test_who_may_only_create_replaces_nothing_by_renaming(file_account, file_raw, share, secret):
    other = share.get_file_client("other.txt")
    other.upload_file(b"other")
    sas = share_sas(file_account, share, "cd")
    answer = rename(file_raw, share, "private/secret.txt", "other.txt", sas, **REPLACE)
    assert answer.status in (403, 409), answer.body
    assert other.download_file().readall() == b"other"
    assert rename(file_raw, share, "private/secret.txt", "new.txt", sas, **REPLACE).status == 200


def test_a_hard_link_needs_reading_and_writing_its_target(file_account, nfs):
    nfs.get_file_client("secret").upload_file(b"secret")
    url = nfs.url.rsplit("/", 1)[0]

    def linker(name, sas):
        return ShareFileClient(url, nfs.share_name, name, credential=sas, retry_total=0)

    for letters in ("rcwd", "c"):
        link = linker("link", file_sas(file_account, nfs, "link", letters))
        with refused(403, "AuthorizationFailure"):
            link.create_hardlink("/secret")
    for letters in ("rc", "cw", "rcd"):
        with refused(403, "AuthorizationPermissionMismatch"):
            linker("link", share_sas(file_account, nfs, letters)).create_hardlink("/secret")
    assert not nfs.get_file_client("link").exists()
    linker("link", share_sas(file_account, nfs, "rw")).create_hardlink("/secret")
    assert nfs.get_file_client("link").download_file().readall() == b"secret"


# Sources of the account


def test_from_url_a_source_needs_its_own_signature(raw, container):
    source = container.upload_blob("source", b"s" * 512)
    page = container.get_blob_client("page")
    page.create_page_blob(512)
    container.get_blob_client("log").create_append_blob()
    path = f"/{container.container_name}"
    source_range = {"x-ms-source-range": "bytes=0-511"}
    update = {"x-ms-page-write": "update", "x-ms-range": "bytes=0-511", **source_range}
    for name, query, headers, status in [
        ("put", "", {"x-ms-blob-type": "BlockBlob"}, 201),
        ("copy", "", {"x-ms-requires-sync": "true"}, 202),
        ("block", "comp=block&blockid=YQ%3D%3D", {}, 201),
        ("log", "comp=appendblock", {}, 201),
        ("page", "comp=page", update, 201),
    ]:
        asked = {"x-ms-copy-source": source.url, **headers}
        answer = raw.send("PUT", f"{path}/{name}", query, asked, b"")
        assert (answer.status, answer.code) == (401, "CannotVerifyCopySource"), name
        assert answer.headers["x-ms-copy-source-status-code"] == "401"
        assert answer.headers["x-ms-copy-source-error-code"] == "NoAuthenticationInformation"
        asked["x-ms-copy-source"] = readable(source)
        assert raw.send("PUT", f"{path}/{name}", query, asked, b"").status == status, name


def test_put_range_from_url_a_source_needs_its_own_signature(file_account, file_raw, share):
    source = share.get_file_client("source")
    source.upload_file(b"s" * 512)
    share.get_file_client("ranges").create_file(512)
    every = "bytes=0-511"
    asked = {"x-ms-write": "update", "x-ms-range": every, "x-ms-source-range": every, "x-ms-copy-source": source.url}
    path = f"/{share.share_name}/ranges"
    answer = file_raw.send("PUT", path, "comp=range", asked, b"")
    assert (answer.status, answer.code) == (401, "CannotVerifyCopySource")
    asked["x-ms-copy-source"] += "?" + file_sas(file_account, share, "source", "r")
    assert file_raw.send("PUT", path, "comp=range", asked, b"").status == 201


def test_copies_within_an_account_need_none(container, share):
    source = container.upload_blob("source", b"s")
    assert container.get_blob_client("copy").start_copy_from_url(source.url)["copy_status"] == "success"
    share.get_file_client("source").upload_file(b"f")
    copied = share.get_file_client("copy").start_copy_from_url(share.get_file_client("source").url)
    assert copied["copy_status"] == "success"


def test_under_the_name_of_azurite_the_key_opens_the_source_of_copy_from_url(tmp_path):
    with own_azurite(tmp_path) as connection:
        with BlobServiceClient.from_connection_string(connection, retry_total=0) as service:
            container = service.create_container("copies")
            source = container.upload_blob("source", b"s")
            copy = container.get_blob_client("copy")
            assert copy.start_copy_from_url(source.url, requires_sync=True)["copy_status"] == "success"
            with refused(401, "CannotVerifyCopySource"):
                container.get_blob_client("put").upload_blob_from_url(source.url)


def test_to_create_is_to_stage_what_is_not_there(account, container):
    blob = container.get_blob_client("staged")
    creator = with_sas(blob, blob_sas(account, blob, permission=BlobSasPermissions(create=True)))
    creator.stage_block("a", b"first")
    creator.commit_block_list([BlobBlock("a")])
    assert blob.download_blob().readall() == b"first"
    for call in (lambda: creator.stage_block("b", b"second"), lambda: creator.commit_block_list([BlobBlock("a")])):
        with refused(403, "UnauthorizedBlobOverwrite"):
            call()
    assert blob.download_blob().readall() == b"first"


def test_a_signature_sent_twice_is_refused(raw, account, container):
    container.upload_blob("b", b"x")
    blob = container.get_blob_client("b")
    sas = blob_sas(account, blob, permission=BlobSasPermissions(read=True))
    signature = next(part for part in sas.split("&") if part.startswith("sig="))
    path = f"/{container.container_name}/{quoted('b')}"
    assert raw.send("GET", path, sas, sign=False).status == 200
    answer = raw.send("GET", path, f"{sas}&{signature}", sign=False)
    assert (answer.status, answer.code) == (403, "AuthenticationFailed")
