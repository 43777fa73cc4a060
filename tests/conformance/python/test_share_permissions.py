"""Security descriptors of a share: created once, got by their key, as text and in bytes."""

import base64
import json
import re

import pytest
from support import refused, unique

WHOLE = "restype=share&comp=filepermission"
SDDL = (
    "O:S-1-5-21-2127521184-1604012920-1887927527-21560478G:S-1-5-21-2127521184-1604012920-1887927527-513"
    "D:AI(A;ID;FA;;;SY)(A;ID;FA;;;BA)(A;ID;0x1200a9;;;S-1-5-21-397955417-626881126-188441444-3053964)"
)
SHORT = "O:SYG:BAD:P(A;OICI;FA;;;BA)"
# What Windows makes of it.
SHORT_BYTES = bytes.fromhex(
    "0100049034000000400000000000000014000000"
    "0200200001000000" "00031800ff011f0001020000000000052000000020020000"
    "010100000000000512000000" "01020000000000052000000020020000"
)
# From the tests of the SDKs, where it comes back as it was sent.
OF_THE_SDKS = (
    "AQAUhGwAAACIAAAAAAAAABQAAAACAFgAAwAAAAAAFAD/AR8AAQEAAAAAAAUSAAAAAAAYAP8BHwABAgAAAAAABSAAAAAgAgAAAAAkAKkAEgAB"
    "BQAAAAAABRUAAABZUbgXZnJdJWRjOwuMmS4AAQUAAAAAAAUVAAAAoGXPfnhLm1/nfIdwr/1IAQEFAAAAAAAFFQAAAKBlz354S5tf53yHcAEC"
    "AAA="
)
KEY = re.compile(r"^\d{20}\*\d{20}$")


def create(raw, share, body, **arguments):
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return raw.send("PUT", f"/{share.share_name}", WHOLE, body=content, **arguments)


def get(raw, share, key, **headers):
    return raw.send("GET", f"/{share.share_name}", WHOLE, {"x-ms-file-permission-key": key, **headers})


def test_a_descriptor_has_one_key_and_comes_back_by_it(share):
    key = share.create_permission_for_share(SDDL)
    assert KEY.match(key)
    assert share.create_permission_for_share(SDDL) == key
    assert share.create_permission_for_share(SDDL.lower().replace("s-1", "S-1")) == key
    assert share.get_permission_for_share(key) == SDDL
    other = share.create_permission_for_share(SHORT)
    assert other != key
    assert share.get_permission_for_share(other) == SHORT


def test_a_descriptor_is_the_same_in_text_and_in_bytes(file_raw, share):
    in_bytes = {"permission": base64.b64encode(SHORT_BYTES).decode(), "format": "binary"}
    created = create(file_raw, share, in_bytes)
    assert created.status == 201, created.body
    key = created.headers["x-ms-file-permission-key"]
    assert create(file_raw, share, {"permission": SHORT}).headers["x-ms-file-permission-key"] == key
    as_text = get(file_raw, share, key, **{"x-ms-file-permission-format": "sddl"})
    assert json.loads(as_text.body) == {"permission": SHORT, "format": "sddl"}
    assert json.loads(get(file_raw, share, key).body) == {"permission": SHORT}
    again = json.loads(get(file_raw, share, key, **{"x-ms-file-permission-format": "Binary"}).body)
    assert base64.b64decode(again["permission"]) == SHORT_BYTES
    sdk = share.get_permission_for_share(key, file_permission_format="binary")
    assert base64.b64decode(sdk) == SHORT_BYTES
    created = create(file_raw, share, {"permission": OF_THE_SDKS, "format": "binary"})
    key = created.headers["x-ms-file-permission-key"]
    assert share.get_permission_for_share(key, file_permission_format="binary") == OF_THE_SDKS


@pytest.mark.parametrize(
    "permission",
    [
        "",
        "D:(A;;FA;;;WD)",  # Neither owner nor group.
        "O:BAG:SY",
        "O:DAG:SYD:(A;;FA;;;WD)",  # The administrators of a domain.
        "O:BAG:SYD:(A;;FA;;;WD",
        "O:BAG:SYD:(A;;XX;;;WD)",
        "no descriptor",
        "O:é",
    ],
)
def test_what_is_no_descriptor_is_refused(file_raw, share, permission):
    answer = create(file_raw, share, {"permission": permission})
    assert (answer.status, answer.code) == (400, "FileInvalidPermission")


@pytest.mark.parametrize("content", [b"", b"x", b"[]", b"{}", b'{"permission": 1}', b'{"permission": "O:BA", "format": "x"}'])
def test_a_body_that_is_not_the_document_is_refused(file_raw, share, content):
    answer = create(file_raw, share, content)
    assert (answer.status, answer.code) == (400, "InvalidInput")


@pytest.mark.parametrize("permission", ["", "%%%", "AAAA", base64.b64encode(SHORT_BYTES[:60]).decode()])
def test_bytes_that_are_no_descriptor_are_refused(file_raw, share, permission):
    answer = create(file_raw, share, {"permission": permission, "format": "Binary"})
    assert (answer.status, answer.code) == (400, "FileInvalidPermission")
    old = create(file_raw, share, {"permission": permission, "format": "Binary"}, version="2024-08-04")
    assert (old.status, old.code) == (400, "InvalidInput")


def test_a_long_descriptor_is_taken_and_one_that_is_too_long_is_not(file_raw, share):
    rule = "(A;;FA;;;S-1-5-21-2127521184-1604012920-1887927527-21560478)"
    long = "O:SYG:BAD:" + rule * 1000
    key = share.create_permission_for_share(long)
    assert share.get_permission_for_share(key) == long
    answer = create(file_raw, share, {"permission": "O:SYG:BAD:" + "(A;;FA;;;WD)" * 4000})
    assert (answer.status, answer.code) == (400, "FileInvalidPermission")
    answer = create(file_raw, share, {"permission": "O:SYG:BAD:" + rule * 2000})
    assert (answer.status, answer.code) == (413, "RequestBodyTooLarge")


def test_a_rule_without_a_text_is_given_in_bytes_only(file_raw, share):
    # The same rule with a condition behind it.
    rule = b"\x09\x03\x1c\x00" + SHORT_BYTES[32:52] + b"artx"
    header = bytes.fromhex("0100049038000000440000000000000014000000")
    custom = header + b"\x02\x00\x24\x00\x01\x00\x00\x00" + rule + SHORT_BYTES[52:]
    created = create(file_raw, share, {"permission": base64.b64encode(custom).decode(), "format": "Binary"})
    assert created.status == 201, created.body
    key = created.headers["x-ms-file-permission-key"]
    answer = get(file_raw, share, key)
    assert (answer.status, answer.code) == (400, "CannotConvertToSddlDueToCustomAce")
    got = get(file_raw, share, key, **{"x-ms-file-permission-format": "Binary"})
    assert base64.b64decode(json.loads(got.body)["permission"]) == custom


def test_only_the_keys_of_a_share_are_known_to_it(shares, share, file_raw):
    key = share.create_permission_for_share(SDDL)
    with shares.create_share(unique("other")) as other:
        with refused(400, "FileInvalidPermissionKey"):
            other.get_permission_for_share(key)
        other.delete_share()
        with refused(404, "ShareNotFound"):
            other.get_permission_for_share(key)
        with refused(404, "ShareNotFound"):
            other.create_permission_for_share(SDDL)
    for none in ("x", "1*2", key[:-1], key[:-1] + str((int(key[-1]) + 1) % 10)):
        answer = get(file_raw, share, none)
        assert (answer.status, answer.code) == (400, "FileInvalidPermissionKey")
    missing = file_raw.send("GET", f"/{share.share_name}", WHOLE)
    assert (missing.status, missing.code) == (400, "MissingRequiredHeader")
