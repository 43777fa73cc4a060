"""Tables through azure-data-tables: create, list, delete, names, policies, properties, statistics."""

import json
from datetime import datetime, timedelta, timezone

import pytest
from azure.data.tables import (
    TableAccessPolicy,
    TableAnalyticsLogging,
    TableClient,
    TableCorsRule,
    TableMetrics,
    TableRetentionPolicy,
    TableServiceClient,
)
from own_server import own_server
from support import refused
from table_support import TableRaw, table_account, unique_table


def names(tables):
    return [table.name for table in tables]


def test_a_table_is_created_listed_and_deleted(tables):
    name = unique_table("Kept")
    tables.create_table(name)
    assert name in names(tables.list_tables())
    with refused(409, "TableAlreadyExists"):
        tables.create_table(name)
    with refused(409, "TableAlreadyExists"):
        tables.create_table(name.upper())
    assert tables.create_table_if_not_exists(name).table_name == name
    tables.delete_table(name.lower())
    assert name not in names(tables.list_tables())
    # The name is free at once, and the new table has nothing of the old one.
    tables.create_table(name).create_entity({"PartitionKey": "p", "RowKey": "r"})
    tables.delete_table(name)
    again = tables.create_table(name)
    with refused(404, "ResourceNotFound"):
        again.get_entity("p", "r")
    tables.delete_table(name)


def test_a_deleted_table_is_not_there(tables, table_raw):
    name = unique_table()
    answer = table_raw.send("DELETE", f"/Tables('{name}')")
    assert (answer.status, answer.code) == (404, "ResourceNotFound")
    answer = table_raw.send("GET", f"/Tables('{name}')")
    assert (answer.status, answer.code) == (404, "ResourceNotFound")
    missing = tables.get_table_client(name)
    for call in (
        lambda: missing.get_entity("p", "r"),
        lambda: missing.create_entity({"PartitionKey": "p", "RowKey": "r"}),
        lambda: missing.upsert_entity({"PartitionKey": "p", "RowKey": "r"}),
        lambda: missing.update_entity({"PartitionKey": "p", "RowKey": "r"}),
        lambda: list(missing.list_entities()),
        lambda: missing.get_table_access_policy(),
        lambda: missing.set_table_access_policy({}),
    ):
        with refused(404, "TableNotFound"):
            call()
    answer = table_raw.send("DELETE", f"/{name}(PartitionKey='p',RowKey='r')", headers={"If-Match": "*"})
    assert (answer.status, answer.code) == (404, "TableNotFound")


def test_names_are_held_by_a_server_that_is_told_to():
    with own_server("--table-name-hold-seconds=40") as settings:
        with TableServiceClient.from_connection_string(settings, retry_total=0) as tables:
            tables.create_table("Held")
            tables.delete_table("Held")
            with refused(409, "TableBeingDeleted"):
                tables.create_table("held")


def test_a_seed_makes_tables_and_entities(tmp_path):
    seed = tmp_path / "seed.json"
    entities = [
        {"PartitionKey": "p", "RowKey": "1", "Age": 42, "Long": "5", "Long@odata.type": "Edm.Int64"},
        {"PartitionKey": "p", "RowKey": "2", "Ratio": 0.1, "Married": True},
    ]
    seed.write_text(json.dumps({"tables": [{"name": "People", "entities": entities}]}))
    with own_server(f"--seed={seed}") as settings:
        with TableClient.from_connection_string(settings, "People", retry_total=0) as table:
            found = list(table.list_entities())
    assert [found[0]["Age"], found[0]["Long"].value, found[1]["Ratio"], found[1]["Married"]] == [42, 5, 0.1, True]


def test_tables_are_listed_in_pages_and_by_filter(tables):
    prefix = unique_table("list")
    made = [f"{prefix}{letter}" for letter in "abcde"]
    for name in reversed(made):
        tables.create_table(name)
    try:
        within = f"TableName ge '{prefix}' and TableName lt '{prefix}~'"
        pages = tables.query_tables(within, results_per_page=2).by_page()
        assert [names(page) for page in pages] == [made[:2], made[2:4], made[4:]]
        assert names(tables.query_tables(f"TableName eq '{made[3]}'")) == [made[3]]
        assert names(tables.query_tables("TableName eq @name", parameters={"name": made[0]})) == [made[0]]
        with refused(400, "InvalidInput"):
            list(tables.query_tables("TableName is a"))
    finally:
        for name in made:
            tables.delete_table(name)


@pytest.mark.parametrize("level", ["nometadata", "minimalmetadata", "fullmetadata"])
def test_tables_at_each_level_of_metadata(tables, table, table_raw, level):
    account, endpoint = table_raw.account.name, table_raw.account.endpoint.geturl().rstrip("/")
    name = table.table_name
    accept = {"Accept": f"application/json;odata={level}"}
    expected = {"TableName": name}
    if level == "fullmetadata":
        expected |= {
            "odata.type": f"{account}.Tables",
            "odata.id": f"{endpoint}/Tables('{name}')",
            "odata.editLink": f"Tables('{name}')",
        }
    one = table_raw.send("GET", f"/Tables('{name}')", headers=accept)
    context = {} if level == "nometadata" else {"odata.metadata": f"{endpoint}/$metadata#Tables/@Element"}
    assert one.json() == context | expected
    assert one.headers["Content-Type"] == f"application/json;odata={level};streaming=true;charset=utf-8"
    listed = table_raw.send("GET", "/Tables", f"$filter=TableName%20eq%20'{name}'", accept)
    context = {} if level == "nometadata" else {"odata.metadata": f"{endpoint}/$metadata#Tables"}
    assert listed.json() == context | {"value": [expected]}


@pytest.mark.parametrize("prefer, status", [(None, 201), ("return-content", 201), ("return-no-content", 204)])
def test_a_created_table_comes_back_as_preferred(table_raw, prefer, status):
    name = unique_table()
    headers = {"Prefer": prefer} if prefer else {}
    answer = table_raw.send("POST", "/Tables", headers=headers, body=f'{{"TableName":"{name}"}}'.encode())
    assert (answer.status, answer.headers["Preference-Applied"]) == (status, prefer)
    assert answer.headers["Location"].endswith(f"/Tables('{name}')")
    assert (b"TableName" in answer.body) == (status == 201)
    assert table_raw.send("DELETE", f"/Tables('{name}')").status == 204


@pytest.mark.parametrize(
    "name, code",
    [
        ("ab", "OutOfRangeInput"),
        ("a" * 64, "OutOfRangeInput"),
        ("", "OutOfRangeInput"),
        ("1abc", "InvalidResourceName"),
        ("a-bc", "InvalidResourceName"),
        ("a_bc", "InvalidResourceName"),
        ("äbc", "InvalidResourceName"),
        ("tables", "InvalidResourceName"),
        ("Tables", "InvalidResourceName"),
    ],
)
def test_names_that_no_table_can_have(table_raw, name, code):
    answer = table_raw.send("POST", "/Tables", body=f'{{"TableName":"{name}"}}'.encode())
    assert (answer.status, answer.code) == (400, code)


def test_the_sdk_knows_our_refusal_of_a_name(tables):
    for name in ("ab", "1abc"):
        with pytest.raises(ValueError, match="table names"):
            tables.create_table(name)


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"{}", b'{"TableName":5}', b'{"TableName":null}', b"\xff"])
def test_bodies_that_name_no_table(table_raw, body):
    answer = table_raw.send("POST", "/Tables", body=body)
    assert (answer.status, answer.code) == (400, "InvalidInput")


def test_tables_take_no_conditions(table, table_raw):
    path = f"/Tables('{table.table_name}')"
    for headers in ({"If-Match": "*"}, {"If-None-Match": "*"}):
        answer = table_raw.send("DELETE", path, headers=headers)
        assert (answer.status, answer.code) == (400, "InvalidInput")
    answer = table_raw.send("POST", "/Tables", headers={"If-Match": "*"}, body=b'{"TableName":"Conditional"}')
    assert (answer.status, answer.code) == (400, "InvalidInput")


def test_policies_come_back(table):
    start = datetime(2024, 1, 31, 12, 34, 56, tzinfo=timezone.utc)
    policy = TableAccessPolicy(start=start, expiry=start + timedelta(days=1), permission="raud")
    table.set_table_access_policy({"one": policy, "two": TableAccessPolicy(), "none": None})
    found = table.get_table_access_policy()
    assert found.keys() == {"one", "two", "none"}
    assert (found["one"].permission, found["one"].start, found["one"].expiry) == ("raud", start, policy.expiry)
    assert (found["two"], found["none"]) == (None, None)
    table.set_table_access_policy({})
    assert table.get_table_access_policy() == {}


def test_six_policies_and_wrong_letters_are_refused(table, table_raw):
    with pytest.raises(ValueError, match="Too many access policies"):
        table.set_table_access_policy({str(number): None for number in range(6)})
    body = (
        b"<SignedIdentifiers><SignedIdentifier><Id>a</Id><AccessPolicy><Permission>w</Permission>"
        b"</AccessPolicy></SignedIdentifier></SignedIdentifiers>"
    )
    answer = table_raw.send("PUT", f"/{table.table_name}", "comp=acl", {"Content-Type": "application/xml"}, body)
    assert (answer.status, answer.code) == (400, "InvalidXmlNodeValue")


def test_service_properties_come_back(tables):
    before = tables.get_service_properties()
    try:
        retention = TableRetentionPolicy(enabled=True, days=5)
        tables.set_service_properties(
            analytics_logging=TableAnalyticsLogging(read=True, write=True, delete=False, retention_policy=retention),
            hour_metrics=TableMetrics(enabled=True, include_apis=True, retention_policy=retention),
            minute_metrics=TableMetrics(enabled=False),
            cors=[TableCorsRule(["http://a.example"], ["GET", "MERGE", "PATCH"], max_age_in_seconds=60)],
        )
        found = tables.get_service_properties()
        assert (found["analytics_logging"].read, found["analytics_logging"].delete) == (True, False)
        assert found["hour_metrics"].retention_policy.days == 5
        assert found["cors"][0].allowed_methods == ["GET", "MERGE", "PATCH"]
    finally:
        tables.set_service_properties(
            analytics_logging=before["analytics_logging"],
            hour_metrics=before["hour_metrics"],
            minute_metrics=before["minute_metrics"],
            cors=before["cors"],
        )


def test_rules_for_other_origins_are_kept(tables, table, table_raw):
    asked = {"Origin": "http://a.example", "Access-Control-Request-Method": "MERGE"}
    path = f"/{table.table_name}(PartitionKey='p',RowKey='r')"
    refused_preflight = table_raw.send("OPTIONS", path, headers=asked, sign=False)
    assert (refused_preflight.status, refused_preflight.code) == (403, "CorsPreflightFailure")
    rule = TableCorsRule(["http://a.example"], ["MERGE"], exposed_headers=["x-ms-*"], max_age_in_seconds=60)
    tables.set_service_properties(cors=[rule])
    try:
        preflight = table_raw.send("OPTIONS", path, headers=asked, sign=False)
        assert preflight.status == 200
        assert preflight.headers["Access-Control-Allow-Methods"] == "MERGE"
        answer = table_raw.send("MERGE", path, headers={"Origin": "http://a.example"}, body=b"{}")
        assert (answer.status, answer.headers["Access-Control-Allow-Origin"]) == (204, "http://a.example")
    finally:
        tables.set_service_properties(cors=[])


def test_statistics_are_asked_at_the_secondary(tables, table_raw):
    answer = table_raw.send("GET", "/", "restype=service&comp=stats")
    assert (answer.status, answer.code) == (400, "InvalidQueryParameterValue")
    account = table_account()
    secondary = account.endpoint._replace(path=f"{account.endpoint.path.rstrip('/')}-secondary")
    raw = TableRaw(type(account)(account.name, account.key, secondary))
    answer = raw.send("GET", "/", "restype=service&comp=stats")
    assert answer.status == 200
    assert answer.xml().findtext("GeoReplication/Status") == "live"
    assert raw.send("GET", "/Tables").status == 200, "the secondary can be read"
    created = raw.send("POST", "/Tables", body=b'{"TableName":"Elsewhere"}')
    assert (created.status, created.code) == (403, "InsufficientAccountPermissions")


def test_metadata_describes_the_tables(table, table_raw):
    answer = table_raw.send("GET", "/$metadata")
    assert (answer.status, answer.headers["Content-Type"]) == (200, "application/xml")
    assert "edmx" in answer.xml().tag
    assert f'EntityType Name="{table.table_name}"'.encode() in answer.body
