"""The server as a child process: started on free ports, watched with a time limit, ended by its process id.

Only the standard library is imported: scripts of several Python environments use this. Under pytest the folder
is on the path by `pytest.ini`; a script puts it there itself.
"""

import contextlib
import os
import pathlib
import re
import subprocess
import threading
import urllib.parse

# The default account of a server.
ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="

# Services with an endpoint in connection strings.
SERVICES = ("blob", "queue", "table", "file")
LISTENERS = (*SERVICES, "smb", "web", "admin")

# Far more than a start and an orderly end take, so that only a process that hangs exceeds it.
READY_SECONDS_MAX = 60
STOP_SECONDS_MAX = 30


class ServerProcess:
    """A server that accepts connections from the moment this exists. A `with` block ends it."""

    def __init__(self, program, *settings: str, listening=SERVICES, log_file: pathlib.Path | None = None):
        """Every listener of `listening` gets a free port, the others are off; with None the settings say it all.
        The log is appended to `log_file`. Without one it goes to standard error, where pytest shows it beside a
        test that fails."""
        self.program, self.settings, self.log_file = program, settings, log_file
        # What the port flags say. After the first start these are numbers, so that a restart has the same.
        self.ports: dict[str, int | str] = {}
        if listening is not None:
            self.ports = {name: 0 if name in listening else "off" for name in LISTENERS}
        # From the name of a listener to `scheme://host:port`.
        self.addresses: dict[str, str] = {}
        self.start()

    def start(self) -> None:
        """Again on the same ports, if it has run before."""
        flags = [f"--{name}-port={port}" for name, port in self.ports.items()]
        with open(self.log_file, "ab") if self.log_file else contextlib.nullcontext() as log:
            self.process = subprocess.Popen(
                [self.program, *self.settings, *flags],
                env=environment(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        self.addresses = dict(re.findall(r"\b(\w+)=(\S+)", self.ready_line()))
        self.ports |= {name: urllib.parse.urlsplit(url).port for name, url in self.addresses.items()}

    def ready_line(self) -> str:
        # At the limit the process is killed, which ends its output.
        limit = threading.Timer(READY_SECONDS_MAX, self.process.kill)
        limit.start()
        try:
            for line in self.process.stdout:
                if line.startswith("ready "):
                    return line
        finally:
            limit.cancel()
        self.kill()
        log = self.log_file.read_text() if self.log_file else "its log is on standard error"
        raise RuntimeError(f"the server did not become ready: {log}")

    def connection_string(self, account: str = ACCOUNT, key: str = KEY) -> str:
        services = [name for name in SERVICES if name in self.addresses]
        return connection_string({name: self.addresses[name] for name in services}, account, key)

    def memory_kib(self, field: str = "VmRSS") -> int:
        return memory_kib(self.process.pid, field)

    def stop(self) -> None:
        stop(self.process)

    def kill(self) -> None:
        """SIGKILL: no handler runs, nothing is flushed."""
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def restart(self) -> None:
        self.kill()
        self.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


def environment() -> dict[str, str]:
    """The environment of this process, without settings of a server."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("HOLDFAST_", "AZURITE_"))}


def connection_string(addresses: dict[str, str], account: str = ACCOUNT, key: str = KEY) -> str:
    """For the services of these addresses, of which each is `scheme://host:port`."""
    parts = {
        "DefaultEndpointsProtocol": next(iter(addresses.values())).split(":")[0],
        "AccountName": account,
        "AccountKey": key,
    }
    parts |= {f"{service.capitalize()}Endpoint": f"{address}/{account}" for service, address in addresses.items()}
    return "".join(f"{name}={value};" for name, value in parts.items())


def memory_kib(pid: int | str, field: str = "VmRSS") -> int:
    """A value from the status of a process; `VmHWM` is the peak of `VmRSS`."""
    text = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(re.search(rf"{field}:\s+(\d+) kB", text).group(1))


def stop(process: subprocess.Popen) -> None:
    """SIGTERM. A process that runs on for too long is killed, and that is an error."""
    process.terminate()
    try:
        process.wait(STOP_SECONDS_MAX)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        raise
    finally:
        if process.stdout:
            process.stdout.close()
