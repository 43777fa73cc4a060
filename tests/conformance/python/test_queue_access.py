"""Who may do what with queues: service SAS, account SAS, stored policies, user delegation, tokens."""

from datetime import timedelta

import pytest
from azure.storage.queue import (
    AccessPolicy,
    AccountSasPermissions,
    QueueClient,
    QueueSasPermissions,
    QueueServiceClient,
    ResourceTypes,
    UserDelegationKey,
    generate_account_sas,
    generate_queue_sas,
)
from support import refused, unique
from test_access import HOUR, now, unsigned_token

EVERYTHING = {
    "read": True,
    "add": True,
    "update": True,
    "process": True,
}


def queue_sas(account, queue, permission=None, **arguments):
    arguments = {"account_key": account.key, "expiry": now() + HOUR} | arguments
    return generate_queue_sas(account.name, queue.queue_name, permission=permission, **arguments)


def with_sas(queue, sas):
    return QueueClient.from_queue_url(queue.url.split("?")[0], credential=sas, retry_total=0)


def by_account(account, permission, types="sco", **arguments):
    arguments = {"expiry": now() + HOUR} | arguments
    sas = generate_account_sas(
        account.name,
        account.key,
        ResourceTypes.from_string(types),
        AccountSasPermissions.from_string(permission),
        **arguments,
    )
    return QueueServiceClient(account.endpoint.geturl().rstrip("/"), credential=sas, retry_total=0)


def message_calls(queue, message):
    """What a service SAS can be for, by the letter that it needs."""
    return {
        "metadata": ("r", queue.get_queue_properties),
        "peek": ("r", queue.peek_messages),
        "put": ("a", lambda: queue.send_message("x")),
        "update": ("u", lambda: queue.update_message(message.id, message.pop_receipt, visibility_timeout=0)),
        "get": ("p", queue.receive_message),
    }


@pytest.mark.parametrize("letter", "raup")
def test_a_sas_gives_what_its_letters_say(queue_account, queue, letter):
    message = queue.send_message("x")
    client = with_sas(queue, queue_sas(queue_account, queue, QueueSasPermissions.from_string(letter)))
    for name, (needed, call) in message_calls(client, message).items():
        if needed == letter:
            call()
        else:
            with refused(403, "AuthorizationPermissionMismatch"):
                call()
    if letter == "p":
        got = queue.send_message("to be deleted")
        client.delete_message(got.id, got.pop_receipt)


def test_a_sas_without_process_deletes_nothing(queue_account, queue):
    message = queue.send_message("x")
    client = with_sas(queue, queue_sas(queue_account, queue, QueueSasPermissions(read=True, add=True, update=True)))
    with refused(403, "AuthorizationPermissionMismatch"):
        client.delete_message(message.id, message.pop_receipt)


def test_a_service_sas_never_manages_queues(queue_account, queue):
    client = with_sas(queue, queue_sas(queue_account, queue, QueueSasPermissions(**EVERYTHING)))
    for call in (
        client.create_queue,
        client.delete_queue,
        lambda: client.set_queue_metadata({"a": "b"}),
        client.clear_messages,
        client.get_queue_access_policy,
        lambda: client.set_queue_access_policy({}),
    ):
        with pytest.raises(Exception) as caught:
            call()
        assert caught.value.status_code == 403
        assert caught.value.response.headers["x-ms-error-code"] in (
            "AuthorizationPermissionMismatch",
            "AuthorizationFailure",
        )


def test_a_sas_is_for_one_queue(queue_account, queue_service, queue):
    other = queue_service.create_queue(unique("other"))
    sas = queue_sas(queue_account, queue, QueueSasPermissions(**EVERYTHING))
    with refused(403, "AuthenticationFailed"):
        with_sas(other, sas).peek_messages()
    other.delete_queue()


def test_a_sas_has_its_time_address_and_protocol(queue_account, queue):
    read = QueueSasPermissions(read=True)
    for arguments in ({"expiry": now() - HOUR}, {"start": now() + HOUR, "expiry": now() + 2 * HOUR}):
        with refused(403, "AuthenticationFailed"):
            with_sas(queue, queue_sas(queue_account, queue, read, **arguments)).peek_messages()
    with refused(403, "AuthorizationSourceIPMismatch"):
        with_sas(queue, queue_sas(queue_account, queue, read, ip="10.0.0.1-10.0.0.9")).peek_messages()
    if queue_account.endpoint.scheme == "http":
        with refused(403, "AuthorizationProtocolMismatch"):
            with_sas(queue, queue_sas(queue_account, queue, read, protocol="https")).peek_messages()
    with_sas(queue, queue_sas(queue_account, queue, read, protocol="https,http")).peek_messages()


def test_a_sas_that_was_changed_is_refused(queue_account, queue):
    sas = queue_sas(queue_account, queue, QueueSasPermissions(read=True))
    with refused(403, "AuthenticationFailed"):
        with_sas(queue, sas.replace("sp=r", "sp=raup")).peek_messages()


def test_a_stored_policy_gives_the_sas_its_permissions(queue_account, queue):
    queue.send_message("x")
    sas = queue_sas(queue_account, queue, expiry=None, policy_id="reader")
    with refused(403, "AuthenticationFailed"):
        with_sas(queue, sas).peek_messages()
    policy = AccessPolicy(QueueSasPermissions(read=True), now() + HOUR, now() - HOUR)
    queue.set_queue_access_policy({"reader": policy})
    assert len(with_sas(queue, sas).peek_messages()) == 1
    with refused(403, "AuthorizationPermissionMismatch"):
        with_sas(queue, sas).receive_message()
    policy.permission = QueueSasPermissions(read=True, process=True)
    queue.set_queue_access_policy({"reader": policy})
    message = with_sas(queue, sas).receive_message()
    with_sas(queue, sas).delete_message(message)
    policy.expiry = now() - HOUR / 2
    queue.set_queue_access_policy({"reader": policy})
    with refused(403, "AuthenticationFailed"):
        with_sas(queue, sas).peek_messages()
    queue.set_queue_access_policy({})
    with refused(403, "AuthenticationFailed"):
        with_sas(queue, sas).peek_messages()


def test_what_the_policy_says_the_token_must_not(queue_account, queue_raw, queue):
    policy = AccessPolicy(QueueSasPermissions(read=True), now() + HOUR)
    queue.set_queue_access_policy({"reader": policy})
    sas = queue_sas(queue_account, queue, QueueSasPermissions(read=True), expiry=None, policy_id="reader")
    answer = queue_raw.send("GET", f"/{queue.queue_name}/messages", f"peekonly=true&{sas}", sign=False)
    assert (answer.status, answer.code) == (400, "InvalidQueryParameterValue")


# Account SAS


def test_an_account_sas_does_everything_it_has_letters_for(queue_account):
    service = by_account(queue_account, "rwdlacup")
    queue = service.create_queue(unique("sas"), metadata={"a": "b"})
    assert queue.queue_name in [listed.name for listed in service.list_queues(name_starts_with=queue.queue_name)]
    queue.set_queue_metadata({"c": "d"})
    queue.send_message("x")
    assert queue.peek_messages()[0].content == "x"
    message = queue.receive_message()
    updated = queue.update_message(message, visibility_timeout=0)
    queue.delete_message(message.id, updated.pop_receipt)
    queue.clear_messages()
    service.get_service_properties()
    queue.delete_queue()


ACCOUNT_CALLS = {
    "get properties": ("s", "r", lambda service, queue, message: service.get_service_properties()),
    "set properties": ("s", "w", lambda service, queue, message: service.set_service_properties()),
    "list": ("s", "l", lambda service, queue, message: next(service.list_queues(), None)),
    "get metadata": ("c", "r", lambda service, queue, message: queue.get_queue_properties()),
    "set metadata": ("c", "w", lambda service, queue, message: queue.set_queue_metadata({})),
    "create": ("c", "cw", lambda service, queue, message: service.create_queue(f"{queue.queue_name}-2")),
    "put": ("o", "a", lambda service, queue, message: queue.send_message("x")),
    "peek": ("o", "r", lambda service, queue, message: queue.peek_messages()),
    "update": (
        "o",
        "u",
        lambda service, queue, message: queue.update_message(message.id, message.pop_receipt, visibility_timeout=0),
    ),
    "get": ("o", "p", lambda service, queue, message: queue.receive_message()),
    "clear": ("o", "d", lambda service, queue, message: queue.clear_messages()),
    "delete": ("c", "d", lambda service, queue, message: queue.delete_queue()),
}


@pytest.mark.parametrize("name", ACCOUNT_CALLS)
def test_an_account_sas_needs_the_letter_and_the_type(queue_account, queue_service, queue, name):
    needed_type, letters, call = ACCOUNT_CALLS[name]
    message = queue.send_message("x")

    def attempt(permission, types):
        service = by_account(queue_account, permission, types)
        call(service, service.get_queue_client(queue.queue_name), message)

    other_types = "sco".replace(needed_type, "")
    with refused(403, "AuthorizationResourceTypeMismatch"):
        attempt("rwdlacup", other_types)
    without = "".join(letter for letter in "rwdlacup" if letter not in letters)
    with refused(403, "AuthorizationPermissionMismatch"):
        attempt(without, needed_type)
    attempt(letters[0], needed_type)
    if name == "create":
        queue_service.delete_queue(f"{queue.queue_name}-2")


def test_an_account_sas_for_another_service_is_refused(queue_account, queue, queue_raw):
    from azure.storage.blob import generate_account_sas as for_blobs

    permission = AccountSasPermissions.from_string("rwdlacup")
    types = ResourceTypes.from_string("sco")
    sas = for_blobs(queue_account.name, queue_account.key, types, permission, now() + HOUR)
    answer = queue_raw.send("GET", f"/{queue.queue_name}/messages", f"peekonly=true&{sas}", sign=False)
    assert (answer.status, answer.code) == (403, "AuthorizationServiceMismatch")


def test_no_sas_reads_policies(queue_account, queue):
    client = by_account(queue_account, "rwdlacup").get_queue_client(queue.queue_name)
    with refused(403, "AuthorizationFailure"):
        client.get_queue_access_policy()


# Without credentials, and with tokens


def test_nobody_without_credentials(queue_raw, queue):
    answer = queue_raw.send("GET", f"/{queue.queue_name}/messages", sign=False)
    assert (answer.status, answer.code) == (401, "NoAuthenticationInformation")


def by_token(raw, method, path, query="", body=None, version=""):
    headers = {"Authorization": f"Bearer {unsigned_token()}"}
    return raw.send(method, path, query, headers, body, sign=False, version=version)


def test_a_token_does_what_roles_allow(unsigned_tokens, queue_raw, queue):
    path, messages = f"/{queue.queue_name}", f"/{queue.queue_name}/messages"
    body = b"<QueueMessage><MessageText>x</MessageText></QueueMessage>"
    assert by_token(queue_raw, "POST", messages, body=body).status == 201
    assert by_token(queue_raw, "GET", messages, "peekonly=true").status == 200
    got = by_token(queue_raw, "GET", messages).xml()[0]
    query = f"popreceipt={got.findtext('PopReceipt')}"
    message = f"{messages}/{got.findtext('MessageId')}"
    updated = by_token(queue_raw, "PUT", message, f"{query}&visibilitytimeout=0")
    assert updated.status == 204
    assert by_token(queue_raw, "DELETE", message, f"popreceipt={updated.headers['x-ms-popreceipt']}").status == 204
    assert by_token(queue_raw, "GET", path, "comp=metadata").status == 200
    assert by_token(queue_raw, "GET", "/", "comp=list").status == 200
    assert by_token(queue_raw, "DELETE", messages).status == 204


def test_tokens_read_policies_from_2025_07_05(unsigned_tokens, queue_raw, queue):
    path = f"/{queue.queue_name}"
    assert by_token(queue_raw, "GET", path, "comp=acl", version="2025-05-05").status == 403
    assert by_token(queue_raw, "GET", path, "comp=acl", version="2025-07-05").status == 200
    assert by_token(queue_raw, "PUT", path, "comp=acl", b"<SignedIdentifiers/>", "2025-07-05").status == 204


def test_tokens_are_taken_from_2017_11_09(unsigned_tokens, queue_raw, queue):
    assert by_token(queue_raw, "GET", f"/{queue.queue_name}", "comp=metadata", version="2017-07-29").status in (400, 401, 403)
    assert by_token(queue_raw, "GET", f"/{queue.queue_name}", "comp=metadata", version="2017-11-09").status == 200


def delegation_key(raw, start, expiry, version=""):
    times = f"<Start>{start:%Y-%m-%dT%H:%M:%SZ}</Start><Expiry>{expiry:%Y-%m-%dT%H:%M:%SZ}</Expiry>"
    query = "restype=service&comp=userdelegationkey"
    return by_token(raw, "POST", "/", query, f"<KeyInfo>{times}</KeyInfo>".encode(), version)


def test_user_delegation_sas(unsigned_tokens, queue_account, queue_raw, queue):
    answer = delegation_key(queue_raw, now() - HOUR, now() + HOUR)
    assert answer.status == 200
    fields = {child.tag: child.text for child in answer.xml()}
    assert fields["SignedService"] == "q"
    key = UserDelegationKey()
    key.signed_oid, key.signed_tid = fields["SignedOid"], fields["SignedTid"]
    key.signed_start, key.signed_expiry = fields["SignedStart"], fields["SignedExpiry"]
    key.signed_service, key.signed_version, key.value = (
        fields["SignedService"],
        fields["SignedVersion"],
        fields["Value"],
    )
    sas = generate_queue_sas(
        queue_account.name,
        queue.queue_name,
        user_delegation_key=key,
        permission=QueueSasPermissions(add=True, process=True),
        expiry=now() + HOUR,
    )
    client = with_sas(queue, sas)
    client.send_message("x")
    client.delete_message(client.receive_message())
    with refused(403, "AuthorizationPermissionMismatch"):
        client.peek_messages()
    with refused(403, "AuthenticationFailed"):
        with_sas(queue, sas.replace("sp=ap", "sp=rap")).peek_messages()


def test_user_delegation_keys_of_queues_have_their_limits(unsigned_tokens, queue_raw):
    assert delegation_key(queue_raw, now(), now() + timedelta(days=8)).status == 400
    assert delegation_key(queue_raw, now(), now() - HOUR).status == 400
    assert delegation_key(queue_raw, now(), now() + HOUR, version="2025-11-05").status == 400
