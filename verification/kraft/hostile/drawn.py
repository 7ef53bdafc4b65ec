"""Requests with a value for every field, at random: at the limits of its type, or of something that exists."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from random import Random
from types import NoneType, UnionType
from typing import Any, Final, get_args, get_origin

from kframe_kafka_wire.protocol import codec

from verification.kraft.hostile.known import ALICE, LOOPBACK, TEXTS, Known

_BITS: Final = {
    "int8": 7,
    "int16": 15,
    "int32": 31,
    "int64": 63,
    "error_code": 15,
    "timedelta_i32": 31,
    "timedelta_i64": 63,
    "datetime_i64": 63,
    "uint16": 16,
    "uint32": 32,
}
FLOATS: Final = (0.0, -0.0, -1.0, 1e-300, 1e308, float("inf"), float("-inf"), float("nan"))
HOSTILE_TEXTS: Final = ("", "x" * 300, "\0", "Ω", " ", "-1", "=", "[", "{}", "*", "../a", "10.0.0.0/8", "::/0")
#: How long a server may wait before it responds, in milliseconds.
_WAITS: Final = {"max_wait": 1, "timeout": 1}


def drawn_request(api_key: int, version: int, chance: Random, known: Known) -> dict[str, Any]:
    """The fields of a request."""
    drawn = _struct(codec.request_class(api_key, version), chance, known)
    return drawn | {name: wait for name, wait in _WAITS.items() if name in drawn}


def _struct(entity: Any, chance: Random, known: Known) -> dict[str, Any]:
    drawn = {field.name: _value(field.metadata, field.type, chance, known) for field in fields(entity)}
    if {"broker_id", "broker_epoch"} <= drawn.keys() and known.brokers and chance.random() < 0.8:
        drawn["broker_id"], drawn["broker_epoch"] = chance.choice(list(known.brokers.items()))
    return drawn


def _value(metadata: Mapping[str, Any], kind: Any, chance: Random, known: Known) -> Any:
    if get_origin(kind) is UnionType:
        is_present = "tag" in metadata or metadata.get("kafka_type") in ("uuid", "datetime_i64")
        if not is_present and chance.random() < 0.2:
            return None
        return _value(metadata, next(each for each in get_args(kind) if each is not NoneType), chance, known)
    if get_origin(kind) is tuple:
        elements = [
            _value(metadata, get_args(kind)[0], chance, known) for _ in range(chance.choice((0, 1, 1, 1, 2, 3)))
        ]
        return elements * 2 if chance.random() < 0.1 else elements
    if is_dataclass(kind):
        return _struct(kind, chance, known)
    return _plain(metadata["kafka_type"], chance, known)


def _plain(name: str, chance: Random, known: Known) -> Any:
    is_known = chance.random() < 0.7
    match name:
        case "string":
            return chance.choice(TEXTS if is_known else HOSTILE_TEXTS)
        case "bytes" | "records":
            return chance.choice((ALICE, LOOPBACK)) if is_known else chance.randbytes(chance.randrange(20))
        case "uuid":
            return (
                chance.choice(known.ids) if is_known else chance.choice((bytes(16), b"\xff" * 16, chance.randbytes(16)))
            )
        case "bool":
            return chance.random() < 0.5
        case "float64":
            return chance.choice(FLOATS)
        case _:
            return _number(name, chance, known, is_known=is_known)


def _number(name: str, chance: Random, known: Known, *, is_known: bool) -> int:
    least, most = (0 if name.startswith("u") else -(1 << _BITS[name])), (1 << _BITS[name]) - 1
    if is_known:
        return min(max(chance.choice(known.numbers), least), most)
    limits = least, most, most - 1, max(least, -1), max(least, -2), 127, min(128, most), min(65_535, most)
    return chance.choice(limits)
