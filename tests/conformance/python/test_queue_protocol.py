"""What the SDK cannot say about queues: malformed requests, ranges of parameters, versions, the secondary."""

from email.utils import formatdate, parsedate_to_datetime

import pytest
from support import NEWEST_VERSION
from test_access import now
from test_support_matrix import served_operations

WEEK = "604800"


@pytest.fixture
def messages(queue):
    return f"/{queue.queue_name}/messages"


@pytest.fixture
def put(queue):
    return queue.send_message("x")


def body_of(text):
    return f"<QueueMessage><MessageText>{text}</MessageText></QueueMessage>".encode()


def details(answer, *names):
    return tuple(answer.xml().findtext(name) for name in names)


# Parameters

RANGE = ("QueryParameterName", "QueryParameterValue", "MinimumAllowed", "MaximumAllowed")


@pytest.mark.parametrize(
    "method, query, minimum, maximum",
    [
        ("GET", "numofmessages=0", "1", "32"),
        ("GET", "numofmessages=33", "1", "32"),
        ("GET", "numofmessages=-5", "1", "32"),
        ("GET", "numofmessages=0&peekonly=true", "1", "32"),
        ("GET", "numofmessages=33&peekonly=true", "1", "32"),
        ("GET", "visibilitytimeout=0", "1", WEEK),
        ("GET", "visibilitytimeout=604801", "1", WEEK),
        ("POST", "visibilitytimeout=-1", "0", WEEK),
        ("POST", "visibilitytimeout=604801&messagettl=-1", "0", WEEK),
    ],
)
def test_a_parameter_out_of_range(queue_raw, messages, method, query, minimum, maximum):
    answer = queue_raw.send(method, messages, query, body=body_of("x") if method == "POST" else None)
    assert (answer.status, answer.code) == (400, "OutOfRangeQueryParameterValue")
    name, value = query.split("&")[0].split("=")
    assert details(answer, *RANGE) == (name, value, minimum, maximum)
    assert details(answer, "Reason") != (None,)


@pytest.mark.parametrize("value", ["-1", "604801"])
def test_an_update_out_of_range(queue_raw, messages, put, value):
    query = f"popreceipt={put.pop_receipt}&visibilitytimeout={value}"
    answer = queue_raw.send("PUT", f"{messages}/{put.id}", query)
    assert (answer.status, answer.code) == (400, "OutOfRangeQueryParameterValue")
    assert details(answer, *RANGE) == ("visibilitytimeout", value, "0", WEEK)


def test_an_update_beyond_the_expiry(queue_raw, queue, messages):
    put = queue.send_message("x", time_to_live=60)
    query = f"popreceipt={put.pop_receipt}&visibilitytimeout=61"
    answer = queue_raw.send("PUT", f"{messages}/{put.id}", query)
    assert (answer.status, answer.code) == (400, "OutOfRangeQueryParameterValue")
    name, minimum, maximum = details(answer, "QueryParameterName", "MinimumAllowed", "MaximumAllowed")
    assert (name, minimum) == ("visibilitytimeout", "0") and 50 <= int(maximum) <= 60


@pytest.mark.parametrize(
    "method, query, name",
    [
        ("GET", "numofmessages=one", "numofmessages"),
        ("GET", "numofmessages=1.5", "numofmessages"),
        ("GET", "visibilitytimeout=soon", "visibilitytimeout"),
        ("POST", "messagettl=0", "messagettl"),
        ("POST", "messagettl=-2", "messagettl"),
        ("POST", "messagettl=never", "messagettl"),
        ("POST", "messagettl=5&visibilitytimeout=5", "visibilitytimeout"),
        ("POST", "messagettl=5&visibilitytimeout=6", "visibilitytimeout"),
        ("POST", "visibilitytimeout=604800", "visibilitytimeout"),
        ("GET", "peekonly=perhaps", "peekonly"),
    ],
)
def test_a_parameter_that_makes_no_sense(queue_raw, messages, method, query, name):
    answer = queue_raw.send(method, messages, query, body=body_of("x") if method == "POST" else None)
    assert (answer.status, answer.code) == (400, "InvalidQueryParameterValue")
    assert details(answer, "QueryParameterName") == (name,)


@pytest.mark.parametrize(
    "method, query, missing",
    [
        ("PUT", "visibilitytimeout=5", "popreceipt"),
        ("PUT", "popreceipt={receipt}", "visibilitytimeout"),
        ("DELETE", "", "popreceipt"),
        ("DELETE", "popreceipt=", "popreceipt"),
    ],
)
def test_a_parameter_that_is_missing(queue_raw, messages, put, method, query, missing):
    answer = queue_raw.send(method, f"{messages}/{put.id}", query.format(receipt=put.pop_receipt))
    assert (answer.status, answer.code) == (400, "MissingRequiredQueryParameter")
    assert details(answer, "QueryParameterName") == (missing,)


@pytest.mark.parametrize("receipt", ["nonsense", "AgAAAAMAAAAAAAAAYUMWAIg+1gE=", "%20", "A" * 31, "A" * 33, "%FF"])
def test_a_receipt_that_never_was_one(queue_raw, messages, put, receipt):
    for method, query in (("DELETE", ""), ("PUT", "&visibilitytimeout=1")):
        answer = queue_raw.send(method, f"{messages}/{put.id}", f"popreceipt={receipt.replace('+', '%2B')}{query}")
        assert answer.status == 400
        if receipt != "%FF":
            assert answer.code == "InvalidQueryParameterValue"
            assert details(answer, "QueryParameterName") == ("popreceipt",)
    well_formed = queue_raw.send("DELETE", f"{messages}/{put.id}", f"popreceipt={'A' * 32}")
    assert (well_formed.status, well_formed.code) in ((400, "PopReceiptMismatch"), (404, "MessageNotFound"))


# Bodies


@pytest.mark.parametrize(
    "body, code",
    [
        (b"", "InvalidXmlDocument"),
        (b"text", "InvalidXmlDocument"),
        (b"<QueueMessage>", "InvalidXmlDocument"),
        (b"<QueueMessage><MessageText>a</QueueMessage></MessageText>", "InvalidXmlDocument"),
        (b"<Other><MessageText>a</MessageText></Other>", "InvalidXmlDocument"),
        (b"<QueueMessage/>", "MissingRequiredXmlNode"),
        (b"<QueueMessage>text</QueueMessage>", "MissingRequiredXmlNode"),
        (b"<QueueMessage><Text>a</Text></QueueMessage>", "UnsupportedXmlNode"),
        (b"<QueueMessage><MessageText>a</MessageText><Other/></QueueMessage>", "UnsupportedXmlNode"),
        (b"<QueueMessage><MessageText>a</MessageText><MessageText>b</MessageText></QueueMessage>", "InvalidXmlDocument"),
        (body_of("<b>markup</b>"), "InvalidXmlDocument"),
        (body_of("&undefined;"), "InvalidXmlDocument"),
        (body_of("&#1;"), "InvalidXmlDocument"),
        (b"<QueueMessage><MessageText>\xff</MessageText></QueueMessage>", "InvalidXmlDocument"),
        (b"<!DOCTYPE a [<!ENTITY b 'c'>]>" + body_of("&b;"), "InvalidXmlDocument"),
    ],
)
def test_a_body_that_is_no_message(queue_raw, queue, messages, put, body, code):
    answer = queue_raw.send("POST", messages, body=body)
    assert (answer.status, answer.code) == (400, code)
    update = queue_raw.send("PUT", f"{messages}/{put.id}", f"popreceipt={put.pop_receipt}&visibilitytimeout=0", body=body)
    # Without a body an update leaves the text as it is.
    assert (update.status, update.code) == ((204, None) if body == b"" else (400, code))
    assert [message.content for message in queue.peek_messages(5)] == ["x"]


def test_a_body_with_its_declaration_and_a_mark(queue_raw, queue, messages):
    body = b'\xef\xbb\xbf<?xml version="1.0" encoding="utf-8"?>\r\n<QueueMessage>\r\n <MessageText>a</MessageText>\r\n</QueueMessage>\r\n'
    assert queue_raw.send("POST", messages, body=body).status == 201
    assert queue.peek_messages()[0].content == "a"


def test_a_body_is_checked_against_its_md5(queue_raw, queue, messages):
    answer = queue_raw.send("POST", messages, headers={"Content-MD5": "AAAAAAAAAAAAAAAAAAAAAA=="}, body=body_of("x"))
    assert (answer.status, answer.code) == (400, "Md5Mismatch")
    assert queue.peek_messages() == []


# Versions


def test_versions_before_2016_05_31_answer_a_put_without_a_body(queue_raw, queue, messages):
    old = queue_raw.send("POST", messages, body=body_of("x"), version="2015-12-11")
    assert (old.status, old.body) == (201, b"")
    new = queue_raw.send("POST", messages, body=body_of("x"), version="2016-05-31")
    assert [child.tag for child in new.xml()[0]] == [
        "MessageId",
        "InsertionTime",
        "ExpirationTime",
        "PopReceipt",
        "TimeNextVisible",
    ]
    assert len(queue.peek_messages(5)) == 2


def test_a_got_message_has_its_elements_in_order(queue_raw, queue, messages):
    queue.send_message("x")
    answer = queue_raw.send("GET", messages)
    assert answer.headers["Content-Type"] == "application/xml"
    assert [child.tag for child in answer.xml()[0]] == [
        "MessageId",
        "InsertionTime",
        "ExpirationTime",
        "PopReceipt",
        "TimeNextVisible",
        "DequeueCount",
        "MessageText",
    ]
    for name in ("InsertionTime", "ExpirationTime", "TimeNextVisible"):
        assert answer.xml()[0].findtext(name).endswith(" GMT")


def test_versions_before_2017_07_29_let_no_message_live_longer_than_a_week(queue_raw, messages):
    for value, version, status in (
        ("604800", "2016-05-31", 201),
        ("604801", "2016-05-31", 400),
        ("-1", "2016-05-31", 400),
        ("604801", "2017-07-29", 201),
        ("-1", "2017-07-29", 201),
    ):
        answer = queue_raw.send("POST", messages, f"messagettl={value}", body=body_of("x"), version=version)
        assert (answer.status, value, version) == (status, value, version)
        if status == 400:
            assert answer.xml().findtext("Code") == "OutOfRangeQueryParameterValue"
            assert details(answer, *RANGE) == ("messagettl", value, "1", WEEK)


def test_versions_before_2011_08_18_are_smaller(queue_raw, queue, messages, put):
    old, new = "2009-09-19", "2011-08-18"
    assert queue_raw.send("POST", messages, body=body_of("a" * 8192), version=old).status == 201
    large = body_of("a" * 8193)
    refusal = queue_raw.send("POST", messages, body=large, version=old)
    assert (refusal.status, refusal.code) == (400, "MessageTooLarge")
    assert queue_raw.send("POST", messages, body=large, version=new).status == 201
    assert queue_raw.send("GET", messages, "visibilitytimeout=7200", version=old).status == 200
    assert queue_raw.send("GET", messages, "visibilitytimeout=7201", version=old).status == 400
    assert queue_raw.send("GET", messages, "visibilitytimeout=7201", version=new).status == 200
    query = f"popreceipt={put.pop_receipt}&visibilitytimeout=1"
    assert queue_raw.send("PUT", f"{messages}/{put.id}", query, version=old).status in (400, 404, 405)


def test_the_version_must_be_named(queue_raw, messages):
    answer = queue_raw.send("GET", messages, version=None)
    assert (answer.status, answer.code) == (400, "MissingRequiredHeader")
    assert details(answer, "HeaderName") == ("x-ms-version",)


def test_an_operation_is_refused_at_versions_that_do_not_have_it(queue_raw, queue):
    assert queue_raw.send("GET", f"/{queue.queue_name}", "comp=acl", version="2011-08-18").status == 400
    assert queue_raw.send("GET", f"/{queue.queue_name}", "comp=acl", version="2012-02-12").status == 200


# Addresses and methods


@pytest.mark.parametrize(
    "method, path, query, status",
    [
        ("POST", "", "", 405),
        ("GET", "/messages/id", "", 405),
        ("POST", "/messages/id", "", 405),
        ("PUT", "/messages", "", 405),
        ("GET", "/other", "", 400),
        ("GET", "/messages/id/more", "", 400),
        ("GET", "", "comp=unknown", 400),
        ("PATCH", "/messages", "", 405),
    ],
)
def test_what_is_no_operation(queue_raw, queue, method, path, query, status):
    answer = queue_raw.send(method, f"/{queue.queue_name}{path}", query)
    assert answer.status == status


def test_conditions_are_refused(queue_raw, queue, messages):
    for headers in ({"If-Match": "*"}, {"If-None-Match": "*"}, {"If-Modified-Since": formatdate(usegmt=True)}):
        answer = queue_raw.send("GET", messages, headers=headers)
        assert (answer.status, answer.code) == (400, "ConditionHeadersNotSupported")


def test_common_headers(queue_raw, queue, messages):
    answer = queue_raw.send("GET", messages, headers={"x-ms-client-request-id": "mine"})
    assert answer.headers["x-ms-version"] == NEWEST_VERSION
    assert answer.headers["x-ms-client-request-id"] == "mine"
    assert answer.headers["Server"].startswith("Windows-Azure-Queue/1.0")
    assert answer.headers["x-ms-request-id"] and answer.headers["Date"]


def test_an_address_by_host_name(queue_raw, queue_account, queue):
    queue.send_message("x")
    host = f"{queue_account.name}.queue.localhost:{queue_account.endpoint.port}"
    answer = queue_raw.send("GET", f"/{queue.queue_name}/messages", "peekonly=true", host=host)
    assert (answer.status, len(answer.xml())) == (200, 1)


# The secondary


def by_secondary(raw, method, path, query=""):
    target = f"/{raw.account.name}-secondary{path}"
    sent = {"x-ms-date": formatdate(usegmt=True), "x-ms-version": raw.version}
    if method in ("PUT", "POST"):
        sent["Content-Length"] = "0"
    sent["Authorization"] = raw.authorization(method, target, query, sent)
    return raw.exchange(method, f"{target}?{query}" if query else target, sent, None)


def test_statistics_are_those_of_the_secondary(queue_raw):
    query = "restype=service&comp=stats"
    answer = by_secondary(queue_raw, "GET", "/", query)
    assert (answer.status, answer.xml().findtext("GeoReplication/Status")) == (200, "live")
    synced = parsedate_to_datetime(answer.xml().findtext("GeoReplication/LastSyncTime"))
    assert abs((now() - synced).total_seconds()) < 60
    primary = queue_raw.send("GET", "/", query)
    assert (primary.status, primary.code) == (400, "InvalidQueryParameterValue")


def test_the_secondary_reads_and_does_not_write(queue_raw, queue):
    queue.send_message("x")
    assert by_secondary(queue_raw, "GET", f"/{queue.queue_name}", "comp=metadata").status == 200
    assert by_secondary(queue_raw, "GET", f"/{queue.queue_name}/messages", "peekonly=true").status == 200
    for method, path in (("PUT", f"/{queue.queue_name}-2"), ("DELETE", f"/{queue.queue_name}/messages")):
        assert 400 <= by_secondary(queue_raw, method, path).status < 500
    # Getting a message changes it, although the method is GET.
    assert 400 <= by_secondary(queue_raw, "GET", f"/{queue.queue_name}/messages").status < 500
    assert queue.receive_message().dequeue_count == 1


# Every row


def calls(queue):
    messages, message = f"{queue}/messages", f"{queue}/messages/11111111-2222-3333-4444-555555555555"
    properties = "restype=service&comp=properties"
    receipt = f"popreceipt={'A' * 32}"
    key_info = b"<KeyInfo><Expiry>2031-01-01T00:00:00Z</Expiry></KeyInfo>"
    asked = {"Origin": "http://a.example", "Access-Control-Request-Method": "GET"}
    yield "Create Queue", "PUT", queue, "", {}, None
    yield "Get Queue Metadata", "GET", queue, "comp=metadata", {}, None
    yield "Set Queue Metadata", "PUT", queue, "comp=metadata", {}, None
    yield "Get Queue ACL", "GET", queue, "comp=acl", {}, None
    yield "Set Queue ACL", "PUT", queue, "comp=acl", {}, b"<SignedIdentifiers/>"
    yield "List Queues", "GET", "/", "comp=list", {}, None
    yield "Put Message", "POST", messages, "", {}, body_of("x")
    yield "Peek Messages", "GET", messages, "peekonly=true", {}, None
    yield "Get Messages", "GET", messages, "", {}, None
    yield "Update Message", "PUT", message, f"{receipt}&visibilitytimeout=1", {}, None
    yield "Delete Message", "DELETE", message, receipt, {}, None
    yield "Clear Messages", "DELETE", messages, "", {}, None
    yield "Delete Queue", "DELETE", queue, "", {}, None
    yield "Get Queue Service Properties", "GET", "/", properties, {}, None
    yield "Set Queue Service Properties", "PUT", "/", properties, {}, b"<StorageServiceProperties/>"
    yield "Get Queue Service Stats", "GET", "/", "restype=service&comp=stats", {}, None
    yield "Get User Delegation Key (queue)", "POST", "/", "restype=service&comp=userdelegationkey", {}, key_info
    yield "Preflight Queue Request", "OPTIONS", queue, "", asked, None


# There is no such message, one is asked at the primary, one takes tokens only, one finds no rule.
REFUSED = {
    "Update Message": 404,
    "Delete Message": 404,
    "Get Queue Service Stats": 400,
    "Get User Delegation Key (queue)": 403,
    "Preflight Queue Request": 403,
}


def test_served_operations_are_built(queue_raw, queue):
    asked = {}
    for name, method, path, query, headers, body in calls(f"/{queue.queue_name}-2"):
        asked[name] = queue_raw.send(method, path, query, headers, body).status
    assert asked.keys() == served_operations("Queue")
    unserved = {name: status for name, status in asked.items() if status != REFUSED.get(name, status) or status == 501}
    assert unserved == {}
    assert all(status < 300 for name, status in asked.items() if name not in REFUSED), asked


def test_bytes_that_are_no_request_do_not_hurt(queue_raw, queue):
    path, bare = f"/{queue.queue_name}/messages", {"headers": {"x-ms-date": None}, "version": None, "sign": False}
    assert queue_raw.send("GET", path, "numofmessages=%zz", **bare).status == 400
    assert queue.peek_messages() == []
