"""An enrolment: the URI that the user's phone reads, with the website's secret `k` in it."""

import re
from dataclasses import dataclass, field
from urllib.parse import parse_qsl

import segno

from .answers import text
from .errors import OddAnswer
from .jsontext import Object
from .jws import encode
from .policy import Policy

_START = "twoefay://enrol?"


@dataclass(frozen=True)
class Enrolment:
    """What the user needs to bind a phone. Show `qr` once, to the logged-in user, and log none of it."""

    token: str
    """The user's id at the relay."""
    uri: str | None = field(default=None, repr=False)
    """The link for an app on the same device. None if the relay mails the code."""
    sent_to: str | None = None
    """The masked address to which the relay mails the code."""
    awaits: str | None = None
    """`identity` until an operator has confirmed who the user is."""
    expires_at: str | None = None

    @property
    def qr(self) -> str:
        """The QR code as SVG, to stand in HTML. It is drawn here, since the relay must not see `k`."""
        if self.uri is None:
            raise ValueError("the relay mails this code: there is nothing to draw")
        code = segno.make(self.uri, error="m", micro=False)
        return code.svg_inline(scale=4, border=4, light="#fff", title="QR code for your phone")


def enrolment(policy: Policy, token: str, activation: Object, k: bytes) -> Enrolment:
    """Reads the relay's activation, and adds what the website chose, and `k`."""
    if activation.get("awaits") is not None:
        return Enrolment(token, awaits=text(activation, "awaits"))
    if activation.get("sent_to") is not None:
        return Enrolment(
            token, sent_to=text(activation, "sent_to"), expires_at=text(activation, "expires_at")
        )
    uri = text(activation, "uri")
    _require_open_end(uri)
    return Enrolment(token, _drawn(policy, uri, k), expires_at=text(activation, "expires_at"))


def _drawn(policy: Policy, uri: str, k: bytes) -> str:
    # Browsers send no fragment: the server of the page does not see `k`.
    start = _START if policy.app_origin is None else f"{policy.app_origin}/phone/#"
    phones = "" if policy.phones == "any" else f"&phones={policy.phones}"
    return f"{start}{uri.removeprefix(_START)}{phones}&k={encode(k)}"


def _require_open_end(uri: str) -> None:
    """The relay must not choose `k`, and nothing may follow that hides the one of the website."""
    if not uri.startswith(_START) or not re.fullmatch(r"[A-Za-z0-9%&=._~:/?-]{1,2000}", uri):
        raise OddAnswer("the relay's activation is no URI to which k can be added")
    if any(name == "k" for name, _ in parse_qsl(uri.removeprefix(_START), keep_blank_values=True)):
        raise OddAnswer("the relay's activation already has a k")
