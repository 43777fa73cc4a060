"""Error texts: the sentence of the service, in the message and as the reason phrase."""

from datetime import datetime, timedelta, timezone

import pytest
from azure.storage.blob import BlobClient, BlobLeaseClient, BlobSasPermissions, generate_blob_sas
from azure.storage.fileshare import ShareLeaseClient
from support import refused, unique

HOUR = timedelta(hours=1)


def now():
    return datetime.now(timezone.utc).replace(microsecond=0)


def said(answer):
    """The first line of the message."""
    return answer.xml().findtext("Message").split("\n")[0]


@pytest.mark.parametrize(
    "front, method, path, query, status, sentence",
    [
        ("raw", "GET", "/{missing}/b", "", 404, "The specified container does not exist."),
        ("raw", "GET", "/{there}/missing", "", 404, "The specified blob does not exist."),
        ("raw", "PUT", "/{there}", "restype=container", 409, "The specified container already exists."),
        ("raw", "GET", "/{there}", "restype=container&comp=x", 400, "Value for one of the query parameters specified in the request URI is invalid."),
        ("raw", "PATCH", "/{there}/b", "", 405, "The resource doesn't support specified Http Verb."),
        ("raw", "PUT", "/{there}/b", "", 400, "An HTTP header that's mandatory for this request is not specified."),
        ("raw", "PUT", "/UPPER", "restype=container", 400, "The specified resource name contains invalid characters."),
        ("raw", "PUT", "/ab", "restype=container", 400, "The specified resource name length is not within the permissible limits."),
        ("queue_raw", "GET", "/{missing}/messages", "", 404, "The specified queue does not exist."),
        ("file_raw", "GET", "/{missing}/f", "", 404, "The specified share does not exist."),
    ],
)
def test_each_refusal_has_its_sentence(request, container, front, method, path, query, status, sentence):
    path = path.format(there=container.container_name, missing=unique("missing"))
    answer = request.getfixturevalue(front).send(method, path, query)
    assert (answer.status, answer.reason, said(answer)) == (status, sentence, sentence)


def test_an_answer_without_a_body_has_it_behind_its_status(container, raw):
    answer = raw.send("HEAD", f"/{container.container_name}/missing")
    assert (answer.status, answer.reason) == (404, "The specified blob does not exist.")
    answer = raw.send("GET", f"/{container.container_name}", "restype=container&comp=list")
    assert (answer.status, answer.reason) == (200, "OK")


def test_tables_have_the_reason_phrases_of_http(table_raw):
    answer = table_raw.send("GET", "/missing()")
    assert (answer.status, answer.reason) == (404, "Not Found")
    message = answer.json()["odata.error"]["message"]
    assert message["lang"] == "en-US"
    assert message["value"].startswith("The table specified does not exist.\nRequestId:")


@pytest.mark.parametrize(
    "sent, message",
    [
        (b'{"PartitionKey":1,"RowKey":"r"}', "One of the request inputs is not valid."),
        (
            b'{"PartitionKey":"p","RowKey":"r","a":"9223372036854775808","a@odata.type":"Edm.Int64"}',
            "An error occurred while processing this request.",
        ),
        (b'{"PartitionKey":"p","RowKey":"r","123":456}', "The property name is invalid."),
    ],
)
def test_what_clients_of_tables_look_for(table, table_raw, sent, message):
    answer = table_raw.send("POST", f"/{table.table_name}", body=sent)
    assert f'"message":{{"lang":"en-US","value":"{message}' in answer.body.decode()


def test_a_lease_names_what_it_is_on(container, blob, share):
    missing = "There is currently a lease on the {} and no lease ID was specified in the request."
    lease = BlobLeaseClient(container)
    lease.acquire(60)
    with refused(412, "LeaseIdMissing") as caught:
        container.delete_container()
    assert missing.format("container") in caught.value.message
    lease.release()
    with refused(409, "LeaseNotPresentWithLeaseOperation") as caught:
        lease.break_lease()
    assert "There is currently no lease on the container." in caught.value.message
    BlobLeaseClient(blob).acquire(60)
    with refused(412, "LeaseIdMissing") as caught:
        blob.upload_blob(b"other", overwrite=True)
    assert missing.format("blob") in caught.value.message
    BlobLeaseClient(blob).break_lease(0)
    with refused(409, "LeaseNotPresentWithLeaseOperation") as caught:
        ShareLeaseClient(share).break_lease()
    assert "There is currently no lease on the file share." in caught.value.message


def test_what_is_wrong_with_a_signature(account, blob):
    def detail(**values):
        sas = generate_blob_sas(
            account.name,
            blob.container_name,
            blob.blob_name,
            account_key=values.pop("key", account.key),
            permission=BlobSasPermissions(read=True),
            **values,
        )
        client = BlobClient.from_blob_url(f"{blob.url}?{sas}", retry_total=0)
        with refused(403, "AuthenticationFailed") as caught:
            client.download_blob()
        assert "Server failed to authenticate the request." in caught.value.message
        return caught.value.message

    moment = now()
    assert f"Signed expiry time [{moment - HOUR:%a, %d %b %Y %H:%M:%S} GMT] must be after signed start time [" in detail(
        expiry=moment - HOUR
    )
    frame = "Signature not valid in the specified time frame: Start ["
    assert frame in detail(start=moment - 2 * HOUR, expiry=moment - HOUR)
    assert frame in detail(start=moment + HOUR, expiry=moment + 2 * HOUR)
    message = detail(expiry=moment + HOUR, key="AAAA")
    assert "Signature did not match. String to sign used was r" in message
    assert account.key not in message


def test_a_write_to_the_secondary_endpoint(raw, account):
    if not account.is_path_style:
        pytest.skip("the secondary endpoint of a host-style account has another host")
    target = f"/{account.name}-secondary/{unique('test')}"
    headers = {"x-ms-date": f"{now():%a, %d %b %Y %H:%M:%S} GMT", "x-ms-version": raw.version, "Content-Length": "0"}
    headers["Authorization"] = raw.authorization("PUT", target, "restype=container", headers)
    answer = raw.exchange("PUT", f"{target}?restype=container", headers, None)
    assert (answer.status, answer.code) == (403, "InsufficientAccountPermissions")
    assert said(answer) == "Write operations are not allowed."
