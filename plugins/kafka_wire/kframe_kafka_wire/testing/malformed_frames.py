"""Malformed request frames of every API. They are truncated, have wrong sizes or versions, or are random bytes."""

from __future__ import annotations

import random
import socket
import struct
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Final

from kframe_kafka_wire import codec
from kframe_kafka_wire.apis.table import APIS
from kframe_kafka_wire.testing.client import Client
from kframe_kafka_wire.testing.messages import draw

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
    return sized(_HEADER.pack(api_key, chance.choice((-1, APIS[api_key].newest + 1, 32_767, -32_768))) + content[4:])


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


def malformed_frames(way: str, seed: int) -> Iterator[tuple[int, bytes]]:
    """(API key, frame) for each offered API, mutated in this way."""
    chance = random.Random(f"{way} {seed}")
    for api_key, api in APIS.items():
        version = chance.randrange(api.newest + 1)
        fields = draw(codec.request_class(api_key, version), chance)
        if "timeout" in fields:
            fields["timeout"] = 1
        yield api_key, WAYS[way](codec.encode_request(api_key, version, 1, "x", fields)[4:], chance)


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
