"""Store calls for requests in znodes: deletions, reassignments, elections, notifications, producer ids."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from kazoo.exceptions import NotEmptyError

from kframe.plugin import StoreError, ZnodeError
from kframe.plugin.cluster import Notifications, Targets, TopicPartition
from kframe.plugin.store import (
    AllocateProducerIds,
    DropDeletions,
    DropNotifications,
    DropPreferredElection,
    QueueDeletions,
    ReadDeletions,
    ReadIsrChanges,
    ReadLogDirEvents,
    ReadPreferredElection,
    ReadReassignments,
    WriteReassignments,
)
from kframe_zookeeper.bulk.writes import Writes, require, write_all
from kframe_zookeeper.loading.memory import Memory
from kframe_zookeeper.role.connection import Connection
from kframe_zookeeper.session.requests import BAD_VERSION, NO_NODE, NODE_EXISTS, SEQUENTIAL, delete, set_data
from kframe_zookeeper.store.state import StoreState
from kframe_zookeeper.znodes import paths
from kframe_zookeeper.znodes.cluster import ProducerIdBlock, decode_producer_ids, encode_producer_ids
from kframe_zookeeper.znodes.lists import decode_log_dir_event, decode_partitions, decode_targets, encode_targets

#: Producer ids in a block (Kafka 3.9 ``ProducerIdsBlock.PRODUCER_ID_BLOCK_SIZE``).
BLOCK_LENGTH: Final = 1000
#: Attempts to allocate a block before concurrent allocations count as an error.
TRIES_MAX: Final = 64
_LAST_ID: Final = 2**63 - 1

Record = TypeVar("Record")


class RequestCalls(StoreState):
    """Part of ZooKeeperStore."""

    def _queue_deletions(self, request: QueueDeletions) -> None:
        """Mark topics for deletion. Existing marks stay."""
        connection = self._connected()
        marks = [paths.delete_topic_path(name) for name in request.names]
        connection.write_unfenced([[connection.create(path, None)] for path in marks], NODE_EXISTS)

    def _read_deletions(self, request: ReadDeletions) -> frozenset[str]:
        """Marked topics; arms the watch on them."""
        return frozenset(self._connected().watched_children(paths.DELETE_TOPICS))

    def _drop_deletions(self, request: DropDeletions) -> None:
        """Delete the marks that exist."""
        connection = self._connected()
        connection.write([[delete(connection.root + paths.delete_topic_path(name))] for name in request.names], NO_NODE)

    def _read_reassignments(self, request: ReadReassignments) -> Targets | None:
        """The pending reassignments. Arms a watch on the znode. A malformed znode counts as none."""
        return _read_request(self._connected(), self._memory, paths.REASSIGN_PARTITIONS, decode_targets)

    def _write_reassignments(self, request: WriteReassignments) -> None:
        """Replace the znode, or delete it if there are no targets."""
        connection, path = self._connected(), paths.REASSIGN_PARTITIONS
        if len(request.targets) == 0:
            connection.write([[delete(connection.root + path)]], NO_NODE)
            return
        data = encode_targets(request.targets)
        if connection.write([[set_data(connection.root + path, data)]], NO_NODE).code[0]:
            connection.create_missing([paths.ADMIN])
            connection.write([[connection.create(path, data)]])

    def _read_preferred_election(self, request: ReadPreferredElection) -> tuple[TopicPartition, ...] | None:
        """The requested partitions; arms a watch on the znode. A malformed znode counts as none."""
        return _read_request(self._connected(), self._memory, paths.PREFERRED_ELECTION, decode_partitions)

    def _drop_preferred_election(self, request: DropPreferredElection) -> None:
        """Delete the znode if it exists."""
        connection = self._connected()
        connection.write([[delete(connection.root + paths.PREFERRED_ELECTION)]], NO_NODE)

    def _read_isr_changes(self, request: ReadIsrChanges) -> Notifications[TopicPartition]:
        """Partitions named by all notifications. Arms the watch on them."""
        read, items = _notifications(self._connected(), self._memory, paths.ISR_CHANGES, decode_partitions)
        return Notifications(read, tuple(partition for partitions in items for partition in partitions))

    def _read_log_dir_events(self, request: ReadLogDirEvents) -> Notifications[int]:
        """Brokers named by all notifications. Arms the watch on them."""
        read, items = _notifications(self._connected(), self._memory, paths.LOG_DIR_EVENTS, decode_log_dir_event)
        return Notifications(read, tuple(items))

    def _drop_notifications(self, request: DropNotifications) -> None:
        """Delete the notifications that exist."""
        connection = self._connected()
        connection.write([[delete(connection.root + path)] for path in request.paths], NO_NODE)

    def _allocate_producer_ids(self, request: AllocateProducerIds) -> int:
        """The first id of the next block, by compare-and-set without a fence. Raises StoreError if none is left.

        A block whose answer was lost is never used.
        """
        connection = self._connected()
        for _ in range(TRIES_MAX):
            node = connection.node(paths.PRODUCER_IDS)
            if node is None:
                connection.create_missing([paths.PRODUCER_IDS])
                continue
            try:
                block = decode_producer_ids(node.data)
            except ZnodeError as error:
                raise StoreError(str(error)) from error
            first = 0 if block is None else block.last + 1
            if first > _LAST_ID - BLOCK_LENGTH:
                raise StoreError(f"{paths.PRODUCER_IDS} holds {first}: there are no producer ids left")
            data = encode_producer_ids(ProducerIdBlock(request.broker_id, first, first + BLOCK_LENGTH - 1))
            write = [[set_data(connection.root + paths.PRODUCER_IDS, data, node.version)]]
            outcomes, _ = write_all(connection.session, b"", Writes.of(write))
            require(outcomes, BAD_VERSION)
            if outcomes.code[0] == 0:
                return first
        raise StoreError(f"{TRIES_MAX} blocks of producer ids were allocated by others first")

    # -- raw records. Brokers write them, too, so writes are compare-and-set by version, not fenced.

    def read_record(self, path: str) -> bytes | None:
        """The data of a node. None if it does not exist."""
        node = self._connected().node(path)
        return None if node is None else node.data

    def read_record_names(self, path: str) -> tuple[str, ...]:
        """Names of a node's children. Empty if it does not exist."""
        return self._connected().children([path])[0]

    def read_versioned_record(self, path: str) -> tuple[bytes, int] | None:
        """The data and version of a node. None if it does not exist."""
        node = self._connected().node(path)
        return None if node is None else (node.data or b"", node.version)

    def write_record(self, path: str, data: bytes, version: int | None) -> bool:
        """Replace the data of a node at ``version``. None creates the node and its parents.

        Return false if the node has another version, does not exist, or exists already.
        """
        connection = self._connected()
        if version is None:
            create = [[connection.create(path, data)]]
            code = connection.write_unfenced(create, NO_NODE, NODE_EXISTS).code[0]
            if code == NO_NODE:
                connection.create_missing([path.rpartition("/")[0]])
                code = connection.write_unfenced(create, NO_NODE, NODE_EXISTS).code[0]
        else:
            write = [[set_data(connection.root + path, data, version)]]
            code = connection.write_unfenced(write, NO_NODE, BAD_VERSION).code[0]
        return not code

    def delete_record(self, path: str, version: int) -> bool:
        """Delete a node at ``version``; false if it does not exist, has another version or has children."""
        connection = self._connected()
        write = [[delete(connection.root + path, version)]]
        return not connection.write_unfenced(write, NO_NODE, BAD_VERSION, NotEmptyError.code).code[0]

    def append_record(self, prefix: str, data: bytes) -> None:
        """Create a sequential node with ``prefix``, and its parents."""
        connection = self._connected()
        create = [[connection.create(prefix, data, SEQUENTIAL)]]
        if connection.write_unfenced(create, NO_NODE).code[0]:
            connection.create_missing([prefix.rpartition("/")[0]])
            connection.write_unfenced(create)


#: How the store handles these requests.
REQUEST_HANDLERS: Final = (
    QueueDeletions.handled_by(RequestCalls._queue_deletions),
    ReadDeletions.handled_by(RequestCalls._read_deletions),
    DropDeletions.handled_by(RequestCalls._drop_deletions),
    ReadReassignments.handled_by(RequestCalls._read_reassignments),
    WriteReassignments.handled_by(RequestCalls._write_reassignments),
    ReadPreferredElection.handled_by(RequestCalls._read_preferred_election),
    DropPreferredElection.handled_by(RequestCalls._drop_preferred_election),
    ReadIsrChanges.handled_by(RequestCalls._read_isr_changes),
    ReadLogDirEvents.handled_by(RequestCalls._read_log_dir_events),
    DropNotifications.handled_by(RequestCalls._drop_notifications),
    AllocateProducerIds.handled_by(RequestCalls._allocate_producer_ids),
)


def _read_request(
    connection: Connection, memory: Memory, path: str, decode: Callable[[bytes | None], Record]
) -> Record | None:
    """The decoded request in a node; watches for the next."""
    if connection.watches.exists(path) is None:
        return None
    node = connection.node(path)
    if node is None:
        return None
    try:
        record = decode(node.data)
    except ZnodeError as error:
        memory.quarantine(path, error)
        return None
    memory.repair(path)
    return record


def _notifications(
    connection: Connection, memory: Memory, parent: str, decode: Callable[[bytes | None, str], Record]
) -> tuple[tuple[str, ...], Sequence[Record]]:
    """The paths of all notifications in sequence order, and the records of those that can be read.

    A malformed notification has no record, and is deleted with the others.
    """
    names = connection.watched_children(parent)
    names.sort(key=lambda name: paths.sequence_of(name) or 0)
    known = [f"{parent}/{name}" for name in names]
    existing, records = [], []
    for path, node in zip(known, connection.nodes(known), strict=True):
        if node is None:
            continue
        existing.append(path)
        try:
            records.append(decode(node.data, path))
        except ZnodeError as error:
            memory.quarantine(path, error)
    return tuple(existing), records
