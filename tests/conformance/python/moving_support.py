"""Everything that an account has, as plain values that can be compared: what moving must keep.

Times that no client can set (of changes and of snapshots), ETags and leases are left out; snapshots are
told apart by their order.
"""

import contextlib
import os
import pathlib
import re
import signal
import subprocess
import threading
from datetime import datetime

import pytest
from azure.data.tables import TableServiceClient
from azure.storage.blob import BlobServiceClient
from azure.storage.fileshare import ShareServiceClient
from azure.storage.queue import QueueServiceClient
from own_server import own_program
from support import DEVELOPMENT_STORAGE

REPOSITORY = pathlib.Path(__file__).parents[3]
LISTENING = re.compile(r"Azurite (\w+) service is successfully listening at (\S+)")


def transfer(*arguments, code=0):
    """Runs `holdfast import` or `holdfast export`, and returns its report."""
    process = begin_transfer(*arguments)
    report, errors = process.communicate(timeout=300)
    assert process.returncode == code, report + errors
    return report


def begin_transfer(*arguments):
    program = os.environ.get("CONFORMANCE_TRANSFER") or own_program()
    # No setting of the surroundings may change what is tested.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("HOLDFAST_")}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen([program, *arguments], env=environment, **pipes)


def counted(report, kind):
    """How many of a kind were sent, and how many were there already."""
    found = re.search(rf"^{kind} +(\d+) +(\d+)$", report, re.MULTILINE)
    return tuple(map(int, found.groups())) if found else (0, 0)


def azurite_program():
    installed = REPOSITORY / ".local/azurite/node_modules/azurite/dist/src/azurite.js"
    program = pathlib.Path(os.environ.get("CONFORMANCE_AZURITE", installed))
    if not program.exists():
        pytest.skip("there is no Azurite: scripts/setup installs it, CONFORMANCE_AZURITE names another")
    return program


@contextlib.contextmanager
def azurite(folder, end=signal.SIGTERM):
    """The connection string of an Azurite with this folder; its data is saved unless it is killed."""
    bundled = REPOSITORY / "tests/conformance/javascript/node_modules/.bin/node"
    node = os.environ.get("CONFORMANCE_NODE") or (str(bundled) if bundled.exists() else "node")
    command = [node, str(azurite_program()), "--location", str(folder), "--skipApiVersionCheck", "--disableTelemetry"]
    command += [f"--{service}Port=0" for service in ("blob", "queue", "table")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        addresses = {}
        for line in process.stdout:
            if found := LISTENING.search(line):
                addresses[found[1]] = found[2].rstrip("/").removesuffix("/devstoreaccount1")
            if len(addresses) == 3:
                break
        assert len(addresses) == 3, "Azurite did not start"
        # Its log of requests would fill the pipe.
        threading.Thread(target=lambda: [None for _ in process.stdout], daemon=True).start()
        parts = dict(part.split("=", 1) for part in DEVELOPMENT_STORAGE.split(";") if part)
        parts |= {f"{name}Endpoint": f"{address}/devstoreaccount1" for name, address in addresses.items()}
        yield "".join(f"{name}={value};" for name, value in parts.items())
    finally:
        process.send_signal(end)
        process.wait(30)


def seconds(time):
    return None if time is None else int(time.timestamp()) if isinstance(time, datetime) else time


def terms(policies):
    """Stored access policies; their times come as texts of more or fewer digits."""
    time = lambda value: value[:19] if isinstance(value, str) else seconds(value)
    return {
        name: (time(policy.start), time(policy.expiry), "".join(sorted(str(policy.permission))))
        for name, policy in policies.items()
    }


def blobs_of(connection):
    """By container: what it is, and its blobs with their snapshots."""
    found = {}
    with BlobServiceClient.from_connection_string(connection, retry_total=0) as service:
        for listed in service.list_containers(include_metadata=True):
            container = service.get_container_client(listed.name)
            access = container.get_container_access_policy()
            policies = terms({policy.id: policy.access_policy for policy in access["signed_identifiers"]})
            blobs = {}
            for blob in container.list_blobs(include=["metadata", "snapshots", "tags"]):
                blobs.setdefault(blob.name, []).append((blob.snapshot or "9", version_of(container, blob)))
            in_order = {}
            for name, versions in blobs.items():
                in_order[name] = [version for _, version in sorted(versions, key=lambda it: it[0])]
            found[listed.name] = (listed.metadata or {}, access["public_access"], policies, in_order)
    return found


def version_of(container, blob):
    client = container.get_blob_client(blob.name, snapshot=blob.snapshot)
    tier = None if blob.blob_tier_inferred else blob.blob_tier
    settings = blob.content_settings
    kind = str(blob.blob_type.value if hasattr(blob.blob_type, "value") else blob.blob_type)
    pages = [(it.start, it.end) for it in client.list_page_ranges()] if kind == "PageBlob" else None
    content = "archived" if tier == "Archive" else client.download_blob().readall()
    return {
        "kind": kind,
        "content": content,
        "type": settings.content_type,
        "encoding": settings.content_encoding or None,
        "language": settings.content_language or None,
        "disposition": settings.content_disposition or None,
        "cache": settings.cache_control or None,
        "md5": settings.content_md5 and bytes(settings.content_md5),
        "metadata": blob.metadata or {},
        "tags": blob.tags or {},
        "tier": tier,
        "pages": pages,
        "sequence": blob.page_blob_sequence_number if kind == "PageBlob" else None,
    }


def without_new_hashes(source, moved):
    """A blob without a Content-MD5 may have got one."""
    for name, (_, _, _, blobs) in source.items():
        for blob, versions in blobs.items():
            for one, two in zip(versions, moved[name][3].get(blob, [])):
                if one["md5"] is None:
                    two["md5"] = None
    return moved


def assert_same_blobs(source, moved):
    """One blob after the other, so that a failure shows which one differs."""
    without_new_hashes(source, moved)
    assert moved.keys() == source.keys()
    for container, (*properties, blobs) in source.items():
        assert moved[container][:3] == tuple(properties), container
        assert moved[container][3].keys() == blobs.keys(), container
        for name, versions in blobs.items():
            assert moved[container][3][name] == versions, name


def queues_of(connection):
    """Metadata and policies of each queue, with the number of its messages."""
    found = {}
    with QueueServiceClient.from_connection_string(connection, retry_total=0) as service:
        for listed in service.list_queues(include_metadata=True):
            queue = service.get_queue_client(listed.name)
            count = queue.get_queue_properties().approximate_message_count
            found[listed.name] = (listed.metadata or {}, terms(queue.get_queue_access_policy()), count)
    return found


def tables_of(connection):
    """Policies of each table, and its entities with the types of their properties."""
    found = {}
    with TableServiceClient.from_connection_string(connection, retry_total=0) as service:
        for listed in service.list_tables():
            table = service.get_table_client(listed.name)
            policies = {name: policy for name, policy in table.get_table_access_policy().items() if policy}
            entities = [
                {name: (type(value).__name__, repr(value)) for name, value in entity.items()}
                for entity in table.list_entities()
            ]
            found[listed.name] = (terms(policies), entities)
    return found


def shares_of(connection):
    """Metadata and policies of each share, and everything below its root."""
    found = {}
    with ShareServiceClient.from_connection_string(connection, retry_total=0) as service:
        for listed in service.list_shares(include_metadata=True):
            share = service.get_share_client(listed.name)
            access = share.get_share_access_policy()
            policies = terms({policy.id: policy.access_policy for policy in access["signed_identifiers"]})
            found[listed.name] = (listed.metadata or {}, listed.quota, policies, dict(nodes_of(share, "")))
    return found


def nodes_of(share, path):
    for listed in share.get_directory_client(path).list_directories_and_files():
        below = f"{path}/{listed['name']}".lstrip("/")
        if listed["is_directory"]:
            properties = share.get_directory_client(below).get_directory_properties()
            yield below, (properties.metadata, properties.file_attributes, str(properties.creation_time))
            yield from nodes_of(share, below)
        else:
            file = share.get_file_client(below)
            properties = file.get_file_properties()
            settings = properties.content_settings
            yield below, {
                "content": file.download_file().readall(),
                "type": settings.content_type,
                "encoding": settings.content_encoding,
                "language": settings.content_language,
                "disposition": settings.content_disposition,
                "cache": settings.cache_control,
                "md5": settings.content_md5 and bytes(settings.content_md5),
                "metadata": properties.metadata,
                "attributes": properties.file_attributes,
                "created": str(properties.creation_time),
                "written": str(properties.last_write_time),
            }
