"""Real clients against the server, unmodified: each does what people do with it, and must work as usual.

    scripts/check-clients [NAME…]      all of them, or those named: az az_files az_queues az_tables azcopy
                                       azcopy_files rclone rclone_files adlfs pyarrow deltalake kombu
                                       rust (azure_storage_blob, object_store, opendal)

Every server is started here on free ports with its data in a temporary folder, and is ended by its
process id. azcopy takes only HTTPS and host names with ".blob." or ".file." in them: it runs in a mount namespace
of its own, in which such a name stands for the loopback address.
"""

import contextlib
import datetime
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "harness"))

from server_process import ACCOUNT, KEY, ServerProcess, connection_string

PROGRAM = os.environ["HOLDFAST_PROGRAM"]
CLIENTS = pathlib.Path(os.environ["HOLDFAST_CLIENTS"])


@contextlib.contextmanager
def server(folder: pathlib.Path, *settings: str, service: str = "blob"):
    """The port of a service of a new server without other services."""
    with ServerProcess(PROGRAM, f"--data={folder / 'data'}", "--log=warn", *settings, listening=[service]) as process:
        yield process.ports[service]


def connection(port: int, service: str = "blob") -> str:
    return connection_string({service: f"http://127.0.0.1:{port}"})


def run(*command, **environment) -> str:
    """What a command prints; it must succeed within two minutes."""
    done = subprocess.run(
        [str(word) for word in command],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, f"{command}: {done.stdout}\n{done.stderr}"
    return done.stdout


def tree(folder: pathlib.Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def plant(folder: pathlib.Path, suffix: str = "") -> pathlib.Path:
    """Files of several sizes in several folders; one is long enough to be sent in blocks."""
    source = folder / "source"
    for name, size in {"small": 10, "empty": 0, "in/a/folder": 5000, "with space ü": 300, "large": 40 << 20}.items():
        path = source / f"{name}{suffix}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(os.urandom(size))
    return source


@contextlib.contextmanager
def az_storage(folder: pathlib.Path, service: str):
    """`az storage` on a server of its own: a function of its words that returns what it prints,
    and the port."""
    with server(folder, service=service) as port:
        environment = {
            "AZURE_STORAGE_CONNECTION_STRING": connection(port, service),
            "AZURE_CONFIG_DIR": str(folder / "az"),
            "AZURE_CORE_COLLECT_TELEMETRY": "no",
        }

        def storage(*words):
            az = CLIENTS / "python/bin/az"
            return json.loads(run(az, "storage", *words, "--output", "json", **environment) or "null")

        yield storage, port


def check_az(folder: pathlib.Path) -> None:
    source = plant(folder)
    with az_storage(folder, "blob") as (storage, port):
        assert storage("container", "create", "--name", "box")["created"]
        large = source / "large"
        storage("blob", "upload", "-c", "box", "-n", "large", "-f", large)
        storage("blob", "upload-batch", "-d", "box", "-s", source, "--overwrite")
        names = {blob["name"] for blob in storage("blob", "list", "-c", "box")}
        assert names == set(tree(source)), names
        snapshot = storage("blob", "snapshot", "-c", "box", "-n", "small")["snapshot"]
        assert snapshot
        # With the name of a container as source, az asks for a copy from the cloud instead.
        storage("blob", "copy", "start", "--destination-container", "box", "--destination-blob", "copy",
                "--source-uri", f"http://127.0.0.1:{port}/{ACCOUNT}/box/large")
        assert storage("blob", "show", "-c", "box", "-n", "copy")["properties"]["copy"]["status"] == "success"
        storage("blob", "set-tier", "-c", "box", "-n", "copy", "--tier", "Cool")
        storage("blob", "metadata", "update", "-c", "box", "-n", "copy", "--metadata", "a=b")
        lease = storage("blob", "lease", "acquire", "-c", "box", "-b", "copy", "--lease-duration", "-1")
        storage("blob", "lease", "release", "-c", "box", "-b", "copy", "--lease-id", lease)
        storage("blob", "upload", "-c", "box", "-n", "tagged", "-f", source / "small", "--tags", "kind=small")
        storage("blob", "download", "-c", "box", "-n", "copy", "-f", folder / "down")
        assert (folder / "down").read_bytes() == large.read_bytes()
        storage("blob", "download-batch", "-s", "box", "-d", make(folder / "all"), "--pattern", "in/*")
        storage("blob", "delete-batch", "-s", "box", "--pattern", "in/*")
        storage("blob", "service-properties", "delete-policy", "update", "--enable", "true", "--days-retained", "3")
        storage("blob", "delete", "-c", "box", "-n", "copy")
        storage("blob", "undelete", "-c", "box", "-n", "copy")
        assert storage("blob", "exists", "-c", "box", "-n", "copy")["exists"]


def check_az_files(folder: pathlib.Path) -> None:
    # A path without a dot in its last name is a directory to az.
    source = plant(folder, ".bin")
    with az_storage(folder, "file") as (storage, port):
        assert storage("share", "create", "--name", "box", "--quota", "5", "--metadata", "a=b")["created"]
        assert storage("share", "exists", "--name", "box")["exists"]
        assert storage("share", "show", "--name", "box")["properties"]["quota"] == 5
        storage("share", "update", "--name", "box", "--quota", "10")
        storage("share", "metadata", "update", "--name", "box", "--metadata", "c=d")
        assert storage("share", "metadata", "show", "--name", "box") == {"c": "d"}
        storage("share", "policy", "create", "--share-name", "box", "--name", "readers", "--permissions", "r",
                "--expiry", "2031-01-01T00:00Z")
        assert storage("share", "policy", "list", "--share-name", "box").keys() == {"readers"}
        assert storage("directory", "create", "-s", "box", "-n", "folder")["created"]
        storage("directory", "metadata", "update", "-s", "box", "-n", "folder", "--metadata", "a=b")
        assert storage("directory", "show", "-s", "box", "-n", "folder")["metadata"] == {"a": "b"}
        storage("file", "upload", "-s", "box", "-p", "folder/large.bin", "--source", source / "large.bin")
        storage("file", "upload-batch", "-d", "box", "-s", source)
        names = {entry["name"] for entry in storage("file", "list", "-s", "box")}
        assert names == {"folder", "in", "small.bin", "empty.bin", "with space ü.bin", "large.bin"}, names
        snapshot = storage("share", "snapshot", "--name", "box")["snapshot"]
        assert snapshot
        # With the name of a share as source, az asks for a copy from the cloud instead.
        storage("file", "copy", "start", "--destination-share", "box", "--destination-path", "copy.bin",
                "--source-uri", f"http://127.0.0.1:{port}/{ACCOUNT}/box/folder/large.bin")
        assert storage("file", "show", "-s", "box", "-p", "copy.bin")["properties"]["copy"]["status"] == "success"
        storage("file", "update", "-s", "box", "-p", "copy.bin", "--content-type", "text/plain")
        storage("file", "metadata", "update", "-s", "box", "-p", "copy.bin", "--metadata", "a=b")
        storage("file", "resize", "-s", "box", "-p", "copy.bin", "--size", "1000")
        assert storage("file", "show", "-s", "box", "-p", "copy.bin")["properties"]["contentLength"] == 1000
        storage("file", "download", "-s", "box", "-p", "folder/large.bin", "--dest", folder / "down")
        assert (folder / "down").read_bytes() == (source / "large.bin").read_bytes()
        storage("file", "download-batch", "-s", "box", "-d", make(folder / "all"), "--pattern", "in/*")
        assert storage("share", "list-handle", "--name", "box", "--recursive")["items"] == []
        storage("share", "close-handle", "--name", "box", "--close-all", "--recursive")
        assert storage("file", "exists", "-s", "box", "-p", "copy.bin")["exists"]
        storage("file", "delete", "-s", "box", "-p", "copy.bin")
        storage("file", "delete-batch", "-s", "box", "--pattern", "in/*")
        storage("cors", "add", "--services", "f", "--methods", "GET", "--origins", "http://a.example")
        assert storage("cors", "list", "--services", "f")[0]["AllowedOrigins"] == "http://a.example"
        assert len(storage("share", "list", "--include-snapshots")) == 2
        assert storage("share", "delete", "--name", "box", "--delete-snapshots", "include")["deleted"]


def check_az_tables(folder: pathlib.Path) -> None:
    with az_storage(folder, "table") as (storage, _):
        assert storage("table", "create", "--name", "People")["created"]
        assert storage("table", "exists", "--name", "People")["exists"]
        assert [table["name"] for table in storage("table", "list")] == ["People"]
        keys = ["PartitionKey=p", "RowKey=1"]
        typed = ["Age=42", "Age@odata.type=Edm.Int32", "Visits=5000000000", "Visits@odata.type=Edm.Int64"]
        storage("entity", "insert", "--table-name", "People", "--entity", *keys, "Name=O'Neill", *typed)
        found = storage("entity", "show", "--table-name", "People", "--partition-key", "p", "--row-key", "1")
        assert found["Name"] == "O'Neill" and found["Age"] == 42, found
        storage("entity", "merge", "--table-name", "People", "--entity", *keys, "City=Bern")
        storage("entity", "insert", "--table-name", "People", "--entity", *keys, "City=Basel", "--if-exists", "merge")
        storage("entity", "insert", "--table-name", "People", "--entity", "PartitionKey=p", "RowKey=2", "Age=7",
                "Age@odata.type=Edm.Int32")
        adults = storage("entity", "query", "--table-name", "People", "--filter", "Age ge 18")["items"]
        assert [(entity["RowKey"], entity["City"]) for entity in adults] == [("1", "Basel")], adults
        paged = storage("entity", "query", "--table-name", "People", "--num-results", "1")
        assert len(paged["items"]) == 1 and paged["nextMarker"]["nextrowkey"], paged
        rest = storage("entity", "query", "--table-name", "People", "--num-results", "1", "--marker",
                       f"nextpartitionkey={paged['nextMarker']['nextpartitionkey']}",
                       f"nextrowkey={paged['nextMarker']['nextrowkey']}")
        assert [entity["RowKey"] for entity in rest["items"]] == ["2"], rest
        storage("entity", "replace", "--table-name", "People", "--entity", *keys, "City=Chur")
        selected = storage("entity", "show", "--table-name", "People", "--partition-key", "p", "--row-key", "1",
                           "--select", "City", "Name")
        assert selected["City"] == "Chur" and selected.get("Name") is None, selected
        storage("table", "policy", "create", "--table-name", "People", "--name", "readers", "--permissions", "r",
                "--expiry", "2031-01-01T00:00Z")
        assert storage("table", "policy", "list", "--table-name", "People").keys() == {"readers"}
        sas = storage("table", "generate-sas", "--name", "People", "--permissions", "r", "--expiry", "2031-01-01T00:00Z")
        assert "sig=" in sas
        storage("entity", "delete", "--table-name", "People", "--partition-key", "p", "--row-key", "2")
        storage("cors", "add", "--services", "t", "--methods", "GET", "--origins", "http://a.example")
        assert storage("cors", "list", "--services", "t")[0]["AllowedOrigins"] == "http://a.example"
        storage("cors", "clear", "--services", "t")
        assert storage("table", "delete", "--name", "People")["deleted"]


def check_az_queues(folder: pathlib.Path) -> None:
    with az_storage(folder, "queue") as (storage, _):
        assert storage("queue", "create", "--name", "jobs", "--metadata", "a=b")["created"]
        assert storage("queue", "exists", "--name", "jobs")["exists"]
        assert [queue["name"] for queue in storage("queue", "list")] == ["jobs"]
        storage("queue", "metadata", "update", "--name", "jobs", "--metadata", "c=d")
        assert storage("queue", "metadata", "show", "--name", "jobs") == {"c": "d"}
        put = storage("message", "put", "-q", "jobs", "--content", "first <&> ü", "--time-to-live", "3600")
        storage("message", "put", "-q", "jobs", "--content", "second")
        peeked = storage("message", "peek", "-q", "jobs", "--num-messages", "5")
        assert [message["content"] for message in peeked] == ["first <&> ü", "second"], peeked
        got = storage("message", "get", "-q", "jobs", "--visibility-timeout", "120")[0]
        assert (got["id"], got["dequeueCount"]) == (put["id"], 1), got
        updated = storage("message", "update", "-q", "jobs", "--id", got["id"], "--pop-receipt", got["popReceipt"],
                          "--content", "changed", "--visibility-timeout", "120")
        storage("message", "delete", "-q", "jobs", "--id", got["id"], "--pop-receipt", updated["popReceipt"])
        storage("queue", "policy", "create", "--queue-name", "jobs", "--name", "readers", "--permissions", "r",
                "--expiry", "2031-01-01T00:00Z")
        assert storage("queue", "policy", "list", "--queue-name", "jobs").keys() == {"readers"}
        sas = storage("queue", "generate-sas", "--name", "jobs", "--permissions", "r", "--expiry", "2031-01-01T00:00Z")
        assert "sig=" in sas
        storage("message", "clear", "-q", "jobs")
        assert storage("message", "get", "-q", "jobs") == []
        storage("cors", "add", "--services", "q", "--methods", "GET", "--origins", "http://a.example")
        assert storage("cors", "list", "--services", "q")[0]["AllowedOrigins"] == "http://a.example"
        storage("cors", "clear", "--services", "q")
        assert storage("queue", "delete", "--name", "jobs")["deleted"]


def make(folder: pathlib.Path) -> pathlib.Path:
    folder.mkdir()
    return folder


@contextlib.contextmanager
def azcopy_service(folder: pathlib.Path, service: str):
    """`azcopy` with a server of its own: a function of its words, the address of the account, and a SAS."""
    import azure.storage.blob as storage

    host = f"{ACCOUNT}.{service}.localhost"
    certificate, key = folder / "cert.pem", folder / "key.pem"
    run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
        "-days", "2", "-keyout", key, "-out", certificate, "-subj", "/CN=holdfast",
        "-addext", f"subjectAltName=DNS:{host}")
    hosts = folder / "hosts"
    hosts.write_text(f"127.0.0.1 localhost {host}\n")
    azcopy = next((CLIENTS / "node_modules").glob("@azure-tools/azcopy-linux/dist/bin/azcopy*"))
    azcopy.chmod(0o755)
    with server(folder, f"--tls-cert={certificate}", f"--tls-key={key}", service=service) as port:
        expiry = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(hours=1)
        permissions = storage.AccountSasPermissions.from_string("rwdlactfx")
        sas = storage.generate_account_sas(ACCOUNT, KEY, storage.ResourceTypes(True, True, True), permissions, expiry,
                                           services=storage.Services(blob=True, fileshare=True))
        script = 'mount --bind "$1" /etc/hosts; shift; exec "$@"'

        def copy(*words):
            return run("unshare", "--mount", "sh", "-c", script, "sh", hosts, azcopy, *words,
                       SSL_CERT_FILE=str(certificate), AZCOPY_LOG_LOCATION=str(folder / "log"),
                       AZCOPY_JOB_PLAN_LOCATION=str(folder / "plan"))

        yield copy, f"https://{host}:{port}", sas


def check_azcopy(folder: pathlib.Path) -> None:
    source = plant(folder)
    with azcopy_service(folder, "blob") as (copy, base, sas):
        copy("make", f"{base}/one?{sas}")
        copy("make", f"{base}/two?{sas}")
        copy("copy", f"{source}/*", f"{base}/one?{sas}", "--recursive", "--block-size-mb", "8")
        listed = copy("list", f"{base}/one?{sas}")
        assert all(name in listed for name in tree(source)), listed
        # From blob to blob, without this machine's disk.
        copy("copy", f"{base}/one?{sas}", f"{base}/two?{sas}", "--recursive", "--as-subdir=false")
        copy("copy", f"{base}/two/*?{sas}", make(folder / "down"), "--recursive")
        assert tree(folder / "down") == tree(source)
        copy("sync", source, f"{base}/two?{sas}", "--delete-destination=true")
        copy("copy", source / "large", f"{base}/two/page?{sas}", "--blob-type=PageBlob")
        copy("copy", source / "small", f"{base}/two/log?{sas}", "--blob-type=AppendBlob")
        copy("set-properties", f"{base}/two/small?{sas}", "--block-blob-tier=cool")
        copy("remove", f"{base}/two?{sas}", "--recursive")


def check_azcopy_files(folder: pathlib.Path) -> None:
    source = plant(folder)
    with azcopy_service(folder, "file") as (copy, base, sas):
        copy("make", f"{base}/one?{sas}", "--quota-gb", "5")
        copy("make", f"{base}/two?{sas}")
        copy("copy", f"{source}/*", f"{base}/one?{sas}", "--recursive")
        listed = copy("list", f"{base}/one?{sas}")
        assert all(name in listed for name in tree(source)), listed
        # From share to share, without this machine's disk.
        copy("copy", f"{base}/one/*?{sas}", f"{base}/two?{sas}", "--recursive")
        copy("copy", f"{base}/two/*?{sas}", make(folder / "down"), "--recursive")
        assert tree(folder / "down") == tree(source)
        (source / "small").write_bytes(b"changed")
        copy("sync", source, f"{base}/two?{sas}", "--delete-destination=true")
        copy("copy", f"{base}/two/small?{sas}", folder / "small")
        assert (folder / "small").read_bytes() == b"changed"
        copy("remove", f"{base}/two/in?{sas}", "--recursive")
        copy("remove", f"{base}/two?{sas}", "--recursive")


def check_rclone(folder: pathlib.Path) -> None:
    source = plant(folder)
    with server(folder) as port:
        config = folder / "rclone.conf"
        endpoint = f"http://127.0.0.1:{port}/{ACCOUNT}"
        config.write_text(f"[hf]\ntype = azureblob\naccount = {ACCOUNT}\nkey = {KEY}\nendpoint = {endpoint}\n")

        def rclone(*words):
            return run(CLIENTS / "python/bin/rclone", "--config", config, *words)

        rclone("mkdir", "hf:box")
        rclone("sync", source, "hf:box/deep", "--azureblob-upload-cutoff", "16M")
        rclone("check", source, "hf:box/deep", "--download")
        rclone("copy", "hf:box/deep", "hf:box/copied")
        rclone("moveto", "hf:box/copied/small", "hf:box/moved")
        rclone("sync", "hf:box/deep", folder / "down")
        assert tree(folder / "down") == tree(source)
        assert json.loads(rclone("size", "--json", "hf:box/deep"))["count"] == len(tree(source))
        rclone("purge", "hf:box")


def check_rclone_files(folder: pathlib.Path) -> None:
    source = plant(folder)
    with az_storage(folder, "file") as (storage, port):
        storage("share", "create", "--name", "box")
        config = folder / "rclone.conf"
        given = connection(port, "file")
        config.write_text(f"[hf]\ntype = azurefiles\nshare_name = box\nconnection_string = {given}\n")

        def rclone(*words):
            return run(CLIENTS / "python/bin/rclone", "--config", config, *words)

        rclone("mkdir", "hf:deep")
        rclone("sync", source, "hf:deep")
        rclone("check", source, "hf:deep", "--download")
        rclone("moveto", "hf:deep/small", "hf:moved")
        rclone("moveto", "hf:moved", "hf:deep/small")
        rclone("sync", "hf:deep", folder / "down")
        assert tree(folder / "down") == tree(source)
        assert json.loads(rclone("size", "--json", "hf:deep"))["count"] == len(tree(source))
        rclone("purge", "hf:deep")


def check_adlfs(folder: pathlib.Path) -> None:
    import adlfs

    source = plant(folder)
    with server(folder) as port:
        files = adlfs.AzureBlobFileSystem(connection_string=connection(port))
        files.mkdir("box")
        files.put(f"{source}/", "box/deep", recursive=True)
        assert {name.removeprefix("box/deep/") for name in files.find("box/deep")} == set(tree(source))
        assert files.cat("box/deep/large") == (source / "large").read_bytes()
        with files.open("box/deep/written", "wb") as file:
            file.write(b"part")
        with files.open("box/deep/large", "rb") as file:
            file.seek(1000)
            assert file.read(10) == (source / "large").read_bytes()[1000:1010]
        files.mv("box/deep/written", "box/deep/moved")
        assert files.cat("box/deep/moved") == b"part"
        files.rm("box/deep", recursive=True)


def check_pyarrow(folder: pathlib.Path) -> None:
    import pyarrow
    from pyarrow import dataset, fs, parquet

    with server(folder) as port:
        authority = f"127.0.0.1:{port}"
        files = fs.AzureFileSystem(
            ACCOUNT, account_key=KEY, blob_storage_authority=authority, dfs_storage_authority=authority,
            blob_storage_scheme="http", dfs_storage_scheme="http",
        )
        files.create_dir("box")
        table = pyarrow.table({"part": [n % 4 for n in range(10_000)], "value": list(range(10_000))})
        parquet.write_table(table, "box/table.parquet", filesystem=files)
        assert parquet.read_table("box/table.parquet", filesystem=files).equals(table)
        with files.open_output_stream("box/deep/stream", metadata={"Content-Type": "text/plain"}) as stream:
            stream.write(b"x" * 100_000)
        assert files.get_file_info("box/deep/stream").size == 100_000
        assert files.open_input_file("box/deep/stream").read_at(5, 99_995) == b"xxxxx"
        names = {info.path for info in files.get_file_info(fs.FileSelector("box", recursive=True)) if info.is_file}
        assert names == {"box/table.parquet", "box/deep/stream"}, names
        files.delete_file("box/deep/stream")


def check_deltalake(folder: pathlib.Path) -> None:
    import deltalake
    import pyarrow

    with server(folder) as port:
        import azure.storage.blob as storage

        storage.BlobServiceClient.from_connection_string(connection(port)).create_container("lake")
        options = {
            "azure_storage_account_name": ACCOUNT,
            "azure_storage_account_key": KEY,
            "azure_storage_endpoint": f"http://127.0.0.1:{port}/{ACCOUNT}",
            "azure_allow_http": "true",
        }
        where = "az://lake/table"
        for part in range(3):
            rows = pyarrow.table({"part": [part] * 1000, "value": list(range(1000))})
            deltalake.write_deltalake(where, rows, mode="append", partition_by=["part"], storage_options=options)
        table = deltalake.DeltaTable(where, storage_options=options)
        assert table.version() == 2
        assert table.to_pyarrow_table().num_rows == 3000
        table.delete("part = 1")
        table.optimize.compact()
        table.create_checkpoint()
        again = deltalake.DeltaTable(where, storage_options=options)
        assert again.to_pyarrow_table().num_rows == 2000


def check_kombu(folder: pathlib.Path) -> None:
    """The transport of Celery, in a separate environment: az has another version of the same library."""
    script = pathlib.Path(__file__).parent / "kombu_queues.py"
    with server(folder, service="queue") as port:
        broker = f"azurestoragequeues://{KEY}@http://127.0.0.1:{port}/{ACCOUNT}"
        run(CLIENTS.parent / "clients-kombu/python/bin/python", script, broker)


def check_rust(folder: pathlib.Path) -> None:
    import azure.storage.blob as storage

    project = pathlib.Path(__file__).parent / "rust"
    target = CLIENTS / "rust"
    subprocess.run(["cargo", "build", "--quiet", "--locked", "--manifest-path", project / "Cargo.toml",
                    "--target-dir", target], check=True)
    expiry = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(hours=1)
    permissions = storage.AccountSasPermissions.from_string("rwdlactfx")
    sas = storage.generate_account_sas(ACCOUNT, KEY, storage.ResourceTypes(True, True, True), permissions, expiry)
    with server(folder) as port:
        endpoint = f"http://127.0.0.1:{port}/{ACCOUNT}"
        run(target / "debug/holdfast-rust-clients", ENDPOINT=endpoint, ACCOUNT=ACCOUNT, KEY=KEY, SAS=sas)


CHECKS = {name.removeprefix("check_"): check for name, check in list(globals().items()) if name.startswith("check_")}


def main() -> None:
    asked = sys.argv[1:] or list(CHECKS)
    failed = []
    for name in asked:
        folder = pathlib.Path(tempfile.mkdtemp(prefix="holdfast-clients-"))
        try:
            CHECKS[name](folder)
            print(f"{name}: passed", flush=True)
        except Exception as error:  # noqa: BLE001: the others are still to be checked
            failed.append(name)
            print(f"{name}: FAILED: {type(error).__name__}: {error}", flush=True)
        finally:
            shutil.rmtree(folder)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
