"""Producers and consumers of kombu over its transport for storage queues; the broker is the argument."""

import socket
import sys

import kombu

JOBS = kombu.Queue("jobs", kombu.Exchange("jobs"), routing_key="jobs")

with kombu.Connection(sys.argv[1]) as connection:
    with connection.channel() as channel:
        JOBS(channel).declare()
        producer = kombu.Producer(channel, serializer="json")
        for number in range(50):
            producer.publish({"number": number, "text": "<&> ü"}, exchange="jobs", routing_key="jobs", declare=[JOBS])
        assert JOBS(channel).queue_declare(passive=True).message_count == 50

    numbers = []

    def handle(body, message):
        assert body["text"] == "<&> ü"
        numbers.append(body["number"])
        message.ack()

    with kombu.Consumer(connection, [JOBS], callbacks=[handle], accept=["json"]):
        while len(numbers) < 50:
            connection.drain_events(timeout=30)
    assert numbers == list(range(50)), numbers

    with connection.SimpleQueue("simple") as simple:
        for text in ("a", "b", "c"):
            simple.put(text)
        first = simple.get(timeout=30)
        assert first.payload == "a"
        first.requeue()
        texts = sorted(simple.get(timeout=30).payload for _ in range(3))
        assert texts == ["a", "b", "c"], texts
        for text in ("d", "e"):
            simple.put(text)
        assert simple.qsize() == 2
        assert simple.clear() == 2
        assert simple.qsize() == 0

    with connection.channel() as channel:
        assert JOBS(channel).get() is None
        JOBS(channel).delete()
    try:
        connection.drain_events(timeout=0.1)
    except socket.timeout:
        pass
