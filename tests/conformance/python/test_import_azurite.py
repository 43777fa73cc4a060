"""`holdfast import azurite`: folders that a real Azurite has filled, compared through the SDKs with what is in
the server afterwards."""

import json
import os
import signal
import subprocess
import uuid
from datetime import datetime, timedelta, timezone

import pytest
from azure.data.tables import EdmType, EntityProperty, TableAccessPolicy, TableServiceClient
from azure.storage.blob import AccessPolicy, BlobBlock, BlobServiceClient, ContentSettings
from azure.storage.queue import AccessPolicy as QueueAccessPolicy
from azure.storage.queue import QueueServiceClient
from moving_support import (
    assert_same_blobs,
    azurite,
    begin_transfer,
    blobs_of,
    counted,
    queues_of,
    tables_of,
    transfer,
)
from own_server import own_server

EXPIRY = datetime(2040, 1, 1, tzinfo=timezone.utc)
MEBIBYTE = 1024 * 1024


def fill_blobs(connection):
    with BlobServiceClient.from_connection_string(connection) as service:
        first = service.create_container("first", metadata={"Owner": "me", "b": "x y"})
        policy = AccessPolicy("rl", start=datetime(2020, 1, 1, tzinfo=timezone.utc), expiry=EXPIRY)
        first.set_container_access_policy({"p": policy, "q": AccessPolicy("r", expiry=EXPIRY)}, public_access="blob")
        settings = ContentSettings("text/plain", "aes128gcm", "de", "attachment; filename=\"a b\"", "no-cache")
        metadata, tags = {"K": "v", "other": "1 2"}, {"t": "1", "u v": "2+3"}
        first.upload_blob("a.txt", b"first", metadata=metadata, content_settings=settings, tags=tags)
        blob = first.get_blob_client("a.txt")
        blob.create_snapshot()
        blob.upload_blob(b"second", overwrite=True, metadata={"k": "2"})
        blob.create_snapshot(metadata={"of": "the snapshot"})
        blob.upload_blob(b"third", overwrite=True)
        for name in ("slash/..dots/.x/ü nö%20?#&+.txt", "empty", "quote's", "a" * 400):
            first.upload_blob(name, b"" if name == "empty" else name.encode())
        blocks = first.get_blob_client("blocks")
        for name in "ab":
            blocks.stage_block(name, name.encode() * 100_000)
        blocks.commit_block_list([BlobBlock("b"), BlobBlock("a"), BlobBlock("b")])
        blocks.stage_block("c", b"not committed")
        first.get_blob_client("never").stage_block("a", b"not committed")
        for tier in ("Cool", "Archive"):
            blob = first.get_blob_client(tier)
            blob.upload_blob(tier.encode())
            blob.set_standard_blob_tier(tier)
        append = first.get_blob_client("append")
        append.create_append_blob(metadata={"m": "1"}, content_settings=settings)
        for piece in (b"one", b"two" * 100_000, b"three"):
            append.append_block(piece)
        append.create_snapshot()
        append.append_block(b"four")
        page = first.get_blob_client("page")
        page.create_page_blob(16 * MEBIBYTE, sequence_number=7, metadata={"p": "q"})
        page.upload_page(b"p" * 512, 512, 512)
        page.upload_page(os.urandom(MEBIBYTE), 8 * MEBIBYTE, MEBIBYTE)
        page.create_snapshot()
        page.upload_page(b"r" * 512, 0, 512)
        page.clear_page(512, 512)
        first.get_blob_client("leased").upload_blob(b"leased")
        first.get_blob_client("leased").acquire_lease(-1)
        gone = first.upload_blob("gone", b"gone")
        gone.delete_blob()
        copied = first.get_blob_client("copied")
        copied.start_copy_from_url(blocks.url)
        # Several extents: Azurite begins another one at 64 MiB.
        large = first.get_blob_client("large")
        large.upload_blob(os.urandom(80 * MEBIBYTE), max_concurrency=2)
        service.create_container("leased-container").acquire_lease(-1)
        service.create_container("$root").upload_blob("r.txt", b"in the root")


def fill_queues(connection):
    with QueueServiceClient.from_connection_string(connection) as service:
        queue = service.create_queue("queue-one", metadata={"Who": "me"})
        queue.set_queue_access_policy({"p": QueueAccessPolicy("r", expiry=EXPIRY)})
        queue.send_message("taken once")
        next(iter(queue.receive_messages(visibility_timeout=600)))
        for text in ("plain", "<xml>&amp; é\r\n \U0001f600", "x" * 48_000):
            queue.send_message(text)
        queue.send_message("later", visibility_timeout=3600)
        queue.send_message("forever", time_to_live=-1)
        queue.send_message("for an hour", time_to_live=3600)
        queue.send_message("gone soon", time_to_live=1)
        service.create_queue("no-messages")


def fill_tables(connection):
    with TableServiceClient.from_connection_string(connection) as service:
        table = service.create_table("Things")
        policy = TableAccessPolicy(permission="r", start=datetime(2020, 1, 1), expiry=EXPIRY)
        table.set_table_access_policy({"p": policy})
        table.create_entity(
            {
                "PartitionKey": "p'q ü%20",
                "RowKey": "r'1 ü%20",
                "text": "text",
                "number": 3,
                "negative": -(2**31),
                "long": EntityProperty(2**60 + 1, EdmType.INT64),
                "short_long": EntityProperty(1, EdmType.INT64),
                "double": 1.5,
                "whole_double": 3.0,
                "nan": float("nan"),
                "infinite": float("-inf"),
                "yes": True,
                "no": False,
                "bytes": b"\0\1\2",
                "guid": uuid.UUID(int=5),
                "time": datetime(2024, 1, 2, 3, 4, 5, 678901, tzinfo=timezone.utc),
                "whole_time": datetime(2024, 1, 2, 3, 4, 5, tzinfo=timezone.utc),
                "empty": "",
                "looks_like_a_time": "2024-01-01T00:00:00Z",
                "looks_like_a_number": "123",
                "Größe": "ü",
            }
        )
        table.upsert_entity({"PartitionKey": "", "RowKey": "", "text": ""})
        for partition in range(3):
            table.submit_transaction(
                [("create", {"PartitionKey": f"p{partition}", "RowKey": f"{row:03}", "row": row}) for row in range(100)]
            )
        service.create_table("Empty")


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """A folder, and what the SDKs said of it before Azurite ended."""
    folder = tmp_path_factory.mktemp("azurite")
    with azurite(folder) as connection:
        fill_blobs(connection)
        fill_queues(connection)
        fill_tables(connection)
        source = blobs_of(connection), queues_of(connection), tables_of(connection)
    return folder, source


@pytest.fixture(scope="module")
def imported(filled):
    """A server after the import, and the report."""
    with own_server() as connection:
        yield connection, transfer("import", "azurite", str(filled[0]), "--to", connection)


def test_containers_and_blobs_are_those_of_azurite(filled, imported):
    assert_same_blobs(filled[1][0], blobs_of(imported[0]))


def test_archived_blob_has_its_content(imported):
    with BlobServiceClient.from_connection_string(imported[0]) as service:
        blob = service.get_blob_client("first", "Archive")
        assert blob.get_blob_properties().size == len("Archive")


def test_leases_are_dropped(imported):
    with BlobServiceClient.from_connection_string(imported[0]) as service:
        assert service.get_blob_client("first", "leased").get_blob_properties().lease.state == "available"
        assert service.get_container_client("leased-container").get_container_properties().lease.state == "available"


def test_uncommitted_blocks_are_dropped_and_told(imported):
    assert "note: 1 blobs have only uncommitted blocks, which are dropped" in imported[1]


def test_messages_keep_text_and_times(filled, imported):
    source, moved = filled[1][1], queues_of(imported[0])
    assert {name: queue[:2] for name, queue in moved.items()} == {name: queue[:2] for name, queue in source.items()}
    with QueueServiceClient.from_connection_string(imported[0]) as service:
        received = service.get_queue_client("queue-one").receive_messages(messages_per_page=32)
        messages = {message.content: message for message in received}
    visible = {"plain", "<xml>&amp; é\r\n \U0001f600", "x" * 48_000, "forever", "for an hour"}
    assert messages.keys() - {"gone soon"} == visible
    assert messages["forever"].expires_on.year == 9999
    left = messages["for an hour"].expires_on - datetime.now(timezone.utc)
    assert timedelta(minutes=40) < left <= timedelta(hours=1)
    # With "later", and with the one that was taken and is invisible.
    assert moved["queue-one"][2] in (7, 8)


def test_entities_keep_their_values_and_types(filled, imported):
    assert tables_of(imported[0]) == filled[1][2]


def test_second_run_sends_nothing(filled, imported):
    report = transfer("import", "azurite", str(filled[0]), "--to", imported[0])
    first = imported[1]
    for kind in ("containers", "blobs", "snapshots", "queues", "tables", "entities"):
        sent, there = counted(report, kind)
        assert sent == 0 and there == counted(first, kind)[0], kind
    assert counted(report, "messages")[0] == 0
    assert "contents        0 bytes" in report


def test_dry_run_writes_nothing(filled):
    with own_server() as connection:
        report = transfer("import", "azurite", str(filled[0]), "--to", connection, "--dry-run")
        assert "nothing was sent, and nothing would be left out" in report
        assert counted(report, "blobs")[0] == len(filled[1][0]["first"][3]) + 1
        assert blobs_of(connection) == {} and queues_of(connection) == {} and tables_of(connection) == {}


def test_only_the_named_services_are_imported(filled):
    with own_server() as connection:
        transfer("import", "azurite", str(filled[0]), "--to", connection, "--services", "table")
        assert blobs_of(connection) == {} and queues_of(connection) == {}
        assert tables_of(connection) == filled[1][2]


def test_account_of_another_name_is_chosen(filled):
    key = "a2V5a2V5"
    with own_server(f"--account=other:{key}") as connection:
        endpoints = [part for part in connection.split(";") if "Endpoint=" in part]
        endpoints = ";".join(endpoints).replace("devstoreaccount1", "other")
        other = f"DefaultEndpointsProtocol=http;AccountName=other;AccountKey={key};{endpoints}"
        report = transfer("import", "azurite", str(filled[0]), "--to", other, code=1)
        assert "left out: account devstoreaccount1: no --to names an account of this name" in report
        arguments = ("--from-account", "devstoreaccount1", "--services", "table")
        transfer("import", "azurite", str(filled[0]), "--to", other, *arguments)
        assert tables_of(other) == filled[1][2]
        transfer("import", "azurite", str(filled[0]), "--to", other, "--from-account", "nobody", code=2)


def test_what_is_there_is_kept_unless_it_may_be_overwritten(filled):
    with own_server() as connection:
        arguments = ("import", "azurite", str(filled[0]), "--to", connection, "--services", "blob,table")
        with BlobServiceClient.from_connection_string(connection) as service:
            mine = service.create_container("first").upload_blob("empty", b"mine")
            mine.create_snapshot()
            report = transfer(*arguments, code=1)
            assert "left out: blob first/empty: another one is there: its length differs" in report
            assert "left out: container first: another one is there: its metadata differs" in report
            assert mine.download_blob().readall() == b"mine"
            transfer(*arguments, "--overwrite")
            # A snapshot that the source does not have is kept.
            assert mine.download_blob().readall() == b""
            mine.delete_blob(delete_snapshots="include")
            mine.upload_blob(b"")
        assert_same_blobs(filled[1][0], blobs_of(connection))


def test_run_that_was_broken_off_is_continued(filled):
    """What a broken run leaves: older versions of a blob, marked ones, and a part of the entities."""
    with own_server() as connection:
        arguments = ("import", "azurite", str(filled[0]), "--to", connection)
        transfer(*arguments)
        mark = {"holdfast_moving": "1"}
        with BlobServiceClient.from_connection_string(connection) as service:
            for name in ("page", "append"):
                blob = service.get_blob_client("first", name)
                blob.delete_blob(delete_snapshots="include")
                if name == "page":
                    blob.create_page_blob(16 * MEBIBYTE, metadata=mark)
                else:
                    blob.create_append_blob(metadata=mark)
            versions = service.get_blob_client("first", "a.txt")
            first = next(it for it in service.get_container_client("first").list_blobs("a.txt", include=["snapshots"]))
            copy = versions.from_connection_string(connection, "first", "a.txt", snapshot=first.snapshot)
            settings = copy.get_blob_properties().content_settings
            versions.delete_blob(delete_snapshots="include")
            tags = {"t": "1", "u v": "2+3"}
            versions.upload_blob(b"first", metadata={"K": "v", "other": "1 2"}, content_settings=settings, tags=tags)
            versions.create_snapshot()
            service.get_blob_client("first", "large").delete_blob()
        with QueueServiceClient.from_connection_string(connection) as service:
            service.get_queue_client("queue-one").set_queue_metadata(mark)
        with TableServiceClient.from_connection_string(connection) as service:
            for row in range(0, 100, 3):
                service.get_table_client("Things").delete_entity("p1", f"{row:03}")
        report = transfer(*arguments)
        assert counted(report, "blobs")[0] == 4 and counted(report, "queues")[0] == 1
        assert counted(report, "entities")[0] == 34
        assert_same_blobs(filled[1][0], blobs_of(connection))
        assert tables_of(connection) == filled[1][2]
        assert queues_of(connection)["queue-one"][0] == {"Who": "me"}
        assert queues_of(connection)["queue-one"][2] in (7, 8)


def test_run_that_is_killed_again_and_again_is_continued(filled):
    with own_server() as connection:
        # One after the other, so that the kills meet many different steps.
        arguments = ("import", "azurite", str(filled[0]), "--to", connection, "--parallel", "1")
        killed = 0
        for step in range(40):
            process = begin_transfer(*arguments)
            try:
                process.communicate(timeout=0.02 * step)
                break
            except subprocess.TimeoutExpired:
                process.kill()
                process.communicate()
                killed += 1
        assert killed >= 2
        transfer(*arguments)
        assert_same_blobs(filled[1][0], blobs_of(connection))
        assert tables_of(connection) == filled[1][2]
        assert {name: it[:2] for name, it in queues_of(connection).items()} == {
            name: it[:2] for name, it in filled[1][1].items()
        }
        assert queues_of(connection)["queue-one"][2] in (7, 8)


def test_folder_of_a_killed_azurite_has_what_was_saved(tmp_path):
    with azurite(tmp_path) as connection:
        with BlobServiceClient.from_connection_string(connection) as service:
            service.create_container("kept").upload_blob("kept", b"kept")
    with azurite(tmp_path, signal.SIGKILL) as connection:
        with BlobServiceClient.from_connection_string(connection) as service:
            # Azurite saves its databases every five seconds, and contents at once.
            service.get_container_client("kept").upload_blob("maybe", b"maybe")
    with own_server() as connection:
        transfer("import", "azurite", str(tmp_path), "--to", connection)
        with BlobServiceClient.from_connection_string(connection) as service:
            assert service.get_blob_client("kept", "kept").download_blob().readall() == b"kept"


def test_damage_is_reported_and_the_rest_is_imported(filled, tmp_path):
    database = json.loads((filled[0] / "__azurite_db_blob__.json").read_text())
    rows = next(it for it in database["collections"] if it["name"] == "$BLOBS_COLLECTION$")["data"]
    by_name = {row["name"]: row for row in rows if not row["snapshot"]}
    by_name["quote's"]["persistency"]["id"] = "../__azurite_db_blob__.json"
    by_name["copied"]["metadata"] = {"bad": "a\r\nx-ms-lease-id: b", "good": "c"}
    by_name["Cool"]["persistency"]["offset"] = 2**40
    del by_name["leased"]["properties"]
    (tmp_path / "__azurite_db_blob__.json").write_text(json.dumps(database))
    (tmp_path / "__blobstorage__").symlink_to(filled[0] / "__blobstorage__")
    with own_server() as connection:
        report = transfer("import", "azurite", str(tmp_path), "--to", connection, code=1)
        assert 'left out: blob first/quote\'s: "../__azurite_db_blob__.json" is no name of an extent' in report
        assert "left out: blob first/Cool: the extent" in report
        assert "left out: blob first/leased: missing field `properties`" in report
        assert 'left out: metadata "bad" of blob first/copied' in report
        moved = blobs_of(connection)["first"][3]
        assert moved["copied"][0]["metadata"] == {"good": "c"}
        assert moved.keys() == filled[1][0]["first"][3].keys() - {"quote's", "Cool", "leased"}


def test_what_is_no_folder_of_azurite_is_refused(tmp_path):
    transfer("import", "azurite", str(tmp_path), code=2)
    (tmp_path / "__azurite_db_blob__.json").write_text('{"collections":[')
    transfer("import", "azurite", str(tmp_path), code=2)
