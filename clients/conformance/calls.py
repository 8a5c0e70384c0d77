"""Cases of the other calls: enrolment, pinning, asking, factors, webhooks and problems."""

import base64
import hmac
from collections.abc import Iterator
from typing import Any

from world import (
    ADAS, AUDIENCE, BOM, CHALLENGE, CLOCK, K, MALLORYS, ORIGIN, TOKEN, Object, Receipt,
    b64, binding, compact, device, doubled, ident, problem, reply, seeded, user, without,
)

ODD: Object = {"outcome": "error", "error": "odd_answer"}


def case(call: str, name: str, about: str, given: Object, answer: Object | None, expected: Object) -> Object:
    made = {"name": name, "about": about, "call": call, "website": {}, "clock": CLOCK, "given": given}
    return {**made, "answer": answer, "expected": expected} if answer else {**made, "expected": expected}


def pins() -> Iterator[Object]:
    """`confirm`: the answer of GET /user/ada, whose bindings are checked under `k`."""
    given = {"username": "ada", "token": TOKEN, "k": [b64(K)], "pinned": {}}

    def pin(name: str, about: str, answer: Object, expected: Object, **more: Any) -> Object:
        return case("confirm", name, about, {**given, **more}, answer, expected)

    def lie(name: str, about: str, entry: Object, reason: str) -> Object:
        expected = {"outcome": "refused", "error": "binding", "reason": reason}
        return pin(name, about, reply(user(entry)), expected)

    pinned: Object = {"outcome": "pinned", "pinned": {ADAS.device: ADAS.jwk}}
    nothing: Object = {"outcome": "pinned", "pinned": {}}
    yield pin("pin", "The phone's binding is right.", reply(user(device())), pinned)
    yield pin("pin-none-yet", "No phone has read the code yet.", reply(user()), nothing)
    yield pin(
        "pin-under-one-of-two", "Two codes are open; the phone has read the first.",
        reply(user(device())), pinned, k=[b64(K), b64(seeded("another k"))])
    yield pin(
        "pin-beside-bad", "A good phone is pinned, whatever else the relay lists.",
        reply(user(device(device=MALLORYS.device, jwk=MALLORYS.jwk), device())), pinned)
    yield pin(
        "pin-never-replaced", "The relay reports another key for a pinned phone.",
        reply(user(device(jwk=MALLORYS.jwk, binding=binding(jwk=MALLORYS.jwk)))), pinned,
        pinned={ADAS.device: ADAS.jwk})
    yield pin(
        "pin-not-active", "A phone that waits for an approval is not pinned.",
        reply(user(device(state="waiting"))), nothing)
    yield pin(
        "pin-mailed", "A phone that got its code by mail has no binding, and is not pinned.",
        reply(user(device(binding=None))), nothing)
    agreement = Receipt().signer.jwk
    yield pin(
        "pin-agreement", "The binding also names the key for secrets.",
        reply(user(device(agreement=agreement, binding=binding(agreement=agreement)))), pinned)

    yield lie("pin-key-swapped", "The relay reports a key of its own.", device(jwk=MALLORYS.jwk), "key")
    yield lie(
        "pin-made-by-relay", "The relay made the binding, without k.",
        device(jwk=MALLORYS.jwk, binding=binding(seeded("a guess"), jwk=MALLORYS.jwk)), "code")
    yield lie("pin-empty-k", "The binding was made under an empty k.", device(binding=binding(b"")), "code")
    head, _, tag = binding().split(".")
    changed = compact({"v": 1, "aud": AUDIENCE, "id_token": TOKEN, "jwk": MALLORYS.jwk})
    yield lie(
        "pin-tampered", "The relay replaced the key in the binding.",
        device(jwk=MALLORYS.jwk, binding=f"{head}.{b64(changed)}.{tag}"), "code")
    none = f"{b64(compact({'alg': 'none', 'typ': 'twoefay-binding+jwt'}))}.{b64(changed)}."
    yield lie("pin-alg-none", "The header says that there is no code.", device(binding=none), "malformed")
    yield lie(
        "pin-signed", "The binding is signed by the phone and not made with k.",
        device(binding=ADAS.sign({"alg": "ES256", "typ": "twoefay-binding+jwt"}, changed)), "malformed")
    yield lie(
        "pin-critical", "The header demands an unknown extension.",
        device(binding=binding(header={"alg": "HS256", "typ": "twoefay-binding+jwt", "crit": ["x"], "x": 1})),
        "malformed")
    yield lie(
        "pin-wrong-type", "Another statement stands in for a binding.",
        device(binding=binding(header={"alg": "HS256", "typ": "twoefay-decision+jwt"})), "type")
    yield lie("pin-other-user", "The binding of another user.", device(binding=binding(id_token=ident("bob"))), "token")
    yield lie("pin-other-website", "The binding for another website.", device(binding=binding(aud=f"{ORIGIN}#bank")), "audience")
    yield lie("pin-version-2", "An unknown version.", device(binding=binding(v=2)), "claims")
    off = ADAS.jwk | {"y": b64(bytes(31) + b"\x01")}
    yield lie("pin-off-curve", "The key is no point of the curve.", device(jwk=off, binding=binding(jwk=off)), "claims")
    yield lie(
        "pin-agreement-swapped", "The relay puts a key for secrets of its own beside the phone.",
        device(agreement=MALLORYS.jwk), "key")

    yield pin("pin-not-found", "The relay does not know the user.", problem("not_found", 404),
              {"outcome": "error", "error": "not_found", "code": "not_found"})
    yield pin("pin-other-token", "The relay names another token than at the registration.",
              reply(user(device(), token=ident("bob"))),
              {"outcome": "refused", "error": "binding", "reason": "token"})
    yield pin("pin-no-devices", "The answer has no list of phones.", reply(without(user(), "devices")), ODD)


def asked() -> Iterator[Object]:
    """`ask`: the members of the request that the client sends, and how it reads the answer."""
    answer = {
        "login": "verified", "challenge": CHALLENGE, "number": "47", "factor": "push",
        "expires_at": "2026-11-22T08:05:00.000Z",
    }

    def ask(name: str, about: str, sends: Object, body: Object | None = None, **given: Any) -> Object:
        expected = {"outcome": "asked", "sends": {"username": "ada", "number": "47", **sends}, "number": "47"}
        answers = reply(answer if body is None else body, 201)
        return case("ask", name, about, {"username": "ada", "number": "47", **given}, answers, expected)

    def lie(name: str, about: str, body: Object, **given: Any) -> Object:
        return case("ask", name, about, {"username": "ada", "number": "47", **given}, reply(body, 201), ODD)

    browser = "Mozilla/5.0 (X11; Linux x86_64) Firefox/144.0"
    yield ask("ask", "An ordinary login.", {"ip": "192.0.2.7", "user_agent": browser}, ip="192.0.2.7", user_agent=browser)
    yield ask("ask-no-browser", "An empty User-Agent is left out.", {}, user_agent="")
    yield ask("ask-blank-browser", "A User-Agent of characters that nobody sees is left out.", {}, user_agent="\u200b\t ")
    yield ask(
        "ask-hidden-characters", "Characters that nobody sees, or that turn the text, are removed.",
        {"user_agent": "Evil reversed/1"}, user_agent="Evil\u202e \u0000reversed\u200b\ufe0f\u3164/1\r\n")
    yield ask("ask-long-browser", "The User-Agent is clipped to 512 characters.", {"user_agent": "x" * 512}, user_agent="x" * 5000)
    yield ask("ask-clip-after-cleaning", "Characters are removed before the text is clipped.",
              {"user_agent": "\u00e9" * 512}, user_agent="\u200b" * 600 + "\u00e9" * 600)
    for name, ip, sent in (
        ("port", "10.0.0.1:5555", None), ("zeros", "010.0.0.1", None), ("word", "unknown", None),
        ("empty", "", None), ("zone", "fe80::1%eth0", None), ("list", "192.0.2.7, 10.0.0.1", None),
        ("long-v6", "2001:DB8:0:0:0:0:0:1", "2001:db8::1"),
        ("mapped", "::ffff:192.0.2.7", "192.0.2.7"),
    ):
        yield ask(f"ask-ip-{name}", "An address is sent in its short form; what is none is left out.",
                  {"ip": sent} if sent else {}, ip=ip)
    yield ask("ask-own-number", "The website chose the number.", {}, number="47")
    yield lie("ask-other-number", "The relay answers another number than the website chose.", answer, number="48")
    yield lie("ask-number-text", "The number would be shown as HTML.", answer | {"number": "<b>47</b>"})
    yield lie("ask-number-integer", "The number is not a text.", answer | {"number": 47})
    yield lie("ask-number-other-digits", "The number has digits that phones do not have.", answer | {"number": "\u0664\u0667"})
    yield lie("ask-no-challenge", "The answer has no challenge.", without(answer, "challenge"))
    yield lie("ask-challenge-long", "The challenge is longer than any id.", answer | {"challenge": "0" * 129})
    yield lie("ask-challenge-path", "The challenge would lead to another route.", answer | {"challenge": "../../health"})


def enrolments() -> Iterator[Object]:
    """`register`: the client appends `k`, which the relay must not see or choose."""
    pin = b64(seeded("the relay's authority"))
    uri = f"twoefay://enrol?relay=https%3A%2F%2Flogin.example.com%3A8080&website=shop&token={TOKEN}&code=abc&pin={pin}"

    def register(name: str, about: str, activation: Object, expected: Object) -> Object:
        body = {"token": TOKEN, "activation": activation}
        return case("register", name, about, {"username": "ada", "k": b64(K)}, reply(body, 201), expected)

    activation = {"code": "abc", "uri": uri, "qr": "<svg/>", "expires_at": "2026-11-22T08:10:00.000Z"}
    yield register("register", "The client draws the code itself.", activation,
                   {"outcome": "enrolment", "uri": f"{uri}&k={b64(K)}"})
    mailed = {"sent_to": "a\u2026@example.com", "expires_at": "2026-11-22T08:10:00.000Z"}
    yield register("register-mailed", "The relay mails the code: there is none to draw.", mailed,
                   {"outcome": "enrolment", "uri": None, "sent_to": "a\u2026@example.com"})
    yield register("register-awaits", "An operator has to confirm the identity first.", {"awaits": "identity"},
                   {"outcome": "enrolment", "uri": None, "awaits": "identity"})
    for name, text in (
        ("own-k", f"{uri}&k={b64(seeded('of the relay'))}"), ("own-k-encoded", f"{uri}&%6b={b64(seeded('of the relay'))}"),
        ("web", "https://evil.example/enrol?code=abc"), ("script", "javascript:alert(1)"),
        ("fragment", f"{uri}#"), ("space", f"{uri} "),
    ):
        yield register(f"register-{name}", "The relay's URI is not one to which the client may add k.",
                       activation | {"uri": text}, ODD)
    yield case(
        "register", "register-conflict", "The user exists.", {"username": "ada", "k": b64(K)}, problem("conflict", 409),
        {"outcome": "error", "error": "conflict", "code": "conflict"})


def factors() -> Iterator[Object]:
    """`factors`: an answer that is none must never read as "no second factor yet"."""

    def ask(name: str, about: str, answer: Object, expected: Object) -> Object:
        return case("factors", name, about, {"username": "ada"}, answer, expected)

    def error(word: str, code: str | None = None, **more: Any) -> Object:
        return {"outcome": "error", "error": word, **({"code": code} if code else {}), **more}

    yield ask("factors", "A user with a phone.", reply(user(device())), {"outcome": "factors", "kinds": ["push"]})
    yield ask("factors-none", "A user without a factor.", reply(user()), {"outcome": "factors", "kinds": []})
    yield ask("factors-unknown-user", "No such user.", problem("not_found", 404), error("not_found", "not_found"))
    yield ask("factors-unknown-route", "A typing error in a path is no statement about a user.",
              problem("route_not_found", 404), error("route_not_found", "route_not_found"))
    yield ask("factors-proxy-404", "A proxy knows no route.", reply("<h1>Not Found</h1>", 404, "text/html"), ODD)
    yield ask("factors-code-of-other-status", "A code with a status that is not its own.", problem("not_found", 500), ODD)
    yield ask("factors-unknown-code", "A later relay has further codes.", problem("moved_away", 410),
              error("refused", "moved_away"))
    yield ask("factors-empty", "An empty answer.", reply({}), ODD)
    yield ask("factors-null", "The list is null.", reply(user() | {"factors": None}), ODD)
    yield ask("factors-other-kind", "An entry without a kind.", reply(user() | {"factors": [{"state": "active"}]}), ODD)
    for code, status, word in (
        ("unauthenticated", 401, "unauthenticated"), ("forbidden", 403, "forbidden"),
        ("codes_locked", 403, "codes_locked"), ("invalid", 400, "invalid"),
        ("already_decided", 409, "already_decided"), ("shown_once", 409, "shown_once"),
        ("internal", 500, "internal"),
    ):
        yield ask(f"problem-{code}", "Errors go by their code.", problem(code, status), error(word, code))
    yield ask("problem-approval-required", "The user has to approve first.",
              problem("approval_required", 403, challenge=CHALLENGE, number="12"),
              error("approval_required", "approval_required", challenge=CHALLENGE, number="12"))
    yield ask("problem-approval-odd", "What could not stand in a page or a path is left out.",
              problem("approval_required", 403, challenge="../../x", number="<b>12</b>"),
              error("approval_required", "approval_required", challenge="", number=None))
    yield ask("problem-odd-faults", "The list of faults is none.", problem("invalid", 400, errors=7),
              error("invalid", "invalid"))
    yield ask("problem-limited", "A limit is told at once, with the pause; the client never sleeps for it.",
              problem("limited", 429, {"retry-after": "7"}), error("limited", "limited", retry_after=7))
    yield ask("problem-limited-without-pause", "A limit without a pause.", problem("limited", 429), error("limited", "limited"))


def webhooks() -> Iterator[Object]:
    """`webhooks.receive`: Standard Webhooks 1.0."""
    secret, former = (f"whsec_{base64.b64encode(seeded(name)).decode()}" for name in ("webhooks", "webhooks before"))
    event = {
        "type": "device.unbound", "timestamp": "2026-11-22T08:00:00.000Z",
        "data": {"token": TOKEN, "device": ADAS.device},
    }
    body = compact(event).decode()
    own = ident("an event")

    def sign(secret: str, text: str = body, id: str = own, time: object = CLOCK) -> str:
        key = base64.b64decode(secret.removeprefix("whsec_"))
        return "v1," + base64.b64encode(hmac.digest(key, f"{id}.{time}.{text}".encode(), "sha256")).decode()

    good = {"webhook-id": own, "webhook-timestamp": str(CLOCK), "webhook-signature": sign(secret)}

    def receive(
        name: str, about: str, headers: Object, text: str = body, secrets: list[str] | None = None, reason: str = "",
        type: str = "device.unbound", **more: Any,
    ) -> Object:
        given = {"secrets": secrets or [secret], "headers": headers, "body": text, **more}
        event: Object = {"outcome": "event", "type": type, "id": headers.get("webhook-id")}
        refused = {"outcome": "refused", "error": "webhook", "reason": reason}
        return case("webhook", name, about, given, None, refused if reason else event)

    def at(moment: object) -> Object:
        return good | {"webhook-timestamp": str(moment), "webhook-signature": sign(secret, time=moment)}

    yield receive("webhook", "A webhook of the relay.", good)
    yield receive("webhook-capitals", "Names of fields have no case.", {name.title(): value for name, value in good.items()} | {"webhook-id": own})
    yield receive("webhook-two-secrets", "While the secret changes, either counts.", good, secrets=[former, secret])
    yield receive("webhook-two-signatures", "While the secret changes, the relay signs with both.",
                  good | {"webhook-signature": f"{sign(former)} {sign(secret)}"})
    yield receive("webhook-other-version", "Signatures of other versions are skipped.",
                  good | {"webhook-signature": f"v1a,AAAA {sign(secret)}"})
    yield receive("webhook-old-edge", "Five minutes are accepted.", at(CLOCK - 300))
    yield receive("webhook-future-edge", "Five minutes ahead, too.", at(CLOCK + 300))
    later = compact(event | {"type": "phone.melted"}).decode()
    yield receive("webhook-unknown-type", "A later relay has further types.",
                  good | {"webhook-signature": sign(secret, later)}, later, type="phone.melted")
    published = {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek", "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }
    vector = receive(
        "webhook-published", "The example of Standard Webhooks: its signature is right, its body no event of ours.",
        published, '{"test": 2432232314}', ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"], "body")
    yield vector | {"clock": 1614265330}
    yield vector | {
        "name": "webhook-published-changed", "about": "The same with another body.", "clock": 1614265330,
        "given": vector["given"] | {"body": '{"test": 2432232315}'},
        "expected": {"outcome": "refused", "error": "webhook", "reason": "signature"},
    }
    yield receive("webhook-other-secret", "Somebody else signed.", good | {"webhook-signature": sign(former)}, reason="signature")
    yield receive("webhook-changed", "The body was changed.", good, body.replace("unbound", "bound"), reason="signature")
    yield receive("webhook-other-id", "The id was changed.", good | {"webhook-id": ident("x")}, reason="signature")
    yield receive("webhook-other-time", "The time was changed.", good | {"webhook-timestamp": str(CLOCK + 1)}, reason="signature")
    yield receive("webhook-empty-signature", "The signature is empty.", good | {"webhook-signature": "v1,"}, reason="signature")
    yield receive("webhook-version-0", "No version 1.", good | {"webhook-signature": sign(secret).replace("v1", "v0")}, reason="signature")
    yield receive("webhook-not-base64", "The signature is not base64.", good | {"webhook-signature": "v1,\u00e9"}, reason="signature")
    yield receive("webhook-old", "Somebody replays an old webhook.", at(CLOCK - 301), reason="time")
    yield receive("webhook-future", "The time is ahead.", at(CLOCK + 301), reason="time")
    for text in (
        "", "soon", f"+{CLOCK}", f"{CLOCK}.0", "\u0661", f"-{CLOCK}", f" {CLOCK}", f"{CLOCK} ", "0x6b", "1e9", "9" * 40,
        f"{CLOCK},{CLOCK}", "NaN", "2026-11-22T08:00:00Z",
    ):
        yield receive(f"webhook-time-{text.encode().hex() or 'empty'}", "The time is no number.", at(text), reason="headers")
    for name in good:
        yield receive(f"webhook-no-{name}", "A field is missing.", without(good, name), reason="headers")
    yield from more_webhooks(receive, sign, secret, event, good)
    for name, text in (("list", "[]"), ("no-type", compact(without(event, "type")).decode()), ("no-data", compact(without(event, "data")).decode())):
        yield receive(f"webhook-{name}", "Signed, but no event.", good | {"webhook-signature": sign(secret, text)}, text, reason="body")


def more_webhooks(receive: Any, sign: Any, secret: str, event: Object, good: Object) -> Iterator[Object]:
    """Other names of fields, weak secrets, and bodies that two parsers read differently."""
    yield receive("webhook-svix-names", "The relay's fields have one name each: those of a former product do not count.",
                  {name.replace("webhook", "svix"): value for name, value in good.items()}, reason="headers")
    for name, id in (("dot", f"{ident('x')}.1"), ("long", "0" * 129), ("space", f"{ident('x')} "), ("letter", "m\u00e9")):
        yield receive(f"webhook-id-{name}", "Ids have letters, digits, - and _, and fit into the store.",
                      good | {"webhook-id": id, "webhook-signature": sign(secret, id=id)}, reason="headers")
    yield receive("webhook-svix-beside", "Fields of other names change nothing.",
                  good | {"svix-id": "x", "svix-timestamp": "1", "svix-signature": "v1,x"})
    for name in good:
        yield receive(f"webhook-empty-{name}", "A field is empty.", good | {name: ""}, reason="headers")
    for name, value in (
        ("capital-version", sign(secret).replace("v1", "V1")), ("no-version", sign(secret)[3:]),
        ("other-separator", sign(secret).replace(",", "=")), ("cut", sign(secret)[:-8]),
        ("base64url", "v1," + sign(secret)[3:].translate(str.maketrans("+/", "-_")).rstrip("=")),
        ("hex", "v1," + base64.b64decode(sign(secret)[3:]).hex()),
    ):
        yield receive(f"webhook-signature-{name}", "This is no signature of version 1.",
                      good | {"webhook-signature": value}, reason="signature")
    yield receive("webhook-third-signature", "One of many signatures is right.",
                  good | {"webhook-signature": f"v1,AAAA v2,{sign(secret)[3:]} {sign(secret)}"})
    bare = secret.removeprefix("whsec_")
    yield receive("webhook-bare-secret", "The secret without its prefix.", good, secrets=[bare])
    yield receive("webhook-secret-line", "The secret as it stands in its file, with the end of the line.", good, secrets=[f"{secret}\n"])
    for size in (24, 64):
        key = f"whsec_{base64.b64encode(seeded('a webhook')[:size] + bytes(max(0, size - 32))).decode()}"
        yield receive(f"webhook-secret-{size}", "Secrets have 24 to 64 bytes.",
                      good | {"webhook-signature": sign(key)}, secrets=[key])
    unusable = {"outcome": "unusable"}
    for name, secrets in (
        ("none", []), ("empty", [""]), ("prefix-only", ["whsec_"]), ("not-base64", ["whsec_***"]),
        ("1", [f"whsec_{base64.b64encode(b'x').decode()}"]),
        ("23", [f"whsec_{base64.b64encode(bytes(23)).decode()}"]),
        ("one-of-two", [secret, "whsec_"]),
    ):
        made = receive(f"webhook-secret-{name}", "Under an empty or short secret, anybody could sign.", good)
        yield made | {"given": made["given"] | {"secrets": secrets}, "expected": unusable}
    text = compact(event).decode()
    for name, form in (
        ("twice", doubled(text, '"type":"device.bound"')), ("twice-inside", doubled(text, '"further":{"a":1,"a":1}')),
        ("bom", BOM + text), ("nan", doubled(text, '"further":NaN')), ("empty", ""), ("null", "null"),
        ("type-number", compact(event | {"type": 7}).decode()), ("type-null", compact(event | {"type": None}).decode()),
        ("timestamp-number", compact(event | {"timestamp": CLOCK}).decode()),
        ("no-timestamp", compact(without(event, "timestamp")).decode()),
        ("data-list", compact(event | {"data": []}).decode()), ("data-text", compact(event | {"data": "x"}).decode()),
        ("data-null", compact(event | {"data": None}).decode()),
        ("half-a-character", doubled(text, '"further":"\\ud800"')),
    ):
        yield receive(f"webhook-body-{name}", "Signed, but not one unambiguous event.",
                      good | {"webhook-signature": sign(secret, form)}, form, reason="body")


def cases() -> list[Object]:
    groups = (enrolments(), pins(), asked(), factors(), webhooks())
    return [case for group in groups for case in group]
