"""Read partition states into columns.

The kernel parses what Kafka writes, the strict decoder anything else. Malformed states are quarantined.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from kframe.plugin import ZnodeError
from kframe.plugin.cluster import NO_LEADER, NO_STATE, UNKNOWN_ZXID, ClusterState
from kframe.plugin.columns import Int32, Ragged, offsets_of
from kframe.plugin.store import StateChange, StoredStates
from kframe_zookeeper.bulk.state_writes import NewStates
from kframe_zookeeper.bulk.states import PathNames, StateRows, read_states
from kframe_zookeeper.loading.memory import Memory
from kframe_zookeeper.role.connection import Connection
from kframe_zookeeper.znodes.paths import TOPICS, state_path
from kframe_zookeeper.znodes.topics import decode_state


def path_names(connection: Connection, cluster: ClusterState) -> PathNames:
    """The names of the topics of ``cluster``, for paths."""
    return PathNames.of(f"{connection.root}{TOPICS}/", cluster.topics.wire_names())


def new_states(connection: Connection, cluster: ClusterState, change: StateChange) -> NewStates:
    """The new states of ``change``, with brokers by id."""
    ids, partitions = np.append(cluster.brokers.ids, np.int32(NO_LEADER)), cluster.partitions
    return NewStates(
        names=path_names(connection, cluster),
        topic=partitions.topic[change.rows],
        partition=partitions.partition[change.rows],
        leader=ids[change.leader],
        leader_epoch=change.leader_epoch,
        recovery=change.recovery,
        isr=Ragged(change.isr.offsets, ids[change.isr.values]),
        expected=change.expected,
        controller_epoch=change.controller_epoch,
    )


def stored_states(connection: Connection, memory: Memory, cluster: ClusterState, rows: Int32) -> StoredStates:
    """Read the states of ``rows``. A stored broker that ``cluster`` does not know gets an index there."""
    topic, partition = cluster.partitions.topic[rows], cluster.partitions.partition[rows]
    read = read_states(connection.session, path_names(connection, cluster), topic, partition)
    return stored_of(memory, cluster, rows, read)


def stored_of(memory: Memory, cluster: ClusterState, rows: Int32, read: StateRows) -> StoredStates:
    """The states of ``rows``, with brokers by index."""
    partitions, brokers = cluster.partitions, cluster.brokers
    topic, partition = partitions.topic[rows].tolist(), partitions.partition[rows].tolist()
    unparsed = [state_path(cluster.topics.names[topic[index]], partition[index]) for index in read.unparsed]
    isr, errors = decode_unparsed(read, unparsed)
    for path, error in errors.items():
        if error is None:
            memory.repair(path)
        else:
            memory.quarantine(path, error)
    leader = np.full(len(rows), NO_LEADER, np.int32)
    led = read.is_parsed & (read.leader >= 0)
    leader[led] = brokers.index_of(read.leader[led])
    return StoredStates(
        rows=rows,
        exists=read.is_parsed,
        leader=leader,
        leader_epoch=read.leader_epoch,
        controller_epoch=read.controller_epoch,
        partition_epoch=np.where(read.is_parsed, read.version, np.int32(NO_STATE)),
        recovery=read.recovery,
        isr=Ragged(isr.offsets, brokers.index_of(isr.values)),
        zxid=np.where(read.is_parsed, read.zxid, np.int64(UNKNOWN_ZXID)),
    )


def decode_unparsed(read: StateRows, paths: Iterable[str]) -> tuple[Ragged, dict[str, ZnodeError | None]]:
    """Read the unparsed states by the strict decoder. ``paths`` are their paths, in order.

    Their values are written to the columns of ``read``, except the ISRs. Return the ISRs of all rows, and the error of
    each path, None if the state is valid.
    """
    lists: dict[int, list[int]] = {}
    errors: dict[str, ZnodeError | None] = {}
    for (row, data), path in zip(read.unparsed.items(), paths, strict=True):
        try:
            state = decode_state(data, path)
        except ZnodeError as error:
            errors[path] = error
            continue
        errors[path] = None
        read.parsed[row], lists[row] = 1, state.isr
        read.leader[row], read.leader_epoch[row] = state.leader, state.leader_epoch
        read.controller_epoch[row], read.recovery[row] = state.controller_epoch, state.leader_recovery_state
    if not lists:
        return read.isr, errors
    counts = read.isr.counts
    for row, isr in lists.items():
        counts[row] = len(isr)
    offsets = offsets_of(counts)
    values = np.empty(int(offsets[-1]), np.int32)
    unparsed = np.repeat(np.isin(np.arange(len(counts)), list(lists)), counts)
    values[~unparsed] = read.isr.values
    values[unparsed] = [member for row in sorted(lists) for member in lists[row]]
    return Ragged(offsets, values), errors
