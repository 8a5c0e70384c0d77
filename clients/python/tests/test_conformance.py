"""The cases of clients/conformance, which all languages run: good relays and lying ones."""

import json
import os
import re
from pathlib import Path
from typing import Any

import httpx
import pytest
from worlds import Clock, relay, reply

from twoefay import CheckError, Decision, Login, MemoryStore, Refused, Relay, TwoefayError, Webhooks
from twoefay.enrolment import Enrolment
from twoefay.jws import decode

DEFAULT = Path(__file__).parents[2] / "conformance" / "cases.json"
DOCUMENT = json.loads(Path(os.environ.get("TWOEFAY_CASES", DEFAULT)).read_text())


class Run:
    """One case: a client whose relay gives the answers of the case."""

    def __init__(self, case: dict[str, Any]) -> None:
        self.case, self.given = case, case["given"]
        self.requests: list[httpx.Request] = []
        self.store = MemoryStore()
        settings = {**DOCUMENT["defaults"], **case["website"]}
        settings["website"] = settings.pop("name")
        self.settings = settings

    def make(self) -> Relay:
        # Only `k` is chosen by the case: keys of requests must differ all the same.
        random = (
            (lambda size: decode(self.given["k"]) if size == 32 else os.urandom(size))
            if "k" in self.given
            else None
        )
        clock = Clock(self.case["clock"])
        return relay(self.answer, store=self.store, clock=clock, random=random, **self.settings)

    def answer(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        number = len(self.requests)
        if "answer" in self.case:
            answer = self.case["answer"]
        else:
            assert number <= len(self.case["answers"]), "one request too many"
            answer = self.case["answers"][number - 1]
        if answer is None:
            raise httpx.RemoteProtocolError("lost")
        sent = json.loads(request.content or "{}").get("number", "")
        return reply(answer["status"], answer["headers"], answer["body"].replace("{number}", sent))

    def outcome(self) -> dict[str, Any]:
        try:
            self.relay = self.make()
            return getattr(self, self.case["call"])()
        except CheckError as error:
            field = {"field": error.field} if error.field else {}
            return {"outcome": "refused", "error": error.word, "reason": error.reason, **field}
        except Refused as error:
            return {"outcome": "error", "error": error.word, "code": error.code, **facts(error)}
        except TwoefayError as error:
            return {"outcome": "error", "error": error.word}
        except ValueError:
            return {"outcome": "unusable"}

    # MARK: The store

    def keep(self, username: str, known: dict[str, Any]) -> None:
        """Stores what the website has of a user: pinned phones, the token, and open secrets."""
        for device, jwk in known.get("pinned", {}).items():
            self.store.add_secret(username, b"", self.case["clock"])
            assert self.store.pin(username, device, jwk, b"")
        if known.get("token") is not None:
            self.store.add_user(username, known["token"])
        for k in known.get("k", []):
            self.store.add_secret(username, decode(k), self.case["clock"])

    def keep_all(self, username: str = "ada") -> None:
        for other, known in self.given.get("others", {}).items():
            self.keep(other, known)
        self.keep(username, self.given)

    def others_are_as_before(self) -> bool:
        return all(
            self.store.pins(other) == known["pinned"]
            and len(self.store.secrets(other, self.case["clock"])) == len(known["k"])
            for other, known in self.given.get("others", {}).items()
        )

    # MARK: Calls

    def decide(self) -> dict[str, Any]:
        return self.decided(lambda login: self.relay.wait(login, within=0))

    def enter(self) -> dict[str, Any]:
        return self.decided(lambda login: self.relay.enter(login, self.given["code"]))

    def decided(self, decide: Any) -> dict[str, Any]:
        login = Login.from_json(self.given["login"] | {"number": self.given["login"].get("number")})
        self.keep_all()
        if self.given["open"]:
            self.store.open(login.request, login.asked_at)
        decision: Decision | None = None
        try:
            decision = decide(login)
        finally:
            # A login lets in once: the request is spent exactly if the decision is an approval.
            assert self.store.spend(login.request) is (self.given["open"] and not decision)
            assert self.others_are_as_before()
        facts = ("device", "proof", "assurance", "user_verification")
        named = {name: getattr(decision, name) for name in facts} if decision else {}
        named |= {"reason": decision.reason} if decision.state == "denied" else {}
        return {"outcome": decision.state, **{k: v for k, v in named.items() if v is not None}}

    def confirm(self) -> dict[str, Any]:
        username = self.given["username"]
        self.keep_all(username)
        self.relay.confirm(username)
        assert self.others_are_as_before()
        return {"outcome": "pinned", "pinned": self.store.pins(username)}

    def ask(self) -> dict[str, Any]:
        login = self.relay.ask(**self.given)
        sent = json.loads(self.requests[-1].content)
        assert login.sent.items() <= sent.items()
        assert len(bytes.fromhex(sent.pop("request"))) == 16
        return {"outcome": "asked", "sends": sent, "number": login.number}

    def register(self) -> dict[str, Any]:
        return self.enrolled(self.relay.register(self.given["username"]))

    def enrolment(self) -> dict[str, Any]:
        username = self.given["username"]
        self.keep(username, {"token": self.given["token"]})
        return self.enrolled(self.relay.enrolment(username, approval=self.given.get("approval")))

    def enrolled(self, made: Enrolment) -> dict[str, Any]:
        assert not any(self.given["k"].encode() in request.content for request in self.requests)
        assert (made.uri is None) == (self.store.secrets("ada", self.case["clock"]) == [])
        assert self.store.token("ada") == made.token
        extra = {"sent_to": made.sent_to, "awaits": made.awaits}
        return {"outcome": "enrolment", "uri": made.uri, **{k: v for k, v in extra.items() if v}}

    def unbind(self) -> dict[str, Any]:
        username = self.given["username"]
        self.keep_all(username)
        self.case["call"] = "unbind_phone"
        outcome = self.outcome()
        assert self.others_are_as_before()
        return outcome | {"pinned": self.store.pins(username), "enrolled": self.relay.is_enrolled(username)}

    def unbind_phone(self) -> dict[str, Any]:
        self.relay.unbind(self.given["username"], self.given["device"])
        return {"outcome": "done"}

    def factors(self) -> dict[str, Any]:
        found = self.relay.factors(self.given["username"])
        return {"outcome": "factors", "kinds": [factor.kind for factor in found]}

    def webhook(self) -> dict[str, Any]:
        inbox = Webhooks(self.given["secrets"], clock=lambda: self.case["clock"])
        event = inbox.verify(self.given["headers"], self.given["body"].encode())
        return {"outcome": "event", "type": event.type, "id": event.id}

    # MARK: What was sent

    def sent(self) -> list[dict[str, Any]]:
        """The requests, with their keys numbered by first use."""
        keys = [request.headers.get("idempotency-key") for request in self.requests]
        order = list(dict.fromkeys(key for key in keys if key is not None))
        contents: dict[str, bytes] = {}
        sent = []
        for request, key in zip(self.requests, keys, strict=True):
            assert key is None or contents.setdefault(key, request.content) == request.content
            body = json.loads(request.content) if request.content else None
            if request.url.path == "/login":
                del body["request"]
            path = request.url.raw_path.decode()
            number = None if key is None else order.index(key) + 1
            sent.append({"method": request.method, "path": path, "body": body, "key": number})
        return sent


def facts(error: Refused) -> dict[str, Any]:
    named = {name: getattr(error, name, None) for name in ("challenge", "number", "retry_after")}
    return {name: value for name, value in named.items() if value is not None}


def matches(expected: Any, actual: Any) -> bool:
    """Equality; `{2 digits}` stands for a number that the client chose."""
    if isinstance(expected, dict) and isinstance(actual, dict):
        return expected.keys() == actual.keys() and all(
            matches(expected[name], actual[name]) for name in expected
        )
    if isinstance(expected, list) and isinstance(actual, list):
        return len(expected) == len(actual) and all(map(matches, expected, actual))
    chosen = re.fullmatch(r"\{([26]) digits\}", expected) if isinstance(expected, str) else None
    if chosen:
        return isinstance(actual, str) and re.fullmatch(f"[0-9]{{{chosen[1]}}}", actual) is not None
    return bool(expected == actual)


@pytest.mark.parametrize("case", DOCUMENT["cases"], ids=lambda case: case["name"])
def test_case(case: dict[str, Any]) -> None:
    run = Run(dict(case))
    outcome = run.outcome()
    expected = dict(case["expected"])
    if "requests" in expected:
        assert matches(expected.pop("requests"), run.sent()), run.sent()
    # A case names the facts that matter, and no others.
    assert matches(expected, {name: outcome.get(name) for name in expected}), outcome
