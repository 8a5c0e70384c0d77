"""Strict reading of JSON: what two parsers could read differently is refused."""

import json
from typing import Any

Object = dict[str, Any]


def read_object(data: bytes) -> Object:
    """Returns an object of JSON. Raises ValueError for other values, and if a name occurs twice."""
    try:
        text = data.decode("utf-8")
        value = json.loads(text, object_pairs_hook=_once, parse_constant=_no_constant)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    if not isinstance(value, dict):
        raise ValueError("not an object")
    if "\\ud" in text.lower():
        # Half of a surrogate pair is no character: no database or page could take it.
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    return value


def _once(pairs: list[tuple[str, Any]]) -> Object:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ValueError("a name occurs twice")
    return value


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no value of JSON")


def is_integer(value: object) -> bool:
    """In Python True is an integer, too; in JSON it is none."""
    return isinstance(value, int) and not isinstance(value, bool)
