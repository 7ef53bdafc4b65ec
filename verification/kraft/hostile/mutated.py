"""Valid requests of which one or two values are replaced by values at the limits."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from random import Random
from typing import Any, Final, TypeAlias

from kframe_kafka_wire.protocol import codec
from kframe_kafka_wire.protocol.errors import CodecError

from verification.kraft.hostile.drawn import FLOATS, HOSTILE_TEXTS
from verification.kraft.hostile.known import Known

#: The position of a value: its container, and the key or index there.
_Position: TypeAlias = tuple[Any, Any]
_NUMBERS: Final = (
    *(-(2**bits) for bits in (7, 15, 31, 63)),
    *(2**bits - 1 for bits in (7, 8, 15, 16, 31, 63)),
    -2,
    -1,
    0,
    1,
    2,
    5,
    99,
    10_001,
    10**6,
)
_LONGEST: Final = 20


def mutated_request(api_key: int, version: int, fields: dict[str, Any], chance: Random, known: Known) -> bytes:
    """The frame of a request. Numbers fit their fields."""
    while True:
        mutated = deepcopy(fields)
        for _ in range(chance.choice((1, 1, 2))):
            container, key = chance.choice(list(_positions(mutated)))
            container[key] = _value(container[key], chance, known)
        try:
            return codec.encode_request(api_key, version, 1, "a", mutated)
        except CodecError:
            continue  # The field has a narrower type, or cannot be null.


def _positions(value: Any) -> Iterator[_Position]:
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, each in items:
        if key in ("timeout", "max_wait"):
            continue  # A server may wait so long before it responds.
        yield value, key
        if isinstance(each, dict | list):
            yield from _positions(each)


def _value(former: Any, chance: Random, known: Known) -> Any:
    match former:
        case bool():
            return not former
        case int():
            return chance.choice((*_NUMBERS, *known.numbers, former + 1, former - 1))
        case float():
            return chance.choice(FLOATS)
        case str():
            return chance.choice((*HOSTILE_TEXTS, None, former + "x"))
        case bytes():
            return chance.choice((*known.ids, bytes(16), b"\xff" * 16, b"", chance.randbytes(_LONGEST)))
        case list():
            return chance.choice(([], former * 2, former * 1_000, None))
        case _:
            return former
