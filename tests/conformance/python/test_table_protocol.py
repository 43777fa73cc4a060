"""What every request to tables passes: every served row, versions, formats, tunnelled methods, malformed input, and
the table of the guide to concurrency."""

import json
import re

import pytest
from azure.data.tables import TableClient
from support import REQUEST_ID, refused
from table_support import unique_table
from test_support_matrix import served_operations
from test_table_batches import change_set, part, send_batch

ETAG = re.compile(r"^W/\"datetime'\d{4}-\d\d-\d\dT\d\d%3A\d\d%3A\d\d(\.\d{1,7})?Z'\"$")


def body(row="r", **properties):
    return json.dumps({"PartitionKey": "p", "RowKey": row, **properties}).encode()


def calls(table, endpoint):
    """In an order in which each finds what it needs."""
    entity, any_state = f"{table}(PartitionKey='p',RowKey='r')", {"If-Match": "*"}
    yield "Create Table", "POST", "/Tables", "", {}, json.dumps({"TableName": table[1:]}).encode()
    yield "Query Tables", "GET", "/Tables", "", {}, None
    yield "Get Table (single table by name)", "GET", f"/Tables('{table[1:]}')", "", {}, None
    yield "Get Table ACL", "GET", table, "comp=acl", {}, None
    yield "Set Table ACL", "PUT", table, "comp=acl", {}, b"<SignedIdentifiers/>"
    yield "Insert Entity", "POST", table, "", {}, body()
    yield "Get Entity (point query)", "GET", entity, "", {}, None
    yield "Query Entities", "GET", f"{table}()", "", {}, None
    yield "Update Entity", "PUT", entity, "", any_state, body()
    yield "Merge Entity", "MERGE", entity, "", any_state, body()
    yield "Insert Or Replace Entity", "PUT", entity, "", {}, body()
    yield "Insert Or Merge Entity", "PATCH", entity, "", {}, body()
    changes = change_set([part("POST", f"{endpoint}{table}", {}, body("other").decode())])
    batch = {"Content-Type": "multipart/mixed; boundary=batch_1"}
    text = f"--batch_1\r\n{changes}\r\n--batch_1--\r\n".encode()
    yield "Entity Group Transaction (batch)", "POST", "/$batch", "", batch, text
    yield "Delete Entity", "DELETE", entity, "", any_state, None
    yield "Get OData metadata", "GET", "/$metadata", "", {}, None
    yield "Delete Table", "DELETE", f"/Tables('{table[1:]}')", "", {}, None
    properties = "restype=service&comp=properties"
    yield "Get Table Service Properties", "GET", "/", properties, {}, None
    yield "Set Table Service Properties", "PUT", "/", properties, {}, b"<StorageServiceProperties/>"
    # Those that are refused: one is asked at the primary, one finds no rule.
    yield "Get Table Service Stats", "GET", "/", "restype=service&comp=stats", {}, None
    asked = {"Origin": "http://a.example", "Access-Control-Request-Method": "GET"}
    yield "Preflight Table Request", "OPTIONS", table, "", asked, None


def test_served_operations_are_built(table_raw):
    asked = {}
    endpoint = table_raw.account.endpoint.geturl().rstrip("/")
    for name, method, path, query, headers, sent in calls(f"/{unique_table()}", endpoint):
        asked[name] = table_raw.send(method, path, query, headers, sent).status
    assert asked.keys() == served_operations("Table")
    refused = {"Get Table Service Stats": 400, "Preflight Table Request": 403}
    assert {name: status for name, status in asked.items() if status >= 300 and status != refused.get(name)} == {}


# The guide to concurrency: whether the operation answers with an ETag, whether it needs If-Match.
GUIDE = [
    ("Insert Entity", "POST", "", True, False),
    ("Query Entity", "GET", "(PartitionKey='p',RowKey='r')", True, False),
    ("Update Entity", "PUT", "(PartitionKey='p',RowKey='r')", True, True),
    ("Merge Entity", "MERGE", "(PartitionKey='p',RowKey='r')", True, True),
    ("Insert Or Replace Entity", "PUT", "(PartitionKey='p',RowKey='r')", True, False),
    ("Insert Or Merge Entity", "MERGE", "(PartitionKey='p',RowKey='r')", True, False),
    ("Delete Entity", "DELETE", "(PartitionKey='p',RowKey='r')", False, True),
]


def test_the_table_of_the_guide_to_concurrency(table, table_raw):
    path = f"/{table.table_name}"
    for name, method, keys, has_etag, needs_match in GUIDE:
        sent = None if method in ("GET", "DELETE") else body()
        headers = {"If-Match": "*"} if needs_match else {}
        answer = table_raw.send(method, path + keys, headers=headers, body=sent)
        assert answer.status < 300, name
        assert (answer.headers["ETag"] is not None) == has_etag, name
        if has_etag:
            assert ETAG.match(answer.headers["ETag"]), name
    # Without If-Match, an update and a merge are upserts, and a deletion is refused.
    answer = table_raw.send("DELETE", f"{path}(PartitionKey='p',RowKey='r')")
    assert (answer.status, answer.code) == (400, "MissingRequiredHeader")


def test_the_etag_is_the_same_wherever_it_is_told(table, table_raw):
    path = f"/{table.table_name}"
    full = {"Accept": "application/json;odata=fullmetadata"}
    created = table_raw.send("POST", path, headers=full, body=body())
    got = table_raw.send("GET", f"{path}(PartitionKey='p',RowKey='r')")
    listed = table_raw.send("GET", f"{path}()")
    etags = [created.headers["ETag"], created.json()["odata.etag"], got.headers["ETag"], got.json()["odata.etag"]]
    etags.append(listed.json()["value"][0]["odata.etag"])
    assert len(set(etags)) == 1
    timestamp = got.json()["Timestamp"].replace(":", "%3A")
    assert etags[0] == f"W/\"datetime'{timestamp}'\""


@pytest.mark.parametrize("prefer, status", [(None, 201), ("return-content", 201), ("return-no-content", 204)])
def test_an_inserted_entity_comes_back_as_preferred(table, table_raw, prefer, status):
    headers = {"Prefer": prefer} if prefer else {}
    answer = table_raw.send("POST", f"/{table.table_name}", headers=headers, body=body("it's", a=1))
    assert (answer.status, answer.headers["Preference-Applied"]) == (status, prefer)
    endpoint = table_raw.account.endpoint.geturl().rstrip("/")
    assert answer.headers["Location"] == f"{endpoint}/{table.table_name}(PartitionKey='p',RowKey='it%27%27s')"
    assert (answer.headers["DataServiceId"] == answer.headers["Location"]) == (status == 204)
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Cache-Control"] == "no-cache"
    assert (answer.body != b"") == (status == 201)


@pytest.mark.parametrize("by_format", [False, True])
@pytest.mark.parametrize("level", ["nometadata", "minimalmetadata", "fullmetadata"])
def test_entities_at_each_level_of_metadata(table, table_raw, level, by_format):
    account, endpoint = table_raw.account.name, table_raw.account.endpoint.geturl().rstrip("/")
    name = table.table_name
    sent = body(**{"n@odata.type": "Edm.Int64", "n": "5", "t": "x", "d": 2.0})
    form = f"application/json;odata={level}"
    headers = {"Accept": "application/json" if by_format else form}
    query = f"$format={form.replace(';', '%3B')}" if by_format else ""
    created = table_raw.send("POST", f"/{name}", query, headers, sent)
    etag, timestamp = created.headers["ETag"], created.json()["Timestamp"]
    own = {"PartitionKey": "p", "RowKey": "r", "Timestamp": timestamp, "n": "5", "t": "x", "d": 2.0}
    context = {"odata.metadata": f"{endpoint}/$metadata#{name}/@Element"}
    link = f"{name}(PartitionKey='p',RowKey='r')"
    expected = {
        "nometadata": own,
        "minimalmetadata": {**context, "odata.etag": etag, **own, "n@odata.type": "Edm.Int64"},
        "fullmetadata": {
            **context,
            "odata.type": f"{account}.{name}",
            "odata.id": f"{endpoint}/{link}",
            "odata.etag": etag,
            "odata.editLink": link,
            **own,
            "n@odata.type": "Edm.Int64",
            "Timestamp@odata.type": "Edm.DateTime",
        },
    }[level]
    got = table_raw.send("GET", f"/{link}", query, headers)
    for answer in (created, got):
        assert answer.json() == expected
        assert answer.headers["Content-Type"] == f"{form};streaming=true;charset=utf-8"


FORMATS = [
    ({"Accept": "application/atom+xml"}, 415, "AtomFormatNotSupported"),
    ({"Accept": "application/atom+xml,application/xml"}, 415, "AtomFormatNotSupported"),
    ({"Accept": "application/json;odata=verbose"}, 415, "JsonFormatNotSupported"),
    ({"Accept": "text/html"}, 415, "MediaTypeNotSupported"),
    ({"Accept": "application/atom+xml,application/json"}, 200, None),
    ({"Accept": "*/*"}, 200, None),
    ({"Accept": None}, 200, None),
    ({"DataServiceVersion": "1.0;NetFx", "MaxDataServiceVersion": "2.0;NetFx"}, 415, "JsonFormatNotSupported"),
    ({"DataServiceVersion": "1.0;NetFx", "MaxDataServiceVersion": "3.0;NetFx"}, 200, None),
    ({"DataServiceVersion": None, "MaxDataServiceVersion": None}, 200, None),
    ({"DataServiceVersion": "x", "MaxDataServiceVersion": None}, 400, "InvalidInput"),
]


@pytest.mark.parametrize("headers, status, code", FORMATS)
def test_formats_of_answers(table, table_raw, headers, status, code):
    answer = table_raw.send("GET", "/Tables", "$top=1", headers)
    assert (answer.status, answer.code) == (status, code)


@pytest.mark.parametrize(
    "content_type, status, code",
    [
        ("application/json;odata=nometadata", 201, None),
        (None, 201, None),
        ("application/atom+xml", 415, "AtomFormatNotSupported"),
        ("application/json;odata=verbose", 415, "JsonFormatNotSupported"),
        ("text/plain", 415, "MediaTypeNotSupported"),
    ],
)
def test_formats_of_requests(table, table_raw, content_type, status, code):
    answer = table_raw.send("POST", f"/{table.table_name}", headers={"Content-Type": content_type}, body=body())
    assert (answer.status, answer.code) == (status, code)


@pytest.mark.parametrize(
    "version, headers, status, code",
    [
        ("2009-09-19", {}, 415, "JsonFormatNotSupported"),
        ("2012-02-12", {}, 415, "JsonFormatNotSupported"),
        ("2013-08-15", {}, 200, None),
        ("2013-08-15", {"DataServiceVersion": None, "MaxDataServiceVersion": None}, 415, "JsonFormatNotSupported"),
        ("2013-08-15", {"Accept": "application/atom+xml"}, 415, "AtomFormatNotSupported"),
        ("2015-12-11", {"DataServiceVersion": None, "MaxDataServiceVersion": None}, 200, None),
        ("2026-10-06", {}, 200, None),
        ("2031-01-01", {}, 200, None),
        (None, {}, 400, "MissingRequiredHeader"),
        ("2009-04-14", {}, 400, "InvalidHeaderValue"),
        ("newest", {}, 400, "InvalidHeaderValue"),
    ],
)
def test_versions(table_raw, version, headers, status, code):
    answer = table_raw.send("GET", "/Tables", "$top=1", headers, version=version)
    assert (answer.status, answer.code) == (status, code)


@pytest.mark.parametrize("method", ["PUT", "MERGE", "PATCH"])
def test_upserts_came_with_2011_08_18(table, table_raw, method):
    path = f"/{table.table_name}(PartitionKey='p',RowKey='r')"
    answer = table_raw.send(method, path, body=body(), version="2009-09-19")
    assert (answer.status, answer.code) == (400, "MissingRequiredHeader")


@pytest.mark.parametrize("method", ["MERGE", "PATCH", "PUT", "DELETE"])
def test_tunnelled_methods(table, table_raw, method):
    table.create_entity({"PartitionKey": "p", "RowKey": "r", "a": 1})
    path = f"/{table.table_name}(PartitionKey='p',RowKey='r')"
    headers = {"X-HTTP-Method": method, "If-Match": "*"}
    answer = table_raw.send("POST", path, headers=headers, body=None if method == "DELETE" else body(b=2))
    assert answer.status == 204
    found = {entity["RowKey"]: dict(entity) for entity in table.list_entities()}
    keys = {"PartitionKey": "p", "RowKey": "r"}
    expected = {"DELETE": {}, "PUT": {"r": {**keys, "b": 2}}}
    assert found == expected.get(method, {"r": {**keys, "a": 1, "b": 2}})


def test_tunnelled_methods_that_make_no_sense(table, table_raw):
    entity = f"/{table.table_name}(PartitionKey='p',RowKey='r')"
    for method, path, value, code in [
        ("PUT", entity, "MERGE", "XMethodNotUsingPost"),
        ("GET", entity, "MERGE", "XMethodNotUsingPost"),
        ("POST", entity, "GET", "XMethodIncorrectValue"),
        ("POST", entity, "nonsense", "XMethodIncorrectValue"),
        ("POST", entity, "", "XMethodIncorrectValue"),
        ("POST", f"/{table.table_name}", "MERGE", "XMethodIncorrectValue"),
    ]:
        answer = table_raw.send(method, path, headers={"X-HTTP-Method": value}, body=body())
        assert (answer.status, answer.code) == (400, code), (method, value)
    # Twice: http.client takes a header that differs in case for another.
    twice = {"X-HTTP-Method": "MERGE", "x-http-method": "MERGE"}
    answer = table_raw.send("POST", entity, headers=twice, body=body())
    assert (answer.status, answer.code) == (400, "XMethodIncorrectCount")


STALE = "W/\"datetime'2001-01-01T00%3A00%3A00Z'\""


@pytest.mark.parametrize(
    "method, headers, status, code",
    [
        ("PUT", {"If-Match": STALE}, 412, "UpdateConditionNotSatisfied"),
        ("MERGE", {"If-Match": STALE}, 412, "UpdateConditionNotSatisfied"),
        ("DELETE", {"If-Match": STALE}, 412, "UpdateConditionNotSatisfied"),
        ("PUT", {"If-Match": 'W/"wrong"'}, 412, "UpdateConditionNotSatisfied"),
        ("DELETE", {"If-Match": 'W/"wrong"'}, 412, "UpdateConditionNotSatisfied"),
        ("PUT", {"If-Match": '"0x8D"'}, 400, "InvalidInput"),
        ("PUT", {"If-Match": ""}, 400, "MissingRequiredHeader"),
        ("DELETE", {"If-Match": "x"}, 400, "InvalidInput"),
        ("DELETE", {}, 400, "MissingRequiredHeader"),
        ("PUT", {"If-None-Match": "*"}, 400, "InvalidInput"),
        ("DELETE", {"If-None-Match": STALE}, 400, "InvalidInput"),
        ("PUT", {"If-Match": "*", "If-None-Match": "*"}, 400, "InvalidInput"),
        ("MERGE", {"If-Match": "*"}, 204, None),
        # A browser that has the answer kept asks so by itself.
        ("GET", {"If-None-Match": STALE}, 200, None),
    ],
)
def test_conditions(table, table_raw, method, headers, status, code):
    table.create_entity({"PartitionKey": "p", "RowKey": "r"})
    sent = None if method in ("GET", "DELETE") else body()
    answer = table_raw.send(method, f"/{table.table_name}(PartitionKey='p',RowKey='r')", headers=headers, body=sent)
    assert (answer.status, answer.code) == (status, code)


@pytest.mark.parametrize(
    "sent, code",
    [
        (b"", "InvalidInput"),
        (b"{", "InvalidInput"),
        (b"[]", "InvalidInput"),
        (b"\xff\xfe", "InvalidInput"),
        (b'{"PartitionKey":"p","RowKey":"r","a":{}}', "InvalidInput"),
        (b'{"PartitionKey":"p","RowKey":"r","a":[1]}', "InvalidInput"),
        (b'{"PartitionKey":"p","RowKey":"r","a":"\\ud800"}', "InvalidInput"),
        (b'{"PartitionKey":"p","RowKey":"r","a@odata.type":"Edm.Int64","a":"x"}', "InvalidInput"),
        (b'{"PartitionKey":"p","RowKey":"r","a@odata.type":"Edm.Nothing","a":"x"}', "InvalidValueType"),
        (b'{"PartitionKey":1,"RowKey":"r"}', "InvalidInput"),
        (b'{"PartitionKey":"p","PartitionKey@odata.type":"Edm.DateTime","RowKey":"r"}', "InvalidInput"),
        (b'{"PartitionKey":"p","RowKey":"r","RowKey@odata.type":"Edm.Guid"}', "InvalidInput"),
        (b'{"PartitionKey":"p"}', "PropertiesNeedValue"),
        (b"{}", "PropertiesNeedValue"),
        (b"[" * 100_000, "InvalidInput"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_bodies_that_are_no_entity(table, table_raw, sent, code):
    answer = table_raw.send("POST", f"/{table.table_name}", body=sent)
    assert (answer.status, answer.code) == (400, code)


def test_keys_of_any_type_where_the_address_names_the_entity(table, table_raw):
    sent = b'{"PartitionKey":"p","PartitionKey@odata.type":"Edm.DateTime","RowKey":"r","a":1}'
    assert table_raw.send("PUT", f"/{table.table_name}(PartitionKey='p',RowKey='r')", body=sent).status == 204
    assert table.get_entity("p", "r")["a"] == 1


@pytest.mark.parametrize("text, expected", [("False", False), ("false", False), ("True", True), ("TRUE", True)])
def test_booleans_that_are_sent_as_texts(table, table_raw, text, expected):
    sent = body(**{"a": text, "a@odata.type": "Edm.Boolean"})
    assert table_raw.send("POST", f"/{table.table_name}", body=sent).status in (201, 204)
    assert table.get_entity("p", "r")["a"] is expected
    found = table.query_entities(f"a eq {text}")
    assert len(list(found)) == 1


def test_keys_of_body_and_address_must_agree(table, table_raw):
    path = f"/{table.table_name}(PartitionKey='p',RowKey='r')"
    for sent in (body("other"), b'{"PartitionKey":"q"}'):
        answer = table_raw.send("PUT", path, body=sent)
        assert (answer.status, answer.code) == (400, "InvalidInput")
    assert table_raw.send("PUT", path, body=b'{"a":1}').status == 204
    assert table.get_entity("p", "r")["a"] == 1


@pytest.mark.parametrize(
    "method, path, status, code",
    [
        ("GET", "/{table}(PartitionKey='p')", 400, "InvalidInput"),
        ("GET", "/{table}(PartitionKey='p',RowKey='r'", 400, "InvalidInput"),
        ("GET", "/{table}(PartitionKey=p,RowKey=r)", 400, "InvalidInput"),
        ("GET", "/{table}(PartitionKey='%FF',RowKey='r')", 400, "InvalidInput"),
        ("GET", "/{table}/x", 400, "InvalidInput"),
        ("DELETE", "/{table}/Tables('{table}')", 400, "InvalidInput"),
        ("GET", "/{table}//", 400, "InvalidResourceName"),
        ("GET", "/a//", 400, "InvalidResourceName"),
        ("PUT", "/a%2F%2F(PartitionKey='p',RowKey='r')", 400, "InvalidResourceName"),
        ("GET", "/{table}(PartitionKey='a%2Fb',RowKey='r')", 400, "OutOfRangeInput"),
        ("GET", "/a(PartitionKey='p',RowKey='r')", 400, "OutOfRangeInput"),
        ("GET", "/a-b-c(PartitionKey='p',RowKey='r')", 400, "InvalidResourceName"),
        ("POST", "/{table}(PartitionKey='p',RowKey='r')", 405, "MethodNotAllowed"),
        ("PUT", "/{table}", 405, "MethodNotAllowed"),
        ("DELETE", "/Tables", 405, "MethodNotAllowed"),
        ("PROPFIND", "/Tables", 405, "MethodNotAllowed"),
        ("GET", "/", 400, "InvalidQueryParameterValue"),
    ],
)
def test_addresses_that_lead_nowhere(table, table_raw, method, path, status, code):
    answer = table_raw.send(method, path.format(table=table.table_name))
    assert (answer.status, answer.code) == (status, code)
    assert answer.headers["Content-Type"].startswith("application/json;odata=minimalmetadata")


def test_a_client_whose_endpoint_ends_with_the_name_of_a_table(tables, table):
    def client(name):
        return TableClient(f"{tables.url}/{name}", table.table_name, credential=tables.credential)

    with refused(404, "TableNotFound") as caught:
        client(unique_table()).create_table()
    assert "Please check your account URL." in str(caught.value)
    with refused(400, "PropertiesNeedValue") as caught:
        client(table.table_name).create_table()
    assert "Please check your account URL." in str(caught.value)
    with refused(400, "InvalidInput") as caught:
        client(table.table_name).delete_table()
    assert "Please check your account URL." in str(caught.value)
    with refused(415, "MediaTypeNotSupported"):
        client(table.table_name).submit_transaction([("upsert", {"PartitionKey": "p", "RowKey": "r"})])


@pytest.mark.parametrize("name", ["1table", "aa", "a" * 64, "a//", "my_table"])
def test_names_that_the_client_explains(tables, name):
    client = tables.get_table_client(name)
    keys = {"PartitionKey": "p", "RowKey": "r"}
    for call in (
        client.create_table,
        client.delete_table,
        client.get_table_access_policy,
        lambda: client.create_entity(keys),
        lambda: client.upsert_entity(keys),
        lambda: client.delete_entity("p", "r"),
        lambda: client.submit_transaction([("upsert", keys)]),
    ):
        with pytest.raises(ValueError, match="Storage table names must be alphanumeric"):
            call()


def test_errors_have_the_form_of_odata(table, table_raw):
    answer = table_raw.send("GET", f"/{table.table_name}(PartitionKey='p',RowKey='missing')")
    error = answer.json()["odata.error"]
    assert error["code"] == "ResourceNotFound" and error["message"]["lang"] == "en-US"
    text, request_id, time = error["message"]["value"].split("\n")
    assert request_id == f"RequestId:{answer.headers['x-ms-request-id']}"
    assert time.startswith("Time:20") and time.endswith("Z")


def test_common_headers(table, table_raw):
    answer = table_raw.send("GET", "/Tables", headers={"x-ms-client-request-id": "mine"})
    assert answer.headers["Server"].startswith("Windows-Azure-Table/1.0")
    assert REQUEST_ID.match(answer.headers["x-ms-request-id"])
    assert answer.headers["x-ms-client-request-id"] == "mine"
    assert answer.headers["x-ms-version"] == table_raw.version


def test_a_body_that_is_too_long(table, table_raw):
    sent = b'{"PartitionKey":"p","RowKey":"r","a":"' + b"x" * (4 * 1024 * 1024) + b'"}'
    answer = table_raw.send("POST", f"/{table.table_name}", body=sent)
    assert (answer.status, answer.code) == (413, "RequestBodyTooLarge")
    answer = send_batch(table_raw, "x" * (4 * 1024 * 1024))
    assert (answer.status, answer.code) == (413, "RequestBodyTooLarge")
