"""Bearer tokens of an issuer: which are believed, and what the roles of their holders allow where."""

import base64
import json
import ssl
import time
import urllib.parse

import pytest
from azure.storage.blob import BlobSasPermissions, ContainerClient, UserDelegationKey, generate_blob_sas
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from copy_source import copy_source
from own_server import own_server
from support import Account, Raw, connection_parts, unique, wait_for
from test_access import HOUR, now

ISSUER = "https://issuer.example/tenant"
AUDIENCE = "https://storage.azure.com"
TENANT = "11111111-2222-3333-4444-555555555555"
READER, GROUP, SOMEONE = "reader-object", "writers-group", "someone-object"

# The certificate of these servers is signed by nobody.
TLS = ssl.create_default_context()
TLS.check_hostname, TLS.verify_mode = False, ssl.CERT_NONE

pytestmark = pytest.mark.filterwarnings("ignore::urllib3.exceptions.InsecureRequestWarning")


def text(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode()


class SigningKey:
    def __init__(self, name):
        self.name, self.private = name, rsa.generate_private_key(65537, 2048)

    def public(self):
        numbers = self.private.public_key().public_numbers()
        modulus, exponent = (n.to_bytes((n.bit_length() + 7) // 8, "big") for n in (numbers.n, numbers.e))
        return {"kty": "RSA", "use": "sig", "kid": self.name, "n": text(modulus), "e": text(exponent)}

    def token(self, object_id, **claims):
        claims = {
            "iss": ISSUER, "aud": AUDIENCE, "tid": TENANT, "oid": object_id,
            "nbf": int(time.time()) - 60, "exp": int(time.time()) + 3600, **claims,
        }
        parts = ({"alg": "RS256", "kid": self.name}, claims)
        signed = ".".join(text(json.dumps(part).encode()) for part in parts)
        signature = self.private.sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256())
        return f"{signed}.{text(signature)}"


KEY = SigningKey("first")


class Server:
    def __init__(self, connection, keys):
        parts = connection_parts(connection)
        self.blob, self.table, self.key = parts["BlobEndpoint"], parts["TableEndpoint"], parts["AccountKey"]
        self.keys = keys

    def send(self, method, path, token=None, endpoint=None, headers=None, **more):
        """`path` with its query."""
        account = Account("devstoreaccount1", self.key, urllib.parse.urlsplit(endpoint or self.blob))
        raw = Raw(account, "2025-07-05", TLS)
        sent = {"x-ms-date": None, **(headers or {})}
        if token:
            sent["Authorization"] = f"Bearer {token}"
        path, _, query = path.partition("?")
        return raw.send(method, path, query, sent, sign=False, **more)


def publish(file, *keys):
    file.write_text(json.dumps({"keys": [key.public() for key in keys]}))


@pytest.fixture(scope="module")
def server(certificate, tmp_path_factory):
    folder = tmp_path_factory.mktemp("roles")
    keys, settings = folder / "keys.json", folder / "holdfast.toml"
    publish(keys, KEY)
    settings.write_text(f"""
oauth-issuer = "{ISSUER}"
oauth-audience = "{AUDIENCE}"
oauth-keys = "keys.json"
tls-cert = "{certificate}/certificate.pem"
tls-key = "{certificate}/key.pem"

[[role-assignments]]
role = "Storage Blob Data Reader"
account = "devstoreaccount1"
object-id = "{READER}"

[[role-assignments]]
role = "Storage Blob Data Contributor"
account = "devstoreaccount1"
container = "of-the-group"
group = "{GROUP}"
issuer = "{ISSUER}"

[[role-assignments]]
role = "Storage Table Data Contributor"
account = "devstoreaccount1"
table = "theirs"
"claim.department" = "billing, EMEA"

[[role-assignments]]
role = "Storage Blob Delegator"
account = "devstoreaccount1"
group = "{GROUP}"

[[role-assignments]]
role = "Storage Blob Delegator"
account = "devstoreaccount1"
"claim.roles" = "delegates"
""")
    with own_server(f"--config={settings}") as connection:
        yield Server(connection, keys)


def owner_makes(server, container):
    """With the account's key: the container, and a blob `b` in it."""
    client = ContainerClient(
        server.blob, container, credential={"account_name": "devstoreaccount1", "account_key": server.key},
        connection_verify=False, retry_total=0,
    )
    if not client.exists():
        client.create_container()
    client.upload_blob("b", b"content", overwrite=True)


def writer():
    return KEY.token("member", groups=[GROUP, "another"])


PUT = {"headers": {"x-ms-blob-type": "BlockBlob"}, "body": b"new"}


def test_a_reader_reads_everything_and_writes_nothing(server):
    name, token = unique("any"), KEY.token(READER)
    owner_makes(server, name)
    assert server.send("GET", f"/{name}/b", token).body == b"content"
    assert server.send("GET", "/?comp=list", token).status == 200
    assert server.send("GET", "/?restype=account&comp=properties", token).status == 200
    for method, path, more in [("PUT", f"/{name}/b", PUT), ("DELETE", f"/{name}/b", {}),
                               ("PUT", f"/{name}x?restype=container", {})]:
        answer = server.send(method, path, token, **more)
        assert answer.status == 403, path
        assert answer.headers["x-ms-error-code"] == "AuthorizationPermissionMismatch"


def test_a_role_in_a_container_opens_no_other(server):
    other = unique("other")
    owner_makes(server, "of-the-group"), owner_makes(server, other)
    assert server.send("PUT", "/of-the-group/new", writer(), **PUT).status == 201
    assert server.send("GET", "/of-the-group?restype=container&comp=list", writer()).status == 200
    for method, path, more in [
        ("GET", f"/{other}/b", {}),
        ("PUT", f"/{other}/new", PUT),
        ("GET", "/?comp=list", {}),
        # Neither as a source nor by taking the container of another.
        ("PUT", "/of-the-group/copied", {"headers": {"x-ms-copy-source": f"{server.blob}/{other}/b"}}),
        ("PUT", "/of-the-group?restype=container&comp=rename", {"headers": {"x-ms-source-container-name": other}}),
    ]:
        assert server.send(method, path, writer(), **more).status in (401, 403), path
    copy = {"headers": {"x-ms-copy-source": f"{server.blob}/of-the-group/b"}}
    assert server.send("PUT", "/of-the-group/copied", writer(), **copy).status == 202
    assert server.send("GET", "/?restype=account&comp=properties", writer()).status == 200


def test_without_a_role_a_token_may_do_nothing(server):
    name = unique("any")
    owner_makes(server, name)
    for token in (KEY.token(SOMEONE), KEY.token("member", groups=["another"]), KEY.token(SOMEONE, groups=[READER])):
        for method, path, more in [
            ("GET", f"/{name}/b", {}), ("GET", "/?comp=list", {}), ("PUT", f"/{name}/b", PUT),
            ("GET", "/?restype=account&comp=properties", {}),
        ]:
            assert server.send(method, path, token, **more).status == 403, path


def test_only_configured_audiences_and_the_issuer_count(server):
    name = unique("any")
    owner_makes(server, name)
    for claims in (
        {"aud": "https://devstoreaccount1.blob.core.windows.net"},
        {"aud": "e406a681-f3d4-42a8-90b6-c2b029497af1"},
        {"aud": "https://graph.example"},
        {"iss": "https://other.example"},
        {"exp": int(time.time()) - 3600},
    ):
        answer = server.send("GET", f"/{name}/b", KEY.token(READER, **claims))
        assert answer.status == 401, claims
        assert answer.headers["x-ms-error-code"] == "InvalidAuthenticationInfo"
    assert server.send("GET", f"/{name}/b", KEY.token(READER, aud=AUDIENCE + "/")).status == 200
    assert server.send("GET", f"/{name}/b", SigningKey("first").token(READER)).status == 401


def test_claims_open_a_table_also_in_batches(server):
    token = KEY.token(SOMEONE, department="billing, EMEA")
    json_headers = {"Content-Type": "application/json", "Accept": "application/json;odata=nometadata"}

    def create(name):
        table = json.dumps({"TableName": name}).encode()
        return server.send("POST", "/Tables", token, server.table, json_headers, body=table)

    # A role in one table is none to make tables with; nor is there one to ask for.
    assert create("theirs").status == 403

    def batch(table):
        part = (
            "--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n--c\r\nContent-Type: application/http\r\n"
            f"Content-Transfer-Encoding: binary\r\n\r\nPOST {server.table}/{table} HTTP/1.1\r\n"
            "Content-Type: application/json\r\nAccept: application/json;odata=nometadata\r\n\r\n"
            '{"PartitionKey":"p","RowKey":"r"}\r\n--c--\r\n--b--\r\n'
        )
        headers = {"Content-Type": "multipart/mixed; boundary=b"}
        return server.send("POST", "/$batch", token, server.table, headers, body=part.encode())

    assert batch("others").status == 403
    answer = batch("theirs")
    assert answer.status == 202 and b"TableNotFound" in answer.body


def test_a_user_delegation_sas_acts_with_the_rights_of_the_token_that_got_its_key(server):
    other = unique("other")
    owner_makes(server, "of-the-group"), owner_makes(server, other)
    body = f"<KeyInfo><Expiry>{(now() + HOUR).strftime('%Y-%m-%dT%H:%M:%SZ')}</Expiry></KeyInfo>".encode()
    path = "/?restype=service&comp=userdelegationkey"
    assert server.send("POST", path, KEY.token(SOMEONE), body=body).status == 403
    answer = server.send("POST", path, writer(), body=body)
    assert answer.status == 200, answer.body
    key, names = UserDelegationKey(), {
        "signed_oid": "SignedOid", "signed_tid": "SignedTid", "signed_start": "SignedStart",
        "signed_expiry": "SignedExpiry", "signed_service": "SignedService", "signed_version": "SignedVersion",
        "value": "Value",
    }
    root = answer.xml()
    for name, element in names.items():
        setattr(key, name, root.findtext(element))
    for container, status in (("of-the-group", 200), (other, 403)):
        sas = generate_blob_sas(
            "devstoreaccount1", container, "b", user_delegation_key=key, expiry=now() + HOUR,
            permission=BlobSasPermissions(read=True),
        )
        answer = server.send("GET", f"/{container}/b?{sas}", version=None)
        assert answer.status == status, container


def delegation_key(server, token, expiry):
    body = f"<KeyInfo><Start>{time_text(now() - HOUR)}</Start><Expiry>{time_text(expiry)}</Expiry></KeyInfo>"
    answer = server.send("POST", "/?restype=service&comp=userdelegationkey", token, body=body.encode())
    assert answer.status == 200, answer.body
    root, key = answer.xml(), UserDelegationKey()
    for name in ("oid", "tid", "start", "expiry", "service", "version"):
        setattr(key, f"signed_{name}", root.findtext(f"Signed{name.capitalize()}"))
    key.value = root.findtext("Value")
    return key


def time_text(time):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ")


def test_a_user_delegation_key_keeps_the_rights_of_its_own_token(server):
    """What later tokens of the same user say changes nothing for keys that were got before."""
    owner_makes(server, "of-the-group")
    user = unique("user")
    delegating = KEY.token(user, roles=["delegates"])
    in_group = KEY.token(user, roles=["delegates"], groups=[GROUP])

    def status(key):
        sas = generate_blob_sas(
            "devstoreaccount1", "of-the-group", "b", user_delegation_key=key, expiry=now() + HOUR,
            permission=BlobSasPermissions(read=True),
        )
        return server.send("GET", f"/of-the-group/b?{sas}", version=None).status

    weak = delegation_key(server, delegating, now() + HOUR)
    strong = delegation_key(server, in_group, now() + HOUR * 2)
    assert (status(weak), status(strong)) == (403, 200)
    delegation_key(server, delegating, now() + HOUR * 3)
    assert (status(weak), status(strong)) == (403, 200)
    # The same key got by both tokens allows what both may do.
    expiry = now() + HOUR * 4
    assert status(delegation_key(server, in_group, expiry)) == 200
    assert status(delegation_key(server, delegating, expiry)) == 403


def test_keys_are_read_again_when_their_file_changes(server):
    name, second = unique("any"), SigningKey("second")
    owner_makes(server, name)

    def status(key):
        return server.send("GET", f"/{name}/b", key.token(READER)).status

    assert (status(KEY), status(second)) == (200, 401)
    publish(server.keys, KEY, second)
    wait_for(lambda: status(second) == 200)
    server.keys.write_text("broken")
    time.sleep(1.5)
    assert status(second) == 200
    publish(server.keys, KEY)
    wait_for(lambda: status(second) == 401)
    assert status(KEY) == 200


def test_keys_are_fetched_and_new_ones_are_found(certificate):
    first, second = SigningKey("first"), SigningKey("second")
    with copy_source() as (source, host):
        def publish_at(*keys):
            source.serve("/keys", json.dumps({"keys": [key.public() for key in keys]}).encode())

        publish_at(first)
        with own_server(
            f"--oauth-issuer={ISSUER}",
            f"--oauth-audience={AUDIENCE}",
            f"--oauth-keys-url=http://{host}/keys",
            f"--role-assignment=role=Storage Blob Data Reader,account=*,object-id={READER}",
            f"--tls-cert={certificate}/certificate.pem",
            f"--tls-key={certificate}/key.pem",
        ) as connection:
            server = Server(connection, None)

            def status(key):
                return server.send("GET", "/?comp=list", key.token(READER)).status

            wait_for(lambda: status(first) == 200)
            assert status(second) == 401
            publish_at(first, second)
            # An unknown key has the set fetched again, ten seconds after the last time at the earliest.
            wait_for(lambda: status(second) == 200, seconds=30)
            asked, third = len(source.asked), SigningKey("third")
            for _ in range(20):
                assert status(third) == 401
            assert len(source.asked) <= asked + 1
