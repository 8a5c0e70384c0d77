"""What both clients share about HTTP: TLS, limits, and one request with one answer.

httpx offers HTTP/2 and HTTP/1.1, and the relay picks. Nothing here depends on which.
"""

import ssl
import time
from collections.abc import Iterator
from os import PathLike, fspath
from pathlib import Path
from urllib.parse import urlsplit

import httpx
from cryptography import x509

from .answers import Answer
from .errors import Unreachable
from .steps import Call

Path_ = str | PathLike[str]

_MOST_BYTES = 1 << 20
_TIME = 15.0
_NAME = "twoefay:website:"


def origin_of(url: str) -> str:
    """Checks the relay's origin. Phones sign it, so it must be exactly that of the relay's settings."""
    parts = urlsplit(url)
    if parts.scheme != "https" or not parts.hostname or url != f"https://{parts.netloc}" or "@" in url:
        raise ValueError(f"{url!r} is not an origin such as https://login.example.com:8080")
    return url


def website_of(certificate: Path_) -> str:
    """The website's name, from its certificate."""
    loaded = x509.load_pem_x509_certificate(Path(certificate).read_bytes())
    names = loaded.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    uris = names.get_values_for_type(x509.UniformResourceIdentifier)
    if len(uris) != 1 or not uris[0].startswith(_NAME):
        raise ValueError(f"{fspath(certificate)} is not the certificate of a website")
    return uris[0].removeprefix(_NAME)


def tls(ca: Path_, certificate: Path_, key: Path_) -> ssl.SSLContext:
    """TLS that trusts the relay's own authority, and no other."""
    context = ssl.create_default_context(cafile=fspath(ca))
    context.load_cert_chain(fspath(certificate), fspath(key))
    return context


def arguments(call: Call) -> dict[str, object]:
    """The arguments of httpx's `stream` for a call."""
    # An answer is at most some kilobytes: without compression, a small one cannot become large.
    headers = {"accept-encoding": "identity", "user-agent": "twoefay-python", **call.headers}
    timeout = httpx.Timeout(_TIME, connect=5, read=call.hold + _TIME)
    return {"json": call.body, "headers": headers, "timeout": timeout}


class Reading:
    """Collects a body within limits of size and time: a relay must not fill the memory of a website."""

    def __init__(self, call: Call) -> None:
        self._end = time.monotonic() + call.hold + 2 * _TIME
        self._parts: list[bytes] = []
        self._size = 0

    def add(self, part: bytes) -> None:
        self._size += len(part)
        if self._size > _MOST_BYTES or time.monotonic() > self._end:
            raise Unreachable("the answer is too long")
        self._parts.append(part)

    def add_all(self, parts: Iterator[bytes]) -> None:
        for part in parts:
            self.add(part)

    def answer(self, response: httpx.Response) -> Answer:
        headers = {name.lower(): value for name, value in response.headers.items()}
        return Answer(response.status_code, headers, b"".join(self._parts))


def options(base: str, context: ssl.SSLContext | None) -> dict[str, object]:
    """Options of an httpx client. It ignores proxies, .netrc and authorities of the environment."""
    verify: dict[str, object] = {} if context is None else {"verify": context}
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=8, keepalive_expiry=30)
    return {"base_url": base, "http2": True, "trust_env": False, "limits": limits, **verify}
