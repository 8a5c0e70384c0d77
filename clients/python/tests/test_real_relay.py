"""The whole conversation with a real relay and a real phone."""

import queue
import time
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import anyio
import anyio.to_thread
import pytest
from real import RealRelay

from twoefay import (
    ApprovalRequired,
    AsyncRelay,
    Conflict,
    Event,
    Invalid,
    MemoryStore,
    NotFound,
    ReceiptError,
    Relay,
    SQLiteStore,
    Webhooks,
)

BROWSER = "Mozilla/5.0 (X11; Linux x86_64) Firefox/144.0"


def enrolled(real: RealRelay, username: str, phone: str, store: MemoryStore | None = None) -> Relay:
    relay = Relay(**real.settings(store or MemoryStore()))
    uri = relay.register(username).uri
    assert uri is not None
    real.enrol(uri, phone)
    assert relay.confirm(username) != []
    return relay


def test_login_is_approved_once(real: RealRelay, tmp_path) -> None:
    with Relay(**real.settings(SQLiteStore(str(tmp_path / "shop.db")))) as relay:
        made = relay.register("ada", email="ada@example.com")
        assert made.uri is not None and "<svg" in made.qr and not relay.is_enrolled("ada")
        assert relay.confirm("ada") == []
        real.enrol(made.uri, "ada")
        details = [{"label": "amount", "value": "EUR 40.00"}, {"label": "to", "value": "Café Zoë"}]
        login = relay.ask(
            "ada", ip="192.0.2.7", user_agent=BROWSER, service="Payments", action="Pay", details=details
        )
        assert relay.wait(login, within=0).state == "open"
        assert real.answer("approve", login.challenge, login.number, "ada") == 0
        decision = relay.wait(login)  # it also pins the phone, which was bound since
        assert decision.approved and decision.proof == "signed" and decision.user_verification == "none"
        assert relay.is_enrolled("ada") and relay.store.secrets("ada", int(time.time())) == []
        with pytest.raises(ReceiptError, match="request_used"):
            relay.wait(login)
        assert [factor.kind for factor in relay.factors("ada")] == ["pull", "mail"]


def test_waiting_ends_with_the_answer(real: RealRelay) -> None:
    relay = enrolled(real, "bob", "bob")
    login = relay.ask("bob")
    with ThreadPoolExecutor() as pool:
        waiting = pool.submit(relay.wait, login)
        assert real.answer("deny", login.challenge, None, "bob") == 0
        decision = waiting.result()
    assert (decision.state, decision.reason, bool(decision)) == ("denied", "denied", False)


def test_wrong_number_is_denied(real: RealRelay) -> None:
    relay = enrolled(real, "cleo", "cleo")
    login = relay.ask("cleo")
    assert login.number is not None
    wrong = "11" if login.number != "11" else "12"
    assert real.answer("approve", login.challenge, wrong, "cleo") == 1
    assert relay.wait(login).reason == "wrong_number"


@pytest.mark.parametrize("number", ["2", "6", "0"])
def test_client_chooses_the_number_of_the_policy(real: RealRelay, number: str) -> None:
    website = f"digits{number}"
    real.operate("website", "add", website, "--number", number)
    store = MemoryStore()
    least = 0 if number == "0" else 2
    relay = Relay(**real.settings(store, website), least_digits=least)
    made = relay.register("ada")
    assert made.uri is not None
    real.enrol(made.uri, website)
    login = relay.ask("ada")
    assert len(login.number or "") == int(number)
    assert real.answer("approve", login.challenge, login.number, website) == 0
    assert relay.wait(login).approved


def test_texts_of_a_browser_refuse_no_login(real: RealRelay) -> None:
    relay = enrolled(real, "dora", "dora")
    for browser in ("", "Evil\u202e\u200b\x00/1\u3164", "x" * 9000, "\U000e0100\ufe0f", "Ünïcödé 😀"):
        login = relay.ask("dora", ip="10.0.0.1:5555", user_agent=browser)
        assert real.answer("approve", login.challenge, login.number, "dora") == 0
        assert relay.wait(login).approved


def test_renamed_website_still_lets_in(real: RealRelay) -> None:
    relay = enrolled(real, "emil", "emil")
    real.operate("website", "edit", "shop", "--display-name", "The Better Shop")
    login = relay.ask("emil")
    assert real.answer("approve", login.challenge, login.number, "emil") == 0
    assert relay.wait(login).approved


def test_user_without_pinned_phone_is_not_let_in(real: RealRelay) -> None:
    store = MemoryStore()
    relay = enrolled(real, "fay", "fay", store)
    store.unpin("fay", relay.user("fay")["devices"][0]["device"])
    for trusting, approved in ((False, False), (True, False), (True, True)):
        if approved:
            relay.reset("fay")
        assert relay.is_enrolled("fay") is not approved
        relay = Relay(**real.settings(store), allow_unpinned=trusting)
        login = relay.ask("fay")
        assert real.answer("approve", login.challenge, login.number, "fay") == 0
        if approved:
            assert relay.wait(login).approved
        else:
            with pytest.raises(ReceiptError, match="unknown_device"):
                relay.wait(login)


def test_further_phone_needs_an_approval(real: RealRelay) -> None:
    relay = enrolled(real, "gil", "gil")
    with pytest.raises(ApprovalRequired) as refusal:
        relay.enrolment("gil")
    assert real.answer("approve", refusal.value.challenge, refusal.value.number, "gil") == 0
    made = relay.enrolment("gil", approval=refusal.value.challenge)
    assert made.uri is not None
    real.enrol(made.uri, "gil2")
    (device,) = relay.confirm("gil")
    relay.unbind("gil", device)
    relay.unbind("gil", device)
    assert len(relay.store.pins("gil")) == 1


def test_refusals_are_types(real: RealRelay) -> None:
    relay = Relay(**real.settings(MemoryStore()))
    relay.register("hal")
    with pytest.raises(Conflict):
        relay.register("hal")
    assert relay.enrolment("hal").uri is not None
    with pytest.raises(NotFound):
        relay.factors("nobody")
    with pytest.raises(Invalid) as refusal:
        relay.ask("hal", service="x" * 65)
    assert "service" in refusal.value.faults
    relay.forget("hal")
    relay.forget("hal")


def test_codes_count_only_if_they_are_accepted(real: RealRelay) -> None:
    store = MemoryStore()
    relay = enrolled(real, "ida", "ida", store)
    with pytest.raises(ApprovalRequired) as refusal:
        relay.call("POST", "/user/ida/recovery-codes", {})
    assert real.answer("approve", refusal.value.challenge, refusal.value.number, "ida") == 0
    approved = {"approval": refusal.value.challenge}
    codes = relay.call("POST", "/user/ida/recovery-codes", approved)["codes"]
    with pytest.raises(ReceiptError, match="not_signed"):
        relay.enter(relay.ask("ida"), codes[0])
    trusting = Relay(**real.settings(store), accept_codes=True)
    decision = trusting.enter(trusting.ask("ida"), codes[1])
    assert decision.approved and decision.proof == "code"
    login = relay.ask("ida")
    assert relay.enter(login, "aaaa-aaaa-aaaa-aaaa").state == "open"
    relay.cancel(login)
    assert relay.wait(login).reason == "cancelled"


@pytest.mark.anyio
async def test_asynchronous_client(real: RealRelay) -> None:
    async with AsyncRelay(**real.settings(MemoryStore())) as relay:
        made = await relay.register("jo")
        assert made.uri is not None
        await anyio.to_thread.run_sync(real.enrol, made.uri, "jo")
        assert len(await relay.confirm("jo")) == 1 and await relay.is_enrolled("jo")
        login = await relay.ask("jo", ip="2001:DB8::1", user_agent=BROWSER)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(
                anyio.to_thread.run_sync, real.answer, "approve", login.challenge, login.number, "jo"
            )
            assert (await relay.wait(login)).approved


def test_webhooks_arrive_and_are_checked(real: RealRelay) -> None:
    store, events, statuses = MemoryStore(), queue.SimpleQueue[Event](), []

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            statuses.append(Webhooks([secret], store).receive(dict(self.headers), body, events.put))
            self.send_response(statuses[-1])
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Receiver) as server:
        real.operate("website", "add", "news", "--webhook", f"http://127.0.0.1:{server.server_port}/twoefay")
        secret = (real.directory / "news.secret").read_text()
        Thread(target=server.serve_forever, daemon=True).start()
        relay = Relay(**real.settings(store, "news"))
        made = relay.register("lea")
        assert made.uri is not None
        real.enrol(made.uri, "lea")
        assert events.get().type == "device.bound"
        login = relay.ask("lea")
        assert real.answer("approve", login.challenge, login.number, "lea") == 0
        event = events.get()
        assert event.type == "login.decided" and event.id == login.challenge
        assert relay.check(login, event.data).approved  # as `wait` would have, and only once
        with pytest.raises(ReceiptError, match="request_used"):
            relay.wait(login)
        (device,) = store.pins("lea")
        relay.call("DELETE", f"/user/lea/devices/{device}")
        assert events.get().type == "device.unbound" and store.pins("lea") == {}
        server.shutdown()
    assert set(statuses) == {204}


def test_wait_survives_a_restart(real: RealRelay) -> None:
    relay = enrolled(real, "kim", "kim")
    login = relay.ask("kim")
    real.stop()
    with ThreadPoolExecutor() as pool:
        waiting = pool.submit(relay.wait, login)
        real.start()
        assert real.answer("approve", login.challenge, login.number, "kim") == 0
        assert waiting.result().approved
