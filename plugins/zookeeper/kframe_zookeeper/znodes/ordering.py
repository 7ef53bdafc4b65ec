"""The order in which Kafka writes the keys of JSON objects that have a key for each named entity.

Readers accept any order. With Kafka's order, a rewritten znode differs from Kafka's only in the changed values. Both
functions model hash tables that start with 16 buckets, and double when they are three quarters full. The low bits of a
key's mixed Java hash code select its bucket.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import lru_cache
from typing import Final

_FIRST_SIZE: Final = 16


def scala_order(keys: Collection[str]) -> list[str]:
    """Keys as a Scala 2.13 ``mutable.HashMap`` iterates: by bucket, then by hash code."""
    last_index = _size(len(keys)) - 1
    hashes = {key: _mixed_hash(key) for key in keys}
    return sorted(keys, key=lambda key: (hashes[key] & last_index, _signed(hashes[key])))


def properties_order(keys: Collection[str]) -> list[str]:
    """Keys as Java's ``Properties`` iterates: by bucket, then in insertion order."""
    last_index = _size(len(keys)) - 1
    return sorted(keys, key=lambda key: _mixed_hash(key) & last_index)


@lru_cache(maxsize=1024)
def partition_order(count: int) -> tuple[int, ...]:
    """Partition numbers ``0 .. count - 1`` in ``scala_order``."""
    return tuple(int(key) for key in scala_order([str(number) for number in range(count)]))


def _size(count: int) -> int:
    size = _FIRST_SIZE
    while 4 * count >= 3 * size:
        size *= 2
    return size


def _mixed_hash(key: str) -> int:
    """Java's ``String.hashCode`` as an unsigned int32, with its high half XORed into the low half."""
    code = 0
    for unit in memoryview(key.encode("utf-16-le", "surrogatepass")).cast("H"):
        code = (31 * code + unit) & 0xFFFFFFFF
    return code ^ code >> 16


def _signed(code: int) -> int:
    return code - (code >> 31 << 32)
