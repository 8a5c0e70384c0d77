"""The check of a phone's binding: it pins the phone's key without trust in the relay.

The website adds a secret `k` to the activation URI and draws the QR code itself, so the relay never
sees `k`. The phone makes an HMAC with it over its own key.
"""

from collections.abc import Iterable

from .errors import BindingError
from .jsontext import Object, is_integer, read_object
from .jws import JWK, JWS, public_jwk
from .policy import Policy
from .webphones import web_members


def require(holds: bool, reason: str) -> None:
    if not holds:
        raise BindingError(reason)


def check_binding(policy: Policy, device: Object, token: str, secrets: Iterable[bytes]) -> tuple[JWK, bytes]:
    """Checks an entry of `devices[]` under each open secret. Returns the record to pin, and its `k`."""
    binding = device.get("binding")
    if not isinstance(binding, str):
        raise BindingError("incomplete")
    try:
        jws = JWS.parse(binding, "HS256")
    except ValueError as error:
        raise BindingError("malformed") from error
    used = next((k for k in secrets if jws.is_made_with(k)), None)
    if used is None:
        raise BindingError("code")
    require(jws.header.get("typ") == "twoefay-binding+jwt", "type")
    try:
        claims = read_object(jws.payload)
        key = public_jwk(claims.get("jwk"))
        agreement = public_jwk(claims["agreement"]) if "agreement" in claims else None
        web = web_members(claims)
    except ValueError as error:
        raise BindingError("claims") from error
    require(is_integer(claims.get("v")) and claims["v"] == 1, "claims")
    require(claims.get("aud") == policy.audience, "audience")
    require(claims.get("id_token") == token, "token")
    _check_app(policy, web.get("app"))
    # Secrets are sealed to `agreement`, so the relay must name the one that the phone names.
    require(_reported(device, "jwk") == key and _reported(device, "agreement") == agreement, "key")
    return key | web, used


def _check_app(policy: Policy, app: str | None) -> None:
    """Whether the website accepts this kind of phone, and this page. A native phone has no page."""
    require(policy.phones == "any" or (app is not None) == (policy.phones == "web"), "phone")
    if app is not None:
        require(app == policy.app_origin if policy.app_origin else not policy.is_of_relay(app), "app")


def _reported(device: Object, name: str) -> JWK | None:
    if device.get(name) is None:
        return None
    try:
        return public_jwk(device[name])
    except ValueError as error:
        raise BindingError("key") from error
