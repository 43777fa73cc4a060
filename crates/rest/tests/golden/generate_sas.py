"""Makes shared access signatures with the official Python SDKs, and those of versions that no SDK
makes any more with a small implementation of its own (`old_signatures`).

    pip install azure-storage-blob azure-storage-queue azure-storage-file-share \
        azure-storage-file-datalake azure-data-tables
    python generate_sas.py > sas_python.json
"""

import base64
import hashlib
import hmac
import json
import sys
from datetime import datetime, timezone
from urllib.parse import quote

from azure.core.credentials import AzureNamedKeyCredential
from azure.data import tables
from azure.storage import blob, filedatalake, fileshare, queue

ACCOUNT = "goldenaccount"
RAW_KEY = bytes(range(64))
KEY = base64.b64encode(RAW_KEY).decode()
START = datetime(2024, 6, 1, 11, 30, tzinfo=timezone.utc)
EXPIRY = datetime(2024, 6, 1, 12, 30, tzinfo=timezone.utc)
ST, SE = "2024-06-01T11:30:00Z", "2024-06-01T12:30:00Z"
ODD = "dir one/ü+plus;semi'quote'/100% & #=?.txt"
SNAPSHOT = "2024-05-31T12:00:00.1234567Z"
OID, TID = "aaaaaaaa-0000-4000-8000-000000000001", "bbbbbbbb-0000-4000-8000-000000000002"
USER = "cccccccc-0000-4000-8000-000000000003"
AGENT = "dddddddd-0000-4000-8000-000000000004"
CASES = []


def signed(pair):
    """All of a query is signed in these cases but the operation itself."""
    return pair and pair.split("=")[0] not in ("restype", "comp")


def add(name, service, path, token, headers=None, query="", kind="service", user=None):
    url = f"https://{ACCOUNT}.{service}.core.windows.net/{quote(path, safe='/()')}?{token}"
    CASES.append(
        {
            "name": f"python {name}",
            "service": service,
            "account": ACCOUNT,
            "path_style": False,
            "method": "GET",
            "url": url + (f"&{query}" if query else ""),
            "headers": headers or {},
            "kind": kind,
            "delegated_user": user,
            "signed": [pair.split("=")[0] for pair in f"{token}&{query}".split("&") if signed(pair)],
        }
    )


def sign(key, text):
    return base64.b64encode(hmac.new(key, text.encode(), hashlib.sha256).digest()).decode()


def delegation_key(service, delegated_tid=None, version="2024-11-04"):
    """What the server issues: a key derived from the account key and the fields."""
    fields = [OID, TID, "2024-06-01T11:00:00Z", "2024-06-02T11:00:00Z", service, version, delegated_tid or ""]
    text = "user delegation key\n" + "".join(f"{len(field)}:{field}\n" for field in fields)
    key = blob.UserDelegationKey()
    key.signed_oid, key.signed_tid, key.signed_start, key.signed_expiry = fields[:4]
    key.signed_service, key.signed_version = fields[4:6]
    key.signed_delegated_user_tid = delegated_tid
    key.value = sign(RAW_KEY, text)
    return key


ALL = dict(
    permission="rw",
    start=START,
    expiry=EXPIRY,
    ip="127.0.0.0-127.0.0.9",
    protocol="https,http",
    cache_control="no-store",
    content_disposition='attachment; filename="ü.txt"',
    content_encoding="gzip",
    content_language="de",
    content_type="text/plain; charset=utf-8",
)
PLAIN = dict(permission="r", expiry=EXPIRY)
TIMES = dict(permission="r", start=START, expiry=EXPIRY, ip="127.0.0.1", protocol="https")


def service_signatures():
    key = dict(account_key=KEY)
    blob_sas, container_sas = blob.generate_blob_sas, blob.generate_container_sas
    add("blob", "blob", f"c/{ODD}", blob_sas(ACCOUNT, "c", ODD, **key, **PLAIN))
    add("blob, every field", "blob", f"c/{ODD}", blob_sas(ACCOUNT, "c", ODD, **key, **ALL, encryption_scope="scope1"))
    add("root blob", "blob", "$root/b", blob_sas(ACCOUNT, "$root", "b", **key, **PLAIN))
    token = blob_sas(ACCOUNT, "c", "b", snapshot=SNAPSHOT, **key, **PLAIN)
    add("snapshot", "blob", "c/b", token, query=f"snapshot={SNAPSHOT}")
    token = blob_sas(ACCOUNT, "c", "b", version_id=SNAPSHOT, **key, **PLAIN)
    add("version", "blob", "c/b", token, query=f"versionid={SNAPSHOT}")
    add("container", "blob", "c", container_sas(ACCOUNT, "c", **key, **ALL), query="restype=container&comp=list")
    add("container, for a blob", "blob", f"c/{ODD}", container_sas(ACCOUNT, "c", **key, **PLAIN))
    create = blob_sas(ACCOUNT, "c", "b", permission="c", expiry=EXPIRY, **key)
    add("blob create only", "blob", "c/b", create)
    tags = container_sas(ACCOUNT, "c", permission="rt", expiry=EXPIRY, **key)
    add("container with tags", "blob", "c/b", tags)
    add("policy", "blob", "c/b", blob_sas(ACCOUNT, "c", "b", policy_id="policy 1", **key), kind="policy")
    both = blob_sas(ACCOUNT, "c", "b", policy_id="p", permission="r", start=START, expiry=EXPIRY, **key)
    add("blob policy and times", "blob", "c/b", both, kind="policy and times")
    add("directory", "blob", "c/d/e/f", filedatalake.generate_directory_sas(ACCOUNT, "c", "d/e", KEY, **PLAIN))
    add("directory itself", "blob", "c/d/e", filedatalake.generate_directory_sas(ACCOUNT, "c", "d/e", KEY, **PLAIN))
    add("dfs file", "blob", "c/d/f", filedatalake.generate_file_sas(ACCOUNT, "c", "d", "f", KEY, **PLAIN))
    add("queue", "queue", "q/messages", queue.generate_queue_sas(ACCOUNT, "q", **key, **TIMES))
    add("queue policy", "queue", "q/messages", queue.generate_queue_sas(ACCOUNT, "q", policy_id="p", **key), kind="policy")
    add("share", "file", "s", fileshare.generate_share_sas(ACCOUNT, "s", **key, **PLAIN), query="restype=share")
    add("file", "file", "s/d/f ü", fileshare.generate_file_sas(ACCOUNT, "s", ["d", "f ü"], **key, **ALL))
    credential = AzureNamedKeyCredential(ACCOUNT, KEY)
    add("table", "table", "MyTable()", tables.generate_table_sas(credential, "MyTable", **PLAIN))
    ranges = dict(start_pk="a +", start_rk="1", end_pk="ü", end_rk="9")
    times = dict(permission="raud", start=START, expiry=EXPIRY, ip_address_or_range="127.0.0.1", protocol="https")
    add("table, every field", "table", "MyTable()", tables.generate_table_sas(credential, "MyTable", **times, **ranges))
    add("table policy", "table", "MyTable()", tables.generate_table_sas(credential, "MyTable", policy_id="p"), kind="policy")


def account_signatures():
    common = dict(resource_types="sco", permission="rwdlacup", expiry=EXPIRY)
    makers = {
        "blob": lambda **more: blob.generate_account_sas(ACCOUNT, KEY, **common, **more),
        "queue": lambda **more: queue.generate_account_sas(ACCOUNT, KEY, **common, **more),
        "file": lambda **more: fileshare.generate_account_sas(ACCOUNT, KEY, **common, **more),
        "table": lambda **more: tables.generate_account_sas(
            AzureNamedKeyCredential(ACCOUNT, KEY),
            **common,
            start=more.get("start"),
            ip_address_or_range=more.get("ip"),
            protocol=more.get("protocol"),
        ),
    }
    for service, make in makers.items():
        add(f"account, {service}", service, "name", make(), kind="account")
        full = make(start=START, ip="127.0.0.1", protocol="https")
        add(f"account, {service}, every field", service, "name", full, kind="account")
    scoped = makers["blob"](encryption_scope="scope1", services=blob.Services(blob=True, queue=True))
    add("account with scope", "blob", "name", scoped, kind="account")


def user_delegation_signatures():
    key = dict(user_delegation_key=delegation_key("b"))
    blob_sas = blob.generate_blob_sas
    for name, path, token in [
        ("blob", "c/b", blob_sas(ACCOUNT, "c", "b", **key, **PLAIN)),
        ("blob, every field", f"c/{ODD}", blob_sas(ACCOUNT, "c", ODD, **key, **ALL, encryption_scope="scope1")),
        ("snapshot", "c/b", blob_sas(ACCOUNT, "c", "b", snapshot=SNAPSHOT, **key, **PLAIN)),
        ("container", "c/b", blob.generate_container_sas(ACCOUNT, "c", **key, **PLAIN)),
        (
            "directory with agent",
            "c/d/e/f",
            filedatalake.generate_directory_sas(
                ACCOUNT,
                "c",
                "d/e",
                delegation_key("b"),
                preauthorized_agent_object_id=AGENT,
                correlation_id=USER,
                **PLAIN,
            ),
        ),
    ]:
        query = f"snapshot={SNAPSHOT}" if name == "snapshot" else ""
        add(f"user delegation {name}", "blob", path, token, query=query, kind="delegation")
    bound = blob_sas(
        ACCOUNT,
        "c",
        "b",
        **key,
        **PLAIN,
        request_headers={"x-ms-range": "bytes=0-1", "x-custom": "a b"},
        request_query_params={"timeout": "30", "other": "ü +"},
    )
    headers, query = {"x-ms-range": "bytes=0-1", "x-custom": "a b"}, "timeout=30&other=%C3%BC%20%2B"
    add("user delegation bound", "blob", "c/b", bound, headers, query, "delegation")
    delegated = dict(user_delegation_key=delegation_key("b", delegated_tid=TID), user_delegation_oid=USER)
    token = blob_sas(ACCOUNT, "c", "b", **delegated, **PLAIN)
    add("user delegation to a user", "blob", "c/b", token, kind="delegation", user=USER)
    token = queue.generate_queue_sas(ACCOUNT, "q", user_delegation_key=delegation_key("q"), **TIMES)
    add("user delegation queue", "queue", "q/messages", token, kind="delegation")
    share = dict(user_delegation_key=delegation_key("f"))
    token = fileshare.generate_share_sas(ACCOUNT, "s", **share, **PLAIN)
    add("user delegation share", "file", "s/f", token, kind="delegation")
    token = fileshare.generate_file_sas(ACCOUNT, "s", ["d", "f"], **share, **ALL)
    add("user delegation file", "file", "s/d/f", token, kind="delegation")


def old_signatures():
    """One field list for each version, written out, so that it shares nothing with the server."""
    rs = "rscc rscd rsce rscl rsct"
    ranges = "spk srk epk erk"
    forms = {
        ("blob", "2012-02-12"): "sp st se RESOURCE si sv",
        ("blob", "2013-08-15"): f"sp st se RESOURCE si sv {rs}",
        ("blob", "2014-02-14"): f"sp st se RESOURCE si sv {rs}",
        ("blob", "2015-02-21"): f"sp st se RESOURCE si sv {rs}",
        ("blob", "2015-04-05"): f"sp st se RESOURCE si sip spr sv {rs}",
        ("blob", "2018-03-28"): f"sp st se RESOURCE si sip spr sv {rs}",
        ("blob", "2018-11-09"): f"sp st se RESOURCE si sip spr sv sr EMPTY {rs}",
        ("blob", "2020-10-02"): f"sp st se RESOURCE si sip spr sv sr EMPTY {rs}",
        ("blob", "2020-12-06"): f"sp st se RESOURCE si sip spr sv sr EMPTY ses {rs}",
        ("file", "2015-02-21"): f"sp st se RESOURCE si sv {rs}",
        ("file", "2015-04-05"): f"sp st se RESOURCE si sip spr sv {rs}",
        ("queue", "2012-02-12"): "sp st se RESOURCE si sv",
        ("queue", "2015-02-21"): "sp st se RESOURCE si sv",
        ("queue", "2015-04-05"): "sp st se RESOURCE si sip spr sv",
        ("table", "2012-02-12"): f"sp st se RESOURCE si sv {ranges}",
        ("table", "2014-02-14"): f"sp st se RESOURCE si sv {ranges}",
        ("table", "2015-02-21"): f"sp st se RESOURCE si sv {ranges}",
        ("table", "2015-04-05"): f"sp st se RESOURCE si sip spr sv {ranges}",
    }
    kinds = {"blob": ("b", "c/b"), "file": ("f", "s/f"), "queue": ("", "q"), "table": ("", "mytable")}
    paths = {"queue": "q/messages", "table": "MyTable()"}
    for (service, version), form in forms.items():
        kind, name = kinds[service]
        values = {"sv": version, "sr": kind, "sp": "r", "st": ST, "se": SE}
        names = form.split()
        if "sip" in names:
            values |= {"sip": "127.0.0.1", "spr": "https"}
        if "rscc" in names:
            values |= {"rscc": "no-store", "rscd": "inline", "rsce": "gzip", "rscl": "en", "rsct": "a/b"}
        if "ses" in names:
            values["ses"] = "scope1"
        if service == "table":
            values |= {"tn": "MyTable", "spk": "a", "srk": "b", "epk": "c", "erk": "d"}
        prefix = f"/{service}" if version >= "2015-02-21" else ""
        special = {"RESOURCE": f"{prefix}/{ACCOUNT}/{name}", "EMPTY": ""}
        text = "\n".join(special[n] if n in special else values.get(n, "") for n in names)
        values["sig"] = sign(RAW_KEY, text)
        token = "&".join(f"{n}={quote(v, safe='')}" for n, v in values.items() if v)
        add(f"old {service} {version}", service, paths.get(service, name), token)
    text = f"rt\n\n{SE}\n/blob/{ACCOUNT}/c\n\n\n\n2015-04-05\n\n\n\n\n"
    token = f"sv=2015-04-05&sr=c&sp=rt&se={quote(SE)}&sig={quote(sign(RAW_KEY, text), safe='')}"
    add("old container with tags", "blob", "c/b", token)
    for hours, expiry in {"one hour": SE, "longer": "2024-06-01T12:30:01Z"}.items():
        signature = sign(RAW_KEY, f"r\n{ST}\n{expiry}\n/{ACCOUNT}/c/b\n")
        token = f"sr=b&sp=r&st={quote(ST)}&se={quote(expiry)}&sig={quote(signature, safe='')}"
        add(f"old blob without version, {hours}", "blob", "c/b", token, kind="service" if expiry == SE else "too long")
    for version in ("2015-04-05", "2019-12-12", "2020-12-06"):
        values = {"sv": version, "ss": "bq", "srt": "co", "sp": "rl", "st": ST, "se": SE, "spr": "https"}
        fields = ["sp", "ss", "srt", "st", "se", "sip", "spr", "sv"]
        if version >= "2020-12-06":
            fields.append("ses")
        text = "".join(f"{line}\n" for line in [ACCOUNT] + [values.get(n, "") for n in fields])
        values["sig"] = sign(RAW_KEY, text)
        token = "&".join(f"{n}={quote(v, safe='')}" for n, v in values.items())
        add(f"old account {version}", "blob", "c/b", token, kind="account")


service_signatures()
account_signatures()
user_delegation_signatures()
old_signatures()
json.dump(
    {
        "key": KEY,
        "date": "Sat, 01 Jun 2024 12:00:00 GMT",
        "delegation_key": {"oid": OID, "tid": TID, "value": delegation_key("b").value},
        "cases": CASES,
    },
    sys.stdout,
    indent=1,
)
print()
