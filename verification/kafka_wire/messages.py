"""Random messages of every API and version, which the layouts generate, and malformed request frames."""

from __future__ import annotations

import random
import socket
import struct
import tracemalloc
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields, is_dataclass
from types import NoneType, UnionType
from typing import Any, Final, get_args, get_origin

from kframe_kafka_wire.apis.table import APIS
from kframe_kafka_wire.protocol import codec
from kframe_kafka_wire.protocol.newer_messages import NEWER
from kio.schema.index import api_key_map, schema_name_map

from verification.kafka_wire.client import Client

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


#: The start of a request: API key and version.
_HEADER: Final = struct.Struct(">hh")


def sized(content: bytes, size: int | None = None) -> bytes:
    """A frame with the header ``size``, by default its actual size."""
    return struct.pack(">i", len(content) if size is None else size) + content


def _cut(content: bytes, chance: random.Random) -> bytes:
    return sized(content[: chance.randrange(len(content))])


def _noise(content: bytes, chance: random.Random) -> bytes:
    return sized(content[:8] + chance.randbytes(chance.randrange(1, 200)))


def _damaged(content: bytes, chance: random.Random) -> bytes:
    damaged = bytearray(content)
    for _ in range(chance.randrange(1, 4)):
        damaged[chance.randrange(len(damaged))] = chance.choice((0, 0x7F, 0x80, 0xFF, chance.randrange(256)))
    return sized(bytes(damaged))


def _version(content: bytes, chance: random.Random) -> bytes:
    api_key, _ = _HEADER.unpack_from(content)
    return sized(_HEADER.pack(api_key, chance.choice((-1, 99, 32_767, -32_768))) + content[4:])


#: Each mutates a valid request frame without its size. Frames of NEVER_WHOLE have no response.
WAYS: Final[dict[str, Callable[[bytes, random.Random], bytes]]] = {
    "truncated": _cut,
    "shorter than it says": lambda content, _: sized(content, len(content) + 7),
    "oversized": lambda content, _: sized(content, 2**31 - 1),
    "of a negative length": lambda content, chance: sized(content, -chance.randrange(1, 2**31)),
    "of a version that there is not": _version,
    "random": _noise,
    "damaged": _damaged,
}
NEVER_WHOLE: Final = {"shorter than it says", "oversized", "of a negative length"}


#: Of each API that a controller of ZooKeeper mode offers.
_VERSIONS: Final = {api_key: range(api.newest + 1) for api_key, api in APIS.items()}


def malformed_frames(
    way: str, seed: int, versions: Mapping[int, Sequence[int]] = _VERSIONS
) -> Iterator[tuple[int, bytes]]:
    """(API key, frame) for each API of ``versions``, mutated in this way."""
    chance = random.Random(f"{way} {seed}")
    for api_key, offered in versions.items():
        version = chance.choice(offered)
        fields = draw(codec.request_class(api_key, version), chance)
        if "timeout" in fields:
            fields["timeout"] = 1
        yield api_key, WAYS[way](codec.encode_request(api_key, version, 1, "x", fields)[4:], chance)


def all_answers(address: str, frames: Iterable[tuple[int, bytes]]) -> tuple[dict[int, bool], int]:
    """Whether a server in this process responds to each API's frame, and the most bytes that it allocated."""
    tracemalloc.start()
    try:
        return {api_key: answers(address, frame) for api_key, frame in frames}, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def answers(address: str, frame: bytes) -> bool:
    """Whether a server responds to a malformed frame. Otherwise it has closed the connection.

    The client half-closes the connection after the frame, so that a server does not wait for more bytes.
    """
    with Client(address) as client:
        client.socket.settimeout(120)
        client.send(frame)
        with suppress(OSError):  # The server may have closed the connection already.
            client.socket.shutdown(socket.SHUT_WR)
        try:
            client.receive()
        except (ConnectionError, struct.error):
            return False
    return True
