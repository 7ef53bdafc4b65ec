"""Mutated records that decoders accept survive a round trip, and take the quick check only if they are valid."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from kframe_zookeeper.znodes import strict
from kframe_zookeeper.znodes.strict import NO_EXTRA
from kframe_zookeeper.znodes.topics import decode_state, decode_topic, encode_state, encode_topics, table_of

from kframe.errors import ZnodeError
from kframe.snapshot.znodes import TOPIC_DECODER
from verification.zookeeper.fuzz.znodes import PIECES

VECTORS: Final = [
    line.split("\t", 1)[1].encode()
    for line in (Path(__file__).parent / "vectors" / "zkdata.tsv").read_text("utf-8").split("\n")[:-1]
]


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    """A znode of Kafka with some pieces deleted, repeated or inserted."""
    raw = draw(st.sampled_from(VECTORS))
    for _ in range(draw(st.integers(1, 4))):
        begin = draw(st.integers(0, len(raw)))
        end = min(len(raw), begin + draw(st.integers(0, 12)))
        piece = draw(st.sampled_from(PIECES) | st.just(raw[begin:end] * 2) | st.binary(max_size=4))
        raw = raw[:begin] + piece + raw[end:]
    return raw


@given(raw=mutated())
def test_decoded_state_round_trip(raw: bytes) -> None:
    try:
        state = decode_state(raw, "/x/state")
    except ZnodeError:
        return
    encoded = encode_state(
        state.leader, state.leader_epoch, state.isr, state.controller_epoch, state.leader_recovery_state
    )
    decoded_again = decode_state(encoded, "/x/state")
    fields = ("leader", "leader_epoch", "isr", "controller_epoch", "leader_recovery_state")
    assert [getattr(decoded_again, name) for name in fields] == [getattr(state, name) for name in fields]


@given(raw=mutated())
def test_decoded_topic_round_trip(raw: bytes) -> None:
    try:
        topic = decode_topic("t", raw)
    except ZnodeError:
        return
    (encoded,) = encode_topics(table_of([topic]), [topic.extra])
    decoded_again = decode_topic("t", encoded)
    assert (decoded_again.topic_id, decoded_again.replicas, decoded_again.adding) == (
        topic.topic_id,
        topic.replicas,
        topic.adding,
    )
    assert decoded_again.extra.keys() == topic.extra.keys()


def settled_quickly(raw: bytes) -> tuple[bool, bool]:
    """The results of the quick check of a topic's znode. Also those of the full check."""
    record = TOPIC_DECODER.decode(raw)
    try:
        agreed = strict._unknown_fields(raw, "/t", record.__struct_encode_fields__) is NO_EXTRA
    except ZnodeError:
        agreed = False
    return strict._is_all_known(raw, record), agreed


@given(raw=mutated())
@example(b'{"partitions":{"0":[1],"0":[1]},"version":3}')
@example(b'{"partitions":{"0":[1]},"version":3,"version":3}')
@example(b'{"partitions":{"0":[1]},"version":3,"x":1}')
def test_fast_path_accepts_only_valid_content(raw: bytes) -> None:
    try:
        quickly, agreed = settled_quickly(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):  # Not the znode of a topic.
        return
    assert agreed or not quickly


@pytest.mark.parametrize(
    "raw",
    [
        b'{"version": 3, "partitions": {"1": [2, 3], "0": [1, 2]}, "adding_replicas": {}, "removing_replicas": {}}',
        b'{"removing_replicas":{},"partitions":{"0":[1,2]},"topic_id":"AAAAAAAAAAEAAAAAAAAAAQ","version":3}',
    ],
    ids=["with blanks", "in another order"],
)
def test_reordered_content_takes_the_fast_path(raw: bytes) -> None:
    assert settled_quickly(raw) == (True, True)
