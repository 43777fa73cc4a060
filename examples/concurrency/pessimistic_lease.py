"""Pessimistic: only the holder of the lease of a blob can write it.

Others are refused: 409 for a second lease, 412 for a write without the lease or with another one.
Breaking takes the lease away from a holder who does not come back.
"""

from azure.storage.blob import BlobLeaseClient, BlobServiceClient

from account import CONNECTION, attempt, unique

with BlobServiceClient.from_connection_string(CONNECTION) as service:
    container = service.create_container(unique("pessimistic"))
    blob = container.get_blob_client("ledger")
    blob.upload_blob(b"begun")

    lease = attempt("the first takes the lease", lambda: blob.acquire_lease(lease_duration=15))
    attempt("the second takes it too", lambda: blob.acquire_lease(lease_duration=15))

    def write(text, **lease):
        return lambda: blob.upload_blob(text, overwrite=True, **lease)

    attempt("the second writes without it", write(b"second"))
    attempt("the second writes with another one", write(b"second", lease=BlobLeaseClient(blob)))
    attempt("the first writes with it", write(b"first", lease=lease))
    print(f"anybody reads: {blob.download_blob().readall().decode()}")

    attempt("the second breaks it", lambda: BlobLeaseClient(blob).break_lease(lease_break_period=0))
    attempt("the first writes with it", write(b"first again", lease=lease))
    lease = attempt("the second takes the lease", lambda: blob.acquire_lease(lease_duration=15))
    attempt("the second writes with it", write(b"second", lease=lease))
    attempt("the second releases it", lease.release)
    attempt("the first writes, as anybody can now", write(b"first"))
    container.delete_container()
