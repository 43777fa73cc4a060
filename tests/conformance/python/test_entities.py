"""Entities through azure-data-tables: types, limits, every write operation and what it refuses."""

import math
import threading
import uuid
from datetime import datetime, timedelta, timezone

import pytest
from azure.core import MatchConditions
from azure.data.tables import EdmType, EntityProperty, UpdateMode
from support import refused

ONCE = datetime(2024, 1, 31, 12, 34, 56, 123456, tzinfo=timezone.utc)
GUID = uuid.UUID("c9da6455-213d-42c9-9a79-3e9149a57833")


def entity(row="r", **properties):
    return {"PartitionKey": "p", "RowKey": row, **properties}


def own(found):
    return {name: value for name, value in found.items() if name not in ("PartitionKey", "RowKey")}


@pytest.mark.parametrize(
    "value",
    [
        True,
        False,
        0,
        2**31 - 1,
        -(2**31),
        1.5,
        5.0,
        -0.0,
        0.1,
        1e300,
        5e-324,
        123456789.12345679,
        math.inf,
        -math.inf,
        "",
        "text",
        'é😀 "quoted" \\ \n\t\x01',
        b"",
        bytes(range(256)),
        ONCE,
        datetime(1601, 1, 1, tzinfo=timezone.utc),
        datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=timezone.utc),
        GUID,
        EntityProperty(2**63 - 1, EdmType.INT64),
        EntityProperty(-(2**63), EdmType.INT64),
    ],
    ids=repr,
)
def test_values_come_back_with_their_type(table, value):
    table.create_entity(entity(value=value))
    found = table.get_entity("p", "r")["value"]
    assert found == value
    if not isinstance(value, EntityProperty):
        assert isinstance(found, type(value)), type(found)


def test_nan_comes_back_and_null_does_not(table):
    table.create_entity(entity(nan=math.nan, none=None))
    found = table.get_entity("p", "r")
    assert math.isnan(found["nan"]) and "none" not in found


@pytest.mark.parametrize("partition", ["", "plain", "it's", "a b", "100%", "%41+&=;,()", "é😀", "k" * 512, "\U0001F600" * 256])
@pytest.mark.parametrize("row", ["", "''", "r-_.~!$*:@[]|<>\"^`{}"])
def test_awkward_keys(table, partition, row):
    keys = {"PartitionKey": partition, "RowKey": row}
    table.create_entity({**keys, "a": 1})
    table.update_entity({**keys, "b": 2}, mode=UpdateMode.MERGE)
    table.upsert_entity({**keys, "c": 3})
    assert table.get_entity(partition, row) == {**keys, "a": 1, "b": 2, "c": 3}
    table.delete_entity(partition, row)
    with refused(404, "ResourceNotFound"):
        table.get_entity(partition, row)


@pytest.mark.parametrize("character", ["/", "\\", "#", "?", "\t", "\n", "\r", "\x01", "\x1f", "\x7f", "\x85", "\x9f"])
def test_characters_that_no_key_has(table, character):
    key = f"a{character}b"
    for keys in ({"PartitionKey": key, "RowKey": "r"}, {"PartitionKey": "p", "RowKey": key}):
        with refused(400, "OutOfRangeInput"):
            table.create_entity(keys)


def test_keys_that_are_too_long(table):
    for keys in ({"PartitionKey": "k" * 513, "RowKey": "r"}, {"PartitionKey": "p", "RowKey": "k" * 513}):
        with refused(400, "PropertyValueTooLarge"):
            table.create_entity(keys)


@pytest.mark.parametrize("missing", ["PartitionKey", "RowKey"])
def test_keys_must_be_there(table, table_raw, missing):
    present = "RowKey" if missing == "PartitionKey" else "PartitionKey"
    for body in (f'{{"{present}":"k"}}', f'{{"{present}":"k","{missing}":null}}'):
        answer = table_raw.send("POST", f"/{table.table_name}", body=body.encode())
        assert (answer.status, answer.code) == (400, "PropertiesNeedValue")


@pytest.mark.parametrize(
    "properties, code",
    [
        ({f"p{number}": number for number in range(253)}, "TooManyProperties"),
        ({"v": "x" * (32 * 1024 + 1)}, "PropertyValueTooLarge"),
        ({"v": b"x" * (64 * 1024 + 1)}, "PropertyValueTooLarge"),
        ({f"p{number}": b"x" * 64 * 1024 for number in range(16)}, "EntityTooLarge"),
        ({"n" * 256: 1}, "PropertyNameTooLong"),
        ({"a-b": 1}, "PropertyNameInvalid"),
        ({"1a": 1}, "PropertyNameInvalid"),
        ({"a b": 1}, "PropertyNameInvalid"),
        ({"t": datetime(1600, 12, 31, tzinfo=timezone.utc)}, "OutOfRangeInput"),
        ({"t": EntityProperty("not a time", EdmType.DATETIME)}, "InvalidInput"),
        ({"g": EntityProperty("not a guid", EdmType.GUID)}, "InvalidInput"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_limits_of_an_entity(table, properties, code):
    with refused(400, code):
        table.create_entity(entity(**properties))
    with refused(400, code):
        table.upsert_entity(entity(**properties))


def test_the_largest_entities_are_stored(table):
    many = {f"p{number}": number for number in range(252)}
    table.create_entity(entity("many", **many))
    assert own(table.get_entity("p", "many")) == many
    large = {f"p{number}": b"\xff" * 64 * 1024 for number in range(15)} | {"text": "é" * 32 * 1000}
    table.create_entity(entity("large", **large))
    assert own(table.get_entity("p", "large")) == large
    table.create_entity(entity("name", **{"n" * 255: 1}))


def test_a_property_twice_is_refused(table, table_raw):
    body = b'{"PartitionKey":"p","RowKey":"r","a":1,"a":2}'
    answer = table_raw.send("POST", f"/{table.table_name}", body=body)
    assert (answer.status, answer.code) == (400, "DuplicatePropertiesSpecified")


def test_insert(table):
    table.create_entity(entity(a=1))
    with refused(409, "EntityAlreadyExists"):
        table.create_entity(entity(b=2))
    assert own(table.get_entity("p", "r")) == {"a": 1}


def test_the_timestamp_is_the_servers(table):
    begun = datetime.now(timezone.utc)
    table.create_entity(entity(Timestamp=datetime(2001, 1, 1, tzinfo=timezone.utc)))
    first = table.get_entity("p", "r").metadata["timestamp"]
    # A server that has just been started may be slightly ahead of the clock.
    assert begun - timedelta(seconds=5) < first < begun + timedelta(minutes=2)
    table.upsert_entity(entity())
    assert table.get_entity("p", "r").metadata["timestamp"] > first


@pytest.mark.parametrize("mode", [UpdateMode.MERGE, UpdateMode.REPLACE])
def test_update_and_merge(table, mode):
    with refused(404, "ResourceNotFound"):
        table.update_entity(entity(a=1), mode=mode)
    table.create_entity(entity(a=1, b=2))
    etag = table.get_entity("p", "r").metadata["etag"]
    changed = table.update_entity(
        entity(b=3, c=None, d=4), mode=mode, etag=etag, match_condition=MatchConditions.IfNotModified
    )
    kept = {"a": 1} if mode == UpdateMode.MERGE else {}
    found = table.get_entity("p", "r")
    assert own(found) == kept | {"b": 3, "d": 4}
    assert found.metadata["etag"] == changed["etag"] != etag
    with refused(412, "UpdateConditionNotSatisfied"):
        table.update_entity(entity(e=5), mode=mode, etag=etag, match_condition=MatchConditions.IfNotModified)
    table.update_entity(entity(e=5), mode=mode)
    assert table.get_entity("p", "r")["e"] == 5


@pytest.mark.parametrize("mode", [UpdateMode.MERGE, UpdateMode.REPLACE])
def test_upserts_ask_for_nothing(table, mode):
    table.upsert_entity(entity(a=1), mode=mode)
    assert own(table.get_entity("p", "r")) == {"a": 1}
    answer = table.upsert_entity(entity(b=2), mode=mode)
    found = table.get_entity("p", "r")
    assert own(found) == ({"a": 1, "b": 2} if mode == UpdateMode.MERGE else {"b": 2})
    assert answer["etag"] == found.metadata["etag"]


def test_delete(table, table_raw):
    table.create_entity(entity())
    old = table.get_entity("p", "r").metadata["etag"]
    table.upsert_entity(entity(a=1))
    with refused(412, "UpdateConditionNotSatisfied"):
        table.delete_entity("p", "r", etag=old, match_condition=MatchConditions.IfNotModified)
    table.delete_entity(table.get_entity("p", "r"))
    answer = table_raw.send("DELETE", f"/{table.table_name}(PartitionKey='p',RowKey='r')", headers={"If-Match": "*"})
    assert (answer.status, answer.code) == (404, "ResourceNotFound")


def test_point_get_selects_properties(table):
    table.create_entity(entity(a=1, b=2))
    assert table.get_entity("p", "r", select=["b", "missing", "PartitionKey"]) == {
        "b": 2,
        "missing": None,
        "PartitionKey": "p",
    }
    assert table.get_entity("p", "r", select="*") == entity(a=1, b=2)


def test_a_thousand_updates_have_a_thousand_etags(table):
    etags = set()
    lock = threading.Lock()

    def update(worker):
        for number in range(125):
            etag = table.upsert_entity(entity(n=number, worker=worker), mode=UpdateMode.REPLACE)["etag"]
            with lock:
                etags.add(etag)

    threads = [threading.Thread(target=update, args=(worker,)) for worker in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(etags) == 1000
    assert table.get_entity("p", "r").metadata["etag"] in etags


def test_of_two_who_read_the_same_one_wins(table):
    table.create_entity(entity(n=0))
    etag = table.get_entity("p", "r").metadata["etag"]
    outcomes = []

    def race(worker):
        try:
            table.update_entity(
                entity(n=worker), mode=UpdateMode.REPLACE, etag=etag, match_condition=MatchConditions.IfNotModified
            )
            outcomes.append(204)
        except Exception as error:  # the status is what counts
            outcomes.append(error.status_code)

    threads = [threading.Thread(target=race, args=(worker,)) for worker in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == [204] + [412] * 7
