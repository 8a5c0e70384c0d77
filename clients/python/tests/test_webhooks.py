"""Webhooks that the authors of Standard Webhooks sign, and what is done with an event."""

import datetime
import json

import pytest

from twoefay import Event, MemoryStore, Webhooks

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
NOW = 1_795_334_400


def signed(body: str, id: str = "msg_1", secret: str = SECRET) -> dict[str, str]:
    standard = pytest.importorskip("standardwebhooks.webhooks")
    moment = datetime.datetime.fromtimestamp(NOW, datetime.UTC)
    signature = standard.Webhook(secret).sign(id, moment, body)
    return {"webhook-id": id, "webhook-timestamp": str(NOW), "webhook-signature": signature}


def event(type: str = "login.decided", **data: object) -> str:
    return json.dumps({"type": type, "timestamp": "2026-11-22T08:00:00.000Z", "data": data})


def inbox(store: MemoryStore | None = None) -> Webhooks:
    return Webhooks([SECRET], store, clock=lambda: NOW)


def test_library_of_the_standard_signs() -> None:
    body = event(token="t", name="Zoë")
    found = inbox().verify(signed(body), body.encode())
    assert (found.id, found.type, found.data) == ("msg_1", "login.decided", {"token": "t", "name": "Zoë"})


def test_repetition_acts_once() -> None:
    acted: list[Event] = []
    receiver, body = inbox(MemoryStore()), event()
    assert [receiver.receive(signed(body), body.encode(), acted.append) for _ in range(2)] == [204, 204]
    assert len(acted) == 1


def test_failed_act_runs_again() -> None:
    receiver, body, acted = inbox(MemoryStore()), event(), []

    def act(event: Event) -> None:
        acted.append(event)
        if len(acted) == 1:
            raise RuntimeError("the database is away")

    with pytest.raises(RuntimeError):
        receiver.receive(signed(body), body.encode(), act)
    assert receiver.receive(signed(body), body.encode(), act) == 204
    assert len(acted) == 2


def test_forged_webhook_acts_never() -> None:
    acted: list[Event] = []
    body = event()
    assert (
        inbox(MemoryStore()).receive(signed(body) | {"webhook-id": "x"}, body.encode(), acted.append) == 400
    )
    assert acted == []


def test_unbound_phone_is_unpinned() -> None:
    store = MemoryStore()
    for name in ("ada", "bob"):
        store.add_user(name, f"t-{name}")
        store.add_secret(name, b"k", NOW)
        store.pin(name, "d1", {"kty": "EC"}, b"k")
    for token in ("t-nobody", "t-ada"):
        body = event("device.unbound", token=token, device="d1")
        assert inbox(store).receive(signed(body, token), body.encode(), lambda _: None) == 204
        assert (store.pins("ada") == {}) is (token == "t-ada")
    # The relay signs webhooks: it must not turn a user into one who never had a phone.
    assert store.was_pinned("ada") and store.pins("bob") != {}


@pytest.mark.parametrize("odd", ["", "x" * 129, "d\0", "../x", 7, None, ["d1"]])
def test_odd_ids_reach_no_store(odd: object) -> None:
    class Strict(MemoryStore):
        def unpin_by_token(self, token: str, device: str) -> None:
            raise AssertionError("an odd id")

    for data in ({"token": odd, "device": "d1"}, {"token": "t", "device": odd}):
        body = event("device.unbound", **data)
        assert inbox(Strict()).receive(signed(body), body.encode(), lambda _: None) == 204


@pytest.mark.parametrize("secret", ["", "whsec_", "whsec_c2hvcnQ=", "whsec_***"])
def test_weak_secret_is_refused(secret: str) -> None:
    with pytest.raises(ValueError):
        Webhooks([secret])


def test_receiver_without_secret_is_refused() -> None:
    with pytest.raises(ValueError):
        Webhooks([])
