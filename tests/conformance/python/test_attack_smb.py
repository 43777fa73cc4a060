"""SMB as attackers use it: a man in the middle, wrong proofs, unsigned packets, more than
was granted, compounds without sense, and the handles and locks of others."""

import contextlib
import os
import socket
import struct
import uuid

import pytest
from azure.core.exceptions import HttpResponseError
from azure.storage.fileshare import ShareServiceClient
from smb_relay import Relay, command, flipped, receive
from smbprotocol.connection import Connection, Dialects
from smbprotocol.exceptions import (
    AccessDenied,
    FileClosed,
    LogonFailure,
    SMBException,
    SMBResponseException,
)
from smbprotocol.header import Commands
from smbprotocol.open import (
    CreateDisposition,
    CreateOptions,
    FilePipePrinterAccessMask as Access,
    ImpersonationLevel,
    Open,
    ShareAccess,
    SMB2LockElement,
    SMB2LockRequest,
    SMB2ReadRequest,
)
from smbprotocol.session import Session
from smbprotocol.tree import TreeConnect
from test_smb_logon import (
    ACCOUNT,
    FIRST_KEY,
    OTHER_ACCOUNT,
    SECOND_KEY,
    SHARES,
    file_and_smb_ports,
    logged_on,
    smb_server,
)

ALL = ShareAccess.FILE_SHARE_READ | ShareAccess.FILE_SHARE_WRITE | ShareAccess.FILE_SHARE_DELETE
NEGOTIATE, SESSION_SETUP, TREE_CONNECT = 0, 1, 3
SIGNED = 8


@pytest.fixture(scope="module")
def port():
    with smb_server("--smb-signing", "required") as port:
        yield port


@pytest.fixture(autouse=True)
def others_are_still_served(port):
    yield
    with logged_on(port) as session:
        TreeConnect(session, rf"\\127.0.0.1\{SHARES[0]}").connect()


@contextlib.contextmanager
def relayed(port, change):
    relay = Relay(port, change)
    try:
        yield relay.port
    finally:
        relay.close()


def use(port, dialect=None, **logon) -> None:
    """Everything up to an open file."""
    with logged_on(port, dialect, **logon) as session:
        tree = TreeConnect(session, rf"\\127.0.0.1\{SHARES[0]}")
        tree.connect()
        opened(tree, "used")


def opened(tree, name, access=Access.GENERIC_READ | Access.GENERIC_WRITE, sharing=ALL) -> Open:
    file = Open(tree, name)
    disposition, options = CreateDisposition.FILE_OPEN_IF, CreateOptions.FILE_NON_DIRECTORY_FILE
    file.create(ImpersonationLevel.Impersonation, access, 0, sharing, disposition, options)
    return file


# --- man in the middle


def test_a_relay_that_changes_nothing_is_not_noticed(port):
    with relayed(port, lambda packet, to_server: packet) as relay:
        use(relay)


@pytest.mark.parametrize("kept", [Dialects.SMB_2_0_2, Dialects.SMB_2_1_0, Dialects.SMB_3_0_0, Dialects.SMB_3_0_2], ids=hex)
def test_a_dialect_that_was_taken_down_is_noticed(port, kept):
    """The client offers all dialects, the server sees one: the two find out before anything is read."""

    def take_down(packet, to_server):
        if not (to_server and command(packet) == NEGOTIATE):
            return packet
        head = packet[:64] + struct.pack("<HH", 36, 1) + packet[68:92]
        return head + bytes(8) + struct.pack("<H", kept)

    with relayed(port, take_down) as relay, pytest.raises(SMBException):
        use(relay)


@pytest.mark.parametrize("to_server", [True, False], ids=["of the client", "of the server"])
def test_a_changed_negotiation_of_3_1_1_ends_with_the_logon(port, to_server):
    """The hash of all that was negotiated is part of every key."""

    def change(packet, direction):
        if direction == to_server and command(packet) == NEGOTIATE:
            # A byte of the identifier of the client or the server, which changes nothing else.
            return flipped(packet, 64 + (12 if to_server else 8))
        return packet

    with relayed(port, change) as relay, pytest.raises(SMBException):
        use(relay, Dialects.SMB_3_1_1)


def test_signing_that_was_negotiated_away_is_still_required(port):
    def change(packet, to_server):
        if command(packet) == NEGOTIATE and to_server:
            return packet[:68] + b"\0\0" + packet[70:]
        if command(packet) == NEGOTIATE:
            return packet[:66] + b"\0\0" + packet[68:]
        return packet

    with relayed(port, change) as relay, pytest.raises(SMBException):
        use(relay, Dialects.SMB_3_0_2, signs=False)


@pytest.mark.parametrize("dialect", [Dialects.SMB_2_1_0, Dialects.SMB_3_0_2, Dialects.SMB_3_1_1], ids=hex)
def test_a_signed_packet_that_was_changed_is_refused(port, dialect):
    def change(packet, to_server):
        if to_server and command(packet) == TREE_CONNECT:
            return flipped(packet, len(packet) - 2)
        return packet

    with relayed(port, change) as relay, pytest.raises(SMBException):
        use(relay, dialect)


def test_an_encrypted_packet_that_was_changed_ends_the_connection(port):
    def change(packet, to_server):
        return flipped(packet, len(packet) - 1) if to_server and packet[:4] == b"\xfdSMB" else packet

    with relayed(port, change) as relay, pytest.raises(SMBException):
        use(relay, Dialects.SMB_3_1_1, encrypts=True)


# --- proofs


def tokens(port) -> list[bytes]:
    """The packets of a logon that went well."""
    kept = []

    def keep(packet, to_server):
        if to_server and command(packet) in (NEGOTIATE, SESSION_SETUP):
            kept.append(packet)
        return packet

    with relayed(port, keep) as relay:
        use(relay, Dialects.SMB_2_1_0)
    return kept


def statuses(port, packets) -> list[int]:
    """The answer to a new connection."""
    answered = []
    with contextlib.closing(socket.create_connection(("127.0.0.1", port), timeout=20)) as client:
        session = bytes(8)
        for packet in packets:
            if command(packet) == SESSION_SETUP:
                packet = packet[:40] + session + packet[48:]
            client.sendall(struct.pack(">I", len(packet)) + packet)
            if (answer := receive(client)) is None:
                break
            answered.append(struct.unpack_from("<I", answer, 8)[0])
            session = answer[40:48]
    return answered


LOGON_FAILURE, MORE_PROCESSING, INVALID_PARAMETER = 0xC000006D, 0xC0000016, 0xC000000D


def test_a_proof_is_good_for_its_own_challenge_only(port):
    packets = tokens(port)
    assert len(packets) == 3
    assert statuses(port, packets) == [0, MORE_PROCESSING, LOGON_FAILURE]


def test_a_proof_that_was_changed_anywhere_is_refused(port):
    """Each byte of the last token, in a separate logon that is valid otherwise."""
    length = len(tokens(port)[-1])
    for at in range(88, length, 7):

        def change(packet, to_server, at=at):
            is_last = to_server and command(packet) == SESSION_SETUP and packet[40:48] != bytes(8)
            return flipped(packet, min(at, len(packet) - 1)) if is_last else packet

        with relayed(port, change) as relay:
            try:
                with logged_on(relay, Dialects.SMB_2_1_0):
                    # Only the machine name of the client may change: neither proof nor signature covers it.
                    pass
            except (LogonFailure, SMBException):
                continue
            pytest.fail(f"byte {at} of {length} can be changed")


# --- unsigned packets


@pytest.mark.parametrize("dialect", [Dialects.SMB_2_1_0, Dialects.SMB_3_0_2, Dialects.SMB_3_1_1], ids=hex)
def test_what_is_not_signed_is_refused_in_a_signed_session(port, dialect):
    with logged_on(port, dialect) as session:
        session.signing_required = False
        with pytest.raises(SMBException):
            TreeConnect(session, rf"\\127.0.0.1\{SHARES[0]}").connect()


@pytest.mark.parametrize("dialect", [Dialects.SMB_2_1_0, Dialects.SMB_3_0_2, Dialects.SMB_3_1_1], ids=hex)
def test_what_is_signed_with_another_key_is_refused(port, dialect):
    with logged_on(port, dialect) as session:
        session.signing_key = os.urandom(16)
        with pytest.raises((AccessDenied, SMBException)):
            TreeConnect(session, rf"\\127.0.0.1\{SHARES[0]}").connect()


def test_what_is_not_encrypted_is_refused_where_encryption_is_required():
    with smb_server("--smb-encryption", "required") as port:
        with logged_on(port, Dialects.SMB_3_1_1, encrypts=True) as session:
            session.encrypt_data, session.signing_required = False, True
            with pytest.raises(SMBException):
                TreeConnect(session, rf"\\127.0.0.1\{SHARES[0]}").connect()


# --- more than was granted


def header(name: int, message_id: int, session: int = 0, tree: int = 0, next_command: int = 0, charge: int = 1, flags=0) -> bytes:
    return struct.pack(
        "<4sHHIHHIIQIIQ16s", b"\xfeSMB", 64, charge, 0, name, 1, flags, next_command, message_id, 0, tree, session, bytes(16)
    )


ECHO = struct.pack("<HH", 4, 0)


@contextlib.contextmanager
def negotiated(port):
    """A socket on which 2.1 is spoken."""
    with contextlib.closing(socket.create_connection(("127.0.0.1", port), timeout=20)) as client:
        body = struct.pack("<HHHHI16sQH", 36, 1, 1, 0, 0, uuid.uuid4().bytes, 0, 0x0210)
        send(client, header(NEGOTIATE, 0) + body)
        assert receive(client) is not None
        yield client


def send(client, packet: bytes) -> None:
    client.sendall(struct.pack(">I", len(packet)) + packet)


def answer(client) -> bytes | None:
    with contextlib.suppress(OSError):
        return receive(client)
    return None


@pytest.mark.parametrize("message_id", [0, 5000, 2**32, 2**63, 2**64 - 2])
def test_numbers_that_were_not_granted_end_the_connection(port, message_id):
    with negotiated(port) as client:
        send(client, header(Commands.SMB2_ECHO, message_id) + ECHO)
        assert answer(client) is None


def test_a_number_is_good_once(port):
    with negotiated(port) as client:
        send(client, header(Commands.SMB2_ECHO, 1) + ECHO)
        assert answer(client) is not None
        send(client, header(Commands.SMB2_ECHO, 1) + ECHO)
        assert answer(client) is None


def test_a_charge_beyond_what_was_granted_ends_the_connection(port):
    with negotiated(port) as client:
        send(client, header(Commands.SMB2_ECHO, 1, charge=65535) + ECHO)
        assert answer(client) is None


def test_nobody_gets_credits_without_end(port):
    with negotiated(port) as client:
        granted = 1
        for message_id in range(1, 40):
            packet = bytearray(header(Commands.SMB2_ECHO, message_id) + ECHO)
            struct.pack_into("<H", packet, 14, 65535)
            send(client, bytes(packet))
            granted += struct.unpack_from("<H", answer(client), 14)[0] - 1
        assert granted <= 8192


# --- invalid compounds


def echo_chain(*next_commands: int, flags=0) -> bytes:
    parts = [header(Commands.SMB2_ECHO, 1 + at, next_command=next_, flags=flags) + ECHO for at, next_ in enumerate(next_commands)]
    return b"".join(part.ljust(72, b"\0") for part in parts)


@pytest.mark.parametrize(
    "packet",
    [
        echo_chain(72, 72),
        echo_chain(73, 0),
        echo_chain(8, 0),
        echo_chain(64, 0),
        echo_chain(1, 0),
        echo_chain(2**32 - 8, 0),
        echo_chain(2**31, 0),
        echo_chain(0, flags=4),
        echo_chain(72, 0)[:100],
        echo_chain(0)[:63],
        echo_chain(72) + b"\xffSMB" + bytes(64),
        echo_chain(72) + b"\xfdSMB" + bytes(64),
        b"\xfdSMB" + bytes(48),
        b"\xfcSMB" + bytes(48),
        b"\xfeSMB",
        b"",
    ],
)
def test_a_compound_without_sense_hurts_nobody_else(port, packet):
    with negotiated(port) as client:
        send(client, packet)
        came = answer(client)
        assert came is None or came[:4] == b"\xfeSMB"


def test_a_chain_of_thousands_is_bounded(port):
    with negotiated(port) as client:
        send(client, echo_chain(*[72] * 5000, 0))
        assert answer(client) is None


def test_a_length_beyond_all_measure_ends_the_connection(port):
    with negotiated(port) as client:
        client.sendall(struct.pack(">I", 0x00FFFFFF) + b"\xfeSMB")
        client.shutdown(socket.SHUT_WR)
        assert answer(client) is None


# --- resources of others


@contextlib.contextmanager
def tree_of(port, **logon):
    with logged_on(port, **logon) as session:
        tree = TreeConnect(session, rf"\\127.0.0.1\{SHARES[0]}")
        tree.connect()
        yield tree


def read_by(tree, file_id: bytes, tree_id: int | None = None, session_id: int | None = None):
    request = SMB2ReadRequest()
    request["length"], request["file_id"] = 1, file_id
    connection = tree.session.connection
    sent = connection.send(request, session_id or tree.session.session_id, tree_id or tree.tree_connect_id)
    return connection.receive(sent)


def test_a_handle_of_another_session_is_closed_to_this_one(port):
    with tree_of(port) as own, tree_of(port) as other:
        file = opened(own, "handle")
        file.write(b"abc")
        with pytest.raises(FileClosed):
            read_by(other, file.file_id)
        assert file.read(0, 3) == b"abc"


def test_a_handle_on_one_tree_is_not_one_on_another(port):
    with tree_of(port) as own:
        file = opened(own, "tree")
        second = TreeConnect(own.session, rf"\\127.0.0.1\{SHARES[1]}")
        second.connect()
        with pytest.raises(SMBResponseException):
            read_by(second, file.file_id)


def test_a_session_of_another_connection_is_not_there(port):
    with tree_of(port) as own, tree_of(port) as other:
        connection = other.session.connection
        connection.session_table[own.session.session_id] = own.session
        file = opened(own, "session")
        with pytest.raises(SMBException):
            read_by(other, file.file_id, own.tree_connect_id, own.session.session_id)
        connection.session_table.pop(own.session.session_id)
        assert own.session.connection.echo(sid=own.session.session_id) >= 1


def lock(tree, file, flags: int) -> None:
    element = SMB2LockElement()
    element["offset"], element["length"], element["flags"] = 0, 10, flags
    request = SMB2LockRequest()
    request["file_id"], request["locks"] = file.file_id, [element]
    connection = tree.session.connection
    connection.receive(connection.send(request, tree.session.session_id, tree.tree_connect_id))


def test_a_lock_of_another_session_stays(port):
    with tree_of(port) as own, tree_of(port) as other:
        held, strange = opened(own, "lock"), opened(other, "lock")
        lock(own, held, 2 | 16)
        with pytest.raises(SMBResponseException, match="0xc000007e"):
            lock(other, strange, 4)
        with pytest.raises(SMBResponseException):
            lock(other, strange, 2 | 16)
        with pytest.raises(SMBResponseException):
            strange.write(b"x")
        # Nor by naming the handle that has it.
        strange_id, strange._file_id = strange.file_id, held.file_id
        with pytest.raises(FileClosed):
            lock(other, held, 4)
        strange._file_id = strange_id
        held.write(b"y")


def test_a_name_does_not_lead_out_of_its_share(port):
    with tree_of(port) as own:
        for name in (r"..\beta\x", r"a\..\..\x", r"\\127.0.0.1\beta\x", "..", r".\..", "a/../../x"):
            with pytest.raises(SMBResponseException):
                opened(own, name)


# --- one list of keys


def test_both_protocols_let_in_the_same_callers():
    """SMB and REST are tried with the same pairs of names and keys."""
    callers = [
        (ACCOUNT, FIRST_KEY, True),
        (ACCOUNT, SECOND_KEY, True),
        (ACCOUNT, "d3Jvbmc=", False),
        (OTHER_ACCOUNT, FIRST_KEY, False),
        ("third", "dGhpcmQ=", True),
        ("third", FIRST_KEY, False),
        ("stranger", FIRST_KEY, False),
    ]
    settings = ["--account=third:dGhpcmQ=", "--disabled-account", OTHER_ACCOUNT]
    with file_and_smb_ports(*settings) as (file_port, port):
        for name, key, allowed in callers:
            assert lets_in_by_rest(file_port, name, key) == allowed, (name, key)
            assert lets_in_by_smb(port, name, key) == allowed, (name, key)


def lets_in_by_rest(port, name, key) -> bool:
    credential = {"account_name": name, "account_key": key}
    with ShareServiceClient(f"http://127.0.0.1:{port}/{name}", credential=credential, retry_total=0) as service:
        try:
            list(service.list_shares())
        except HttpResponseError as error:
            assert error.status_code in (403, 404)
            return False
    return True


def lets_in_by_smb(port, name, key) -> bool:
    connection = Connection(uuid.uuid4(), "127.0.0.1", port)
    connection.connect()
    try:
        Session(connection, name, key, require_encryption=False).connect()
    except LogonFailure:
        return False
    finally:
        connection.disconnect(False)
    return True
