"""Webhooks of the relay: Standard Webhooks 1.0.

The signature is checked over the bytes as they arrived, before one of them is parsed. Never let a
user in by a webhook alone: pass its data to `check`, with the login that this browser started.
"""

import base64
import binascii
import hmac
import re
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol

from .errors import ID, WebhookError
from .jsontext import Object, read_object
from .stores import Store

TOLERANCE = 300


class Fields(Protocol):
    """Header fields, as every framework has them."""

    def items(self) -> Iterable[tuple[str, str]]: ...


@dataclass(frozen=True)
class Event:
    """An event. Ignore types that you do not know: the relay may add some."""

    id: str
    type: str
    timestamp: str
    data: Object = field(repr=False)


class Webhooks:
    """Receives the relay's webhooks.

    `secrets` are the lines of shop.secret and, while the secret changes, shop.secret.new.
    """

    def __init__(
        self, secrets: Iterable[str], store: Store | None = None, clock: Callable[[], float] = time.time
    ) -> None:
        self._keys = [_key(secret) for secret in secrets]
        if not self._keys:
            raise ValueError("a receiver of webhooks needs a secret")
        self._store = store
        self._clock = clock

    def verify(self, headers: Fields, body: bytes) -> Event:
        """The event of a webhook. Raises WebhookError: then answer 400, and do nothing else."""
        fields = {name.lower(): value for name, value in headers.items()}
        id, moment, signatures = (
            fields.get(f"webhook-{name}", "") for name in ("id", "timestamp", "signature")
        )
        if not (
            re.fullmatch(ID, id) and signatures and moment.isascii() and moment.isdigit() and len(moment) < 12
        ):
            raise WebhookError("headers")
        if abs(self._clock() - int(moment)) > TOLERANCE:
            raise WebhookError("time")
        if not self._is_signed(f"{id}.{moment}.".encode() + body, signatures):
            raise WebhookError("signature")
        return _event(id, body)

    def receive(self, headers: Fields, body: bytes, act: Callable[[Event], None]) -> int:
        """Handles a webhook, and returns the status to answer: 204, or 400.

        `act` runs before the id is stored, so no event is lost. It may run twice if the process dies
        in between: let it have the same effect then. If it raises, answer 500: the relay retries.
        """
        try:
            event = self.verify(headers, body)
        except WebhookError:
            return 400
        if self._store is None:
            act(event)
        elif not self._store.has_seen(event.id):
            token, device = (_id(event.data.get(name)) for name in ("token", "device"))
            if event.type == "device.unbound" and token and device:
                # A lost phone must not count, whatever the relay says later. The user stays one who
                # had a phone: the relay, which signs webhooks, cannot make room for another one.
                self._store.unpin_by_token(token, device)
            act(event)
            self._store.see(event.id, int(self._clock()))
        return 204

    def _is_signed(self, signed: bytes, signatures: str) -> bool:
        given = [part[3:].encode() for part in signatures.split(" ") if part.startswith("v1,")]
        own = [base64.b64encode(hmac.digest(key, signed, "sha256")) for key in self._keys]
        # No early end: the time must not tell which of them matched.
        return any([hmac.compare_digest(one, other) for one in own for other in given])


def _key(secret: str) -> bytes:
    try:
        key = base64.b64decode(secret.strip().removeprefix("whsec_"), validate=True)
    except binascii.Error as error:
        raise ValueError("a secret of webhooks is whsec_ and base64") from error
    # An empty key would accept what anybody signs; Standard Webhooks wants 24 bytes.
    if len(key) < 24:
        raise ValueError("the secret of webhooks is too short")
    return key


def _id(value: Any) -> str | None:
    return value if isinstance(value, str) and re.fullmatch(ID, value) else None


def _event(id: str, body: bytes) -> Event:
    try:
        value = read_object(body)
    except ValueError as error:
        raise WebhookError("body") from error
    type, timestamp, data = (value.get(name) for name in ("type", "timestamp", "data"))
    if not (isinstance(type, str) and isinstance(timestamp, str) and isinstance(data, dict)):
        raise WebhookError("body")
    return Event(id, type, timestamp, data)
