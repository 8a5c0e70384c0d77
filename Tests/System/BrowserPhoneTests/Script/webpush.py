"""Reads what an application server sends to a push service, by RFC 8030, 8188, 8291 and 8292, without code of the product."""

import re
import time

from cryptography.hazmat.primitives.asymmetric import ec

from statements import decode, encode, read


def key_of(field, origin, contact):
    """The key of `vapid t=…, k=…` (RFC 8292), after its token was verified: it is for this push service, and valid now."""
    scheme, _, words = field.partition(" ")
    parts = dict(word.strip().split("=", 1) for word in words.split(","))
    assert scheme == "vapid" and set(parts) == {"t", "k"}, field
    point = decode(parts["k"])
    assert len(point) == 65 and point[0] == 4, "k is no uncompressed point"
    _, claims = read(parts["t"], "JWT", {"crv": "P-256", "kty": "EC", "x": encode(point[1:33]), "y": encode(point[33:])})
    assert claims["aud"] == origin and claims["sub"] == contact, claims
    assert 0 < claims["exp"] - time.time() <= 24 * 3600, claims
    return parts["k"]


class Message:
    """A push, as the service sees it. It can read all but the text, for which it has no key."""

    def __init__(self, fields, body, origin, contact):
        self.at = time.time()
        self.key = key_of(fields["authorization"], origin, contact)
        self.ttl, self.urgency, self.topic = int(fields["ttl"]), fields["urgency"], fields["topic"]
        assert self.ttl >= 0 and self.urgency in ("very-low", "low", "normal", "high"), self.urgency
        assert re.fullmatch(r"[A-Za-z0-9_-]{1,32}", self.topic), self.topic
        assert fields["content-encoding"] == "aes128gcm", fields["content-encoding"]
        # RFC 8188, 2.1: the salt, the size of a record, and the key of the sender, which RFC 8291 makes a point.
        size, length = int.from_bytes(body[16:20], "big"), body[20]
        assert length == 65, "the key of the sender"
        ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), body[21:86])
        # RFC 8291, 4: one record, with at least a delimiter and the tag; every service takes 4096 bytes.
        assert 17 <= len(body) - 86 <= size and len(body) <= 4096, (size, len(body))
        self.salt, self.sender, self.body = body[:16], body[21:86], body
