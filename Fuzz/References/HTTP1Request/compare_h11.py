#!/usr/bin/python3
"""compare_h11.py FILE : reads the requests that the relay's parser has accepted with h11, and compares.

Each line of FILE has the bytes in hexadecimal, a tab, and the requests: divided by `;`, each with its method, target, host,
body, `open` or `close`, and its fields, divided by `,`. Every request must have the same meaning for h11. If the relay keeps the
connection open, h11 must do so, too; the other way round, the relay reads nothing more.
"""
import sys

import h11

# The fields that concern the connection: the relay keeps them from its routes, and compares `Host` by itself.
CONNECTION = {b"connection", b"keep-alive", b"proxy-connection", b"te", b"trailer", b"transfer-encoding", b"expect", b"host"}


def requests_of(text):
    for part in text.split(";"):
        method, target, host, body, state, *fields = part.split(",")
        yield (bytes.fromhex(method), bytes.fromhex(target), bytes.fromhex(host), bytes.fromhex(body),
               [tuple(bytes.fromhex(one) for one in field.split(":")) for field in fields]), state == "open"


def read(data, states):
    """Yields the first requests that h11 reads."""
    connection = h11.Connection(h11.SERVER, max_incomplete_event_size=1 << 20)
    connection.receive_data(data)
    for number, is_open in enumerate(states, 1):
        request, body = connection.next_event(), b""
        if type(request) is not h11.Request:
            raise ValueError(f"{request!r} instead of a request")
        while type(event := connection.next_event()) is h11.Data:
            body += bytes(event.data)
        if type(event) is not h11.EndOfMessage or event.headers:
            raise ValueError(f"{event!r} instead of the end")
        hosts = [value for field, value in request.headers if field == b"host"]
        fields = [(field, value) for field, value in request.headers if field not in CONNECTION]
        yield request.method, request.target, b"".join(hosts), body, fields
        if is_open and connection.their_state is not h11.DONE:
            raise ValueError("h11 ends the connection, the relay does not")
        if number < len(states):
            connection.send(h11.Response(status_code=200, headers=[("content-length", "0")]))
            connection.send(h11.EndOfMessage())
            connection.start_next_cycle()


def main():
    compared = differences = 0
    with open(sys.argv[1]) as file:
        for line in file:
            data, text = line.rstrip("\n").split("\t")
            ours, states = zip(*requests_of(text))
            compared += len(ours)
            data = bytes.fromhex(data)
            try:
                theirs = tuple(read(data, states))
                reason = None if theirs == ours else f"h11 reads {theirs}, the relay {ours}"
            except (h11.ProtocolError, ValueError) as error:
                reason = f"h11 refuses it: {error}"
            if reason:
                differences += 1
                print(f"{data!r}: {reason}")
    print(f"h11 {h11.__version__}: {compared} requests compared, {differences} differences")
    return 1 if differences or not compared else 0


sys.exit(main())
