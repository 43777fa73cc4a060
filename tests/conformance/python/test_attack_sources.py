"""Sources of copies that would make the server contact hosts that only it can reach: addresses that were not
allowed, redirections to them, and names that lead there. Nothing there is ever asked, not even whether it is
there."""

import contextlib

import pytest
from copy_source import copy_source
from own_server import own_server
from support import Account, Raw

SECRET = b"what only the server can reach"
PAGE = {"x-ms-range": "bytes=0-511", "x-ms-source-range": "bytes=0-511"}
COPIES = {
    "Copy Blob": ("Blob", "", {}),
    "Copy Blob From URL": ("Blob", "", {"x-ms-requires-sync": "true"}),
    "Put Blob From URL": ("Blob", "", {"x-ms-blob-type": "BlockBlob"}),
    "Put Block From URL": ("Blob", "comp=block&blockid=AAAA", {}),
    "Append Block From URL": ("Blob", "comp=appendblock", {}),
    "Put Page From URL": ("Blob", "comp=page", {"x-ms-page-write": "update", **PAGE}),
    "Copy File": ("File", "", {}),
    "Put Range From URL": ("File", "comp=range", {"x-ms-write": "update", **PAGE}),
}


class Site:
    """A server, a host that its copies may read from, and one that they may not."""

    def __init__(self, connection: str, allowed, allowed_host: str, hidden, hidden_host: str):
        self.connection = connection
        self.allowed, self.allowed_host = allowed, allowed_host
        self.hidden, self.hidden_host = hidden, hidden_host

    def raw(self, service: str) -> Raw:
        return Raw(Account.of(self.connection, service))

    def copy(self, name: str, url: str):
        service, query, headers = COPIES[name]
        return self.raw(service).send("PUT", target_of(name), query, {**headers, "x-ms-copy-source": url})

    def prepare(self, name: str) -> None:
        """The destinations of some of the operations must exist."""
        made = {
            "Append Block From URL": ("Blob", {"x-ms-blob-type": "AppendBlob"}),
            "Put Page From URL": ("Blob", {"x-ms-blob-type": "PageBlob", "x-ms-blob-content-length": "512"}),
            "Put Range From URL": ("File", {"x-ms-type": "file", "x-ms-content-length": "512"}),
        }
        if name in made:
            service, headers = made[name]
            assert self.raw(service).send("PUT", target_of(name), headers=headers).status == 201


def target_of(name: str) -> str:
    return f"/sources/{name.replace(' ', '-')}"


@contextlib.contextmanager
def site(*patterns: str):
    """`patterns` with {allowed} and {hidden} for the ports of the two hosts."""
    with copy_source() as (allowed, allowed_host), copy_source() as (hidden, hidden_host):
        allowed.serve("/open", b"o" * 512, Last_Modified="Sat, 01 Jun 2024 12:00:00 GMT")
        hidden.serve("/secret", SECRET.ljust(512), Last_Modified="Sat, 01 Jun 2024 12:00:00 GMT")
        ports = {"allowed": allowed_host.split(":")[1], "hidden": hidden_host.split(":")[1]}
        settings = [f"--copy-source-host={pattern.format(**ports)}" for pattern in patterns]
        with own_server(*settings) as connection:
            made = Site(connection, allowed, allowed_host, hidden, hidden_host)
            assert made.raw("Blob").send("PUT", "/sources", "restype=container").status == 201
            assert made.raw("File").send("PUT", "/sources", "restype=share").status == 201
            yield made


@pytest.fixture(scope="module")
def only_one():
    with site("127.0.0.1:{allowed}") as made:
        yield made


@pytest.fixture(scope="module")
def any_name():
    """All hosts are allowed, at every port that the tests use: but not private addresses."""
    with site("*:{allowed}", "*:{hidden}", "*") as made:
        yield made


def assert_refused(made: Site, name: str, url: str) -> None:
    made.hidden.asked.clear()
    made.prepare(name)
    answer = made.copy(name, url)
    # The service's own words for a source that cannot be read, whose status is documented as 500.
    told = answer.status < 500 or answer.code == "CannotVerifyCopySource"
    assert answer.status >= 400 and told, (name, url, answer.status, answer.body)
    assert made.hidden.asked == [], (name, url)
    assert SECRET not in answer.body


@pytest.mark.parametrize("name", COPIES)
def test_a_host_that_is_allowed_is_read(only_one, name):
    only_one.prepare(name)
    answer = only_one.copy(name, f"http://{only_one.allowed_host}/open")
    assert answer.status in (201, 202), (answer.status, answer.body)


@pytest.mark.parametrize("name", COPIES)
def test_a_host_that_is_not_allowed_is_not_asked(only_one, name):
    port = only_one.hidden_host.split(":")[1]
    allowed_port = only_one.allowed_host.split(":")[1]
    for authority in (
        only_one.hidden_host,
        f"localhost:{port}",
        f"LOCALHOST.:{port}",
        f"[::ffff:127.0.0.1]:{port}",
        f"0.0.0.0:{port}",
        f"127.1:{port}",
        f"0x7f000001:{port}",
        f"2130706433:{port}",
        f"0177.0.0.1:{port}",
        f"127.0.0.1:{allowed_port}@127.0.0.1:{port}",
        f"{only_one.hidden_host}#@{only_one.allowed_host}",
        f"{only_one.hidden_host}\\@{only_one.allowed_host}",
        f"a:b@{only_one.hidden_host}",
    ):
        assert_refused(only_one, name, f"http://{authority}/secret")


@pytest.mark.parametrize("name", COPIES)
def test_a_redirection_is_held_to_the_same_rules(only_one, name):
    for location in (
        f"http://{only_one.hidden_host}/secret",
        f"//{only_one.hidden_host}/secret",
        f"http://localhost:{only_one.hidden_host.split(':')[1]}/secret",
        "http://169.254.169.254/latest/meta-data",
        "http://[fd00:ec2::254]/latest/meta-data",
        "file:///etc/passwd",
        "gopher://127.0.0.1/x",
    ):
        only_one.allowed.redirects["/away"] = location
        assert_refused(only_one, name, f"http://{only_one.allowed_host}/away")


@pytest.mark.parametrize("name", COPIES)
def test_a_redirection_in_a_circle_ends(only_one, name):
    only_one.allowed.redirects["/circle"] = "/circle"
    only_one.allowed.asked.clear()
    assert_refused(only_one, name, f"http://{only_one.allowed_host}/circle")
    assert len(only_one.allowed.asked) < 20


@pytest.mark.parametrize("name", COPIES)
def test_a_name_that_leads_to_the_machine_itself_is_not_asked(any_name, name):
    port = any_name.hidden_host.split(":")[1]
    for host in ("localhost", "localhost.", "127.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "127.0.0.2"):
        assert_refused(any_name, name, f"http://{host}:{port}/secret")
    for address in ("169.254.169.254", "[fe80::1]", "[fd00:ec2::254]", "10.0.0.1", "192.168.0.1", "[::]", "255.255.255.255", "224.0.0.1"):
        assert_refused(any_name, name, f"http://{address}/latest/meta-data")
