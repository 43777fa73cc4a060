"""`holdfast import` and `holdfast export` between two servers: all services, compared through the SDKs."""

import os
import threading
from datetime import datetime, timedelta, timezone

import pytest
from azure.storage import blob as blobs
from azure.storage.blob import BlobServiceClient
from azure.storage.fileshare import ContentSettings as FileSettings
from azure.storage.fileshare import ShareServiceClient
from azure.storage.queue import QueueServiceClient
from moving_support import (
    assert_same_blobs,
    blobs_of,
    counted,
    queues_of,
    shares_of,
    tables_of,
    transfer,
    without_new_hashes,
)
from own_server import own_server
from support import DEVELOPMENT_STORAGE
from test_import_azurite import fill_blobs, fill_queues, fill_tables

MEBIBYTE = 1024 * 1024


def fill_shares(connection):
    with ShareServiceClient.from_connection_string(connection) as service:
        share = service.create_share("team", metadata={"Owner": "me"}, quota=7)
        directory = share.create_directory("a")
        directory.create_subdirectory("b ü%20&", metadata={"k": "v"}, file_attributes="Hidden|Directory")
        settings = FileSettings("text/plain", "aes128gcm", "de", "inline", "no-cache", bytearray(os.urandom(16)))
        times = {
            "file_creation_time": datetime(2020, 1, 2, 3, 4, 5, 678901, tzinfo=timezone.utc),
            "file_last_write_time": datetime(2021, 1, 2, 3, 4, 5, tzinfo=timezone.utc),
        }
        file = share.get_file_client("a/b ü%20&/file.txt")
        file.upload_file(b"content", metadata={"M": "1"})
        file.set_http_headers(settings, "ReadOnly|Archive", **times)
        share.get_file_client("empty").upload_file(b"")
        sparse = share.get_file_client("sparse")
        sparse.create_file(20 * MEBIBYTE)
        for offset in (8, 12):
            sparse.upload_range(os.urandom(4 * MEBIBYTE), offset * MEBIBYTE, 4 * MEBIBYTE)
        service.create_share("no-files")


@pytest.fixture(scope="module")
def source():
    with own_server() as connection:
        fill_blobs(connection)
        fill_queues(connection)
        fill_tables(connection)
        fill_shares(connection)
        with BlobServiceClient.from_connection_string(connection) as service:
            sealed = service.get_blob_client("first", "sealed")
            sealed.create_append_blob()
            sealed.append_block(b"sealed")
            sealed.seal_append_blob()
            # The contents of what is archived cannot be read.
            service.get_blob_client("first", "Archive").delete_blob()
        yield connection


@pytest.fixture(scope="module")
def moved(source):
    with own_server() as connection:
        yield connection, transfer("export", "--from", source, "--to", connection, code=1)


def test_blobs_are_those_of_the_source(source, moved):
    assert_same_blobs(blobs_of(source), blobs_of(moved[0]))
    with BlobServiceClient.from_connection_string(moved[0]) as service:
        assert service.get_blob_client("first", "sealed").get_blob_properties().is_append_blob_sealed


def test_tables_are_those_of_the_source(source, moved):
    assert tables_of(moved[0]) == tables_of(source)


def test_shares_are_those_of_the_source(source, moved):
    assert shares_of(moved[0]) == shares_of(source)


def test_messages_are_left_and_told(source, moved):
    queues = queues_of(moved[0])
    assert queues.keys() == queues_of(source).keys()
    assert queues["queue-one"][:2] == queues_of(source)["queue-one"][:2] and queues["queue-one"][2] == 0
    lines = [line for line in moved[1].splitlines() if line.startswith("left out: ")]
    assert len(lines) == 1 and "messages of queue queue-one: they cannot be copied" in lines[0]


def test_second_run_sends_nothing(source, moved):
    report = transfer("import", "--from", source, "--to", moved[0], "--services", "blob,table,file")
    for kind in ("containers", "blobs", "snapshots", "tables", "entities", "shares", "directories", "files"):
        sent, there = counted(report, kind)
        assert sent == 0 and there == counted(moved[1], kind)[0] > 0, kind


def test_messages_are_moved_if_that_is_asked_for():
    with own_server() as source, own_server() as destination:
        with QueueServiceClient.from_connection_string(source) as service:
            queue = service.create_queue("many")
            for at in range(100):
                queue.send_message(f"<{at}>")
            queue.send_message("later", visibility_timeout=600)
        arguments = ("import", "--from", source, "--to", destination, "--services", "queue")
        report = transfer(*arguments, "--move-messages", code=1)
        assert counted(report, "messages") == (100, 0)
        assert "left out: about 1 messages of queue many" in report
        with QueueServiceClient.from_connection_string(destination) as service:
            messages = service.get_queue_client("many").receive_messages(messages_per_page=32)
            assert [message.content for message in messages] == [f"<{at}>" for at in range(100)]
        assert queues_of(source)["many"][2] == 1


def test_blob_that_changes_meanwhile_is_moved_whole():
    with own_server() as source, own_server() as destination:
        with BlobServiceClient.from_connection_string(source) as service:
            blob = service.create_container("changing").get_blob_client("blob")
            blob.upload_blob(b"0" * 24 * MEBIBYTE)
            ended = threading.Event()

            def change():
                for digit in b"1234567890":
                    if ended.wait(0.02):
                        return
                    blob.upload_blob(bytes([digit]) * 24 * MEBIBYTE, overwrite=True)

            thread = threading.Thread(target=change)
            thread.start()
            # It may be given up if it changes too often; it must never be a mixture.
            try:
                transfer("import", "--from", source, "--to", destination, "--services", "blob")
            except AssertionError as failure:
                assert "it was changed while it was read" in str(failure)
            ended.set()
            thread.join()
        with BlobServiceClient.from_connection_string(destination) as service:
            for listed in service.get_container_client("changing").list_blobs():
                content = service.get_blob_client("changing", listed.name).download_blob().readall()
                assert len(set(content)) == 1 and len(content) == 24 * MEBIBYTE


def account_of(connection):
    return dict(part.split("=", 1) for part in connection.split(";") if part)


def test_signatures_open_the_source(source):
    parts = account_of(source)
    arguments = (parts["AccountName"],)
    more = {"account_key": parts["AccountKey"], "expiry": datetime.now(timezone.utc) + timedelta(hours=1)}
    everything = blobs.generate_account_sas(
        *arguments,
        resource_types=blobs.ResourceTypes(service=True, container=True, object=True),
        permission=blobs.AccountSasPermissions(read=True, list=True, tag=True, write=True),
        services=blobs.Services(blob=True, fileshare=True),
        **more,
    )
    endpoints = f"BlobEndpoint={parts['BlobEndpoint']};FileEndpoint={parts['FileEndpoint']}"
    with own_server() as destination:
        named = f"{endpoints};SharedAccessSignature={everything}"
        report = transfer("import", "--from", named, "--to", destination, code=1)
        # Policies are opened by the key alone.
        left = [line for line in report.splitlines() if line.startswith("left out: ")]
        assert all(line.startswith("left out: stored access policies of ") for line in left)
        strip = lambda found: {name: it[3] for name, it in found.items()}
        there = blobs_of(source)
        assert strip(without_new_hashes(there, blobs_of(destination))) == strip(there)
        assert {name: it[3] for name, it in shares_of(destination).items()} == {
            name: it[3] for name, it in shares_of(source).items()
        }

    permission = blobs.ContainerSasPermissions(read=True, list=True, tag=True)
    one = blobs.generate_container_sas(*arguments, "first", permission=permission, **more)
    with own_server() as destination:
        transfer("import", "--from", f"{parts['BlobEndpoint']}/first?{one}", "--to", destination, code=1)
        there = {"first": there["first"]}
        assert strip(without_new_hashes(there, blobs_of(destination))) == strip(there)


def test_https_is_spoken_with_a_trusted_authority(certificate):
    tls = [f"--tls-cert={certificate}/certificate.pem", f"--tls-key={certificate}/key.pem"]
    with own_server() as source, own_server(*tls) as destination:
        destination = destination.replace("127.0.0.1", "localhost")
        with BlobServiceClient.from_connection_string(source) as service:
            service.create_container("one").upload_blob("b", os.urandom(9 * MEBIBYTE))
        arguments = ("export", "--from", source, "--to", destination, "--services", "blob")
        report = transfer(*arguments, code=1)
        assert "left out: the blob service of --to: " in report and "ertificate" in report
        transfer(*arguments, "--ca-file", f"{certificate}/certificate.pem")
        again = transfer(*arguments, "--ca-file", f"{certificate}/certificate.pem")
        assert counted(again, "blobs") == (0, 1)


@pytest.mark.parametrize(
    "arguments",
    [
        ("import",),
        ("export",),
        ("import", "--from", "nonsense"),
        ("import", "--from", "https://a.blob.localhost/?no=signature"),
        ("import", "--from", "UseDevelopmentStorage=true", "--to", "UseDevelopmentStorage=true"),
        ("import", "--from", "UseDevelopmentStorage=true", "--to", DEVELOPMENT_STORAGE, "--services", "smb"),
        ("import", "--from", "UseDevelopmentStorage=true", "--ca-file", "/nowhere"),
    ],
)
def test_command_line_that_cannot_be_used_ends_with_2(arguments):
    transfer(*arguments, code=2)


def test_server_that_cannot_be_reached_is_said_at_once():
    with own_server() as destination:
        nowhere = "AccountName=a;AccountKey=a2V5;BlobEndpoint=http://127.0.0.1:1/a"
        report = transfer("import", "--from", nowhere, "--to", destination, code=1)
        assert "left out: the blob service of --from: " in report
