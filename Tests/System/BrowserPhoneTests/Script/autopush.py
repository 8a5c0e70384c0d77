"""A push service for Firefox: the protocol of Mozilla's autopush for the browser, and Web Push for application servers.

The browser opens a WebSocket at `address`. It says hello, registers a channel for each subscription, gets the messages of a
channel as notifications, and acknowledges each. An application server sends messages to the endpoint of a channel (RFC 8030).
"""

import base64
import http.server
import json
import secrets
import ssl
import threading
import urllib.parse

from frames import Frames, accept
from webpush import Message


def serve(handler, push, context=None):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (handler,), {"push": push}))
    server.daemon_threads = True
    server.handle_error = lambda *_: None
    if context:
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


class PushServer:
    """`channels` are the subscriptions by id, each with the sender's key and its path. `registered` are all ids that there were,
    `messages` what was sent to them, `acks` what the browser said about each."""

    def __init__(self, certificate, contact):
        self.contact = contact
        self.agent, self.online = secrets.token_hex(16), None
        self.registered, self.channels, self.gone = [], {}, set()
        self.messages, self.acks, self.faults = [], [], []
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        # Two threads use the WebSocket at the same time, which a connection with TLS does not allow.
        self.servers = serve(BrowserHandler, self), serve(SenderHandler, self, context)
        self.address = f"ws://127.0.0.1:{self.servers[0].server_port}/"
        self.origin = f"https://localhost:{self.servers[1].server_port}"

    def end(self):
        for server in self.servers:
            server.shutdown()
            server.server_close()

    def converse(self, frames):
        """Answers the browser until it closes the connection."""
        while (text := frames.receive()) is not None:
            try:
                message = json.loads(text)
                # An empty object is a ping of the browser, and its own answer.
                answer = getattr(self, f"take_{message['messageType']}")(message, frames) if message else {}
            except Exception as error:
                self.faults.append(f"{text}: {error!r}")
                return
            if answer is not None:
                frames.send(json.dumps(answer))
        if self.online is frames:
            self.online = None

    def take_hello(self, message, frames):
        assert message["use_webpush"] is True
        self.online = frames
        return {"messageType": "hello", "uaid": self.agent, "status": 200, "use_webpush": True, "broadcasts": {}}

    def take_register(self, message, _):
        channel, key = message["channelID"], message["key"].rstrip("=")
        # Firefox may send a request again that it made before it had said hello.
        if channel not in self.channels:
            self.channels[channel] = (key, f"/wpush/{secrets.token_urlsafe(24)}")
            self.registered.append(channel)
        known, path = self.channels[channel]
        assert known == key, "a channel with two keys"
        return {"messageType": "register", "channelID": channel, "status": 200, "pushEndpoint": self.origin + path}

    def take_unregister(self, message, _):
        self.channels.pop(message["channelID"], None)
        return {"messageType": "unregister", "channelID": message["channelID"], "status": 200}

    def take_broadcast_subscribe(self, *_):
        return None

    def take_ack(self, message, _):
        self.acks += message["updates"]

    def take_nack(self, message, _):
        raise AssertionError("the service worker did not take a message")

    def forget(self):
        """Forgets the browser, as a push service may: its endpoints are gone, and it gets another id when it says hello."""
        self.gone.update(path for _, path in self.channels.values())
        self.channels.clear()
        self.agent = secrets.token_hex(16)

    def disconnect(self):
        self.online.abort()

    def deliver(self, path, fields, body):
        """Takes a message for a channel; returns the status and the address of the message."""
        channel = next((one for one, (_, at) in list(self.channels.items()) if at == path), None)
        message = Message(fields, body, self.origin, self.contact)
        message.channel = channel
        message.version = f"{len(self.messages)}:{secrets.token_urlsafe(8)}"
        self.messages.append(message)
        if channel is None:
            return (410 if path in self.gone else 404), None
        assert message.key == self.channels[channel][0], "signed by another key than the browser subscribed for"
        self.online.send(json.dumps({
            "messageType": "notification", "channelID": channel, "version": message.version,
            "data": base64.urlsafe_b64encode(body).rstrip(b"=").decode(), "headers": {"encoding": "aes128gcm"}}))
        return 201, f"{self.origin}/m/{urllib.parse.quote(message.version)}"


class QuietHandler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    push = None

    def reply(self, status, fields):
        self.send_response_only(status)
        for name, value in fields.items():
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, *_):
        pass


class BrowserHandler(QuietHandler):
    def do_GET(self):
        assert self.headers["upgrade"].lower() == "websocket" and self.headers["sec-websocket-version"] == "13"
        self.reply(101, {
            "upgrade": "websocket", "connection": "Upgrade", "sec-websocket-protocol": "push-notification",
            "sec-websocket-accept": accept(self.headers["sec-websocket-key"])})
        self.close_connection = True
        self.push.converse(Frames(self.rfile, self.connection))


class SenderHandler(QuietHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        try:
            status, location = self.push.deliver(self.path, {name.lower(): value for name, value in self.headers.items()}, body)
        except Exception as error:
            # A fault of the application server: it must not pass for a message that was taken.
            self.push.faults.append(f"POST {self.path}: {error!r}")
            status, location = 400, None
        self.reply(status, {"content-length": "0", **({"location": location} if location else {})})
