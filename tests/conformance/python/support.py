"""What the tests share: the account under test, raw signed requests, and how an error is expected.

The SDK covers what a client can say. `Raw` says the rest: old versions, malformed headers, other
hosts. It signs by the documented rules on its own, so that it does not inherit an SDK's mistakes.
"""

import base64
import contextlib
import hashlib
import hmac
import http.client
import os
import re
import ssl
import time
import urllib.parse
import uuid
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from email.utils import formatdate
from xml.etree import ElementTree

import pytest
from azure.core.exceptions import HttpResponseError
from server_process import connection_string as connection_string_of

NEWEST_VERSION = "2026-10-06"

DEVELOPMENT_STORAGE = connection_string_of({"blob": "http://127.0.0.1:10000", "queue": "http://127.0.0.1:10001"})


def connection_string() -> str:
    given = os.environ.get("CONFORMANCE_CONNECTION_STRING", "UseDevelopmentStorage=true")
    return DEVELOPMENT_STORAGE if given.startswith("UseDevelopmentStorage=true") else given


def connection_parts(connection: str) -> dict[str, str]:
    return dict(part.split("=", 1) for part in connection.split(";") if part)


@dataclass(frozen=True)
class Account:
    name: str
    key: str
    endpoint: urllib.parse.SplitResult

    @classmethod
    def under_test(cls, service: str = "Blob") -> "Account":
        """With the endpoint of that service; the tests of a missing service are skipped."""
        if f"{service}Endpoint" not in connection_parts(connection_string()):
            pytest.skip(f"the connection string names no {service}Endpoint")
        return cls.of(connection_string(), service)

    @classmethod
    def of(cls, connection: str, service: str = "Blob") -> "Account":
        parts = connection_parts(connection)
        endpoint = urllib.parse.urlsplit(parts[f"{service}Endpoint"])
        return cls(parts["AccountName"], parts["AccountKey"], endpoint)

    @property
    def is_path_style(self) -> bool:
        return self.endpoint.path.strip("/") == self.name


@dataclass
class Answer:
    status: int
    headers: http.client.HTTPMessage
    body: bytes
    reason: str = ""

    @property
    def code(self) -> str | None:
        """The error code, equal in header and body if both have it."""
        from_header = self.headers.get("x-ms-error-code")
        if self.body and self.status >= 400:
            from_body = self.xml().findtext("Code")
            assert from_header in (None, from_body)
            return from_body
        return from_header

    def xml(self) -> ElementTree.Element:
        return ElementTree.fromstring(self.body.decode("utf-8-sig"))


@dataclass
class Raw:
    """Sends one request on one connection and signs it with Shared Key unless told otherwise."""

    account: Account
    version: str | None = NEWEST_VERSION
    # Without one, the certificate of an HTTPS endpoint is verified as usual.
    tls: ssl.SSLContext | None = None

    def send(
        self,
        method: str,
        path: str,
        query: str = "",
        headers: dict | None = None,
        body: bytes | None = None,
        sign: bool = True,
        host: str | None = None,
        version: str | None = "",
    ) -> Answer:
        """`path` starts below the account and is sent as given; `host` asks by host-style address."""
        prefix = "" if host else self.account.endpoint.path.rstrip("/")
        target = prefix + path
        sent = {"x-ms-date": formatdate(usegmt=True)}
        if (wanted := self.version if version == "" else version) is not None:
            sent["x-ms-version"] = wanted
        if body is not None or method in ("PUT", "POST"):
            sent["Content-Length"] = str(len(body or b""))
        sent.update(headers or {})
        sent = {name: value for name, value in sent.items() if value is not None}
        if sign:
            sent["Authorization"] = self.authorization(method, target, query, sent)
        return self.exchange(method, f"{target}?{query}" if query else target, sent, body, host)

    def exchange(self, method, target, headers, body, host=None) -> Answer:
        host_and_port = (self.account.endpoint.hostname, self.account.endpoint.port)
        if self.account.endpoint.scheme == "https":
            connection = http.client.HTTPSConnection(*host_and_port, timeout=60, context=self.tls)
        else:
            connection = http.client.HTTPConnection(*host_and_port, timeout=60)
        with contextlib.closing(connection):
            connection.putrequest(method, target, skip_host=True, skip_accept_encoding=True)
            connection.putheader("Host", host or self.account.endpoint.netloc)
            for name, value in headers.items():
                connection.putheader(name, value)
            connection.endheaders(body)
            response = connection.getresponse()
            return Answer(response.status, response.headers, response.read(), response.reason)

    def authorization(self, method, target, query, headers) -> str:
        lowered = {name.lower(): value for name, value in headers.items()}
        length = lowered.get("content-length", "")
        if length == "0" and lowered.get("x-ms-version", "9999") >= "2015-02-21":
            length = ""
        standard = [lowered.get(name, "") for name in ("content-encoding", "content-language")]
        standard += [length]
        standard += [lowered.get(name, "") for name in ("content-md5", "content-type")]
        standard += ["" if "x-ms-date" in lowered else lowered.get("date", "")]
        conditions = ("if-modified-since", "if-match", "if-none-match", "if-unmodified-since", "range")
        standard += [lowered.get(name, "") for name in conditions]
        service = [f"{name}:{lowered[name].strip()}" for name in sorted(lowered) if name.startswith("x-ms-")]
        text = "\n".join([method, *standard, *service, self.canonical_resource(target, query)])
        return f"SharedKey {self.account.name}:{self.signature(text)}"

    def canonical_resource(self, target, query) -> str:
        parameters: dict[str, list[str]] = {}
        for name, value in urllib.parse.parse_qsl(query, keep_blank_values=True):
            parameters.setdefault(name.lower(), []).append(value)
        lines = [f"/{self.account.name}{target}"]
        return "\n".join(lines + [f"{name}:{','.join(sorted(parameters[name]))}" for name in sorted(parameters)])

    def signature(self, text: str) -> str:
        key = base64.b64decode(self.account.key)
        return base64.b64encode(hmac.new(key, text.encode(), hashlib.sha256).digest()).decode()


@contextlib.contextmanager
def refused(status: int, code: str | None):
    """The SDK call inside must fail with this status and this `x-ms-error-code`."""
    with pytest.raises(HttpResponseError) as caught:
        yield caught
    error = caught.value
    assert (error.status_code, error.response.headers.get("x-ms-error-code")) == (status, code)
    assert error.response.headers.get("x-ms-request-id")


def quoted(name: str) -> str:
    return urllib.parse.quote(name, safe="/")


def unique(prefix: str) -> str:
    return f"{prefix}-{uuid.uuid4().hex[:12]}"


def md5(content: bytes) -> bytes:
    return hashlib.md5(content).digest()


def base64_text(content: bytes) -> str:
    return base64.b64encode(content).decode()


def crc64_text(content: bytes) -> str:
    from azure.storage.extensions import checksums

    return base64_text(checksums.crc64.compute(content, 0).to_bytes(8, "little"))


ETAG = re.compile(r'^"0x[0-9A-F]+"$')
REQUEST_ID = re.compile(r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")


def wait_for(condition, seconds=20) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it never came to pass"
        time.sleep(0.1)


def readable_address(url: str) -> str:
    """A URL of the account under test with a signature to read everything in it."""
    from azure.storage.blob import AccountSasPermissions, ResourceTypes, Services, generate_account_sas

    account = Account.under_test()
    sas = generate_account_sas(
        account.name,
        account.key,
        ResourceTypes(object=True),
        AccountSasPermissions(read=True),
        datetime.now(timezone.utc) + timedelta(hours=1),
        services=Services(blob=True, fileshare=True),
    )
    return f"{url}?{sas}"


def readable(client, permission="rt") -> str:
    """The URL of a blob or file with a signature to read it, as the source of a request needs it."""
    from azure.storage import blob, fileshare

    key = client.credential.account_key
    more = {"expiry": datetime.now(timezone.utc) + timedelta(hours=1)}
    if isinstance(client, blob.BlobClient):
        more |= {"account_key": key, "permission": permission}
        sas = blob.generate_blob_sas(client.account_name, client.container_name, client.blob_name, **more)
    else:
        path = "/".join(client.file_path) if isinstance(client.file_path, list) else client.file_path
        more |= {"permission": "r"}
        sas = fileshare.generate_file_sas(client.account_name, client.share_name, path.split("/"), key, **more)
    return f"{client.url.split('?')[0]}?{sas}"
