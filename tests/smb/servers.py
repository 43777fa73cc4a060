"""Starts the servers for SMB clients: Holdfast, or Debian's smbd for comparison."""

import contextlib
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "harness"))

from server_process import ACCOUNT, KEY, ServerProcess, stop

READY_SECONDS = 20


@dataclass(frozen=True)
class Server:
    port: int
    user: str
    password: str

    def arguments(self) -> list[str]:
        """What every client of the Samba suite takes."""
        return ["-p", str(self.port), "-U", f"{self.user}%{self.password}"]


@contextlib.contextmanager
def holdfast(program: pathlib.Path, shares: list[str], data: pathlib.Path | None = None, options: tuple[str, ...] = ()):
    """The program on free ports, with these shares; in memory unless there is a folder."""
    # Imported here: runs against another server only need no SDK.
    from azure.storage.fileshare import ShareServiceClient

    settings = ["--data", str(data)] if data else ["--memory"]
    settings += ["--log=warn", *options]
    with tempfile.TemporaryDirectory() as folder:
        log = pathlib.Path(folder) / "log"
        with ServerProcess(program, *settings, listening=["file", "smb"], log_file=log) as process:
            service = ShareServiceClient.from_connection_string(process.connection_string())
            for share in shares:
                service.create_share(share)
            yield Server(process.ports["smb"], ACCOUNT, KEY)


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


@contextlib.contextmanager
def smbd(shares: list[str], folder: pathlib.Path):
    """Debian's smbd with its own configuration in `folder`."""
    user, password, port = "root" if os.getuid() == 0 else os.environ["USER"], "password", free_port()
    sections = []
    for share in shares:
        (folder / share).mkdir(parents=True)
        sections.append(f"[{share}]\npath = {folder / share}\nread only = no\n")
    for name in ["private", "state"]:
        (folder / name).mkdir()
    configuration = folder / "smb.conf"
    state = folder / "state"
    configuration.write_text(
        f"[global]\nserver role = standalone server\nbind interfaces only = yes\ninterfaces = 127.0.0.1\n"
        f"smb ports = {port}\nprivate dir = {folder / 'private'}\nlock directory = {state}\n"
        f"state directory = {state}\ncache directory = {state}\npid directory = {state}\nncalrpc dir = {state}\n"
        f"log file = {folder / 'log'}\nload printers = no\ndisable spoolss = yes\n"
        f"kernel oplocks = no\nkernel share modes = no\ndurable handles = yes\nposix locking = no\n"
        f"server min protocol = SMB2_10\n" + "".join(sections))
    subprocess.run(["smbpasswd", "-c", configuration, "-s", "-a", user], input=f"{password}\n{password}\n",
                   text=True, check=True, stdout=subprocess.DEVNULL)
    process = subprocess.Popen(["smbd", "--foreground", "--no-process-group", "-s", configuration],
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                               # When it is stopped, smbd stops its whole group.
                               start_new_session=True)
    try:
        deadline = time.monotonic() + READY_SECONDS
        while True:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            if time.monotonic() > deadline:
                raise RuntimeError("smbd does not listen")
            time.sleep(0.1)
        yield Server(port, user, password)
    finally:
        stop(process)
