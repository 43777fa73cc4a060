"""Messages: put, get, peek, update, delete, clear; their times and their pop receipts."""

import time
from datetime import datetime, timedelta, timezone

import pytest
from azure.storage.queue import (
    BinaryBase64DecodePolicy,
    BinaryBase64EncodePolicy,
    QueueClient,
    TextBase64DecodePolicy,
    TextBase64EncodePolicy,
)
from support import connection_string, refused

SECOND = timedelta(seconds=1)
WEEK = timedelta(days=7)
NEVER = datetime(9999, 12, 31, 23, 59, 59, tzinfo=timezone.utc)


def near(left, right):
    return abs(left - right) < 5 * SECOND


def now():
    return datetime.now(timezone.utc)


def receive(queue, **arguments):
    return list(queue.receive_messages(**arguments))


# Put and get


def test_a_message_is_put_and_got(queue):
    put = queue.send_message("hello")
    assert near(put.inserted_on, now()) and near(put.next_visible_on, now())
    assert put.expires_on - put.inserted_on == WEEK
    got = queue.receive_message()
    assert (got.id, got.content, got.dequeue_count) == (put.id, "hello", 1)
    assert (got.inserted_on, got.expires_on) == (put.inserted_on, put.expires_on)
    assert near(got.next_visible_on, now() + 30 * SECOND)
    assert got.pop_receipt not in ("", put.pop_receipt)
    assert queue.receive_message() is None
    queue.delete_message(got)


@pytest.mark.parametrize(
    "text",
    ["", " ", " spaces around ", "<a>&amp;\"'</a>", "]]>", "line\nline\ttab\n", "ü€😀\u200b", "&#10;"],
)
def test_texts_come_back_as_they_are(queue, text):
    queue.send_message(text)
    assert queue.peek_messages()[0].content == text
    message = queue.receive_message()
    assert message.content == text
    queue.update_message(message, visibility_timeout=0, content=f"{text}{text}")
    assert queue.receive_message().content == text * 2


def test_lines_end_as_xml_has_it(queue_raw, queue):
    """Whatever ends a line in the body of a request, a reader of XML sees a line feed, unless it is a reference."""
    queue.send_message("one\r\ntwo\rthree")
    body = b"<QueueMessage><MessageText>one&#13;&#10;two</MessageText></QueueMessage>"
    assert queue_raw.send("POST", f"/{queue.queue_name}/messages", body=body).status == 201
    assert [message.content for message in queue.peek_messages(2)] == ["one\ntwo\nthree", "one\r\ntwo"]


def test_encodings_of_the_sdk(queue):
    for encode, decode, content in (
        (BinaryBase64EncodePolicy(), BinaryBase64DecodePolicy(), bytes(range(256)) * 4),
        (TextBase64EncodePolicy(), TextBase64DecodePolicy(), "text ü <&>"),
    ):
        with QueueClient.from_connection_string(
            connection_string(), queue.queue_name, message_encode_policy=encode, message_decode_policy=decode
        ) as client:
            client.send_message(content)
            message = client.receive_message()
            assert message.content == content
            client.delete_message(message)


def test_messages_come_first_in_first_out(queue):
    for number in range(40):
        queue.send_message(str(number))
    first = receive(queue, messages_per_page=32)
    assert [message.content for message in first] == [str(number) for number in range(40)]
    assert len({message.pop_receipt for message in first}) == 40


def test_as_many_messages_as_asked_for(queue_raw, queue):
    for number in range(40):
        queue.send_message(str(number))
    path = f"/{queue.queue_name}/messages"
    for query, count in (("", 1), ("numofmessages=5", 5), ("numofmessages=32", 32), ("numofmessages=32", 2)):
        assert len(queue_raw.send("GET", path, query).xml()) == count
    empty = queue_raw.send("GET", path)
    assert (empty.status, empty.xml().tag, len(empty.xml())) == (200, "QueueMessagesList", 0)


def test_a_message_comes_back_when_its_time_is_over(queue):
    queue.send_message("x")
    first = queue.receive_message(visibility_timeout=1)
    assert queue.receive_message() is None and queue.peek_messages() == []
    time.sleep(1.1)
    second = queue.receive_message(visibility_timeout=60)
    assert (second.id, second.dequeue_count) == (first.id, 2)
    with refused(404, "MessageNotFound"):
        queue.delete_message(first)
    queue.delete_message(second)


def test_a_receipt_is_good_beyond_its_time_while_nobody_else_has_the_message(queue):
    queue.send_message("x")
    message = queue.receive_message(visibility_timeout=1)
    time.sleep(1.1)
    assert len(queue.peek_messages()) == 1
    queue.delete_message(message)
    assert queue.peek_messages() == []


def test_a_message_can_be_delayed(queue):
    put = queue.send_message("x", visibility_timeout=1)
    assert put.next_visible_on - put.inserted_on in (SECOND, 0 * SECOND, 2 * SECOND)
    assert queue.peek_messages() == []
    time.sleep(1.1)
    assert queue.receive_message().content == "x"


def test_a_message_expires(queue):
    queue.send_message("short", time_to_live=1)
    kept = queue.send_message("kept", time_to_live=60)
    message = queue.receive_message(visibility_timeout=30)
    assert message.content == "short"
    time.sleep(1.1)
    with refused(404, "MessageNotFound"):
        queue.delete_message(message)
    assert [peeked.id for peeked in queue.peek_messages(5)] == [kept.id]
    deadline = time.monotonic() + 20
    while queue.get_queue_properties().approximate_message_count != 1:
        assert time.monotonic() < deadline, "expired messages go by themselves"
        time.sleep(0.1)


def test_a_message_can_live_for_ever_and_very_long(queue):
    assert queue.send_message("x", time_to_live=-1).expires_on == NEVER
    assert queue.receive_message().expires_on == NEVER
    year = timedelta(days=365)
    put = queue.send_message("x", time_to_live=int(year.total_seconds()))
    assert put.expires_on - put.inserted_on == year
    assert queue.send_message("x", time_to_live=10**12).expires_on == NEVER


def test_getting_may_hide_a_message_beyond_its_expiry(queue):
    queue.send_message("x", time_to_live=20)
    message = queue.receive_message(visibility_timeout=604800)
    assert message.next_visible_on > message.expires_on


# Peek


def test_peeking_changes_nothing_and_gives_no_receipt(queue_raw, queue):
    for text in ("a", "b", "c"):
        queue.send_message(text)
    for _ in range(2):
        peeked = queue.peek_messages(2)
        assert [(message.content, message.dequeue_count) for message in peeked] == [("a", 0), ("b", 0)]
    answer = queue_raw.send("GET", f"/{queue.queue_name}/messages", "peekonly=true")
    assert [child.tag for child in answer.xml()[0]] == [
        "MessageId",
        "InsertionTime",
        "ExpirationTime",
        "DequeueCount",
        "MessageText",
    ]
    queue.receive_message()
    assert [message.content for message in queue.peek_messages(32)] == ["b", "c"]


# Update


def test_an_update_changes_content_and_visibility(queue):
    queue.send_message("old")
    message = queue.receive_message()
    updated = queue.update_message(message, visibility_timeout=0, content="new")
    assert updated.pop_receipt != message.pop_receipt
    again = queue.receive_message()
    assert (again.id, again.content, again.dequeue_count) == (message.id, "new", 2)


def test_an_update_without_content_keeps_it(queue):
    for text in ("short", "long" * 10_000):
        queue.send_message(text)
        message = queue.receive_message()
        updated = queue.update_message(message.id, message.pop_receipt, visibility_timeout=100)
        assert near(updated.next_visible_on, now() + 100 * SECOND)
        updated = queue.update_message(message.id, updated.pop_receipt, visibility_timeout=0)
        again = queue.receive_message()
        assert again.content == text
        queue.delete_message(again)


def test_an_update_ends_the_receipt(queue):
    queue.send_message("x")
    message = queue.receive_message()
    updated = queue.update_message(message, visibility_timeout=30)
    for stale in (
        lambda: queue.update_message(message.id, message.pop_receipt, visibility_timeout=1),
        lambda: queue.delete_message(message.id, message.pop_receipt),
    ):
        with refused(404, "MessageNotFound"):
            stale()
    queue.delete_message(message.id, updated.pop_receipt)


def test_the_receipt_of_a_put_updates_and_deletes(queue):
    put = queue.send_message("x")
    updated = queue.update_message(put.id, put.pop_receipt, visibility_timeout=0, content="y")
    assert queue.peek_messages()[0].content == "y"
    queue.delete_message(put.id, updated.pop_receipt)
    put = queue.send_message("x")
    queue.receive_message()
    with refused(404, "MessageNotFound"):
        queue.delete_message(put.id, put.pop_receipt)


def test_an_update_says_so_in_headers(queue_raw, queue):
    put = queue.send_message("x")
    path = f"/{queue.queue_name}/messages/{put.id}"
    answer = queue_raw.send("PUT", path, f"popreceipt={put.pop_receipt}&visibilitytimeout=60")
    assert (answer.status, answer.body) == (204, b"")
    assert answer.headers["x-ms-popreceipt"] != put.pop_receipt
    visible = datetime.strptime(answer.headers["x-ms-time-next-visible"], "%a, %d %b %Y %H:%M:%S GMT")
    assert near(visible.replace(tzinfo=timezone.utc), now() + 60 * SECOND)
    assert "ETag" not in answer.headers


# Delete and clear


def test_a_deleted_message_is_gone(queue):
    queue.send_message("x")
    message = queue.receive_message(visibility_timeout=1)
    queue.delete_message(message)
    for call in (
        lambda: queue.delete_message(message),
        lambda: queue.update_message(message, visibility_timeout=1),
    ):
        with refused(404, "MessageNotFound"):
            call()
    time.sleep(1.1)
    assert queue.receive_message() is None


def test_the_receipt_of_another_message_is_refused(queue):
    first, second = queue.send_message("a"), queue.send_message("b")
    with refused(400, "PopReceiptMismatch"):
        queue.delete_message(first.id, second.pop_receipt)
    with refused(400, "PopReceiptMismatch"):
        queue.update_message(first.id, second.pop_receipt, visibility_timeout=1)
    assert len(queue.peek_messages(5)) == 2


@pytest.mark.parametrize("message_id", ["11111111-2222-3333-4444-555555555555", "no-id-at-all", "a b"])
def test_a_message_that_never_was_is_not_found(queue, message_id):
    receipt = queue.send_message("x").pop_receipt
    with refused(404, "MessageNotFound"):
        queue.delete_message(message_id, receipt)


def test_a_message_is_of_one_queue(queue_service, queue):
    put = queue.send_message("x")
    other = queue_service.create_queue(f"{queue.queue_name}-2")
    with refused(404, "MessageNotFound"):
        other.delete_message(put.id, put.pop_receipt)
    other.delete_queue()
    queue.delete_message(put.id, put.pop_receipt)


def test_a_cleared_queue_is_empty_and_goes_on(queue):
    for number in range(50):
        queue.send_message(str(number), visibility_timeout=number % 3)
    message = queue.receive_message(visibility_timeout=1)
    queue.clear_messages()
    assert queue.get_queue_properties().approximate_message_count == 0
    assert queue.peek_messages(32) == []
    with refused(404, "MessageNotFound"):
        queue.delete_message(message)
    queue.send_message("new")
    time.sleep(2.1)
    assert [peeked.content for peeked in queue.peek_messages(32)] == ["new"]
    queue.clear_messages()
    queue.clear_messages()


# Sizes


@pytest.mark.parametrize("letter", ["a", "<", "ü"])
def test_the_largest_message(queue, letter):
    text = letter * (65536 // len(letter.encode()))
    queue.send_message(text)
    message = queue.receive_message()
    assert message.content == text
    queue.update_message(message, visibility_timeout=0, content=text)
    for call in (
        lambda: queue.send_message(f"{text}a"),
        lambda: queue.update_message(message, visibility_timeout=0, content=f"{text}a"),
    ):
        with refused(413, "RequestBodyTooLarge"):
            call()


def test_a_body_beyond_every_message(queue_raw, queue):
    body = b"<QueueMessage><MessageText>" + b"a" * 1_000_000 + b"</MessageText></QueueMessage>"
    answer = queue_raw.send("POST", f"/{queue.queue_name}/messages", body=body)
    assert (answer.status, answer.code) == (413, "RequestBodyTooLarge")
    assert int(answer.xml().findtext("MaxLimit")) >= 65536
    assert queue.peek_messages() == []
