"""Queues: a worker has a message alone for its visibility timeout, and proves that by the pop receipt.

A worker that is too slow finds its receipt stale: somebody else has the message by then, and only the
newest receipt can delete it. So each message is done at least once, and by one worker at a time.
"""

import time

from azure.storage.queue import QueueServiceClient

from account import CONNECTION, attempt, unique

with QueueServiceClient.from_connection_string(CONNECTION) as service:
    queue = service.create_queue(unique("visibility"))
    queue.send_message("paint the fence")

    def receive(worker):
        message = queue.receive_message(visibility_timeout=2)
        got = f"{message.content}, for the {message.dequeue_count}. time" if message else "nothing"
        print(f"{worker} gets {got}")
        return message

    slow = receive("the slow worker")
    receive("the quick worker, at once,")
    time.sleep(2.5)
    quick = receive("the quick worker, later,")

    def delete(message):
        return lambda: queue.delete_message(message.id, message.pop_receipt)

    attempt("the slow worker deletes it", delete(slow))
    renewed = attempt(
        "the quick worker needs longer",
        lambda: queue.update_message(quick.id, quick.pop_receipt, visibility_timeout=30),
    )
    attempt("the quick worker deletes it with the old receipt", delete(quick))
    attempt("the quick worker deletes it", delete(renewed))
    receive("anybody")
    service.delete_queue(queue.queue_name)
