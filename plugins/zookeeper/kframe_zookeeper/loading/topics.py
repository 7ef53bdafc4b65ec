"""Read topic znodes into a table.

The kernel parses what Kafka writes, the strict decoder anything else. Malformed topics are quarantined.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kframe.plugin import ZnodeError
from kframe.plugin.cluster import ZERO_TOPIC_ID, TopicTable, topic_name_problem
from kframe.plugin.columns import Int32, Int64, Ragged, UInt8, offsets_of
from kframe_zookeeper.bulk.nodes import Results
from kframe_zookeeper.kernels._topic_read import parse_topics
from kframe_zookeeper.loading.memory import CachedTopic, Memory
from kframe_zookeeper.role.connection import Connection
from kframe_zookeeper.znodes import paths
from kframe_zookeeper.znodes.strict import NO_EXTRA
from kframe_zookeeper.znodes.topics import StoredTopic, decode_topic, table_of

_log = logging.getLogger("kframe.zookeeper")

#: Partitions that a warning names.
_NAMED_MAX: Final = 10
#: Minimum bytes of JSON of a partition with its replicas, ``"0":[1]``, and of a replica.
_PARTITION_BYTES: Final = 7
_REPLICA_BYTES: Final = 2


@dataclass(frozen=True, slots=True, eq=False)
class TopicColumns:
    """The ``k`` topics of a response as the kernel has read them.

    ``parsed`` is 0 for a topic that is left to the decoder; it has no partitions here. ``topic_ids`` is (k, 16), zeros
    for none. ``replicas`` has a list for each partition, topic by topic. ``duplicates`` is 1 for a partition that
    names a broker twice.
    """

    parsed: UInt8
    partitions: Int32
    topic_ids: UInt8
    replicas: Ragged
    duplicates: UInt8

    @staticmethod
    def read(
        reply: UInt8, data_offset: Int64, data_length: Int32, parse: Callable[..., int] = parse_topics
    ) -> TopicColumns:
        """From the positions of the JSON of each topic in a response."""
        k, rows, values = len(data_offset), len(reply) // _PARTITION_BYTES + 1, len(reply) // _REPLICA_BYTES
        parsed, partitions, ids = np.empty(k, np.uint8), np.empty(k, np.int32), np.zeros((k, 16), np.uint8)
        counts, duplicates, replicas = np.empty(rows, np.int32), np.empty(rows, np.uint8), np.empty(values, np.int32)
        columns, scratch = np.empty((4, rows + 1), np.int32), np.empty(values, np.int32)
        used = parse(
            reply, data_offset, data_length, columns, scratch, partitions, ids, counts, duplicates, replicas, parsed
        )
        count = int(partitions.sum())
        lists = Ragged(offsets_of(counts[:count]), replicas[:used].copy())
        return TopicColumns(parsed, partitions, ids, lists, duplicates[:count].copy())


@dataclass(frozen=True, slots=True, eq=False)
class TopicPart:
    """Some of the requested topics.

    ``table``: the readable topics, in the order of the request. ``existing_paths``: the paths of all existing topics.
    ``duplicates``: (index of the topic in ``table``, partition) of partitions that name a broker twice.
    """

    table: TopicTable
    existing_paths: list[str]
    duplicates: NDArray[np.int64]


def read_parts(connection: Connection, memory: Memory, names: Sequence[str]) -> Iterator[TopicPart]:
    """The existing, readable topics in the order of ``names``, by responses.

    Their versions are remembered. An invalid topic name is quarantined like a malformed topic. The first request is
    sent at once; its response shows how long topics are, and so how many topics fit the next requests.
    """
    topic_paths = [paths.topic_path(name) for name in names]
    responses = connection.results(topic_paths, probe_first=True)
    return (
        _part(memory, names[first : first + len(results.code)], topic_paths[first : first + len(results.code)], results)
        for first, results in responses
    )


def read_table(connection: Connection, memory: Memory, names: Sequence[str]) -> tuple[TopicTable, list[str]]:
    """The topics of ``read_parts`` in one table, and the paths of all existing topics."""
    parts = list(read_parts(connection, memory, names))
    warn_of_duplicates(parts)
    return chained([part.table for part in parts]), [path for part in parts for path in part.existing_paths]


def chained(tables: Sequence[TopicTable]) -> TopicTable:
    """The topics of the first table, then those of the next, and so on."""
    none = TopicTable.of((), ())
    return TopicTable(
        tuple(name for table in tables for name in table.names),
        tuple(topic_id for table in tables for topic_id in table.topic_ids),
        np.concatenate([none.partition_counts, *(table.partition_counts for table in tables)]),
        Ragged.chain([none.replicas, *(table.replicas for table in tables)]),
        np.concatenate([none.flags, *(table.flags for table in tables)]),
    )


def warn_of_duplicates(parts: Sequence[TopicPart]) -> None:
    """Log how many partitions name a broker twice, and the first of them by name."""
    count, named = sum(len(part.duplicates) for part in parts), list[str]()
    for part in parts:
        pairs = part.duplicates[: max(_NAMED_MAX - len(named), 0)].tolist()
        named += [f"{part.table.names[topic]}-{partition}" for topic, partition in pairs]
    if count:
        _log.warning(
            "%d partitions list a broker twice as a replica; the first entry counts: %s%s",
            count,
            ", ".join(named),
            ", ..." if count > _NAMED_MAX else "",
        )


def _part(memory: Memory, names: Sequence[str], topic_paths: Sequence[str], results: Results) -> TopicPart:
    """The topics ``names`` from their response."""
    lengths = results.data_length.copy()
    lengths[[topic_name_problem(name) is not None for name in names]] = 0  # The decoder refuses them.
    read = TopicColumns.read(results.reply, results.data_offset, lengths)
    existing_paths, unparsed = list[str](), dict[int, StoredTopic]()
    for i, (name, path, parsed) in enumerate(zip(names, topic_paths, read.parsed.tolist(), strict=True)):
        if not results.exists(i):
            memory.topics.pop(name, None)
            continue
        existing_paths.append(path)
        try:
            topic = None if parsed else decode_topic(name, results.data(i))
        except ZnodeError as error:
            memory.quarantine(path, error)
            continue
        if topic is not None:
            unparsed[i] = topic
        memory.repair(path)
        memory.topics[name] = CachedTopic(int(results.version[i]), NO_EXTRA if topic is None else topic.extra)
    return TopicPart(_table(names, read, unparsed), existing_paths, _duplicates(read, unparsed))


def _table(names: Sequence[str], read: TopicColumns, unparsed: dict[int, StoredTopic]) -> TopicTable:
    """The topics of the kernel and of the decoder, in the order of the request."""
    numbers = np.flatnonzero(read.parsed)
    ids = tuple(None if topic_id == ZERO_TOPIC_ID else topic_id for topic_id in map(bytes, read.topic_ids[numbers]))
    flags = np.zeros(len(read.replicas.values), np.uint8)
    table = TopicTable(tuple(names[i] for i in numbers.tolist()), ids, read.partitions[numbers], read.replicas, flags)
    if not unparsed:
        return table
    return chained([table, table_of(list(unparsed.values()))]).take(np.argsort([*numbers, *unparsed], kind="stable"))


def _duplicates(read: TopicColumns, unparsed: dict[int, StoredTopic]) -> NDArray[np.int64]:
    """The (topic, partition) pairs of TopicPart."""
    begins, rows = offsets_of(read.partitions), np.flatnonzero(read.duplicates)
    topic = np.searchsorted(begins, rows, side="right") - 1
    stored = [(i, partition) for i, stored_topic in unparsed.items() for partition in stored_topic.duplicates]
    parts = [np.stack([topic, rows - begins[topic]], axis=1), np.array(stored, np.int64).reshape(-1, 2)]
    pairs: NDArray[np.int64] = np.concatenate(parts)
    pairs = pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]
    pairs[:, 0] = np.searchsorted(np.sort([*np.flatnonzero(read.parsed), *unparsed]), pairs[:, 0])
    return pairs
