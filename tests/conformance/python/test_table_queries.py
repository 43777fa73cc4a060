"""Query Entities through azure-data-tables, and by raw requests where the SDK cannot ask."""

import datetime
import urllib.parse
import uuid

import pytest
from azure.core.credentials import AzureNamedKeyCredential, AzureSasCredential
from azure.data.tables import EdmType, EntityProperty, TableClient, TableSasPermissions, generate_table_sas
from support import refused
from table_support import table_account, table_endpoint, unique_table

GUID = uuid.UUID("c9da6455-213d-42c9-9a79-3e9149a57833")
BORN = datetime.datetime(1973, 10, 4, 12, 30, tzinfo=datetime.timezone.utc)


@pytest.fixture
def people(table):
    """Two entities that differ in every property, of every type, and one without properties."""
    table.create_entity({
        "PartitionKey": "people",
        "RowKey": "anna",
        "age": 39,
        "ratio": 3.1,
        "visits": EntityProperty(2**40, EdmType.INT64),
        "married": True,
        "born": BORN,
        "id": GUID,
        "binary": b"\x00\xab\xff",
        "name": "Anna O'Neill",
    })
    table.create_entity({
        "PartitionKey": "people",
        "RowKey": "bert",
        "age": 53,
        "ratio": 8.0,
        "visits": EntityProperty(-5, EdmType.INT64),
        "married": False,
        "born": BORN + datetime.timedelta(days=3650),
        "id": uuid.UUID(int=1),
        "binary": b"\x01",
        "name": "Bert",
    })
    table.create_entity({"PartitionKey": "people", "RowKey": "nobody"})
    return table


@pytest.fixture(scope="module")
def grid(tables):
    """Five partitions of twenty: `n` counts them."""
    client = tables.create_table(unique_table("grid"))
    for n in range(100):
        client.create_entity({"PartitionKey": f"{n // 20:02}", "RowKey": f"{n % 20:02}", "n": n})
    yield client
    client.delete_table()


def rows(entities):
    return [entity["RowKey"] for entity in entities]


def keys(entities):
    return [f"{entity['PartitionKey']}/{entity['RowKey']}" for entity in entities]


@pytest.mark.parametrize(
    ("text", "parameter", "expected"),
    [
        ("age lt @p", 40, ["anna"]),
        ("age eq @p", 53, ["bert"]),
        ("ratio lt @p", 4.1, ["anna"]),
        ("ratio gt @p", 3, ["anna", "bert"]),
        ("ratio eq @p", 8, ["bert"]),
        ("ratio lt @p", 1e300, ["anna", "bert"]),
        ("visits eq @p", 2**40, ["anna"]),
        ("visits lt @p", 0, ["bert"]),
        ("married eq @p", True, ["anna"]),
        ("married ne @p", True, ["bert"]),
        ("born eq @p", BORN, ["anna"]),
        ("born gt @p", BORN, ["bert"]),
        ("id eq @p", GUID, ["anna"]),
        ("binary eq @p", b"\x00\xab\xff", ["anna"]),
        ("binary gt @p", b"\x00", ["anna", "bert"]),
        ("name eq @p", "Anna O'Neill", ["anna"]),
        ("name ge @p", "B", ["bert"]),
        ("RowKey ge @p", "b", ["bert", "nobody"]),
        ("@p lt RowKey", "bert", ["nobody"]),
        ("Timestamp gt @p", BORN, ["anna", "bert", "nobody"]),
        # Comparisons with a missing property are always false.
        ("name ne @p", "", ["anna", "bert"]),
        ("not (name gt @p )", "", ["nobody"]),
        # A constant finds values of its own type.
        ("age eq @p", "39", []),
        ("age ne @p", "39", []),
        ("age lt @p", 39.5, []),
        ("name eq @p", 39, []),
    ],
)
def test_parameters_of_every_type(people, text, parameter, expected):
    assert rows(people.query_entities(text, parameters={"p": parameter})) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("married", ["anna"]),
        ("not married", ["bert", "nobody"]),
        ("(age eq 39 or age eq 53) and not (married eq true)", ["bert"]),
        ("age eq 39 or age eq 53 and married eq true", ["anna"]),
        ("PartitionKey eq 'people' and RowKey eq 'anna'", ["anna"]),
        ("(PartitionKey eq 'people' and RowKey eq 'nobody') or (PartitionKey eq 'people' and RowKey eq 'anna')", ["anna", "nobody"]),
        ("PartitionKey eq 'people' and RowKey ge 'a' and RowKey lt 'b'", ["anna"]),
        ("PartitionKey eq 'other'", []),
        ("true", ["anna", "bert", "nobody"]),
        ("false", []),
        ("", ["anna", "bert", "nobody"]),
        (" or ".join(f"age eq {age}" for age in range(100)), ["anna", "bert"]),
    ],
)
def test_filters(people, text, expected):
    assert rows(people.query_entities(text)) == expected


@pytest.mark.parametrize(
    "text",
    [
        "aaa bbb ccc",
        "age eq",
        "age eq null",
        "age eq 39 and",
        "(age eq 39",
        "age eq name",
        "39 eq 39",
        "age EQ 39",
        "name eq 'Anna",
        "startswith(name,'A')",
        "age add 1 eq 40",
        "age eq 2147483648",
        "id eq guid'x'",
        "born eq datetime'yesterday'",
        "binary eq X'abc'",
        "(" * 5000,
    ],
)
def test_filters_that_cannot_be_read(people, text):
    with refused(400, "InvalidInput"):
        list(people.query_entities(text))


def test_deep_parentheses(people):
    text = "(" * 5000 + "age eq 39" + ")" * 5000
    assert rows(people.query_entities(text)) == ["anna"]


def test_values_and_metadata_come_back(people):
    [entity] = people.query_entities("RowKey eq 'anna'")
    assert entity["age"] == 39
    assert entity["ratio"] == 3.1
    assert entity["visits"] == EntityProperty(2**40, EdmType.INT64)
    assert entity["married"] is True
    assert entity["born"] == BORN
    assert entity["id"] == GUID
    assert entity["binary"] == b"\x00\xab\xff"
    assert entity["name"] == "Anna O'Neill"
    got = people.get_entity("people", "anna")
    assert entity.metadata["etag"] == got.metadata["etag"]
    assert entity.metadata["timestamp"] == got.metadata["timestamp"]


def test_select(people):
    found = list(people.query_entities("RowKey le 'bert'", select=["age", "RowKey", "missing"]))
    assert [dict(entity) for entity in found] == [
        {"age": 39, "RowKey": "anna", "missing": None},
        {"age": 53, "RowKey": "bert", "missing": None},
    ]
    [entity] = people.list_entities(select="name", results_per_page=1).by_page().next()
    assert dict(entity) == {"name": "Anna O'Neill"}
    [entity] = people.query_entities("RowKey eq 'anna'", select="*")
    assert entity["age"] == 39


def test_entities_come_in_the_order_of_their_keys(table):
    names = ["", " ", "A", "Z", "a", "a b", "aa", "b", "é", "\U0001f600", "\ufb00"]
    for name in reversed(names):
        table.create_entity({"PartitionKey": name, "RowKey": "r"})
        table.create_entity({"PartitionKey": "p", "RowKey": name})
    expected = sorted([*names, "p"], key=lambda name: name.encode("utf-16-be"))
    assert [entity["PartitionKey"] for entity in table.query_entities("RowKey eq 'r'")] == [
        name for name in expected if name != "p"
    ]
    assert rows(table.query_entities("PartitionKey eq 'p'")) == names
    assert rows(table.query_entities("PartitionKey eq 'p' and RowKey gt '\U0001f600'")) == ["\ufb00"]


def test_pages(grid):
    whole = keys(grid.list_entities())
    assert whole == [f"{partition:02}/{row:02}" for partition in range(5) for row in range(20)]
    for size in (1, 7, 50, 99, 100, 101, 1000):
        pages = [keys(page) for page in grid.list_entities(results_per_page=size).by_page()]
        assert [key for page in pages for key in page] == whole
        assert all(len(page) <= size for page in pages)
        assert len(pages) == -(-100 // size), "no page comes back empty"


def test_pages_of_a_filter(grid):
    for text, expected in [
        ("n ge 15 and n lt 25", [f"00/{row}" for row in range(15, 20)] + [f"01/0{row}" for row in range(5)]),
        ("RowKey eq '07'", [f"0{partition}/07" for partition in range(5)]),
        ("PartitionKey eq '03' and RowKey ge '18'", ["03/18", "03/19"]),
    ]:
        assert keys(grid.query_entities(text, results_per_page=2)) == expected


def test_a_query_goes_on_from_a_token(grid):
    pages = grid.query_entities("n ge 10", results_per_page=4).by_page()
    first = keys(next(pages))
    token = pages.continuation_token
    assert token
    rest = grid.query_entities("n ge 10", results_per_page=4).by_page(continuation_token=token)
    assert first + [key for page in rest for key in keys(page)] == keys(grid.query_entities("n ge 10"))


def test_pages_go_on_while_entities_come_and_go(table):
    for row in range(10):
        table.create_entity({"PartitionKey": "p", "RowKey": f"{row:02}"})
    pages = table.list_entities(results_per_page=3).by_page()
    assert rows(next(pages)) == ["00", "01", "02"]
    table.delete_entity("p", "03")
    table.create_entity({"PartitionKey": "p", "RowKey": "025"})
    table.create_entity({"PartitionKey": "p", "RowKey": "045"})
    assert rows(next(pages)) == ["04", "045", "05"]


def test_large_entities_are_paged_by_size(table):
    for row in range(20):
        large = {f"text{part}": "x" * 30_000 for part in range(10)}
        table.create_entity({"PartitionKey": "p", "RowKey": f"{row:02}", **large})
    pages = [rows(page) for page in table.list_entities().by_page()]
    assert len(pages) > 1
    assert [row for page in pages for row in page] == [f"{row:02}" for row in range(20)]


def test_keys_with_awkward_characters(table):
    for key in ["it's", "a b", "100%", "a+b", "(x)", "&=", "a,b", "größe", '"quoted"']:
        table.create_entity({"PartitionKey": key, "RowKey": key})
        found = list(table.query_entities("PartitionKey eq @k and RowKey eq @k", parameters={"k": key}))
        assert keys(found) == [f"{key}/{key}"]
    assert len(list(table.list_entities(results_per_page=1))) == 9


def test_signatures_see_their_range(grid):
    account = table_account()
    sas = generate_table_sas(
        AzureNamedKeyCredential(account.name, account.key),
        grid.table_name,
        permission=TableSasPermissions(read=True),
        expiry=datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(hours=1),
        start_pk="01",
        start_rk="18",
        end_pk="02",
        end_rk="01",
    )
    with TableClient(table_endpoint(), grid.table_name, credential=AzureSasCredential(sas), retry_total=0) as client:
        assert keys(client.list_entities()) == ["01/18", "01/19", "02/00", "02/01"]
        assert keys(client.list_entities(results_per_page=1)) == ["01/18", "01/19", "02/00", "02/01"]
        assert keys(client.query_entities("n lt 39 or n gt 90")) == ["01/18"]
        assert keys(client.query_entities("PartitionKey eq '03'")) == []
        assert keys(client.query_entities("PartitionKey eq '01' and RowKey eq '01'")) == []


def test_a_table_that_is_not_there(tables):
    with refused(404, "TableNotFound"):
        list(tables.get_table_client("nosuchtable").list_entities())


def query(**options):
    return urllib.parse.urlencode({f"${name}": value for name, value in options.items()}, quote_via=urllib.parse.quote)


@pytest.mark.parametrize(
    ("options", "status", "code"),
    [
        ({"top": "1"}, 200, None),
        ({"top": "1000"}, 200, None),
        ({"top": ""}, 200, None),
        ({"filter": "", "select": ""}, 200, None),
        ({"zebra": "1"}, 200, None),
        ({"top": "0"}, 400, "InvalidInput"),
        ({"top": "1001"}, 400, "InvalidInput"),
        ({"top": "-1"}, 400, "InvalidInput"),
        ({"top": "many"}, 400, "InvalidInput"),
        ({"filter": "n eq"}, 400, "InvalidInput"),
        ({"filter": "n eq \0"}, 400, "InvalidInput"),
        ({"select": "n,,m"}, 400, "InvalidInput"),
        ({"orderby": "n"}, 501, "NotImplemented"),
        ({"skip": "5"}, 501, "NotImplemented"),
    ],
)
def test_options(grid, table_raw, options, status, code):
    answer = table_raw.send("GET", f"/{grid.table_name}()", query(**options))
    assert (answer.status, answer.code) == (status, code)


@pytest.mark.parametrize(
    "tokens",
    [
        {"NextPartitionKey": "garbage"},
        {"NextPartitionKey": "1!8!U21pdGg"},
        {"NextPartitionKey": "1!4!????"},
        {"NextPartitionKey": "1!4!AA--"},
        {"NextPartitionKey": "1!4!YQ--", "NextRowKey": "garbage"},
        {"NextRowKey": "1!4!YQ--"},
    ],
)
def test_tokens_that_were_never_given(grid, table_raw, tokens):
    answer = table_raw.send("GET", f"/{grid.table_name}()", urllib.parse.urlencode(tokens))
    assert (answer.status, answer.code) == (400, "InvalidInput")


def test_tokens_have_the_form_of_the_service(grid, table_raw):
    answer = table_raw.send("GET", f"/{grid.table_name}()", query(top="25"))
    assert answer.headers["x-ms-continuation-NextPartitionKey"] == "1!4!MDE-"
    assert answer.headers["x-ms-continuation-NextRowKey"] == "1!4!MDU-"
    # The row may be left out: it is the beginning of the partition then.
    tokens = urllib.parse.urlencode({"NextPartitionKey": "1!4!MDE-"})
    answer = table_raw.send("GET", f"/{grid.table_name}()", f"{query(top='1')}&{tokens}")
    [entity] = answer.json()["value"]
    assert (entity["PartitionKey"], entity["RowKey"]) == ("01", "00")


def test_both_addresses_of_a_table_and_the_levels_of_metadata(grid, table_raw):
    for path in (f"/{grid.table_name}", f"/{grid.table_name}()"):
        for level in ("nometadata", "minimalmetadata", "fullmetadata"):
            accept = {"Accept": f"application/json;odata={level}"}
            answer = table_raw.send("GET", path, query(top="1"), accept)
            assert answer.status == 200
            assert answer.headers["Content-Type"] == f"application/json;odata={level};streaming=true;charset=utf-8"
            body = answer.json()
            [entity] = body["value"]
            assert ("odata.metadata" in body) == (level != "nometadata")
            assert ("odata.editLink" in entity) == (level == "fullmetadata")
            if level != "nometadata":
                assert body["odata.metadata"].endswith(f"/$metadata#{grid.table_name}")


def test_a_filter_is_read_with_plus_signs_for_spaces(grid, table_raw):
    answer = table_raw.send("GET", f"/{grid.table_name}()", "$filter=n+eq+7")
    assert [entity["n"] for entity in answer.json()["value"]] == [7]
