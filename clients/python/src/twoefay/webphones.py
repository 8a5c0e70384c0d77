"""Web phones: their origin, their credential, and their owner's proof by WebAuthn.

A web phone is a phone whose app is a page in a browser. Its pinned record is the phone's JWK with
two further members: `app`, the origin of the page, and `webauthn`, the credential of its owner. Such
a page can claim any verification of its owner. So only the assertion of the browser proves one: a
signature by the credential, whose challenge is the hash of the receipt.
"""

import hashlib
import re
from typing import Any
from urllib.parse import urlsplit

from .jsontext import Object, read_object
from .jws import JWK, decode, encode, is_signature, public_jwk, public_key

_ORIGIN = re.compile(r"https://([a-z0-9.-]+)(:[0-9]{1,5})?", re.ASCII)
_MOST_CHARACTERS, _MOST_OF_ID = 128, 256
_SIZES = {"authenticator_data": (37, 1024), "client_data": (1, 4096), "signature": (1, 256)}
_PRESENT, _VERIFIED = 0x01, 0x04


def page_host(origin: Any) -> str:
    """The host of a page's origin, without its port. Raises ValueError unless it is an origin."""
    match = _ORIGIN.fullmatch(origin) if isinstance(origin, str) else None
    if match is None or len(origin) > _MOST_CHARACTERS:
        raise ValueError(f"{origin!r} is not an origin such as https://phone.example.net")
    return match[1]


def is_same_host(origin: str, other: str) -> bool:
    """Compares the hosts of two origins. Their ports, and a dot at the end, lead to the same server."""
    one, two = ((urlsplit(text).hostname or "").rstrip(".") for text in (origin, other))
    return one == two


def web_members(claims: Object) -> JWK:
    """The further members of a web phone's record, from the claims of its binding; none for a native
    phone. Raises ValueError unless they are in the right form."""
    if "app" not in claims:
        if "webauthn" in claims:
            raise ValueError("a credential without a page")
        return {}
    host = page_host(claims["app"])
    if "webauthn" not in claims:
        return {"app": claims["app"]}
    return {"app": claims["app"], "webauthn": _credential(claims["webauthn"], host)}


def _credential(value: Any, host: str) -> Object:
    if not isinstance(value, dict):
        raise ValueError("the credential is no object")
    rp, id = value.get("rp"), value.get("id")
    if not (isinstance(rp, str) and rp and (host == rp or host.endswith(f".{rp}"))):
        raise ValueError("the relying party is not of the page's host")
    if not (isinstance(id, str) and 1 <= len(id) <= _MOST_OF_ID and decode(id)):
        raise ValueError("the credential has no id")
    return {"rp": rp, "id": id, "jwk": public_jwk(value.get("jwk"))}


def verifies_owner(record: JWK, receipt: str, assertion: Any) -> bool:
    """Whether the assertion proves that the browser has verified the web phone's owner for exactly
    this receipt (WebAuthn Level 2, 7.2). The counter is ignored: synced credentials have none."""
    credential = record.get("webauthn")
    if credential is None or not isinstance(assertion, dict):
        return False
    try:
        data, client, signature = (_decoded(assertion, name) for name in _SIZES)
        said = read_object(client)
    except ValueError:
        return False
    signed = receipt.rpartition(".")[0].encode()
    return (
        said.get("type") == "webauthn.get"
        and said.get("challenge") == encode(hashlib.sha256(signed).digest())
        and said.get("origin") == record["app"]
        and said.get("crossOrigin", False) is False
        and "topOrigin" not in said
        and data[:32] == hashlib.sha256(credential["rp"].encode()).digest()
        and data[32] & _PRESENT != 0
        and data[32] & _VERIFIED != 0
        and is_signature(signature, data + hashlib.sha256(client).digest(), public_key(credential["jwk"]))
    )


def _decoded(assertion: Object, name: str) -> bytes:
    text = assertion.get(name)
    data = decode(text) if isinstance(text, str) else b""
    least, most = _SIZES[name]
    if not least <= len(data) <= most:
        raise ValueError(f"{name} has another length")
    return data
