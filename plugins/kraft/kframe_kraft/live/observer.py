"""An observer of a KRaft quorum: finds the leader, fetches its log, and reconnects with back-off."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

from kframe_kafka_wire.connections.node import CONNECTION_ERRORS, NodeConnection
from kframe_kafka_wire.protocol.errors import PermanentFailure, WireError, error_of

from kframe.plugin import ErrorCode, StoreError, counted
from kframe_kraft.disk import LogHistory, QuorumState, SnapshotId
from kframe_kraft.disk.batch_files import BatchFile
from kframe_kraft.disk.temporary import TemporaryContent
from kframe_kraft.errors import BatchError
from kframe_kraft.live.calls import (
    DESCRIBE_QUORUM,
    FETCH_SNAPSHOT,
    Address,
    FetchResult,
    QuorumLeader,
    cluster_id,
    describe_quorum,
    fetch,
    fetch_snapshot,
)
from kframe_kraft.live.followed_log import FollowedLog

#: Attempts without a usable response before an error is raised, without any response so far and later. They last about
#: 5 and 35 seconds by the pauses between them.
FIRST_ATTEMPTS: Final = 8
ATTEMPTS: Final = 40
PAUSE_S: Final = 0.05
PAUSE_MAX_S: Final = 1.0
#: Addresses to try: bootstrap servers, and controllers that the leader names.
SERVERS_MAX: Final = 64
#: The longest wait of a Fetch for new records, as of Kafka's observers.
WAIT_MS: Final = 500
#: A larger snapshot is refused. 100 million partitions need less.
SNAPSHOT_BYTES_MAX: Final = 2**34
#: The node does not lead in the named epoch, or is about to stop.
_LEADER_ERRORS: Final = frozenset(
    {
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.BROKER_NOT_AVAILABLE,
    }
)
#: SNAPSHOT_NOT_FOUND: the leader has deleted the snapshot, because it has a newer one.
_SNAPSHOT_DELETED: Final = 98
_REFUSALS: Final = frozenset({ErrorCode.CLUSTER_AUTHORIZATION_FAILED, ErrorCode.TOPIC_AUTHORIZATION_FAILED})
_RETRIED: Final = (*CONNECTION_ERRORS, BatchError)


class QuorumObserver:
    """Follows the log of a quorum. It is not a replica: it is in no majority and no list of observers."""

    def __init__(
        self,
        addresses: Sequence[Address],
        connect: Callable[[Address], NodeConnection],
        pause: Callable[[float], object] = time.sleep,
    ) -> None:
        """``connect`` raises one of CONNECTION_ERRORS, or PermanentFailure. ``pause`` waits between two attempts; if
        it returns True there is no further one."""
        self.log = FollowedLog()
        self.leader = QuorumLeader(leader_epoch=0)
        self.cluster_id: str | None = None
        self.generation = 0
        """Counts the snapshots that have replaced the log."""
        self.voters: tuple[int, ...] = ()
        """The controllers of the quorum when the client connected to the leader; empty if it does not name them."""
        self._servers = list(addresses)
        self._connect = connect
        self._pause = pause
        self._node: NodeConnection | None = None
        self._address: Address | None = None
        self._next_server = 0
        self._is_described = self._is_reached = False

    def close(self) -> None:
        """Disconnect."""
        node, self._node, self._address, self._is_described = self._node, None, None, False
        if node is not None:
            node.close()

    def history(self) -> LogHistory:
        """The committed log so far."""
        return self.log.history(QuorumState(self.leader.leader_epoch, self.leader.leader_id, voters=self.voters))

    def poll(self, wait_ms: int = WAIT_MS) -> int:
        """Fetch once from the leader, which waits up to ``wait_ms`` for records. Return the leader's high watermark.

        It is -1 while the leader does not know it. Raises StoreError without a valid response of a leader, and
        LogError for a log that contradicts committed records.
        """
        problem, pause_s = "no controller answers", PAUSE_S
        attempts = 0
        while attempts < (ATTEMPTS if self._is_reached else FIRST_ATTEMPTS):
            attempts += 1
            address = self._address
            try:
                result = self._fetch(wait_ms)
                if result is not None:
                    return result.high_watermark
                if self._address != address and self._address is not None:
                    continue  # The node returned the leader's address.
                problem = f"{_text(address)} does not lead in epoch {self.leader.leader_epoch}"
            except PermanentFailure as error:
                self.close()
                raise StoreError(f"KRaft quorum: {error}") from error
            except _RETRIED as error:
                problem = f"{_text(self._address or address)}: {str(error) or type(error).__name__}"
                self.close()
                self.leader = QuorumLeader(leader_epoch=self.leader.leader_epoch)
            if self._pause(pause_s):
                break
            pause_s = min(2 * pause_s, PAUSE_MAX_S)
        raise StoreError(f"KRaft quorum: no leader can be reached ({problem})")

    def catch_up(
        self,
        progress: Callable[[int, int], object] = lambda _done, _total: None,
        on_response: Callable[[], object] = lambda: None,
    ) -> None:
        """Poll until everything that was committed at the first response is fetched. Raises as ``poll``.

        ``take`` is called after each response. It may drop committed batches of the log.
        """
        target = -1
        while target < 0 or self.log.committed < target:
            high_watermark = self.poll()
            target = high_watermark if target < 0 else target
            on_response()
            progress(self.log.committed, max(target, self.log.committed))

    def _fetch(self, wait_ms: int) -> FetchResult | None:
        """Fetch once and apply the response. None if the node is not the leader; ``leader`` is then updated."""
        node = self._connected()
        log, epoch = self.log, self.leader.leader_epoch
        result = fetch(node, epoch, log.end, log.last_epoch, wait_ms)
        self._is_reached = True
        if not self._check_response(result.error_code, result.leader):
            return None
        if not self._is_described:
            self._describe_quorum(node)
        if result.snapshot_id is not None:
            content = self._download(node, result.snapshot_id)
            if content is None:
                return None
            log.replace(result.snapshot_id, BatchFile(content))
            self.generation += 1
        elif result.diverging is not None:
            log.truncate(*result.diverging)
        else:
            log.append(result.records, epoch)
            log.commit(result.high_watermark)
        return result

    def _download(self, node: NodeConnection, snapshot_id: SnapshotId) -> TemporaryContent | None:
        """The content of a snapshot, in parts. None if the leader changes or has deleted it."""
        content = TemporaryContent(snapshot_id.file_name)
        while True:
            part = fetch_snapshot(node, self.leader.leader_epoch, snapshot_id, content.size)
            if part.error_code == _SNAPSHOT_DELETED or not self._check_response(part.error_code, part.leader):
                return None
            if part.snapshot_id != snapshot_id or part.position != content.size:
                raise WireError(
                    f"FetchSnapshot: found {part.snapshot_id.file_name} from byte {part.position}, "
                    f"expected {snapshot_id.file_name} from byte {content.size}"
                )
            content.append(part.content)
            if not content.size <= part.size <= SNAPSHOT_BYTES_MAX or not (part.content or content.size == part.size):
                raise WireError(
                    f"FetchSnapshot: found {counted(content.size, 'byte')} of {part.size:,}, expected more, "
                    f"and at most {SNAPSHOT_BYTES_MAX:,} in all"
                )
            if content.size == part.size:
                return content

    def _check_response(self, code: int, leader: QuorumLeader) -> bool:
        """Whether a response has no error. Update the leader, and disconnect from a node that does not lead."""
        error = error_of(code)
        if error in _REFUSALS:
            raise PermanentFailure(f"{_text(self._address)} refuses ({error.name}): ClusterAction is required")
        if error is ErrorCode.NONE:
            if leader.leader_epoch in (-1, self.leader.leader_epoch):
                known = leader if leader.leader_id >= 0 else self.leader
                self.leader = QuorumLeader(known.leader_id, self.leader.leader_epoch, known.addresses)
                return True
            error = ErrorCode.FENCED_LEADER_EPOCH
        if error not in _LEADER_ERRORS:
            raise WireError(f"found {error.name}, expected the metadata log")
        if leader.leader_epoch < self.leader.leader_epoch:  # The node has an older epoch or none.
            self.close()
            return False
        is_new = leader.leader_epoch > self.leader.leader_epoch
        self.leader = leader
        if leader.address is None:
            if not is_new:
                self.close()
        elif leader.address != self._address:
            self.close()
            self._address = leader.address
        return False

    def _connected(self) -> NodeConnection:
        """The connection to the known leader, else to the next bootstrap server."""
        if self._node is None:
            address = self._address or self._servers[self._next_server % len(self._servers)]
            self._next_server += self._address is None
            self._address = address
            self._node = self._connect(address)
            if self._node.version(FETCH_SNAPSHOT) is None:
                self._node = self._connect_through_broker(self._node)
            self.cluster_id = self.cluster_id or cluster_id(self._node)
        return self._node

    def _describe_quorum(self, leader: NodeConnection) -> None:
        """Read the voters, and add the controllers that DescribeQuorum names to the servers to try. The client may not
        be authorized for it."""
        self._is_described = True
        if leader.version(DESCRIBE_QUORUM) is None:
            return
        with suppress(WireError):
            quorum = describe_quorum(leader)
            self.voters = quorum.voters
            for address in quorum.addresses.values():
                if address not in self._servers and len(self._servers) < SERVERS_MAX:
                    self._servers.append(address)

    def _connect_through_broker(self, broker: NodeConnection) -> NodeConnection:
        """A connection to the leader that a broker names: brokers do not serve the metadata log themselves."""
        where = _text(self._address)
        try:
            leader = describe_quorum(broker)
        finally:
            self.close()
        if leader.address is None:
            raise PermanentFailure(f"{where} is the listener of a broker, which does not serve the metadata log")
        self._address = leader.address
        try:
            return self._connect(leader.address)
        except OSError as error:
            raise ConnectionError(
                f"broker {where} names leader {leader.leader_id}, which does not answer ({error})"
            ) from error


def _text(address: Address | None) -> str:
    return "no address" if address is None else f"{address[0]}:{address[1]}"
