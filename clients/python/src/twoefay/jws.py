"""Compact JWS with one fixed algorithm. The header never chooses it: that is how `none` gets in."""

import base64
import binascii
import hmac
from dataclasses import dataclass
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

from .jsontext import Object, read_object

JWK = dict[str, Any]
"""A phone's key as the store keeps it. That of a web phone has further members: see `webphones`."""


def encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def decode(text: str) -> bytes:
    """Decodes base64url without padding. Each value has exactly one text; others are ValueErrors."""
    try:
        data = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, UnicodeEncodeError) as error:
        raise ValueError("not base64url") from error
    if encode(data) != text:
        raise ValueError("not base64url")
    return data


@dataclass(frozen=True)
class JWS:
    """A parsed JWS. Read no claim before `verify_…` has returned true."""

    header: Object
    payload: bytes
    signed: bytes
    signature: bytes

    @classmethod
    def parse(cls, token: str, algorithm: str) -> "JWS":
        parts = token.split(".")
        if len(parts) != 3:
            raise ValueError("not a compact JWS")
        head, payload, signature = (decode(part) for part in parts)
        header = read_object(head)
        if header.get("alg") != algorithm:
            raise ValueError(f"the algorithm is not {algorithm}")
        if "crit" in header:
            raise ValueError("the header demands an unknown extension")
        if not signature or (algorithm == "ES256" and len(signature) != 64):
            raise ValueError("the signature has another length")
        return cls(header, payload, f"{parts[0]}.{parts[1]}".encode(), signature)

    def is_signed_by(self, key: ec.EllipticCurvePublicKey) -> bool:
        r, s = (int.from_bytes(half, "big") for half in (self.signature[:32], self.signature[32:]))
        return is_signature(encode_dss_signature(r, s), self.signed, key)

    def is_made_with(self, key: bytes) -> bool:
        # HMAC takes a key of any length. A short one can be guessed, so it proves nothing.
        return len(key) >= 32 and hmac.compare_digest(hmac.digest(key, self.signed, "sha256"), self.signature)


def is_signature(signature: bytes, data: bytes, key: ec.EllipticCurvePublicKey) -> bool:
    """Whether this is a signature in DER of these bytes."""
    try:
        key.verify(signature, data, ec.ECDSA(hashes.SHA256()))
    except InvalidSignature:
        return False
    return True


def public_jwk(value: Any) -> JWK:
    """The four members of a P-256 key. Raises ValueError unless it is a point of the curve."""
    if not isinstance(value, dict):
        raise ValueError("not a key")
    jwk: JWK = {}
    for name in ("kty", "crv", "x", "y"):
        if not isinstance(value.get(name), str):
            raise ValueError("the key lacks members")
        jwk[name] = value[name]
    public_key(jwk)
    return jwk


def public_key(jwk: JWK) -> ec.EllipticCurvePublicKey:
    if jwk["kty"] != "EC" or jwk["crv"] != "P-256":
        raise ValueError("not a key of P-256")
    x, y = decode(jwk["x"]), decode(jwk["y"])
    if len(x) != 32 or len(y) != 32:
        raise ValueError("not a point of P-256")
    numbers = ec.EllipticCurvePublicNumbers(
        int.from_bytes(x, "big"), int.from_bytes(y, "big"), ec.SECP256R1()
    )
    return numbers.public_key()
