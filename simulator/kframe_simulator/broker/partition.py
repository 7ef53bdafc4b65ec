"""A partition on one broker: leader or follower, ISR, high watermark (Kafka 3.9 ``Partition``)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

from kframe.errors import ErrorCode
from kframe.model.events import TopicPartition
from kframe.model.ids import RecoveryState
from kframe_simulator.broker.log import Log
from kframe_simulator.broker.messages import UNDEFINED, LeaderState
from kframe_simulator.broker.node import Node
from kframe_simulator.broker.outgoing import AlteredPartition
from kframe_simulator.broker.replica import Replica

#: After these errors the proposal was not applied, and the next trigger proposes again.
_REVERT: Final = (ErrorCode.OPERATION_NOT_ATTEMPTED, ErrorCode.INELIGIBLE_REPLICA)
#: After these errors the proposal stays pending until a LeaderAndIsr with a new leader epoch.
_AWAIT: Final = (
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.INVALID_UPDATE_VERSION,
    ErrorCode.INVALID_REQUEST,
)


@dataclass(frozen=True, slots=True, eq=False)
class PendingIsr:
    """A proposed ISR without a response yet, and the state at the time of the proposal."""

    isr: tuple[int, ...]
    maximal_isr: tuple[int, ...]
    leader_epoch: int
    partition_epoch: int


Submit: TypeAlias = Callable[["Partition", PendingIsr], None]
"""Submits a proposal; ``Partition.on_isr_response`` receives the outcome."""


class Partition:
    """Partition state as in ``broker-partition.md`` section 1. Without ``log`` it has no role yet."""

    __slots__ = (
        "_node",
        "_submit",
        "controller_epoch",
        "epoch_start",
        "isr",
        "key",
        "leader",
        "leader_epoch",
        "log",
        "on_progress",
        "partition_epoch",
        "pending",
        "recovery",
        "replica_ids",
        "replicas",
    )

    def __init__(self, key: TopicPartition, node: Node, submit: Submit) -> None:
        self.key = key
        self._node = node
        self._submit = submit
        self.leader_epoch = UNDEFINED
        self.partition_epoch = 0
        self.controller_epoch = 0
        """Controller epoch of the last decision."""
        self.leader: int | None = None
        self.epoch_start: int | None = None
        """Start offset of the current leader epoch. Set on the leader only."""
        self.isr: tuple[int, ...] = ()
        """The committed ISR. Set on the leader only."""
        self.recovery = int(RecoveryState.RECOVERED)
        self.pending: PendingIsr | None = None
        self.replica_ids: tuple[int, ...] = ()
        self.replicas: dict[int, Replica] = {}
        """The followers, on the leader."""
        self.log: Log | None = None
        self.on_progress: list[Callable[[float], bool]] = []
        """Callbacks that run when the high watermark may have risen, or the role changes. A callback that
        returns True is removed."""

    # -- Properties.

    @property
    def is_leader(self) -> bool:
        """Whether this broker leads it."""
        return self.leader == self._node.broker_id

    @property
    def leader_log(self) -> Log | None:
        """The log, if this broker leads."""
        return self.log if self.leader == self._node.broker_id else None

    @property
    def maximal_isr(self) -> tuple[int, ...]:
        """The replicas that the high watermark waits for: the committed ISR, and a replica whose addition is
        pending."""
        return self.isr if self.pending is None else self.pending.maximal_isr

    @property
    def effective_min_isr(self) -> int:
        """min.insync.replicas, limited to the number of replicas."""
        node = self._node
        configured = node.min_insync.get(self.key[0], node.config.min_insync_replicas)
        return min(configured, len(self.replicas) + 1)

    @property
    def under_min_isr(self) -> bool:
        """Whether this broker leads with an ISR smaller than min.insync.replicas."""
        return self.leader_log is not None and len(self.isr) < self.effective_min_isr

    def check_leader_epoch(self, leader_epoch: int) -> ErrorCode:
        """The error for the leader epoch of a request. -1 is not checked."""
        if leader_epoch in (UNDEFINED, self.leader_epoch):
            return ErrorCode.NONE
        return ErrorCode.FENCED_LEADER_EPOCH if leader_epoch < self.leader_epoch else ErrorCode.UNKNOWN_LEADER_EPOCH

    # -- Roles that the controller assigns.

    def make_leader(self, state: LeaderState, topic_id: bytes, now: float) -> bool:
        """Become leader. Returns whether this broker was not leader before. A state with an older partition epoch than
        the last AlterPartition response is ignored. Raises StorageError."""
        if state.partition_epoch < self.partition_epoch:
            return False
        newly_leader = not self.is_leader
        self.controller_epoch = state.controller_epoch
        self.replica_ids = state.replicas
        followers = [replica_id for replica_id in state.replicas if replica_id != self._node.broker_id]
        self.replicas = {follower_id: self.replicas.get(follower_id) or Replica() for follower_id in followers}
        self.isr, self.recovery, self.pending = state.isr, int(RecoveryState.RECOVERED), None
        self.log = log = self._node.disks.get_or_create(self.key, state.is_new, topic_id)
        if state.leader_epoch > self.leader_epoch:
            self.epoch_start = log.end
            log.begin_epoch(state.leader_epoch, log.end)
            for follower, replica in self.replicas.items():
                replica.reset(now, log.end, newly_leader, follower in state.isr)
            self.leader_epoch = state.leader_epoch
        self.partition_epoch, self.leader = state.partition_epoch, self._node.broker_id
        self.advance(now)
        return newly_leader

    def make_follower(self, state: LeaderState, topic_id: bytes, now: float) -> bool:
        """Become follower. Returns whether to restart fetching, which every new leader epoch requires. Raises
        StorageError."""
        if state.partition_epoch < self.partition_epoch:
            return False
        new_epoch = state.leader_epoch > self.leader_epoch
        self.controller_epoch = state.controller_epoch
        self.leader, self.leader_epoch, self.epoch_start = state.leader, state.leader_epoch, None
        self.partition_epoch = state.partition_epoch
        self.replicas, self.replica_ids = {}, state.replicas
        self.isr, self.recovery, self.pending = (), state.recovery, None
        self.log = self._node.disks.get_or_create(self.key, state.is_new, topic_id)
        if new_epoch:
            self.progress(now)
        return new_epoch

    def create_log(self, is_new: bool, topic_id: bytes) -> None:
        """Create the log only: the leader of this follower is not live. Raises StorageError."""
        self.log = self._node.disks.get_or_create(self.key, is_new, topic_id)

    def clear(self, now: float) -> None:
        """Clear all but the epochs: the replica was deleted, or its log directory failed."""
        self.replicas, self.replica_ids = {}, ()
        self.log, self.leader, self.epoch_start = None, None, None
        self.isr, self.recovery, self.pending = (), int(RecoveryState.RECOVERED), None
        self.progress(now)

    # -- High watermark.

    def advance(self, now: float) -> bool:
        """Raise a leader's high watermark to the offset that all required replicas have reached: the maximal ISR, and
        caught-up followers that may join. Returns whether it rose."""
        log, config = self.leader_log, self._node.config
        if log is None or (config.high_watermark_waits_for_min_isr and len(self.isr) < self.effective_min_isr):
            return False
        leader_end = candidate = log.end
        maximal, lag_max = self.maximal_isr, config.replica_lag_time_max_ms
        for follower, replica in self.replicas.items():
            if replica.end < candidate and (
                follower in maximal
                or (replica.caught_up(leader_end, now, lag_max) and follower in self._node.cache.live_brokers)
            ):
                candidate = replica.end
        if candidate <= log.high_watermark:
            return False
        log.high_watermark = candidate
        self.progress(now)
        return True

    def progress(self, now: float) -> None:
        """Call the progress callbacks."""
        if self.on_progress:
            self.on_progress = [callback for callback in self.on_progress if not callback(now)]

    # -- ISR.

    def fetched(self, follower: int, offset: int, leader_end: int, now: float) -> None:
        """Record that a follower has fetched at ``offset`` when the log ended at ``leader_end``."""
        replica = self.replicas[follower]
        before = replica.end
        replica.fetched(offset, leader_end, now)
        self._maybe_expand(follower, replica)
        if offset != before:
            self.advance(now)

    def _maybe_expand(self, follower: int, replica: Replica) -> None:
        log = self.leader_log
        if self.pending is not None or follower in self.isr or follower not in self._node.cache.live_brokers:
            return
        if log is None or self.epoch_start is None or replica.end < max(log.high_watermark, self.epoch_start):
            return
        expanded = (*self.isr, follower)
        self._propose(PendingIsr(expanded, expanded, self.leader_epoch, self.partition_epoch))

    def shrink(self, now: float) -> None:
        """Propose to remove lagging replicas from the ISR."""
        log = self.leader_log
        if log is None or self.pending is not None:
            return
        lag_max, own_id = self._node.config.replica_lag_time_max_ms, self._node.broker_id
        lagging = [
            member
            for member in self.isr
            if member != own_id
            and (member not in self.replicas or not self.replicas[member].caught_up(log.end, now, lag_max))
        ]
        if lagging:
            shrunk = tuple(member for member in self.isr if member not in lagging)
            self._propose(PendingIsr(shrunk, self.isr, self.leader_epoch, self.partition_epoch))

    def _propose(self, pending: PendingIsr) -> None:
        self.pending = pending
        self._submit(self, pending)

    def on_isr_response(self, pending: PendingIsr, response: AlteredPartition, now: float) -> None:
        """Apply the outcome of a proposal. It is ignored if a LeaderAndIsr came in between."""
        if self.pending is not pending:
            return
        if response.error is not ErrorCode.NONE:
            if response.error in _REVERT:
                self.pending = None
            elif response.error not in _AWAIT:
                self._submit(self, pending)
            return
        if response.leader_epoch != self.leader_epoch or response.partition_epoch < self.partition_epoch:
            return
        self.isr, self.recovery, self.pending = response.isr, response.recovery, None
        self.partition_epoch = response.partition_epoch
        self.advance(now)
