"""Texts from a browser. They are cleaned and clipped, and never a reason to refuse a login."""

import ipaddress
import re
import unicodedata
from urllib.parse import quote

MOST_CHARACTERS = 512

# Characters without a glyph that are in none of the categories below: Unicode's
# Default_Ignorable_Code_Point, as far as it is assigned to letters, marks and symbols.
_IGNORABLE = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
_HIDDEN = {"Cc", "Cf", "Cs", "Cn", "Co", "Zl", "Zp"}


def browser(user_agent: str | None) -> str | None:
    """The User-Agent as the relay accepts it; None if nothing of it is visible."""
    if user_agent is None:
        return None
    seen = "".join(c for c in user_agent if unicodedata.category(c) not in _HIDDEN)
    return _IGNORABLE.sub("", seen).strip()[:MOST_CHARACTERS].strip() or None


def address(ip: str | None) -> str | None:
    """The visitor's address in its short form; None if the text is no address."""
    try:
        parsed = ipaddress.ip_address(ip or "")
    except ValueError:
        return None
    if isinstance(parsed, ipaddress.IPv6Address) and parsed.scope_id:
        return None
    return str(getattr(parsed, "ipv4_mapped", None) or parsed)  # a socket for both families maps them


def segment(value: str) -> str:
    """A value as one segment of a path. HTTP clients resolve "." and "..", so they cannot be sent."""
    if value in ("", ".", ".."):
        raise ValueError(f"{value!r} cannot be a segment of a path")
    return quote(value, safe="")
