"""Serves the app over HTTPS with the policy of the product, and a relay at the same origin.

server.py DIRECTORY [PORT] serves the app for a person to look at, without a browser's driver.
"""

import base64
import datetime
import hashlib
import http.server
import json
import os
import ssl
import sys
import threading
from email.utils import formatdate

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from relay import Relay

ASSETS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../../Sources/Product/PhoneApp/Assets")
TYPES = {
    "html": "text/html; charset=utf-8", "js": "text/javascript; charset=utf-8", "css": "text/css; charset=utf-8",
    "json": "application/json", "svg": "image/svg+xml", "png": "image/png", "webmanifest": "application/manifest+json",
}
PERMISSIONS = (
    "camera=(self), clipboard-write=(self), publickey-credentials-create=(self), publickey-credentials-get=(self), "
    "geolocation=(self), microphone=(), payment=(), usb=()")
EXPOSED = "DPoP-Nonce, Retry-After, request-id, X-MessageCount, Preference-Applied, WWW-Authenticate, Date"
ALLOWED = "content-type, dpop, prefer, accept-user-language, accept-language, nonce"


def make_certificate(directory):
    """A certificate for localhost and its names; returns it with the path of both files."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "phone tests")])
    now = datetime.datetime.now(datetime.timezone.utc)
    names = [x509.DNSName(one) for one in ("localhost", "relay.localhost", "app.localhost")]
    certificate = (
        x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
        .serial_number(x509.random_serial_number()).not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=30)).add_extension(x509.SubjectAlternativeName(names), False)
        .sign(key, hashes.SHA256()))
    path = os.path.join(directory, "server.pem")
    with open(path, "wb") as file:
        file.write(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()))
        file.write(certificate.public_bytes(serialization.Encoding.PEM))
    return certificate, path


class App:
    """The files of the app. A test changes `version`, or the bytes of a file, to release another version."""

    def __init__(self, relays):
        self.version, self.relays, self.changes = "1.0.0", relays, {}

    def file(self, name):
        if name in self.changes:
            return self.changes[name]
        path = os.path.join(ASSETS, name)
        if "/" in name or not os.path.isfile(path):
            return None
        with open(path, "rb") as file:
            return file.read()

    def config(self):
        hashes_ = {
            f"/phone/{name}": base64.urlsafe_b64encode(hashlib.sha256(self.file(name)).digest()).rstrip(b"=").decode()
            for name in sorted(os.listdir(ASSETS))
        }
        return {"version": self.version, "relays": self.relays, "files": hashes_}

    def policy(self):
        return (
            "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; manifest-src 'self'; worker-src 'self'; "
            f"connect-src 'self' {' '.join(self.relays)}; form-action 'none'; base-uri 'none'; frame-ancestors 'none'; "
            "require-trusted-types-for 'script'; trusted-types twoefay-phone")


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    app = None
    relay = None
    origins = ()

    def do_GET(self):
        path = self.path.split("?")[0]
        if path.startswith("/phone/") and self.app:
            return self.serve(path.removeprefix("/phone/") or "index.html")
        return self.relayed()

    def serve(self, name):
        content = json.dumps(self.app.config()).encode() if name == "config.json" else self.app.file(name)
        if content is None:
            return self.reply(404, b"", {})
        return self.reply(200, content, {
            "content-type": TYPES[name.rsplit(".", 1)[1]], "content-security-policy": self.app.policy(), "cache-control": "no-cache",
            "cross-origin-opener-policy": "same-origin", "cross-origin-resource-policy": "same-origin", "referrer-policy": "no-referrer",
            "x-content-type-options": "nosniff",
            "permissions-policy": PERMISSIONS,
        })

    def do_POST(self):
        self.relayed()

    def do_DELETE(self):
        self.relayed()

    def do_OPTIONS(self):
        self.reply(204, b"", {"access-control-allow-headers": ALLOWED, "access-control-allow-methods": "GET, POST, DELETE"})

    def relayed(self):
        length = int(self.headers.get("content-length") or 0)
        body = json.loads(self.rfile.read(length)) if length else {}
        fields = {name.lower(): value for name, value in self.headers.items()}
        try:
            status, found, more = self.relay.answer(self.command, self.path, fields, body)
        except Exception as error:
            # A fault of the app, or of the test: it must not pass for a refusal.
            self.server.faults.append(f"{self.command} {self.path}: {error!r}")
            status, found, more = 500, {"code": "internal", "detail": repr(error)}, {}
        content = b"" if found is None else json.dumps(found).encode()
        self.reply(status, content, {"content-type": "application/json" if status < 400 else "application/problem+json", **more})

    def reply(self, status, content, fields):
        self.send_response_only(status)
        # Not send_response: the clock of the relay decides about the date.
        self.send_header("date", formatdate(self.relay.now(), usegmt=True))
        origin = self.headers.get("origin")
        if origin in self.origins:
            fields = {**fields, "access-control-allow-origin": origin, "access-control-expose-headers": EXPOSED, "vary": "origin"}
        for name, value in fields.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_):
        pass


def serve(certificate, host, app=None, origins=(), port=0, identity="https://login.example.com:8080", **relay):
    """Starts a server, and returns it with `origin` and `relay`."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", port), None)
    server.daemon_threads = True
    server.faults = []
    server.origin = f"https://{host}:{server.server_port}"
    server.relay = Relay(identity, server.origin, **relay)
    server.RequestHandlerClass = type("Handler", (Handler,), {"app": app, "relay": server.relay, "origins": origins})
    server.handle_error = lambda *_: None
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def main(directory, port="8443"):
    _, path = make_certificate(directory)
    app = App([f"https://localhost:{port}"])
    server = serve(path, "localhost", app, port=int(port))
    values = server.relay.activate()
    print(f"{server.origin}/phone/#" + "&".join(f"{name}={value}" for name, value in values.items()))
    threading.Event().wait()


if __name__ == "__main__":
    main(*sys.argv[1:])
