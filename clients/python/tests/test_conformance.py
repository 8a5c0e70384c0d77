"""The cases of clients/conformance, which all languages run: good relays and lying ones."""

import json
import os
from pathlib import Path
from typing import Any

import httpx
import pytest
from worlds import Clock, relay, reply

from twoefay import CheckError, Login, MemoryStore, Refused, Relay, TwoefayError, Webhooks
from twoefay.jws import decode

DEFAULT = Path(__file__).parents[2] / "conformance" / "cases.json"
DOCUMENT = json.loads(Path(os.environ.get("TWOEFAY_CASES", DEFAULT)).read_text())


class Run:
    """One case: a client whose relay gives the case's answer to each request."""

    def __init__(self, case: dict[str, Any]) -> None:
        self.case, self.given = case, case["given"]
        self.requests: list[dict[str, Any]] = []
        self.store = MemoryStore()
        settings = {**DOCUMENT["defaults"], **case["website"]}
        settings["website"] = settings.pop("name")
        random = (lambda size: decode(self.given["k"])[:size]) if case["call"] == "register" else None
        self.relay: Relay = relay(
            self.answer, store=self.store, clock=Clock(case["clock"]), random=random, **settings
        )

    def answer(self, request: httpx.Request) -> httpx.Response:
        if request.content:
            self.requests.append(json.loads(request.content))
        answer = self.case["answer"]
        return reply(answer["status"], answer["headers"], answer["body"])

    def outcome(self) -> dict[str, Any]:
        try:
            return getattr(self, self.case["call"])()
        except CheckError as error:
            field = {"field": error.field} if error.field else {}
            return {"outcome": "refused", "error": error.word, "reason": error.reason, **field}
        except Refused as error:
            return {"outcome": "error", "error": error.word, "code": error.code, **facts(error)}
        except TwoefayError as error:
            return {"outcome": "error", "error": error.word}

    def pin(self, pinned: dict[str, dict[str, str]], username: str = "ada") -> None:
        for device, jwk in pinned.items():
            self.store.add_secret(username, b"", self.case["clock"])
            assert self.store.pin(username, device, jwk, b"")

    def decide(self) -> dict[str, Any]:
        login = Login.from_json(self.given["login"] | {"number": self.given["login"].get("number")})
        self.pin(self.given["pinned"])
        if self.given["open"]:
            self.store.open(login.request, login.asked_at)
        decision = self.relay.wait(login, within=0)
        named = {"device": decision.device, "proof": decision.proof} if decision else {}
        named |= {"reason": decision.reason} if decision.state == "denied" else {}
        # A login lets in once: the request is spent exactly if the decision is an approval.
        assert self.store.spend(login.request) is not decision.approved
        return {"outcome": decision.state, **{k: v for k, v in named.items() if v is not None}}

    def confirm(self) -> dict[str, Any]:
        username = self.given["username"]
        self.pin(self.given["pinned"], username)
        self.store.add_user(username, self.given["token"])
        for k in self.given["k"]:
            self.store.add_secret(username, decode(k), self.case["clock"])
        self.relay.confirm(username)
        return {"outcome": "pinned", "pinned": self.store.pins(username)}

    def ask(self) -> dict[str, Any]:
        login = self.relay.ask(**self.given)
        (sent,) = self.requests
        assert login.sent.items() <= sent.items()
        assert len(bytes.fromhex(sent.pop("request"))) == 16
        return {"outcome": "asked", "sends": sent, "number": login.number}

    def register(self) -> dict[str, Any]:
        made = self.relay.register(self.given["username"])
        assert self.given["k"] not in json.dumps(self.requests)
        assert (made.uri is None) == (self.store.secrets("ada", self.case["clock"]) == [])
        extra = {"sent_to": made.sent_to, "awaits": made.awaits}
        return {"outcome": "enrolment", "uri": made.uri, **{k: v for k, v in extra.items() if v}}

    def factors(self) -> dict[str, Any]:
        found = self.relay.factors(self.given["username"])
        return {"outcome": "factors", "kinds": [factor.kind for factor in found]}

    def webhook(self) -> dict[str, Any]:
        inbox = Webhooks(self.given["secrets"], clock=lambda: self.case["clock"])
        event = inbox.verify(self.given["headers"], self.given["body"].encode())
        return {"outcome": "event", "type": event.type, "id": event.id}


def facts(error: Refused) -> dict[str, Any]:
    named = {name: getattr(error, name, None) for name in ("challenge", "number", "retry_after")}
    return {name: value for name, value in named.items() if value is not None}


@pytest.mark.parametrize("case", DOCUMENT["cases"], ids=lambda case: case["name"])
def test_case(case: dict[str, Any]) -> None:
    outcome = Run(case).outcome()
    # A case names the facts that matter, and no others.
    assert {name: outcome.get(name) for name in case["expected"]} == case["expected"], outcome
