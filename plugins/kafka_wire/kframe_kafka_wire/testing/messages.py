"""Random messages of every API and version. The layouts generate them."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from types import NoneType, UnionType
from typing import Any, get_args, get_origin

from kio.schema.index import api_key_map, schema_name_map

from kframe_kafka_wire.newer_messages import NEWER

_RANGES = {"int8": 7, "int16": 15, "int32": 31, "int64": 63, "timedelta_i32": 31, "timedelta_i64": 40}


def every_version() -> Iterator[tuple[int, int]]:
    """(API key, version) of every layout."""
    for api_key, name in sorted(api_key_map.items()):
        for version in sorted(schema_name_map[name]):
            yield api_key, version
    yield from NEWER


def draw(entity: Any, chance: random.Random) -> dict[str, Any]:
    """A random struct of this class. Each field has a value."""
    return {field.name: _value(field, field.type, chance, "tag" in field.metadata) for field in fields(entity)}


def _value(field: Any, kind: Any, chance: random.Random, tagged: bool) -> Any:
    if get_origin(kind) is UnionType:
        never = tagged or field.metadata.get("kafka_type") in ("uuid", "datetime_i64")
        if not never and chance.random() < 0.3:
            return None
        return _value(field, next(arg for arg in get_args(kind) if arg is not NoneType), chance, tagged)
    if get_origin(kind) is tuple:
        return [_value(field, get_args(kind)[0], chance, tagged) for _ in range(chance.randrange(1, 3))]
    if is_dataclass(kind):
        return draw(kind, chance)
    name = field.metadata["kafka_type"]
    if name == "string":
        return "".join(chance.choice("aé.7-Ω") for _ in range(chance.randrange(12)))
    if name in ("bytes", "records"):
        return chance.randbytes(chance.randrange(1, 20))
    if name == "uuid":
        return chance.randbytes(16)
    if name == "bool":
        return chance.random() < 0.5
    if name == "float64":
        return chance.randrange(1000) / 8
    if name == "error_code":
        return chance.randrange(-1, 100)
    if name == "datetime_i64":
        return chance.randrange(2**40)
    if name.startswith("u"):
        return chance.randrange(2 ** (8 * {"uint8": 1, "uint16": 2, "uint32": 4, "uint64": 8}[name]))
    bits = _RANGES[name]
    return chance.randrange(-(2**bits) if name.startswith("int") else 0, 2**bits)
