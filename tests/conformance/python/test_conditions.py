"""Conditional headers: every one on every operation that takes it, combinations, and `*`.

`pass` and `fail` say what a header alone would do; the expectations follow from the rules of
combination, so each row of the tables below is one rule.
"""

import itertools
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone
from email.utils import format_datetime

import pytest
from azure.core import MatchConditions
from azure.core.exceptions import ResourceModifiedError
from azure.storage.blob import ContentSettings
from support import quoted, refused

OTHER_ETAG = '"0x8D000000000CAFE"'
HOUR = timedelta(hours=1)


def date(moment: datetime) -> str:
    return format_datetime(moment.astimezone(timezone.utc), usegmt=True)


class Known:
    """A blob, and each condition header in a form that passes and one that fails."""

    def __init__(self, client, raw):
        self.client, self.raw = client, raw
        self.path = f"/{client.container_name}/{quoted(client.blob_name)}"
        self.refresh()

    def refresh(self):
        properties = self.client.get_blob_properties()
        self.etag, modified = properties.etag, properties.last_modified
        earlier, later = date(modified - HOUR), date(modified + HOUR)
        self.headers = {
            "If-Match": {"pass": self.etag, "fail": OTHER_ETAG},
            "If-None-Match": {"pass": OTHER_ETAG, "fail": self.etag},
            "If-Modified-Since": {"pass": earlier, "fail": later},
            "If-Unmodified-Since": {"pass": later, "fail": earlier},
        }

    def send(self, method, query="", conditions=None, headers=None, body=None, version=""):
        sent = {name: self.headers[name][how] for name, how in (conditions or {}).items()}
        return self.raw.send(method, self.path, query, sent | (headers or {}), body, version=version)


@pytest.fixture
def known(blob, raw):
    return Known(blob, raw)


HEADERS = ["If-Match", "If-None-Match", "If-Modified-Since", "If-Unmodified-Since"]

# What writes and reads look like; each leaves the blob there, except the last.
WRITES = {
    "Put Blob": dict(method="PUT", headers={"x-ms-blob-type": "BlockBlob"}, body=b"new"),
    "Set Blob Metadata": dict(method="PUT", query="comp=metadata", headers={"x-ms-meta-a": "1"}),
    "Set Blob Properties": dict(method="PUT", query="comp=properties", headers={"x-ms-blob-content-type": "a/b"}),
    "Lease Blob": dict(
        method="PUT",
        query="comp=lease",
        headers={
            "x-ms-lease-action": "acquire",
            "x-ms-lease-duration": "-1",
            "x-ms-proposed-lease-id": "6f4b7b5e-6d0f-4c2c-8d5c-6a8a5a0d3c11",
        },
    ),
    "Delete Blob": dict(method="DELETE"),
}
READS = {
    "Get Blob": dict(method="GET"),
    "Get Blob Properties": dict(method="HEAD"),
    "Get Blob Metadata": dict(method="GET", query="comp=metadata"),
}


@pytest.mark.parametrize("operation", WRITES)
@pytest.mark.parametrize("header", HEADERS)
def test_failed_condition_refuses_a_write(known, operation, header):
    answer = known.send(conditions={header: "fail"}, **WRITES[operation])
    assert (answer.status, answer.code) == (412, "ConditionNotMet")
    properties = known.client.get_blob_properties()
    assert (properties.etag, properties.lease.state) == (known.etag, "available")


@pytest.mark.parametrize("operation", WRITES)
@pytest.mark.parametrize("header", HEADERS)
def test_passed_condition_lets_a_write_through(known, operation, header):
    assert known.send(conditions={header: "pass"}, **WRITES[operation]).status in (200, 201, 202)


@pytest.mark.parametrize("operation", READS)
@pytest.mark.parametrize("header", HEADERS)
def test_failed_condition_on_a_read(known, operation, header):
    answer = known.send(conditions={header: "fail"}, **READS[operation])
    expected = 304 if header in ("If-None-Match", "If-Modified-Since") else 412
    assert answer.status == expected
    assert answer.headers["x-ms-error-code"] == "ConditionNotMet"
    if expected == 304:
        assert answer.body == b""


@pytest.mark.parametrize("operation", READS)
@pytest.mark.parametrize("header", HEADERS)
def test_passed_condition_on_a_read(known, operation, header):
    assert known.send(conditions={header: "pass"}, **READS[operation]).status == 200


def read_outcome(conditions) -> int:
    """If-Match AND If-Unmodified-Since AND (If-None-Match OR If-Modified-Since); absent ones are ignored."""
    if "fail" in (conditions.get("If-Match"), conditions.get("If-Unmodified-Since")):
        return 412
    either = [conditions[name] for name in ("If-None-Match", "If-Modified-Since") if name in conditions]
    return 304 if either and "pass" not in either else 200


def combinations(sizes):
    for size in sizes:
        for names in itertools.combinations(HEADERS, size):
            for outcomes in itertools.product(("pass", "fail"), repeat=size):
                yield dict(zip(names, outcomes))


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_every_combination_on_a_read(known, method):
    wrong = []
    for conditions in combinations((1, 2, 3, 4)):
        answer = known.send(method, conditions=conditions)
        if answer.status != read_outcome(conditions):
            wrong.append((conditions, answer.status))
    assert wrong == []


ALLOWED_PAIRS = [
    # The first header of a pair alone decides.
    ("If-None-Match", "If-Modified-Since"),
    ("If-Match", "If-Unmodified-Since"),
]


def old_outcome(conditions, failed_status) -> int:
    if len(conditions) == 2:
        for deciding, other in ALLOWED_PAIRS:
            if set(conditions) == {deciding, other}:
                return 0 if conditions[deciding] == "pass" else failed_status(deciding)
    return 400


def test_every_pair_on_a_write(known):
    """Only two pairs exist for writes; any other combination is refused before it is evaluated."""
    wrong = []
    for conditions in combinations((2, 3, 4)):
        answer = known.send("PUT", "comp=metadata", conditions, {"x-ms-meta-a": "1"})
        expected = old_outcome(conditions, lambda _: 412) or 200
        code = {400: "MultipleConditionHeadersNotSupported", 412: "ConditionNotMet"}.get(expected)
        if (answer.status, answer.code) != (expected, code):
            wrong.append((conditions, answer.status, answer.code))
        if answer.status == 200:
            known.refresh()
    assert wrong == []


def test_reads_before_2013_08_15_take_the_same_pairs_as_writes(known):
    wrong = []
    for conditions in combinations((2, 3, 4)):
        answer = known.send("GET", conditions=conditions, version="2012-02-12")
        status = lambda header: 304 if header == "If-None-Match" else 412  # noqa: E731
        if answer.status != (old_outcome(conditions, status) or 200):
            wrong.append((conditions, answer.status))
    assert wrong == []


@pytest.mark.parametrize(
    "headers, status",
    [
        ({"If-Match": "{other}, {etag}"}, 200),
        ({"If-Match": "{etag},{other}"}, 200),
        ({"If-Match": "{other}, {other}"}, 412),
        ({"If-None-Match": "{other}, {etag}"}, 304),
        ({"If-None-Match": "{other}, {other}"}, 200),
        ({"If-Match": "*"}, 200),
        ({"If-Match": "{bare}"}, 200),
        ({"If-None-Match": "{bare}"}, 304),
    ],
)
def test_etag_lists_on_a_read(known, headers, status):
    words = dict(etag=known.etag, other=OTHER_ETAG, bare=known.etag.strip('"'))
    sent = {name: value.format(**words) for name, value in headers.items()}
    assert known.send("GET", headers=sent).status == status


@pytest.mark.parametrize("header", ["If-Match", "If-None-Match"])
def test_etag_lists_on_a_write_are_refused(known, header):
    answer = known.send("PUT", "comp=metadata", headers={header: f"{known.etag}, {OTHER_ETAG}"})
    assert answer.status == 400
    assert known.client.get_blob_properties().etag == known.etag


@pytest.mark.parametrize("header", ["If-Modified-Since", "If-Unmodified-Since"])
def test_a_date_that_is_none_is_refused(known, header):
    for value in ("yesterday", f"{date(datetime.now(timezone.utc))}, {date(datetime.now(timezone.utc))}"):
        assert known.send("GET", headers={header: value}).status == 400


def test_dates_compare_by_whole_seconds(known):
    modified = known.client.get_blob_properties().last_modified
    assert known.send("GET", headers={"If-Modified-Since": date(modified)}).status == 304
    assert known.send("GET", headers={"If-Unmodified-Since": date(modified)}).status == 200
    second = timedelta(seconds=1)
    assert known.send("GET", headers={"If-Modified-Since": date(modified - second)}).status == 200
    assert known.send("GET", headers={"If-Unmodified-Since": date(modified - second)}).status == 412


# If-None-Match: *


def test_star_refuses_an_overwrite_as_already_existing(known):
    answer = known.send("PUT", headers={"x-ms-blob-type": "BlockBlob", "If-None-Match": "*"}, body=b"new")
    assert (answer.status, answer.code) == (409, "BlobAlreadyExists")
    assert known.client.download_blob().readall() == b"the first content"


def test_star_lets_a_creation_through(container, raw):
    headers = {"x-ms-blob-type": "BlockBlob", "If-None-Match": "*"}
    assert raw.send("PUT", f"/{container.container_name}/new", headers=headers, body=b"x").status == 201


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_star_on_a_read_cannot_be_satisfied(known, method):
    answer = known.send(method, headers={"If-None-Match": "*"})
    assert (answer.status, answer.headers["x-ms-error-code"]) == (400, "UnsatisfiableCondition")


def test_star_on_an_in_place_write_is_not_a_failed_condition(known, container, raw):
    answer = known.send("PUT", "comp=properties", headers={"x-ms-blob-content-type": "a/b", "If-None-Match": "*"})
    assert answer.status == 200
    missing = raw.send(
        "PUT", f"/{container.container_name}/missing", "comp=properties", {"If-None-Match": "*"}
    )
    assert (missing.status, missing.code) == (404, "BlobNotFound")


# A blob that does not exist


@pytest.mark.parametrize("value", ["*", OTHER_ETAG])
def test_if_match_never_creates(container, raw, value):
    path = f"/{container.container_name}/missing"
    answer = raw.send("PUT", path, headers={"x-ms-blob-type": "BlockBlob", "If-Match": value}, body=b"x")
    assert (answer.status, answer.code) == (412, "ConditionNotMet")
    assert not container.get_blob_client("missing").exists()


@pytest.mark.parametrize(
    "header, value",
    [
        ("If-None-Match", OTHER_ETAG),
        ("If-Modified-Since", "Wed, 01 Jan 2098 00:00:00 GMT"),
        ("If-Unmodified-Since", "Wed, 01 Jan 2020 00:00:00 GMT"),
    ],
)
def test_other_conditions_do_not_stop_a_creation(container, raw, header, value):
    path = f"/{container.container_name}/missing"
    answer = raw.send("PUT", path, headers={"x-ms-blob-type": "BlockBlob", header: value}, body=b"x")
    assert answer.status == 201


@pytest.mark.parametrize("header, value", [("If-None-Match", OTHER_ETAG), ("If-Match", OTHER_ETAG)])
def test_read_of_a_missing_blob_with_a_condition(container, raw, header, value):
    answer = raw.send("GET", f"/{container.container_name}/missing", headers={header: value})
    assert (answer.status, answer.code) in ((404, "BlobNotFound"), (412, "ConditionNotMet"))


# The same through the SDK: what an application writes


def test_optimistic_concurrency_through_the_sdk(blob):
    etag = blob.get_blob_properties().etag
    blob.upload_blob(b"second", overwrite=True, etag=etag, match_condition=MatchConditions.IfNotModified)
    with refused(412, "ConditionNotMet"):
        blob.upload_blob(b"third", overwrite=True, etag=etag, match_condition=MatchConditions.IfNotModified)
    assert blob.download_blob().readall() == b"second"
    with refused(412, "ConditionNotMet"):
        blob.set_blob_metadata({"a": "1"}, etag=etag, match_condition=MatchConditions.IfNotModified)
    with refused(412, "ConditionNotMet"):
        blob.set_http_headers(ContentSettings(), etag=etag, match_condition=MatchConditions.IfNotModified)
    with refused(412, "ConditionNotMet"):
        blob.delete_blob(etag=etag, match_condition=MatchConditions.IfNotModified)
    with refused(412, "ConditionNotMet"):
        blob.acquire_lease(15, etag=etag, match_condition=MatchConditions.IfNotModified)
    with refused(412, "ConditionNotMet"):
        blob.download_blob(etag=etag, match_condition=MatchConditions.IfNotModified)
    current = blob.get_blob_properties().etag
    with refused(304, "ConditionNotMet"):
        blob.download_blob(etag=current, match_condition=MatchConditions.IfModified)
    blob.delete_blob(etag=current, match_condition=MatchConditions.IfNotModified)


def test_one_of_many_concurrent_writers_wins(container):
    """Sixteen writers hold the same ETag: exactly one overwrite may pass."""
    client = container.get_blob_client("contended")
    for round_number in range(5):
        etag = client.upload_blob(b"start", overwrite=True)["etag"]

        def write(index):
            try:
                content = b"%d-%d" % (round_number, index)
                client.upload_blob(
                    content, overwrite=True, etag=etag, match_condition=MatchConditions.IfNotModified
                )
                return content
            except ResourceModifiedError as error:
                assert error.error_code == "ConditionNotMet"

        with ThreadPoolExecutor(16) as pool:
            winners = [content for content in pool.map(write, range(16)) if content]
        assert len(winners) == 1
        assert client.download_blob().readall() == winners[0]


def test_tags_condition_compares_the_tags_of_the_blob(container, raw):
    path = f"/{container.container_name}/tagged"
    created = raw.send("PUT", path, headers={"x-ms-blob-type": "BlockBlob", "x-ms-tags": "stage=draft&n=5"}, body=b"x")
    assert created.status == 201
    for predicate, status in [
        ("\"stage\" = 'draft'", 200),
        ("stage = 'final'", 412),
        ("stage = 'draft' AND \"n\" > '4'", 200),
        ("stage <> 'draft' OR n <= '4'", 412),
        ("stage = ", 400),
    ]:
        assert (predicate, raw.send("GET", path, headers={"x-ms-if-tags": predicate}).status) == (predicate, status)
    assert raw.send("HEAD", path).headers["x-ms-tag-count"] == "2"
