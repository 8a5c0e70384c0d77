"""Retries, idempotency and limits, with a relay that is a function."""

import inspect
import json
from collections.abc import Callable

import httpx
import pytest
from worlds import Clock, problem, relay, reply

from twoefay import (
    AsyncRelay,
    Conflict,
    Limited,
    Login,
    MemoryStore,
    OddAnswer,
    Relay,
    TwoefayError,
    Unavailable,
    Unreachable,
)

JSON = {"content-type": "application/json"}
LOGIN = {"login": "verified", "challenge": "c" * 32, "number": "47", "factor": "push"}


class Script:
    """A relay that answers one after the other, and notes the requests."""

    def __init__(self, *answers: object) -> None:
        self.answers = list(answers)
        self.requests: list[httpx.Request] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, httpx.Response) else reply(201, JSON, json.dumps(answer))

    @property
    def keys(self) -> list[str | None]:
        return [request.headers.get("idempotency-key") for request in self.requests]


def test_lost_answers_are_repeated_under_one_key() -> None:
    html = reply(502, {"content-type": "text/html"}, "<h1>Bad gateway</h1>")
    script = Script(
        httpx.ConnectError("refused"),
        httpx.RemoteProtocolError("lost"),
        html,
        problem("unavailable", 503, {"retry-after": "1"}),
        LOGIN,
    )
    clock = Clock()
    assert relay(script, clock=clock).ask("ada", number="47").number == "47"
    assert len(set(script.keys)) == 1 and script.keys[0]
    assert len({request.content for request in script.requests}) == 1
    assert clock.pauses == sorted(clock.pauses) and clock.pauses[3] >= 1


def test_call_that_still_runs_is_repeated() -> None:
    script, clock = Script(problem("conflict", 409, {"retry-after": "1"}), LOGIN), Clock()
    relay(script, clock=clock).ask("ada", number="47")
    assert clock.pauses == [1] and len(set(script.keys)) == 1


def test_two_calls_have_two_keys() -> None:
    script = Script(LOGIN, LOGIN)
    client = relay(script)
    assert client.ask("ada", number="47").request != client.ask("ada", number="47").request
    assert len(set(script.keys)) == 2


def test_number_is_chosen_here_with_its_zeros() -> None:
    numbers = []

    def answer(request: httpx.Request) -> httpx.Response:
        numbers.append(json.loads(request.content)["number"])
        return reply(201, JSON, json.dumps(LOGIN | {"number": numbers[-1]}))

    assert relay(answer, random=bytes).ask("ada").number == "00"
    for digits in (2, 6):
        client = relay(answer, least_digits=digits)
        assert [len(str(client.ask("ada").number)) for _ in range(40)] == [digits] * 40
    assert len(set(numbers[-40:])) > 30  # of a million


def test_patience_ends() -> None:
    clock = Clock()
    with pytest.raises(Unreachable):
        relay(lambda _: (_ for _ in ()).throw(httpx.ConnectError("refused")), clock=clock).ask("ada")
    assert 0 < sum(clock.pauses) <= 3


def test_long_pause_is_told_and_not_slept() -> None:
    for answer, kind in (
        (problem("limited", 429, {"retry-after": "1"}), Limited),
        (problem("limited", 429, {"retry-after": "3600"}), Limited),
        (problem("unavailable", 503, {"retry-after": "30"}), Unavailable),
    ):
        clock = Clock()
        with pytest.raises(kind) as refusal:
            relay(Script(answer), clock=clock).ask("ada")
        assert clock.pauses == [] and refusal.value.retry_after is not None


@pytest.mark.parametrize("wish", ["", "soon", "-1", "1.5", "9" * 40, "\u0661"])
def test_odd_pause_is_none(wish: str) -> None:
    with pytest.raises(Limited) as refusal:
        relay(Script(problem("limited", 429, {"retry-after": wish} if wish.isascii() else {}))).ask("ada")
    assert refusal.value.retry_after is None


def test_conflict_without_pause_is_final() -> None:
    script = Script(problem("conflict", 409))
    with pytest.raises(Conflict):
        relay(script).register("ada")
    assert len(script.requests) == 1


def test_auth_takes_no_key() -> None:
    script = Script(
        reply(200, JSON, '{"login": "wait"}'), reply(200, JSON, '{"login": "failure", "reason": "denied"}')
    )
    clock = Clock()
    login = Login("c" * 32, "47", int(clock()), {"username": "ada", "request": "r"})
    assert relay(script, clock=clock).wait(login).reason == "denied"
    assert script.keys == [None, None]
    assert [request.headers["prefer"] for request in script.requests] == ["wait=60", "wait=60"]


def test_waiting_in_a_visitors_request_does_not_sleep_for_a_limit() -> None:
    login = Login("c" * 32, "47", 0, {"username": "ada", "request": "r"})
    clock = Clock()
    with pytest.raises(Limited):
        relay(Script(problem("limited", 429, {"retry-after": "4"})), clock=clock).wait(login, within=10)
    assert clock.pauses == []


class Held:
    """A relay that answers after a time: each step is the time and the answer."""

    def __init__(self, clock: Clock, *steps: tuple[float, Callable[[], httpx.Response]]) -> None:
        self.clock, self.steps = clock, list(steps)

    def __call__(self, _: httpx.Request) -> httpx.Response:
        seconds, answer = self.steps.pop(0)
        self.clock.now += seconds
        return answer()


def lost() -> httpx.Response:
    raise httpx.RemoteProtocolError("lost")


def gateway() -> httpx.Response:
    return reply(504, {"content-type": "text/html"}, "<h1>Gateway timeout</h1>")


def unavailable() -> httpx.Response:
    return problem("unavailable", 503)


def denied() -> httpx.Response:
    return reply(200, JSON, '{"login": "failure", "reason": "denied"}')


@pytest.mark.parametrize("within", [None, 120])
def test_held_request_that_is_lost_is_repeated(within: float | None) -> None:
    for fault in (lost, gateway, unavailable):
        clock = Clock()
        login = Login("c" * 32, "47", int(clock()), {"username": "ada", "request": "r"})
        held = Held(clock, (58, fault), (0, denied))
        assert relay(held, clock=clock).wait(login, within=within).reason == "denied"


def test_wait_without_end_survives_a_long_outage() -> None:
    for fault in (lost, gateway, unavailable):
        clock = Clock()
        login = Login("c" * 32, "47", int(clock()), {"username": "ada", "request": "r"})
        held = Held(clock, *[(2, fault)] * 40, (0, denied))
        assert relay(held, clock=clock).wait(login).reason == "denied"


def test_wait_without_end_ends_with_the_challenge() -> None:
    clock = Clock()
    login = Login("c" * 32, "47", int(clock()), {"username": "ada", "request": "r"})
    begun = clock()
    with pytest.raises(Unreachable):
        relay(lambda _: lost(), clock=clock).wait(login)
    assert 590 <= clock() - begun <= 604  # with the patience of the last call
    for page in (reply(404, {"content-type": "text/html"}, ""), problem("not_found", 404)):
        with pytest.raises(TwoefayError):
            relay(Script(page), clock=clock).wait(login)


def test_lost_answer_of_a_registration_leads_to_another_code() -> None:
    user = {"token": "t" * 32, "factors": [], "devices": []}
    activation = {"uri": "twoefay://enrol?code=abc", "expires_at": "2026-11-22T08:10:00.000Z"}
    script = Script(problem("shown_once", 409), reply(200, JSON, json.dumps(user)), activation)
    store = MemoryStore()
    made = relay(script, store=store).register("ada")
    assert made.uri is not None and store.token("ada") == "t" * 32
    assert script.keys[0] != script.keys[2]


@pytest.mark.parametrize("name", ["", ".", ".."])
def test_name_that_is_no_segment_of_a_path_is_refused_here(name: str) -> None:
    client = relay(Script())
    for use in (client.factors, client.confirm, client.enrolment, client.register):
        with pytest.raises(ValueError, match="segment"):
            use(name)


def test_name_cannot_lead_to_another_route() -> None:
    script = Script(reply(200, JSON, '{"token": "t", "factors": [], "devices": []}'))
    relay(script).factors("../health?x=%2e&y#z")
    assert script.requests[0].url.raw_path == b"/user/..%2Fhealth%3Fx%3D%252e%26y%23z"


def test_endless_answer_ends() -> None:
    class Endless(httpx.SyncByteStream):
        def __iter__(self):
            while True:
                yield b" " * 65_536

    with pytest.raises(Unreachable):
        relay(lambda _: httpx.Response(200, headers=JSON, stream=Endless())).factors("ada")


def test_compressed_answer_is_not_unpacked() -> None:
    answer = reply(200, JSON | {"content-encoding": "gzip"}, "not gzip")
    with pytest.raises(OddAnswer):
        relay(lambda _: answer).factors("ada")


def test_redirect_is_not_followed() -> None:
    script = Script(reply(307, {"location": "https://login.example.org/login"}, ""))
    with pytest.raises(OddAnswer):
        relay(script).ask("ada")
    assert len(script.requests) == 1


def test_both_clients_have_the_same_calls() -> None:
    def calls(kind: type) -> dict[str, str]:
        public = {
            name: f for name, f in vars(kind).items() if inspect.isfunction(f) and not name.startswith("_")
        }
        return {name: str(inspect.signature(function)) for name, function in public.items()}

    assert calls(Relay) == calls(AsyncRelay)
    assert all(inspect.iscoroutinefunction(getattr(AsyncRelay, name)) for name in calls(Relay))


def test_denied_decision_is_false() -> None:
    denied = reply(200, JSON, '{"login": "failure", "reason": "denied"}')
    login = Login("c" * 32, None, 0, {"username": "ada", "request": "r"})
    decision = relay(lambda _: denied).wait(login, within=0)
    assert not decision and decision.ended


def test_record_survives_a_session() -> None:
    login = relay(Script(LOGIN)).ask(
        "ada", number="47", ip="192.0.2.7", details=[{"label": "a", "value": "b"}]
    )
    assert Login.from_json(json.loads(json.dumps(login.to_json()))) == login
