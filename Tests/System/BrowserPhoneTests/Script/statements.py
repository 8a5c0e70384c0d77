"""Verifies the signed statements of a phone, as a relay and a website do, without any code of the product."""

import base64
import hashlib
import hmac
import json
import re

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from cryptography.hazmat.primitives.ciphers.aead import AESGCM


def encode(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def decode(text):
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def public_key(jwk):
    numbers = [int.from_bytes(decode(jwk[name]), "big") for name in ("x", "y")]
    return ec.EllipticCurvePublicNumbers(*numbers, ec.SECP256R1()).public_key()


def thumbprint(jwk):
    members = {name: jwk[name] for name in ("crv", "kty", "x", "y")}
    return encode(hashlib.sha256(json.dumps(members, separators=(",", ":")).encode()).digest())


def is_signed(jwk, text, signature):
    raw = decode(signature)
    if len(raw) != 64:
        return False
    der = encode_dss_signature(int.from_bytes(raw[:32], "big"), int.from_bytes(raw[32:], "big"))
    try:
        public_key(jwk).verify(der, text.encode(), ec.ECDSA(hashes.SHA256()))
        return True
    except InvalidSignature:
        return False


def read(jws, typ, jwk=None):
    """The header and claims of a JWS, whose signature is by `jwk` or by the key in its header."""
    header, claims, signature = jws.split(".")
    head, body = json.loads(decode(header)), json.loads(decode(claims))
    assert head["alg"] == "ES256" and head["typ"] == typ, head
    assert is_signed(jwk or head["jwk"], f"{header}.{claims}", signature), f"{typ}: the signature is wrong"
    return head, body


def read_binding(jws, k):
    header, claims, signature = jws.split(".")
    expected = hmac.new(k, f"{header}.{claims}".encode(), hashlib.sha256).digest()
    assert decode(signature) == expected, "the binding is not under k"
    return json.loads(decode(claims))


def strictly(text, least, most):
    """Decodes base64url that has exactly one form, of so many bytes."""
    assert re.fullmatch(r"[A-Za-z0-9_-]+", text), "it is not base64url"
    data = decode(text)
    assert encode(data) == text and least <= len(data) <= most, f"{len(data)} bytes"
    return data


def once(pairs):
    """The members of a JSON object, in which no name occurs twice."""
    assert len({name for name, _ in pairs}) == len(pairs), "a name occurs twice"
    return dict(pairs)


def check_web_claims(claims):
    """Checks `app` and `webauthn` of a proof or a binding, and returns the passkey, or None."""
    app = claims["app"]
    assert re.fullmatch(r"https://[a-z0-9.-]+(:[0-9]{1,5})?", app) and len(app) <= 128, app
    passkey = claims.get("webauthn")
    if passkey is not None:
        host = app.removeprefix("https://").split(":")[0]
        assert set(passkey) == {"rp", "id", "jwk"}, passkey
        assert host == passkey["rp"] or host.endswith("." + passkey["rp"]), passkey
        assert re.fullmatch(r"[A-Za-z0-9_-]{1,256}", passkey["id"]) and encode(decode(passkey["id"])) == passkey["id"], passkey
        assert set(passkey["jwk"]) == {"crv", "kty", "x", "y"} and (passkey["jwk"]["kty"], passkey["jwk"]["crv"]) == ("EC", "P-256"), passkey
        public_key(passkey["jwk"])
    return passkey


def check_assertion(webauthn, app, passkey, answer):
    """Verifies the assertion beside a receipt (WebAuthn Level 2, 7.2) for the app of that origin."""
    assert set(webauthn) == {"authenticator_data", "client_data", "signature"}, webauthn
    data, client = strictly(webauthn["authenticator_data"], 37, 1024), strictly(webauthn["client_data"], 1, 4096)
    told = json.loads(client, object_pairs_hook=once)
    signed = hashlib.sha256(answer.rsplit(".", 1)[0].encode()).digest()
    assert told["type"] == "webauthn.get" and told["origin"] == app, told
    assert told.get("crossOrigin", False) is False and "topOrigin" not in told, told
    assert told["challenge"] == encode(signed), "the assertion is about something else"
    assert data[:32] == hashlib.sha256(passkey["rp"].encode()).digest() and data[32] & 0x05 == 0x05, "not verified"
    key = public_key(passkey["jwk"])
    key.verify(strictly(webauthn["signature"], 1, 256), data + hashlib.sha256(client).digest(), ec.ECDSA(hashes.SHA256()))


def seal(agreement, aud, device, factor, content):
    """Seals a secret to a phone: ECDH-ES and A256GCM (RFC 7518, section 4.6)."""
    own = ec.generate_private_key(ec.SECP256R1())
    numbers = own.public_key().public_numbers()
    epk = {"crv": "P-256", "kty": "EC", "x": encode(numbers.x.to_bytes(32, "big")), "y": encode(numbers.y.to_bytes(32, "big"))}
    apu, apv = aud.encode(), f"{device}.{factor}".encode()
    header = encode(json.dumps({
        "alg": "ECDH-ES", "enc": "A256GCM", "typ": "twoefay-secret+jwe", "aud": aud, "kid": device, "factor": factor,
        "apu": encode(apu), "apv": encode(apv), "epk": epk,
    }).encode())
    counted = b"".join(len(part).to_bytes(4, "big") + part for part in (b"A256GCM", apu, apv))
    shared = own.exchange(ec.ECDH(), public_key(agreement))
    key = hashlib.sha256((1).to_bytes(4, "big") + shared + counted + (256).to_bytes(4, "big")).digest()
    nonce = b"\0" * 12
    both = AESGCM(key).encrypt(nonce, json.dumps(content).encode(), header.encode())
    return ".".join([header, "", encode(nonce), encode(both[:-16]), encode(both[-16:])])


class Signer:
    """Signs as a relay does, by the key of its certificate."""

    def __init__(self):
        self.key = ec.generate_private_key(ec.SECP256R1())

    def sign(self, typ, claims):
        head = encode(json.dumps({"alg": "ES256", "typ": typ, "x5t#S256": encode(b"\0" * 32)}).encode())
        text = f"{head}.{encode(json.dumps({'v': 1, **claims}).encode())}"
        # Pages do not see the certificate, so they cannot verify the signature.
        return f"{text}.{encode(self.key.sign(text.encode(), ec.ECDSA(hashes.SHA256()))[:64])}"


def spki_pin(certificate):
    key = certificate.public_key().public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    return base64.b64encode(hashlib.sha256(key).digest()).decode()
