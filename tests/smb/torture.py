"""Runs tests of smbtorture (Debian package samba-testsuite), each in a process of its own.

Without arguments: every test of `passing.txt`, and the exit status tells whether all passed. With `--all`: every
test of `expected.txt`, which is what smbd passes; `--write` keeps the result as the new `passing.txt`. Many tests
measure times: one that fails beside others is run once more alone, and has failed if it fails then.
"""

import argparse
import concurrent.futures
import os
import pathlib
import queue
import subprocess
import sys
import tempfile
import time

import servers

FOLDER = pathlib.Path(__file__).parent
ROOT = FOLDER.parent.parent
WORKERS = 6
TEST_SECONDS = 120


def listed(name: str) -> list[str]:
    lines = (FOLDER / name).read_text().splitlines()
    return [line.split("#")[0].strip() for line in lines if line.split("#")[0].strip()]


def run(server: servers.Server, share: str, test: str) -> tuple[bool, str]:
    command = ["smbtorture", f"//127.0.0.1/{share}", *server.arguments(), "--option=torture:progress=no", test]
    try:
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=TEST_SECONDS,
                                  cwd=folder)
    except subprocess.TimeoutExpired as expired:
        output = expired.stdout or b""
        return False, (output.decode(errors="replace") if isinstance(output, bytes) else output) + "\ntimed out"
    output = done.stdout + done.stderr
    return done.returncode == 0 and "success:" in output, output


def run_all(server: servers.Server, shares: list[str], tests: list[str], verbose: bool) -> dict[str, bool]:
    """Each worker has a share of its own, so that tests with the same names of files do not meet."""
    idle: queue.Queue[str] = queue.Queue()
    for share in shares:
        idle.put(share)

    def one(test: str) -> bool:
        share = idle.get()
        began = time.monotonic()
        try:
            passed, output = run(server, share, test)
        finally:
            idle.put(share)
        print(f"{'ok    ' if passed else 'FAILED'} {test} ({time.monotonic() - began:.1f} s)", flush=True)
        if verbose and not passed:
            print("\n".join(f"    {line}" for line in output.splitlines()[-12:]), flush=True)
        return passed

    with concurrent.futures.ThreadPoolExecutor(len(shares)) as pool:
        return dict(zip(tests, pool.map(one, tests)))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", type=pathlib.Path,
                        default=pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "debug/holdfast")
    parser.add_argument("--all", action="store_true", help="everything that smbd passes")
    parser.add_argument("--write", action="store_true", help="keep what passed as passing.txt")
    parser.add_argument("--verbose", action="store_true", help="show the end of what failed tests say")
    parser.add_argument("--smbd", action="store_true", help="run against Debian's smbd instead")
    parser.add_argument("--folder", action="store_true", help="keep data in a folder, for persistent handles")
    parser.add_argument("--workers", type=int, default=WORKERS)
    parser.add_argument("tests", nargs="*", help="tests, or groups of them, instead of the list")
    options = parser.parse_args()

    tests = listed("expected.txt") if options.all or options.tests else listed("passing.txt")
    if options.tests:
        tests = [test for test in tests if any(test == name or test.startswith(f"{name}.") for name in options.tests)]
        tests += [name for name in options.tests if not any(test == name or test.startswith(f"{name}.") for test in tests)]
    shares = [f"torture-{worker}" for worker in range(options.workers)]
    with tempfile.TemporaryDirectory() as folder:
        start = servers.smbd(shares, pathlib.Path(folder)) if options.smbd else servers.holdfast(
            options.program, shares, data=pathlib.Path(folder) / "data" if options.folder else None,
            options=("--smb-access-lists", "enforced"))
        with start as server:
            results = run_all(server, shares, tests, options.verbose)
            again = [test for test, passed in results.items() if not passed]
            if not options.all:
                results |= run_all(server, shares[:1], again, options.verbose)
    failed = [test for test, passed in results.items() if not passed]
    print(f"{len(results) - len(failed)} of {len(results)} passed")
    for test in failed:
        print(f"  failed: {test}")
    if options.write:
        passed = sorted(test for test, passed in results.items() if passed)
        (FOLDER / "passing.txt").write_text("".join(f"{test}\n" for test in passed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
