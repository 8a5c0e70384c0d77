"""One description of every call for two clients: the synchronous and the asynchronous one.

An operation is a generator. It yields what needs the world (a call to the relay, a use of the store,
a pause), and gets the result back. So the rules of retries and checks exist once, and tests drive
them without a network.
"""

import math
import secrets
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Any, TypeVar

from . import answers
from .answers import Answer
from .errors import Conflict, OddAnswer, TwoefayError, Unavailable, Unreachable
from .jsontext import Object

T = TypeVar("T")


@dataclass(frozen=True)
class Call:
    """One HTTP request to the relay. The driver answers it with an Answer, or with Unreachable."""

    method: str
    path: str
    body: Object | None = None
    headers: dict[str, str] = field(default_factory=dict)
    hold: int = 0
    """Seconds for which the relay may hold the request."""


@dataclass(frozen=True)
class Use:
    """A use of the store, which may block."""

    work: Callable[[], Any]


@dataclass(frozen=True)
class Pause:
    seconds: float


Step = Call | Use | Pause
Operation = Generator[Step, Any, T]


@dataclass
class World:
    """What differs between a real client and one under test."""

    clock: Callable[[], float] = time.time
    monotonic: Callable[[], float] = time.monotonic
    random: Callable[[int], bytes] = secrets.token_bytes


def use(work: Callable[[], T]) -> Operation[T]:
    result: T = yield Use(work)
    return result


def send(world: World, call: Call, *statuses: int, patience: float = 3) -> Operation[Object]:
    """Sends a call, and repeats it while that may help and the patience lasts.

    The patience counts from the first failure: a held request may be lost after a minute.
    A repetition has no second effect: a POST keeps its Idempotency-Key, and a deleted object stays
    deleted. 429 is never repeated, since it would sleep in the visitor's request.
    """
    # /auth changes nothing, and takes no key: a stored answer would say `wait` for ever.
    if call.method == "POST" and call.path != "/auth":
        call.headers["idempotency-key"] = world.random(16).hex()
    end, pause = math.inf, 0.1
    while True:
        answer: Answer | Unreachable = yield call
        error = _error(answer, statuses)
        if error is None and isinstance(answer, Answer):
            return answers.read(answer, *statuses)
        assert error is not None
        end = min(end, world.monotonic() + patience)
        wait = max(pause * (1 + world.random(1)[0] / 512), _wish(error))
        if not may_pass(error, call.method) or world.monotonic() + wait > end:
            raise error
        yield Pause(wait)
        pause *= 2


def _error(answer: Answer | Unreachable, statuses: tuple[int, ...]) -> TwoefayError | None:
    if isinstance(answer, Unreachable):
        return answer
    return None if answer.status in statuses else answers.error(answer)


def _wish(error: TwoefayError) -> float:
    return float(getattr(error, "retry_after", None) or 0)


def may_pass(error: TwoefayError, method: str = "POST") -> bool:
    """Whether the same call may succeed soon, and may be repeated."""
    match error:
        case Unavailable():
            return True
        case Conflict():
            return error.retry_after is not None  # the first attempt still runs
        case OddAnswer():  # a proxy that got no answer from the relay
            return error.status in (502, 503, 504) and method != "PATCH"
        case Unreachable():
            return method != "PATCH"  # it may have been done, and some must not be done twice
        case _:
            return False
