"""A client whose relay is a function, for tests without a network."""

import json
from collections.abc import Callable
from typing import Any

import httpx

from twoefay import MemoryStore, Relay, Store
from twoefay.policy import Policy
from twoefay.steps import Pause, Step, World


class Clock:
    """A clock that only moves when a pause moves it."""

    def __init__(self, now: float = 1_795_334_400) -> None:
        self.now = now
        self.pauses: list[float] = []

    def __call__(self) -> float:
        return self.now

    def pause(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds


class FakeRelay(Relay):
    """A client that moves a clock where a real one would sleep."""

    pause: Callable[[float], None]

    def _do(self, step: Step) -> Any:
        return self.pause(step.seconds) if isinstance(step, Pause) else super()._do(step)


def reply(status: int, headers: dict[str, str], body: str) -> httpx.Response:
    return httpx.Response(status, headers=headers, stream=httpx.ByteStream(body.encode()))


def relay(
    answer: Callable[[httpx.Request], httpx.Response],
    *,
    store: Store | None = None,
    clock: Clock | None = None,
    random: Callable[[int], bytes] | None = None,
    **policy: Any,
) -> Relay:
    settings = {"origin": "https://login.example.com:8080", "website": "shop", **policy}
    clock = clock or Clock()
    world = World(clock=clock, monotonic=clock, **({"random": random} if random else {}))
    made = FakeRelay.__new__(FakeRelay)
    made.pause = clock.pause
    options = {"base_url": settings["origin"], "transport": httpx.MockTransport(answer)}
    made._set_up(Policy(**settings), store or MemoryStore(), world, options)
    return made


def problem(code: str, status: int, headers: dict[str, str] | None = None, **more: Any) -> httpx.Response:
    body = {"type": f"urn:twoefay:problem:{code}", "title": code, "status": status, "code": code, **more}
    fields = {"content-type": "application/problem+json", **(headers or {})}
    return reply(status, fields, json.dumps(body))
