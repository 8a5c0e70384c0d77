"""Second factors on phones for websites: the client of the Twoefay relay.

Start with README.md: fifteen lines let a user in by a phone. `Relay` is the synchronous client,
`AsyncRelay` the asynchronous one; both have the same methods.
"""

from .aio import AsyncRelay
from .browsers import KnownBrowsers
from .enrolment import Enrolment
from .errors import (
    AlreadyDecided,
    ApprovalRequired,
    BindingError,
    CheckError,
    CodesLocked,
    Conflict,
    Forbidden,
    IdempotencyMismatch,
    Internal,
    Invalid,
    Limited,
    Malformed,
    MethodNotAllowed,
    NotFound,
    OddAnswer,
    ReceiptError,
    Refused,
    RouteNotFound,
    ShownOnce,
    TooLarge,
    TwoefayError,
    Unauthenticated,
    Unavailable,
    Unreachable,
    UnsupportedType,
    WebhookError,
)
from .login import Decision, Login
from .operations import Factor
from .relay import Relay
from .stores import DatabaseStore, MemoryStore, SQLiteStore, Store
from .webhooks import Event, Webhooks

__version__ = "0.1.0"

__all__ = [
    "AlreadyDecided",
    "ApprovalRequired",
    "AsyncRelay",
    "BindingError",
    "CheckError",
    "CodesLocked",
    "Conflict",
    "DatabaseStore",
    "Decision",
    "Enrolment",
    "Event",
    "Factor",
    "Forbidden",
    "IdempotencyMismatch",
    "Internal",
    "Invalid",
    "KnownBrowsers",
    "Limited",
    "Login",
    "Malformed",
    "MemoryStore",
    "MethodNotAllowed",
    "NotFound",
    "OddAnswer",
    "ReceiptError",
    "Refused",
    "Relay",
    "RouteNotFound",
    "SQLiteStore",
    "ShownOnce",
    "Store",
    "TooLarge",
    "TwoefayError",
    "Unauthenticated",
    "Unavailable",
    "Unreachable",
    "UnsupportedType",
    "WebhookError",
    "Webhooks",
]
