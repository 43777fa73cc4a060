"""Entity group transactions as raw text: what SDKs never send, and what they do not show."""

import json
import re

import pytest
from table_support import table_endpoint


def part(method, path, body=None, headers=None, content_id=None):
    sent = {"Accept": "application/json;odata=minimalmetadata", "DataServiceVersion": "3.0"}
    if body is not None:
        sent["Content-Type"] = "application/json"
    sent |= headers or {}
    lines = [f"{method} {table_endpoint()}{path} HTTP/1.1", *(f"{name}: {value}" for name, value in sent.items())]
    envelope = ["Content-Type: application/http", "Content-Transfer-Encoding: binary"]
    if content_id is not None:
        envelope.append(f"Content-ID: {content_id}")
    return "\r\n".join([*envelope, "", *lines, "", json.dumps(body) if body is not None else "", ""])


def change_set(parts):
    inner = "".join(f"--changeset\r\n{text}" for text in parts)
    return f"Content-Type: multipart/mixed; boundary=changeset\r\n\r\n{inner}--changeset--\r\n"


def send(raw, *contents):
    body = "".join(f"--batch\r\n{content}" for content in contents) + "--batch--\r\n"
    return raw.send("POST", "/$batch", "", {"Content-Type": "multipart/mixed; boundary=batch"}, body.encode())


def upsert(table, row, **others):
    return part("PUT", f"/{table}(PartitionKey='p',RowKey='{row}')", {"n": 1}, **others)


def answered(answer):
    """The status and the Content-ID of each part."""
    text = answer.body.decode()
    return re.findall(r"HTTP/1.1 (\d+)[^\r]*\r\n(?:Content-ID: ([^\r]*)\r\n)?", text)


def test_parts_are_numbered_unless_they_have_a_number(table, table_raw):
    name = table.table_name
    answer = send(table_raw, change_set([upsert(name, row) for row in "ab"]))
    assert (answer.status, answered(answer)) == (202, [("204", "1"), ("204", "2")])
    answer = send(table_raw, change_set([upsert(name, "c", content_id="x7"), upsert(name, "d")]))
    assert answered(answer) == [("204", "x7"), ("204", "2")]
    insert = part("POST", f"/{name}", {"PartitionKey": "p", "RowKey": "a"})
    answer = send(table_raw, change_set([upsert(name, "e"), insert]))
    assert answered(answer) == [("409", "2")]
    assert '"1:' in answer.body.decode(), "the index of the message begins with 0"


def test_a_query_stands_alone(table, table_raw):
    name = table.table_name
    for row in "abc":
        table.create_entity({"PartitionKey": "p", "RowKey": row, "n": 1})
    query = part("GET", f"/{name}()?$filter=n%20eq%201&$top=2")
    answer = send(table_raw, query)
    text = answer.body.decode()
    assert (answer.status, [status for status, _ in answered(answer)]) == (202, ["200"])
    assert "x-ms-continuation-nextpartitionkey: 1!4!cA--" in text.lower().replace("ca--", "cA--")
    assert text.count('"RowKey"') == 2
    wrong = part("GET", f"/{name}()?$filter=n%20n")
    answer = send(table_raw, wrong)
    assert (answer.status, [status for status, _ in answered(answer)]) == (202, ["400"])
    assert '"code":"InvalidInput"' in answer.body.decode()


@pytest.mark.parametrize(
    "contents",
    [
        lambda name: [change_set([upsert(name, "a")]), change_set([upsert(name, "b")])],
        lambda name: [part("GET", f"/{name}()"), part("GET", f"/{name}()")],
        lambda name: [part("GET", f"/{name}()"), change_set([upsert(name, "a")])],
        lambda name: [change_set([])],
        lambda name: [],
    ],
)
def test_what_is_neither_one_change_set_nor_one_query(table, table_raw, contents):
    answer = send(table_raw, *contents(table.table_name))
    assert (answer.status, answer.code) == (400, "InvalidInput")
    assert list(table.list_entities()) == []


def test_of_more_than_a_hundred_operations_the_last_that_may_be_there_fails(table, table_raw):
    answer = send(table_raw, change_set([upsert(table.table_name, row) for row in range(101)]))
    assert (answer.status, [status for status, _ in answered(answer)]) == (202, ["400"])
    text = answer.body.decode()
    assert '"code":"InvalidInput"' in text
    assert '"99:The batch request operation exceeds the maximum 100 changes per change set.' in text
    assert list(table.list_entities()) == []


def test_a_change_outside_a_change_set(table, table_raw):
    answer = send(table_raw, upsert(table.table_name, "a"))
    assert (answer.status, [status for status, _ in answered(answer)]) == (202, ["400"])
    assert list(table.list_entities()) == []
