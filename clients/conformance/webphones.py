"""Cases of web phones before a login: their bindings, the website's settings, and the drawn URI."""

from collections.abc import Iterator
from typing import Any

from calls import case
from conversations import talk
from pinning import NOTHING, PINNED, TYPE
from world import (
    APP, AUDIENCE, CREDENTIAL, K, MALLORYS, ORIGIN, RP, TOKEN, WEB, Object, Receipt,
    b64, binding, compact, device, doubled, ident, mac_text, reply, seeded, user, web_phone, webauthn, without,
)

UNUSABLE: Object = {"outcome": "unusable"}
RELAYS_HOST = "login.example.com"
LONG_HOST = ("a" * 40 + ".") * 2 + "b" * 38
# No values of `app`, and no origin in a setting: the name of the case, and the value.
NO_ORIGINS: tuple[tuple[str, Any], ...] = (
    ("empty", ""), ("host", "phone.example.net"), ("http", "http://phone.example.net"), ("slash", f"{APP}/"),
    ("path", f"{APP}/phone"), ("query", f"{APP}?x"), ("fragment", f"{APP}#x"), ("userinfo", "https://x@phone.example.net"),
    ("capital-host", "https://Phone.example.net"), ("capital-scheme", "HTTPS://phone.example.net"),
    ("no-host", "https://"), ("port-only", "https://:8443"), ("no-port", f"{APP}:"), ("port-of-6", f"{APP}:443443"),
    ("port-word", f"{APP}:https"), ("two-ports", f"{APP}:1:2"), ("underscore", "https://my_phone.example.net"),
    ("letter", "https://ph\u00f6ne.example.net"), ("digits", f"{APP}:\u0661"), ("space", f"{APP} "), ("line", f"{APP}\n"),
    ("line-first", f"\n{APP}"), ("v6", "https://[2001:db8::1]"), ("percent", "https://phone%2eexample.net"),
    ("long", f"https://{LONG_HOST}.c"), ("star", "https://*.example.net"), ("null-origin", "null"),
)


def entry(**claims: Any) -> Object:
    """Ada's web phone in the relay's answer; the claims differ from those of an honest binding."""
    made = binding(**{"jwk": WEB.jwk, "app": APP, "webauthn": webauthn(), **claims})
    return device(device=WEB.device, name="Ada's browser", platform="web", jwk=WEB.jwk, binding=made)


def without_webauthn(app: Any = APP, **changes: Any) -> Object:
    claims = {"v": 1, "aud": AUDIENCE, "id_token": TOKEN, "jwk": WEB.jwk, "app": app, **changes}
    made = mac_text(K, compact({"alg": "HS256", "typ": TYPE}).decode(), compact(claims).decode())
    return entry() | {"binding": made}


def pin(name: str, about: str, entry: Object, record: Object | None, website: Object | None = None, **more: Any) -> Object:
    """The web phone is pinned with this record; without one, nothing is pinned."""
    given = {"username": "ada", "token": TOKEN, "k": [b64(K)], "pinned": {}, **more}
    expected = {"outcome": "pinned", "pinned": {WEB.device: record}} if record else NOTHING
    return case("confirm", f"web-pin{name}", about, given, reply(user(entry)), expected) | {"website": website or {}}


def lie(name: str, about: str, entry: Object, reason: str, website: Object | None = None, **more: Any) -> Object:
    expected = {"outcome": "refused", "error": "binding", "reason": reason}
    return pin(name, about, entry, None, website, **more) | {"expected": expected}


def bindings() -> Iterator[Object]:
    """The claims `app` and `webauthn`, in the right form."""
    yield pin("", "The binding of a web phone: its record has the page's origin and the credential.", entry(), web_phone())
    yield pin("-app-only", "A web phone whose browser made no credential.", without_webauthn(), web_phone(webauthn=None))
    parent = webauthn(rp="example.net")
    yield pin("-rp-of-parent", "The relying party is a parent domain of the page's host.", entry(webauthn=parent),
              web_phone(webauthn=parent))
    for name, app, rp in (
        ("port", "https://phone.example.net:8443", RP), ("port-of-1", "https://phone.example.net:1", RP),
        ("port-of-5", "https://phone.example.net:65535", RP), ("port-99999", "https://phone.example.net:99999", RP), ("v4", "https://192.0.2.8", "192.0.2.8"), ("five-numbers", "https://1.2.3.4.5", "1.2.3.4.5"),
        ("one-label", "https://localhost", "localhost"), ("hyphen", "https://my-phone.xn--bcher-kva.example", "xn--bcher-kva.example"),
        ("longest", f"https://{LONG_HOST}", LONG_HOST),
    ):
        credential = webauthn(rp=rp)
        yield pin(f"-app-{name}", "This is an origin.", entry(app=app, webauthn=credential), web_phone(app=app, webauthn=credential))
    for name, id in (("shortest", b64(b"\x01")), ("longest", b64(bytes(192)))):
        credential = webauthn(id=id)
        yield pin(f"-id-{name}", "The id of a credential has 1 to 256 characters.", entry(webauthn=credential),
                  web_phone(webauthn=credential))
    agreement = Receipt().signer.jwk
    yield pin("-agreement", "The binding also names the key for secrets, which is in no record.",
              entry(agreement=agreement) | {"agreement": agreement}, web_phone())
    yield pin("-same-keys", "The credential has the phone's own key.", entry(webauthn=webauthn(jwk=WEB.jwk)),
              web_phone(webauthn=webauthn(jwk=WEB.jwk)))
    yield pin("-further-members", "Members of a key that nobody knows are in no record.",
              entry(jwk=WEB.jwk | {"use": "sig"}, webauthn=webauthn(jwk=CREDENTIAL.jwk | {"use": "sig"})), web_phone())
    yield pin("-former-origin", "Members of a credential that nobody knows, such as a former one, are in no record.",
              entry(webauthn=webauthn(origin=APP, transports=["internal"])), web_phone())
    others = {"pinned": {WEB.device: web_phone(webauthn=None)}}
    yield pin("-never-replaced", "Another binding of a pinned web phone changes nothing.", entry(),
              web_phone(webauthn=None), **others)
    yield pin("-never-raised", "A phone that was pinned as native stays one.", entry(), WEB.jwk, pinned={WEB.device: WEB.jwk})
    native = device()
    both = reply(user(native, entry()))
    yield pin("-beside-native", "Each code binds one phone: the native phone is pinned, and its secret is gone.",
              entry(), None) | {"answer": both, "expected": PINNED}


def forms() -> Iterator[Object]:
    """The claims `app` and `webauthn`, in a wrong form."""
    for name, app in (*NO_ORIGINS, ("number", 7), ("list", [APP]), ("true", True), ("null", None)):
        yield lie(f"-app-{name}", "The page's origin is none.", without_webauthn(app), "claims")
        if name in ("slash", "capital-host", "null"):
            yield lie(f"-app-{name}-with-credential", "The page's origin is none.", entry(app=app), "claims")
    yield lie("-webauthn-without-app", "Only a web phone has a credential.",
              device(binding=binding(webauthn=webauthn())), "claims")
    for name, value in (("null", None), ("text", "x"), ("list", [webauthn()]), ("true", True), ("empty", {})):
        yield lie(f"-webauthn-{name}", "The credential is an object with three members.", entry(webauthn=value), "claims")
    for name in ("rp", "id", "jwk"):
        yield lie(f"-no-{name}", "The credential lacks a member.", entry(webauthn=without(webauthn(), name)), "claims")
        yield lie(f"-{name}-null", "A member of the credential is null.", entry(webauthn=webauthn() | {name: None}), "claims")
        yield lie(f"-{name}-number", "A member of the credential is a number.", entry(webauthn=webauthn(**{name: 7})), "claims")
    for name, rp in (
        ("other", "phone.example.org"), ("empty", ""), ("part", "ple.net"), ("dot-first", ".example.net"), ("child", "x.phone.example.net"),
        ("capitals", RP.upper()), ("origin", APP), ("dot-last", f"{RP}."), ("line", f"{RP}\n"), ("prefix", "phone"),
        ("like", "phone-example.net"), ("list", [RP]),
    ):
        yield lie(f"-rp-{name}", "The relying party is neither the page's host nor a parent domain of it.",
                  entry(webauthn=webauthn(rp=rp)), "claims")
    yield lie("-rp-empty-of-root", "No relying party is empty, although the page's host ends with a dot.",
              entry(app=f"{APP}.", webauthn=webauthn(rp="")), "claims")
    yield lie("-rp-with-port", "A relying party has no port.",
              entry(app=f"{APP}:8443", webauthn=webauthn(rp=f"{RP}:8443")), "claims")
    id = webauthn()["id"]
    for name, value in (
        ("empty", ""), ("padded", f"{id}=="), ("base64", f"+/{id[2:]}"), ("space", f"{id} "), ("line", f"{id}\n"),
        ("long", b64(bytes(195))), ("list", [id]), ("letter", f"\u00e9{id}"),
    ):
        yield lie(f"-id-{name}", "The id of the credential is not base64url of 1 to 256 characters.",
                  entry(webauthn=webauthn(id=value)), "claims")
    key = CREDENTIAL.jwk
    for name, jwk in (
        ("kty-rsa", key | {"kty": "RSA"}), ("kty-okp", key | {"kty": "OKP"}), ("crv-p384", key | {"crv": "P-384"}),
        ("no-kty", without(key, "kty")), ("no-crv", without(key, "crv")), ("no-x", without(key, "x")), ("no-y", without(key, "y")),
        ("x-padded", key | {"x": key["x"] + "="}), ("x-short", key | {"x": b64(bytes(31))}), ("other-y", key | {"y": WEB.jwk["y"]}),
        ("off-curve", key | {"y": b64(bytes(31) + b"\x01")}), ("zero", key | {"x": b64(bytes(32)), "y": b64(bytes(32))}),
        ("text", "P-256"), ("list", [key]),
    ):
        yield lie(f"-jwk-{name}", "The credential's key is no key of P-256.", entry(webauthn=webauthn(jwk=jwk)), "claims")
    head = compact({"alg": "HS256", "typ": TYPE}).decode()
    claims = compact({"v": 1, "aud": AUDIENCE, "id_token": TOKEN, "jwk": WEB.jwk, "app": APP, "webauthn": webauthn()}).decode()
    for name, text in (
        ("app-twice", doubled(claims, f'"app":"{APP}"')), ("webauthn-twice", doubled(claims, '"webauthn":{}')),
        ("rp-twice", claims.replace('"rp":', f'"rp":"{RP}","rp":')),
    ):
        yield lie(f"-{name}", "The claims are not one unambiguous object.", entry() | {"binding": mac_text(K, head, text)}, "claims")


def settings() -> Iterator[Object]:
    """The choices of the website: `phones`, `app_origin`, and the relay's own host."""
    native, web, chosen = {"phones": "native"}, {"phones": "web"}, {"app_origin": APP}
    port = f"{APP}:8443"
    yield pin("-phones-web", "The website accepts web phones only.", entry(), web_phone(), web)
    yield pin("-app-chosen", "The page is the one that the website chose.", entry(), web_phone(), chosen)
    yield pin("-app-chosen-port", "The page's origin has a port, as the website's choice has.", entry(app=port),
              web_phone(app=port), {"app_origin": port})
    yield pin("-native-beside-choice", "The choice of a web app says nothing about native phones.", entry(), None, chosen) | {
        "answer": reply(user(device())), "expected": PINNED}
    yield pin("-native-of-native", "The website accepts native phones only, and this is one.", entry(), None, native) | {
        "answer": reply(user(device())), "expected": PINNED}
    yield pin("-good-beside-refused", "The native phone is pinned, whatever else the relay lists.", entry(), None, native) | {
        "answer": reply(user(entry(), device())), "expected": PINNED}
    yield lie("-phones-native", "The website accepts native phones only.", entry(), "phone", native)
    yield lie("-phones-native-app-only", "A web phone without a credential is a web phone.", without_webauthn(), "phone", native)
    yield lie("-native-where-web", "The website accepts web phones only.", device(), "phone", web)
    for name, app in (
        ("other", "https://phone.example.org"), ("port", port), ("port-443", f"{APP}:443"), ("child", "https://x.phone.example.net"),
        ("parent", "https://example.net"),
    ):
        yield lie(f"-not-chosen-{name}", "The page is another one than the website chose.", without_webauthn(app), "app", chosen)
    for name, app in (("", f"https://{RELAYS_HOST}"), ("-port", ORIGIN), ("-other-port", f"https://{RELAYS_HOST}:8443"), ("-dot", f"https://{RELAYS_HOST}.")):
        yield lie(f"-of-relay{name}", "The relay could read k in a page of its own host.", without_webauthn(app), "app")
    yield lie("-of-relay-where-web", "The relay's page is none, also if the website accepts web phones only.",
              without_webauthn(ORIGIN), "app", web)
    for name, app in (("child", f"https://phone.{RELAYS_HOST}"), ("parent", "https://example.com"), ("like", "https://xlogin.example.com")):
        yield pin(f"-host-{name}", "Another host than the relay's: the website trusts its users with the choice.",
                  without_webauthn(app), web_phone(app=app, webauthn=None))
    native_and_chosen = native | chosen
    other = "https://phone.example.org"
    for name, claims, reason, website in (
        ("claims-before-phone", {"webauthn": {}}, "claims", native), ("audience-before-phone", {"aud": f"{ORIGIN}#bank"}, "audience", native),
        ("token-before-phone", {"id_token": ident("bob")}, "token", native),
        ("phone-before-app", {"app": other, "webauthn": webauthn(rp="example.org")}, "phone", native_and_chosen),
        ("claims-before-app", {"app": other}, "claims", chosen),
    ):
        yield lie(f"-{name}", "The first check that fails gives the reason.", entry(**claims), reason, website)
    swapped = {"jwk": MALLORYS.jwk}
    yield lie("-phone-before-key", "The first check that fails gives the reason.", entry() | swapped, "phone", native)
    yield lie("-app-before-key", "The first check that fails gives the reason.", without_webauthn(other) | swapped, "app", chosen)
    yield lie("-key-swapped", "The relay reports a key of its own.", entry() | swapped, "key")
    yield lie("-credential-as-key", "The relay reports the credential's key as the phone's.", entry() | {"jwk": CREDENTIAL.jwk}, "key")
    yield lie("-made-by-relay", "The relay made the binding, without k.",
              entry() | {"binding": binding(seeded("a guess"), jwk=WEB.jwk, app=APP, webauthn=webauthn())}, "code")


def unusable() -> Iterator[Object]:
    """Settings that no client takes."""

    def refuse(name: str, about: str, website: Object) -> Object:
        given = {"username": "ada", "token": TOKEN, "k": [], "pinned": {}}
        return talk("confirm", f"setting-{name}", about, given, [], UNUSABLE, [], website)

    for name, word in (("none", "none"), ("capitals", "Native"), ("both", "native,web"), ("space", "web ")):
        yield refuse(f"phones-{name}", "`phones` is any, native or web.", {"phones": word})
    for name, origin in NO_ORIGINS:
        if origin != "":  # in some languages, an empty text is no setting
            yield refuse(f"app-origin-{name}", "The setting is no origin of a page.", {"app_origin": origin})
        yield refuse(f"login-origin-{name}", "The setting is no list of origins.", {"login_origins": ["https://shop.example", origin]})
    for name, origin in (("", f"https://{RELAYS_HOST}"), ("-port", ORIGIN), ("-other-port", f"https://{RELAYS_HOST}:8443"), ("-dot", f"https://{RELAYS_HOST}.")):
        yield refuse(f"app-of-relay{name}", "The relay could read k in a page of its own host.", {"app_origin": origin})


def drawn() -> Iterator[Object]:
    """The URI that the client draws."""
    pin = b64(seeded("the relay's authority"))
    query = f"relay=https%3A%2F%2Flogin.example.com%3A8080&website=shop&token={TOKEN}&code=abc&pin={pin}"
    expires_at = "2026-11-22T08:10:00.000Z"
    activation = {"code": "abc", "uri": f"twoefay://enrol?{query}", "qr": "<svg/>", "expires_at": expires_at}
    k, port = f"&k={b64(K)}", f"{APP}:8443"
    for name, website, uri in (
        ("any", {"phones": "any"}, f"twoefay://enrol?{query}{k}"),
        ("native", {"phones": "native"}, f"twoefay://enrol?{query}&phones=native{k}"),
        ("web", {"phones": "web"}, f"twoefay://enrol?{query}&phones=web{k}"),
        ("app", {"app_origin": APP}, f"{APP}/phone/#{query}{k}"),
        ("app-port", {"app_origin": port}, f"{port}/phone/#{query}{k}"),
        ("app-and-web", {"app_origin": APP, "phones": "web"}, f"{APP}/phone/#{query}&phones=web{k}"),
        ("login-origins", {"login_origins": ["https://shop.example"]}, f"twoefay://enrol?{query}{k}"),
    ):
        for call, answer, given in (
            ("register", reply({"token": TOKEN, "activation": activation}, 201), {}),
            ("enrolment", reply(activation, 201), {"token": TOKEN}),
        ):
            yield case(call, f"{call}-drawn-{name}", "The URI names the phones and the page that the website chose.",
                       {"username": "ada", "k": b64(K), **given}, answer, {"outcome": "enrolment", "uri": uri}) | {"website": website}
    linked = activation | {"link": f"{ORIGIN}/phone/#{query}"}
    for name, website, uri in (
        ("", {}, f"twoefay://enrol?{query}{k}"), ("-app", {"app_origin": APP}, f"{APP}/phone/#{query}{k}"),
    ):
        yield case("enrolment", f"enrolment-drawn-link{name}", "The relay also names its own page, which must not read k.",
                   {"username": "ada", "token": TOKEN, "k": b64(K)}, reply(linked, 201),
                   {"outcome": "enrolment", "uri": uri}) | {"website": website}
    for name, uri in (("page", f"{APP}/phone/#{query}"), ("own-k", f"twoefay://enrol?{query}&k={b64(seeded('of the relay'))}")):
        yield case("enrolment", f"enrolment-drawn-odd-{name}", "The relay's URI is not one to which the client may add k.",
                   {"username": "ada", "token": TOKEN, "k": b64(K)}, reply(activation | {"uri": uri}, 201),
                   {"outcome": "error", "error": "odd_answer"}) | {"website": {"app_origin": APP}}
    mailed = {"sent_to": "a\u2026@example.com", "expires_at": expires_at}
    yield case("enrolment", "enrolment-drawn-mailed", "The relay mails the code: there is none to draw.",
               {"username": "ada", "token": TOKEN, "k": b64(K)}, reply(mailed, 202),
               {"outcome": "enrolment", "uri": None, "sent_to": "a\u2026@example.com"}) | {"website": {"app_origin": APP, "phones": "web"}}


def cases() -> list[Object]:
    groups = (bindings(), forms(), settings(), unusable(), drawn())
    return [case for group in groups for case in group]
