"""Idle connections and streams of HTTP/2: idle.py PORT DIRECTORY CONNECTIONS STREAMS

Opens the connections and prints `connected`. After a line on standard input it opens the streams on
each connection: it sends their header fields, but no bodies. It prints `open` when the server has
received them all, and ends when standard input ends.
"""
import os
import socket
import ssl
import struct
import sys

port, directory, connections, streams = int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
context = ssl.create_default_context(cafile=os.path.join(directory, "ca.pem"))
context.load_cert_chain(os.path.join(directory, "shop.pem"), os.path.join(directory, "shop.key"))
context.set_alpn_protocols(["h2"])


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def text(value):
    return bytes([len(value)]) + value.encode()


# Literals of HPACK: :method POST and :scheme https are in the static table, the rest is not
# indexed.
fields = (
    bytes([0x83, 0x87, 0x04]) + text("/auth") + bytes([0x01]) + text(f"localhost:{port}")
    + bytes([0x0F, 31 - 15]) + text("application/json") + bytes([0x00]) + text("prefer") + text("wait=60")
)


def seen_by_server(lines):
    """Waits for the answer to a PING. The server has then read everything that was sent before it."""
    for line in lines:
        line.sendall(frame(6, 0, 0, b"all sent"))
    for line in lines:
        seen = b""
        while frame(6, 1, 0, b"all sent") not in seen:
            part = line.recv(65536)
            assert part, "the relay has closed a connection"
            seen += part


lines = []
for _ in range(connections):
    plain = socket.create_connection(("127.0.0.1", port))
    line = context.wrap_socket(plain, server_hostname="localhost")
    line.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0) + frame(4, 1, 0))
    lines.append(line)
seen_by_server(lines)
print("connected", flush=True)
sys.stdin.readline()
for line in lines:
    line.sendall(b"".join(frame(1, 4, 2 * number + 1, fields) for number in range(streams)))
seen_by_server(lines)
print("open", flush=True)
sys.stdin.read()
