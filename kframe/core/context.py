"""What every operation of the controller works with: the cluster, the settings, and ways to write, read and send."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Sequence
from dataclasses import replace
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from kframe import kernels
from kframe.core.event_log import EventLog, names_of
from kframe.core.request_batch import RequestBatch
from kframe.core.selectors.leader_selection import Selection
from kframe.core.state import stored_states
from kframe.core.state.acknowledgements import Acknowledgements
from kframe.core.state.deleting_replicas import Doomed
from kframe.core.state.metrics import Gauges
from kframe.core.state.replica_index import Hosts
from kframe.errors import BrokenInvariant
from kframe.model.asks import ReadStates, WriteStates
from kframe.model.changes import StateChange, WriteCode, WriteResult
from kframe.model.cluster import ClusterState
from kframe.model.columns import Bool, Int32, UInt8
from kframe.model.config import ControllerConfig
from kframe.model.effects import Ask, Effect, Send
from kframe.model.events import Answer, Done
from kframe.model.ids import NO_STATE, ElectionKind, PartitionState
from kframe.model.log_entries import Message
from kframe.model.requests import Occasion

Result = TypeVar("Result")
#: An operation under way: it yields effects, is sent their answers, and returns what it found out.
Operation: TypeAlias = Generator[Effect, Answer, Result]

#: How often one bulk change is planned anew because somebody else wrote the same states in between.
ATTEMPTS_MAX = 16
#: Partitions that one line names where a change of them was refused.
REFUSED_LOGGED = 10


def ask(effect: Ask[Result]) -> Operation[Result]:
    """Yield an effect and return its answer's value. Raises BrokenInvariant if it was answered by something else."""
    answer = yield effect
    if not isinstance(answer, Done):
        raise BrokenInvariant(f"{type(effect).__name__} was answered by {type(answer).__name__}")
    value: Result = answer.value
    return value


class Context:
    """The state that the operations of one controller share. Cleared on resignation by making a new one."""

    def __init__(
        self,
        cluster: ClusterState,
        config: ControllerConfig,
        selection: Selection,
        controller_id: int,
        controller_epoch: int,
        counters: Counter[str] | None = None,
        log: EventLog | None = None,
    ) -> None:
        """``counters`` and ``log`` are those of the controller across its times in office."""
        self.cluster = cluster
        self.config = config
        self.selection = selection
        self.controller_id = controller_id
        self.controller_epoch = controller_epoch
        self.counters: Counter[str] = Counter() if counters is None else counters
        """Meters by Kafka's name, such as UncleanLeaderElectionsPerSec."""
        self.doomed = Doomed(cluster)
        self.gauges = Gauges(cluster, self.doomed)
        self.hosts = Hosts(cluster)
        self.moves: dict[int, tuple[int, ...]] = {}
        """Replicas (ids) that a row is moving to, under ``reassignment.protocol=0.8``."""
        self.lost_dirs: set[tuple[int, int]] = set()
        """(row, broker index) of unassigned replicas that are on dead log directories (``lost_dirs.py``)."""
        self.granted_shutdowns: set[int] = set()
        """Registered brokers (indexes) whose last controlled shutdown request was granted."""
        self.went_in_order: set[int] = set()
        """Brokers (indexes) that went last after a granted controlled shutdown, in this time in office."""
        self.unvouched: set[int] = set()
        """Brokers (indexes) whose logs may lack what they had (``last_replica_hold.py``)."""
        self.unsaved: set[str] = set()
        """Topics whose assignment storage did not take: it is stored once their record can be read again."""
        self.unread_marked: set[str] = set()
        """Topics that are marked for deletion, exist, and could not be read so far."""
        self.unclean_by_default = config.unclean_by_default
        """The brokers' default, as it is set now."""
        self.foreseen: StateChange | None = None
        """What will be written behind the next write, whatever comes of that."""
        self.waiters: dict[int, Any] = {}
        """Callers who are answered later, by a number of our own (``waiting.Waiter``)."""
        self.waiters_seen = 0
        self.acknowledgements = Acknowledgements()
        self.log = EventLog() if log is None else log
        """What is reported for the logs."""
        self.log.controller_epoch = controller_epoch

    def batch(self, occasion: Occasion = Occasion.OTHER) -> RequestBatch:
        """An empty batch."""
        return RequestBatch(self.cluster, occasion)

    def send(self, batch: RequestBatch) -> Operation[None]:
        """Hand a batch to the transport, unless there is nothing in it for anybody."""
        requests = batch.close(self.controller_id, self.controller_epoch)
        if requests.empty:
            return
        requests = replace(requests, batch=self.acknowledgements.next_batch)
        if (yield from ask(Send(requests))):
            self.acknowledgements.sent(requests.metadata_brokers, requests.batch)

    def announce(
        self, told: NDArray[Any], rows: Int32 | None = None, occasion: Occasion = Occasion.OTHER
    ) -> Operation[None]:
        """UpdateMetadata with all registered brokers, and with the metadata of ``rows``, to the brokers ``told``."""
        batch = self.batch(occasion)
        batch.add_metadata(told, np.empty(0, np.int32) if rows is None else rows)
        yield from self.send(batch)

    def registered(self) -> Int32:
        """Indexes of the brokers that are registered, shutting down or not."""
        return np.flatnonzero(self.cluster.brokers.registered).astype(np.int32)

    def told_rows(self) -> Int32:
        """Rows that have a state, those of topics queued for deletion left out."""
        topics, p = self.cluster.topics, self.cluster.partitions
        kept = np.append(topics.deleting == 0, False)[p.topic]
        return np.flatnonzero((p.partition_epoch != NO_STATE) & kept).astype(np.int32)

    def mask(self, indexes: NDArray[Any]) -> UInt8:
        """1 at the given broker indexes."""
        chosen = np.zeros(len(self.cluster.brokers), np.uint8)
        chosen[indexes] = 1
        return chosen

    def write(self, change: StateChange) -> Operation[WriteResult]:
        """Store a change and take over the rows that storage accepted. What is foreseen goes with it."""
        if len(change) == 0:
            return WriteResult(np.empty(0, np.uint8), np.empty(0, np.int32))
        foreseen, self.foreseen = self.foreseen, None
        result = yield from ask(WriteStates(change, foreseen))
        accepted = result.accepted
        self.gauges.touch(change.rows)
        if accepted.all():
            stored_states.apply(self.cluster, change, result.partition_epoch)
        else:
            stored_states.apply(self.cluster, change.take(accepted), result.partition_epoch[accepted])
        return result

    def refresh(self, rows: Int32) -> Operation[tuple[Int32, Bool]]:
        """Read ``rows`` again and take over what storage has.

        Returns the rows that a plan may be made for (they have a state, and no later controller has written it) and a
        mask of those among them whose state is another one than we knew.
        """
        if len(rows) == 0:
            return rows, np.empty(0, np.bool_)
        states = yield from ask(ReadStates(rows))
        usable = states.found & (states.controller_epoch <= self.controller_epoch)
        moved = states.partition_epoch != self.cluster.partitions.partition_epoch[rows]
        stored_states.reload(self.cluster, states)
        self.gauges.touch(rows)
        return rows[usable], moved[usable]

    def forget_topics(self, indexes: Sequence[int]) -> None:
        """These topics are gone from storage."""
        self.gauges.touch_topics(indexes)
        self.unsaved.difference_update(self.cluster.topics.names[index] for index in indexes)
        self.cluster.drop_topics(np.array(indexes, np.int32))

    def choose(self, kind: ElectionKind, rows: Int32, unclean_allowed: UInt8) -> Int32:
        """The leader of each row by the selector in charge, NO_LEADER where it finds none."""

        def built_in(chosen: Int32) -> Int32:
            allowed = unclean_allowed if chosen is rows else unclean_allowed[np.isin(rows, chosen)]
            return self.built_in(kind, chosen, allowed)

        return self.selection.choose(self.cluster, kind, rows, unclean_allowed, built_in)

    def log_refused(self, kind: str, rows: Sequence[int] | NDArray[Any], reason: str) -> None:
        """Report rows that were not changed."""
        if len(rows):
            names = names_of(self.cluster, np.asarray(rows), REFUSED_LOGGED)
            self.log.add(Message.REFUSED, kind=kind, partitions=names, reason=reason)

    def log_failed(self, rows: Int32, target: PartitionState, reason: str) -> None:
        """Report partitions that could not change their state (Kafka 3.9 ``logFailedStateChange``)."""
        self.log.add_failed(Message.PARTITION_FAILED, self.cluster, rows, target=target, reason=reason)

    def built_in(self, kind: ElectionKind, rows: Int32, unclean_allowed: UInt8) -> Int32:
        """The leader of each row by Kafka's own rule, NO_LEADER where it finds none."""
        p = self.cluster.partitions
        leader = np.empty(len(rows), np.int32)
        kernels.choose_leaders(
            int(kind), rows, p.slot_start, p.replica_count, p.isr_count, p.replica, p.isr, p.replica_flags,
            self.cluster.brokers.live, unclean_allowed, leader,
        )  # fmt: skip
        return leader


def stale(result: WriteResult) -> Bool:
    """Mask of the rows that somebody else has written since we read them."""
    raced: Bool = result.codes == WriteCode.STALE
    return raced
