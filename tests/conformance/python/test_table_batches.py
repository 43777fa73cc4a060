"""Entity group transactions, by the SDK and by hand."""

import json
import threading
import uuid

import pytest
from azure.core import MatchConditions
from azure.data.tables import TableTransactionError, UpdateMode
from support import refused


def entity(row, partition="p", **properties):
    return {"PartitionKey": partition, "RowKey": row, **properties}


def count(table):
    return len(list(table.list_entities()))


def failed(table, operations):
    with pytest.raises(TableTransactionError) as caught:
        table.submit_transaction(operations)
    error = caught.value
    assert error.message.startswith(f"{error.index}:")
    return error.index, error.status_code, error.error_code


def test_every_operation_in_one_batch(table):
    for row in ("update", "merge", "delete", "replace"):
        table.create_entity(entity(row, a=1))
    etag = table.get_entity("p", "merge").metadata["etag"]
    answers = table.submit_transaction([
        ("create", entity("create", b=2)),
        ("update", entity("update", b=2), {"mode": UpdateMode.REPLACE}),
        ("update", entity("merge", b=2), {"etag": etag, "match_condition": MatchConditions.IfNotModified}),
        ("upsert", entity("replace", b=2), {"mode": UpdateMode.REPLACE}),
        ("upsert", entity("new", b=2)),
        ("delete", entity("delete")),
    ])
    found = {row["RowKey"]: row for row in table.list_entities()}
    assert found == {
        "create": entity("create", b=2),
        "update": entity("update", b=2),
        "merge": entity("merge", a=1, b=2),
        "replace": entity("replace", b=2),
        "new": entity("new", b=2),
    }
    order = ["create", "update", "merge", "replace", "new"]
    assert [answer["etag"] for answer in answers[:5]] == [found[row].metadata["etag"] for row in order]
    assert answers[5].get("etag") is None


def test_a_hundred_operations_and_no_more(table):
    table.submit_transaction([("create", entity(f"{row:03}")) for row in range(100)])
    assert count(table) == 100
    more = [("upsert", entity(f"{row:03}", a=1)) for row in range(101)]
    assert failed(table, more) == (99, 400, "InvalidInput")
    assert all("a" not in row for row in table.list_entities())


def test_a_batch_of_more_than_4_mib_is_refused(table):
    from azure.data.tables import RequestTooLargeError

    large = {f"p{number}": "x" * 30_000 for number in range(10)}
    with pytest.raises(RequestTooLargeError) as caught:
        table.submit_transaction([("create", entity(str(row), **large)) for row in range(15)])
    assert caught.value.status_code == 413
    assert count(table) == 0
    table.submit_transaction([("create", entity(str(row), **large)) for row in range(12)])


@pytest.mark.parametrize(
    "operation, expected",
    [
        (("create", entity("there")), (409, "EntityAlreadyExists")),
        (("update", entity("missing")), (404, "ResourceNotFound")),
        (("delete", entity("missing")), (404, "ResourceNotFound")),
        (("create", entity("new1")), (400, "InvalidDuplicateRow")),
        (("upsert", entity("long", v="x" * 40_000)), (400, "PropertyValueTooLarge")),
        (("create", entity("bad", **{"a-b": 1})), (400, "PropertyNameInvalid")),
        (("create", entity("a/b")), (400, "OutOfRangeInput")),
    ],
    ids=lambda value: value[1] if isinstance(value[0], int) else "",
)
@pytest.mark.parametrize("place", [0, 1, 3])
def test_one_failure_undoes_everything(table, operation, expected, place):
    if place == 0 and expected[1] == "InvalidDuplicateRow":
        pytest.skip("the first of two is no duplicate")
    table.create_entity(entity("there"))
    operations = [("upsert", entity("there2")), ("create", entity("new1")), ("create", entity("new2"))]
    if expected[1] == "InvalidDuplicateRow":
        operations[0], operations[1] = operations[1], operations[0]
    operations.insert(place, operation)
    assert failed(table, operations) == (place, *expected)
    assert [row["RowKey"] for row in table.list_entities()] == ["there"]


def test_a_stale_etag_undoes_everything(table):
    table.create_entity(entity("r"))
    old = table.get_entity("p", "r").metadata["etag"]
    table.upsert_entity(entity("r", a=1))
    stale = {"etag": old, "match_condition": MatchConditions.IfNotModified}
    for kind in ("update", "delete"):
        operations = [("create", entity("new")), (kind, entity("r"), stale)]
        assert failed(table, operations) == (1, 412, "UpdateConditionNotSatisfied")
    assert count(table) == 1


def test_a_batch_on_a_table_that_is_not_there(tables):
    missing = tables.get_table_client("Missing" + uuid.uuid4().hex[:8])
    assert failed(missing, [("create", entity("r"))]) == (0, 404, "TableNotFound")


def test_readers_never_see_half_of_a_batch(table):
    rows = [str(row) for row in range(5)]
    table.submit_transaction([("upsert", entity(row, n=0)) for row in rows])
    stop, seen = threading.Event(), []

    def write():
        for number in range(1, 100):
            table.submit_transaction([("upsert", entity(row, n=number)) for row in rows])
        stop.set()

    writer = threading.Thread(target=write)
    writer.start()
    while not stop.is_set():
        seen.append({row["n"] for row in table.list_entities()})
    writer.join()
    assert all(len(numbers) == 1 for numbers in seen), seen


# By hand


def part(method, path, headers=(), body="", content_id=None):
    envelope = "Content-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n"
    if content_id is not None:
        envelope += f"Content-ID: {content_id}\r\n"
    lines = "".join(f"{name}: {value}\r\n" for name, value in dict(headers).items())
    return f"{envelope}\r\n{method} {path} HTTP/1.1\r\n{lines}\r\n{body}"


def change_set(parts, boundary="changeset_1"):
    inner = "".join(f"--{boundary}\r\n{text}\r\n" for text in parts)
    return f"Content-Type: multipart/mixed; boundary={boundary}\r\n\r\n{inner}--{boundary}--\r\n"


def send_batch(table_raw, *sets, headers=(), **others):
    body = "".join(f"--batch_1\r\n{text}\r\n" for text in sets) + "--batch_1--\r\n"
    headers = {"Content-Type": "multipart/mixed; boundary=batch_1", **dict(headers)}
    return table_raw.send("POST", "/$batch", headers=headers, body=body.encode(), **others)


def statuses(answer):
    return [int(line.split()[1]) for line in answer.body.decode().splitlines() if line.startswith("HTTP/1.1 ")]


@pytest.fixture
def address(table, table_raw):
    return f"{table_raw.account.endpoint.geturl().rstrip('/')}/{table.table_name}"


JSON = {"Content-Type": "application/json", "Accept": "application/json;odata=nometadata"}


def test_the_answer_has_the_form_of_the_service(table, table_raw, address):
    created = part("POST", address, JSON, json.dumps(entity("1", a=1)), content_id=7)
    silent = part("POST", address, {**JSON, "Prefer": "return-no-content"}, json.dumps(entity("2")), content_id=8)
    merged = part("MERGE", f"{address}(PartitionKey='p',RowKey='3')", JSON, "{}")
    answer = send_batch(table_raw, change_set([created, silent, merged]))
    assert answer.status == 202
    assert answer.headers["Content-Type"].startswith("multipart/mixed; boundary=batchresponse_")
    text = answer.body.decode()
    assert statuses(answer) == [201, 204, 204]
    assert text.count("--changesetresponse_") == 4 and text.count("\r\nETag: W/\"datetime'") == 3
    assert "Content-ID: 7\r\n" in text and "Content-ID: 8\r\n" in text
    assert f"Location: {address}(PartitionKey='p',RowKey='1')\r\n" in text
    assert f"DataServiceId: {address}(PartitionKey='p',RowKey='2')\r\n" in text
    assert "Preference-Applied: return-no-content\r\n" in text
    content = next(line for line in text.splitlines() if line.startswith("{"))
    assert json.loads(content)["a"] == 1


def test_a_failure_is_one_part_with_its_index(table, table_raw, address):
    create = part("POST", address, JSON, json.dumps(entity("1")), content_id=1)
    again = part("POST", address, JSON, json.dumps(entity("2")), content_id=2)
    table.create_entity(entity("2"))
    answer = send_batch(table_raw, change_set([create, again]))
    assert (answer.status, statuses(answer)) == (202, [409])
    text = answer.body.decode()
    error = json.loads(next(line for line in text.splitlines() if line.startswith("{")))["odata.error"]
    assert error["code"] == "EntityAlreadyExists"
    assert error["message"]["value"].startswith("1:")
    assert f"RequestId:{answer.headers['x-ms-request-id']}\n" in error["message"]["value"]
    assert "Content-ID: 2\r\n" in text


@pytest.mark.parametrize(
    "method, headers", [("MERGE", {}), ("PATCH", {}), ("POST", {"X-HTTP-Method": "MERGE"}), ("POST", {"X-HTTP-Method": "PUT"})]
)
def test_every_way_to_say_a_method(table, table_raw, address, method, headers):
    text = part(method, f"{address}(PartitionKey='p',RowKey='r')", {**JSON, **headers}, '{"a":1}')
    assert statuses(send_batch(table_raw, change_set([text]))) == [204]
    assert table.get_entity("p", "r")["a"] == 1


def test_different_partitions_and_tables(table, tables, table_raw, address):
    one = part("POST", address, JSON, json.dumps(entity("1")))
    other_partition = part("POST", address, JSON, json.dumps(entity("1", partition="q")))
    other_table = part("POST", f"{address}2", JSON, json.dumps(entity("2")))
    for other in (other_partition, other_table):
        answer = send_batch(table_raw, change_set([one, other]))
        assert statuses(answer) == [400]
        assert b'"CommandsInBatchActOnDifferentPartitions"' in answer.body and b'"1:' in answer.body
    assert count(table) == 0


def test_a_single_query(table, table_raw, address):
    table.create_entity(entity("r", a=1))
    for target in (f"{address}(PartitionKey='p',RowKey='r')", f"{address}()?$filter=a%20eq%201"):
        answer = send_batch(table_raw, part("GET", target, {"Accept": "application/json;odata=nometadata"}))
        assert (answer.status, statuses(answer)) == (202, [200]), target
        content = json.loads(next(line for line in answer.body.decode().splitlines() if line.startswith("{")))
        assert content.get("value", [content])[0]["a"] == 1
    missing = send_batch(table_raw, part("GET", f"{address}(PartitionKey='p',RowKey='x')"))
    assert (missing.status, statuses(missing)) == (202, [404])
    assert b'"ResourceNotFound"' in missing.body


@pytest.mark.parametrize(
    "sets",
    [
        lambda address: [],
        lambda address: [change_set([])],
        lambda address: [change_set([part("POST", address, JSON, json.dumps(entity("1")))])] * 2,
        lambda address: [part("GET", f"{address}()")] * 2,
        lambda address: [change_set([part("GET", address)]) + part("GET", address)],
        lambda address: ["Content-Type: text/plain\r\n\r\nGET / HTTP/1.1\r\n"],
        lambda address: [change_set(["Content-Type: application/http\r\n\r\nnonsense\r\n"])],
        lambda address: [change_set([part("POST", address, JSON, json.dumps(entity("1")))]).replace("--changeset_1--", "")],
    ],
)
def test_batches_that_cannot_be_read(table, table_raw, address, sets):
    answer = send_batch(table_raw, *sets(address))
    assert answer.status == 400 or statuses(answer) == [400]
    assert count(table) == 0


@pytest.mark.parametrize(
    "text, status",
    [
        (lambda address: part("GET", f"{address}(PartitionKey='p',RowKey='r')"), 400),
        (lambda address: part("POST", "http://127.0.0.1/otheraccount/T", JSON, json.dumps(entity("1"))), 400),
        (lambda address: part("POST", f"{address}(PartitionKey='p'", JSON, "{}"), 400),
        (lambda address: part("DELETE", f"{address}(PartitionKey='p',RowKey='r')"), 400),
        (lambda address: part("PUT", f"{address}(PartitionKey='p',RowKey='r')", {**JSON, "If-Match": "x"}, "{}"), 400),
        (lambda address: part("PUT", f"{address}(PartitionKey='p',RowKey='r')", {**JSON, "If-None-Match": "*"}, "{}"), 400),
        (lambda address: part("PUT", f"{address}(PartitionKey='p',RowKey='r')", {**JSON, "X-HTTP-Method": "PUT"}, "{}"), 400),
        (lambda address: part("POST", address, {"Content-Type": "application/atom+xml"}, "<entry/>"), 415),
        (lambda address: part("POST", address, JSON, "not JSON"), 400),
    ],
)
def test_parts_that_cannot_be_done(table, table_raw, address, text, status):
    good = part("POST", address, JSON, json.dumps(entity("good")))
    answer = send_batch(table_raw, change_set([good, text(address)]))
    assert (answer.status, statuses(answer)) == (202, [status])
    assert b'"1:' in answer.body
    assert count(table) == 0


def test_lines_may_end_in_lf_alone(table, table_raw, address):
    text = change_set([part("POST", address, JSON, json.dumps(entity("1")))])
    body = f"--batch_1\r\n{text}--batch_1--\r\n".replace("\r\n", "\n")
    headers = {"Content-Type": "multipart/mixed; boundary=batch_1"}
    answer = table_raw.send("POST", "/$batch", headers=headers, body=body.encode())
    assert statuses(answer) == [201]


def test_a_batch_needs_a_boundary(table_raw):
    for content_type in ("multipart/mixed", "application/json", "multipart/mixed; boundary="):
        answer = table_raw.send("POST", "/$batch", headers={"Content-Type": content_type}, body=b"--x--")
        assert (answer.status, answer.code) == (400, "InvalidHeaderValue")
