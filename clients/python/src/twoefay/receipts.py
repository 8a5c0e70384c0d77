"""The check of a receipt: after it, the website need not trust the relay (receipts.md).

Each fault has a stable word, in `ReceiptError.reason`. Nothing here spends the request: the caller
does so last, so that a receipt that fails another check uses up nothing.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .errors import ReceiptError
from .jsontext import Object, is_integer, read_object
from .jws import JWK, JWS, decode, encode, public_key
from .login import Login, UserVerification
from .policy import Policy
from .webphones import verifies_owner

_VERIFICATIONS: tuple[UserVerification, ...] = ("none", "passcode", "biometric")
_ASSURANCES = ("low", "restricted", "substantial", "high")
# The most that a code of each factor assures (docs/websites/api.md).
_MOST_OF_CODE = {
    "totp": "substantial",
    "hotp": "substantial",
    "recovery": "substantial",
    "sms": "restricted",
    "mail": "low",
    "operator": "low",
}
_OF_RELAY = {"place", "device", "created_at", "expires_at"}
_MOST_BYTES = 65_536


def require(holds: bool, reason: str, field: str | None = None) -> None:
    if not holds:
        raise ReceiptError(reason, field)


@dataclass(frozen=True)
class Proof:
    """What is proved of a success that the relay reports."""

    claims: Object | None
    """The receipt's claims. None if a word of the relay was accepted: a code, or the phone of a user
    of whom none was ever pinned."""
    assurance: Any
    """The relay's word, lowered if a web phone cannot reach it."""


def check_success(
    policy: Policy, login: Login, answer: Object, pins: Mapping[str, JWK], was_pinned: bool, now: int
) -> Proof:
    """Checks a success that the relay reports."""
    claims = _proved(policy, login, answer, pins, was_pinned)
    require(answer.get("challenge") == login.challenge, "challenge")
    word = answer.get("assurance")
    if claims is not None and word == "high" and not _can_be_high(policy, pins[answer["device"]]):
        word = "substantial"
    _check_strength(login, answer, word)
    require(now - login.asked_at <= policy.longest_age, "age")
    return Proof(claims, word)


def _can_be_high(policy: Policy, record: JWK) -> bool:
    """Whether the password and the phone are two things: who changes the pages of one host, where
    users type the password and the web phone runs, has both."""
    return "app" not in record or policy.is_apart(record["app"])


def _proved(
    policy: Policy, login: Login, answer: Object, pins: Mapping[str, JWK], was_pinned: bool
) -> Object | None:
    proof = answer.get("proof")
    # An unpinned phone counts as well: the relay reports the unbinding of phones.
    trusts_phones = policy.allow_unpinned and not was_pinned and not pins
    if proof == "code" and policy.accept_codes:
        return None
    if proof in ("signed", "certificate", "website") and trusts_phones:
        return None
    require(proof == "signed", "not_signed")
    return check_receipt(policy, login, answer, pins)


def _check_strength(login: Login, answer: Object, word: Any) -> None:
    """The relay's word, but an honest one must not be weaker than the website asked."""
    factor = answer.get("factor")
    if answer.get("proof") == "code":
        require(isinstance(factor, str) and factor in _MOST_OF_CODE, "factor")
    if login.factors is not None:
        used = "push" if factor == "pull" else factor
        require(used in login.factors, "factor")
    if answer.get("proof") == "code":
        most = _ASSURANCES.index(_MOST_OF_CODE[str(factor)])
        require(word not in _ASSURANCES[most + 1 :], "assurance")
    if login.min_assurance is not None:
        require(
            word in _ASSURANCES and _ASSURANCES.index(word) >= _ASSURANCES.index(login.min_assurance),
            "assurance",
        )


def check_receipt(policy: Policy, login: Login, answer: Object, pins: Mapping[str, JWK]) -> Object:
    """The steps 1 to 11 of receipts.md. Returns the claims, with the `uv` that counts."""
    device, receipt, context = (answer.get(name) for name in ("device", "receipt", "context"))
    if not (isinstance(device, str) and isinstance(receipt, str) and isinstance(context, str)):
        raise ReceiptError("incomplete")
    require(device in pins, "unknown_device")
    header, claims = _signed(receipt, pins[device])
    require(claims["aud"] == policy.audience, "audience")
    require(header.get("kid") == device, "device")
    require(claims["decision"] == "approve", "decision")
    require(claims.get("request") == login.request and login.request != "", "request")
    require(claims.get("number") == login.number, "number")
    _check_context(policy, login, context, claims["context"])
    require(claims["challenge"] == login.challenge, "challenge")
    claims["uv"] = _verification(claims["uv"], pins[device], receipt, answer.get("webauthn"))
    _check_verification(policy, claims)
    require(len(login.number or "") >= policy.least_digits, "digits")
    return claims


def _signed(receipt: str, jwk: JWK) -> tuple[Object, Object]:
    try:
        jws = JWS.parse(receipt, "ES256")
    except ValueError as error:
        raise ReceiptError("malformed") from error
    require(jws.is_signed_by(public_key(jwk)), "signature")
    require(jws.header.get("typ") == "twoefay-decision+jwt", "type")
    try:
        claims = read_object(jws.payload)
    except ValueError as error:
        raise ReceiptError("claims") from error
    require(_are_claims(claims), "claims")
    return jws.header, claims


def _are_claims(claims: Object) -> bool:
    texts = ("aud", "challenge", "decision", "nonce", "context", "uv")
    # These are texts or absent: the number 7 is not the text "07".
    optional = ("request", "number")
    return (
        is_integer(claims.get("v"))
        and claims["v"] == 1
        and all(isinstance(claims.get(name), str) for name in texts)
        and all(isinstance(claims[name], str) for name in optional if name in claims)
        and claims["uv"] in _VERIFICATIONS
        and is_integer(claims.get("iat"))
        and ("uv_age" not in claims or is_integer(claims["uv_age"]))
    )


def _verification(word: UserVerification, record: JWK, receipt: str, assertion: Any) -> UserVerification:
    """The phone's word, as far as it counts. A web phone's owner has to prove it, and WebAuthn does
    not say which check it was."""
    if "app" not in record or word == "none":
        return word
    return "passcode" if verifies_owner(record, receipt, assertion) else "none"


def _check_verification(policy: Policy, claims: Object) -> None:
    least = _VERIFICATIONS.index(policy.least_user_verification)
    require(_VERIFICATIONS.index(claims["uv"]) >= least, "user_verification")
    longest = policy.longest_verification_age
    if longest is not None:
        age = claims.get("uv_age", -1)
        require(claims["uv"] != "none" and 0 <= age <= longest, "user_verification_age")


def _check_context(policy: Policy, login: Login, context: str, digest: Any) -> None:
    """The phone showed exactly what the website sent, and nothing else."""
    try:
        shown = decode(context)
    except ValueError as error:
        raise ReceiptError("context") from error
    require(len(shown) <= _MOST_BYTES, "context")
    require(encode(hashlib.sha256(shown).digest()) == digest, "context_digest")
    try:
        members = read_object(shown)
    except ValueError as error:
        raise ReceiptError("context") from error
    expected = {
        "v": 1,
        "website": policy.website,
        "number_digits": len(login.number or ""),
        # The operator may rename a website, so its name counts only if the website demands one.
        "display_name": policy.display_name or members.get("display_name"),
        **login.sent,
    }
    seen = {name: value for name, value in members.items() if name not in _OF_RELAY}
    for name in (*expected, *seen):
        require(name in seen and name in expected and _is_same(seen[name], expected[name]), "field", name)


def _is_same(one: object, other: object) -> bool:
    """Equality, but without Python's 1 == True == 1.0."""
    if isinstance(one, bool) or isinstance(other, bool) or type(one) is not type(other):
        return False
    return one == other
