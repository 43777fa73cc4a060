"""Optimistic: two clerks read the same balance and both write it back under the ETag they read.

The second write would undo the first one. It is refused with 412, reads again, and loses nothing.
"""

from azure.core import MatchConditions
from azure.storage.blob import BlobServiceClient

from account import CONNECTION, attempt, unique

with BlobServiceClient.from_connection_string(CONNECTION) as service:
    container = service.create_container(unique("optimistic"))
    blob = container.get_blob_client("balance")
    blob.upload_blob(b"100")

    def read():
        downloaded = blob.download_blob()
        return int(downloaded.readall()), downloaded.properties.etag

    def write(balance, etag):
        blob.upload_blob(
            str(balance), overwrite=True, etag=etag, match_condition=MatchConditions.IfNotModified
        )

    first, first_etag = read()
    second, second_etag = read()
    print(f"both read {first} and {second}")
    attempt("the first adds 10", lambda: write(first + 10, first_etag))
    attempt("the second adds 5, with the ETag it read", lambda: write(second + 5, second_etag))

    second, second_etag = read()
    attempt("the second reads again and adds 5", lambda: write(second + 5, second_etag))
    print(f"the balance is {read()[0]}")

    new = container.get_blob_client("once")
    for clerk in ("the first", "the second"):
        attempt(
            f"{clerk} creates what must not be there yet",
            lambda: new.upload_blob(b"x", overwrite=False),
        )
    container.delete_container()
