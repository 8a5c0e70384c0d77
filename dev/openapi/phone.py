"""A website and its phones, which arrange what a generated request needs, and sign what it cannot sign itself."""
import base64
import hashlib
import itertools
import os
import time

import requests
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, utils

# Of the website that calls.
OWN = object()
P256 = ec.ECDSA(hashes.SHA256())


def base64url(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def new_key():
    return ec.generate_private_key(ec.SECP256R1())


def jwk(key):
    numbers = key.public_key().public_numbers()
    return {"crv": "P-256", "kty": "EC", "x": base64url(numbers.x.to_bytes(32, "big")),
            "y": base64url(numbers.y.to_bytes(32, "big"))}


def signature(key, data):
    r, s = utils.decode_dss_signature(key.sign(data, P256))
    return base64url(r.to_bytes(32, "big") + s.to_bytes(32, "big"))


def jws(key, header, claims):
    """A compact JWS with ES256."""
    text = ".".join(base64url(requests.compat.json.dumps(part).encode()) for part in ({"alg": "ES256", **header}, claims))
    return f"{text}.{signature(key, text.encode())}"


def certificate_request(key):
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "any")])
    request = x509.CertificateSigningRequestBuilder().subject_name(name).sign(key, hashes.SHA256())
    return request.public_bytes(serialization.Encoding.PEM).decode()


def pem(key):
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8,
                             serialization.NoEncryption()).decode()


class OwnAddress(requests.adapters.HTTPAdapter):
    """Sends requests from another address, because the relay refuses one that has sent too many wrong codes."""

    def init_poolmanager(self, *words, **options):
        super().init_poolmanager(*words, source_address=("127.0.0.2", 0), **options)


class Gone(RuntimeError):
    """What was arranged does not exist any more."""


class Website:
    """The website of the relay in a directory, which has the files that `twoefay init` and `website add` wrote."""

    def __init__(self, origin, directory, name):
        self.origin, self.directory, self.name = origin, directory, name
        self.certificate = (os.path.join(directory, f"{name}.pem"), os.path.join(directory, f"{name}.key"))
        with open(self.certificate[1], "rb") as file:
            self.key = serialization.load_pem_private_key(file.read(), None)
        self.nonce_until = 0
        self.session = requests.Session()
        # Neither a proxy nor the authorities of the environment.
        self.session.trust_env = False
        self.session.mount("https://", OwnAddress())
        self.session.verify = os.path.join(directory, "ca.pem")

    def call(self, method, path, body=None, certificate=OWN):
        certificate = self.certificate if certificate is OWN else certificate
        answer = self.session.request(method, self.origin + path, json=body, cert=certificate)
        if answer.status_code == 404:
            raise Gone(f"{method} {path}: {answer.text}")
        if not answer.ok:
            raise RuntimeError(f"{method} {path}: {answer.status_code} {answer.text}")
        return answer.json() if answer.content else None

    def nonce(self):
        """The relay's nonce for proofs of possession, which is valid for five minutes."""
        if time.monotonic() > self.nonce_until:
            answer = self.session.get(f"{self.origin}/device/pin", headers={"DPoP": jws(
                new_key(), {"typ": "dpop+jwt", "jwk": jwk(new_key())}, {})})
            self.present_nonce, self.nonce_until = answer.headers["DPoP-Nonce"], time.monotonic() + 120
        return self.present_nonce

    def register(self, **members):
        """Registers another user. The name has characters that a path encodes."""
        name = f"zoë {os.urandom(8).hex()}"
        return name, self.call("POST", "/register", {"username": name, **members})


class Phone:
    """A phone of a new user. It is bound, or has an activation code."""

    def __init__(self, website, is_bound=True):
        self.website, self.key, self.agreement, self.times = website, new_key(), new_key(), itertools.count()
        self.pin_key = None
        self.username, registered = website.register()
        self.token, self.code = registered["token"], registered["activation"]["code"]
        if is_bound:
            answer = website.call("POST", "/verify", self.enrolment(), None)
            self.device, self.revocation_code = answer["device"], answer["revocation_code"]
            self.certificate = os.path.join(website.directory, f"{self.device}.pem")
            with open(self.certificate, "w") as file:
                file.write(answer["certificate"] + pem(self.key))

    def enrolment(self):
        """The body of /verify."""
        members = {"id_token": self.token, "activation_code": self.code}
        claims = self.claims(**members, agreement=jwk(self.agreement))
        proof = jws(self.key, {"typ": "twoefay-enrol+jwt", "jwk": jwk(self.key)}, claims)
        return {**members, "proof": proof, "csr": certificate_request(self.key)}

    def claims(self, **members):
        # The relay answers some statements only if they are later than the one before.
        now = int(time.time()) + next(self.times)
        return {"v": 1, "aud": f"{self.website.origin}#{self.website.name}", **members, "iat": now}

    def sign(self, kind, key=None, **members):
        return jws(key or self.key, {"typ": f"twoefay-{kind}+jwt", "kid": self.device}, self.claims(**members))

    def call(self, method, path, body=None):
        return self.website.call(method, path, body, self.certificate)

    def possession(self, method, path):
        """The value of the header field DPoP of a request."""
        claims = {"htm": method, "htu": self.website.origin + path, "jti": os.urandom(16).hex(), "iat": int(time.time()),
                  "nonce": self.website.nonce()}
        return jws(self.key, {"typ": "dpop+jwt", "jwk": jwk(self.key)}, claims)

    # What operations of phones take.

    def goodbye(self, leaves):
        return {"goodbye": self.sign("goodbye", nonce=base64url(os.urandom(16)), leaves=leaves)}

    def pin(self):
        """The body that sets the first PIN, or changes it."""
        former, self.pin_key = self.pin_key, new_key()
        if former is None:
            return {"pin": self.sign("pin", change="set", version=1, pin=jwk(self.pin_key), puk=jwk(new_key()))}
        statement = self.sign("pin", change="change", version=2, pin=jwk(self.pin_key))
        return {"pin": statement, "pin_signature": signature(former, statement.rpartition(".")[0].encode())}

    def secret_request(self):
        return self.sign("secret", agreement=jwk(self.agreement))

    def certification(self, tag="sign"):
        key = new_key()
        request = certificate_request(key)
        digest = base64url(hashlib.sha256(request.encode()).digest())
        return key, {"tag": tag, "csr": request, "proof": self.sign("certificate", tag=tag, csr=digest)}

    def document(self):
        """The body of /verify-signature, for a document that the key of a new certificate has signed."""
        key, body = self.certification()
        self.call("POST", "/device/certificate", body)
        digest = base64url(hashlib.sha256(b"The contract.\n").digest())
        statement = self.sign("document", key, tag="sign", label="Contract 7", digest=digest)
        return {"device": self.device, "tag": "sign", "hash": digest, "statement": statement}

    def decision(self, word):
        """The body of an answer, `approve` or `deny`, to a new challenge."""
        opened = self.website.call("POST", "/login", {"username": self.username, "request": "r"})
        entry = next(entry for entry in self.call("POST", "/pending", {})["pending"]
                     if entry["challenge"] == opened["challenge"])
        context = base64.urlsafe_b64decode(entry["context"] + "==")
        members = {"challenge": entry["challenge"], "request": "r", "decision": word, "nonce": entry["nonce"],
                   "context": base64url(hashlib.sha256(context).digest()), "uv": "biometric"}
        if word == "approve":
            members["number"] = opened["number"]
        return {"challenge": entry["challenge"], "answer": self.sign("decision", **members)}
