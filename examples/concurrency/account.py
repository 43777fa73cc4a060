"""Where the examples find the account: AZURE_STORAGE_CONNECTION_STRING, or the development account."""

import os
import uuid

DEVELOPMENT_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
DEVELOPMENT = (
    f"DefaultEndpointsProtocol=http;AccountName=devstoreaccount1;AccountKey={DEVELOPMENT_KEY};"
    "BlobEndpoint=http://127.0.0.1:10000/devstoreaccount1;"
    "QueueEndpoint=http://127.0.0.1:10001/devstoreaccount1;"
    "TableEndpoint=http://127.0.0.1:10002/devstoreaccount1;"
    "FileEndpoint=http://127.0.0.1:10003/devstoreaccount1;"
)
CONNECTION = os.environ.get("AZURE_STORAGE_CONNECTION_STRING", DEVELOPMENT)
SMB = os.environ.get("EXAMPLES_SMB_ENDPOINT", "smb://127.0.0.1:10445")


def credentials() -> tuple[str, str]:
    """Name and key of the account: over SMB they are the user and the password."""
    parts = dict(part.split("=", 1) for part in CONNECTION.split(";") if part)
    return parts["AccountName"], parts["AccountKey"]


def unique(name: str) -> str:
    return f"{name}{uuid.uuid4().hex[:12]}"


def attempt(what: str, call):
    """Runs an action, and prints the outcome: the status and the code of the error if it was refused."""
    from azure.core.exceptions import HttpResponseError

    try:
        result = call()
    except HttpResponseError as error:
        code = getattr(error, "error_code", None)
        print(f"{what}: {error.status_code} {getattr(code, 'value', code)}")
        return None
    print(f"{what}: done")
    return result
