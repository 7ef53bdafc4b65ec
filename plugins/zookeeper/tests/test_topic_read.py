"""Kernel, reference implementation and strict decoder parse valid and malformed topics alike."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from kframe_zookeeper.kernels import _topic_read
from kframe_zookeeper.loading.topics import TopicColumns
from kframe_zookeeper.znodes.topics import decode_topic, encode_topics, table_of

from kframe.errors import ZnodeError
from verification.fuzz import Batch
from verification.reference import jute as reference_jute
from verification.zookeeper.fuzz.znodes import parsed_topics

pytestmark = pytest.mark.kernel

ID = "AAAAAAAAAAEAAAAAAAAAAQ"
VALID = json.dumps(
    {
        "version": 3,
        "topic_id": ID,
        "partitions": {"0": [1, 2], "2": [3], "1": [2, 2, 1]},
        "adding_replicas": {},
        "removing_replicas": {},
    }
).encode()


def columns(texts: Sequence[bytes], module: Any) -> list[tuple[Any, ...] | None]:
    """The result of ``parse_topics`` for each text. None where it is left to the decoder."""
    data = np.frombuffer(b"".join(texts), np.uint8)
    offsets = np.cumsum([0, *(len(text) for text in texts)], dtype=np.int64)
    return parsed_topics(module, Batch([""] * len(texts), data, offsets))


def decoded(text: bytes) -> Any:
    """The result of the strict decoder."""
    try:
        topic = decode_topic("t", text)
    except ZnodeError:
        return None
    plain = not (topic.adding or topic.removing or topic.extra)
    return (topic.topic_id or bytes(16), topic.replicas, topic.duplicates) if plain else None


def agree(texts: Sequence[bytes]) -> None:
    kernel, reference = columns(texts, _topic_read), columns(texts, reference_jute)
    assert kernel == reference
    for text, read in zip(texts, kernel, strict=True):
        assert read is None or read == decoded(text)


LISTS = st.lists(st.integers(-1, 4) | st.integers(-(2**31) - 1, 2**31), max_size=4)
KEYS = st.sampled_from(["0", "1", "2", "3", "00", "-0", "-1", "", "2147483648", "x"]) | st.integers(0, 3).map(str)
MOVING: st.SearchStrategy[dict[str, list[int]]] = st.just({}) | st.dictionaries(KEYS, LISTS, max_size=1)
TOPICS = st.fixed_dictionaries(
    {"version": st.sampled_from([3, 3, 3, 2, 1, "3"]), "partitions": st.dictionaries(KEYS, LISTS, max_size=4)},
    optional={
        "topic_id": st.sampled_from([ID, ID, "A" * 22, "A" * 21 + "B", "_-" * 11, "A" * 23, None, 7]),
        "adding_replicas": MOVING,
        "removing_replicas": MOVING,
        "extra": st.integers(0, 1),
    },
)


def written(topic: dict[str, Any], order: int, spaces: bool) -> bytes:
    ordered = {key: topic[key] for key in random.Random(order).sample(sorted(topic), len(topic))}
    return json.dumps(ordered, separators=(", ", ": ") if spaces else (",", ":")).encode()


@given(st.lists(st.builds(written, TOPICS, st.integers(0, 9), st.booleans()), max_size=4))
@example([VALID, b'{"version":3,"partitions":{}}', VALID])
@example([b"", b"[]", b"{}", b'"partitions"', b'{"', b'{"version":3,"partitions":{"'])
@example([b'{"version":3,"partitions":{"0":[1],"0":[1]}}', b'{"version":3,"partitions":{"1":[1]}}'])
@example([b'{"version":3,"partitions":{"0":[]}}', b'{"version":3,"partitions":{"0":[1,]}}'])
@example([b'{"version":3,"partitions":[]}', b'{"version":3,"version":3,"partitions":{}}'])
@example([b'{"version":3,"partitions":{"0":[' + b"1," * 63 + b"1]}}", b'{"version":3,"partitions":{"0":[1]}} '])
@example([b'{"version":3,"partitions":{"0":[' + b"1," * 64 + b"1]}}", b'{"version":3,"partitions":{"0" :[-0]}}'])
def test_kernel_and_decoder_read_topics_alike(texts: list[bytes]) -> None:
    agree(texts)


def test_kafkas_topics_are_read() -> None:
    """As Kafka 3.9 writes them, with its order of partitions. Also as our encoder does."""
    text = (
        b'{"removing_replicas":{},"partitions":{"1":[2],"0":[1,2]},"topic_id":"' + ID.encode() + b'",'
        b'"adding_replicas":{},"version":3}'
    )
    assert columns([text], _topic_read) == [(bytes(7) + b"\1" + bytes(7) + b"\1", [[1, 2], [2]], ())]
    (encoded,) = encode_topics(table_of([decode_topic("t", text)]))
    assert columns([encoded], _topic_read) == columns([text], _topic_read)


@pytest.mark.parametrize("begin, length", [(-1, 5), (0, -1), (1, len(VALID)), (0, 2**31 - 1)])
@pytest.mark.parametrize("module", [_topic_read, reference_jute], ids=["kernel", "reference"])
def test_topic_outside_the_response_is_not_read(module: Any, begin: int, length: int) -> None:
    data_offset, lengths = np.array([begin], np.int64), np.array([length], np.int32)
    data = np.frombuffer(VALID, np.uint8)
    assert TopicColumns.read(data, data_offset, lengths, module.parse_topics).parsed.tolist() == [0]


@pytest.mark.parametrize("rows, values, expected", [(3, 5, 1), (2, 5, 0), (3, 4, 0)])
@pytest.mark.parametrize("module", [_topic_read, reference_jute], ids=["kernel", "reference"])
def test_kernel_writes_within_its_buffers(module: Any, rows: int, values: int, expected: int) -> None:
    """The topic has three partitions with two, two and one replicas."""
    counts, duplicates = np.full(rows, -7, np.int32), np.zeros(rows, np.uint8)
    partitions, parsed, ids = np.zeros(1, np.int32), np.zeros(1, np.uint8), np.zeros((1, 16), np.uint8)
    replicas = np.full(values, -7, np.int32)
    used = module.parse_topics(
        np.frombuffer(VALID, np.uint8),
        np.zeros(1, np.int64),
        np.array([len(VALID)], np.int32),
        np.empty((4, 9), np.int32),
        np.empty(9, np.int32),
        partitions,
        ids,
        counts,
        duplicates,
        replicas,
        parsed,
    )
    assert (used, parsed.tolist(), partitions.tolist()) == (5 * expected, [expected], [3 * expected])
    assert counts.tolist() == ([2, 2, 1] if expected else [-7] * rows)
    assert replicas.tolist() == ([1, 2, 2, 1, 3] if expected else [-7] * values)
