"""The fixed world of the conformance cases: one website, its user, two phones and an honest relay.

All keys and ids follow from SEED, and signatures are deterministic (RFC 6979), so each run of
`generate` writes the same bytes. This file uses the `cryptography` package and nothing of Twoefay:
an expected value must never come from the code that is tested.
"""

import base64
import copy
import hashlib
import hmac
import json
from typing import Any

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

SEED = "twoefay conformance 1"
ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
CLOCK = 1_795_334_400
ORIGIN, WEBSITE = "https://login.example.com:8080", "shop"
AUDIENCE = f"{ORIGIN}#{WEBSITE}"

Object = dict[str, Any]


def seeded(name: str, size: int = 32) -> bytes:
    return hashlib.sha256(f"{SEED}: {name}".encode()).digest()[:size]


def ident(name: str) -> str:
    return seeded(name, 16).hex()


def b64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def compact(value: Any) -> bytes:
    """JSON as the relay writes it: no spaces, and only the escapes that JSON requires."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


class Phone:
    """A phone with an id and a P-256 key."""

    def __init__(self, name: str) -> None:
        self.device = ident(f"device of {name}")
        number = int.from_bytes(seeded(f"key of {name}")) % (ORDER - 1) + 1
        self._key = ec.derive_private_key(number, ec.SECP256R1())
        point = self._key.public_key().public_numbers()
        x, y = (b64(part.to_bytes(32)) for part in (point.x, point.y))
        self.jwk = {"kty": "EC", "crv": "P-256", "x": x, "y": y}

    def sign(self, header: Object, payload: bytes) -> str:
        return self.sign_text(compact(header).decode(), payload.decode())

    def sign_text(self, header: str, payload: str) -> str:
        """A JWS whose header and payload need not be JSON."""
        text = f"{b64(header.encode())}.{b64(payload.encode())}"
        r, s = decode_dss_signature(self.sign_bytes(text.encode()))
        return f"{text}.{b64(r.to_bytes(32) + s.to_bytes(32))}"

    def sign_bytes(self, data: bytes) -> bytes:
        """A signature in DER."""
        return self._key.sign(data, ec.ECDSA(hashes.SHA256(), deterministic_signing=True))

    def negated(self, jws: str) -> str:
        """The other valid form of a signature: (r, n - s)."""
        text, _, signature = jws.rpartition(".")
        raw = base64.urlsafe_b64decode(signature + "==")
        s = ORDER - int.from_bytes(raw[32:])
        return f"{text}.{b64(raw[:32] + s.to_bytes(32))}"


def mac(key: bytes, header: Object, payload: bytes) -> str:
    return mac_text(key, compact(header).decode(), payload.decode())


def mac_text(key: bytes, header: str, payload: str) -> str:
    """An HS256 JWS whose header and payload need not be JSON."""
    text = f"{b64(header.encode())}.{b64(payload.encode())}"
    return f"{text}.{b64(hmac.digest(key, text.encode(), 'sha256'))}"


def doubled(text: str, member: str) -> str:
    """The text of an object with one more member at its end, such as one that it has already."""
    return f"{text[:-1]},{member}}}"


BOM = "\ufeff"
ADAS, BOBS, MALLORYS = Phone("ada"), Phone("bob"), Phone("mallory")
WEB, CREDENTIAL = Phone("web phone of ada"), Phone("credential of ada's web phone")
APP, RP = "https://phone.example.net", "phone.example.net"
TOKEN = ident("token of ada")
CHALLENGE, REQUEST, NONCE = ident("challenge"), ident("request"), b64(seeded("nonce"))
K = seeded("k")

SENT: Object = {
    "username": "ada",
    "request": REQUEST,
    "service": "Payments",
    "action": "Transfer",
    "details": [{"label": "amount", "value": "EUR 40.00"}, {"label": "to", "value": "Café Zoë"}],
    "ip": "192.0.2.7",
    "user_agent": "Mozilla/5.0 (X11; Linux x86_64) Firefox/144.0",
}

CONTEXT: Object = {
    "v": 1,
    "website": WEBSITE,
    "display_name": "The Shop",
    **{name: SENT[name] for name in ("username", "service", "action", "details", "ip")},
    "place": "Berlin, Germany",
    **{name: SENT[name] for name in ("user_agent", "request")},
    "number_digits": 2,
    "created_at": "2026-11-22T08:00:00.000Z",
    "expires_at": "2026-11-22T08:05:00.000Z",
}


def login(**changes: Any) -> Object:
    """The website's own record of the login."""
    record = {"challenge": CHALLENGE, "number": "47", "asked_at": CLOCK - 20, "sent": SENT}
    return copy.deepcopy({**record, **changes})


def without(record: Object, *names: str) -> Object:
    return {name: value for name, value in record.items() if name not in names}


class Receipt:
    """A phone's decision, before it is signed. An honest one, unless a case changes it."""

    def __init__(self, signer: Phone = ADAS) -> None:
        self.signer = signer
        self.shown = compact(CONTEXT)
        self.header: Object = {
            "alg": "ES256",
            "typ": "twoefay-decision+jwt",
            "kid": ADAS.device,
        }
        self.claims: Object = {
            "v": 1,
            "aud": AUDIENCE,
            "challenge": CHALLENGE,
            "nonce": NONCE,
            "request": REQUEST,
            "decision": "approve",
            "number": "47",
            "uv": "biometric",
            "iat": CLOCK - 3,
        }

    def show(self, **changes: Any) -> "Receipt":
        """The phone shows another context; a change to None removes the member."""
        context = {**CONTEXT, **changes}
        self.shown = compact({name: value for name, value in context.items() if value is not None})
        return self

    def claim(self, **changes: Any) -> "Receipt":
        claims = {**self.claims, **changes}
        self.claims = {name: value for name, value in claims.items() if value is not None}
        return self

    def claim_null(self, name: str) -> "Receipt":
        self.claims = {**self.claims, name: None}
        return self

    def head(self, **changes: Any) -> "Receipt":
        header = {**self.header, **changes}
        self.header = {name: value for name, value in header.items() if value is not None}
        return self

    def payload(self) -> bytes:
        return compact({"context": b64(hashlib.sha256(self.shown).digest()), **self.claims})

    def jws(self) -> str:
        return self.signer.sign(self.header, self.payload())

    def answer(self, **changes: Any) -> Object:
        """The members of the relay's answer to /auth."""
        members = {
            "login": "success",
            "challenge": CHALLENGE,
            "factor": "push",
            "assurance": "high",
            "proof": "signed",
            "steps": [],
            "context": b64(self.shown),
            "receipt": self.jws(),
            "device": ADAS.device,
        }
        changed = {**members, **changes}
        return {name: value for name, value in changed.items() if value is not None}


def binding(key: bytes = K, header: Object | None = None, **changes: Any) -> str:
    """A change to None removes a claim, but for a key, `app` and `webauthn`, which are null then."""
    claims = {"v": 1, "aud": AUDIENCE, "id_token": TOKEN, "jwk": ADAS.jwk, **changes}
    kept = ("jwk", "agreement", "app", "webauthn")
    claims = {name: value for name, value in claims.items() if value is not None or name in kept}
    return mac(key, header or {"alg": "HS256", "typ": "twoefay-binding+jwt"}, compact(claims))


def device(**changes: Any) -> Object:
    """An entry of devices[] in the answer of GET /user/ada."""
    entry = {
        "device": ADAS.device,
        "name": "Ada's phone",
        "platform": "ios",
        "state": "active",
        "jwk": ADAS.jwk,
        "binding": binding(),
    }
    changed = {**entry, **changes}
    return {name: value for name, value in changed.items() if value is not None}


def user(*devices: Object, **changes: Any) -> Object:
    known = {
        "token": TOKEN,
        "email": None,
        "phone": None,
        "state": "active",
        "expires_at": None,
        "codes": "open",
        "last_code_at": None,
        "factors": [{"kind": "push", "state": "active"}] if devices else [],
        "devices": list(devices),
    }
    return {**known, **changes}


def webauthn(**changes: Any) -> Object:
    """The credential of Ada's web phone. A change to None removes a member."""
    members = {"rp": RP, "id": b64(seeded("id of the credential")), "jwk": CREDENTIAL.jwk, **changes}
    return {name: value for name, value in members.items() if value is not None}


def web_phone(**changes: Any) -> Object:
    """The pinned record of Ada's web phone. A change to None removes a member."""
    members = {**WEB.jwk, "app": APP, "webauthn": webauthn(), **changes}
    return {name: value for name, value in members.items() if value is not None}


JSON_TYPE, PROBLEM_TYPE = "application/json", "application/problem+json"


def reply(body: Any, status: int = 200, kind: str = JSON_TYPE, **headers: str) -> Object:
    """An HTTP answer of the relay. A text is sent as it stands."""
    text = body if isinstance(body, str) else compact(body).decode()
    fields = {name.replace("_", "-"): value for name, value in headers.items()}
    return {"status": status, "headers": {"content-type": kind, **fields}, "body": text}


def problem(code: str, status: int, headers: dict[str, str] | None = None, **more: Any) -> Object:
    body = {"type": f"urn:twoefay:problem:{code}", "title": code, "status": status, "code": code}
    answer = reply({**body, "detail": "for people", **more}, status, PROBLEM_TYPE)
    answer["headers"].update({"request-id": ident("a request"), **(headers or {})})
    return answer
