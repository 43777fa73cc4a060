"""Captures requests that the official Python SDKs sign with Shared Key, and signs in the other forms
that are accepted (`other_forms`) on its own.

    pip install azure-storage-blob azure-storage-queue azure-storage-file-share \
        azure-storage-file-datalake azure-data-tables aiohttp
    python generate_shared_key.py > shared_key_python.json

Nothing is sent: the transport prepares each request as `requests`, or `aiohttp` for the asynchronous
clients, would and keeps it. The latter encodes paths and queries in a way of its own.
"""

import asyncio
import base64
import hashlib
import hmac
import json
import sys
import time
import uuid

# Both are bound by name when the SDKs are imported.
time.time = lambda: 1717243200.0  # Sat, 01 Jun 2024 12:00:00 GMT
uuid.uuid1 = uuid.uuid4 = lambda: uuid.UUID("11111111-2222-4333-8444-555555555555")

import requests
from azure.core import MatchConditions
from azure.core.credentials import AzureNamedKeyCredential
from azure.core.pipeline.transport import AioHttpTransport, HttpTransport
from azure.data.tables import TableClient, TableServiceClient, UpdateMode
from azure.storage.blob import BlobServiceClient, ContentSettings
from azure.storage.filedatalake import DataLakeServiceClient
from azure.storage.fileshare import ShareServiceClient
from azure.data.tables.aio import TableServiceClient as AsyncTableServiceClient
from azure.storage.blob.aio import BlobServiceClient as AsyncBlobServiceClient
from azure.storage.queue import QueueServiceClient
from yarl import URL

KEY = base64.b64encode(bytes(range(64))).decode()


class Captured(BaseException):
    """Ends a call once its request is captured; not an error that the SDKs would retry."""


class Capture(HttpTransport):
    def __init__(self):
        self.request = None

    def open(self):
        pass

    def close(self):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def send(self, request, **_):
        data = request.data if request.data is not None else request.files
        self.request = requests.Request(
            request.method, request.url, headers=dict(request.headers), data=data
        ).prepare()
        raise Captured()


class AsyncCapture(AioHttpTransport):
    def __init__(self):
        self.request = None

    async def send(self, request, **_):
        self.request = requests.Request(
            request.method, request.url, headers=dict(request.headers), data=request.data
        ).prepare()
        # `aiohttp` hands the text to `yarl`, and sends what comes out.
        self.request.url = str(URL(request.url))
        raise Captured()


CASES = []


async def capture_async(service, name, style, account, client_of, call):
    transport = AsyncCapture()
    try:
        result = call(client_of(transport))
        await (result if asyncio.iscoroutine(result) else anext(result.__aiter__()))
    except Captured:
        pass
    keep(f"python async {service} {style}: {name}", service, style, account, transport.request)


def capture(service, name, style, account, client_of, call):
    transport = Capture()
    try:
        call(client_of(transport))
    except Captured:
        pass
    keep(f"python {service} {style}: {name}", service, style, account, transport.request)


def keep(name, service, style, account, request):
    CASES.append(
        {
            "name": name,
            "service": service,
            "account": account,
            "path_style": style == "path",
            "method": request.method,
            "url": request.url,
            "headers": {
                k.lower(): v for k, v in request.headers.items() if k.lower() != "user-agent"
            },
        }
    )


ODD = "dir one/ü+plus;semi~tilde(paren)'quote'/100% & #=?.txt"
METADATA = {"a_b": "1", "a1": "two words", "ab": "x,y", "_a": "z", "Upper": "case"}


def blob_calls():
    def blob(client, name=ODD):
        return client.get_blob_client("container", name)

    return {
        "list containers": lambda c: next(c.list_containers(name_starts_with="a+b &c=ü")),
        "service properties": lambda c: c.get_service_properties(),
        "create container with metadata": lambda c: c.create_container("container", metadata=METADATA),
        "list blobs": lambda c: next(
            c.get_container_client("container").list_blobs(name_starts_with="a b/c", include=["metadata", "tags"])
        ),
        "put blob with content settings": lambda c: blob(c).upload_blob(
            b"hello",
            overwrite=True,
            metadata=METADATA,
            validate_content=True,
            content_settings=ContentSettings(
                content_type="text/plain; charset=utf-8", content_encoding="gzip", content_language="de"
            ),
        ),
        "put empty blob": lambda c: blob(c, "empty").upload_blob(b""),
        "get blob range if match": lambda c: blob(c).download_blob(
            offset=1, length=3, etag='"0x8D"', match_condition=MatchConditions.IfNotModified
        ),
        "get properties of a snapshot": lambda c: c.get_blob_client(
            "container", "blob", snapshot="2024-05-31T12:00:00.1234567Z"
        ).get_blob_properties(if_modified_since=None),
        "delete blob": lambda c: blob(c).delete_blob(delete_snapshots="include"),
        "put block": lambda c: blob(c).stage_block("AAAA", b"data"),
        "set tags": lambda c: blob(c).set_blob_tags({"k": "v +"}),
        "find by tags": lambda c: next(c.find_blobs_by_tags("\"k\"='v +' and @container='x'")),
        "lease": lambda c: blob(c).acquire_lease(15),
        "metadata with runs of spaces": lambda c: blob(c).set_blob_metadata({"a": "one  two   three"}),
    }


def queue_calls():
    def queue(client):
        return client.get_queue_client("my-queue")

    return {
        "list queues": lambda c: next(c.list_queues(name_starts_with="a")),
        "create queue": lambda c: c.create_queue("my-queue", metadata=METADATA),
        "send": lambda c: queue(c).send_message("hello <&> ü", visibility_timeout=3),
        "receive": lambda c: queue(c).receive_message(),
        "delete message": lambda c: queue(c).delete_message("id", "AgAAAAMAAAAAAAAA+/=="),
        "peek": lambda c: queue(c).peek_messages(),
    }


def file_calls():
    def file(client):
        return client.get_share_client("share").get_file_client("dir/f ü+1.txt")

    return {
        "list shares": lambda c: next(c.list_shares()),
        "create share": lambda c: c.create_share("share", metadata=METADATA),
        "create directory": lambda c: c.get_share_client("share").create_directory("d e"),
        "upload range": lambda c: file(c).upload_range(b"12345", offset=0, length=5),
        "download": lambda c: file(c).download_file(offset=0, length=10),
        "list": lambda c: next(
            c.get_share_client("share").get_directory_client("d").list_directories_and_files(name_starts_with="a b")
        ),
    }


def dfs_calls():
    return {
        "create file": lambda c: c.get_file_system_client("fs").create_file("dir/f ü"),
        "append": lambda c: c.get_file_client("fs", "dir/f").append_data(b"abc", 0, 3),
        "list paths": lambda c: next(c.get_file_system_client("fs").get_paths("dir")),
    }


def table_calls():
    entity = {"PartitionKey": "p k'1", "RowKey": "r/ü+", "Value": 1}

    def table(client):
        return client.get_table_client("MyTable")

    return {
        "query tables": lambda c: next(c.query_tables("TableName eq 'x'")),
        "create table": lambda c: c.create_table("MyTable"),
        "insert": lambda c: table(c).create_entity(entity),
        "get": lambda c: table(c).get_entity("p k'1", "r/ü+"),
        "merge": lambda c: table(c).update_entity(entity, mode=UpdateMode.MERGE),
        "upsert": lambda c: table(c).upsert_entity(entity, mode=UpdateMode.REPLACE),
        "delete": lambda c: table(c).delete_entity(entity),
        "query": lambda c: next(table(c).query_entities("Value gt 1 and Name eq 'a+b'", select=["Value"])),
        "acl": lambda c: table(c).get_table_access_policy(),
        "service properties": lambda c: c.get_service_properties(),
        "batch": lambda c: table(c).submit_transaction([("create", entity)]),
    }


KINDS = {
    "blob": (BlobServiceClient, blob_calls(), 10000),
    "queue": (QueueServiceClient, queue_calls(), 10001),
    "file": (ShareServiceClient, file_calls(), 10003),
    "dfs": (DataLakeServiceClient, dfs_calls(), 10000),
    "table": (TableServiceClient, table_calls(), 10002),
}

for service, (kind, calls, port) in KINDS.items():
    for style, account in (("host", "goldenaccount"), ("path", "devstoreaccount1")):
        url = {
            "host": f"https://{account}.{service}.core.windows.net",
            "path": f"http://127.0.0.1:{port}/{account}",
        }[style]
        credential = (
            AzureNamedKeyCredential(account, KEY)
            if service == "table"
            else {"account_name": account, "account_key": KEY}
        )

        def client_of(transport):
            return kind(url, credential=credential, transport=transport)

        for name, call in calls.items():
            capture(service, name, style, account, client_of, call)



def asynchronous(url, account):
    blob_client = lambda client: client.get_blob_client("container", ODD)
    table = lambda client: client.get_table_client("MyTable")
    entity = {"PartitionKey": "p k'1", "RowKey": "r/ü+", "Value": 1}
    blobs = {
        "create container": lambda c: c.create_container("container", metadata=METADATA),
        "list": lambda c: c.get_container_client("container").list_blobs(name_starts_with="a b+c/&=ü"),
        "put": lambda c: blob_client(c).upload_blob(b"hello", metadata=METADATA),
        "properties": lambda c: blob_client(c).get_blob_properties(),
        "find by tags": lambda c: c.find_blobs_by_tags("\"k\"='v +' and @container='x'"),
    }
    tables = {
        "get": lambda c: table(c).get_entity("p k'1", "r/ü+"),
        "upsert": lambda c: table(c).upsert_entity(entity),
        "query": lambda c: table(c).query_entities("Value gt 1 and Name eq 'a+b'"),
        "acl": lambda c: table(c).get_table_access_policy(),
    }
    style = "path" if "127.0.0.1" in url("blob") else "host"
    for service, client, calls, credential in (
        ("blob", AsyncBlobServiceClient, blobs, {"account_name": account, "account_key": KEY}),
        ("table", AsyncTableServiceClient, tables, AzureNamedKeyCredential(account, KEY)),
    ):
        make = lambda transport: client(url(service), credential=credential, transport=transport)
        for name, call in calls.items():
            asyncio.run(capture_async(service, name, style, account, make, call))


asynchronous(lambda service: f"https://goldenaccount.{service}.core.windows.net", "goldenaccount")
asynchronous(lambda service: "http://127.0.0.1:10000/devstoreaccount1", "devstoreaccount1")


def other_forms():
    """Forms that other clients and older versions sign; each text is written out."""
    date = "Sat, 01 Jun 2024 12:00:00 GMT"
    ms = {"x-ms-date": date, "x-ms-version": "2021-12-02"}
    ms_lines = f"x-ms-date:{date}\nx-ms-version:2021-12-02\n"
    old = {"x-ms-date": date, "x-ms-version": "2014-02-14"}
    old_lines = f"x-ms-date:{date}\nx-ms-version:2014-02-14\n"
    content = {"content-md5": "bWQ1", "content-type": "a/b"}
    lite = "SharedKeyLite"

    def form(name, service, method, path, headers, text, scheme="SharedKey", query="", account="goldenaccount"):
        digest = hmac.new(base64.b64decode(KEY), text.encode(), hashlib.sha256).digest()
        path_style = account != "goldenaccount"
        host = "http://127.0.0.1:10000" if path_style else f"https://{account}.{service}.core.windows.net"
        authorization = f"{scheme} {account}:{base64.b64encode(digest).decode()}"
        CASES.append(
            {
                "name": f"form {service}: {name}",
                "service": service,
                "account": account,
                "path_style": path_style,
                "method": method,
                "url": host + path + query,
                "headers": headers | {"authorization": authorization},
            }
        )

    for service in ("blob", "queue", "file"):
        text = f"PUT\nbWQ1\na/b\n\n{ms_lines}/goldenaccount/c/x%20y?comp=metadata"
        form("lite", service, "PUT", "/c/x%20y", content | ms, text, lite, "?timeout=5&comp=metadata")
        text = f"GET\n\n\n{date}\nx-ms-version:2021-12-02\n/goldenaccount/c/b"
        form("lite by Date", service, "GET", "/c/b", {"date": date, "x-ms-version": "2021-12-02"}, text, lite)
        text = f"GET\n\n\n\n\n\n{date}\n\n\n\n\n\nx-ms-version:2021-12-02\n/goldenaccount/c/b"
        form("full by Date", service, "GET", "/c/b", {"date": date, "x-ms-version": "2021-12-02"}, text)
    headers = {"date": date, "x-ms-version": "2021-12-02"}
    form("full by Date", "table", "GET", "/T()", headers, f"GET\n\n\n{date}\n/goldenaccount/T()")
    form("lite by Date", "table", "GET", "/T()", headers, f"{date}\n/goldenaccount/T()", lite)
    text = f"GET\n\n\n\n\n\n{date}\n\n\n\n\n\n{ms_lines}/goldenaccount/c/b"
    form("both dates signed", "blob", "GET", "/c/b", ms | {"date": date}, text)
    text = f"GET\n\n\n\n\n\n\n\n\n\n\n\n{ms_lines}/goldenaccount/c/b"
    form("one date of two signed", "blob", "GET", "/c/b", ms | {"date": date}, text)
    text = f"PUT\n\n\n0\n\n\n\n\n\n\n\n\n{old_lines}/goldenaccount/c\nrestype:container"
    form("length 0 in an old version", "blob", "PUT", "/c", old | {"content-length": "0"}, text, query="?restype=container")
    text = f"PUT\n\n\n\n\n\n\n\n\n\n\n\n{ms_lines}/goldenaccount/c\nrestype:container"
    form("length 0", "blob", "PUT", "/c", ms | {"content-length": "0"}, text, query="?restype=container")
    text = f"PUT\n\n\n\n\n\n\n\n\n\n\n\n{old_lines}/goldenaccount/c"
    form("empty header in an old version", "blob", "PUT", "/c", old | {"x-ms-meta-a": ""}, text)
    text = f"PUT\n\n\n\n\n\n\n\n\n\n\n\nx-ms-date:{date}\nx-ms-meta-a:\nx-ms-version:2021-12-02\n/goldenaccount/c"
    form("empty header", "blob", "PUT", "/c", ms | {"x-ms-meta-a": ""}, text)
    headers = ms | {"content-language": "de", "content-encoding": "gzip"}
    text = f"PUT\ngzip\nde\n\n\n\n\n\n\n\n\n\n{ms_lines}/goldenaccount/c"
    form("encoding before language", "blob", "PUT", "/c", headers, text)
    text = f"PUT\nde\ngzip\n\n\n\n\n\n\n\n\n\n{ms_lines}/goldenaccount/c"
    form("language before encoding", "blob", "PUT", "/c", headers, text)
    headers = ms | {"x-ms-meta-a1": "1", "x-ms-meta-a_b": "2", "x-ms-metab": "3"}
    one, two, three = "x-ms-meta-a1:1\n", "x-ms-meta-a_b:2\n", "x-ms-metab:3\n"
    for name, lines in {"by bytes": one + two + three, "as the service": two + one + three}.items():
        text = f"PUT\n\n\n\n\n\n\n\n\n\n\n\nx-ms-date:{date}\n{lines}x-ms-version:2021-12-02\n/goldenaccount/c"
        form(f"headers sorted {name}", "blob", "PUT", "/c", headers, text)
    headers = ms | {"x-ms-meta-a": 'a  b\tc "d  e"'}
    for name, value in {"folded": 'a b c "d  e"', "kept": 'a  b\tc "d  e"'}.items():
        text = f"PUT\n\n\n\n\n\n\n\n\n\n\n\nx-ms-date:{date}\nx-ms-meta-a:{value}\nx-ms-version:2021-12-02\n/goldenaccount/c"
        form(f"white space {name}", "blob", "PUT", "/c", headers, text)
    conditions = {"if-modified-since": "1", "if-match": "2", "if-none-match": "3", "if-unmodified-since": "4", "range": "5"}
    text = f"GET\n\n\n\n\n\n\n1\n2\n3\n4\n5\n{ms_lines}/goldenaccount/c/b"
    form("conditions and range", "blob", "GET", "/c/b", ms | conditions, text)
    text = f"GET\n\n\n\n\n\n\n\n\n\n\n\n{ms_lines}/goldenaccount/c\ncomp:list\ninclude:copy,tags\nprefix:a b"
    form("repeated parameter", "blob", "GET", "/c", ms, text, query="?include=tags&Prefix=a%20b&comp=list&include=copy")
    empty = f"GET\n\n\n\n\n\n\n\n\n\n\n\n{ms_lines}"
    dev = "devstoreaccount1"
    form("account once", "blob", "GET", f"/{dev}/c/b", ms, f"{empty}/{dev}/c/b", account=dev)
    form("account once, root", "blob", "GET", f"/{dev}", ms, f"{empty}/{dev}/", account=dev)
    secondary = f"/{dev}-secondary/c/b"
    form("secondary as received", "blob", "GET", secondary, ms, f"{empty}/{dev}{secondary}", account=dev)
    form("secondary as primary", "blob", "GET", secondary, ms, f"{empty}/{dev}/{dev}/c/b", account=dev)


other_forms()
json.dump({"key": KEY, "date": "Sat, 01 Jun 2024 12:00:00 GMT", "cases": CASES}, sys.stdout, indent=1)
print()
