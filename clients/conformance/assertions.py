"""Cases of `decide` for a pinned web phone: the browser's proof that it verified the phone's owner.

An attack on the assertion is no error in itself. The login counts as one without a verification.
"""

import hashlib
from collections.abc import Iterator
from typing import Any

from conversations import sent
from decisions import APPROVED, decide, refused
from edges import der, other_end
from world import (
    ADAS, APP, BOBS, BOM, CHALLENGE, CLOCK, CREDENTIAL, K, ORDER, RP, TOKEN, WEB, Object, Phone, Receipt,
    b64, compact, doubled, ident, login, reply, seeded, user, web_phone, webauthn, without,
)
from webphones import entry

UP, UV, BE_BS, AT, ED = 0x01, 0x04, 0x18, 0x40, 0x80
FORTY = {"longest_verification_age": 40}
LEAST = {"least_user_verification": "passcode"}


def receipt(**claims: Any) -> Receipt:
    return Receipt(WEB).head(kid=WEB.device).claim(**claims)


class Assertion:
    """The answer of a browser's `navigator.credentials.get`. A right one, unless a case changes it."""

    def __init__(self, made: Receipt, signer: Phone = CREDENTIAL) -> None:
        self.signer, self.rp, self.flags, self.rest = signer, RP, UP | UV, bytes(4)
        signed = made.jws().rpartition(".")[0]
        self.client: Object = {
            "type": "webauthn.get", "challenge": b64(hashlib.sha256(signed.encode()).digest()),
            "origin": APP, "crossOrigin": False,
        }
        self.text = ""

    def says(self, **changes: Any) -> "Assertion":
        """Another client_data; a change to None removes the member."""
        client = {**self.client, **changes}
        self.client = {name: value for name, value in client.items() if value is not None}
        return self

    def written(self, text: str) -> "Assertion":
        """Another text as client_data."""
        self.text = text
        return self

    def device_says(self, rp: str = RP, flags: int = UP | UV, rest: bytes = bytes(4)) -> "Assertion":
        """Another authenticator_data. `rest` begins with the counter."""
        self.rp, self.flags, self.rest = rp, flags, rest
        return self

    def client_data(self) -> bytes:
        return self.text.encode() or compact(self.client)

    def authenticator_data(self) -> bytes:
        return hashlib.sha256(self.rp.encode()).digest() + bytes([self.flags]) + self.rest

    def signature(self) -> bytes:
        return self.signer.sign_bytes(self.authenticator_data() + hashlib.sha256(self.client_data()).digest())

    def members(self, **changes: Any) -> Object:
        """The object beside the receipt; a change to None removes the member."""
        made = {name: b64(getattr(self, name)()) for name in ("authenticator_data", "client_data", "signature")}
        return {name: value for name, value in {**made, **changes}.items() if value is not None}


def web(
    name: str, about: str, made: Receipt, assertion: Any, verification: str | None, *, website: Object | None = None,
    record: Object | None = None, reason: str = "", asked: Object | None = None, **answer: Any,
) -> Object:
    """The web phone answers. The website sees this verification, or refuses with the reason."""
    approved = {"outcome": "approved", "device": WEB.device, "proof": "signed", "user_verification": verification}
    members = made.answer(device=WEB.device, **answer)
    if assertion is not None:
        members["webauthn"] = assertion
    return decide(f"web-{name}", about, reply(members), refused(reason) if reason else approved, website=website,
                  pinned={WEB.device: record or web_phone()}, asked=asked)


def good() -> Iterator[Object]:
    """Right assertions, and how much they prove."""
    for word in ("passcode", "biometric"):
        made = receipt(uv=word)
        yield web(word, "An assertion proves a passcode at most.", made, Assertion(made).members(), "passcode", website=LEAST)
    made = receipt(uv="none")
    yield web("none", "The answer itself says that nobody was verified.", made, Assertion(made).members(), "none")
    made = receipt()
    honest = Assertion(made)
    yield web("biometric-required", "WebAuthn does not say which check it was.", made, honest.members(), None,
              website={"least_user_verification": "biometric"}, reason="user_verification")
    yield web("without-assertion", "The website requires no verification, and learns of none.", made, None, "none")
    yield web("no-assertion", "The phone's word alone counts for nothing.", made, None, None, website=LEAST, reason="user_verification")
    record = web_phone(webauthn=None)
    yield web("no-credential", "The phone has no credential that an assertion could be checked with.", made,
              honest.members(), "none", record=record)
    yield web("no-credential-required", "A web phone without a credential never verifies its owner.", made, honest.members(), None,
              record=record, website=LEAST, reason="user_verification")
    yield web("further-members", "Members that nobody knows are ignored.", made,
              honest.members(user_handle="AAAA", id=webauthn()["id"], counter=7), "passcode")
    for name, changes in (
        ("no-cross-origin", {"crossOrigin": None}), ("further", {"other_keys_can_be_added_here": "do not compare with a template"}),
    ):
        yield web(f"client-data-{name}", "A browser may leave this out, or add more.", made,
                  Assertion(made).says(**changes).members(), "passcode")
    yield web("client-data-spaces", "The bytes are those that were signed, however they are written.", made,
              Assertion(made).written("{ " + compact(honest.client).decode()[1:-1].replace("\",\"", "\" , \n\"") + " }").members(), "passcode")
    for name, flags, rest in (
        ("synced", UP | UV | BE_BS, bytes(4)), ("counter", UP | UV, b"\xff" * 4), ("extensions", UP | UV | ED, bytes(4) + b"\xa1\x61x\xf5"),
        ("all-flags", 0xFF, bytes(4)), ("attested", UP | UV | AT, bytes(4 + 60)),
    ):
        yield web(f"device-{name}", "Only the flags UP and UV count.", made, Assertion(made).device_says(RP, flags, rest).members(), "passcode")
    for name, app, rp in (("parent", APP, "example.net"), ("port", f"{APP}:8443", RP)):
        yield web(f"rp-of-{name}", "The relying party is that of the pinned record.", made,
                  Assertion(made).says(origin=app).device_says(rp).members(), "passcode",
                  record=web_phone(app=app, webauthn=webauthn(rp=rp)))
    signature = honest.signature()
    yield web("other-s", "A signature with n - s is the same answer.", made, honest.members(signature=b64(other_s(signature))), "passcode")
    again = WEB.negated(made.jws())
    yield web("other-s-of-receipt", "The challenge does not depend on the receipt's signature.", made, honest.members(), "passcode", receipt=again)
    later = receipt(uv_age=4)
    yield web("age", "The verification was seconds ago.", later, Assertion(later).members(), "passcode", website=FORTY)
    old = receipt(uv_age=41)
    yield web("age-old", "The verification was too long ago.", old, Assertion(old).members(), None, website=FORTY, reason="user_verification_age")
    yield web("no-age", "The phone names no age.", made, honest.members(), None, website=FORTY, reason="user_verification_age")
    yield web("age-without-assertion", "Without a verification there is no age of one.", later, None, None, website=FORTY,
              reason="user_verification_age")
    yield web("age-with-bad-assertion", "Without a verification there is no age of one.", later,
              Assertion(later, ADAS).members(), None, website=FORTY, reason="user_verification_age")
    both = LEAST | FORTY
    yield web("verification-before-age", "The first check that fails gives the reason.", old, None, None, website=both, reason="user_verification")
    yield web("challenge-before-verification", "The first check that fails gives the reason.", receipt(challenge=ident("another")), None, None,
              website=LEAST, reason="challenge")


def other_s(signature: bytes) -> bytes:
    """The other valid form of a signature in DER: (r, n - s)."""
    from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature

    r, s = decode_dss_signature(signature)
    return encode_dss_signature(r, ORDER - s)


def attack(name: str, about: str, assertion: Any, made: Receipt | None = None, **more: Any) -> Object:
    return web(f"attack-{name}", about, made or receipt(), assertion, "none", **more)


def client_data() -> Iterator[Object]:
    """The browser signed something else."""
    made = receipt()

    def says(name: str, about: str, **changes: Any) -> Object:
        return attack(name, about, Assertion(made).says(**changes).members())

    replayed = Assertion(receipt(nonce=b64(seeded("an earlier nonce"))))
    yield attack("replayed", "The assertion of another receipt of this phone.", replayed.members())
    yield attack("replayed-required", "The assertion of another receipt of this phone.", replayed.members(), website=LEAST,
                 reason="user_verification")
    raw = hashlib.sha256(made.payload()).digest()
    challenge = Assertion(made).client["challenge"]
    for name, value in (
        ("other", b64(seeded("another challenge"))), ("of-claims", b64(raw)), ("of-receipt", b64(hashlib.sha256(made.jws().encode()).digest())),
        ("of-relay", CHALLENGE), ("padded", f"{challenge}="), ("hex", seeded("x").hex()), ("empty", ""), ("number", 7), ("list", [challenge]),
        ("unused-bits", challenge[:-1] + other_end(challenge[-1])), ("missing", None),
    ):
        yield says(f"challenge-{name}", "The challenge is not the hash of exactly this receipt.", challenge=value)
    for name, value in (
        ("other", "https://evil.example"), ("port", f"{APP}:443"), ("slash", f"{APP}/"), ("http", "http://phone.example.net"),
        ("capitals", APP.upper()), ("child", "https://x.phone.example.net"), ("rp", RP), ("list", [APP]), ("empty", ""), ("missing", None),
    ):
        yield says(f"origin-{name}", "Another page than the web phone's asked for the assertion.", origin=value)
    for name, value in (("create", "webauthn.create"), ("payment", "payment.get"), ("capitals", "Webauthn.get"), ("list", ["webauthn.get"]), ("missing", None)):
        yield says(f"type-{name}", "This is no assertion.", type=value)
    for name, value in (("true", True), ("text", "false"), ("0", 0), ("list", [])):
        yield says(f"cross-origin-{name}", "The page may stand in a page of somebody else.", crossOrigin=value)
    yield says("top-origin", "The page stood in another page.", topOrigin="https://evil.example")
    yield says("top-origin-same", "A page that stands in no other page has no topOrigin.", topOrigin=APP)
    text = compact(Assertion(made).client).decode()
    for name, form in (
        ("challenge-twice", doubled(text, f'"challenge":"{challenge}"')), ("origin-twice", text.replace('"origin"', '"origin":"https://evil.example","origin"')),
        ("type-twice", doubled(text, '"type":"webauthn.get"')), ("cross-origin-twice", text.replace('"crossOrigin"', '"crossOrigin":true,"crossOrigin"')),
        ("cross-origin-null", text.replace("false", "null")), ("top-origin-null", doubled(text, '"topOrigin":null')),
        ("twice-inside", doubled(text, '"further":{"a":1,"a":1}')), ("bom", BOM + text), ("nan", doubled(text, '"further":NaN')),
        ("in-list", f"[{text}]"), ("half", text[:-1]), ("two", text + text), ("text", '"webauthn.get"'), ("null", "null"),
        ("half-a-character", doubled(text, '"further":"\\ud800"')),
    ):
        yield attack(f"client-data-{name}", "client_data is not one unambiguous object with the right members.",
                     Assertion(made).written(form).members())


def devices() -> Iterator[Object]:
    """The authenticator, its key and its signature."""
    made = receipt()
    for name, flags in (("none", 0), ("no-uv", UP), ("no-up", UV), ("synced", UP | BE_BS), ("further", 0xFF ^ UV), ("further-no-up", 0xFF ^ UP)):
        yield attack(f"flags-{name}", "The authenticator did not see its user, or did not verify who it was.",
                     Assertion(made).device_says(RP, flags).members())
    yield attack("flags-no-uv-required", "The authenticator did not verify who its user was.",
                 Assertion(made).device_says(RP, UP).members(), website=LEAST, reason="user_verification")
    for name, rp in (("other", "phone.example.org"), ("parent", "example.net"), ("origin", APP), ("capitals", RP.upper()), ("empty", "")):
        yield attack(f"rp-{name}", "The assertion is for another relying party.", Assertion(made).device_says(rp).members())
    for name, signer in (("other", ADAS), ("bobs", BOBS), ("phones-own", WEB)):
        yield attack(f"key-{name}", "Another key than the pinned credential's signed.", Assertion(made, signer).members())
    yield attack("key-other-required", "Another key than the pinned credential's signed.", Assertion(made, WEB).members(),
                 website=LEAST, reason="user_verification")
    right, other = Assertion(made), Assertion(made).device_says(RP, UP)
    yield attack("uv-set-later", "The flag UV was set after the signature.", right.members(signature=b64(other.signature())))
    evil = Assertion(made).says(origin="https://evil.example")
    yield attack("origin-set-later", "The origin was changed after the signature.", right.members(signature=b64(evil.signature())))
    hashed = hashlib.sha256(right.client_data()).digest()
    for name, data in (
        ("client-data", right.client_data()), ("hash", hashed), ("unhashed", right.authenticator_data() + right.client_data()),
        ("turned", hashed + right.authenticator_data()), ("device-only", right.authenticator_data()), ("empty", b""),
    ):
        yield attack(f"signed-{name}", "The signature is over other bytes.", right.members(signature=b64(CREDENTIAL.sign_bytes(data))))
    signature = right.signature()
    jws = CREDENTIAL.sign_text(compact(receipt().header).decode(), made.payload().decode()).rpartition(".")[2]
    for name, data in (
        ("raw", raw_form(signature)), ("of-jws", der(jws)), ("byte-less", signature[:-1]), ("longer", signature + b"\0"), ("one-byte", b"\x30"),
        ("long-form", signature[:1] + b"\x81" + signature[1:]), ("zeros", bytes.fromhex("3006020100020100")),
        ("ones", bytes.fromhex("3006020101020101")), ("257", signature + bytes(257 - len(signature))),
    ):
        yield attack(f"signature-{name}", "This is no signature in DER over these bytes.", right.members(signature=b64(data)))
    yield attack("device-data-cut", "The authenticator's data ends within the counter.", Assertion(made).device_says(RP, UP | UV, bytes(3)).members())
    yield attack("device-data-no-counter", "The authenticator's data ends after the flags.", Assertion(made).device_says(RP, UP | UV, b"").members())


def raw_form(signature: bytes) -> bytes:
    """The two numbers of a signature, as a JWS has them."""
    from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

    return b"".join(number.to_bytes(32) for number in decode_dss_signature(signature))


def objects() -> Iterator[Object]:
    """The object beside the receipt, and its texts."""
    made = receipt()
    right = Assertion(made)
    members = right.members()
    for name, value in (("text", "x"), ("list", [members]), ("true", True), ("number", 7), ("empty", {}), ("null", None)):
        about = "The assertion is no object with three texts."
        if value is None:
            yield web("attack-null", about, made, None, "none") | {"answer": reply(compact(made.answer(device=WEB.device) | {"webauthn": None}).decode())}
        else:
            yield attack(name, about, value)
    for name in members:
        for form, value in (
            ("missing", None), ("empty", ""), ("number", 7), ("list", [members[name]]), ("padded", members[name] + "="),
            ("base64", f"+/{members[name][2:]}"), ("space", f"{members[name]} "), ("line", f"{members[name]}\n"),
            ("letter", f"\u00e9{members[name]}"), ("cut", members[name][:-4]),
        ):
            yield attack(f"{name.replace('_', '-')}-{form}", f"{name} is missing, or not base64url, or cut short.", right.members(**{name: value}))
    yield web("names-of-browsers", "The members have the names of this protocol, and not those of browsers.", made,
              {"authenticatorData": members["authenticator_data"], "clientDataJSON": members["client_data"], "signature": members["signature"]}, "none")
    for name, size in (("1024", 1024), ("1025", 1025)):
        sized = Assertion(made).device_says(RP, UP | UV | ED, bytes(size - 33))
        yield web(f"device-data-of-{name}", "authenticator_data has 37 to 1024 bytes.", made, sized.members(), "passcode" if size == 1024 else "none")
    for size in (4096, 4097):
        empty = len(Assertion(made).says(further="").client_data())
        sized = Assertion(made).says(further="x" * (size - empty))
        assert len(sized.client_data()) == size
        yield web(f"client-data-of-{size}", "client_data has 1 to 4096 bytes.", made, sized.members(), "passcode" if size == 4096 else "none")


def native() -> Iterator[Object]:
    """A native phone: an assertion beside its answer is ignored."""
    native = {"outcome": "approved", "device": ADAS.device, "proof": "signed", "user_verification": "biometric"}
    made = Receipt()
    for name, beside in (("right", Assertion(made).members()), ("bad", Assertion(receipt()).members(signature="AA")), ("text", "x")):
        yield decide(f"native-beside-{name}", "A native phone's word counts, whatever stands beside it.",
                     reply(made.answer(webauthn=beside)), native, website={"least_user_verification": "biometric"})
    for word in ("none", "passcode"):
        made = Receipt().claim(uv=word)
        yield decide(f"native-{word}", "A native phone's word counts, and an assertion does not raise it.",
                     reply(made.answer(webauthn=Assertion(made).members())), native | {"user_verification": word})
    made = Receipt()
    yield decide("native-with-web-phone", "The user has a web phone, too.", reply(made.answer()), native,
                 pinned={ADAS.device: ADAS.jwk, WEB.device: web_phone()}, website={"phones": "web"})
    yield decide("web-with-native-phone", "The user has a native phone, too.", reply(receipt().answer(device=WEB.device)),
                 native | {"device": WEB.device, "user_verification": "none"}, pinned={ADAS.device: ADAS.jwk, WEB.device: web_phone()},
                 website={"phones": "native"})
    made = receipt()
    unpinned = {"allow_unpinned": True} | LEAST
    yield decide("web-unpinned", "The website knows only the relay's word about a phone that was never pinned.",
                 reply(made.answer(device=WEB.device, webauthn=Assertion(made).members())),
                 native | {"device": WEB.device, "user_verification": None, "assurance": "high"}, website=unpinned, pinned={})
    case = web("bound-since", "The web phone was bound since the login was opened.", made, None, "passcode", website=LEAST)
    answers = [reply(made.answer(device=WEB.device, webauthn=Assertion(made).members())), reply(user(entry()))]
    requests = [sent("POST", "/auth", {"challenge": CHALLENGE}), sent("GET", "/user/ada")]
    given = case["given"] | {"pinned": {}, "token": TOKEN, "k": [b64(K)]}
    yield {**without(case, "answer", "expected"), "given": given, "answers": answers, "expected": case["expected"] | {"requests": requests}}


def assurances() -> Iterator[Object]:
    """`high`, which a web phone reaches only if the website's own pages are of other hosts."""
    made = receipt()
    shop, other = ["https://shop.example"], ["https://shop.example", "https://login.shop.example:8443"]
    high, substantial = {"assurance": "high"}, {"assurance": "substantial"}

    def assured(name: str, about: str, origins: list[str], facts: Object | None, least: str | None = "high", **answer: Any) -> Object:
        asked = login(min_assurance=least) if least else login()
        case = web(f"assurance-{name}", about, made, Assertion(made).members(), "passcode", website={"login_origins": origins}, asked=asked,
                   reason="" if facts else "assurance", **answer)
        return case | {"expected": case["expected"] | (facts or {})}

    separate = "The website's pages and the web phone's have other hosts."
    yield assured("high", separate, shop, high)
    yield assured("high-two", separate, other, high)
    for name, origin in (
        ("parent", "https://example.net"), ("child", "https://x.phone.example.net"), ("like", "https://phone.example.net.evil.example"),
        ("relays", "https://login.example.com:8080"),
    ):
        yield assured(f"high-{name}", separate, [origin], high)
    unknown = "The website has not said where its users type their passwords."
    yield assured("unknown", unknown, [], None)
    yield assured("unknown-reported", unknown, [], substantial, None)
    yield assured("unknown-substantial", unknown, [], substantial, "substantial")
    same = "The server of this host can take the password and use the phone."
    for name, origins in (("same", [APP]), ("same-port", [f"{APP}:8443"]), ("same-of-two", [*shop, APP]), ("same-dot", [f"{APP}."])):
        yield assured(name, same, origins, None)
        yield assured(f"{name}-reported", same, origins, substantial, None)
    for word in ("substantial", "restricted", "low"):
        yield assured(f"{word}-stays", "Only `high` is lowered.", [], {"assurance": word}, None, assurance=word)
    yield assured("not-raised", "Pages of other hosts raise nothing.", shop, None, assurance="substantial")
    yield assured("none-stays", "The relay names no assurance.", shop, None, "low", assurance=None)
    port = f"{APP}:8443"
    case = web("assurance-app-with-port", same, made, None, None, website={"login_origins": [APP]}, asked=login(min_assurance="high"),
               record=web_phone(app=port), reason="assurance")
    yield case
    native = {**APPROVED, "assurance": "high"}
    for name, origins in (("", []), ("-same", [APP])):
        yield decide(f"native-assurance{name}", "The origins of pages say nothing about a native phone.", reply(Receipt().answer()), native,
                     website={"login_origins": origins}, asked=login(min_assurance="high"))
    yield web("assurance-without-verification", "The website asks for no verification: the assurance is the relay's word.", made, None,
              "none", website={"login_origins": shop}, asked=login(min_assurance="high"))
    code = Receipt().answer(factor="totp", assurance="substantial", proof="code", receipt=None, context=None, device=None)
    yield decide("web-code", "A code is no answer of the web phone.", reply(code),
                 {"outcome": "approved", "proof": "code", "assurance": "substantial", "user_verification": None},
                 website={"accept_codes": True}, pinned={WEB.device: web_phone()})
    late = web("assurance-before-age", "The first check that fails gives the reason.", made, Assertion(made).members(), None,
               asked=login(min_assurance="high", asked_at=CLOCK - 601), reason="assurance")
    yield late


def cases() -> list[Object]:
    groups = (good(), client_data(), devices(), objects(), native(), assurances())
    return [case for group in groups for case in group]
