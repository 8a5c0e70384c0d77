"""The operations of a website at the relay, for both clients. `Relay` documents each of them."""

import re
from dataclasses import dataclass
from functools import partial
from typing import Any

from .answers import identity, objects, optional, text
from .bindings import check_binding
from .enrolment import Enrolment, enrolment
from .errors import (
    NUMBER,
    BindingError,
    Invalid,
    Limited,
    NotFound,
    OddAnswer,
    ReceiptError,
    ShownOnce,
    TwoefayError,
)
from .jsontext import Object
from .login import Assurance, Decision, Login
from .policy import Policy
from .receipts import check_success
from .steps import Call, Operation, Pause, World, may_pass, send, use
from .stores import Store
from .texts import address, browser, segment

LONGEST_HOLD = 60
LONGEST_LIFE = 600
MOST_DIGITS = 6


@dataclass(frozen=True)
class Factor:
    """A factor of a user: `push`, `pull`, `totp`, `hotp`, `sms`, `mail`, `recovery` or `operator`."""

    kind: str
    state: str
    address: str | None = None
    device: str | None = None


@dataclass(frozen=True)
class Operations:
    """The operations of one website."""

    policy: Policy
    store: Store
    world: World

    def _now(self) -> int:
        return int(self.world.clock())

    # MARK: Enrolment

    def register(self, username: str, optional: dict[str, str | None]) -> Operation[Enrolment]:
        segment(username)
        body: Object = {"username": username, **{k: v for k, v in optional.items() if v is not None}}
        try:
            answer = yield from send(self.world, Call("POST", "/register", body), 201)
        except ShownOnce:
            # A lost answer to an attempt that was done: the user exists, without a phone.
            return (yield from self.enrolment(username, None))
        activation = answer.get("activation")
        if not isinstance(activation, dict):
            raise OddAnswer("activation is no object")
        return (yield from self._enrolment(username, identity(answer, "token"), activation))

    def enrolment(self, username: str, approval: str | None) -> Operation[Enrolment]:
        token = yield from use(lambda: self.store.token(username))
        if token is None:
            token = identity((yield from self.user(username)), "token")
        path = f"/user/{segment(username)}/activation"
        body = {} if approval is None else {"approval": approval}
        activation = yield from send(self.world, Call("POST", path, body), 201, 202)
        return (yield from self._enrolment(username, token, activation))

    def _enrolment(self, username: str, token: str, activation: Object) -> Operation[Enrolment]:
        k = self.world.random(32)
        made = enrolment(self.policy, token, activation, k)
        yield from use(lambda: self.store.add_user(username, token))
        if made.uri is not None:
            yield from use(lambda: self.store.add_secret(username, k, self._now()))
        return made

    def confirm(self, username: str) -> Operation[list[str]]:
        """Pins every active phone with a right binding."""
        user = yield from self.user(username)
        token = yield from use(lambda: self.store.token(username))
        if token is not None and token != identity(user, "token"):
            raise BindingError("token")
        pins = yield from use(lambda: self.store.pins(username))
        secrets = yield from use(lambda: self.store.secrets(username, self._now()))
        fault: BindingError | None = None
        pinned = []
        seen = set(pins)  # an answer may name thousands of devices, and one of them twice
        for device in objects(user, "devices"):
            id = identity(device, "device")
            if id in seen or device.get("state") != "active" or device.get("binding") is None:
                continue
            seen.add(id)
            try:
                jwk, k = check_binding(self.policy, device, identity(user, "token"), secrets)
            except BindingError as error:
                fault = error
                continue
            if (yield from use(partial(self.store.pin, username, id, jwk, k))):
                pinned.append(id)
            secrets = yield from use(lambda: self.store.secrets(username, self._now()))
        if fault is not None and not pinned:
            raise fault
        return pinned

    # MARK: Logins

    def ask(
        self,
        username: str,
        *,
        ip: str | None,
        user_agent: str | None,
        service: str | None,
        action: str | None,
        details: list[dict[str, str]] | None,
        number: str | None,
        factors: list[str] | None,
        min_assurance: Assurance | None,
        known: bool,
        expires_in: int | None,
        headers: dict[str, str],
    ) -> Operation[Login]:
        shown = {
            "service": service,
            "action": action,
            "details": details or None,
            "ip": address(ip),
            "user_agent": browser(user_agent),
        }
        sent: Object = {"username": username, "request": self.world.random(16).hex()}
        sent |= {name: value for name, value in shown.items() if value is not None}
        further = {
            "factors": factors,
            "min_assurance": min_assurance,
            "known": known or None,
            "expires_in": expires_in,
        }
        body = sent | {name: value for name, value in further.items() if value is not None}
        now = self._now()
        yield from use(lambda: self.store.open(sent["request"], now))
        answer = yield from self._open(body, number, headers)
        answered = optional(answer, "number")
        return Login(
            challenge=identity(answer, "challenge"),
            number=answered,
            asked_at=now,
            sent=sent,
            factors=factors,
            min_assurance=min_assurance,
            factor=optional(answer, "factor"),
            has_phone=answer.get("login") == "verified",
            codes_locked=answer.get("codes") == "locked",
            missing=_words(answer.get("missing")),
        )

    def _open(self, body: Object, number: str | None, headers: dict[str, str]) -> Operation[Object]:
        """Opens the login with a number that the website chose. A relay that chose it could show two
        visitors the same, and have the user approve the login of the other one."""

        def post(number: str | None) -> Operation[Object]:
            with_number = body if number is None else body | {"number": number}
            answer = yield from send(self.world, Call("POST", "/login", with_number, headers), 201)
            answered = optional(answer, "number")
            if answered is not None and not re.fullmatch(NUMBER, answered):
                raise OddAnswer("the number is none")
            if number is not None and answered not in (None, number):  # None: no phone can answer
                raise OddAnswer("the number differs from the one that was asked for")
            return answer

        if number is not None or self.policy.least_digits == 0:
            return (yield from post(number))
        try:
            return (yield from post(self._number(max(2, self.policy.least_digits))))
        except Invalid as error:
            # The operator may have raised the number of digits. Only that choice is the relay's.
            if error.faults != {"number": "length"} or self.policy.least_digits == MOST_DIGITS:
                raise
            return (yield from post(self._number(MOST_DIGITS)))

    def _number(self, digits: int) -> str:
        # The remainder of 128 random bits favours no number by more than 2^-108.
        return f"{int.from_bytes(self.world.random(16), 'big') % 10**digits:0{digits}d}"

    def state(self, login: Login, hold: int) -> Operation[Object]:
        """The relay's answer about a challenge, unchecked."""
        hold = min(hold, LONGEST_HOLD)
        headers = {"prefer": f"wait={hold}"} if hold > 0 else {}
        call = Call("POST", "/auth", {"challenge": login.challenge}, headers, hold)
        return _with_word((yield from send(self.world, call, 200)))

    def wait(self, login: Login, within: float | None) -> Operation[Decision]:
        """Without `within`, outages and limits end the wait only with the challenge's life."""
        end = self.world.monotonic() + (LONGEST_LIFE if within is None else within)
        while True:
            begun = self.world.monotonic()
            hold = int(max(0, min(end - begun, LONGEST_HOLD)))
            try:
                answer = yield from self.state(login, hold)
            except TwoefayError as error:
                pause = float(getattr(error, "retry_after", None) or 5)
                passes = isinstance(error, Limited) or may_pass(error)
                if not passes or within is not None or self.world.monotonic() + pause > end:
                    raise
                yield Pause(pause)
                continue
            if answer["login"] != "wait" or self.world.monotonic() >= end or hold == 0:
                return (yield from self.check(login, answer))
            # A relay that shuts down answers early; a repetition at once would meet it again.
            if self.world.monotonic() - begun < 0.5:
                yield Pause(0.5)

    def enter(self, login: Login, code: str) -> Operation[Decision]:
        body: Object = {"challenge": login.challenge, "otp": code}
        answer = yield from send(self.world, Call("POST", "/backup", body), 200)
        if answer.get("login") == "failure" and answer.get("reason") is None:
            return Decision("open", answer=answer)  # a wrong code: the challenge goes on
        return (yield from self.check(login, answer))

    def begin(self, login: Login, factor: str) -> Operation[None]:
        path = f"/challenge/{segment(login.challenge)}/factor"
        yield from send(self.world, Call("POST", path, {"factor": factor}), 202)

    def cancel(self, login: Login) -> Operation[None]:
        yield from send(self.world, Call("DELETE", f"/challenge/{segment(login.challenge)}"), 204)

    def check(self, login: Login, answer: Object) -> Operation[Decision]:
        """Decides by the relay's answer, and spends the request of an approval as the last step."""
        word = _with_word(answer)["login"]
        facts: Any = {name: _text(answer.get(name)) for name in ("factor", "proof", "assurance")}
        if word == "wait":
            return Decision("open", **facts, answer=answer)
        if word == "failure":
            return Decision("denied", _text(answer.get("reason")), **facts, answer=answer)
        pins = yield from use(lambda: self.store.pins(login.username))
        if answer.get("proof") == "signed" and _text(answer.get("device")) not in pins:
            pins = yield from self._pins_of_new_phone(login.username, pins)
        was_pinned = yield from use(lambda: self.store.was_pinned(login.username))
        proof = check_success(self.policy, login, answer, pins, was_pinned, self._now())
        if not (yield from use(lambda: self.store.spend(login.request))):
            raise ReceiptError("request_used")
        facts |= {"assurance": _text(proof.assurance), "device": _text(answer.get("device"))}
        seen = proof.claims["uv"] if proof.claims else None
        return Decision("approved", None, **facts, user_verification=seen, answer=answer)

    def _pins_of_new_phone(self, username: str, pins: dict[str, Any]) -> Operation[dict[str, Any]]:
        """The phone may have been bound since: its binding proves its key now as well as then."""
        if not (yield from use(lambda: self.store.secrets(username, self._now()))):
            return pins
        yield from self.confirm(username)
        return (yield from use(lambda: self.store.pins(username)))

    # MARK: Users

    def user(self, username: str) -> Operation[Object]:
        return (yield from send(self.world, Call("GET", f"/user/{segment(username)}"), 200))

    def factors(self, username: str) -> Operation[list[Factor]]:
        user = yield from self.user(username)
        return [
            Factor(
                text(entry, "kind"),
                text(entry, "state"),
                optional(entry, "address"),
                optional(entry, "device"),
            )
            for entry in objects(user, "factors")
        ]

    def unbind(self, username: str, device: str) -> Operation[None]:
        # First here: the phone must not count even if the relay cannot be reached.
        yield from use(lambda: self.store.unpin(username, device))
        path = f"/user/{segment(username)}/devices/{segment(device)}"
        yield from self._delete(path)

    def forget(self, username: str) -> Operation[None]:
        yield from self._delete(f"/user/{segment(username)}")
        yield from use(lambda: self.store.forget(username))

    def reset(self, username: str) -> Operation[None]:
        yield from use(lambda: self.store.forget(username))

    def _delete(self, path: str) -> Operation[None]:
        try:
            yield from send(self.world, Call("DELETE", path), 204)
        except NotFound:
            return  # deleted before, or by an attempt whose answer was lost

    def call(self, method: str, path: str, body: Object | None) -> Operation[Object]:
        return (yield from send(self.world, Call(method, path, body), 200, 201, 202, 204))


def _with_word(answer: Object) -> Object:
    if answer.get("login") not in ("success", "failure", "wait"):
        raise OddAnswer("login is none of success, failure and wait")
    return answer


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _words(value: Any) -> list[str]:
    return [word for word in value if isinstance(word, str)] if isinstance(value, list) else []
