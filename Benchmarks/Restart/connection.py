"""One HTTP/2 connection over TLS, as little as the load of Benchmarks/Restart/run needs.

The headers of a request are written once, and of an answer only the status is decoded: the connection allows the
server no table of headers. So a request costs some ten microseconds, and the load leaves the processor to the relay.
"""
import errno
import selectors
import socket
import ssl
import struct

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE = 0, 1, 3, 4, 6, 7, 8
END_STREAM, END_HEADERS, PADDED, PRIORITY, ACK = 1, 4, 8, 32, 1
REFUSED_STREAM = 7
# The streams that the relay allows a client.
STREAMS = 100
# Static table of RFC 7541, appendix A.
STATUSES = {0x88: 200, 0x89: 204, 0x8A: 206, 0x8B: 304, 0x8C: 400, 0x8D: 404, 0x8E: 500}
# Digits in the Huffman code of RFC 7541, appendix B.
DIGITS = {"00000": 0, "00001": 1, "00010": 2, "011001": 3, "011010": 4, "011011": 5, "011100": 6, "011101": 7,
          "011110": 8, "011111": 9}


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def text(value):
    return bytes([len(value)]) + value.encode()


def head(path, authority):
    """Returns the header block of a POST with a JSON body, of fields from the static table."""
    return (b"\x83\x87\x04" + text(path) + b"\x01" + text(authority) + b"\x0f\x10" + text("application/json"))


def status(block):
    """Returns the status, which is the first field of an answer."""
    at = 0
    while block[at] & 0xE0 == 0x20:
        at += 1  # the size of the table, which is 0
    if block[at] in STATUSES:
        return STATUSES[block[at]]
    if block[at] not in (0x08, 0x18, 0x48):
        raise ValueError(f"no status at the beginning of {block.hex()}")
    length, value = block[at + 1] & 0x7F, block[at + 2:]
    if block[at + 1] & 0x80 == 0:
        return int(value[:length])
    bits, number = "".join(f"{byte:08b}" for byte in value[:length]), 0
    for _ in range(3):
        size = next(size for size in (5, 6) if bits[:size] in DIGITS)
        number, bits = number * 10 + DIGITS[bits[:size]], bits[size:]
    return number


class Connection:
    """A connection with the requests that are on it.

    `owner` has the methods `answered(request, status, body)`, `returned(request)` for a request that the server has not
    looked at, `lost(request, reason)`, `opened(connection)` and `closed(connection, reason)`.
    """

    def __init__(self, selector, address, context, owner):
        self.selector, self.owner = selector, owner
        self.requests, self.bodies, self.statuses = {}, {}, {}
        self.next, self.retired, self.is_open, self.is_closed = 1, False, False, False
        self.window = 65535
        self.out, self.rest = bytearray(), b""
        self.raw = socket.socket()
        self.raw.setblocking(False)
        self.raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self.incoming, self.outgoing, server_hostname="localhost")
        code = self.raw.connect_ex(address)
        self.connecting = code == errno.EINPROGRESS
        self.refused = code == errno.ECONNREFUSED
        if code not in (0, errno.EINPROGRESS):
            self.end(errno.errorcode[code])
            return
        selector.register(self.raw, selectors.EVENT_READ | selectors.EVENT_WRITE, self)
        self.interest = selectors.EVENT_READ | selectors.EVENT_WRITE

    @property
    def room(self):
        return 0 if self.retired or not self.is_open else STREAMS - len(self.requests)

    def send(self, request, block, body):
        stream, self.next = self.next, self.next + 2
        self.requests[stream] = request
        self.window -= len(body)
        assert self.window > 0, "the connection is retired before its window is used up"
        self.tls.write(frame(HEADERS, END_HEADERS, stream, block) + frame(DATA, END_STREAM, stream, body))

    def retire(self):
        """Opens no further streams, and closes when the open ones are answered."""
        self.retired = True
        if not self.requests:
            self.end(None)

    def flush(self):
        """Writes what the requests of this turn have left in memory."""
        if self.is_closed or self.connecting:
            return
        self.out += self.outgoing.read()
        while self.out:
            try:
                del self.out[:self.raw.send(self.out)]
            except BlockingIOError:
                break
            except OSError:
                # What the server has sent before it closed is still to be read; that ends the connection, too.
                self.out.clear()
                break
        wanted = selectors.EVENT_READ | (selectors.EVENT_WRITE if self.out else 0)
        if wanted != self.interest:
            self.selector.modify(self.raw, wanted, self)
            self.interest = wanted

    def ready(self, events):
        if self.connecting:
            code = self.raw.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if code:
                self.refused = code == errno.ECONNREFUSED
                self.end(errno.errorcode[code])
                return
            self.connecting = False
        if events & selectors.EVENT_READ:
            self.receive()
        if not self.is_closed and not self.is_open:
            self.shake_hands()
        if not self.is_closed:
            self.flush()

    def receive(self):
        ended = None
        while ended is None:
            try:
                data = self.raw.recv(65536)
            except BlockingIOError:
                break
            except OSError as error:
                ended = errno.errorcode[error.errno]
                break
            if not data:
                ended = "closed"
            else:
                self.incoming.write(data)
        if self.is_open:
            self.read_frames()
        if ended and not self.is_closed:
            self.end(ended)

    def shake_hands(self):
        try:
            self.tls.do_handshake()
        except ssl.SSLWantReadError:
            return
        except ssl.SSLError as error:
            self.end(f"TLS: {error.reason}")
            return
        self.is_open = True
        # No table of headers, no pushes, and a window that never fills.
        self.tls.write(
            PREFACE + frame(SETTINGS, 0, 0, struct.pack(">HIHI", 1, 0, 2, 0)) + frame(WINDOW_UPDATE, 0, 0, b"\x3f\xff\x00\x00"))
        self.owner.opened(self)
        self.read_frames()

    def read_frames(self):
        data = self.rest
        try:
            while chunk := self.tls.read(65536):
                data += chunk
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLError:
            pass  # the server's last word; the end of the connection follows
        at = 0
        while len(data) - at >= 9:
            length = int.from_bytes(data[at:at + 3], "big")
            if len(data) - at < 9 + length:
                break
            stream = int.from_bytes(data[at + 5:at + 9], "big") & 0x7FFFFFFF
            self.handle(data[at + 3], data[at + 4], stream, data[at + 9:at + 9 + length])
            at += 9 + length
        self.rest = data[at:]
        if self.retired and not self.requests and not self.is_closed:
            self.flush()
            self.end(None)

    def handle(self, kind, flags, stream, payload):
        if kind == HEADERS and stream in self.requests:
            assert flags & (PADDED | PRIORITY) == 0 and flags & END_HEADERS, "a form of HEADERS that the relay does not send"
            self.statuses.setdefault(stream, status(payload))
        elif kind == DATA and stream in self.requests:
            self.bodies[stream] = self.bodies.get(stream, b"") + payload
        elif kind == RST_STREAM and stream in self.requests:
            request, code = self.requests.pop(stream), int.from_bytes(payload, "big")
            if code == REFUSED_STREAM:
                self.owner.returned(request)
            else:
                self.owner.lost(request, f"the stream was reset with {code}")
        elif kind == SETTINGS and flags & ACK == 0:
            self.tls.write(frame(SETTINGS, ACK, 0))
        elif kind == PING and flags & ACK == 0:
            self.tls.write(frame(PING, ACK, 0, payload))
        elif kind == WINDOW_UPDATE and stream == 0:
            self.window += int.from_bytes(payload, "big")
        elif kind == GOAWAY:
            self.retired = True
            last = int.from_bytes(payload[:4], "big") & 0x7FFFFFFF
            for later in [number for number in self.requests if number > last]:
                self.owner.returned(self.requests.pop(later))
        if kind in (HEADERS, DATA) and flags & END_STREAM and stream in self.requests:
            self.owner.answered(self.requests.pop(stream), self.statuses.pop(stream), self.bodies.pop(stream, b""))

    def end(self, reason):
        """Closes the connection. Requests without an answer are lost, because nobody knows what became of them."""
        self.is_closed, self.retired = True, True
        try:
            self.selector.unregister(self.raw)
        except (KeyError, ValueError):
            pass
        self.raw.close()
        requests, self.requests = self.requests, {}
        for request in requests.values():
            self.owner.lost(request, f"the connection ended: {reason}")
        self.owner.closed(self, reason)
