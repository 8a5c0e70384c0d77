"""Cases with several requests: retries, idempotency, codes, enrolment, and the unbinding of phones.

Their `answers` are given one after the other; None is a lost connection. `requests` are what the
client must have sent.
"""

from collections.abc import Iterator
from typing import Any

from calls import case
from world import (
    ADAS, BOBS, CHALLENGE, K, ORIGIN, TOKEN, Object, Receipt,
    b64, device, ident, login, problem, reply, seeded, user, without,
)

GATEWAY = reply("<h1>Bad gateway</h1>", 502, "text/html")
DONE: Object = {"status": 204, "headers": {}, "body": ""}
ODD: Object = {"outcome": "error", "error": "odd_answer"}
LIMITED: Object = {"outcome": "error", "error": "limited", "code": "limited", "retry_after": 7}


def talk(
    call: str, name: str, about: str, given: Object, answers: list[Object | None], expected: Object, requests: list[Object],
    website: Object | None = None,
) -> Object:
    made = case(call, name, about, given, None, expected | {"requests": requests})
    expected = made.pop("expected")
    return made | {"website": website or {}, "answers": answers, "expected": expected}


def sent(method: str, path: str, body: Object | None = None, key: int | None = None) -> Object:
    return {"method": method, "path": path, "body": body, "key": key}


def posted(path: str, body: Object, *keys: int | None) -> list[Object]:
    """The same POST, once for each key."""
    return [sent("POST", path, body, key) for key in keys]


def asked() -> Iterator[Object]:
    """`ask`: a repetition keeps its key, so that one login is opened."""
    answer = {
        "login": "verified", "challenge": CHALLENGE, "number": "47", "factor": "push",
        "expires_at": "2026-11-22T08:05:00.000Z",
    }
    opened = reply(answer, 201)
    good: Object = {"outcome": "asked", "number": "47"}

    def ask(name: str, about: str, answers: list[Object | None], expected: Object, *keys: int, **more: Any) -> Object:
        given = {"username": "ada", "number": "47"}
        body = {"username": "ada", "number": "47"}
        return talk("ask", name, about, given, answers, expected, posted("/login", body, *keys), **more)

    yield ask("retry-lost", "The connection was lost, twice.", [None, None, opened], good, 1, 1, 1)
    yield ask("retry-gateway", "A proxy got no answer from the relay.",
              [GATEWAY, reply("", 503, "text/html"), reply("", 504, "text/plain"), opened], good, 1, 1, 1, 1)
    yield ask("retry-unavailable", "The relay is away for a second.",
              [problem("unavailable", 503, {"retry-after": "1"}), opened], good, 1, 1)
    yield ask("retry-still-runs", "The first attempt still runs.",
              [None, problem("conflict", 409, {"retry-after": "1"}), opened], good, 1, 1, 1)
    yield ask("no-retry-conflict", "Without Retry-After, a conflict is final.", [problem("conflict", 409)],
              {"outcome": "error", "error": "conflict", "code": "conflict"}, 1)
    yield ask("no-retry-limited", "A visitor is told the pause; nobody sleeps for it.",
              [problem("limited", 429, {"retry-after": "7"})], LIMITED, 1)
    yield ask("no-retry-limited-short", "Not even for a short one.", [problem("limited", 429, {"retry-after": "1"})],
              LIMITED | {"retry_after": 1}, 1)
    yield ask("no-retry-long-pause", "The pause is longer than the patience.",
              [problem("unavailable", 503, {"retry-after": "30"})],
              {"outcome": "error", "error": "unavailable", "code": "unavailable", "retry_after": 30}, 1)
    yield ask("no-retry-internal", "A fault of the relay would occur again.", [problem("internal", 500)],
              {"outcome": "error", "error": "internal", "code": "internal"}, 1)
    yield ask("no-retry-html-500", "A proxy's own fault.", [reply("<h1>Oops</h1>", 500, "text/html")], ODD, 1)
    yield ask("no-retry-redirect", "A redirect is not followed.",
              [reply("", 307, "text/html", location="https://login.example.org/login")], ODD, 1)
    yield ask("no-retry-odd", "An answer that is none is not asked for again.", [reply({}, 201)], ODD, 1)
    for pause in ("soon", "-1", "1.5", "", "Sun, 22 Nov 2026 08:00:07 GMT"):
        name = pause.split(",")[0].lower().strip("-").replace(".", "-") or "empty"
        yield ask(f"limited-pause-{name}", "Only whole seconds are a pause.",
                  [problem("limited", 429, {"retry-after": pause})], without(LIMITED, "retry_after") | {"retry_after": None}, 1)


def numbers() -> Iterator[Object]:
    """`ask` without a number: the client chooses one, so that the relay cannot."""
    answer = {
        "login": "verified", "challenge": CHALLENGE, "number": "{number}", "factor": "push",
        "expires_at": "2026-11-22T08:05:00.000Z",
    }
    wrong = problem("invalid", 400, errors=[{"parameter": "number", "code": "length"}])
    invalid: Object = {"outcome": "error", "error": "invalid", "code": "invalid"}

    def ask(
        name: str, about: str, answers: list[Object | None], expected: Object, digits: list[int],
        website: Object | None = None, **given: Any,
    ) -> Object:
        keys = {count: key for key, count in enumerate(dict.fromkeys(digits), 1)}
        bodies = [({"number": f"{{{count} digits}}"} if count else {}, keys[count]) for count in digits]
        requests = [sent("POST", "/login", {"username": "ada", **body}, key) for body, key in bodies]
        return talk("ask", name, about, {"username": "ada", **given}, answers, expected, requests, website)

    chosen = reply(answer, 201)
    yield ask("number-chosen", "The client chooses a number of two digits.", [chosen],
              {"outcome": "asked", "number": "{2 digits}"}, [2])
    yield ask("number-chosen-six", "The website requires six digits.", [chosen],
              {"outcome": "asked", "number": "{6 digits}"}, [6], {"least_digits": 6})
    yield ask("number-kept-over-attempts", "A repetition has the same number.", [None, GATEWAY, chosen],
              {"outcome": "asked", "number": "{2 digits}"}, [2, 2, 2])
    yield ask("number-of-the-policy", "The relay's policy has six digits: the client chooses again, and never lets the relay choose.",
              [wrong, chosen], {"outcome": "asked", "number": "{6 digits}"}, [2, 6])
    yield ask("number-refused-twice", "The relay refuses each number.", [wrong, wrong], invalid, [2, 6])
    yield ask("number-refused-six", "There is no longer number than six digits.", [wrong], invalid, [6], {"least_digits": 6})
    yield ask("number-refused-otherwise", "Another fault is no reason to choose again.",
              [problem("invalid", 400, errors=[{"parameter": "service", "code": "length"}])], invalid, [2])
    yield ask("number-of-relay", "The website needs no number, and so chooses none.", [reply(answer | {"number": "12"}, 201)],
              {"outcome": "asked", "number": "12"}, [0], {"least_digits": 0})
    yield ask("number-without-phone", "No phone can answer: there is no number to show.",
              [reply(without(answer, "number") | {"login": "unverified", "factor": "mail"}, 201)],
              {"outcome": "asked", "number": None}, [2])
    yield ask("number-replaced", "The relay answers another number than the client chose.",
              [reply(answer | {"number": "470"}, 201)], ODD, [2])
    own = {"username": "ada", "number": "0815"}
    yield talk("ask", "number-of-website-refused", "The website's own number is not replaced by another.", own,
               [wrong], invalid, posted("/login", own, 1))


def waits() -> Iterator[Object]:
    """`decide` over several attempts: /auth takes no key, as a stored answer would say `wait` for ever."""
    approved = reply(Receipt().answer())
    given = {"login": login(), "open": True, "pinned": {ADAS.device: ADAS.jwk}}
    good: Object = {"outcome": "approved", "device": ADAS.device, "proof": "signed"}

    def decide(name: str, about: str, answers: list[Object | None], expected: Object) -> Object:
        requests = posted("/auth", {"challenge": CHALLENGE}, *[None] * len(answers))
        return talk("decide", name, about, given, answers, expected, requests)

    yield decide("wait-retry-lost", "The connection was lost.", [None, approved], good)
    yield decide("wait-retry-gateway", "A proxy got no answer from the relay.", [GATEWAY, approved], good)
    yield decide("wait-retry-unavailable", "The relay is away.", [problem("unavailable", 503), approved], good)
    yield decide("wait-limited", "A limit is told at once.", [problem("limited", 429, {"retry-after": "7"})], LIMITED)
    yield decide("wait-not-found", "The challenge is unknown.", [problem("not_found", 404)],
                 {"outcome": "error", "error": "not_found", "code": "not_found"})
    # The phone was bound since: its binding is fetched, and counts as it would have before.
    unpinned = given | {"pinned": {}, "token": TOKEN, "k": [b64(K)]}
    bound = reply(user(device()))
    requests = [*posted("/auth", {"challenge": CHALLENGE}, None), sent("GET", "/user/ada")]
    yield talk("decide", "wait-pins-new-phone", "The phone was bound after the page with the code was closed.",
               unpinned, [approved, bound], good, requests)
    yield talk("decide", "wait-pins-nobody-else", "The relay lists another key for the phone that answered.", unpinned,
               [approved, reply(user(device(jwk=BOBS.jwk)))],
               {"outcome": "refused", "error": "binding", "reason": "key"}, requests)


def codes() -> Iterator[Object]:
    """`enter`: only the relay vouches for a code."""
    right = Receipt().answer(
        factor="totp", assurance="substantial", proof="code", receipt=None, context=None, device=None)
    wrong: Object = {"login": "failure", "challenge": CHALLENGE, "factor": "totp", "steps": []}
    approved: Object = {"outcome": "approved", "proof": "code"}
    trusting = {"accept_codes": True}

    def enter(
        name: str, about: str, answers: list[Object | None], expected: Object, *, website: Object | None = None,
        is_open: bool = True, code: str = "123456",
    ) -> Object:
        given = {"login": login(), "open": is_open, "pinned": {ADAS.device: ADAS.jwk}, "code": code}
        body = {"challenge": CHALLENGE, "otp": code}
        requests = posted("/backup", body, *[1] * len(answers))
        return talk("enter", name, about, given, answers, expected, requests, trusting if website is None else website)

    def refused(reason: str) -> Object:
        return {"outcome": "refused", "error": "receipt", "reason": reason}

    def error(code: str, **more: Any) -> Object:
        return {"outcome": "error", "error": code, "code": code, **more}

    yield enter("enter", "The website accepts codes, and this one was right.", [reply(right)], approved)
    yield enter("enter-lost", "A repetition keeps its key, so that one code is counted once.", [None, GATEWAY, reply(right)], approved)
    yield enter("enter-not-accepted", "The website accepts no codes.", [reply(right)], refused("not_signed"), website={})
    yield enter("enter-used", "The login was let in before.", [reply(right)], refused("request_used"), is_open=False)
    yield enter("enter-other-challenge", "The answer is for another login.",
                [reply(right | {"challenge": ident("another challenge")})], refused("challenge"))
    yield enter("enter-no-challenge", "The answer names no login.", [reply(without(right, "challenge"))], refused("challenge"))
    yield enter("enter-as-push", "A code is no answer of a phone.", [reply(right | {"factor": "push"})], refused("factor"))
    yield enter("enter-signed", "The phone has answered meanwhile, and its receipt is checked.", [reply(Receipt().answer())],
                {"outcome": "approved", "proof": "signed", "device": ADAS.device}, website={})
    yield enter("enter-signed-unproved", "The relay claims that a phone has answered.", [reply(right | {"proof": "signed"})],
                refused("incomplete"))
    yield enter("enter-wrong", "A wrong code: the login goes on.", [reply(wrong)], {"outcome": "open"})
    yield enter("enter-wrong-ended", "A wrong code that ended the login.", [reply(wrong | {"reason": "wrong_code"})],
                {"outcome": "denied", "reason": "wrong_code"})
    yield enter("enter-wait", "The login is open.", [reply(wrong | {"login": "wait"})], {"outcome": "open"})
    yield enter("enter-odd", "The answer is none.", [reply(right | {"login": "yes"})], ODD)
    yield enter("enter-locked", "No code of the user counts at present.", [problem("codes_locked", 403)], error("codes_locked"))
    yield enter("enter-limited", "A code came too soon.", [problem("limited", 429, {"retry-after": "5"})], error("limited", retry_after=5))
    yield enter("enter-ended", "The login has ended.", [problem("already_decided", 409)], error("already_decided"))
    yield enter("enter-odd-code", "A code is sent as it was typed: the relay decides what is one.",
                [problem("invalid", 400, errors=[{"parameter": "otp", "code": "form"}])], error("invalid"), code="\u0661 \u00e9</p>")


def unbinds() -> Iterator[Object]:
    """`unbind`: the phone ceases to count here first, and the user stays enrolled."""

    def unbind(
        name: str, about: str, answers: list[Object | None], outcome: Object | None = None, *,
        phone: str = ADAS.device, pinned: Object | None = None, left: Object | None = None, path: str = "",
        others: Object | None = None, enrolled: bool = True,
    ) -> Object:
        given = {"username": "ada", "token": TOKEN, "device": phone,
                 "pinned": {ADAS.device: ADAS.jwk} if pinned is None else pinned, "others": others or {}}
        expected = {**(outcome or {"outcome": "done"}), "pinned": left or {}, "enrolled": enrolled}
        requests = [sent("DELETE", f"/user/ada/devices/{path or phone}")] * len(answers)
        return talk("unbind", name, about, given, answers, expected, requests)

    def error(word: str, code: str | None = None) -> Object:
        return {"outcome": "error", "error": word, **({"code": code} if code else {})}

    gone = problem("not_found", 404)
    yield unbind("unbind", "The phone is unpinned and unbound.", [DONE])
    yield unbind("unbind-again", "It was unbound before.", [gone])
    yield unbind("unbind-lost", "The first answer was lost.", [None, gone])
    yield unbind("unbind-unavailable", "The relay is away: the phone does not count all the same.",
                 [problem("unavailable", 503, {"retry-after": "30"})], error("unavailable", "unavailable"))
    yield unbind("unbind-proxy-404", "A 404 of a proxy does not say that it was done.",
                 [reply("<h1>Not Found</h1>", 404, "text/html")], ODD)
    yield unbind("unbind-unknown-route", "Nor does an unknown route.", [problem("route_not_found", 404)],
                 error("route_not_found", "route_not_found"))
    two = {ADAS.device: ADAS.jwk, BOBS.device: BOBS.jwk}
    yield unbind("unbind-one-of-two", "The other phone stays.", [DONE], pinned=two, left={BOBS.device: BOBS.jwk})
    yield unbind("unbind-unknown", "A phone that was never pinned.", [gone], phone=ident("no phone"), left={ADAS.device: ADAS.jwk})
    yield unbind("unbind-never-enrolled", "A user without a phone.", [gone], pinned={}, enrolled=False)
    bob = {"bob": {"token": ident("token of bob"), "k": [], "pinned": {ADAS.device: BOBS.jwk}}}
    yield unbind("unbind-not-of-another-user", "A phone of Bob has the same id: it stays.", [DONE], others=bob)
    yield unbind("unbind-path", "An id cannot lead to another route.", [gone], phone="../x?y#z /\u00e9",
                 path="..%2Fx%3Fy%23z%20%2F%C3%A9", left={ADAS.device: ADAS.jwk})


def enrolments() -> Iterator[Object]:
    """`register` and `enrolment`: the relay never sees `k`, and a lost secret leads to another code."""
    uri = f"twoefay://enrol?relay={ORIGIN.replace(':', '%3A').replace('/', '%2F')}&website=shop&token={TOKEN}&code=abc"
    activation = {"code": "abc", "uri": uri, "qr": "<svg/>", "expires_at": "2026-11-22T08:10:00.000Z"}
    made: Object = {"outcome": "enrolment", "uri": f"{uri}&k={b64(K)}"}
    registered = reply({"token": TOKEN, "activation": activation}, 201)
    path = "/user/ada/activation"

    def register(name: str, about: str, answers: list[Object | None], expected: Object, requests: list[Object]) -> Object:
        return talk("register", name, about, {"username": "ada", "k": b64(K)}, answers, expected, requests)

    body = {"username": "ada"}
    yield register("register-retry", "A repetition keeps its key.", [None, GATEWAY, registered], made, posted("/register", body, 1, 1, 1))
    yield register("register-conflict-once", "The user exists: this is final.", [problem("conflict", 409)],
                   {"outcome": "error", "error": "conflict", "code": "conflict"}, posted("/register", body, 1))
    yield register(
        "register-shown-once", "The answer to the first attempt was lost, with its secret: another code is made.",
        [None, problem("shown_once", 409), reply(user()), reply(activation, 201)], made,
        [*posted("/register", body, 1, 1), sent("GET", "/user/ada"), *posted(path, {}, 2)])
    for name, answer in (
        ("no-token", {"activation": activation}), ("token-number", {"token": 7, "activation": activation}),
        ("token-long", {"token": "0" * 129, "activation": activation}),
        ("token-zero", {"token": f"{TOKEN[:-1]}\0", "activation": activation}),
        ("no-activation", {"token": TOKEN}), ("activation-text", {"token": TOKEN, "activation": uri}),
        ("no-uri", {"token": TOKEN, "activation": without(activation, "uri")}),
        ("uri-list", {"token": TOKEN, "activation": activation | {"uri": [uri]}}),
        ("own-k-empty", {"token": TOKEN, "activation": activation | {"uri": f"{uri}&k"}}),
        ("scheme-capitals", {"token": TOKEN, "activation": activation | {"uri": uri.replace("twoefay", "TWOEFAY")}}),
        ("line", {"token": TOKEN, "activation": activation | {"uri": f"{uri}\n"}}),
        ("quote", {"token": TOKEN, "activation": activation | {"uri": f"{uri}&x=\"><script>"}}),
    ):
        yield register(f"register-odd-{name}", "This is no activation to which k can be added.", [reply(answer, 201)], ODD,
                       posted("/register", body, 1))

    def enrol(
        name: str, about: str, answers: list[Object | None], expected: Object, requests: list[Object],
        token: str | None = TOKEN, **more: Any,
    ) -> Object:
        return talk("enrolment", name, about, {"username": "ada", "token": token, "k": b64(K), **more}, answers, expected, requests)

    opened = reply(activation, 201)
    yield enrol("enrolment", "Another code.", [opened], made, posted(path, {}, 1))
    yield enrol("enrolment-retry", "A repetition keeps its key.", [None, problem("conflict", 409, {"retry-after": "1"}), opened],
                made, posted(path, {}, 1, 1, 1))
    yield enrol("enrolment-unknown-token", "The website does not know the user's token: the relay names it.",
                [reply(user()), opened], made, [sent("GET", "/user/ada"), *posted(path, {}, 1)], token=None)
    yield enrol("enrolment-needs-approval", "The user has a factor, and has to approve first.",
                [problem("approval_required", 403, challenge=CHALLENGE, number="12")],
                {"outcome": "error", "error": "approval_required", "code": "approval_required", "challenge": CHALLENGE, "number": "12"},
                posted(path, {}, 1))
    yield enrol("enrolment-approved", "The user has approved.", [opened], made, posted(path, {"approval": CHALLENGE}, 1),
                approval=CHALLENGE)
    yield enrol("enrolment-approval-used", "The approval was used before.", [problem("forbidden", 403)],
                {"outcome": "error", "error": "forbidden", "code": "forbidden"}, posted(path, {"approval": CHALLENGE}, 1),
                approval=CHALLENGE)
    yield enrol("enrolment-shown-once", "The answer was lost, with its secret.", [None, problem("shown_once", 409)],
                {"outcome": "error", "error": "shown_once", "code": "shown_once"}, posted(path, {}, 1, 1))
    yield enrol("enrolment-mailed", "The relay mails the code.",
                [reply({"sent_to": "a\u2026@example.com", "expires_at": "2026-11-22T08:10:00.000Z"}, 202)],
                {"outcome": "enrolment", "uri": None, "sent_to": "a\u2026@example.com"}, posted(path, {}, 1))
    yield enrol("enrolment-own-k", "The relay's URI has a k of its own.",
                [reply(activation | {"uri": f"{uri}&k={b64(seeded('of the relay'))}"}, 201)], ODD, posted(path, {}, 1))


def paths() -> Iterator[Object]:
    """Names of users in paths."""
    given: Object = {"username": "../x?y#z /\u00e9%2e"}
    yield talk("factors", "path-escaped", "A name cannot lead to another route.", given, [reply(user())],
               {"outcome": "factors", "kinds": []}, [sent("GET", "/user/..%2Fx%3Fy%23z%20%2F%C3%A9%252e")])
    for name, user_name in (("dot", "."), ("dots", ".."), ("empty", "")):
        yield talk("factors", f"path-{name}", "HTTP clients resolve such a segment: it cannot be sent.", {"username": user_name},
                   [], {"outcome": "unusable"}, [])
        yield talk("enrolment", f"path-enrolment-{name}", "HTTP clients resolve such a segment: it cannot be sent.",
                   {"username": user_name, "token": TOKEN, "k": b64(K)}, [], {"outcome": "unusable"}, [])


def cases() -> list[Object]:
    groups = (asked(), numbers(), waits(), codes(), unbinds(), enrolments(), paths())
    return [case for group in groups for case in group]
