"""Fuzz znodes: the strict decoder of each kind, and the kernels for states and topics with their references."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np
from kframe_zookeeper.kernels import _jute_read, _topic_read
from kframe_zookeeper.loading.topics import TopicColumns
from kframe_zookeeper.znodes.brokers import decode_broker
from kframe_zookeeper.znodes.cluster import (
    decode_cluster_id,
    decode_controller,
    decode_controller_epoch,
    decode_producer_ids,
)
from kframe_zookeeper.znodes.configs import decode_config, decode_config_change
from kframe_zookeeper.znodes.lists import decode_log_dir_event, decode_partitions, decode_targets
from kframe_zookeeper.znodes.topics import decode_state, decode_topic, encode_state, encode_topics, table_of

from kframe.plugin import ZnodeError
from kframe.plugin.columns import offsets_of
from verification.fuzz import Base, Batch, Outcome
from verification.reference import jute as reference_jute

#: The decoder of each kind of znode.
DECODERS: Final[Mapping[str, Callable[[bytes], Any]]] = {
    "broker": lambda raw: decode_broker("1", raw, 5),
    "cluster id": decode_cluster_id,
    "config": lambda raw: decode_config(raw, "/config/topics/t"),
    "config change": lambda raw: decode_config_change(raw, "/config/changes/x"),
    "controller": decode_controller,
    "controller epoch": decode_controller_epoch,
    "log dir event": lambda raw: decode_log_dir_event(raw, "/x"),
    "partitions": decode_partitions,
    "producer ids": decode_producer_ids,
    "state": lambda raw: decode_state(raw, "/x/state"),
    "targets": decode_targets,
    "topic": lambda raw: decode_topic("t", raw),
}
#: Byte sequences that are likely to break JSON parsers.
PIECES: Final = [
    b"\xff", b"\xed\xa0\x80", b"\\ud800", b"NaN", b"Infinity", b"1e999", b"-0", b"9" * 400, b"9" * 5000, b"2147483648",
    b"null", b"true", b"{", b"}", b"[", b"]", b"[" * 3000, b'{"a":' * 3000, b'"', b",", b":", b'"leader":',
    b'"version":1,', b'"0":[1],', b"\x00", b"\xef\xbb\xbf", b"\\", b"\n", b'"\\u0000"', b" " * 100, b"-1", b"1.0",
    b',"x":{"y":[1]}', b"18446744073709551616", b"\\u0061",
]  # fmt: skip
#: The length limit of reasons, which appear in logs.
_REASON_MAX: Final = 1000
#: Each n-th state is also parsed alone, so that a sanitizer detects reads beyond its end.
_ALONE: Final = 8
#: The kernel leaves longer ISRs to the decoder.
_ISR_MAX: Final = reference_jute.ISR_MAX
_REPLICAS_MAX: Final = reference_jute.REPLICAS_MAX


class Znodes:
    """One kind of znode."""

    pieces: Sequence[bytes] = PIECES
    share = 1

    def __init__(self, name: str, bases: Sequence[Base]) -> None:
        self.name = name
        self.bases = bases
        self._decode = DECODERS[name]

    def evaluate(self, batch: Batch) -> list[Outcome]:
        """The reason of each refusal, which must name the znode."""
        return [self._outcome(batch[i]) for i in range(len(batch))]

    def _outcome(self, raw: bytes) -> Outcome:
        try:
            self._decode(raw)
        except ZnodeError as error:
            reason = str(error)
            assert reason.startswith("/"), reason
            assert len(reason) <= _REASON_MAX, len(reason)
            return reason
        return None


class StateZnodes(Znodes):
    """States, by the decoder and the kernel.

    If the kernel parses a state, the decoder must return the same. The kernel must parse anything that Kafka writes.
    """

    def evaluate(self, batch: Batch) -> list[Outcome]:
        """The decoder's outcomes. They are compared with those of the kernel."""
        read, reference = (_parsed(module, batch) for module in (_jute_read, reference_jute))
        assert read == reference
        for i in range(0, len(batch), _ALONE):
            assert _parsed(_jute_read, batch.part(i, i + 1)) == [read[i]]
        return [self._both(batch[i], read[i]) for i in range(len(batch))]

    def _both(self, raw: bytes, read: tuple[Any, ...] | None) -> Outcome:
        try:
            state = decode_state(raw, "/x/state")
        except ZnodeError as error:
            assert read is None, read
            return str(error)
        fields = (state.leader, state.leader_epoch, state.controller_epoch, state.leader_recovery_state, state.isr)
        if read is None:
            encoded = encode_state(
                state.leader, state.leader_epoch, state.isr, state.controller_epoch, state.leader_recovery_state
            )
            assert encoded != raw or len(state.isr) > _ISR_MAX, "the kernel does not read what Kafka writes"
        else:
            assert read == fields
        return None


class TopicZnodes(Znodes):
    """Topics, by the decoder and the kernel."""

    def evaluate(self, batch: Batch) -> list[Outcome]:
        """The decoder's outcomes, compared with those of the kernel."""
        read, reference = (parsed_topics(module, batch) for module in (_topic_read, reference_jute))
        assert read == reference
        for i in range(0, len(batch), _ALONE):
            assert parsed_topics(_topic_read, batch.part(i, i + 1)) == [read[i]]
        return [self._both(batch[i], read[i]) for i in range(len(batch))]

    def _both(self, raw: bytes, read: tuple[Any, ...] | None) -> Outcome:
        try:
            topic = decode_topic("t", raw)
        except ZnodeError as error:
            assert read is None, read
            return str(error)
        plain = not (topic.adding or topic.removing or topic.extra)
        if read is None:
            (encoded,) = encode_topics(table_of([topic]))
            longest = max(map(len, topic.replicas), default=0)
            assert not plain or encoded != raw or longest > _REPLICAS_MAX, "the kernel does not read what Kafka writes"
        else:
            assert plain
            assert read == (topic.topic_id or bytes(16), topic.replicas, topic.duplicates)
        return None


def parsed_topics(module: Any, batch: Batch) -> list[tuple[Any, ...] | None]:
    """The result of ``parse_topics`` for each case. None where it is left to the decoder."""
    read = TopicColumns.read(
        batch.data, batch.offsets[:-1], np.diff(batch.offsets).astype(np.int32), module.parse_topics
    )
    begins, values = offsets_of(read.partitions).tolist(), read.replicas.offsets.tolist()
    topics: list[tuple[Any, ...] | None] = []
    for i, parsed in enumerate(read.parsed.tolist()):
        rows = range(begins[i], begins[i + 1])
        lists = [read.replicas.values[values[row] : values[row + 1]].tolist() for row in rows]
        duplicates = tuple(row - begins[i] for row in rows if read.duplicates[row])
        topics.append((read.topic_ids[i].tobytes(), lists, duplicates) if parsed else None)
    return topics


def _parsed(module: Any, batch: Batch) -> list[tuple[Any, ...] | None]:
    """The result of ``parse_states`` for each case. None where it is left to the decoder."""
    k = len(batch)
    leader, leader_epoch, controller_epoch, counts = (np.zeros(k, np.int32) for _ in range(4))
    recovery, parsed = np.zeros(k, np.uint8), np.zeros(k, np.uint8)
    isr, lengths = np.zeros(len(batch.data) // 2, np.int32), np.diff(batch.offsets).astype(np.int32)
    used = module.parse_states(
        batch.data, batch.offsets[:-1], lengths, leader, leader_epoch, controller_epoch, recovery, counts, isr, parsed
    )
    isr_offsets = offsets_of(counts).tolist()
    assert isr_offsets[-1] == used
    columns = (leader.tolist(), leader_epoch.tolist(), controller_epoch.tolist(), recovery.tolist())
    return [
        (*(column[i] for column in columns), isr[isr_offsets[i] : isr_offsets[i + 1]].tolist()) if parsed[i] else None
        for i in range(k)
    ]
