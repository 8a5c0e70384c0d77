"""What the waiting pages of all frameworks share: headers, and what the visitor is told.

The page shows how a login stands by `state`, which is unchecked and lets nobody in. Only the POST
checks the receipt and lets the visitor in, so a request of another site cannot do it.

A browser may submit the page twice, or in two tabs. The second POST finds the request spent, or no
login in the session: it lets nobody in, and only sends the browser on to the site. It must not
touch the session: its copy may be older than what the first POST has made the browser keep, and
would log the visitor out again.
"""

import hmac
import logging
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .errors import CheckError, CodesLocked, Invalid, Limited, ReceiptError, TwoefayError
from .jsontext import Object
from .login import Decision, Login

log = logging.getLogger("twoefay")

TEMPLATES = str(Path(__file__).parent / "templates")
TEMPLATE = "twoefay/waiting.html"
SESSION_KEY = "twoefay"


@dataclass(frozen=True)
class Page:
    """What the visitor is shown."""

    message: str = ""
    status: int = 200
    ended: bool = False
    retry_after: int | None = None
    goes_on: bool = False
    """Nothing is left to confirm: send the browser on to the site, with its session as it is."""


GO_ON = Page(goes_on=True)
STALE_FORM = Page("This page was out of date. Try again.", 403)


def page_of(decision: Decision, is_code: bool) -> Page:
    """The page after a decision that is no approval."""
    if decision.ended:
        return Page("The login was not approved.", 403, ended=True)
    return Page("This code is wrong." if is_code else "")


def page_of_error(error: TwoefayError) -> Page:
    """The page after an error. Nobody is let in, and the log has the reason."""
    match error:
        case Limited():
            pause = error.retry_after or 5
            return Page(f"Too many attempts. Try again in {pause} seconds.", 429, retry_after=pause)
        case CodesLocked():
            return Page("No code is accepted at present. Answer on your phone.", 403)
        case Invalid():
            return Page("This input was not accepted.", 400)
        case ReceiptError(reason="request_used"):
            log.info("a login that was let in was submitted again")
            return GO_ON
        case CheckError():
            log.error("login refused, the relay's answer is not proved: %s", error)
            return Page("The login could not be verified.", 403, ended=True)
        case _:
            log.warning("second factor: %s", error)
            return Page("The second factor cannot be reached at present. Try again.", 503, retry_after=5)


@dataclass(frozen=True)
class Pending:
    """The login in the visitor's session."""

    login: Login
    token: str
    """Proves that a form is ours, for frameworks that do not do so themselves."""
    target: str = "/"

    @classmethod
    def begin(cls, login: Login, target: str = "/") -> "Pending":
        return cls(login, secrets.token_urlsafe(18), target)

    def to_json(self) -> Object:
        return {"login": self.login.to_json(), "token": self.token, "target": self.target}

    @classmethod
    def from_json(cls, value: Any) -> "Pending | None":
        if not value:
            return None
        return cls(Login.from_json(value["login"]), value["token"], value["target"])

    def is_own(self, token: object) -> bool:
        return isinstance(token, str) and hmac.compare_digest(token.encode(), self.token.encode())


def context(pending: Pending | None, page: Page, nonce: str, state_url: str, codes: bool) -> dict[str, Any]:
    """The variables of the template."""
    return {
        "number": pending.login.number if pending else None,
        "token_name": "form_token",
        "token": pending.token if pending else "",
        "message": page.message,
        "ended": page.ended or pending is None,
        "nonce": nonce,
        "state_url": state_url,
        "codes": codes,
    }


def headers(nonce: str, page: Page) -> dict[str, str]:
    """A strict policy: nothing from elsewhere, no script but the one with this nonce."""
    policy = (
        f"default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    )
    fields = {
        "content-security-policy": policy,
        "cache-control": "no-store",
        "referrer-policy": "no-referrer",
        "x-content-type-options": "nosniff",
    }
    return fields | ({} if page.retry_after is None else {"retry-after": str(page.retry_after)})


def new_nonce() -> str:
    return secrets.token_urlsafe(16)
