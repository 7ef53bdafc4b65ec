"""Decode external JSON into typed records. Errors name the location, the actual and the expected value."""

from __future__ import annotations

import base64
import codecs
import json
import re
from collections import Counter
from collections.abc import Mapping
from typing import Annotated, Any, Final, NoReturn, TypeAlias, TypeVar
from uuid import UUID

import msgspec
import numpy as np
from numpy.typing import NDArray

from kframe.errors import NO_FIELD, InputError, SnapshotError
from kframe.model.kafka_uuids import expected_uuid, is_kafka_uuid, uuid_text
from kframe.model.texts import short_repr

T = TypeVar("T")

Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
"""A broker id, a partition number, an epoch or a version. It is any int32 from 0."""
LeaderField: TypeAlias = Annotated[int, msgspec.Meta(ge=-1, le=2**31 - 1)]
"""A broker id, or -1 for none."""
Zxid: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]


class _EntryTopic(msgspec.Struct):
    topic: str


_TOPIC: Final = msgspec.json.Decoder(_EntryTopic)
#: The start of msgspec's message for a text that is none of the permitted ones.
_NO_CHOICE: Final = "Invalid enum value "
_STEP: Final = re.compile(r"\.([^.\[]+)|\[([0-9]+)\]")


def text_repr(raw: bytes) -> str:
    """``short_repr`` of the text in a beginning of a file; of bytes that are not UTF-8, with escapes."""
    try:
        return short_repr(codecs.getincrementaldecoder("utf-8")().decode(raw))  # the last character may be cut
    except UnicodeDecodeError:
        return short_repr(raw).removeprefix("b")


def decode(
    decoder: msgspec.json.Decoder[T], raw: bytes | str, where: str, error: type[InputError] = SnapshotError
) -> T:
    """Decode strictly: no NaN, no floats or booleans for integers, integers in range, UTF-8. Raises ``error``."""
    try:
        return decoder.decode(raw)
    except msgspec.ValidationError as problem:
        raise error(*_invalid(raw, where, str(problem))) from problem
    except (msgspec.DecodeError, UnicodeDecodeError) as problem:
        raise error(where, *_malformed(raw, problem)) from problem
    except RecursionError as problem:
        raise error(where, "JSON nested too deep", "a few levels") from problem


def _malformed(raw: bytes | str, problem: msgspec.DecodeError | UnicodeDecodeError) -> tuple[str, str]:
    """What was found in a document that is no JSON, and what is expected.

    Broken UTF-8 is a UnicodeDecodeError of msgspec 0.22, and since 0.23 a DecodeError that does not say where.
    """
    if isinstance(raw, bytes) and "utf-8" in str(problem).lower():
        try:
            raw.decode()
        except UnicodeDecodeError as broken:
            return f"broken UTF-8 (byte {raw[broken.start]:#04x})", "UTF-8"
    return f"malformed JSON ({problem})", "a whole JSON document"


def topic_of(raw: bytes) -> str | None:
    """The ``topic`` of an entry that cannot be decoded otherwise; None if it has none."""
    try:
        return _TOPIC.decode(raw).topic
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def check_unique_keys(
    raw: bytes, where: str, counts: Mapping[bytes, int], error: type[InputError] = SnapshotError
) -> None:
    """Raise ``error`` for a key that occurs twice in an object, because a decoder would take the last value.

    ``counts`` is how often each key occurs in a document without repeated ones; optional keys may be absent. Only where
    a count differs, for instance because a topic has such a name, each object is examined.
    """
    if all(raw.count(b'"%b"' % key) in (0, count) for key, count in counts.items()) and b"\\" not in raw:
        return

    refuse_repeated_keys(raw, where, error)


def refuse_repeated_keys(raw: bytes | str, where: str, error: type[InputError] = SnapshotError) -> None:
    """Raise ``error`` if an object of a JSON document has a key twice, because a decoder would take the last value.

    Numbers are not converted: they may be of any length.
    """

    def refuse(constant: str) -> NoReturn:
        raise error(where, f"malformed JSON ({constant})", "a whole JSON document")

    try:
        json.loads(raw, object_pairs_hook=_check_keys, parse_int=len, parse_float=len, parse_constant=refuse)
    except _RepeatedKeyError as problem:
        raise error(where, str(problem), "each key once") from problem
    except RecursionError as problem:
        raise error(where, "JSON nested too deep", "a few levels") from problem
    except json.JSONDecodeError as problem:
        raise error(where, f"malformed JSON ({problem})", "a whole JSON document") from problem


def unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The ``object_pairs_hook`` of ``json.loads`` that raises ValueError for a key that occurs twice in an object."""
    fields = dict(pairs)
    if len(fields) < len(pairs):
        repeated = next(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
        raise _RepeatedKeyError(f"key {short_repr(repeated)} twice in one object")
    return fields


def topic_id_bytes(text: str, where: str, error: type[InputError] = SnapshotError) -> bytes:
    """The 16 bytes of a topic id as Kafka prints it: URL-safe base64 without padding. Raises ``error``."""
    check_topic_id(text, where, error)
    return base64.urlsafe_b64decode(text + "==")


def check_topic_id(text: str, where: str, error: type[InputError] = SnapshotError) -> None:
    """Raise ``error`` unless ``text`` is a topic id as Kafka prints it."""
    if not is_kafka_uuid(text):
        raise error(where, f"topic id {short_repr(text)}", expected_uuid(text))


def topic_ids_of(texts: str) -> NDArray[np.uint8]:
    """(k, 16) The bytes of ``k`` valid topic ids, one after another. Equal to ``topic_id_bytes`` of each of them."""
    characters = np.frombuffer(texts.encode(), np.uint8).reshape(-1, 22)
    whole = np.full((len(characters), 24), ord("A"), np.uint8)  # 24 characters are 18 bytes without padding
    whole[:, :22] = characters
    return np.frombuffer(base64.urlsafe_b64decode(whole.tobytes()), np.uint8).reshape(-1, 18)[:, :16]


def topic_id_text(topic_id: bytes) -> str:
    """A topic id as Kafka prints it."""
    return uuid_text(UUID(bytes=topic_id))


class _RepeatedKeyError(ValueError):
    """A key occurs twice in an object."""


def _check_keys(pairs: list[tuple[str, Any]]) -> None:
    """``unique_keys`` without the objects: a document of any size takes no memory."""
    unique_keys(pairs)


def _invalid(raw: bytes | str, where: str, problem: str) -> tuple[str, str, str]:
    """Split msgspec's ``Expected x, got y - at `$.path` `` into the three parts of our errors."""
    message, _, path = problem.partition(" - at ")
    if path.startswith("`key` in "):
        path = f"{path.removeprefix('`key` in ')} key"
    path = path.replace("`", "").removeprefix("$")
    if message.startswith("Object missing required "):
        missing = message.removeprefix("Object missing required ").replace("`", '"')
        return f"{where} field {path.lstrip('.')}" if path else where, NO_FIELD, missing
    message = message.replace("`", "")
    if message.startswith("Object contains "):
        actual, expected = message.removeprefix("Object contains "), "only the fields of this schema"
    elif message.startswith("Expected "):
        expected, _, got = message.removeprefix("Expected ").partition(", got ")
        actual = _value_at(raw, path) or got or "a value that does not fit"
    elif message.startswith(_NO_CHOICE):
        actual, expected = message.removeprefix(_NO_CHOICE), "a value of the schema"
    else:
        actual, expected = message, "a value that fits"
    return f"{where} field {path.lstrip('.')}" if path else where, actual, expected


def _value_at(raw: bytes | str, path: str) -> str | None:
    """The offending value itself, where the path leads to it."""
    if not path or "..." in path or path.endswith(" key"):
        return None
    try:
        value = msgspec.json.decode(raw)
        for key, index in _STEP.findall(path):
            value = value[key] if key else value[int(index)]
        return short_repr(value)
    except (ValueError, LookupError, TypeError, RecursionError):
        # The rest of the document may be malformed too, and a number too long to print.
        return None
