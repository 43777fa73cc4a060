"""Customer-provided keys and encryption scopes (section 3.12 of the notes on the protocol)."""

import base64
import hashlib
import os

import pytest
from azure.storage.blob import BlobServiceClient, CustomerProvidedEncryptionKey
from own_server import own_server
from support import quoted, refused, unique


def customer_key(seed: int) -> CustomerProvidedEncryptionKey:
    key = bytes([seed]) * 32
    digest = hashlib.sha256(key).digest()
    return CustomerProvidedEncryptionKey(base64.b64encode(key).decode(), base64.b64encode(digest).decode())


def path_of(blob) -> str:
    return f"/{blob.container_name}/{quoted(blob.blob_name)}"


FIRST, SECOND = customer_key(1), customer_key(2)
CONTENTS = [b"", b"a short secret", os.urandom(16 * 1024), os.urandom(200_000)]


@pytest.fixture(scope="module")
def secure(certificate):
    settings = (f"--tls-cert={certificate}/certificate.pem", f"--tls-key={certificate}/key.pem")
    with own_server(*settings) as connection, BlobServiceClient.from_connection_string(
        connection, retry_total=0, connection_verify=False
    ) as service:
        yield service


@pytest.fixture
def secret(secure):
    return secure.create_container(unique("keys")).get_blob_client("secret")


@pytest.mark.filterwarnings("ignore::urllib3.exceptions.InsecureRequestWarning")
class TestCustomerKey:
    @pytest.mark.parametrize("content", CONTENTS, ids=len)
    def test_bytes_come_back_with_the_key_whole_and_in_ranges(self, secret, content):
        answer = secret.upload_blob(content, cpk=FIRST)
        assert answer["encryption_key_sha256"] == FIRST.key_hash
        assert secret.download_blob(cpk=FIRST).readall() == content
        properties = secret.get_blob_properties(cpk=FIRST)
        assert (properties.encryption_key_sha256, properties.size) == (FIRST.key_hash, len(content))
        for offset, length in [(0, 1), (65_530, 20), (131_072, 5), (199_990, 10)]:
            if offset + length <= len(content):
                part = secret.download_blob(offset, length, cpk=FIRST).readall()
                assert part == content[offset : offset + length]

    def test_every_read_and_write_needs_the_same_key(self, secret):
        secret.upload_blob(b"secret", cpk=FIRST)
        for key in (None, SECOND):
            with refused(409, "BlobUsesCustomerSpecifiedEncryption"):
                secret.download_blob(cpk=key)
            with refused(409, "BlobUsesCustomerSpecifiedEncryption"):
                secret.get_blob_properties(cpk=key)
            with refused(409, "BlobUsesCustomerSpecifiedEncryption"):
                secret.set_blob_metadata({"a": "b"}, cpk=key)
        secret.set_blob_metadata({"a": "b"}, cpk=FIRST)
        assert secret.get_blob_properties(cpk=FIRST).metadata == {"a": "b"}

    def test_a_blob_without_a_key_is_not_read_with_one(self, secret):
        secret.upload_blob(b"plain")
        with refused(409, "BlobUsesCustomerSpecifiedEncryption"):
            secret.download_blob(cpk=FIRST)

    def test_an_overwrite_may_choose_another_key_or_none(self, secret):
        secret.upload_blob(b"one", cpk=FIRST)
        secret.upload_blob(b"two", cpk=SECOND, overwrite=True)
        assert secret.download_blob(cpk=SECOND).readall() == b"two"
        secret.upload_blob(b"three", overwrite=True)
        assert secret.download_blob().readall() == b"three"


class TestMalformedKey:
    KEY = {
        "x-ms-encryption-key": FIRST.key_value,
        "x-ms-encryption-key-sha256": FIRST.key_hash,
        "x-ms-encryption-algorithm": "AES256",
    }

    def test_a_key_is_refused_without_https(self, raw, blob):
        answer = raw.send("GET", path_of(blob), headers=self.KEY)
        assert (answer.status, answer.code) == (400, "InvalidHeaderValue")
        assert FIRST.key_value.encode() not in answer.body

    @pytest.mark.parametrize("name", KEY)
    def test_the_three_headers_come_together(self, raw, blob, name):
        headers = {other: value for other, value in self.KEY.items() if other != name}
        assert raw.send("GET", path_of(blob), headers=headers).status == 400


class TestScope:
    def test_a_scope_is_kept_and_given_back(self, container):
        blob = container.get_blob_client("scoped")
        answer = blob.upload_blob(b"content", encryption_scope="payroll")
        assert answer["encryption_scope"] == "payroll"
        assert blob.get_blob_properties().encryption_scope == "payroll"

    def test_whoever_goes_on_with_a_blob_names_its_scope(self, container):
        scope, refusal = {"encryption_scope": "payroll"}, (409, "BlobUsesCustomerSpecifiedEncryption")
        blob = container.get_blob_client("scoped")
        blob.upload_blob(b"content", **scope)
        blob.stage_block("1", b"AAA", **scope)
        for other in ({}, {"encryption_scope": "other"}):
            with refused(*refusal):
                blob.set_blob_metadata({"a": "b"}, **other)
            with refused(*refusal):
                blob.create_snapshot(**other)
            with refused(*refusal):
                blob.commit_block_list(["1"], **other)
        blob.set_blob_metadata({"a": "b"}, **scope)
        blob.create_snapshot(**scope)
        assert blob.commit_block_list(["1"], **scope)["encryption_scope"] == "payroll"
        assert blob.download_blob().readall() == b"AAA"
        blob.upload_blob(b"an overwrite is free to choose", overwrite=True)

        append = container.get_blob_client("append")
        append.create_append_blob(**scope)
        with refused(*refusal):
            append.append_block(b"a")
        assert append.append_block(b"a", **scope)["encryption_scope"] == "payroll"
        pages = container.get_blob_client("pages")
        pages.create_page_blob(512, **scope)
        with refused(*refusal):
            pages.upload_page(b"a" * 512, 0, 512)
        pages.upload_page(b"a" * 512, 0, 512, **scope)

    def test_the_scope_of_the_container_is_the_default_and_can_be_fixed(self, service):
        scope = {"default_encryption_scope": "payroll", "prevent_encryption_scope_override": True}
        container = service.create_container(unique("scoped"), container_encryption_scope=scope)
        properties = container.get_container_properties()
        assert properties.encryption_scope.default_encryption_scope == "payroll"
        assert properties.encryption_scope.prevent_encryption_scope_override is True
        blob = container.get_blob_client("blob")
        assert blob.upload_blob(b"1")["encryption_scope"] == "payroll"
        with refused(403, "RequestForbiddenByContainerEncryptionPolicy"):
            blob.upload_blob(b"2", overwrite=True, encryption_scope="other")
        assert blob.download_blob().readall() == b"1"
        blob.set_blob_metadata({"a": "b"})
        blob.create_snapshot()
        container.delete_container()

    def test_a_name_that_no_scope_can_have_is_refused(self, raw, blob):
        headers = {"x-ms-blob-type": "BlockBlob", "x-ms-encryption-scope": "a b"}
        answer = raw.send("PUT", path_of(blob), headers=headers, body=b"x")
        assert (answer.status, answer.code) == (400, "InvalidHeaderValue")


# What a client keeps with a blob for its own encryption; no SDK for blobs sends it

CONTEXT = "x-ms-encryption-context"


def context_of(raw, blob, method="HEAD", version="2021-08-06", query=""):
    return raw.send(method, path_of(blob), query, version=version).headers.get(CONTEXT)


def test_an_encryption_context_is_kept_with_the_blob(raw, container):
    blob = container.get_blob_client("with a context")
    headers = {"x-ms-blob-type": "BlockBlob", CONTEXT: "the key is in the drawer"}
    assert raw.send("PUT", path_of(blob), headers=headers, body=b"x").status == 201
    for method in ("GET", "HEAD"):
        assert context_of(raw, blob, method) == headers[CONTEXT]
        assert context_of(raw, blob, method, version="2021-06-08") is None
    blob.set_blob_metadata({"a": "b"})
    snapshot = blob.create_snapshot()["snapshot"]
    assert context_of(raw, blob) == headers[CONTEXT]
    assert context_of(raw, blob, query=f"snapshot={snapshot}") == headers[CONTEXT]
    blob.upload_blob(b"without", overwrite=True)
    assert context_of(raw, blob) is None


@pytest.mark.parametrize(
    ("query", "headers", "body"),
    [
        ("", {"x-ms-blob-type": "PageBlob", "x-ms-blob-content-length": "512"}, b""),
        ("", {"x-ms-blob-type": "AppendBlob"}, b""),
        ("comp=blocklist", {}, b"<BlockList/>"),
    ],
    ids=["page", "append", "block list"],
)
def test_every_new_blob_takes_an_encryption_context(raw, container, query, headers, body):
    blob = container.get_blob_client("new")
    assert raw.send("PUT", path_of(blob), query, headers | {CONTEXT: "c"}, body).status == 201
    assert context_of(raw, blob) == "c"


def test_an_encryption_context_has_at_most_1024_characters(raw, container):
    blob = container.get_blob_client("new")
    for length, status in ((1024, 201), (1025, 400)):
        headers = {"x-ms-blob-type": "BlockBlob", CONTEXT: "c" * length}
        answer = raw.send("PUT", path_of(blob), headers=headers, body=b"x")
        assert answer.status == status
    assert answer.code == "InvalidHeaderValue"
