"""Known browsers: a cookie that keeps an attacker with a password from disturbing the owner's logins.

It lets nobody in and is no second factor. It only decides which logins share a limit. The form is
that of the other clients, so that all servers of a website accept it.
"""

import hmac
import secrets
import time

from .jws import decode, encode

LIFE = 180 * 86_400


class KnownBrowsers:
    """Makes and checks cookies. `key` is a secret of the website, at least 32 bytes.

    Set the cookie with HttpOnly, Secure, SameSite=Lax and a Max-Age of LIFE, after a login whose
    proof was checked. Pass `knows(…)` as `known` to `ask`.
    """

    def __init__(self, key: bytes) -> None:
        if len(key) < 32:
            raise ValueError("the key needs at least 32 bytes")
        self._key = key

    def value(self, username: str, now: float | None = None) -> str:
        made = int(time.time() if now is None else now)
        body = made.to_bytes(8, "big") + secrets.token_bytes(12)
        return encode(body + self._tag(body, username))

    def knows(
        self, value: str | None, username: str, now: float | None = None, not_before: float = 0
    ) -> bool:
        """Whether the cookie was made for this user, and not before `not_before`, such as the time
        of the last change of the password."""
        try:
            data = decode(value or "")
        except ValueError:
            return False
        if len(data) != 52 or not hmac.compare_digest(data[20:], self._tag(data[:20], username)):
            return False
        made, clock = int.from_bytes(data[:8], "big"), time.time() if now is None else now
        return made <= clock + 60 and clock < made + LIFE and made >= not_before

    def _tag(self, body: bytes, username: str) -> bytes:
        return hmac.digest(self._key, b"twoefay known browser\0" + body + username.encode(), "sha256")
