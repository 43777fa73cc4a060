"""A man in the middle of an SMB connection, who can change every packet on its way."""

import contextlib
import socket
import struct
import threading


class Relay:
    """Listens on `port` for a server on `target`. `change(packet, to_server)` returns what is sent on:
    the packet, another one, or None for nothing."""

    def __init__(self, target: int, change):
        self.target, self.change = target, change
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.sockets: list[socket.socket] = []
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                server = socket.create_connection(("127.0.0.1", self.target))
                self.sockets += [client, server]
                for source, sink, to_server in ((client, server, True), (server, client, False)):
                    threading.Thread(target=self.pass_on, args=(source, sink, to_server), daemon=True).start()

    def pass_on(self, source, sink, to_server):
        with contextlib.suppress(OSError):
            while (packet := receive(source)) is not None:
                if (changed := self.change(packet, to_server)) is not None:
                    sink.sendall(struct.pack(">I", len(changed)) + changed)
        with contextlib.suppress(OSError):
            sink.shutdown(socket.SHUT_WR)

    def close(self):
        for each in (self.listener, *self.sockets):
            each.close()


def receive(source: socket.socket) -> bytes | None:
    """The next packet; None at the end of the connection."""
    head = exactly(source, 4)
    return None if head is None else exactly(source, struct.unpack(">I", head)[0])


def exactly(source: socket.socket, length: int) -> bytes | None:
    received = b""
    while len(received) < length:
        if not (piece := source.recv(length - len(received))):
            return None
        received += piece
    return received


def command(packet: bytes) -> int:
    return struct.unpack_from("<H", packet, 12)[0] if packet[:4] == b"\xfeSMB" else -1


def flipped(packet: bytes, at: int) -> bytes:
    return packet[:at] + bytes([packet[at] ^ 1]) + packet[at + 1 :]
