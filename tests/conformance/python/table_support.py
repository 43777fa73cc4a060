"""What the tests of the Table service share: its address, raw signed requests, fresh tables."""

import json
import urllib.parse
import uuid
from dataclasses import dataclass

from support import Account, Answer, Raw, connection_parts, connection_string

DEVELOPMENT_ENDPOINT = "http://127.0.0.1:10002/devstoreaccount1"


def table_endpoint() -> str:
    return connection_parts(connection_string()).get("TableEndpoint", DEVELOPMENT_ENDPOINT)


def table_connection_string() -> str:
    given = connection_string()
    return given if "TableEndpoint=" in given else f"{given}TableEndpoint={DEVELOPMENT_ENDPOINT};"


def table_account() -> Account:
    account = Account.under_test()
    return Account(account.name, account.key, urllib.parse.urlsplit(table_endpoint()))


def unique_table(prefix: str = "t") -> str:
    return f"{prefix}{uuid.uuid4().hex[:12]}"


@dataclass
class TableAnswer(Answer):
    @property
    def code(self) -> str | None:
        """The error code, equal in header and body if both have it."""
        from_header = self.headers.get("x-ms-error-code")
        if self.body and self.status >= 400:
            from_body = self.json()["odata.error"]["code"]
            assert from_header in (None, from_body)
            return from_body
        return from_header

    def json(self):
        return json.loads(self.body)


@dataclass
class TableRaw(Raw):
    """As `Raw`, with the headers of OData and the signature of tables."""

    version: str | None = "2019-02-02"

    def send(self, method, path, query="", headers=None, body=None, **others) -> TableAnswer:
        odata = {
            "Accept": "application/json;odata=minimalmetadata",
            "DataServiceVersion": "3.0",
            "MaxDataServiceVersion": "3.0;NetFx",
        }
        if body is not None:
            odata["Content-Type"] = "application/json"
        answer = super().send(method, path, query, {**odata, **(headers or {})}, body, **others)
        return TableAnswer(answer.status, answer.headers, answer.body, answer.reason)

    def authorization(self, method, target, query, headers) -> str:
        lowered = {name.lower(): value for name, value in headers.items()}
        date = lowered.get("x-ms-date") or lowered.get("date", "")
        standard = [lowered.get(name, "") for name in ("content-md5", "content-type")]
        comp = dict(urllib.parse.parse_qsl(query)).get("comp")
        resource = f"/{self.account.name}{target}" + (f"?comp={comp}" if comp else "")
        text = "\n".join([method, *standard, date, resource])
        return f"SharedKey {self.account.name}:{self.signature(text)}"
