"""Errors as types. Catch `TwoefayError` for all of them; let nobody in after any of them.

Problems of the relay are told apart by their `code`, never by the status alone: an unknown route is
404, too, and says nothing about a user. `word` is the name of an error in all languages of the
clients (clients/README.md).
"""

import re
from collections.abc import Mapping
from typing import Any, ClassVar

NUMBER = "[0-9]{2,6}"
ID = "[A-Za-z0-9_-]{1,128}"
"""An id of the relay: of a challenge, a phone, a user or a webhook. It fits in a path and a column."""


class TwoefayError(Exception):
    """The base of all errors of this package."""

    word: ClassVar[str] = "error"


class Unreachable(TwoefayError):
    """The relay gave no answer."""

    word = "unreachable"


class OddAnswer(TwoefayError):
    """The answer is none of a relay: a proxy has answered, or the relay lies. It says nothing."""

    word = "odd_answer"

    def __init__(self, what: str, status: int | None = None) -> None:
        super().__init__(what if status is None else f"{what} (status {status})")
        self.status = status


class CheckError(TwoefayError):
    """A check of this package failed: the relay may be dishonest. `reason` is a stable word."""

    def __init__(self, reason: str, field: str | None = None) -> None:
        super().__init__(f"{reason}: {field}" if field else reason)
        self.reason = reason
        self.field = field


class ReceiptError(CheckError):
    """The relay reports a success that the phone's receipt does not prove."""

    word = "receipt"


class BindingError(CheckError):
    """A phone's key is not proved by a binding under this website's `k`."""

    word = "binding"


class WebhookError(CheckError):
    """A webhook is not from the relay, or too old. Answer 400."""

    word = "webhook"


class Refused(TwoefayError):
    """The relay refused, with a problem document. Subclasses stand for its codes."""

    word = "refused"
    code_status: ClassVar[int] = 0

    def __init__(self, problem: Mapping[str, Any], status: int, headers: Mapping[str, str]) -> None:
        self.problem = problem
        self.code = str(problem["code"])
        self.status = status
        self.detail = str(problem.get("detail", ""))
        errors = problem.get("errors")
        self.faults = {
            str(fault.get("parameter")): str(fault.get("code"))
            for fault in (errors if isinstance(errors, list) else [])
            if isinstance(fault, Mapping)
        }
        self.request_id = headers.get("request-id")
        wish = headers.get("retry-after", "")
        self.retry_after = int(wish) if wish.isascii() and wish.isdigit() and len(wish) < 10 else None
        faults = "".join(f", {name}: {fault}" for name, fault in self.faults.items())
        super().__init__(f"{status} {self.code}: {self.detail}{faults} (request {self.request_id})")


class Malformed(Refused):
    word, code_status = "malformed", 400


class Invalid(Refused):
    """`faults` names each wrong parameter with the code of its fault."""

    word, code_status = "invalid", 400


class Unauthenticated(Refused):
    word, code_status = "unauthenticated", 401


class Forbidden(Refused):
    word, code_status = "forbidden", 403


class ApprovalRequired(Refused):
    """The user has to approve first: show `number`, wait for `challenge`, and call again with it."""

    word, code_status = "approval_required", 403

    @property
    def challenge(self) -> str:
        return self._matching("challenge", ID) or ""

    @property
    def number(self) -> str | None:
        return self._matching("number", NUMBER)

    def _matching(self, name: str, pattern: str) -> str | None:
        """A member that can stand in a page or a path; None if it is anything else."""
        value = self.problem.get(name)
        return value if isinstance(value, str) and re.fullmatch(pattern, value) else None


class CodesLocked(Refused):
    """Too many codes were wrong. Let the user approve with the phone."""

    word, code_status = "codes_locked", 403


class NotFound(Refused):
    """The user or challenge is unknown, or belongs to another website."""

    word, code_status = "not_found", 404


class RouteNotFound(Refused):
    """The relay has no such route: a fault of this program or of the address, never of a user."""

    word, code_status = "route_not_found", 404


class MethodNotAllowed(Refused):
    word, code_status = "method_not_allowed", 405


class Conflict(Refused):
    """The name, address or number is in use; or, with `retry_after`, the same call still runs."""

    word, code_status = "conflict", 409


class AlreadyDecided(Refused):
    word, code_status = "already_decided", 409


class ShownOnce(Refused):
    """The call was done, but its answer with the secret was lost."""

    word, code_status = "shown_once", 409


class TooLarge(Refused):
    word, code_status = "too_large", 413


class UnsupportedType(Refused):
    word, code_status = "unsupported_type", 415


class IdempotencyMismatch(Refused):
    word, code_status = "idempotency_mismatch", 422


class Limited(Refused):
    """A limit is reached. The client never sleeps for it: tell the visitor `retry_after` seconds."""

    word, code_status = "limited", 429


class Internal(Refused):
    word, code_status = "internal", 500


class Unavailable(Refused):
    word, code_status = "unavailable", 503


BY_CODE: dict[str, type[Refused]] = {kind.word: kind for kind in Refused.__subclasses__()}
