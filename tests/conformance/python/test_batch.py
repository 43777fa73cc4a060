"""Blob Batch: many deletions in one request, each part with its own credentials and its own answer."""

import email
import http.client
import io
from email.utils import formatdate

import pytest
from azure.storage.blob import (
    AccountSasPermissions,
    ContainerClient,
    ContainerSasPermissions,
    PartialBatchErrorException,
    ResourceTypes,
    generate_account_sas,
    generate_container_sas,
)
from support import REQUEST_ID, base64_text, md5, unique
from test_access import HOUR, now, unsigned_token

BOUNDARY = "batch_0f8fad5b"
TYPE = {"Content-Type": f"multipart/mixed; boundary={BOUNDARY}"}


def names(container):
    return [blob.name for blob in container.list_blobs()]


def fill(container, *wanted):
    for name in wanted:
        container.upload_blob(name, b"content")


class Part(http.client.HTTPResponse):
    """One answer of a batch."""

    class Socket:
        def __init__(self, content):
            self.content = content

        def makefile(self, *_):
            return io.BytesIO(self.content)

    def __init__(self, message):
        super().__init__(self.Socket(message.get_payload(decode=True)))
        self.begin()
        self.content_id = message["Content-ID"]
        self.body = self.read()


def parts_of(answer):
    assert answer.status == 202, answer.body
    head = f"Content-Type: {answer.headers['Content-Type']}\r\n\r\n".encode()
    message = email.message_from_bytes(head + answer.body)
    assert message.get_content_type() == "multipart/mixed"
    return [Part(part) for part in message.get_payload()]


def request_text(raw, method, path, query="", headers=None, sign=True):
    """A part as clients write it: signed, without a version."""
    target = raw.account.endpoint.path.rstrip("/") + path
    sent = {"x-ms-date": formatdate(usegmt=True), "Content-Length": "0", **(headers or {})}
    if sign:
        sent["Authorization"] = raw.authorization(method, target, query, sent)
    lines = [f"{method} {target}{'?' + query if query else ''} HTTP/1.1"]
    return "\r\n".join(lines + [f"{name}: {value}" for name, value in sent.items()]) + "\r\n"


def body_of(requests, ids=True):
    text = ""
    for number, request in enumerate(requests):
        text += f"--{BOUNDARY}\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n"
        text += f"Content-ID: {number}\r\n" if ids else ""
        text += f"\r\n{request}\r\n"
    return f"{text}--{BOUNDARY}--\r\n".encode()


def send(raw, requests, path="/", query="comp=batch", **arguments):
    body = requests if isinstance(requests, bytes) else body_of(requests)
    return raw.send("POST", path, query, TYPE, body, **arguments)


def test_delete_blobs_by_the_sdk(container):
    fill(container, "a", "b c/ä+&%", "stays")
    answers = list(container.delete_blobs("a", "b c/ä+&%"))
    assert [answer.status_code for answer in answers] == [202, 202]
    assert names(container) == ["stays"]


def test_a_part_that_fails_does_not_stop_the_others(container):
    fill(container, "a", "b", "leased")
    lease = container.get_blob_client("leased").acquire_lease()
    answers = list(container.delete_blobs("a", "absent", "leased", "b", raise_on_any_failure=False))
    assert [answer.status_code for answer in answers] == [202, 404, 412, 202]
    codes = [answer.headers.get("x-ms-error-code") for answer in answers]
    assert codes == [None, "BlobNotFound", "LeaseIdMissing", None]
    assert names(container) == ["leased"]
    with pytest.raises(PartialBatchErrorException):
        container.delete_blobs("absent")
    list(container.delete_blobs({"name": "leased", "lease_id": lease.id}))
    assert names(container) == []


def test_conditions_are_those_of_the_part(container):
    fill(container, "a", "b")
    etag = container.get_blob_client("a").get_blob_properties().etag
    parts = [{"name": "a", "etag": etag}, {"name": "b", "etag": etag}]
    answers = list(container.delete_blobs(*parts, raise_on_any_failure=False))
    assert [answer.status_code for answer in answers] == [202, 412]


def test_account_scope_reaches_every_container(raw, service, container):
    other = service.create_container(unique("test"))
    fill(container, "a")
    fill(other, "b")
    paths = [f"/{container.container_name}/a", f"/{other.container_name}/b", "/nowhere/c"]
    parts = parts_of(send(raw, [request_text(raw, "DELETE", path) for path in paths]))
    assert [part.status for part in parts] == [202, 202, 404]
    assert [part.content_id for part in parts] == ["0", "1", "2"]
    assert parts[2].headers["x-ms-error-code"] == "ContainerNotFound"
    assert b"<Code>ContainerNotFound</Code>" in parts[2].body
    ids = {part.headers["x-ms-request-id"] for part in parts}
    assert len(ids) == 3 and all(REQUEST_ID.match(request_id) for request_id in ids)
    assert {part.headers["x-ms-version"] for part in parts} == {raw.version}
    other.delete_container()


def test_the_content_id_may_be_left_out(raw, container):
    fill(container, "a")
    part = request_text(raw, "DELETE", f"/{container.container_name}/a")
    (answer,) = parts_of(send(raw, body_of([part], ids=False)))
    assert (answer.status, answer.content_id) == (202, None)


def test_each_part_has_its_own_credentials(raw, account, container):
    fill(container, "a", "b", "c", "d")
    path = f"/{container.container_name}"
    forged = request_text(raw, "DELETE", f"{path}/b", sign=False)
    forged += f"Authorization: SharedKey {account.name}:{'A' * 43}=\r\n"
    expiry = now() + HOUR
    reading = generate_container_sas(
        account.name, container.container_name, account_key=account.key, permission="r", expiry=expiry
    )
    deleting = generate_container_sas(
        account.name, container.container_name, account_key=account.key, permission="d", expiry=expiry
    )
    requests = [
        request_text(raw, "DELETE", f"{path}/a", sign=False),
        forged,
        request_text(raw, "DELETE", f"{path}/c", reading, sign=False),
        request_text(raw, "DELETE", f"{path}/d", deleting, sign=False),
    ]
    parts = parts_of(send(raw, requests))
    codes = [(part.status, part.headers["x-ms-error-code"]) for part in parts]
    assert codes == [
        (401, "NoAuthenticationInformation"),
        (403, "AuthenticationFailed"),
        (403, "AuthorizationPermissionMismatch"),
        (202, None),
    ]
    assert names(container) == ["a", "b", "c"]


@pytest.mark.parametrize("kind", ["container", "account"])
def test_a_signature_is_enough(account, container, kind):
    fill(container, "a", "b")
    expiry = now() + HOUR
    if kind == "container":
        permission = ContainerSasPermissions(delete=True)
        sas = generate_container_sas(
            account.name, container.container_name, account_key=account.key, permission=permission, expiry=expiry
        )
    else:
        permission, types = AccountSasPermissions(delete=True), ResourceTypes(object=True)
        sas = generate_account_sas(
            account.name, account_key=account.key, resource_types=types, permission=permission, expiry=expiry
        )
    client = ContainerClient.from_container_url(container.url, credential=sas, retry_total=0)
    assert [answer.status_code for answer in client.delete_blobs("a", "b")] == [202, 202]


def test_a_container_signature_is_not_enough_for_the_account(raw, account, container):
    fill(container, "a")
    sas = generate_container_sas(
        account.name, container.container_name, account_key=account.key, permission="d", expiry=now() + HOUR
    )
    part = request_text(raw, "DELETE", f"/{container.container_name}/a", sas, sign=False)
    answer = send(raw, [part], query=f"comp=batch&{sas}", sign=False)
    assert (answer.status, names(container)) == (403, ["a"])


def test_tokens_are_those_of_the_parts(unsigned_tokens, raw, container):
    fill(container, "a", "b")
    path = f"/{container.container_name}"
    token = {"Authorization": f"Bearer {unsigned_token()}"}
    requests = [
        request_text(raw, "DELETE", f"{path}/a", headers=token, sign=False),
        request_text(raw, "DELETE", f"{path}/b", sign=False),
    ]
    body, query = body_of(requests), "restype=container&comp=batch"
    parts = parts_of(raw.send("POST", path, query, TYPE | token, body, sign=False))
    assert [part.status for part in parts] == [202, 401]


def test_the_batch_itself_needs_credentials(raw, container):
    fill(container, "a")
    part = request_text(raw, "DELETE", f"/{container.container_name}/a")
    assert send(raw, [part], sign=False).status == 401
    assert names(container) == ["a"]


def test_a_container_batch_stays_in_its_container(raw, service, container):
    other = service.create_container(unique("test"))
    fill(container, "a")
    fill(other, "b")
    paths = [f"/{container.container_name}/a", f"/{other.container_name}/b"]
    requests = [request_text(raw, "DELETE", path) for path in paths]
    answer = send(raw, requests, f"/{container.container_name}", "restype=container&comp=batch")
    inside, outside = parts_of(answer)
    assert (inside.status, outside.status) == (202, 400)
    assert outside.headers["x-ms-error-code"] == "InvalidInput"
    assert (names(container), names(other)) == ([], ["b"])
    other.delete_container()


def test_256_parts_and_not_one_more(raw, container):
    fill(container, "a")
    path = f"/{container.container_name}"
    absent = [request_text(raw, "DELETE", f"{path}/absent-{number}") for number in range(255)]
    present = request_text(raw, "DELETE", f"{path}/a")
    answer = send(raw, [present, *absent, present])
    assert (answer.status, answer.code) == (400, "ExceedsMaxBatchRequestCount")
    assert names(container) == ["a"]
    parts = parts_of(send(raw, [*absent, present]))
    assert [part.status for part in parts] == [404] * 255 + [202]


def test_a_batch_that_cannot_be_run_whole_is_not_run_at_all(raw, container):
    fill(container, "a")
    path = f"/{container.container_name}/a"
    good = request_text(raw, "DELETE", path)
    tier = request_text(raw, "PUT", path, "comp=tier", {"x-ms-access-tier": "Cool"})
    whole = body_of([good])
    cases = {
        "no parts": body_of([]),
        "nothing": b"",
        "no end": whole[: whole.rindex(b"--" + BOUNDARY.encode())],
        "bare line feeds": whole.replace(b"\r\n", b"\n"),
        "no request": body_of([good, ""]),
        "another operation": body_of([good, request_text(raw, "GET", path)]),
        "a batch in a batch": body_of([good, request_text(raw, "POST", "/", "comp=batch")]),
        "another account": body_of([good, "DELETE /other/c/b HTTP/1.1\r\n"]),
        "an address that is none": body_of([good, good.replace(path, path + "%zz")]),
        "a host": body_of([good, good.replace("DELETE /", "DELETE http://host/")]),
        "bytes": whole + b"\xff",
    }
    for case, body in cases.items():
        answer = send(raw, body)
        assert answer.status == 400, case
    assert send(raw, body_of([good, tier])).code == "AllBatchSubRequestsShouldBeSameApi"
    assert send(raw, b"-" * (4 * 1024 * 1024 + 1)).code == "RequestBodyTooLarge"
    for content_type in ("multipart/mixed", f"multipart/form-data; boundary={BOUNDARY}", "application/xml"):
        answer = raw.send("POST", "/", "comp=batch", {"Content-Type": content_type}, whole)
        assert answer.code == "InvalidHeaderValue", content_type
    assert raw.send("POST", "/", "comp=batch", {}, whole).code == "MissingRequiredHeader"
    assert names(container) == ["a"]


def test_a_digest_of_the_batch_is_verified(raw, container):
    fill(container, "a")
    body = body_of([request_text(raw, "DELETE", f"/{container.container_name}/a")])
    wrong = TYPE | {"Content-MD5": "AAAAAAAAAAAAAAAAAAAAAA=="}
    assert raw.send("POST", "/", "comp=batch", wrong, body).code == "Md5Mismatch"
    right = TYPE | {"Content-MD5": base64_text(md5(body))}
    assert [part.status for part in parts_of(raw.send("POST", "/", "comp=batch", right, body))] == [202]
