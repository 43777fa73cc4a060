"""Query Blob Contents through the SDK, which reads the Avro records of the answer."""

import pathlib
import struct

import pytest
from azure.storage.blob import (
    ArrowDialect,
    ArrowType,
    DelimitedJsonDialect,
    DelimitedTextDialect,
    QuickQueryDialect,
)
from support import refused, unique

# Columns id (int64, 0 to 9), name (text) and price (double), Snappy, written by the Rust crate parquet.
PARQUET = pathlib.Path(__file__).parent / "items.parquet"

ITEMS = b"Name,Price,Note\r\nmouse,12.5,\"small, grey\"\r\nkeyboard,30,\r\nscreen,199,\"24\"\" wide\"\r\n"
HEADERS = DelimitedTextDialect(delimiter=",", quotechar='"', lineterminator="\n", escapechar="", has_header=True)
PLAIN = DelimitedTextDialect(delimiter=",", quotechar='"', lineterminator="\n", escapechar="", has_header=False)
LINES = DelimitedJsonDialect(delimiter="\n")
NUMBERS = b"100,200,300,400\n300,400,500,600\n"


@pytest.fixture
def ask(container):
    def ask(content, expression, **formats):
        """What comes back, and the errors among it."""
        blob = container.get_blob_client(unique("query"))
        blob.upload_blob(content)
        errors = []
        reader = blob.query_blob(expression, on_error=errors.append, **formats)
        data = reader.readall()
        assert len(reader) == len(content)
        return data, errors

    return ask


def test_defaults_are_delimited_text_without_headers(ask):
    assert ask(NUMBERS, "SELECT _2 from BlobStorage WHERE _1 > 250;") == (b"400\n", [])
    assert ask(ITEMS, "SELECT * FROM BlobStorage")[0] == ITEMS.replace(b"\r\n", b"\n")


def test_delimited_text_in_and_out(ask):
    query = "SELECT name, price FROM BlobStorage WHERE price > 20 AND note NOT LIKE '24%'"
    assert ask(ITEMS, query, blob_format=HEADERS, output_format=PLAIN) == (b"keyboard,30\n", [])
    output = DelimitedTextDialect(delimiter=";", quotechar="'", lineterminator=".", escapechar="\\", has_header=True)
    data, errors = ask(ITEMS, "SELECT * FROM BlobStorage LIMIT 1", blob_format=HEADERS, output_format=output)
    assert (data, errors) == (b"Name;Price;Note.mouse;'12.5';small, grey.", [])


def test_delimited_text_becomes_json(ask):
    query = "SELECT name, CAST(price AS INT) AS whole FROM BlobStorage WHERE name = 'keyboard'"
    data, errors = ask(ITEMS, query, blob_format=HEADERS, output_format=LINES)
    assert (data, errors) == (b'{"Name":"keyboard","whole":30}\n', [])
    data, _ = ask(NUMBERS, "SELECT _2 FROM BlobStorage", blob_format=PLAIN, output_format=LINES)
    assert data == b'{"_1":"200"}\n{"_1":"400"}\n'


def test_json_becomes_delimited_text(ask):
    content = b'{"id": 1, "tags": ["a", "b"]}\n{"id": 2}\n'
    data, errors = ask(content, "SELECT id, tags[1] FROM BlobStorage", blob_format=LINES, output_format=PLAIN)
    assert (data, errors) == (b"1,b\n2,\n", [])


def test_json_in_and_out(ask):
    content = b'{"name": "owner", "id": 1}{"name2": "owner2"}{"name": "owner", "id": 1.50}'
    output = DelimitedJsonDialect(delimiter=";")
    data, errors = ask(content, "SELECT name from BlobStorage", blob_format=LINES, output_format=output)
    assert (data, errors) == (b'{"name":"owner"};{};{"name":"owner"};', [])
    data, _ = ask(content, "SELECT * FROM BlobStorage WHERE id > 1", blob_format=QuickQueryDialect.DelimitedJson)
    assert data == b'{"name":"owner","id":1.50}\n'
    nested = b'{"a": [{"b": 1}, {"b": 2, "c": "x"}]}'
    data, _ = ask(nested, "SELECT c, b FROM BlobStorage[*].a[*] WHERE b = 2", blob_format=LINES, output_format=LINES)
    assert data == b'{"c":"x","b":2}\n'


def test_parquet_becomes_delimited_text_and_json(ask):
    content = PARQUET.read_bytes()
    parquet = QuickQueryDialect.Parquet
    data, errors = ask(content, "select * from blobstorage where id < 2;", blob_format=parquet)
    assert (data, errors) == (b"0,item 0,0\n1,item 1,1.5\n", [])
    data, errors = ask(content, "SELECT SUM(price) AS total FROM BlobStorage", blob_format=parquet, output_format=LINES)
    assert (data, errors) == (b'{"total":67.5}\n', [])
    data, errors = ask(NUMBERS, "SELECT * FROM BlobStorage", blob_format=parquet)
    assert (data, [(error.error, error.is_fatal) for error in errors]) == (b"", [("ParseError", True)])


def test_an_answer_in_arrow_is_an_ipc_stream(ask):
    schema = [ArrowDialect(ArrowType.INT64, name="abc"), ArrowDialect(ArrowType.DECIMAL, name="d", precision=4, scale=2)]
    data, errors = ask(NUMBERS, "SELECT _2, _3 from BlobStorage WHERE _1 > 250", output_format=schema)
    assert errors == []
    # A message is a marker, the length of its metadata and those; the last one is empty.
    assert data[:4] == b"\xff\xff\xff\xff"
    assert b"abc" in data
    assert struct.pack("<q", 400) in data
    assert struct.pack("<q", 50000) in data
    assert data.endswith(b"\xff\xff\xff\xff\x00\x00\x00\x00")
    try:
        import pyarrow
    except ImportError:
        return
    table = pyarrow.ipc.open_stream(data).read_all()
    assert table.column("abc").to_pylist() == [400]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("SELECT COUNT(*) FROM BlobStorage", b"3\n"),
        ("SELECT AVG(price) FROM BlobStorage WHERE price < 100", b"21.25\n"),
        ("SELECT MAX(CAST(price AS FLOAT)) FROM BlobStorage", b"199\n"),
        ("SELECT UPPER(SUBSTRING(name, 0, 3)) FROM BlobStorage LIMIT 1", b"MOU\n"),
        ("SELECT CASE WHEN price > 100 THEN 'dear' ELSE 'cheap' END FROM BlobStorage", b"cheap\ncheap\ndear\n"),
        ("SELECT COALESCE(NULLIF(note, ''), 'none') FROM BlobStorage WHERE name LIKE 'key%'", b"none\n"),
        ("SELECT name FROM BlobStorage WHERE price BETWEEN 10 AND 30 AND name IN ('mouse', 'cat')", b"mouse\n"),
        ("SELECT EXTRACT(year FROM DATE_ADD(day, 1, '2019-12-31T')) FROM BlobStorage LIMIT 1", b"2020\n"),
    ],
)
def test_the_language(ask, expression, expected):
    assert ask(ITEMS, expression, blob_format=HEADERS, output_format=PLAIN) == (expected, [])


def test_a_problem_of_a_record_leaves_it_out(ask):
    data, errors = ask(b"100,pizza\n300,400\n", "SELECT _1 from BlobStorage WHERE _2 > 250;")
    assert data == b"300\n"
    found = [(error.error, error.is_fatal, error.description, error.position) for error in errors]
    assert found == [("InvalidTypeConversion", False, "Invalid type conversion.", 0)]
    data, errors = ask(b"a,b\n1,2\n3\n4,5\n", "SELECT b FROM BlobStorage", blob_format=HEADERS, output_format=PLAIN)
    assert data == b"2\n5\n"
    assert [(error.error, error.is_fatal, error.position) for error in errors] == [("InvalidColumnOrdinal", False, 8)]


def test_a_fatal_error_ends_the_answer(ask):
    content = b"{name: owner}\n{name2: owner2}\n{name: owner}"
    data, errors = ask(content, "SELECT * from BlobStorage", blob_format=LINES, output_format=PLAIN)
    assert (data, [(error.error, error.is_fatal) for error in errors]) == (b"", [("ParseError", True)])
    data, errors = ask(ITEMS, "SELECT nothing FROM BlobStorage", blob_format=HEADERS)
    assert (data, [(error.error, error.is_fatal) for error in errors]) == (b"", [("InvalidColumnName", True)])


def test_a_long_blob_is_filtered_in_pieces(ask):
    content = NUMBERS * 300_000
    data, errors = ask(content, "SELECT _1, _4 FROM BlobStorage WHERE _1 = 300")
    assert (data == b"300,600\n" * 300_000, errors) == (True, [])


def test_the_records_are_handed_out_one_by_one(container):
    blob = container.get_blob_client("b")
    blob.upload_blob(NUMBERS)
    records = list(blob.query_blob("SELECT _1 FROM BlobStorage").records())
    assert records == [b"100", b"300", b""]


def test_an_expression_that_cannot_be_parsed_is_refused(container):
    blob = container.get_blob_client("b")
    blob.upload_blob(NUMBERS)
    for expression in [
        "SELECT",
        "SELECT * FROM elsewhere",
        "SELECT MIN(_1), MAX(_1) FROM BlobStorage",
        "SELECT _1 FROM BlobStorage ORDER BY _1",
        "SELECT " + ", ".join(["_1"] * 50) + " FROM BlobStorage",
    ]:
        with refused(400, "ErrorProcessingQueryExpression"):
            blob.query_blob(expression)
    with refused(400, "OutOfRangeInput"):
        blob.query_blob("SELECT _1 FROM BlobStorage" + " ;" * 200_000)
    same = DelimitedTextDialect(delimiter=",", quotechar='"', lineterminator=",", escapechar="")
    with refused(400, "InvalidXmlNodeValue"):
        blob.query_blob("SELECT * FROM BlobStorage", blob_format=same)


def test_conditions_and_leases_are_those_of_a_download(container):
    blob = container.get_blob_client("b")
    with refused(404, "BlobNotFound"):
        blob.query_blob("SELECT * FROM BlobStorage")
    etag = blob.upload_blob(NUMBERS)["etag"]
    query = "SELECT _1 FROM BlobStorage LIMIT 1"
    with_match = blob.query_blob(query, etag=etag, match_condition=_match(True))
    assert with_match.readall() == b"100\n"
    assert with_match.response_headers["etag"] == etag
    with refused(412, "ConditionNotMet"):
        blob.query_blob(query, etag='"0x1"', match_condition=_match(True))
    with refused(304, "ConditionNotMet"):
        blob.query_blob(query, etag=etag, match_condition=_match(False))
    lease = blob.acquire_lease()
    assert blob.query_blob(query, lease=lease).readall() == b"100\n"
    with refused(412, "LeaseIdMismatchWithBlobOperation"):
        blob.query_blob(query, lease="00000000-0000-0000-0000-000000000000")


def _match(same):
    from azure.core import MatchConditions

    return MatchConditions.IfNotModified if same else MatchConditions.IfModified


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", "InvalidXmlDocument"),
        (b"<QueryRequest/>", "MissingRequiredXmlNode"),
        (b"<QueryRequest><QueryType>X</QueryType><Expression>y</Expression></QueryRequest>", "InvalidXmlNodeValue"),
        (b"<QueryRequest><QueryType>SQL</QueryType><Expression/></QueryRequest>", "InvalidXmlNodeValue"),
        (b"<QueryRequest><Other/></QueryRequest>", "UnsupportedXmlNode"),
    ],
)
def test_a_request_that_makes_no_sense_is_refused(raw, blob, body, code):
    answer = raw.send("POST", f"/{blob.container_name}/a%20blob", "comp=query", {}, body)
    assert (answer.status, answer.code) == (400, code)


def test_the_answer_is_avro_in_chunks(raw, blob):
    body = b"<QueryRequest><QueryType>SQL</QueryType><Expression>SELECT * FROM BlobStorage</Expression></QueryRequest>"
    answer = raw.send("POST", f"/{blob.container_name}/a%20blob", "comp=query", {}, body)
    assert answer.status == 200
    assert answer.headers["Content-Type"] == "avro/binary"
    assert answer.headers["Transfer-Encoding"] == "chunked"
    assert answer.headers["x-ms-blob-type"] == "BlockBlob"
    assert answer.body[:4] == b"Obj\x01"
