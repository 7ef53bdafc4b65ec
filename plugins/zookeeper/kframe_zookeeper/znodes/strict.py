"""Decode znodes strictly to typed records, and encode them with their unknown fields.

Any ZooKeeper client may write anything, so a decoder checks size, nesting, UTF-8,
number ranges and repeated keys. It raises only ZnodeError, which names path, field, what was found and what was
expected. So a store can quarantine a single znode and continue.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, TypeAlias, TypeVar

import msgspec

from kframe.plugin import ZnodeError
from kframe.plugin.znodes import decode, refuse_repeated_keys

#: Bytes of the largest znode that is read. Kafka configures its own client with the same limit (``jute.maxbuffer``).
ZNODE_BYTES_MAX: Final = 4 * 2**20
#: Maximum nesting of objects and lists. Kafka's own znodes have four levels.
DEPTH_MAX: Final = 16

#: Fields of a znode outside its schema, as raw JSON. They are written back unchanged.
Extra: TypeAlias = Mapping[str, msgspec.Raw]
NO_EXTRA: Final[Extra] = MappingProxyType({})

Record = TypeVar("Record", bound=msgspec.Struct)

_ENCODER: Final = msgspec.json.Encoder()
_FIELDS: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
_NESTING: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}]')


def decode_znode(decoder: msgspec.json.Decoder[Record], raw: bytes | None, path: str) -> tuple[Record, Extra]:
    """The record in a znode, and the fields outside its schema. Raises ZnodeError.

    If the record encodes to the same bytes, there are neither unknown fields nor repeated keys. That is the case for
    all that Kafka 3.9 writes. A second quick check accepts another order of keys and whitespace. Anything else is
    checked in full.
    """
    if raw is None:
        raise ZnodeError(path, "no data", "a JSON object")
    if len(raw) > ZNODE_BYTES_MAX:
        raise ZnodeError(path, f"{len(raw)} bytes", f"at most {ZNODE_BYTES_MAX}")
    record = decode(decoder, raw, path, ZnodeError)
    if _ENCODER.encode(record) == raw or _is_all_known(raw, record):
        return record, NO_EXTRA
    return record, _unknown_fields(raw, path, record.__struct_encode_fields__)


def encode_znode(record: msgspec.Struct, extra: Extra = NO_EXTRA) -> bytes:
    """The bytes of a record. They are the fields of its schema in order, then ``extra``."""
    encoded = _ENCODER.encode(record)
    return encoded[:-1] + b"," + _ENCODER.encode(dict(extra))[1:] if extra else encoded


def _is_all_known(raw: bytes, record: msgspec.Struct) -> bool:
    """Whether all fields belong to the schema, occur once, and encode to the same bytes apart from whitespace.

    False negatives are possible; the full check is slower and gives the same result.
    """
    try:
        plain = msgspec.json.format(raw, indent=-1)
        fields = _FIELDS.decode(plain)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return False
    names = dict(zip(record.__struct_encode_fields__, record.__struct_fields__, strict=True))
    return _ENCODER.encode(fields) == plain and all(
        name in names and bytes(value) == _ENCODER.encode(getattr(record, names[name]))
        for name, value in fields.items()
    )


def _unknown_fields(raw: bytes, path: str, known: tuple[str, ...]) -> Extra:
    """The fields outside ``known``. All of ``raw`` is checked first, because typed decoding skips unknown fields.

    Raises ZnodeError for repeated keys, broken UTF-8 and deep nesting, at any level.
    """
    try:
        text = raw.decode()
    except UnicodeDecodeError as problem:
        raise ZnodeError(path, f"broken UTF-8 (byte {raw[problem.start]:#04x})", "UTF-8") from problem
    _check_depth(text, path)
    refuse_repeated_keys(text, path, ZnodeError)
    fields = decode(_FIELDS, raw, path, ZnodeError)
    return {name: value.copy() for name, value in fields.items() if name not in known} or NO_EXTRA


def _check_depth(text: str, path: str) -> None:
    depth = 0
    for token in _NESTING.finditer(text):
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(token[0], 0)
        if depth > DEPTH_MAX:
            raise ZnodeError(path, f"JSON nested more than {DEPTH_MAX} levels deep", "a few levels")
