"""Cases of `decide`: the relay answers /auth, and the website decides whether the user is let in."""

import base64
from collections.abc import Iterator
from typing import Any

from world import (
    ADAS, AUDIENCE, CLOCK, CONTEXT, MALLORYS, ORIGIN, SENT, Object, Receipt,
    b64, compact, ident, login, mac, reply, without,
)


def refused(reason: str, **more: str) -> Object:
    return {"outcome": "refused", "error": "receipt", "reason": reason, **more}


APPROVED: Object = {"outcome": "approved", "device": ADAS.device, "proof": "signed"}


def decide(
    name: str, about: str, answer: Object, expected: Object, *, asked: Object | None = None,
    website: Object | None = None, pinned: Object | None = None, is_open: bool = True,
) -> Object:
    return {
        "name": name, "about": about, "call": "decide", "website": website or {}, "clock": CLOCK,
        "given": {
            "login": asked or login(), "open": is_open,
            "pinned": {ADAS.device: ADAS.jwk} if pinned is None else pinned,
        },
        "answer": answer, "expected": expected,
    }


def lie(name: str, about: str, members: Object, reason: str, field: str = "", **more: Any) -> Object:
    expected = refused(reason, field=field) if field else refused(reason)
    return decide(name, about, reply(members), expected, **more)


def good() -> Iterator[Object]:
    honest = Receipt()
    yield decide("good", "The user's own phone approved exactly this login.", reply(honest.answer()), APPROVED)
    yield decide(
        "good-other-s", "A signature with n - s is the same answer.",
        reply(honest.answer(receipt=ADAS.negated(honest.jws()))), APPROVED)
    yield decide(
        "good-renamed-website", "The operator renamed the website: its display name decides nothing.",
        reply(Receipt().show(display_name="The Better Shop").answer()), APPROVED)
    bare = Receipt().show(service=None, action=None, details=None, ip=None, user_agent=None, place=None)
    yield decide(
        "good-bare", "A login with no values but the user.", reply(bare.answer()), APPROVED,
        asked=login(sent={"username": "ada", "request": SENT["request"]}))
    yield decide(
        "good-further-claims", "The policies max-uv-age and phone-place add claims.",
        reply(Receipt().claim(uv_age=4, place="52.5,13.4").answer(uv="biometric", uv_age=4)), APPROVED)
    yield decide(
        "good-no-number", "A website whose policy needs no number accepts a login without one.",
        reply(Receipt().show(number_digits=0).claim(number=None).answer()), APPROVED,
        asked=without(login(), "number"), website={"least_digits": 0})
    yield decide(
        "good-name-that-was-asked-for", "The website demands the name that the phone showed.",
        reply(honest.answer()), APPROVED, website={"display_name": "The Shop"})
    for reason in ("denied", "fraud", "wrong_number", "expired", "superseded", "locked", "undeliverable"):
        yield decide(
            f"denied-{reason}", "A failure lets nobody in; the website learns the reason.",
            reply({"login": "failure", "challenge": login()["challenge"], "factor": "push",
                   "assurance": None, "proof": None, "steps": [], "reason": reason}),
            {"outcome": "denied", "reason": reason})
    yield decide(
        "open", "The challenge is not decided.",
        reply({"login": "wait", "challenge": login()["challenge"], "factor": "push", "steps": []}),
        {"outcome": "open"})


def forged() -> Iterator[Object]:
    """The relay makes up the approval, or has it signed by somebody else."""
    honest = Receipt()
    yield lie("no-receipt", "An approval without a receipt.", honest.answer(receipt=None), "incomplete")
    yield lie("no-context", "An approval without a context.", honest.answer(context=None), "incomplete")
    yield lie("no-device", "An approval without a phone.", honest.answer(device=None), "incomplete")
    for name, device in (("list", []), ("object", {}), ("integer", 7)):
        yield lie(f"device-{name}", "The phone is not a text.", honest.answer(device=device), "incomplete")
    yield lie("receipt-not-text", "The receipt is not a text.", honest.answer(receipt=7), "incomplete")
    for proof in ("code", "certificate", "website"):
        yield lie(
            f"claims-{proof}", f"The relay claims that the proof was {proof}: only its word.",
            honest.answer(proof=proof, receipt=None, context=None, device=None), "not_signed")
    yield lie("claims-no-proof", "The answer names no proof.", honest.answer(proof=None), "not_signed")
    yield lie(
        "claims-unknown-proof", "The answer names a proof that no version knows.",
        honest.answer(proof="trust-me"), "not_signed")
    other = Receipt(MALLORYS).head(kid=MALLORYS.device)
    yield lie(
        "foreign-phone", "Another phone approved, which nobody pinned.",
        other.answer(device=MALLORYS.device), "unknown_device")
    yield lie("foreign-key", "Another key signed under the phone's name.", Receipt(MALLORYS).answer(), "signature")
    yield lie(
        "key-in-header", "The receipt brings the key that checks it.",
        Receipt(MALLORYS).head(jwk=MALLORYS.jwk).answer(), "signature")
    yield lie(
        "nothing-pinned", "No phone of the user is pinned, and the website did not accept that.",
        honest.answer(), "unknown_device", pinned={})
    yield lie(
        "pinned-to-another-name", "A pinned phone of the user signed in the name of another pinned phone.",
        Receipt(MALLORYS).answer(), "signature", pinned={ADAS.device: ADAS.jwk, MALLORYS.device: MALLORYS.jwk})
    yield lie(
        "kid-of-another", "The header names another phone than the answer.",
        Receipt().head(kid=MALLORYS.device).answer(), "device")
    yield lie("no-kid", "The header names no phone.", Receipt().head(kid=None).answer(), "device")
    payload = honest.payload()
    none = f"{b64(compact(honest.header | {'alg': 'none'}))}.{b64(payload)}."
    yield lie("alg-none", "The header says that there is no signature.", honest.answer(receipt=none), "malformed")
    point = b"\x04" + b"".join(base64.urlsafe_b64decode(ADAS.jwk[name] + "==") for name in "xy")
    confused = mac(point, honest.header | {"alg": "HS256"}, payload)
    yield lie(
        "alg-confusion", "An HMAC whose key is the phone's public key.", honest.answer(receipt=confused), "malformed")
    for algorithm in ("ES384", "es256", "RS256"):
        yield lie(
            f"alg-{algorithm}", "The algorithm is fixed; the header does not choose it.",
            Receipt().head(alg=algorithm).answer(), "malformed")
    yield lie("no-alg", "The header names no algorithm.", Receipt().head(alg=None).answer(), "malformed")
    yield lie(
        "critical", "The header demands an extension that the website does not know.",
        Receipt().head(crit=["exp"], exp=CLOCK).answer(), "malformed")
    text, _, signature = honest.jws().rpartition(".")
    yield lie("unsigned", "The signature is missing.", honest.answer(receipt=f"{text}."), "malformed")
    yield lie("two-parts", "The receipt has two parts.", honest.answer(receipt=text), "malformed")
    yield lie("padded", "The signature has padding.", honest.answer(receipt=honest.jws() + "=="), "malformed")
    yield lie(
        "zero-signature", "Both numbers of the signature are zero.",
        honest.answer(receipt=f"{text}.{b64(bytes(64))}"), "signature")
    changed = honest.payload().replace(b'"approve"', b'"approvE"')
    head = honest.jws().split(".")[0]
    yield lie(
        "changed-payload", "The claims were changed after the signature.",
        honest.answer(receipt=f"{head}.{b64(changed)}.{signature}"), "signature")
    yield lie(
        "binding-as-receipt", "Another statement of the phone stands in for a decision.",
        Receipt().head(typ="twoefay-token+jwt").answer(), "type")
    yield lie("no-typ", "The header names no type.", Receipt().head(typ=None).answer(), "type")


def moved() -> Iterator[Object]:
    """The phone signed, but something else."""
    yield lie("denial-as-approval", "The user denied.", Receipt().claim(decision="deny").answer(), "decision")
    yield lie("fraud-as-approval", "The user reported fraud.", Receipt().claim(decision="fraud").answer(), "decision")
    yield lie(
        "other-challenge", "The receipt of another challenge.",
        Receipt().claim(challenge=ident("another challenge")).answer(), "challenge")
    yield lie(
        "answer-of-other-challenge", "The answer itself names another challenge.",
        Receipt().answer(challenge=ident("another challenge")), "challenge")
    yield lie(
        "other-website", "The receipt was made for another website.",
        Receipt().claim(aud=f"{ORIGIN}#bank").answer(), "audience")
    yield lie(
        "other-relay", "The receipt was made at another relay.",
        Receipt().claim(aud="https://login.example.org#shop").answer(), "audience")
    yield lie(
        "audience-list", "The audience is a list that holds the right one.",
        Receipt().claim(aud=[AUDIENCE]).answer(), "claims")
    yield lie(
        "other-request", "The receipt answers another request of the website.",
        Receipt().claim(request=ident("another request")).answer(), "request")
    yield lie("no-request", "The receipt answers no request.", Receipt().claim(request=None).answer(), "request")
    yield lie("no-nonce", "The receipt has no nonce.", Receipt().claim(nonce=None).answer(), "claims")
    yield lie("version-2", "A version that this library does not know.", Receipt().claim(v=2).answer(), "claims")
    yield lie("version-true", "True is not the number 1.", Receipt().claim(v=True).answer(), "claims")
    yield lie("unknown-uv", "An unknown verification of the user.", Receipt().claim(uv="psychic").answer(), "claims")
    yield lie("no-time", "The receipt has no time.", Receipt().claim(iat=None).answer(), "claims")
    yield lie("other-number", "The person typed another number.", Receipt().claim(number="48").answer(), "number")
    yield lie("number-missing", "The person typed no number.", Receipt().claim(number=None).answer(), "number")
    yield lie("number-as-integer", "The number is not a text.", Receipt().claim(number=47).answer(), "claims")
    yield lie(
        "number-left-out", "The relay left the number out, for the website and the phone alike.",
        Receipt().show(number_digits=0).claim(number=None).answer(), "digits", asked=without(login(), "number"))
    yield lie(
        "too-few-digits", "The website's policy has six digits, the relay asked for two.",
        Receipt().answer(), "digits", website={"least_digits": 6})
    yield lie(
        "weaker-verification", "The phone did not verify its user as the website requires.",
        Receipt().claim(uv="passcode").answer(), "user_verification",
        website={"least_user_verification": "biometric"})
    for name, claims in (("old", {"uv_age": 61}), ("no", {}), ("negative", {"uv_age": -1})):
        yield lie(
            f"{name}-verification-age", "The website accepts a verification of at most a minute ago.",
            Receipt().claim(**claims).answer(), "user_verification_age",
            website={"longest_verification_age": 60})
    yield lie(
        "held-back", "The relay held the approval back for longer than any challenge lives.",
        Receipt().answer(), "age", asked=login(asked_at=CLOCK - 601))
    yield lie(
        "replayed", "The receipt was accepted before.", Receipt().answer(), "request_used", is_open=False)


def shown() -> Iterator[Object]:
    """The phone showed the person something else than the website asked."""
    changes: list[tuple[str, Object, str]] = [
        ("website", {"website": "bank"}, "website"),
        ("user", {"username": "bob"}, "username"),
        ("amount", {"details": [{"label": "amount", "value": "EUR 4000.00"}, SENT["details"][1]]}, "details"),
        ("details-order", {"details": list(reversed(SENT["details"]))}, "details"),
        ("details-member", {"details": [SENT["details"][0] | {"note": "x"}, SENT["details"][1]]}, "details"),
        ("details-missing", {"details": None}, "details"),
        ("ip", {"ip": "198.51.100.9"}, "ip"),
        ("browser", {"user_agent": "curl/8.0"}, "user_agent"),
        ("browser-missing", {"user_agent": None}, "user_agent"),
        ("service", {"service": "Newsletter"}, "service"),
        ("action", {"action": "Log in"}, "action"),
        ("request", {"request": ident("another request")}, "request"),
        ("digits", {"number_digits": 6}, "number_digits"),
        ("version", {"v": 2}, "v"),
        ("foreign-member", {"hint": "Just approve."}, "hint"),
        ("normal-form", {"details": [SENT["details"][0], {"label": "to", "value": "Cafe\u0301 Zoe\u0308"}]}, "details"),
        ("null", {"place": None, "service": ["Payments"]}, "service"),
    ]
    for name, change, field in changes:
        yield lie(f"showed-other-{name}", f"The phone showed another {field}.", Receipt().show(**change).answer(), "field", field)
    yield lie(
        "showed-unasked-ip", "The phone showed an address that the website did not send.",
        Receipt().answer(), "field", "ip", asked=login(sent=without(SENT, "ip")))
    yield lie(
        "showed-other-name", "The website demands another display name.",
        Receipt().answer(), "field", "display_name", website={"display_name": "My Shop"})
    other = b64(compact(CONTEXT | {"ip": "198.51.100.9"}))
    yield lie(
        "context-swapped", "The relay passes another context on than the phone showed.",
        Receipt().answer(context=other), "context_digest")
    for name, text in (
        ("twice", compact(CONTEXT).replace(b'"ip":', b'"ip":"198.51.100.9","ip":')),
        ("list", b"[1]"),
        ("not-json", b"{"),
        ("not-utf8", compact(CONTEXT).replace("é".encode(), b"\xe9")),
    ):
        receipt = Receipt()
        receipt.shown = text
        yield lie(f"context-{name}", "The context is not one unambiguous object.", receipt.answer(), "context")
    yield lie(
        "context-not-base64url", "The context is not base64url.",
        Receipt().answer(context="not base64url!"), "context")


def weaker() -> Iterator[Object]:
    """Codes: the relay's word, which a website accepts only if it says so."""
    trusting = {"accept_codes": True}
    code = Receipt().answer(factor="totp", assurance="substantial", proof="code", receipt=None, context=None, device=None)
    yield decide(
        "code-accepted", "The website accepts codes, and so the relay's word.", reply(code),
        {"outcome": "approved", "proof": "code"}, website=trusting)
    yield lie(
        "code-below-assurance", "The website asked for a higher assurance than the relay reports.", code,
        "assurance", website=trusting, asked=login(min_assurance="high"))
    yield lie(
        "code-unknown-assurance", "An unknown assurance is none.", code | {"assurance": "supreme"},
        "assurance", website=trusting, asked=login(min_assurance="low"))
    yield lie(
        "code-of-other-factor", "The website asked for another factor.", code | {"factor": "sms"},
        "factor", website=trusting, asked=login(factors=["totp"]))
    yield lie(
        "code-for-other-challenge", "The answer is for another challenge.",
        code | {"challenge": ident("another challenge")}, "challenge", website=trusting)
    yield lie(
        "code-replayed", "The login was let in before.", code, "request_used", website=trusting, is_open=False)
    yield lie(
        "code-held-back", "The relay reports a success after the challenge's life.", code, "age",
        website=trusting, asked=login(asked_at=CLOCK - 601))
    yield lie(
        "code-where-a-phone-was-asked", "The website asked for a phone.", code, "factor",
        website=trusting, asked=login(factors=["push"]))
    yield lie(
        "code-as-push", "A code is no answer of a phone, whatever factor and assurance the relay names.",
        code | {"factor": "push", "assurance": "high"}, "factor",
        website=trusting, asked=login(factors=["push"], min_assurance="high"))
    for factor in ("push", "pull", "trust-me", None, ["totp"]):
        yield lie(
            f"code-of-{'list' if isinstance(factor, list) else factor}", "No code is of this factor.",
            code | {"factor": factor}, "factor", website=trusting)
    for factor, most, above in (
        ("totp", "substantial", "high"), ("hotp", "substantial", "high"), ("recovery", "substantial", "high"),
        ("sms", "restricted", "substantial"), ("mail", "low", "restricted"), ("operator", "low", "restricted"),
    ):
        yield decide(
            f"code-of-{factor}", "A code of this factor, with the most that it can assure.",
            reply(code | {"factor": factor, "assurance": most}), {"outcome": "approved", "proof": "code"},
            website=trusting, asked=login(min_assurance=most))
        yield lie(
            f"code-of-{factor}-raised", "No code of this factor can assure so much.",
            code | {"factor": factor, "assurance": above}, "assurance", website=trusting)
    for proof in ("certificate", "website"):
        yield lie(
            f"{proof}-where-codes-count", "Codes are accepted, and no other word of the relay.",
            code | {"proof": proof, "factor": "push"}, "not_signed", website=trusting)
    unpinned = {"allow_unpinned": True}
    yield decide(
        "unpinned-accepted", "The website has pinned no phone of this user, and accepts that.",
        reply(Receipt().answer()), {"outcome": "approved", "proof": "signed", "device": ADAS.device},
        website=unpinned, pinned={})
    yield lie(
        "unpinned-beside-pinned", "Once a phone of the user is pinned, only pinned phones count.",
        Receipt(MALLORYS).head(kid=MALLORYS.device).answer(device=MALLORYS.device), "unknown_device",
        website=unpinned)
    yield lie(
        "unpinned-replayed", "Without pins, a login still lets in once.", Receipt().answer(), "request_used",
        website=unpinned, pinned={}, is_open=False)


def broken() -> Iterator[Object]:
    """Answers that are none: nobody is let in, and none of them is read as a denial."""
    odd: Object = {"outcome": "error", "error": "odd_answer"}
    honest = Receipt().answer()
    for name, answer in (
        ("unknown-login", reply(honest | {"login": "approved"})),
        ("empty-login", reply({"login": ""})),
        ("capital-login", reply(honest | {"login": "Success"})),
        ("true-login", reply(honest | {"login": True})),
        ("no-login", reply(without(honest, "login"))),
        ("not-json", reply("<html>welcome</html>", kind="text/html")),
        ("json-as-html", reply(honest, kind="text/html")),
        ("empty", reply("")),
        ("half-a-character", reply('{"login": "wait", "reason": "\\ud800"}')),
        ("list", reply([honest])),
        ("redirect", reply(honest, 302, location="https://login.example.org/auth")),
        ("other-status", reply(honest, 299)),
        ("html-404", reply("<h1>Not Found</h1>", 404, "text/html")),
        ("json-404-without-code", reply({"message": "no Route matched"}, 404)),
        ("problem-with-other-status", reply(
            {"type": "about:blank", "status": 404, "code": "not_found"}, 403, "application/problem+json")),
    ):
        yield decide(f"odd-{name}", "This is no answer of a relay.", answer, odd)


def cases() -> list[Object]:
    groups = (good(), forged(), moved(), shown(), weaker(), broken())
    return [case for group in groups for case in group]
