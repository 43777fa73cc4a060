"""One file held open by SMB, read and written as lines on standard input say.

    read                    answers: read CONTENT-IN-HEXADECIMAL
    write OFFSET HEX        answers: written
    either                  answers: refused NAME-OF-STATUS

The address of the server is in CONFORMANCE_SMB_ENDPOINT, the key of the account in ACCOUNT_KEY.
"""

import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "conformance/python"))

from smbprotocol.exceptions import SMBResponseException
from smbprotocol.header import NtStatus

import smb_support as smb

LENGTH = 2048


class File:
    def __init__(self, share: str, name: str, account: str):
        self.tree = smb.Tree(share, account, os.environ["ACCOUNT_KEY"])
        self.name = name
        self.opened = None

    def do(self, words: list[str]) -> str:
        if self.opened is None:
            self.opened = self.tree.open(self.name, smb.READ | smb.WRITE)
        if words[0] == "read":
            return "read " + self.opened.read(0, LENGTH).hex()
        self.opened.write(bytes.fromhex(words[2]), int(words[1]))
        return "written"


def main() -> None:
    file = File(*sys.argv[1:])
    for line in sys.stdin:
        try:
            answer = file.do(line.split())
        except SMBResponseException as refused:
            names = {value: name for name, value in vars(NtStatus).items() if isinstance(value, int)}
            answer = "refused " + names.get(refused.status, hex(refused.status))
        print(answer, flush=True)


if __name__ == "__main__":
    main()
