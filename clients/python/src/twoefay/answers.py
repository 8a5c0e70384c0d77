"""HTTP answers of the relay, and how they become objects or errors."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .errors import BY_CODE, ID, OddAnswer, Refused, TwoefayError
from .jsontext import Object, read_object


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    """Names are in lower case."""
    body: bytes

    @property
    def kind(self) -> str:
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()


def read(answer: Answer, *statuses: int) -> Object:
    """The object of an answer with one of these statuses. Everything else is an error."""
    if answer.status not in statuses:
        raise error(answer)
    if answer.status == 204:
        return {}
    if answer.kind != "application/json":
        raise OddAnswer("the answer is not JSON", answer.status)
    try:
        return read_object(answer.body)
    except ValueError as fault:
        raise OddAnswer(f"the answer is not an object of JSON: {fault}", answer.status) from fault


def error(answer: Answer) -> TwoefayError:
    """The refusal, if it is one of a relay. What a proxy answers is no statement of the relay."""
    odd = OddAnswer("the answer is not from a relay", answer.status)
    if answer.kind != "application/problem+json":
        return odd
    try:
        problem = read_object(answer.body)
    except ValueError:
        return odd
    code = problem.get("code")
    if not isinstance(code, str) or not code or problem.get("status") != answer.status or answer.status < 400:
        return odd
    kind = BY_CODE.get(code, Refused)
    if kind.code_status not in (0, answer.status):
        return odd
    return kind(problem, answer.status, answer.headers)


def text(value: Object, name: str) -> str:
    member = value.get(name)
    if not isinstance(member, str):
        raise OddAnswer(f"{name} is no text")
    return member


def identity(value: Object, name: str) -> str:
    member = text(value, name)
    if not re.fullmatch(ID, member):
        raise OddAnswer(f"{name} is no id")
    return member


def optional(value: Object, name: str) -> str | None:
    return None if value.get(name) is None else text(value, name)


def objects(value: Object, name: str) -> list[Object]:
    member: Any = value.get(name)
    if not isinstance(member, list) or not all(isinstance(entry, dict) for entry in member):
        raise OddAnswer(f"{name} is no list of objects")
    return member
