"""Logging on by SMB: every dialect, signature and cipher, right and wrong keys, and the list of shares.

By smbclient (Debian) and by the package smbprotocol, against servers that the tests start themselves.
"""

import contextlib
import re
import subprocess
import uuid

import pytest
from azure.storage.fileshare import ShareServiceClient
from own_server import own_program
from server_process import ServerProcess
from smbprotocol.connection import Ciphers, Connection, Dialects
from smbprotocol.exceptions import AccessDenied, LogonFailure, SMBException
from smbprotocol.open import CreateDisposition, CreateOptions, ImpersonationLevel, Open
from smbprotocol.session import Session
from smbprotocol.tree import TreeConnect
from smb_support import READ, SHARE_ALL, WRITE

FIRST_KEY, SECOND_KEY = "Zmlyc3Qga2V5", "c2Vjb25kIGtleQ=="
ACCOUNT, OTHER_ACCOUNT = "someone", "another"
SHARES = ["alpha", "beta"]
DIALECTS = [
    Dialects.SMB_2_0_2,
    Dialects.SMB_2_1_0,
    Dialects.SMB_3_0_0,
    Dialects.SMB_3_0_2,
    Dialects.SMB_3_1_1,
]
ENCRYPTING = DIALECTS[2:]
CIPHERS = [Ciphers.AES_128_CCM, Ciphers.AES_128_GCM, Ciphers.AES_256_CCM, Ciphers.AES_256_GCM]


@contextlib.contextmanager
def file_and_smb_ports(*settings: str, shares=SHARES, permissions=None):
    """The ports of a new server with these shares of ACCOUNT, and files in them with these permissions."""
    accounts = [f"--account={ACCOUNT}:{FIRST_KEY}:{SECOND_KEY}", f"--account={OTHER_ACCOUNT}:{FIRST_KEY}"]
    settings = ("--memory", "--log=warn", *accounts, *settings)
    with ServerProcess(own_program(), *settings, listening=["file", "smb"]) as server:
        connection = server.connection_string(ACCOUNT, FIRST_KEY)
        with ShareServiceClient.from_connection_string(connection, retry_total=0) as service:
            for share in shares:
                client = service.create_share(share)
                for name, permission in (permissions or {}).items():
                    client.get_file_client(name).create_file(0, file_permission=permission)
        yield server.ports["file"], server.ports["smb"]


@contextlib.contextmanager
def smb_server(*settings: str, **contents):
    """The SMB port of such a server."""
    with file_and_smb_ports(*settings, **contents) as (_, port):
        yield port


@pytest.fixture(scope="module")
def port():
    with smb_server() as port:
        yield port


@contextlib.contextmanager
def logged_on(port, dialect=None, user=ACCOUNT, password=FIRST_KEY, encrypts=False, ciphers=None, signs=True):
    connection = Connection(uuid.uuid4(), "127.0.0.1", port, require_signing=signs)
    connection.connect(dialect, preferred_encryption_algos=ciphers)
    try:
        session = Session(connection, user, password, require_encryption=encrypts)
        session.connect()
        yield session
    finally:
        connection.disconnect(False)


@pytest.mark.parametrize("signs", [True, False], ids=["signed", "plain"])
@pytest.mark.parametrize("dialect", DIALECTS, ids=hex)
def test_every_dialect_logs_on_and_connects(port, dialect, signs):
    with logged_on(port, dialect, signs=signs) as session:
        assert session.connection.dialect == dialect
        tree = TreeConnect(session, r"\\127.0.0.1\ALPHA")
        tree.connect()
        assert session.connection.echo(sid=session.session_id) >= 1
        tree.disconnect()
        session.disconnect()


@pytest.mark.parametrize("dialect", ENCRYPTING, ids=hex)
def test_smb_3_encrypts_when_asked(port, dialect):
    with logged_on(port, dialect, encrypts=True) as session:
        assert session.encrypt_data
        TreeConnect(session, rf"\\127.0.0.1\{SHARES[0]}").connect()


@pytest.mark.parametrize("cipher", CIPHERS)
def test_every_cipher_encrypts(port, cipher):
    with logged_on(port, encrypts=True, ciphers=[cipher]) as session:
        assert session.connection.cipher_id == cipher
        TreeConnect(session, rf"\\127.0.0.1\{SHARES[0]}").connect()


@pytest.mark.parametrize("user", [ACCOUNT, ACCOUNT.upper(), rf"ANY\{ACCOUNT}"])
@pytest.mark.parametrize("key", [FIRST_KEY, SECOND_KEY])
def test_either_key_and_any_domain_logs_on(port, user, key):
    with logged_on(port, user=user, password=key) as session:
        TreeConnect(session, rf"\\127.0.0.1\{SHARES[0]}").connect()


@pytest.mark.parametrize(
    "user, password",
    [(ACCOUNT, "d3Jvbmc="), (ACCOUNT, ""), (OTHER_ACCOUNT, SECOND_KEY), ("stranger", FIRST_KEY)],
)
def test_a_wrong_key_is_refused(port, user, password):
    with pytest.raises(LogonFailure), logged_on(port, user=user, password=password):
        pass


def test_an_account_has_its_own_shares_only(port):
    with logged_on(port, user=OTHER_ACCOUNT) as session, pytest.raises(SMBException, match="BAD_NETWORK_NAME"):
        TreeConnect(session, rf"\\127.0.0.1\{SHARES[0]}").connect()


def test_sessions_of_two_connections_do_not_disturb_each_other(port):
    with logged_on(port) as first:
        with logged_on(port) as second:
            assert first.session_id != second.session_id
            TreeConnect(second, rf"\\127.0.0.1\{SHARES[1]}").connect()
        TreeConnect(first, rf"\\127.0.0.1\{SHARES[0]}").connect()


def test_required_encryption_refuses_what_is_plain():
    with smb_server("--smb-encryption", "required") as port:
        with logged_on(port, Dialects.SMB_3_1_1) as session:
            assert session.encrypt_data
            TreeConnect(session, rf"\\127.0.0.1\{SHARES[0]}").connect()
        with pytest.raises(AccessDenied), logged_on(port, Dialects.SMB_2_1_0):
            pass


def test_required_signing_is_told_to_the_client():
    with smb_server("--smb-signing", "required") as port, logged_on(port, signs=False) as session:
        assert session.signing_required
        TreeConnect(session, rf"\\127.0.0.1\{SHARES[0]}").connect()


@pytest.mark.parametrize("lists, is_kept_out", [("ignored", False), ("enforced", True)])
def test_access_lists_keep_out_only_where_they_are_enforced(lists, is_kept_out):
    permissions = {"read only.txt": "O:SYG:SYD:(A;;FR;;;WD)", "open.txt": "O:SYG:SYD:(A;;FA;;;WD)"}
    with smb_server("--smb-access-lists", lists, permissions=permissions) as port, logged_on(port) as session:
        tree = TreeConnect(session, rf"\\127.0.0.1\{SHARES[0]}")
        tree.connect()

        def open_for(access, name):
            Open(tree, name).create(ImpersonationLevel.Impersonation, access, 0, SHARE_ALL,
                                    CreateDisposition.FILE_OPEN, CreateOptions.FILE_NON_DIRECTORY_FILE)

        open_for(READ, "read only.txt")
        open_for(WRITE, "open.txt")
        with pytest.raises(AccessDenied) if is_kept_out else contextlib.nullcontext():
            open_for(WRITE, "read only.txt")


def test_a_disabled_account_cannot_log_on():
    with smb_server("--disabled-account", OTHER_ACCOUNT) as port:
        with pytest.raises(LogonFailure), logged_on(port, user=OTHER_ACCOUNT):
            pass


def smbclient(port, *arguments, user=ACCOUNT, password=FIRST_KEY):
    command = ["smbclient", "-p", str(port), "-U", f"{user}%{password}", "-g", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    return done.stdout + done.stderr


@pytest.mark.parametrize("protection", ["sign", "encrypt", "off"])
@pytest.mark.parametrize("protocol", ["SMB2_02", "SMB2_10", "SMB3_00", "SMB3_02", "SMB3_11"])
def test_smbclient_lists_the_shares_of_the_account(port, protocol, protection):
    if protection == "encrypt" and protocol.startswith("SMB2"):
        pytest.skip("SMB 2 does not encrypt")
    output = smbclient(port, "-L", "//127.0.0.1", "-m", protocol, f"--client-protection={protection}")
    listed = [line.split("|") for line in output.splitlines() if "|" in line]
    assert [name for kind, name, _ in listed if kind == "Disk"] == SHARES, output
    assert ["IPC", "IPC$"] in [line[:2] for line in listed]


@pytest.mark.parametrize("algorithm", ["AES-128-GMAC", "AES-128-CMAC", "HMAC-SHA256"])
def test_smbclient_signs_by_every_algorithm(port, algorithm):
    option = f"--option=client smb3 signing algorithms={algorithm}"
    output = smbclient(port, "-L", "//127.0.0.1", "--client-protection=sign", option)
    assert "Disk|alpha|" in output, output


def test_smbclient_begins_with_smb_1(port):
    output = smbclient(port, "-L", "//127.0.0.1", "--option=client min protocol=NT1")
    assert "Disk|alpha|" in output, output


@pytest.mark.parametrize("arguments", [("-N",), ("-U", "%"), ("-U", f"{ACCOUNT}%d3Jvbmc=")])
def test_smbclient_without_a_key_is_refused(port, arguments):
    command = ["smbclient", "-p", str(port), "-L", "//127.0.0.1", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert re.search("LOGON_FAILURE|ACCESS_DENIED", done.stdout + done.stderr)


def test_more_shares_are_listed_than_fit_one_answer():
    names = [f"share{number:04}" for number in range(1000)]
    with smb_server(shares=names) as port:
        output = smbclient(port, "-L", "//127.0.0.1")
        assert [line.split("|")[1] for line in output.splitlines() if line.startswith("Disk|")] == names
