"""The replicas of a broker and the control requests that change them (Kafka 3.9 ``ReplicaManager``)."""

from __future__ import annotations

from kframe.errors import ErrorCode
from kframe.model.events import TopicPartition
from kframe.model.ids import EPOCH_DURING_DELETE, NO_EPOCH
from kframe_simulator.broker.disks import StorageError
from kframe_simulator.broker.fetcher import Fetcher
from kframe_simulator.broker.messages import (
    NO_ID,
    UNDEFINED,
    ControlResponse,
    LeaderAndIsr,
    LeaderState,
    Stop,
    StopReplica,
    UpdateMetadata,
)
from kframe_simulator.broker.node import Node
from kframe_simulator.broker.outgoing import NotifyLogDirFailure, Peer
from kframe_simulator.broker.partition import Partition
from kframe_simulator.broker.proposals import AlterPartitions, Proposals, StoredIsrs


class Replicas:
    """The replicas of one broker process."""

    def __init__(self, node: Node, now: float) -> None:
        self.node = node
        self.controller_epoch = 0
        """The highest controller epoch received."""
        self.partitions: dict[TopicPartition, Partition] = {}
        self.offline: set[TopicPartition] = set()
        """Partitions whose log directory failed."""
        self.fetcher = Fetcher(node)
        self.proposals: Proposals = (
            AlterPartitions(node) if node.config.protocol.alter_partition else StoredIsrs(node, now)
        )
        self.shutting_down = False

    def find(self, key: TopicPartition) -> Partition | ErrorCode:
        """A hosted partition, or the error for requests about it."""
        partition = self.partitions.get(key)
        if partition is not None:
            return partition
        if key in self.offline:
            return ErrorCode.KAFKA_STORAGE_ERROR
        known = key in self.node.cache.partitions
        return ErrorCode.NOT_LEADER_OR_FOLLOWER if known else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    def _stale(self, request: LeaderAndIsr | UpdateMetadata | StopReplica) -> ErrorCode:
        """The error if a request is for an earlier registration or from an earlier controller. Any other request comes
        from the current controller."""
        if UNDEFINED != request.broker_epoch < self.node.broker_epoch:
            return ErrorCode.STALE_BROKER_EPOCH
        if request.controller_epoch < self.controller_epoch:
            return ErrorCode.STALE_CONTROLLER_EPOCH
        self.controller_epoch = request.controller_epoch
        return ErrorCode.NONE

    # -- LeaderAndIsr.

    def leader_and_isr(self, request: LeaderAndIsr, now: float) -> ControlResponse:
        """Apply LeaderAndIsr (``docs/reference/controller/broker-partition.md`` section 2)."""
        if (error := self._stale(request)) is not ErrorCode.NONE:
            return ControlResponse(error)
        errors: dict[TopicPartition, ErrorCode] = {}
        leaders: list[tuple[Partition, LeaderState]] = []
        followers: list[tuple[Partition, LeaderState]] = []
        for key, state in request.partitions.items():
            if key in self.offline:
                errors[key] = ErrorCode.KAFKA_STORAGE_ERROR
                continue
            partition = self.partitions.get(key)
            if partition is None:
                partition = self.partitions[key] = Partition(key, self.node, self.proposals.submit)
            errors[key] = self._check_state(partition, state, request.topic_ids.get(key[0], NO_ID))
            if errors[key] is ErrorCode.NONE and state.leader_epoch > partition.leader_epoch:
                (leaders if state.leader == self.node.broker_id else followers).append((partition, state))
        for partition, _ in leaders:
            self.fetcher.stop(partition.key)
        for partition, state in leaders:
            topic_id = request.topic_ids.get(partition.key[0], NO_ID)
            try:
                partition.make_leader(state, topic_id, now)
            except StorageError:
                errors[partition.key] = self._mark_offline(partition.key, now)
        for partition, state in followers:
            topic_id = request.topic_ids.get(partition.key[0], NO_ID)
            try:
                self._follow(partition, state, topic_id, now)
            except StorageError:
                errors[partition.key] = self._mark_offline(partition.key, now)
        return ControlResponse(ErrorCode.NONE, errors)

    def _check_state(self, partition: Partition, state: LeaderState, topic_id: bytes) -> ErrorCode:
        """The error code for one partition of a request. After NONE with a later leader epoch the caller applies the
        state."""
        log = partition.log or self.node.disks.logs.get(partition.key)
        log_id = NO_ID if log is None else log.topic_id
        if topic_id != NO_ID and log_id not in (NO_ID, topic_id):
            return ErrorCode.INCONSISTENT_TOPIC_ID
        if state.leader_epoch > partition.leader_epoch:
            hosted = self.node.broker_id in state.replicas
            return ErrorCode.NONE if hosted else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if state.leader_epoch == partition.leader_epoch:
            follows = state.leader != self.node.broker_id
            if topic_id != NO_ID and log_id == NO_ID and log is not None:
                log.topic_id = topic_id
                if follows:
                    self.fetcher.name_topic(partition.key, topic_id)
                return ErrorCode.NONE
            if topic_id == NO_ID and log_id != NO_ID and follows:
                self.fetcher.name_topic(partition.key, NO_ID)
                return ErrorCode.NONE
        return ErrorCode.STALE_CONTROLLER_EPOCH

    def _follow(self, partition: Partition, state: LeaderState, topic_id: bytes, now: float) -> None:
        """If the leader is not known to be live, keep the state. This includes the leader epoch."""
        if state.leader not in self.node.cache.live_brokers:
            partition.create_log(state.is_new, topic_id)
            return
        if not partition.make_follower(state, topic_id, now) or partition.log is None:
            return
        self.fetcher.stop(partition.key)
        if not self.shutting_down:
            self.fetcher.follow(partition.key, partition.log, state.leader, state.leader_epoch, topic_id, now)

    # -- UpdateMetadata and StopReplica.

    def update_metadata(self, request: UpdateMetadata, now: float) -> ControlResponse:
        """Update live brokers and leaders."""
        error = self._stale(request)
        if error is ErrorCode.NONE:
            self.node.cache.update(request)
        return ControlResponse(error)

    def stop_replicas(self, request: StopReplica, now: float) -> ControlResponse:
        """Stop following, and delete replicas (``docs/reference/controller/broker-partition.md`` section 10)."""
        if (error := self._stale(request)) is not ErrorCode.NONE:
            return ControlResponse(error)
        errors = {key: self._stop(key, item, now) for key, item in request.partitions.items()}
        return ControlResponse(ErrorCode.NONE, errors)

    def _stop(self, key: TopicPartition, stop: Stop, now: float) -> ErrorCode:
        if key in self.offline:
            return ErrorCode.KAFKA_STORAGE_ERROR
        partition = self.partitions.get(key)
        if partition is not None:
            unchecked = stop.leader_epoch in (EPOCH_DURING_DELETE, NO_EPOCH)
            if not unchecked and stop.leader_epoch < partition.leader_epoch:
                return ErrorCode.FENCED_LEADER_EPOCH
        self.fetcher.stop(key)
        if stop.delete:
            if partition is not None:
                del self.partitions[key]
                partition.clear(now)
            self.node.disks.delete(key)  # A log in a failed directory stays there, and the response does not say so.
        elif partition is not None:
            partition.progress(now)
        return ErrorCode.NONE

    # -- Log directories.

    def fail_log_dir(self, log_dir: str, now: float) -> bool:
        """Fail a directory: its partitions go offline, and storage gets a notification for the controller. Returns
        whether another directory is left."""
        for key in self.node.disks.fail(log_dir):
            if key in self.partitions:
                self._mark_offline(key, now)
        if not any(self.node.disks.alive.values()):
            return False
        self.node.send(Peer.STORE, 0, NotifyLogDirFailure(self.node.broker_id))
        return True

    def fail_log(self, key: TopicPartition, now: float) -> None:
        """Make the log of one partition unreadable."""
        self.node.disks.lose(key)
        if key in self.partitions:
            self._mark_offline(key, now)

    def _mark_offline(self, key: TopicPartition, now: float) -> ErrorCode:
        self.fetcher.stop(key)
        self.offline.add(key)
        self.partitions.pop(key).clear(now)
        return ErrorCode.KAFKA_STORAGE_ERROR
