"""Fixtures: one account for the run, a fresh container for each test that asks for one."""

import datetime
import os

import pytest
from azure.core.exceptions import HttpResponseError
from azure.data.tables import TableServiceClient
from azure.storage.blob import BlobLeaseClient, BlobServiceClient
from azure.storage.fileshare import ShareLeaseClient, ShareServiceClient
from azure.storage.queue import QueueServiceClient
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from support import Account, Raw, connection_string, unique
from table_support import TableRaw, table_account, table_connection_string, unique_table


# Files that set the properties of a service, or depend on them: each service of the account has only one set.
PROPERTIES = {
    "blob": ["test_protocol.py", "test_support_matrix.py", "test_website.py"],
    "file": ["test_share_service.py", "test_support_matrix_files.py"],
    "queue": ["test_queue_access.py", "test_queue_protocol.py", "test_queues.py"],
    "table": ["test_table_access.py", "test_table_protocol.py", "test_tables.py"],
}


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """When tests run in parallel, those of one file run in sequence, since they may share what a fixture of
    their module has made, and so do those of the files above."""
    from xdist.scheduler import LoadScopeScheduling

    class LoadFiles(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            file = nodeid.split("::")[0].split("/")[-1]
            return next((service for service, files in PROPERTIES.items() if file in files), file)

    return LoadFiles(config, log)


@pytest.fixture(scope="session")
def account():
    return Account.under_test()


@pytest.fixture(scope="session")
def raw(account):
    return Raw(account)


@pytest.fixture(scope="session")
def service():
    # Retries would hide a failure that a test looks for, and a fault that it should find.
    with BlobServiceClient.from_connection_string(connection_string(), retry_total=0) as client:
        yield client


@pytest.fixture
def container(service):
    client = service.create_container(unique("test"))
    yield client
    try:
        client.delete_container()
    except HttpResponseError as error:
        # The test deleted it, or left a lease on it.
        if error.status_code == 412:
            BlobLeaseClient(client).break_lease(lease_break_period=0)
            client.delete_container()
        elif error.status_code != 404:
            raise


@pytest.fixture
def blob(container):
    client = container.get_blob_client("a blob")
    client.upload_blob(b"the first content")
    return client


@pytest.fixture(scope="session")
def queue_account():
    return Account.under_test("Queue")


@pytest.fixture(scope="session")
def queue_raw(queue_account):
    return Raw(queue_account)


@pytest.fixture(scope="session")
def queue_service(queue_account):
    with QueueServiceClient.from_connection_string(connection_string(), retry_total=0) as client:
        yield client


@pytest.fixture
def queue(queue_service):
    client = queue_service.create_queue(unique("test"))
    yield client
    try:
        client.delete_queue()
    except HttpResponseError as error:
        if error.status_code != 404:
            raise


@pytest.fixture(scope="session")
def file_account():
    return Account.under_test("File")


@pytest.fixture(scope="session")
def file_raw(file_account):
    return Raw(file_account)


@pytest.fixture(scope="session")
def shares(file_account):
    with ShareServiceClient.from_connection_string(connection_string(), retry_total=0) as client:
        yield client


@pytest.fixture
def share(shares):
    client = shares.create_share(unique("test"))
    yield client
    try:
        client.delete_share(delete_snapshots="include-leased")
    except HttpResponseError as error:
        # The test deleted it, or left a lease on it.
        if error.status_code == 412:
            ShareLeaseClient(client).break_lease(lease_break_period=0)
            client.delete_share(delete_snapshots="include-leased")
        elif error.status_code != 404:
            raise


@pytest.fixture(scope="session")
def tables():
    with TableServiceClient.from_connection_string(table_connection_string(), retry_total=0) as client:
        yield client


@pytest.fixture(scope="session")
def table_raw():
    return TableRaw(table_account())


@pytest.fixture
def table(tables):
    client = tables.create_table(unique_table())
    yield client
    # For the SDK, deleting a missing table is not an error.
    client.delete_table()


@pytest.fixture(scope="session")
def unsigned_tokens():
    """Skips unless the server accepts unsigned bearer tokens (its development mode)."""
    if os.environ.get("CONFORMANCE_UNSIGNED_TOKENS") != "1":
        pytest.skip("CONFORMANCE_UNSIGNED_TOKENS is not 1")


@pytest.fixture(scope="session")
def certificate(tmp_path_factory):
    """The files of a certificate for the loopback address: some things are sent over HTTPS only."""
    folder = tmp_path_factory.mktemp("tls")
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.timezone.utc)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    (folder / "certificate.pem").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    (folder / "key.pem").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    return folder
