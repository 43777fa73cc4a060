"""Authorization of table operations: SAS letters, ranges of keys, stored policies, tokens, Shared Key Lite."""

import json
from datetime import datetime, timedelta, timezone
from email.utils import formatdate

import pytest
from azure.core.credentials import AzureNamedKeyCredential, AzureSasCredential
from azure.core.exceptions import HttpResponseError
from azure.data.tables import (
    AccountSasPermissions,
    ResourceTypes,
    TableAccessPolicy,
    TableClient,
    TableSasPermissions,
    TableServiceClient,
    UpdateMode,
    generate_account_sas,
    generate_table_sas,
)
from support import refused
from table_support import table_account, table_endpoint, unique_table
from test_access import unsigned_token
from test_table_batches import change_set, part, send_batch

HOUR = timedelta(hours=1)


def now():
    return datetime.now(timezone.utc)


def credential():
    account = table_account()
    return AzureNamedKeyCredential(account.name, account.key)


def with_sas(table, sas):
    """The same table, with the token as the only credential."""
    return TableClient(table_endpoint(), table.table_name, credential=AzureSasCredential(sas), retry_total=0)


def table_sas(table, permission="raud", **arguments):
    letters = TableSasPermissions(_str=permission) if permission else None
    expiry = None if "policy_id" in arguments else now() + HOUR
    arguments = {"permission": letters, "expiry": expiry} | arguments
    return generate_table_sas(credential(), table.table_name, **arguments)


def account_sas(permission, types="sco", **arguments):
    arguments = {"expiry": now() + HOUR} | arguments
    letters = AccountSasPermissions.from_string(permission)
    return generate_account_sas(credential(), ResourceTypes.from_string(types), letters, **arguments)


def status_of(call):
    try:
        call()
        return 200
    except HttpResponseError as error:
        return error.status_code


def entity(row, partition="p", **properties):
    return {"PartitionKey": partition, "RowKey": row, **properties}


# What an operation needs of `sp`.
NEEDS = {
    "get": ("r", lambda table: table.get_entity("p", "r")),
    "query": ("r", lambda table: list(table.list_entities())),
    "insert": ("a", lambda table: table.create_entity(entity("new"))),
    "update": ("u", lambda table: table.update_entity(entity("r", a=1), mode=UpdateMode.REPLACE)),
    "merge": ("u", lambda table: table.update_entity(entity("r", a=1), mode=UpdateMode.MERGE)),
    "insert or replace": ("au", lambda table: table.upsert_entity(entity("r"), mode=UpdateMode.REPLACE)),
    "insert or merge": ("au", lambda table: table.upsert_entity(entity("r"), mode=UpdateMode.MERGE)),
    "delete": ("d", lambda table: table.delete_entity("p", "r")),
    "batch insert": ("a", lambda table: table.submit_transaction([("create", entity("new"))])),
    "batch update": ("u", lambda table: table.submit_transaction([("update", entity("r", a=1))])),
    "batch upsert": ("au", lambda table: table.submit_transaction([("upsert", entity("r"))])),
    "batch delete": ("d", lambda table: table.submit_transaction([("delete", entity("r"))])),
    "batch of two": ("ad", lambda t: t.submit_transaction([("delete", entity("r")), ("create", entity("new"))])),
}


@pytest.mark.parametrize("letters", ["r", "a", "u", "d", "au", "raud"])
@pytest.mark.parametrize("kind", ["service", "account"])
def test_letters_give_what_they_say(table, kind, letters):
    sas = table_sas(table, letters) if kind == "service" else account_sas(letters)
    client = with_sas(table, sas)
    for name, (needed, call) in NEEDS.items():
        for row in ("r", "new"):
            table.delete_entity("p", row)
        table.create_entity(entity("r"))
        expected = 200 if set(needed) <= set(letters) else 403
        assert status_of(lambda: call(client)) == expected, name


def test_refusals_name_what_is_missing(table):
    with refused(403, "AuthorizationPermissionMismatch"):
        with_sas(table, table_sas(table, "r")).create_entity(entity("r"))
    with refused(403, "AuthorizationPermissionMismatch"):
        with_sas(table, table_sas(table, "r")).submit_transaction([("create", entity("r"))])
    with refused(403, "AuthorizationResourceTypeMismatch"):
        with_sas(table, account_sas("raud", "sc")).create_entity(entity("r"))
    with refused(403, "AuthorizationResourceTypeMismatch"):
        with_sas(table, account_sas("raud", "sc")).submit_transaction([("create", entity("r"))])
    with refused(403, "AuthenticationFailed"):
        with_sas(table, table_sas(table, expiry=now() - HOUR)).get_entity("p", "r")
    with refused(403, "AuthorizationSourceIPMismatch"):
        with_sas(table, table_sas(table, ip_address_or_range="8.8.8.8")).get_entity("p", "r")


def test_a_signature_is_for_one_table(table, tables):
    other = tables.create_table(unique_table())
    try:
        sas = table_sas(table)
        with refused(403, "AuthenticationFailed"):
            with_sas(other, sas).get_entity("p", "r")
        with refused(403, "AuthorizationFailure"):
            with_sas(other, sas).submit_transaction([("create", entity("r"))])
        # Names are compared without case.
        upper = TableClient(table_endpoint(), table.table_name.upper(), credential=AzureSasCredential(sas))
        upper.create_entity(entity("r"))
    finally:
        tables.delete_table(other.table_name)


def test_a_service_signature_manages_no_tables(table):
    sas = table_sas(table)
    service = TableServiceClient(table_endpoint(), credential=AzureSasCredential(sas), retry_total=0)
    for call in (
        lambda: service.create_table(unique_table()),
        lambda: list(service.list_tables()),
        lambda: with_sas(table, sas).get_table_access_policy(),
        lambda: with_sas(table, sas).set_table_access_policy({}),
        lambda: service.get_service_properties(),
    ):
        with refused(403, "AuthorizationFailure"):
            call()


@pytest.mark.parametrize(
    "permission, types, allowed",
    [("l", "c", "list"), ("c", "c", "create"), ("w", "c", "create"), ("d", "c", "delete"), ("r", "s", "properties")],
)
def test_an_account_signature_manages_tables(tables, permission, types, allowed):
    name = unique_table()
    service = TableServiceClient(
        table_endpoint(), credential=AzureSasCredential(account_sas(permission, types)), retry_total=0
    )
    tables.create_table(f"{name}x")
    calls = {
        "list": lambda: list(service.list_tables()),
        "create": lambda: service.create_table(name),
        "delete": lambda: service.delete_table(f"{name}x"),
        "properties": lambda: service.get_service_properties(),
    }
    outcomes = {kind: status_of(call) for kind, call in calls.items()}
    assert outcomes == {kind: 200 if kind == allowed else 403 for kind in calls}
    for left in (name, f"{name}x"):
        tables.delete_table(left)


# start_pk, start_rk, end_pk, end_rk, and which of the keys below are inside.
RANGES = [
    ({"start_pk": "b"}, {"b1", "b2", "b3", "c1"}),
    ({"start_pk": "b", "start_rk": "2"}, {"b2", "b3", "c1"}),
    ({"end_pk": "b"}, {"a1", "b1", "b2", "b3"}),
    ({"end_pk": "b", "end_rk": "2"}, {"a1", "b1", "b2"}),
    ({"start_pk": "b", "end_pk": "b"}, {"b1", "b2", "b3"}),
    ({"start_pk": "b", "start_rk": "2", "end_pk": "b", "end_rk": "2"}, {"b2"}),
    ({"start_pk": "c", "end_pk": "a"}, set()),
]
KEYS = ["a1", "b1", "b2", "b3", "c1"]


@pytest.mark.parametrize("bounds, inside", RANGES, ids=lambda value: str(sorted(value) if isinstance(value, set) else value))
def test_ranges_of_keys_hold_for_every_operation(table, bounds, inside):
    client = with_sas(table, table_sas(table, **bounds))
    keys = {name: {"PartitionKey": name[0], "RowKey": name[1]} for name in KEYS}
    for name in KEYS:
        table.create_entity(keys[name])
    assert {entity["PartitionKey"] + entity["RowKey"] for entity in client.list_entities()} == inside
    for name, key in keys.items():
        calls = [
            lambda: client.get_entity(*key.values()),
            lambda: client.update_entity({**key, "a": 1}),
            lambda: client.upsert_entity({**key, "a": 1}),
            lambda: client.submit_transaction([("upsert", key)]),
            lambda: client.delete_entity(*key.values()),
            lambda: client.create_entity(key),
        ]
        outcomes = [status_of(call) for call in calls]
        assert outcomes == [200 if name in inside else 403] * len(calls), name
    for name in set(KEYS) - inside:
        with refused(403, "AuthorizationFailure"):
            client.get_entity(*keys[name].values())


def test_one_part_outside_of_the_range_undoes_the_batch(table):
    client = with_sas(table, table_sas(table, start_pk="p", start_rk="1", end_pk="p", end_rk="3"))
    with refused(403, "AuthorizationFailure"):
        client.submit_transaction([("create", entity("2")), ("create", entity("4"))])
    assert list(table.list_entities()) == []
    client.submit_transaction([("create", entity("2")), ("create", entity("3"))])


def test_a_batch_by_signature_may_query(table, table_raw):
    table.create_entity(entity("r", a=1))
    sas = table_sas(table, "r")
    address = f"{table_endpoint()}/{table.table_name}"
    body = f"--batch_1\r\n{part('GET', address + '()')}\r\n--batch_1--\r\n"
    headers = {"Content-Type": "multipart/mixed; boundary=batch_1"}
    answer = table_raw.send("POST", "/$batch", sas, headers, body.encode(), sign=False)
    assert answer.status == 202 and b"HTTP/1.1 200 OK" in answer.body
    changes = change_set([part("POST", address, {"Content-Type": "application/json"}, json.dumps(entity("x")))])
    body = f"--batch_1\r\n{changes}\r\n--batch_1--\r\n"
    answer = table_raw.send("POST", "/$batch", sas, headers, body.encode(), sign=False)
    assert (answer.status, answer.code) == (403, "AuthorizationPermissionMismatch")


def test_a_stored_policy_completes_a_signature(table):
    table.create_entity(entity("r"))
    table.set_table_access_policy({"readers": TableAccessPolicy(expiry=now() + HOUR, permission="r")})
    client = with_sas(table, table_sas(table, None, policy_id="readers"))
    upper = TableClient(
        table_endpoint(),
        table.table_name.upper(),
        credential=AzureSasCredential(table_sas(table, None, policy_id="readers")),
    )
    for reader in (client, upper):
        assert reader.get_entity("p", "r")["RowKey"] == "r"
    with refused(403, "AuthorizationPermissionMismatch"):
        client.create_entity(entity("x"))
    with refused(403, "AuthorizationPermissionMismatch"):
        client.submit_transaction([("create", entity("x"))])
    table.set_table_access_policy({"readers": TableAccessPolicy(expiry=now() + HOUR, permission="ra")})
    client.create_entity(entity("x"))
    client.submit_transaction([("create", entity("y"))])
    table.set_table_access_policy({})
    with refused(403, "AuthenticationFailed"):
        client.get_entity("p", "r")


def test_every_changed_field_breaks_the_signature(table, table_raw):
    table.create_entity(entity("r"))
    sas = table_sas(table, "r", start_pk="p", end_pk="p")
    path = f"/{table.table_name}(PartitionKey='p',RowKey='r')"
    assert table_raw.send("GET", path, sas, sign=False).status == 200
    changed = [
        sas.replace("sp=r", "sp=raud"),
        sas.replace("spk=p", "spk=a"),
        sas.replace("epk=p", "epk=z"),
        sas + "&srk=a",
    ]
    for text in changed:
        answer = table_raw.send("GET", path, text, sign=False)
        assert (answer.status, answer.code) == (403, "AuthenticationFailed"), text


def test_nobody_is_let_in_without_credentials(table, table_raw):
    answer = table_raw.send("GET", f"/{table.table_name}()", sign=False)
    assert (answer.status, answer.code) == (401, "NoAuthenticationInformation")


def test_shared_key_lite_by_hand(table, table_raw):
    date = formatdate(usegmt=True)
    target = f"{table_raw.account.endpoint.path.rstrip('/')}/{table.table_name}()"
    text = f"{date}\n/{table_raw.account.name}{target}"
    headers = {"x-ms-date": date, "Authorization": f"SharedKeyLite {table_raw.account.name}:{table_raw.signature(text)}"}
    assert table_raw.send("GET", f"/{table.table_name}()", headers=headers, sign=False).status == 200


def test_a_token_reads_and_writes(unsigned_tokens, table, table_raw):
    bearer = {"Authorization": f"Bearer {unsigned_token()}"}
    body = json.dumps(entity("r")).encode()
    path = f"/{table.table_name}"
    assert table_raw.send("POST", path, headers=bearer, body=body, sign=False).status == 201
    got = table_raw.send("GET", f"{path}(PartitionKey='p',RowKey='r')", headers=bearer, sign=False)
    assert got.status == 200
    address = f"{table_endpoint()}{path}"
    changes = change_set([part("POST", address, {"Content-Type": "application/json"}, json.dumps(entity("x")))])
    answer = send_batch(table_raw, changes, headers=bearer, sign=False)
    assert answer.status == 202 and b"HTTP/1.1 201 Created" in answer.body
