"""A sample of the authorization matrix over HTTP. The whole of it is `crates/rest/tests/authorization_matrix.rs`,
in one process; this shows that requests really go through it. Both read the same facts.

HOLDFAST_MATRIX_SEED repeats a run, HOLDFAST_MATRIX_CELLS lengthens it.
"""

import csv
import datetime
import os
import pathlib
import random
import re
import urllib.parse

import pytest
from azure.storage.blob import generate_account_sas, generate_container_sas
from own_server import own_process
from support import Account, Raw

FACTS = pathlib.Path(__file__).parents[3] / "crates/rest/tests/authorization/operations.tsv"
ACCOUNT, KEY = "acct", "YSBrZXk="
LETTERS = "rwdxylacuptfimeo"
CELLS = int(os.environ.get("HOLDFAST_MATRIX_CELLS", "600"))
SEED = int(os.environ.get("HOLDFAST_MATRIX_SEED", "6"))
# What a caller is told who may not; everything else is about what was asked for.
REFUSALS = {
    "AuthenticationFailed",
    "AuthorizationFailure",
    "AuthorizationPermissionMismatch",
    "AuthorizationResourceTypeMismatch",
    "AuthorizationServiceMismatch",
    "NoAuthenticationInformation",
}


def facts() -> list[dict]:
    lines = [line for line in FACTS.read_text().splitlines() if not line.startswith("#")]
    rows = csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)
    return [row for row in rows if row["anonymous"] != "always"]


@pytest.fixture(scope="module")
def endpoints():
    with own_process(f"--account={ACCOUNT}:{KEY}") as process:
        yield process.addresses


def is_met(needed: str, letters: str) -> bool:
    if needed in ("-", "any"):
        return needed == "any"
    return any(all(letter in letters for letter in all_of.split("+")) for all_of in needed.split(","))


def opens(fact: dict, letters: str) -> bool:
    """Whether a signature of the newest version with these letters is enough."""
    if fact["operation"] in ("Put Block", "Put Block List") and "c" in letters:
        return True
    return is_met(fact["letters"], letters)


def is_allowed(endpoints, fact: dict, method: str, query: str = "", signed: bool = False) -> bool:
    raw = Raw(Account(ACCOUNT, KEY, urllib.parse.urlsplit(endpoints[fact["service"]])))
    path, _, own_query = fact["request"].partition("?")
    headers = dict(header.split(": ", 1) for header in fact["headers"].split("; ") if header)
    whole_query = "&".join(part for part in (own_query, query) if part)
    if fact["service"] == "table":
        headers |= {"Accept": "application/json"}
    answer = raw.send(method, path, whole_query, headers, sign=signed)
    assert answer.status != 500, (fact["operation"], answer.body)
    code = answer.headers.get("x-ms-error-code")
    if code is None and answer.status >= 400 and (found := re.search(rb"<Code>(\w+)|\"code\":\"(\w+)\"", answer.body)):
        code = (found.group(1) or found.group(2)).decode()
    if code is None and method == "HEAD":
        return answer.status not in (401, 403)
    return code not in REFUSALS


def expiry():
    return datetime.datetime.now(datetime.UTC) + datetime.timedelta(hours=1)


def test_an_account_sas_over_http(endpoints):
    choice, allowed = random.Random(SEED), 0
    for _ in range(CELLS):
        fact = choice.choice(facts())
        method = choice.choice(fact["methods"].split(","))
        # Of a sample of all letters few would be allowed, so half of the cells have those that are needed.
        letters = set(choice.sample(LETTERS, 2))
        if choice.random() < 0.5 and fact["letters"] not in ("-", "any"):
            letters |= set(choice.choice(fact["letters"].split(",")).replace("+", ""))
        letters = "".join(letter for letter in LETTERS if letter in letters)
        types = "".join(sorted(choice.sample("sco", choice.randint(1, 3)), key="sco".index))
        service = {"blob": "b", "queue": "q", "table": "t", "file": "f"}[fact["service"]]
        signature = generate_account_sas(
            ACCOUNT, KEY, resource_types=types, permission=letters, expiry=expiry(), services=service
        )
        type_fits = fact["srt"] == "*" or any(letter in types for letter in fact["srt"])
        expected = fact["key"] == "yes" and type_fits and opens(fact, letters)
        told = is_allowed(endpoints, fact, method, signature)
        assert told == expected, (SEED, fact["operation"], types, letters)
        allowed += expected
    assert CELLS / 10 < allowed < CELLS


def test_a_container_sas_over_http(endpoints):
    choice = random.Random(SEED)
    blob = [fact for fact in facts() if fact["service"] == "blob" and "/container" in fact["request"]]
    for _ in range(CELLS // 2):
        fact = choice.choice(blob)
        method = choice.choice(fact["methods"].split(","))
        wanted = set(choice.sample("racwdxyltmeopif", 3))
        letters = "".join(letter for letter in "racwdxyltfmeopi" if letter in wanted)
        signature = generate_container_sas(ACCOUNT, "container", KEY, permission=letters, expiry=expiry())
        expected = fact["service_sas"] == "yes" and opens(fact, letters)
        assert is_allowed(endpoints, fact, method, signature) == expected, (SEED, fact["operation"], letters)


def test_a_key_and_no_key_over_http(endpoints):
    for fact in facts():
        if fact["service"] == "table":
            continue
        method = fact["methods"].split(",")[0]
        assert is_allowed(endpoints, fact, method, signed=True) == (fact["key"] == "yes"), fact["operation"]
        assert not is_allowed(endpoints, fact, method), fact["operation"]
