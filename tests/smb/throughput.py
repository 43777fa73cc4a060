"""Compares the throughput of Holdfast with that of Debian's smbd: one disk, one run, by turns, by smbclient.

    .local/python/bin/python tests/smb/throughput.py --program target/dist/holdfast --folder /var/tmp/smb

Big: one file put and got over a connection that is plain, signed or encrypted, in MiB a second.
Small: files of 4 KiB over several connections at once, each operation in operations a second.
Every figure is the median of the rounds.
"""

import argparse
import contextlib
import pathlib
import statistics
import subprocess
import tempfile
import time

import servers

PROTECTIONS = {
    "plain": ["--option=client signing=off", "--client-protection=off"],
    "signed": ["--client-protection=sign"],
    "encrypted": ["--client-protection=encrypt"],
}
SHARE = "bench"


def smbclient(server: servers.Server, protection: list[str], commands: list[str], folder: pathlib.Path) -> subprocess.Popen:
    command = ["smbclient", f"//127.0.0.1/{SHARE}", *server.arguments(), "-m", "SMB3_11", *protection, "-q"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                               text=True, cwd=folder)
    process.stdin.write("\n".join([*commands, "exit"]) + "\n")
    process.stdin.close()
    return process


def finish(processes: list[subprocess.Popen]) -> None:
    for process in processes:
        complaint = process.stderr.read()
        if process.wait() != 0 or "NT_STATUS" in complaint:
            raise RuntimeError(f"smbclient failed: {complaint}")


def seconds(server, protection, scripts: list[list[str]], folder) -> float:
    began = time.monotonic()
    finish([smbclient(server, protection, script, folder) for script in scripts])
    return time.monotonic() - began


def big(server, protection, folder, mebibytes) -> dict[str, float]:
    put = seconds(server, protection, [["put big big"]], folder)
    get = seconds(server, protection, [["get big /dev/null"]], folder)
    seconds(server, protection, [["rm big"]], folder)
    return {"put": mebibytes / put, "get": mebibytes / get}


def small(server, folder, connections, files) -> dict[str, float]:
    names = [[f"{connection}-{number}" for number in range(files)] for connection in range(connections)]
    steps = {
        "write": "put small {0}",
        "stat": "allinfo {0}",
        "read": "get {0} /dev/null",
        "delete": "rm {0}",
    }
    rates = {}
    for step, command in steps.items():
        scripts = [[command.format(name) for name in own] for own in names]
        rates[step] = connections * files / seconds(server, PROTECTIONS["plain"], scripts, folder)
    return rates


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=pathlib.Path, required=True)
    parser.add_argument("--folder", type=pathlib.Path, required=True, help="on the disk to be measured")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--mebibytes", type=int, default=1024)
    parser.add_argument("--connections", type=int, default=8)
    parser.add_argument("--files", type=int, default=250, help="for each connection")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    results: dict[tuple[str, str], list[float]] = {}
    with contextlib.ExitStack() as stack:
        folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(dir=options.folder)))
        with open(folder / "big", "wb") as file:
            for chunk in range(options.mebibytes):
                file.write(chunk.to_bytes(4, "big") * 262144)
        (folder / "small").write_bytes(bytes(range(256)) * 16)
        (folder / "smbd").mkdir()
        peers = {
            "holdfast": stack.enter_context(servers.holdfast(options.program, [SHARE], folder / "data")),
            "smbd": stack.enter_context(servers.smbd([SHARE], folder / "smbd")),
        }
        for _ in range(options.rounds):
            for protection, arguments in PROTECTIONS.items():
                for peer, server in peers.items():
                    for step, rate in big(server, arguments, folder, options.mebibytes).items():
                        results.setdefault((f"{step}, {protection}, MiB/s", peer), []).append(rate)
            for peer, server in peers.items():
                for step, rate in small(server, folder, options.connections, options.files).items():
                    results.setdefault((f"{step} 4 KiB, {options.connections} connections, 1/s", peer), []).append(rate)
    print("| | holdfast | smbd | ratio |\n|---|---|---|---|")
    for what in dict.fromkeys(what for what, _ in results):
        own, other = (statistics.median(results[what, peer]) for peer in ("holdfast", "smbd"))
        print(f"| {what} | {own:.0f} | {other:.0f} | {own / other:.2f} |")


if __name__ == "__main__":
    main()
