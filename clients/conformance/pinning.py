"""Further cases of `confirm`: bindings and keys in a loose form, and those of other users."""

import base64
from collections.abc import Iterator
from typing import Any

from calls import case
from world import (
    ADAS, AUDIENCE, BOBS, BOM, K, MALLORYS, TOKEN, Object, Receipt,
    b64, binding, compact, device, doubled, ident, mac_text, problem, reply, seeded, user, without,
)

PINNED: Object = {"outcome": "pinned", "pinned": {ADAS.device: ADAS.jwk}}
NOTHING: Object = {"outcome": "pinned", "pinned": {}}
TYPE = "twoefay-binding+jwt"


def pin(name: str, about: str, answer: Object, expected: Object, **more: Any) -> Object:
    given = {"username": "ada", "token": TOKEN, "k": [b64(K)], "pinned": {}, **more}
    return case("confirm", name, about, given, answer, expected)


def lie(name: str, about: str, entry: Object, reason: str, **more: Any) -> Object:
    return pin(name, about, reply(user(entry)), {"outcome": "refused", "error": "binding", "reason": reason}, **more)


def others() -> Iterator[Object]:
    """A secret or a phone of another user."""
    bobs_k = seeded("k of bob")
    bob = {"token": ident("token of bob"), "k": [b64(bobs_k)], "pinned": {BOBS.device: BOBS.jwk}}
    yield lie("pin-k-of-another-user", "The binding was made under the secret of Bob's open enrolment.",
              device(binding=binding(bobs_k)), "code", others={"bob": bob})
    yield lie("pin-k-of-another-user-only", "Ada has no open enrolment, Bob has one.",
              device(binding=binding(bobs_k)), "code", k=[], others={"bob": bob})
    yield pin("pin-beside-another-user", "Both users have an open enrolment.", reply(user(device())), PINNED,
              others={"bob": bob})
    foreign = binding(jwk=BOBS.jwk)
    yield pin("pin-device-of-another-user", "Another phone of Ada has the id of Bob's: both are pinned, each for its user.",
              reply(user(device(device=BOBS.device, jwk=BOBS.jwk, binding=foreign))),
              {"outcome": "pinned", "pinned": {BOBS.device: BOBS.jwk}}, others={"bob": bob})
    yield lie("pin-without-open-enrolment", "No secret is open.", device(), "code", k=[])


def states() -> Iterator[Object]:
    """What the relay says about a phone that is pinned changes nothing in the store."""
    mine = {"pinned": {ADAS.device: ADAS.jwk}}
    for state in ("suspended", "revoked", "waiting", "expired"):
        yield pin(f"pin-stays-{state}", "The website itself decides when a pinned phone ceases to count.",
                  reply(user(device(state=state))), PINNED, **mine)
        if state != "waiting":
            yield pin(f"pin-not-{state}", "Only an active phone is pinned.", reply(user(device(state=state))), NOTHING)
    yield pin("pin-stays-unlisted", "The relay does not list the pinned phone any more.", reply(user()), PINNED, **mine)
    yield pin("pin-stays-without-binding", "The relay reports no binding for the pinned phone any more.",
              reply(user(device(binding=None))), PINNED, **mine)
    yield pin("pin-stays-odd-binding", "A binding of a pinned phone is not read.",
              reply(user(device(binding="x"))), PINNED, **mine)
    yield pin("pin-not-capital-state", "The state is compared byte by byte.", reply(user(device(state="Active"))), NOTHING)
    yield pin("pin-not-without-state", "A phone without a state is not active.", reply(user(device(state=None))), NOTHING)


def forms() -> Iterator[Object]:
    """Bindings whose words, numbers and keys only look right."""
    for name, value in (
        ("longer", f"{AUDIENCE}x"), ("shorter", AUDIENCE[:-1]), ("capitals", AUDIENCE.upper()), ("list", [AUDIENCE]),
        ("capital-website", AUDIENCE.replace("#shop", "#Shop")), ("missing", None), ("space", f"{AUDIENCE} "),
    ):
        yield lie(f"pin-audience-{name}", "The audience is compared byte by byte.", device(binding=binding(aud=value)), "audience")
    for name, value in (("longer", f"{TOKEN}0"), ("shorter", TOKEN[:-1]), ("capitals", TOKEN.upper()), ("list", [TOKEN]), ("missing", None)):
        yield lie(f"pin-token-{name}", "The token is compared byte by byte.", device(binding=binding(id_token=value)), "token")
    for name, value in (("true", True), ("text", "1"), ("fraction", 1.5), ("0", 0), ("missing", None)):
        yield lie(f"pin-version-{name}", "The version is the number 1.", device(binding=binding(v=value)), "claims")
    for name, value in (
        ("capitals", TYPE.upper()), ("media-type", f"application/{TYPE}"), ("jwt", "JWT"), ("list", [TYPE]), ("missing", None),
    ):
        head = without({"alg": "HS256", "typ": value}, *(["typ"] if value is None else []))
        yield lie(f"pin-type-{name}", "The type is exactly that of a binding.", device(binding=binding(header=head)), "type")
    for algorithm in ("hs256", "HS512", "ES256", ["HS256"]):
        name = "list" if isinstance(algorithm, list) else algorithm
        yield lie(f"pin-alg-{name}", "The algorithm is fixed; the header does not choose it.",
                  device(binding=binding(header={"alg": algorithm, "typ": TYPE})), "malformed")
    for name, value in (("integer", 7), ("list", [binding()]), ("object", {"jws": binding()})):
        yield lie(f"pin-binding-{name}", "The binding is a text.", device(binding=value), "incomplete")
    for name, value in (
        ("empty", ""), ("two-parts", binding().rpartition(".")[0]), ("padded", f"{binding()}="), ("no-code", f"{binding().rpartition('.')[0]}."),
    ):
        yield lie(f"pin-binding-{name}", "The binding is not one compact JWS.", device(binding=value), "malformed")
    head, claims, code = binding().split(".")
    for size in (1, 16):
        cut = b64(base64.urlsafe_b64decode(code + "=")[:size])
        yield lie(f"pin-code-of-{size}-bytes", "The code is cut short: a comparison of prefixes would accept it.",
                  device(binding=f"{head}.{claims}.{cut}"), "code")
    for size in (0, 1, 16, 31):
        k = seeded("a short k")[:size]
        yield lie(f"pin-k-of-{size}-bytes", "A short secret can be guessed: nothing that it makes counts.",
                  device(binding=binding(k)), "code", k=[b64(k)])


def keys() -> Iterator[Object]:
    """Keys that are none of P-256, or that the relay and the phone do not name alike."""
    jwk = ADAS.jwk
    off = jwk | {"x": b64(bytes(31) + b"\x05")}
    for name, key in (
        ("kty-rsa", jwk | {"kty": "RSA"}), ("kty-case", jwk | {"kty": "ec"}), ("kty-okp", jwk | {"kty": "OKP"}),
        ("crv-p384", jwk | {"crv": "P-384"}), ("crv-case", jwk | {"crv": "p-256"}), ("crv-secp256k1", jwk | {"crv": "secp256k1"}),
        ("no-kty", without(jwk, "kty")), ("no-crv", without(jwk, "crv")), ("no-x", without(jwk, "x")), ("no-y", without(jwk, "y")),
        ("x-number", jwk | {"x": 7}), ("x-empty", jwk | {"x": ""}), ("x-padded", jwk | {"x": jwk["x"] + "="}),
        ("x-short", jwk | {"x": b64(bytes(31))}), ("x-long", jwk | {"x": b64(bytes(1) + seeded("x"))}),
        ("zero", jwk | {"x": b64(bytes(32)), "y": b64(bytes(32))}), ("other-y", jwk | {"y": MALLORYS.jwk["y"]}),
        ("high", jwk | {"x": b64(b"\xff" * 32)}), ("off", off),
        ("text", "P-256"), ("list", [jwk]), ("null", None),
    ):
        yield lie(f"pin-key-{name}", "The phone's key is no key of P-256.", device(jwk=key, binding=binding(jwk=key)), "claims")
    yield lie("pin-no-key", "The relay names no key.", device(jwk=None), "key")
    for name, key in (
        ("no-kty", without(jwk, "kty")), ("other-crv", jwk | {"crv": "P-384"}), ("off", off), ("text", "P-256"), ("list", [jwk]),
        ("padded", jwk | {"x": jwk["x"] + "="}), ("empty", {}),
    ):
        yield lie(f"pin-reported-{name}", "The relay names something else than the phone's key.", device(jwk=key), "key")
    agreement = Receipt(MALLORYS).signer.jwk
    yield lie("pin-agreement-missing", "The phone names a key for secrets, the relay none.",
              device(binding=binding(agreement=agreement)), "key")
    yield lie("pin-agreement-other", "The relay names another key for secrets than the phone.",
              device(agreement=BOBS.jwk, binding=binding(agreement=agreement)), "key")
    for name, key in (("null", None), ("off-curve", off), ("text", "x"), ("no-crv", without(jwk, "crv")), ("empty", {})):
        yield lie(f"pin-agreement-{name}", "The phone's key for secrets is none.",
                  device(agreement=key, binding=binding(agreement=key)), "claims")
    yield lie("pin-agreement-reported-text", "The relay's key for secrets is none.",
              device(agreement="x", binding=binding(agreement=agreement)), "key")


def parsed() -> Iterator[Object]:
    """JSON that two parsers read differently."""
    head = compact({"alg": "HS256", "typ": TYPE}).decode()
    text = compact({"v": 1, "aud": AUDIENCE, "id_token": TOKEN, "jwk": ADAS.jwk}).decode()
    for name, claims in (
        ("twice", doubled(text, f'"id_token":"{TOKEN}"')), ("twice-key", doubled(text, f'"jwk":{compact(ADAS.jwk).decode()}')),
        ("bom", BOM + text), ("nan", doubled(text, '"further":NaN')), ("list", f"[{text}]"), ("empty", ""), ("no-json", "{"),
    ):
        yield lie(f"pin-claims-{name}", "The claims are not one unambiguous object.", device(binding=mac_text(K, head, claims)), "claims")
    for name, header in (
        ("twice", doubled(head, '"alg":"HS256"')), ("bom", BOM + head), ("nan", doubled(head, '"further":NaN')),
        ("list", f"[{head}]"), ("empty", ""),
    ):
        yield lie(f"pin-header-{name}", "The header is not one unambiguous object.", device(binding=mac_text(K, header, text)), "malformed")
    odd: Object = {"outcome": "error", "error": "odd_answer"}
    for name, answer in (
        ("devices-null", reply(user() | {"devices": None})), ("devices-object", reply(user() | {"devices": {}})),
        ("devices-texts", reply(user() | {"devices": ["x"]})), ("token-missing", reply(without(user(device()), "token"))),
        ("token-number", reply(user(device()) | {"token": 7})), ("device-without-id", reply(user(without(device(), "device")))),
        ("device-id-number", reply(user(device(device=7)))),
        ("device-id-long", reply(user(device(device="0" * 129)))), ("device-id-empty", reply(user(device(device="")))),
        ("device-id-path", reply(user(device(device="../x")))), ("token-zero", reply(user(device(), token="\0"))),
        ("twice", reply(doubled(compact(user(device())).decode(), '"devices":[]'))),
        ("problem-as-json", reply({"status": 404, "code": "not_found"}, 404)),
    ):
        yield pin(f"pin-odd-{name}", "This is no answer about a user.", answer, odd)
    yield pin("pin-problem-as-json-200", "A refusal of a relay has the status of one.",
              problem("not_found", 404) | {"status": 200}, odd)


def cases() -> list[Object]:
    groups = (others(), states(), forms(), keys(), parsed())
    return [case for group in groups for case in group]
