"""Two accounts on one server: whatever one of them writes into a path, a host, a signature, a batch or
the source of a copy, it never reads, changes or deletes anything of the other."""

import contextlib
import datetime
import urllib.parse

import pytest
from azure.data.tables import TableServiceClient
from azure.storage.blob import BlobServiceClient, generate_account_sas, generate_container_sas
from azure.storage.fileshare import ShareServiceClient
from azure.storage.queue import QueueServiceClient
from own_server import own_process
from support import Account, Raw

KEYS = {"mallory": "bWFsbG9yeQ==", "victim": "dmljdGlt"}
SECRET = b"what only the victim may read"
# Both accounts have all of these, so that only the account differs.
CONTAINER = TABLE = "private"
OBJECT = "secret"


class Server:
    def __init__(self, endpoints: dict[str, str]):
        self.endpoints = endpoints

    def client(self, kind, service: str, account: str):
        credential = {"account_name": account, "account_key": KEYS[account]}
        if kind is TableServiceClient:
            from azure.core.credentials import AzureNamedKeyCredential

            credential = AzureNamedKeyCredential(account, KEYS[account])
        return kind(f"{self.endpoints[service]}/{account}", credential=credential, retry_total=0)

    def raw(self, account: str, service: str = "blob") -> Raw:
        # Without a path: tests write the whole of it.
        return Raw(Account(account, KEYS[account], urllib.parse.urlsplit(self.endpoints[service])))

    def url(self, account: str, service: str = "blob") -> str:
        return f"{self.endpoints[service]}/{account}/{CONTAINER}/{OBJECT}"


@pytest.fixture(scope="module")
def server():
    with own_process(*(f"--account={name}:{key}" for name, key in KEYS.items())) as process:
        server = Server(process.addresses)
        for account, content in (("mallory", b"mine"), ("victim", SECRET)):
            with server.client(BlobServiceClient, "blob", account) as blobs:
                blobs.create_container(CONTAINER).upload_blob(OBJECT, content)
            with server.client(ShareServiceClient, "file", account) as shares:
                file = shares.create_share(CONTAINER).get_file_client(OBJECT)
                file.upload_file(content)
            with server.client(QueueServiceClient, "queue", account) as queues:
                queues.create_queue(CONTAINER).send_message(content.decode())
            with server.client(TableServiceClient, "table", account) as tables:
                table = tables.create_table(TABLE)
                table.create_entity({"PartitionKey": "p", "RowKey": "r", "Content": content.decode()})
        yield server


@pytest.fixture(autouse=True)
def nothing_of_the_victim_changes(server):
    yield
    with server.client(BlobServiceClient, "blob", "victim") as blobs:
        names = [blob.name for blob in blobs.get_container_client(CONTAINER).list_blobs()]
        assert names == [OBJECT]
        assert blobs.get_blob_client(CONTAINER, OBJECT).download_blob().readall() == SECRET
    with server.client(ShareServiceClient, "file", "victim") as shares:
        share = shares.get_share_client(CONTAINER)
        assert [entry["name"] for entry in share.list_directories_and_files()] == [OBJECT]
        assert share.get_file_client(OBJECT).download_file().readall() == SECRET
    with server.client(QueueServiceClient, "queue", "victim") as queues:
        assert [message.content for message in queues.get_queue_client(CONTAINER).peek_messages(32)] == [SECRET.decode()]
    with server.client(TableServiceClient, "table", "victim") as tables:
        assert [row["Content"] for row in tables.get_table_client(TABLE).list_entities()] == [SECRET.decode()]


UP = ["..", "%2e%2e", "%2E%2E", ".%2e", "%252e%252e", "..;", "%c0%ae%c0%ae", "..%00"]
SLASH = ["/", "%2f", "%2F", "%5c", "\\", "//", "/./", "%252f"]
# Requests, and the part of their path after the account.
OBJECTS = {
    "blob": f"{CONTAINER}/{OBJECT}",
    "file": f"{CONTAINER}/{OBJECT}",
    "queue": f"{CONTAINER}/messages?peekonly=true",
    "table": f"{TABLE}()",
}


def tricks(rest: str) -> list[str]:
    """Paths that some parser could take for one of the victim's."""
    paths = [f"/mallory{slash}{up}{slash}victim{slash}{rest}" for up in UP for slash in SLASH]
    paths += [f"/mallory/{CONTAINER}/{up}/{up}/{up}/victim/{rest}" for up in UP]
    paths += [f"/{prefix}victim/{rest}" for prefix in ("", "/", "./", "%2f", "%2e/", "mallory/../")]
    paths += [f"/victim-secondary/{rest}", f"/VICTIM/{rest}", f"/%76ictim/{rest}", f"/victim%00/{rest}"]
    paths += [f"/mallory-secondary/../victim/{rest}", f"/mallory%2fvictim/{rest}", f"/mallory?/../victim/{rest}"]
    return paths


def refused(answer) -> bool:
    """An error, or mallory's own data: a path may be one of mallory's names, however odd."""
    return SECRET not in answer.body and answer.status != 500 and (answer.status >= 400 or is_own(answer.body))


def is_own(body: bytes) -> bool:
    return not body or b"mine" in body


@pytest.mark.parametrize("service", OBJECTS)
@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT"])
def test_no_path_leads_to_the_other_account(server, service, method):
    raw = server.raw("mallory", service)
    for trick in tricks(OBJECTS[service]):
        path, _, query = trick.partition("?")
        headers = {"Accept": "application/json"} if service == "table" else {}
        if method == "PUT":
            headers |= {"x-ms-blob-type": "BlockBlob"} if service == "blob" else {}
            headers |= {"x-ms-type": "file", "x-ms-content-length": "1"} if service == "file" else {}
        with contextlib.suppress(ValueError):
            answer = raw.send(method, path, query, headers, body=b"mine" if method == "PUT" else None)
            assert refused(answer), (method, trick, answer.status)


@pytest.mark.parametrize("service", OBJECTS)
@pytest.mark.parametrize(
    "host, prefix",
    [
        ("victim.{}.localhost", ""),
        ("VICTIM.{}.localhost", ""),
        ("victim.{}.core.windows.net:80", ""),
        ("victim-secondary.{}.localhost", ""),
        ("mallory.{}.localhost", "/victim"),
        ("mallory.{}.localhost", "/../victim"),
        ("mallory.{}.localhost", "/%2e%2e/victim"),
        ("mallory.{}.localhost@victim.{}.localhost", ""),
        ("victim", ""),
    ],
)
def test_no_host_leads_to_the_other_account(server, service, host, prefix):
    raw = server.raw("mallory", service)
    path, _, query = OBJECTS[service].partition("?")
    answer = raw.send("GET", f"{prefix}/{path}", query, {"Accept": "application/json"}, host=host.format(service, service))
    assert refused(answer), answer.status


def test_no_address_in_the_request_line_leads_to_the_other_account(server):
    raw = server.raw("mallory")
    for host in ("victim.blob.localhost", "mallory.blob.localhost"):
        for path in (f"/{CONTAINER}/{OBJECT}", f"/victim/{CONTAINER}/{OBJECT}", f"/../victim/{CONTAINER}/{OBJECT}"):
            answer = raw.send("GET", f"http://{host}{path}")
            assert refused(answer) and answer.status >= 400, (host, path, answer.status)


def signatures(server) -> list[str]:
    """Everything that mallory can sign, with the names that the victim has, too."""
    end = datetime.datetime.now(datetime.UTC) + datetime.timedelta(hours=1)
    key = KEYS["mallory"]
    signed = [generate_account_sas(name, key, resource_types="sco", permission="rwdlacup", expiry=end) for name in KEYS]
    signed += [generate_container_sas(name, CONTAINER, key, permission="racwdl", expiry=end) for name in KEYS]
    return signed


def test_no_signature_of_one_account_opens_the_other(server):
    raw = server.raw("mallory")
    for signature in signatures(server):
        for account in ("victim", "victim-secondary", "%76ictim", "mallory/../victim", "mallory%2f..%2fvictim"):
            for method in ("GET", "DELETE"):
                answer = raw.send(method, f"/{account}/{CONTAINER}/{OBJECT}", signature, sign=False)
                assert refused(answer) and answer.status >= 400, (account, signature, answer.status)


def sources(server, service: str) -> list[str]:
    """Ways to write URLs of the victim's data."""
    endpoint = server.endpoints[service]
    port = urllib.parse.urlsplit(endpoint).port
    rest = f"{CONTAINER}/{OBJECT}"
    urls = [endpoint + trick for trick in tricks(rest) if "\\" not in trick]
    urls += [f"http://victim.{service}.localhost:{port}/{rest}", f"http://LOCALHOST:{port}/victim/{rest}"]
    urls += [f"http://{host}:{port}/victim/{rest}" for host in ("[::1]", "[::ffff:127.0.0.1]", "0.0.0.0", "127.0.0.1.", "2130706433")]
    urls += [f"http://mallory.{service}.localhost:{port}/../victim/{rest}", f"http://mallory@127.0.0.1:{port}/victim/{rest}"]
    urls += [f"{server.url('victim', service)}?{signature}" for signature in signatures(server)]
    return urls


def content_of(server, url: str) -> bytes:
    """What mallory reads there without a copy."""
    parts = urllib.parse.urlsplit(url)
    answer = server.raw("mallory", "blob").send("GET", parts.path)
    return answer.body if answer.status < 300 else b"nothing"


COPIES = {
    "Copy Blob": ("blob", "", {}),
    "Copy Blob From URL": ("blob", "", {"x-ms-requires-sync": "true"}),
    "Put Blob From URL": ("blob", "", {"x-ms-blob-type": "BlockBlob"}),
    "Put Block From URL": ("blob", "comp=block&blockid=AAAA", {}),
    "Append Block From URL": ("blob", "comp=appendblock", {}),
    "Put Page From URL": (
        "blob",
        "comp=page",
        {"x-ms-page-write": "update", "x-ms-range": "bytes=0-511", "x-ms-source-range": "bytes=0-511"},
    ),
    "Copy File": ("file", "", {}),
    "Put Range From URL": (
        "file",
        "comp=range",
        {"x-ms-write": "update", "x-ms-range": "bytes=0-3", "x-ms-source-range": "bytes=0-3"},
    ),
}


@pytest.mark.parametrize("source_service", ["blob", "file"])
@pytest.mark.parametrize("copy", COPIES)
def test_no_source_of_a_copy_is_read_from_the_other_account(server, copy, source_service):
    service, query, headers = COPIES[copy]
    raw = server.raw("mallory", service)
    target = f"/mallory/{CONTAINER}/copied"
    if copy == "Append Block From URL":
        assert raw.send("PUT", target, headers={"x-ms-blob-type": "AppendBlob"}).status == 201
    if copy == "Put Page From URL":
        page = {"x-ms-blob-type": "PageBlob", "x-ms-blob-content-length": "512"}
        assert raw.send("PUT", target, headers=page).status == 201
    if copy == "Put Range From URL":
        assert raw.send("PUT", target, headers={"x-ms-type": "file", "x-ms-content-length": "512"}).status == 201
    for url in sources(server, source_service):
        answer = raw.send("PUT", target, query, {**headers, "x-ms-copy-source": url})
        assert answer.status in (400, 401, 403, 404, 409) or is_own(content_of(server, url)), (url, answer.status)
        assert SECRET not in answer.body
        copied = raw.send("GET", target)
        assert SECRET[:4] not in copied.body, url
    raw.send("DELETE", target)


def test_a_source_of_the_other_account_is_read_by_its_own_signature(server):
    end = datetime.datetime.now(datetime.UTC) + datetime.timedelta(hours=1)
    signature = generate_container_sas("victim", CONTAINER, KEYS["victim"], permission="r", expiry=end)
    raw, target = server.raw("mallory"), f"/mallory/{CONTAINER}/allowed"
    answer = raw.send("PUT", target, headers={"x-ms-copy-source": f"{server.url('victim')}?{signature}"})
    assert answer.status == 202
    assert raw.send("GET", target).body == SECRET
    assert raw.send("DELETE", target).status == 202


def test_no_part_of_a_batch_reaches_the_other_account(server):
    raw = server.raw("mallory")
    targets = [trick for trick in tricks(f"{CONTAINER}/{OBJECT}") if "\\" not in trick and "?" not in trick]
    for target in targets:
        for batch, query in (("/mallory", "comp=batch"), (f"/mallory/{CONTAINER}", "restype=container&comp=batch")):
            headers = {"x-ms-date": "Sat, 01 Jan 2028 00:00:00 GMT"}
            part = f"DELETE {target} HTTP/1.1\r\nx-ms-date: {headers['x-ms-date']}\r\n"
            authorization = raw.authorization("DELETE", target, "", headers)
            part += f"Authorization: {authorization}\r\nContent-Length: 0\r\n"
            head = "Content-Type: application/http\r\nContent-Transfer-Encoding: binary\r\nContent-ID: 0\r\n"
            body = f"--b\r\n{head}\r\n{part}\r\n--b--\r\n".encode()
            answer = raw.send("POST", batch, query, {"Content-Type": "multipart/mixed; boundary=b"}, body)
            assert b"HTTP/1.1 20" not in answer.body, (target, answer.body)


def test_no_rename_takes_a_file_from_the_other_account(server):
    raw = server.raw("mallory", "file")
    for url in sources(server, "file"):
        headers = {"x-ms-file-rename-source": url}
        answer = raw.send("PUT", f"/mallory/{CONTAINER}/renamed", "comp=rename", headers)
        assert answer.status in (400, 401, 403, 404, 409), (url, answer.status)
