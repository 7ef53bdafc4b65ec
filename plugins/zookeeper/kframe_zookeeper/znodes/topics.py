"""``/brokers/topics/T``, topic id and assignments, and ``/brokers/topics/T/partitions/N/state``, leader and ISR.

The reference is ``docs/reference/controller/zookeeper.md``, sections 3.4 and 3.5.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Final

import numpy as np
from msgspec import UNSET

from kframe.plugin import ZnodeError, counted
from kframe.plugin.cluster import TopicTable, reassignment_flags
from kframe.plugin.columns import REPLICAS_MAX, Int32, Ragged, offsets_of
from kframe.plugin.snapshot import check_topic_name
from kframe.plugin.znodes import STATE_DECODER, TOPIC_DECODER, StateZnode, TopicZnode, topic_id_bytes, topic_id_text
from kframe_zookeeper.znodes.ordering import partition_order, scala_order
from kframe_zookeeper.znodes.paths import topic_path
from kframe_zookeeper.znodes.strict import NO_EXTRA, Extra, decode_znode, encode_znode

#: Written by Kafka 2.8 and later.
TOPIC_VERSION: Final = 3
#: Written by every release of Kafka.
STATE_VERSION: Final = 1
_NO_ID: Final = bytes(16)


@dataclass(frozen=True, slots=True)
class StoredTopic:
    """The content of a topic's znode. Brokers are ids, distinct within a list.

    ``replicas[p]`` are the replicas of partition ``p``. ``adding`` and ``removing`` have only partitions with a
    reassignment. If a partition names a broker twice, the first position counts, and ``duplicates`` lists the
    partition. Kafka's controller accepts such topics, so leaving them out would make them unavailable. ``extra`` is
    written back with the topic.
    """

    name: str
    topic_id: bytes | None
    replicas: list[list[int]]
    adding: dict[int, list[int]]
    removing: dict[int, list[int]]
    extra: Extra
    duplicates: tuple[int, ...] = ()


def decode_topic(name: str, raw: bytes | None) -> StoredTopic:
    """The topic in its znode. A znode without data has no partitions yet. Raises ZnodeError."""
    path = topic_path(name)
    check_topic_name(name, path, ZnodeError)
    if not raw:
        return StoredTopic(name, None, [], {}, {}, NO_EXTRA)
    record, extra = decode_znode(TOPIC_DECODER, raw, path)
    duplicates = _check_assignment(record, path)
    topic_id = (
        None if record.topic_id is UNSET else topic_id_bytes(record.topic_id, f"{path} field topic_id", ZnodeError)
    )
    if topic_id == _NO_ID:
        raise ZnodeError(f"{path} field topic_id", "the id of no topic", "any other id")
    replicas = [record.partitions[partition] for partition in range(len(record.partitions))]
    for partition in duplicates:
        replicas[partition] = list(dict.fromkeys(replicas[partition]))
    return StoredTopic(name, topic_id, replicas, record.adding_replicas, record.removing_replicas, extra, duplicates)


def table_of(topics: Sequence[StoredTopic]) -> TopicTable:
    """Topics as columns, in the given order."""
    counts = np.array([len(topic.replicas) for topic in topics], np.int32)
    replicas = _packed([replicas for topic in topics for replicas in topic.replicas])
    adding, removing = ([topic.adding for topic in topics], [topic.removing for topic in topics])
    return TopicTable(
        tuple(topic.name for topic in topics),
        tuple(topic.topic_id for topic in topics),
        counts,
        replicas,
        reassignment_flags(replicas, _spread(adding, counts), _spread(removing, counts)),
    )


def encode_topics(table: TopicTable, extras: Sequence[Extra] = ()) -> Iterator[bytes]:
    """Each topic of ``table`` as Kafka 3.9 writes it. ``extras`` is empty, or has the further fields of each topic."""
    first, adding, removing = 0, table.adding, table.removing
    for number, count in enumerate(table.partition_counts.tolist()):
        topic_id = table.topic_ids[number]
        replicas = _lists(table.replicas, first, count)
        record = TopicZnode(
            partitions={partition: replicas[partition] for partition in partition_order(count)},
            topic_id=UNSET if topic_id is None else topic_id_text(topic_id),
            adding_replicas=_moving(adding, first, count),
            removing_replicas=_moving(removing, first, count),
            version=TOPIC_VERSION,
        )
        yield encode_znode(record, extras[number] if extras else NO_EXTRA)
        first += count


def decode_state(raw: bytes | None, path: str) -> StateZnode:
    """A partition's state. Raises ZnodeError.

    Brokers are ids, distinct within the ISR. The caller checks whether they are replicas.
    """
    state, _ = decode_znode(STATE_DECODER, raw, path)
    if len(set(state.isr)) != len(state.isr) or len(state.isr) > REPLICAS_MAX:
        raise ZnodeError(f"{path} field isr", f"{len(state.isr)} brokers, some of them twice", "each broker once")
    return state


def encode_state(leader: int, leader_epoch: int, isr: list[int], controller_epoch: int, recovery: int = 0) -> bytes:
    """A partition's state as Kafka writes it; ``recovery`` is a RecoveryState, written only while RECOVERING."""
    record = StateZnode(
        controller_epoch=controller_epoch,
        leader=leader,
        version=STATE_VERSION,
        leader_recovery_state=recovery,
        leader_epoch=leader_epoch,
        isr=isr,
    )
    return encode_znode(record)


def _packed(lists: Sequence[list[int]]) -> Ragged:
    """Concatenate lists, without an intermediate list of all members."""
    offsets = offsets_of([len(members) for members in lists])
    return Ragged(offsets, np.fromiter(chain.from_iterable(lists), np.int32, int(offsets[-1])))


def _spread(moving: Sequence[dict[int, list[int]]], counts: Int32) -> Ragged:
    """A list for each partition of each topic. Only the lists in ``moving`` are not empty."""
    first_rows = offsets_of(counts)
    named = [(topic, partition) for topic, targets in enumerate(moving) for partition in sorted(targets)]
    rows = np.array([int(first_rows[topic]) + partition for topic, partition in named], np.int64)
    return _packed([moving[topic][partition] for topic, partition in named]).spread(rows, int(first_rows[-1]))


def _lists(lists: Ragged, first: int, count: int) -> list[list[int]]:
    """``count`` lists from index ``first``, as Python lists."""
    offsets = lists.offsets[first : first + count + 1].tolist()
    values = lists.values[offsets[0] : offsets[-1]].tolist()
    return [values[begin - offsets[0] : end - offsets[0]] for begin, end in pairwise(offsets)]


def _moving(lists: Ragged, first: int, count: int) -> dict[int, list[int]]:
    """The non-empty lists among ``count`` lists, by partition. They are in Kafka's order."""
    if lists.offsets[first] == lists.offsets[first + count]:
        return {}
    named = {str(partition): members for partition, members in enumerate(_lists(lists, first, count)) if members}
    return {int(partition): named[partition] for partition in scala_order(named)}


def _check_assignment(record: TopicZnode, path: str) -> tuple[int, ...]:
    """The partitions that name a broker twice.

    Raises ZnodeError unless partitions count from 0, each has replicas, and its adding and removing replicas are
    distinct members of them. As in Kafka, any number is a broker id, even a negative one.
    """
    partitions = record.partitions
    if partitions and max(partitions) != len(partitions) - 1:
        missing = next(number for number in range(len(partitions)) if number not in partitions)
        raise ZnodeError(f"{path} field partitions", f"no partition {missing}", f"all up to {max(partitions)}")
    duplicates = []
    for partition, replicas in partitions.items():
        count = len(replicas)
        if len(set(replicas)) != count:
            duplicates.append(partition)
        if not 0 < count <= REPLICAS_MAX:
            raise ZnodeError(
                f"{path} field partitions.{partition}", counted(len(replicas), "replica"), f"1 to {REPLICAS_MAX}"
            )
    for field, moving in (("adding_replicas", record.adding_replicas), ("removing_replicas", record.removing_replicas)):
        for partition, brokers in moving.items():
            where = f"{path} field {field}.{partition}"
            if len(set(brokers)) != len(brokers) or not set(brokers) <= set(partitions.get(partition, ())):
                raise ZnodeError(where, f"{brokers[:20]}", "different brokers, all of them replicas of the partition")
    return tuple(sorted(duplicates))
