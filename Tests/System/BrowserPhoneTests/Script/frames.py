"""The server's side of a WebSocket (RFC 6455): text messages, ping and close, without extensions."""

import base64
import hashlib
import socket
import struct
import threading

# RFC 6455, 1.3: the server shows with it that it speaks this protocol.
GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
CONTINUATION, TEXT, CLOSE, PING, PONG = 0x0, 0x1, 0x8, 0x9, 0xA


def accept(key):
    """The value of Sec-WebSocket-Accept for the client's key."""
    return base64.b64encode(hashlib.sha1(key.encode() + GUID).digest()).decode()


class Frames:
    """Messages over a connection whose handshake is over. One thread receives; any thread may send."""

    def __init__(self, reader, connection):
        self.reader, self.connection = reader, connection
        self.lock = threading.Lock()

    def exactly(self, count):
        data = self.reader.read(count)
        if len(data) < count:
            raise EOFError
        return data

    def frame(self):
        first, second = self.exactly(2)
        assert first & 0x70 == 0, "an extension that was not agreed on"
        assert second & 0x80, "a client masks its frames"
        length = second & 0x7F
        if length >= 126:
            length = int.from_bytes(self.exactly(2 if length == 126 else 8), "big")
        mask = self.exactly(4)
        data = bytes(byte ^ mask[at % 4] for at, byte in enumerate(self.exactly(length)))
        return bool(first & 0x80), first & 0x0F, data

    def receive(self):
        """The next text; None if the client has closed the connection."""
        message = b""
        while True:
            try:
                is_last, kind, data = self.frame()
            except (EOFError, OSError):
                return None
            if kind == CLOSE:
                self.write(CLOSE, data[:2])
                return None
            if kind == PING:
                self.write(PONG, data)
            elif kind in (TEXT, CONTINUATION):
                message += data
                if is_last:
                    return message.decode()
            else:
                assert kind == PONG, f"a frame of the kind {kind}"

    def send(self, text):
        self.write(TEXT, text.encode())

    def abort(self):
        """Ends the connection without a word, as a network does."""
        self.connection.shutdown(socket.SHUT_RDWR)

    def write(self, kind, data):
        length = bytes([len(data)]) if len(data) < 126 else struct.pack("!BH", 126, len(data))
        assert len(data) < 1 << 16
        with self.lock:
            try:
                self.connection.sendall(bytes([0x80 | kind]) + length + data)
            except OSError:
                # The client is gone; the thread that receives learns it, too.
                pass
