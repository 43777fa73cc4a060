"""Queues: create, metadata, count, policies, delete, list, names, properties of the service."""

from datetime import datetime, timedelta, timezone

import pytest
from azure.core.exceptions import ResourceNotFoundError
from azure.storage.queue import (
    AccessPolicy,
    CorsRule,
    Metrics,
    QueueAnalyticsLogging,
    QueueSasPermissions,
    QueueServiceClient,
    RetentionPolicy,
)
from own_server import own_server
from support import refused, unique

HOUR = timedelta(hours=1)


def now():
    return datetime.now(timezone.utc).replace(microsecond=0)


# Create and delete


def test_a_queue_is_created_once(queue_raw):
    path = f"/{unique('once')}"
    metadata = {"x-ms-meta-Name": "value", "x-ms-meta-other": "1"}
    created = queue_raw.send("PUT", path, headers=metadata)
    assert (created.status, created.body) == (201, b"")
    assert "ETag" not in created.headers
    again = {"x-ms-meta-other": "1", "x-ms-meta-name": "value"}
    assert queue_raw.send("PUT", path, headers=again).status == 204
    for other in ({}, {"x-ms-meta-name": "value"}, metadata | {"x-ms-meta-Name": "VALUE"}):
        refusal = queue_raw.send("PUT", path, headers=other)
        assert (refusal.status, refusal.code) == (409, "QueueAlreadyExists")
    assert queue_raw.send("DELETE", path).status == 204


def test_the_sdk_is_told_what_is_there_already(queue_service, queue):
    # It makes an error of the 204, too.
    with refused(204, None):
        queue_service.create_queue(queue.queue_name)
    with refused(409, "QueueAlreadyExists"):
        queue_service.create_queue(queue.queue_name, metadata={"other": "metadata"})


def test_a_deleted_queue_is_gone_and_its_name_free(queue_service, queue):
    queue.send_message("old")
    queue.delete_queue()
    for call in (
        queue.delete_queue,
        queue.get_queue_properties,
        lambda: queue.set_queue_metadata({"a": "b"}),
        queue.get_queue_access_policy,
        lambda: queue.set_queue_access_policy({}),
        lambda: queue.send_message("x"),
        queue.receive_message,
        queue.peek_messages,
        queue.clear_messages,
        lambda: queue.update_message("11111111-2222-3333-4444-555555555555", "A" * 32, visibility_timeout=1),
        lambda: queue.delete_message("11111111-2222-3333-4444-555555555555", "A" * 32),
    ):
        with refused(404, "QueueNotFound"):
            call()
    queue_service.create_queue(queue.queue_name, metadata={"new": "queue"})
    assert queue.get_queue_properties().approximate_message_count == 0
    assert queue.receive_message() is None


def test_the_name_of_a_deleted_queue_can_be_held():
    with own_server("--queue-name-hold-seconds=30") as connection:
        with QueueServiceClient.from_connection_string(connection, retry_total=0) as service:
            queue = service.create_queue("jobs")
            queue.delete_queue()
            with refused(409, "QueueBeingDeleted"):
                service.create_queue("jobs")
            with refused(404, "QueueNotFound"):
                queue.get_queue_properties()
            service.create_queue("other-jobs")


@pytest.mark.parametrize(
    "name, code",
    [
        ("ab", "OutOfRangeInput"),
        ("a" * 64, "OutOfRangeInput"),
        ("UPPER", "InvalidResourceName"),
        ("two--dashes", "InvalidResourceName"),
        ("-first", "InvalidResourceName"),
        ("last-", "InvalidResourceName"),
        ("under_score", "InvalidResourceName"),
        ("dotted.name", "InvalidResourceName"),
        ("$logs", "InvalidResourceName"),
    ],
)
def test_names_that_no_queue_can_have(queue_raw, name, code):
    for method, path, query in (("PUT", f"/{name}", ""), ("GET", f"/{name}/messages", "")):
        answer = queue_raw.send(method, path, query)
        assert (answer.status, answer.code) == (400, code)


@pytest.mark.parametrize("name", ["abc", "a" * 63, "0-1-2", "123"])
def test_names_that_a_queue_can_have(queue_raw, name):
    assert queue_raw.send("PUT", f"/{name}").status == 201
    assert queue_raw.send("DELETE", f"/{name}").status == 204


# Metadata and count


def test_metadata_are_replaced_whole_and_keep_their_case(queue):
    queue.set_queue_metadata({"Alpha": "1", "beta": "two"})
    assert queue.get_queue_properties().metadata == {"Alpha": "1", "beta": "two"}
    queue.set_queue_metadata({"gamma": "3"})
    assert queue.get_queue_properties().metadata == {"gamma": "3"}
    queue.set_queue_metadata()
    assert queue.get_queue_properties().metadata == {}


@pytest.mark.parametrize(
    "headers, code",
    [
        ({"x-ms-meta-": "v"}, "EmptyMetadataKey"),
        ({"x-ms-meta-a-b": "v"}, "InvalidMetadata"),
        ({"x-ms-meta-1a": "v"}, "InvalidMetadata"),
        ({"x-ms-meta-a": "v" * 8192}, "MetadataTooLarge"),
    ],
)
def test_metadata_that_no_queue_can_have(queue_raw, queue, headers, code):
    for path, query in ((f"/{unique('new')}", ""), (f"/{queue.queue_name}", "comp=metadata")):
        answer = queue_raw.send("PUT", path, query, headers)
        assert (answer.status, answer.code) == (400, code)


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_metadata_and_count_are_headers(queue_raw, queue, method):
    queue.set_queue_metadata({"Name": "value"})
    queue.send_message("x")
    answer = queue_raw.send(method, f"/{queue.queue_name}", "comp=metadata")
    assert (answer.status, answer.body) == (200, b"")
    assert answer.headers["x-ms-approximate-messages-count"] == "1"
    assert ("x-ms-meta-Name", "value") in answer.headers.items()
    assert "ETag" not in answer.headers


def test_the_count_follows_the_messages(queue):
    def count():
        return queue.get_queue_properties().approximate_message_count

    for _ in range(5):
        queue.send_message("x")
    queue.send_message("later", visibility_timeout=60)
    assert count() == 6
    message = queue.receive_message()
    assert count() == 6
    queue.delete_message(message)
    assert count() == 5
    queue.clear_messages()
    assert count() == 0


# Policies


def test_policies_come_back(queue):
    start, expiry = now(), now() + HOUR
    queue.set_queue_access_policy(
        {
            "all": AccessPolicy(QueueSasPermissions(read=True, add=True, update=True, process=True), expiry, start),
            "none": None,
        }
    )
    policies = queue.get_queue_access_policy()
    assert policies.keys() == {"all", "none"}
    assert policies["all"].permission == "raup"
    assert policies["none"].permission is None
    assert datetime.fromisoformat(policies["all"].start) == start
    assert datetime.fromisoformat(policies["all"].expiry) == expiry
    queue.set_queue_access_policy({})
    assert queue.get_queue_access_policy() == {}


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_policies_of_a_new_queue(queue_raw, queue, method):
    answer = queue_raw.send(method, f"/{queue.queue_name}", "comp=acl")
    assert answer.status == 200
    assert answer.headers["Content-Type"] == "application/xml"
    if method == "GET":
        assert answer.xml().tag == "SignedIdentifiers"


@pytest.mark.parametrize(
    "body, code",
    [
        (b"<SignedIdentifiers>" + b"<SignedIdentifier><Id>%d</Id></SignedIdentifier>" * 6, "InvalidXmlDocument"),
        (b"<SignedIdentifiers>", "InvalidXmlDocument"),
        (b"<Other/>", "InvalidXmlDocument"),
        (b"<SignedIdentifiers><Other/></SignedIdentifiers>", "UnsupportedXmlNode"),
        (b"<SignedIdentifiers><SignedIdentifier/></SignedIdentifiers>", "MissingRequiredXmlNode"),
        (
            b"<SignedIdentifiers><SignedIdentifier><Id>a</Id><AccessPolicy><Permission>rw</Permission>"
            b"</AccessPolicy></SignedIdentifier></SignedIdentifiers>",
            "InvalidXmlNodeValue",
        ),
        (
            b"<SignedIdentifiers><SignedIdentifier><Id>" + b"a" * 65 + b"</Id></SignedIdentifier></SignedIdentifiers>",
            "InvalidXmlNodeValue",
        ),
    ],
    ids=["six", "cut off", "root", "child", "no id", "letter", "long id"],
)
def test_policies_that_are_refused(queue_raw, queue, body, code):
    if b"%d" in body:
        body = body % tuple(range(6)) + b"</SignedIdentifiers>"
    answer = queue_raw.send("PUT", f"/{queue.queue_name}", "comp=acl", body=body)
    assert (answer.status, answer.code) == (400, code)


def test_five_policies_are_taken(queue):
    queue.set_queue_access_policy({str(number): AccessPolicy() for number in range(5)})
    assert len(queue.get_queue_access_policy()) == 5


# List


def test_queues_are_listed_in_pages(queue_service):
    prefix = unique("list")
    names = [f"{prefix}-{number}" for number in range(5)]
    queues = [queue_service.create_queue(name, metadata={"name": name}) for name in reversed(names)]
    pages = queue_service.list_queues(name_starts_with=prefix, results_per_page=2).by_page()
    assert [[queue.name for queue in page] for page in pages] == [names[:2], names[2:4], names[4:]]
    listed = list(queue_service.list_queues(name_starts_with=prefix, include_metadata=True))
    assert [queue.metadata for queue in listed] == [{"name": name} for name in names]
    assert [queue.metadata for queue in queue_service.list_queues(name_starts_with=prefix)] == [None] * 5
    for queue in queues:
        queue.delete_queue()
    assert list(queue_service.list_queues(name_starts_with=prefix)) == []


def test_a_listing_repeats_what_was_asked(queue_raw, queue_account, queue):
    queue.set_queue_metadata({"Name": "v"})
    query = f"comp=list&prefix={queue.queue_name}&maxresults=7&marker={queue.queue_name}&include=metadata"
    root = queue_raw.send("GET", "/", query).xml()
    assert root.tag == "EnumerationResults"
    assert root.attrib["ServiceEndpoint"].rstrip("/") == queue_account.endpoint.geturl().rstrip("/")
    assert [root.findtext(name) for name in ("Prefix", "Marker", "MaxResults", "NextMarker")] == [
        queue.queue_name,
        queue.queue_name,
        "7",
        "",
    ]
    assert root.findtext("Queues/Queue/Name") == queue.queue_name
    assert root.findtext("Queues/Queue/Metadata/Name") == "v"
    assert root.find("Queues/Queue/Url") is None


def test_old_listings_give_addresses(queue_raw, queue_account, queue):
    query = f"comp=list&prefix={queue.queue_name}"
    root = queue_raw.send("GET", "/", query, version="2012-02-12").xml()
    endpoint = queue_account.endpoint.geturl().rstrip("/")
    assert root.attrib["AccountName"].rstrip("/") == endpoint
    assert root.findtext("Queues/Queue/Url") == f"{endpoint}/{queue.queue_name}"


@pytest.mark.parametrize(
    "query, code, name",
    [
        ("maxresults=0", "OutOfRangeQueryParameterValue", "maxresults"),
        ("maxresults=-1", "OutOfRangeQueryParameterValue", "maxresults"),
        ("maxresults=x", "InvalidQueryParameterValue", "maxresults"),
        ("include=everything", "InvalidQueryParameterValue", "include"),
        ("marker=!not a marker!", "InvalidMarker", None),
    ],
)
def test_listings_that_are_refused(queue_raw, query, code, name):
    answer = queue_raw.send("GET", "/", f"comp=list&{query.replace(' ', '%20').replace('!', '%21')}")
    assert (answer.status, answer.code) == (400, code)
    assert answer.xml().findtext("QueryParameterName") == name


def test_more_than_a_page_is_cut_to_a_page(queue_raw):
    assert queue_raw.send("GET", "/", "comp=list&maxresults=6000").status == 200


# The service


def test_properties_of_the_service_come_back(queue_service):
    before = queue_service.get_service_properties()
    retention = RetentionPolicy(enabled=True, days=5)
    logging = QueueAnalyticsLogging(version="1.0", read=True, write=True, delete=True, retention_policy=retention)
    metrics = Metrics(version="1.0", enabled=True, include_apis=True, retention_policy=retention)
    cors = [CorsRule(["http://a.example"], ["GET"], max_age_in_seconds=9, allowed_headers=["x-ms-*"])]
    queue_service.set_service_properties(logging, metrics, metrics, cors)
    try:
        properties = queue_service.get_service_properties()
        assert (properties["analytics_logging"].read, properties["hour_metrics"].enabled) == (True, True)
        assert properties["minute_metrics"].retention_policy.days == 5
        assert [rule.allowed_origins for rule in properties["cors"]] == ["http://a.example"]
    finally:
        queue_service.set_service_properties(
            before["analytics_logging"], before["hour_metrics"], before["minute_metrics"], before["cors"]
        )


def test_properties_that_are_not_those_of_queues_are_refused(queue_raw):
    body = b"<StorageServiceProperties><StaticWebsite><Enabled>false</Enabled></StaticWebsite></StorageServiceProperties>"
    answer = queue_raw.send("PUT", "/", "restype=service&comp=properties", body=body)
    assert (answer.status, answer.code) == (400, "UnsupportedXmlNode")


def test_rules_for_other_origins(queue_service, queue, queue_raw):
    before = queue_service.get_service_properties()["cors"]
    rule = CorsRule(["http://app.example"], ["GET"], max_age_in_seconds=60, allowed_headers=["x-ms-*"])
    queue_service.set_service_properties(cors=[rule])
    try:
        path = f"{queue_raw.account.endpoint.path.rstrip('/')}/{queue.queue_name}/messages"
        asked = {"Origin": "http://app.example", "Access-Control-Request-Method": "GET"}
        allowed = queue_raw.exchange("OPTIONS", path, asked, None)
        assert (allowed.status, allowed.headers["Access-Control-Allow-Origin"]) == (200, "http://app.example")
        refusal = queue_raw.exchange("OPTIONS", path, asked | {"Origin": "http://b.example"}, None)
        assert refusal.status == 403
        actual = queue_raw.send("GET", f"/{queue.queue_name}/messages", headers={"Origin": "http://app.example"})
        assert actual.headers["Access-Control-Allow-Origin"] == "http://app.example"
    finally:
        queue_service.set_service_properties(cors=before)
    with pytest.raises(ResourceNotFoundError):
        queue_service.get_queue_client(unique("absent")).get_queue_properties()
