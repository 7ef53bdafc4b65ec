"""State that all operations of an active controller share, and their access to storage and brokers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Sequence
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from kframe.core.event_log import EventLog, names_of
from kframe.core.request_batch import RequestBatch
from kframe.core.selectors.leader_selection import Selection
from kframe.core.state import stored_states
from kframe.core.state.metrics import Gauges
from kframe.core.state.replica_index import ReplicaIndex
from kframe.core.state.term import TermState
from kframe.errors import BrokenInvariant, ControllerFenced
from kframe.model.arrays import Bool, Int32, UInt8
from kframe.model.changes import StateChange, StoredStates, WriteCode, WriteResult
from kframe.model.cluster import ClusterState
from kframe.model.config import ControllerConfig
from kframe.model.effects import Ask, Effect, Send
from kframe.model.events import Done, EffectResult, LeaderAndIsrResponseReceived, StopReplicaResponseReceived
from kframe.model.ids import NO_BROKER_EPOCH, NO_STATE, PartitionState
from kframe.model.log_entries import Message
from kframe.ports.store_requests import ReadController, ReadStates, WriteStates

Result = TypeVar("Result")
#: A running operation. It yields effects, receives their results, and returns its result.
Operation: TypeAlias = Generator[Effect, EffectResult, Result]

#: Attempts of one bulk change while other writers change the same states.
ATTEMPTS_MAX = 16
#: Partitions that one log line names when their change is refused.
REFUSED_LOGGED = 10


def ask(effect: Ask[Result]) -> Operation[Result]:
    """Yield an effect and return the value of its result. Raises BrokenInvariant for any result but Done."""
    result = yield effect
    if not isinstance(result, Done):
        raise BrokenInvariant(f"{type(effect).__name__} ended with {type(result).__name__}")
    value: Result = result.value
    return value


class Context:
    """The state of one controller term. A resignation discards it (Kafka 3.9 ``ControllerContext``)."""

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
        """``counters`` and ``log`` belong to the controller and outlive the term."""
        self.cluster = cluster
        self.config = config
        self.selection = selection
        self.controller_id = controller_id
        self.controller_epoch = controller_epoch
        self.counters: Counter[str] = Counter() if counters is None else counters
        """Meters by Kafka's name, such as UncleanLeaderElectionsPerSec."""
        self.log = EventLog() if log is None else log
        self.log.controller_epoch = controller_epoch
        self.gauges = Gauges(cluster)
        self.replica_index = ReplicaIndex(cluster)
        self.term = TermState(config.unclean_by_default)

    def batch(self) -> RequestBatch:
        """An empty batch of requests."""
        return RequestBatch(self.cluster)

    def send(self, batch: RequestBatch) -> Operation[None]:
        """Pass a batch to the transport, unless it is empty."""
        acknowledgements = self.term.acknowledgements
        requests = batch.close(self.controller_id, self.controller_epoch, acknowledgements.next_batch)
        if not requests.empty and (yield from ask(Send(requests))):
            acknowledgements.sent(requests.metadata_brokers, requests.batch)

    def announce(self, brokers: NDArray[Any], rows: Int32 | None = None) -> Operation[None]:
        """Send UpdateMetadata with all registered brokers, and the metadata of ``rows``, to ``brokers`` (indexes)."""
        batch = self.batch()
        batch.add_metadata(brokers, np.empty(0, np.int32) if rows is None else rows)
        yield from self.send(batch)

    def registered(self) -> Int32:
        """Indexes of the registered brokers, including those that are shutting down."""
        return np.flatnonzero(self.cluster.brokers.registered).astype(np.int32)

    def announced_rows(self) -> Int32:
        """Rows that have a state and whose topic is not queued for deletion."""
        topics, p = self.cluster.topics, self.cluster.partitions
        announced = p.partition_epoch != NO_STATE
        if topics.deleting.any() or (p.topic < 0).any():  # else no topic lookup is necessary
            announced &= np.append(topics.deleting == 0, False)[p.topic]
        return np.flatnonzero(announced).astype(np.int32)

    def mask(self, indexes: NDArray[Any]) -> UInt8:
        """A mask (brokers,) that is 1 at these broker indexes."""
        chosen = np.zeros(len(self.cluster.brokers), np.uint8)
        chosen[indexes] = 1
        return chosen

    def write(self, change: StateChange, following: StateChange | None = None) -> Operation[WriteResult]:
        """Store ``change``, and apply to the columns the rows that storage accepted.

        ``following`` is a change that a later write will contain for any result of this one. The store may
        send it behind ``change`` at once (``WriteStates.following``).
        """
        if len(change) == 0:
            return WriteResult(np.empty(0, np.uint8), np.empty(0, np.int32))
        result = yield from ask(WriteStates(self.cluster, change, following))
        accepted, partition_epoch = result.accepted, result.partition_epoch
        if not accepted.all():
            change, partition_epoch = change.take(accepted), partition_epoch[accepted]
        self.gauges.touch_leaders(change.rows[stored_states.apply(self.cluster, change, partition_epoch)])
        return result

    def refresh(self, rows: Int32) -> Operation[tuple[Int32, Bool]]:
        """Read the states of ``rows`` from storage into the columns.

        Returns the rows that may be planned again: they have a state, and no later controller has written it. The mask
        beside them marks states that differ from what the controller knew.
        """
        if len(rows) == 0:
            return rows, np.empty(0, np.bool_)
        known = self.cluster.partitions.partition_epoch[rows]
        states = yield from self.read_states(rows)
        usable = states.may_be_changed_in(self.controller_epoch)
        return rows[usable], (states.partition_epoch != known)[usable]

    def read_states(self, rows: Int32) -> Operation[StoredStates]:
        """Read the states of ``rows`` from storage into the columns, and return them."""
        states = yield from ask(ReadStates(self.cluster, rows))
        stored_states.reload(self.cluster, states)
        self.gauges.touch_leaders(rows)
        return states

    def is_current(self, response: LeaderAndIsrResponseReceived | StopReplicaResponseReceived) -> bool:
        """Whether a response is from this term and from the last registration of its broker.

        A response may wait behind the event that opens the channel of a new registration. Kafka handles it (3.9
        ``processLeaderAndIsrResponseReceived``). The earlier log directories and deletions do not concern the new one.
        """
        index = self.cluster.brokers.find(response.broker_id)
        if index is None or response.controller_epoch != self.controller_epoch:
            return False
        return response.broker_epoch in (NO_BROKER_EPOCH, int(self.cluster.brokers.broker_epoch[index]))

    def confirm_role(self) -> Operation[None]:
        """Ask storage whether this controller still has the role. Raises ControllerFenced if it has not."""
        holder = yield from ask(ReadController())
        if not holder.ours:
            raise ControllerFenced(
                f"the active controller: found {holder.controller_id}, expected {self.controller_id} of this session"
            )

    def forget_topics(self, indexes: Sequence[int]) -> None:
        """Remove topics that storage does not have any more."""
        self.gauges.touch_topics(indexes)
        self.term.unsaved_topics.difference_update(self.cluster.topics.names[index] for index in indexes)
        self.cluster.drop_topics(np.array(indexes, np.int32))

    def log_refused(self, kind: str, rows: Sequence[int] | NDArray[Any], reason: str) -> None:
        """Report rows that were not changed."""
        if len(rows):
            names = names_of(self.cluster, np.asarray(rows), REFUSED_LOGGED)
            self.log.add(Message.REFUSED, kind=kind, partitions=names, reason=reason)

    def log_failed(self, rows: Int32, target: PartitionState, reason: str) -> None:
        """Report partitions whose state transition failed. See Kafka 3.9 ``logFailedStateChange``."""
        self.log.add_failed(Message.PARTITION_FAILED, self.cluster, rows, target=target, reason=reason)


def stale(result: WriteResult) -> Bool:
    """Mask of the rows that another writer has changed since the controller read them."""
    mask: Bool = result.codes == WriteCode.STALE
    return mask
