"""Get Account Information."""

from email.utils import formatdate, parsedate_to_datetime

import pytest
from azure.storage.blob import ContainerSasPermissions, generate_container_sas
from test_access import HOUR, now

QUERY = "restype=account&comp=properties"
STATISTICS = "restype=service&comp=stats"


def test_account_information_by_the_sdk(service, container):
    expected = {"sku_name": "Standard_RAGRS", "account_kind": "StorageV2", "is_hns_enabled": False}
    for client in (service, container, container.get_blob_client("absent")):
        information = client.get_account_information()
        assert {name: information[name] for name in expected} == expected


@pytest.mark.parametrize("path", ["/", "/no-such-container", "/no-such-container/a/b", "/UPPER"])
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_the_resource_need_not_exist(raw, path, method):
    answer = raw.send(method, path, QUERY)
    assert (answer.status, answer.body) == (200, b"")
    assert answer.headers["x-ms-account-kind"] == "StorageV2"


def test_the_hierarchical_namespace_is_told_from_2019_07_07(raw):
    assert raw.send("GET", "/", QUERY, version="2018-11-09").headers["x-ms-is-hns-enabled"] is None
    assert raw.send("GET", "/", QUERY, version="2019-07-07").headers["x-ms-is-hns-enabled"] == "false"


def test_any_signature_may_ask_but_nobody_without_one(raw, account, container):
    permission = ContainerSasPermissions(list=True)
    sas = generate_container_sas(
        account.name, container.container_name, account_key=account.key, permission=permission, expiry=now() + HOUR
    )
    path = f"/{container.container_name}"
    assert raw.send("GET", path, f"{QUERY}&{sas}", sign=False).status == 200
    assert raw.send("GET", path, QUERY, sign=False).status == 401


def secondary(raw, account, query):
    target = f"/{account.name}-secondary/"
    sent = {"x-ms-date": formatdate(usegmt=True), "x-ms-version": raw.version}
    sent["Authorization"] = raw.authorization("GET", target, query, sent)
    return raw.exchange("GET", f"{target}?{query}", sent, None)


def test_statistics_are_those_of_the_secondary(raw, account):
    answer = secondary(raw, account, STATISTICS)
    assert answer.status == 200
    replication = answer.xml().find("GeoReplication")
    assert replication.findtext("Status") == "live"
    age = now() - parsedate_to_datetime(replication.findtext("LastSyncTime"))
    assert abs(age.total_seconds()) < 60


def test_statistics_by_the_name_of_the_secondary_host(raw, account):
    host = f"{account.name}-secondary.blob.localhost:{account.endpoint.port}"
    answer = raw.send("GET", "/", STATISTICS, host=host)
    assert (answer.status, answer.xml().findtext("GeoReplication/Status")) == (200, "live")


def test_the_primary_does_not_know_them(raw):
    answer = raw.send("GET", "/", STATISTICS)
    assert (answer.status, answer.code) == (400, "InvalidQueryParameterValue")
    assert answer.xml().findtext("QueryParameterName") == "comp"
