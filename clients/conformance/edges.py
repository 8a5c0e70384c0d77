"""Further cases of `decide`: values in a loose form, and values exactly at a limit."""

from collections.abc import Iterator
from typing import Any

from decisions import APPROVED, decide, lie
from world import (
    ADAS, AUDIENCE, BOBS, BOM, CHALLENGE, CLOCK, CONTEXT, PROBLEM_TYPE, SENT, Object, Receipt,
    b64, compact, doubled, ident, login, reply, without,
)


def others() -> Iterator[Object]:
    """What is pinned for another user proves nothing about this one."""
    bobs = {"bob": {"token": ident("token of bob"), "k": [], "pinned": {BOBS.device: BOBS.jwk}}}

    def with_bob(case: Object) -> Object:
        return case | {"given": case["given"] | {"others": bobs}}

    foreign = Receipt(BOBS).head(kid=BOBS.device).answer(device=BOBS.device)
    yield with_bob(lie(
        "phone-of-another-user", "Bob's own phone approved Ada's login.", foreign, "unknown_device"))
    yield with_bob(lie(
        "phone-of-another-user-only", "Bob's own phone approved; no phone of Ada is pinned.", foreign,
        "unknown_device", pinned={}))
    yield with_bob(lie(
        "key-of-another-user", "Bob's phone signed under the name of Ada's phone.",
        Receipt(BOBS).answer(), "signature"))
    yield with_bob(lie(
        "name-of-another-users-phone", "Ada's phone signed under the name of Bob's phone.",
        Receipt().head(kid=BOBS.device).answer(device=BOBS.device), "unknown_device"))
    yield with_bob(decide(
        "good-beside-another-user", "Both users have a phone; Ada's approved.", reply(Receipt().answer()), APPROVED))
    yield with_bob(decide(
        "unpinned-beside-another-user", "Bob's phone does not count as one of Ada's.", reply(Receipt().answer()),
        APPROVED, website={"allow_unpinned": True}, pinned={}))
    for name, user in (("case", "Ada"), ("space", "ada "), ("accent", "\u00e1da"), ("zero", "ada\0")):
        case = lie(
            f"phone-of-a-like-name-{name}", "Names of users are compared byte by byte.", Receipt().answer(),
            "unknown_device", pinned={})
        like = {user: {"token": ident("a like name"), "k": [], "pinned": {ADAS.device: ADAS.jwk}}}
        yield case | {"given": case["given"] | {"others": like}}


def words() -> Iterator[Object]:
    """Words in another case, longer, shorter, or in a list."""
    for name, value in (
        ("longer", f"{AUDIENCE}x"), ("suffix", f"{AUDIENCE}.evil.example"), ("shorter", AUDIENCE[:-1]),
        ("prefix", f"x{AUDIENCE}"), ("origin-only", AUDIENCE.split("#")[0]), ("empty", ""),
        ("capitals", AUDIENCE.upper()), ("capital-website", AUDIENCE.replace("#shop", "#Shop")),
        ("capital-host", AUDIENCE.replace("login", "Login")), ("slash", AUDIENCE.replace("#", "/#")),
        ("space", f"{AUDIENCE} "), ("line", f"{AUDIENCE}\n"), ("no-port", AUDIENCE.replace(":8080", "")),
    ):
        yield lie(
            f"audience-{name}", "The audience is compared byte by byte.",
            Receipt().claim(aud=value).answer(), "audience")
    kid = ADAS.device
    for name, value in (
        ("longer", f"{kid}0"), ("shorter", kid[:-1]), ("capitals", kid.upper()), ("space", f"{kid} "),
        ("list", [kid]), ("object", {"device": kid}), ("true", True), ("empty", ""),
    ):
        yield lie(f"kid-{name}", "The header names exactly the phone.", Receipt().head(kid=value).answer(), "device")
    for name, value in (
        ("capital", "Approve"), ("capitals", "APPROVE"), ("longer", "approved"), ("shorter", "approv"),
        ("space", "approve "), ("empty", ""), ("success", "success"),
    ):
        yield lie(
            f"decision-{name}", "The decision is exactly `approve`.", Receipt().claim(decision=value).answer(), "decision")
    for name, value in (("true", True), ("list", ["approve"]), ("integer", 1)):
        yield lie(
            f"decision-{name}", "The decision is a text.", Receipt().claim(decision=value).answer(), "claims")
    typ = "twoefay-decision+jwt"
    for name, value in (
        ("capitals", typ.upper()), ("media-type", f"application/{typ}"), ("shorter", "decision+jwt"), ("jwt", "JWT"),
        ("longer", f"{typ}s"), ("space", f"{typ} "), ("list", [typ]), ("true", True),
    ):
        yield lie(f"typ-{name}", "The type is exactly that of a decision.", Receipt().head(typ=value).answer(), "type")
    yield lie("alg-list", "The algorithm is a text.", Receipt().head(alg=["ES256"]).answer(), "malformed")
    for name, value in (("longer", "479"), ("spaces", " 47 "), ("other-digits", "\u0664\u0667"), ("zeros", "047")):
        yield lie(f"number-{name}", "The number is compared byte by byte.", Receipt().claim(number=value).answer(), "number")
    request = SENT["request"]
    for name, value in (("capitals", request.upper()), ("longer", f"{request}0"), ("empty", "")):
        yield lie(f"request-{name}", "The request is compared byte by byte.", Receipt().claim(request=value).answer(), "request")
    for name, value in (("capitals", CHALLENGE.upper()), ("longer", f"{CHALLENGE}0"), ("empty", "")):
        yield lie(f"challenge-{name}", "The challenge is compared byte by byte.",
                  Receipt().claim(challenge=value).answer(), "challenge")
    yield lie("answer-without-challenge", "The answer names no challenge.", Receipt().answer(challenge=None), "challenge")
    for name, value in (("list", [CHALLENGE]), ("capitals", CHALLENGE.upper()), ("integer", 7)):
        yield lie(f"answer-challenge-{name}", "The answer names exactly the challenge.",
                  Receipt().answer(challenge=value), "challenge")
    for name, value in (("capital", "Biometric"), ("empty", ""), ("longer", "biometrics")):
        yield lie(f"uv-{name}", "The word is none of the three.", Receipt().claim(uv=value).answer(), "claims")
    for name, value in (("capital", "Signed"), ("list", ["signed"]), ("true", True)):
        yield lie(f"proof-{name}", "The proof is exactly `signed`.", Receipt().answer(proof=value), "not_signed")
    # The relay's own answer says `code`, and the website accepts codes: only the exact word counts.
    yield lie("proof-capital-code", "The proof is exactly `code`.",
              Receipt().answer(proof="Code", factor="totp"), "not_signed", website={"accept_codes": True})


def types() -> Iterator[Object]:
    """Numbers where a text is required, texts where a number is, and values that only look alike."""
    for name, value in (("text", "1"), ("2", 2), ("0", 0), ("fraction", 1.5), ("list", [1]), ("missing", None)):
        yield lie(f"v-{name}", "The version is the number 1.", Receipt().claim(v=value).answer(), "claims")
    for name, value in (("text", str(CLOCK)), ("fraction", CLOCK + 0.5), ("true", True), ("list", [CLOCK])):
        yield lie(f"iat-{name}", "The time is a whole number.", Receipt().claim(iat=value).answer(), "claims")
    for name, value in (("text", "4"), ("fraction", 4.5), ("true", True), ("list", [4])):
        yield lie(f"uv-age-{name}", "The age is a whole number.", Receipt().claim(uv_age=value).answer(), "claims")
    for claim, value in (
        ("aud", 7), ("challenge", 7), ("nonce", 7), ("request", 7), ("uv", 0), ("uv", True), ("number", True),
        ("number", ["47"]), ("request", [SENT["request"]]), ("context", 7),
    ):
        word = {bool: "true", int: "integer", list: "list"}[type(value)]
        yield lie(f"{claim}-{word}", "The claim is a text.", Receipt().claim(**{claim: value}).answer(), "claims")
    for claim in ("v", "request", "number", "uv_age", "nonce"):
        yield lie(f"{claim}-null", "A claim that is null is none.", Receipt().claim_null(claim).answer(), "claims")
    for name, change, field in (
        ("v-text", {"v": "1"}, "v"), ("v-true", {"v": True}, "v"), ("v-missing", {"v": None}, "v"),
        ("digits-text", {"number_digits": "2"}, "number_digits"),
        ("digits-missing", {"number_digits": None}, "number_digits"),
        ("username-list", {"username": ["ada"]}, "username"),
        ("details-object", {"details": {"amount": "EUR 40.00", "to": "Caf\u00e9 Zo\u00eb"}}, "details"),
        ("details-text", {"details": "amount: EUR 40.00"}, "details"),
        ("details-value-integer", {"details": [{"label": "amount", "value": 40}, SENT["details"][1]]}, "details"),
    ):
        yield lie(f"showed-{name}", f"The phone showed another {field}.", Receipt().show(**change).answer(), "field", field)
    # With a number of one digit, `number_digits` is 1: true is not.
    yield lie(
        "showed-digits-true", "True is not the number 1.",
        Receipt().show(number_digits=True).claim(number="7").answer(), "field", "number_digits",
        asked=login(number="7"), website={"least_digits": 1})


def shown_in_another_case() -> Iterator[Object]:
    """The context in another case: names and values are compared byte by byte."""
    for name in ("website", "username", "service", "action", "user_agent"):
        for form, value in (("capitals", CONTEXT[name].upper()), ("space", f"{CONTEXT[name]} ")):
            yield lie(
                f"showed-{name}-{form}", f"The {name} is compared byte by byte.",
                Receipt().show(**{name: value}).answer(), "field", name)
    yield lie(
        "showed-details-capitals", "The details are compared byte by byte.",
        Receipt().show(details=[{"label": "Amount", "value": "EUR 40.00"}, SENT["details"][1]]).answer(),
        "field", "details")
    yield lie(
        "showed-request-capitals", "The request is compared byte by byte.",
        Receipt().show(request=SENT["request"].upper()).answer(), "field", "request")
    yield lie(
        "showed-name-in-capitals", "Names of members have a case.",
        Receipt().show(username=None, Username="ada").answer(), "field", "username")
    for name in ("Username", "IP", "website ", "Place", "__proto__", "constructor", "toString"):
        yield lie(
            f"showed-further-{name.strip('_ ').lower()}{'-space' if name.endswith(' ') else ''}",
            "The context has a member that no version has.", Receipt().show(**{name: "x"}).answer(), "field", name)
    yield lie(
        "showed-empty-service", "An empty text is not the same as none.",
        Receipt().show(service="").answer(), "field", "service", asked=login(sent=without(SENT, "service")))
    yield lie(
        "showed-name-capitals", "The website's own name is compared byte by byte.",
        Receipt().answer(), "field", "display_name", website={"display_name": "the shop"})
    yield lie(
        "showed-no-name", "The website demands its name, and the phone showed none.",
        Receipt().show(display_name=None).answer(), "field", "display_name", website={"display_name": "The Shop"})


def at_the_limit() -> Iterator[Object]:
    """The last value that counts, and the first that does not."""

    def good(name: str, about: str, receipt: Receipt | None = None, **more: Any) -> Object:
        return decide(f"edge-{name}", about, reply((receipt or Receipt()).answer()), APPROVED, **more)

    yield good("age", "The login was opened 600 seconds ago.", asked=login(asked_at=CLOCK - 600))
    yield good("asked-now", "The login was opened in this second.", asked=login(asked_at=CLOCK))
    digits = Receipt().show(number_digits=6).claim(number="004711")
    yield good("six-digits", "Six digits, as the website requires.", digits,
               asked=login(number="004711"), website={"least_digits": 6})
    yield lie(
        "edge-five-digits", "One digit is missing.", Receipt().show(number_digits=5).claim(number="04711").answer(),
        "digits", asked=login(number="04711"), website={"least_digits": 6})
    yield good("passcode", "The phone verified exactly as the website requires.", Receipt().claim(uv="passcode"),
               website={"least_user_verification": "passcode"})
    yield lie("edge-no-verification", "The phone did not verify its user.", Receipt().claim(uv="none").answer(),
              "user_verification", website={"least_user_verification": "passcode"})
    minute = {"longest_verification_age": 60}
    for age in (0, 60):
        yield good(f"uv-age-{age}", "The verification was at most a minute ago.",
                   Receipt().claim(uv="passcode", uv_age=age), website=minute)
    yield lie("edge-uv-age-of-none", "Without a verification there is no age of one.",
              Receipt().claim(uv="none", uv_age=4).answer(), "user_verification_age", website=minute)
    yield good("uv-age-zero-limit", "The website demands a verification in the same second.",
               Receipt().claim(uv_age=0), website={"longest_verification_age": 0})
    yield lie("edge-uv-age-zero-limit-1", "The verification was a second ago.", Receipt().claim(uv_age=1).answer(),
              "user_verification_age", website={"longest_verification_age": 0})
    for name, size in (("", 65_536), ("-1", 65_537)):
        receipt = Receipt().show(place="x")
        receipt.show(place="x" * (size - len(receipt.shown) + 1))
        assert len(receipt.shown) == size
        if size <= 65_536:
            yield good("context", "A context of 65,536 bytes.", receipt)
        else:
            yield lie("edge-context-1", "A context of 65,537 bytes.", receipt.answer(), "context")
    yield good("assurance", "The assurance is exactly what the website asked for.", asked=login(min_assurance="high"))
    pull = Receipt().answer(factor="pull")
    yield decide("edge-pull", "A phone that polls answers as one that got a push.", reply(pull), APPROVED,
                 asked=login(factors=["push"]))
    yield lie("edge-assurance-below", "One step less than the website asked for.",
              Receipt().answer(assurance="substantial"), "assurance", asked=login(min_assurance="high"))
    yield lie("edge-no-assurance", "The website asked for an assurance, and the answer has none.",
              Receipt().answer(assurance=None), "assurance", asked=login(min_assurance="low"))


def parsed() -> Iterator[Object]:
    """JSON that two parsers read differently."""
    odd: Object = {"outcome": "error", "error": "odd_answer"}
    honest = compact(Receipt().answer()).decode()
    for name, body in (
        ("twice", doubled(honest, '"login":"wait"')), ("twice-same", doubled(honest, '"login":"success"')),
        ("twice-inside", doubled(honest, '"further":{"a":1,"a":2}')), ("bom", BOM + honest),
        ("nan", doubled(honest, '"further":NaN')), ("infinity", doubled(honest, '"further":-Infinity')),
        ("two", honest + honest), ("comma", honest[:-1] + ",}"), ("comment", honest + "// yes"),
        ("single-quotes", "{'login': 'wait'}"), ("null", "null"), ("text", '"success"'), ("half", honest[:-1]),
        ("control", doubled(honest, '"further":"a\nb"')),
    ):
        yield decide(f"odd-json-{name}", "This is not one unambiguous object of JSON.", reply(body), odd)
    text = Receipt().payload().decode()
    for name, claims in (
        ("twice", doubled(text, '"decision":"approve"')), ("twice-inside", doubled(text, '"further":{"a":1,"a":1}')),
        ("bom", BOM + text), ("nan", doubled(text, '"further":NaN')), ("list", f"[{text}]"), ("half", text[:-1]),
        ("empty", ""),
    ):
        yield lie(f"claims-json-{name}", "The claims are not one unambiguous object.",
                  Receipt().answer(receipt=ADAS.sign_text(compact(Receipt().header).decode(), claims)), "claims")
    header = compact(Receipt().header).decode()
    for name, head in (
        ("twice", doubled(header, '"alg":"none"')), ("twice-kid", doubled(header, f'"kid":"{ADAS.device}"')),
        ("bom", BOM + header), ("nan", doubled(header, '"further":NaN')), ("list", f"[{header}]"), ("empty", ""),
    ):
        yield lie(f"header-json-{name}", "The header is not one unambiguous object.",
                  Receipt().answer(receipt=ADAS.sign_text(head, text)), "malformed")
    shown = compact(CONTEXT).decode()
    for name, form in (
        ("bom", BOM + shown), ("nan", doubled(shown, '"further":NaN')), ("empty", ""),
        ("twice-same", doubled(shown, '"username":"ada"')),
        ("twice-inside", shown.replace('"label":"amount"', '"label":"amount","label":"amount"')),
    ):
        receipt = Receipt()
        receipt.shown = form.encode()
        yield lie(f"context-json-{name}", "The context is not one unambiguous object.", receipt.answer(), "context")
    problem = {"type": "about:blank", "status": 404, "code": "not_found"}
    for name, answer in (
        ("as-json", reply(problem, 404)), ("as-text", reply(problem, 404, "text/plain")),
        ("status-text", reply(problem | {"status": "404"}, 404, PROBLEM_TYPE)),
        ("code-number", reply(problem | {"code": 404}, 404, PROBLEM_TYPE)),
        ("no-code", reply(without(problem, "code"), 404, PROBLEM_TYPE)),
        ("no-status", reply(without(problem, "status"), 404, PROBLEM_TYPE)),
        ("twice", reply(doubled(compact(problem).decode(), '"code":"unavailable"'), 404, PROBLEM_TYPE)),
        ("success", reply(problem | {"status": 200}, 200, PROBLEM_TYPE)),
        ("list", reply([problem], 404, PROBLEM_TYPE)),
    ):
        yield decide(f"odd-problem-{name}", "This is no refusal of a relay.", answer, odd)
    for name, kind in (("longer", "application/jsonx"), ("other", "text/json"), ("none", "")):
        yield decide(f"odd-type-{name}", "The answer is not declared as JSON.", reply(honest, 200, kind), odd)
    for name, kind in (("charset", "application/json; charset=utf-8"), ("capitals", "Application/JSON")):
        yield decide(f"good-type-{name}", "Parameters and the case of the type do not matter.", reply(honest, 200, kind), APPROVED)


def signatures() -> Iterator[Object]:
    """Signatures and keys in another form."""
    head, claims, signature = Receipt().jws().split(".")
    for name, receipt in (
        ("four-parts", f"{head}.{claims}.{signature}."), ("empty", ""), ("space", f"{head}.{claims}.{signature} "),
        ("line", f"{head}.{claims}.{signature}\n"), ("base64", f"{head}.{claims}.+/{signature[2:]}"),
        ("longer", f"{head}.{claims}.{signature}AA"), ("shorter", f"{head}.{claims}.{signature[:-2]}"),
        # The last character of 64 bytes has four bits that no byte uses.
        ("unused-bits", f"{head}.{claims}.{signature[:-1]}{other_end(signature[-1])}"),
    ):
        yield lie(f"receipt-{name}", "The receipt is not one compact JWS.", Receipt().answer(receipt=receipt), "malformed")
    yield lie("receipt-der", "The signature is in DER, as no JWS has it.",
              Receipt().answer(receipt=f"{head}.{claims}.{b64(der(signature))}"), "malformed")
    for name, size in (("half", 32), ("all", 64)):
        yield lie(f"signature-high-{name}", "The numbers of the signature exceed the order of the curve.",
                  Receipt().answer(receipt=f"{head}.{claims}.{b64(bytes([255]) * size + bytes(64 - size))}"), "signature")
    yield lie("context-padded", "The context has padding.", Receipt().answer(context=b64(compact(CONTEXT)) + "="), "context")


def other_end(letter: str) -> str:
    """The letter whose unused bits differ: it decodes to the same bytes."""
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    return letters[letters.index(letter) ^ 1]


def der(signature: str) -> bytes:
    from base64 import urlsafe_b64decode

    from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

    raw = urlsafe_b64decode(signature + "==")
    return encode_dss_signature(int.from_bytes(raw[:32]), int.from_bytes(raw[32:]))


def cases() -> list[Object]:
    groups = (others(), words(), types(), shown_in_another_case(), at_the_limit(), parsed(), signatures())
    return [case for group in groups for case in group]
