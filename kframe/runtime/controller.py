"""The API of a running controller for programs that embed it."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import Any, TypeVar

import numpy as np

# ``numpy.unique`` imports it at its first call, which would be in the middle of a failover.
import numpy.ma

from kframe.core.operations.features import FeaturesResponse
from kframe.core.operations.producer_ids import ProducerIdsResponse
from kframe.model import events
from kframe.model.admin import ConfigChange, FeatureUpdate, NewPartitions, NewTopic
from kframe.model.arrays import Int64, Ragged
from kframe.model.cluster import ClusterState
from kframe.model.events import ElectionType, Event, TopicPartition
from kframe.model.ids import NO_BROKER_EPOCH, RecoveryState
from kframe.model.tables import RequestedPartitions, Targets
from kframe.ports.server import MeasuredServer, Server
from kframe.ports.store import Store
from kframe.ports.transport import Transport
from kframe.runtime import results
from kframe.runtime.loop import ControllerLoop
from kframe.runtime.results import AlteredPartitions, Codes, PartitionCodes, Reassignments, RemainingPartitions
from kframe.runtime.status import Status

Result = TypeVar("Result")

#: Default timeout of requests to create or delete topics.
TOPIC_TIMEOUT_MS = 30_000
#: The version of AlterPartition that brokers of Kafka 3.9 send.
ALTER_PARTITION_VERSION = 3
#: The cluster of responses of an inactive controller.
_NO_CLUSTER = ClusterState()


@dataclass(frozen=True, slots=True)
class IsrProposal:
    """The ISR (broker ids) that the leader of a partition proposes. The topic is a name or a topic id."""

    topic: str | bytes
    partition: int
    leader_epoch: int
    partition_epoch: int
    isr: tuple[int, ...]
    recovery: RecoveryState = RecoveryState.RECOVERED
    isr_epochs: tuple[int, ...] | None = None
    """The broker epoch of each member of the ISR, -1 where unknown. None if the request has none."""


class Controller:
    """A controller with its store, transport and event queue. ``ControllerBuilder`` makes it.

    It runs in its own thread, from ``start`` to ``stop`` or as a context manager::

        with ControllerBuilder(1000, store=..., transport=...).build() as controller:
            controller.elect_leaders(ElectionType.PREFERRED).result(timeout=30)

    Or the program calls ``open``, then ``run_until_idle`` after each change. It calls ``stop`` at the end. A controller
    starts once; after ``stop`` it answers NOT_CONTROLLER.

    Requests are thread-safe and return a future at once. Every future completes. Errors of Kafka's protocol are
    results; an exception is a defect of kframe or a plugin. Do not wait for a future in the controller's own thread,
    which runs the store, the transport, selectors, observers and callbacks of futures.
    """

    def __init__(self, loop: ControllerLoop, servers: Sequence[Server[Controller]] = ()) -> None:
        self._loop = loop
        self._servers = tuple(servers)

    # -- lifecycle

    @property
    def store(self) -> Store:
        """The store of this controller."""
        return self._loop.store

    @property
    def transport(self) -> Transport:
        """The transport of this controller."""
        return self._loop.transport

    @property
    def servers(self) -> tuple[Server[Controller], ...]:
        """The servers of this controller."""
        return self._servers

    def open(self, *, takeover: bool = False) -> None:
        """Open the store, start the servers, and open the transport. Then queue the election.

        Servers start after the store, because they read ACLs and credentials from it. ``takeover`` takes the role also
        from an active controller, once. If a server cannot start, its exception is raised and everything is closed.
        """
        with ExitStack() as started:
            self._loop.open_store()
            started.callback(self.store.close)
            for server in self._servers:
                server.start(self)
                started.callback(server.stop)
            self._loop.start_election(takeover=takeover)
            started.pop_all()

    def run_until_idle(self) -> int:
        """Handle all queued events and those that they cause; return their number. Not while a thread runs."""
        return self._loop.run_until_idle()

    def start(self, *, takeover: bool = False) -> None:
        """``open``, and handle events in a thread of its own until ``stop``."""
        self.open(takeover=takeover)
        self._loop.start()

    def stop(self) -> None:
        """Finish the current event, resign, and answer all pending requests. Then stop the servers, and close transport
        and store."""
        self._loop.finish()
        for server in self._servers:
            server.stop()
        self._loop.close()

    def __enter__(self) -> Controller:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    # -- status

    @property
    def running(self) -> bool:
        """Whether the thread of ``start`` handles events. Thread-safe."""
        return self._loop.running

    def status(self) -> Status:
        """The active controller and the gauges after the last event. Thread-safe."""
        return self._loop.status()

    def metrics(self) -> dict[str, float]:
        """Gauges, timers and meters by the names of Kafka's dashboards, and metrics of the servers. Thread-safe."""
        metrics = self._loop.metrics()
        for server in self._servers:
            if isinstance(server, MeasuredServer):
                metrics |= server.metrics()
        return metrics

    def inspect(self, read: Callable[[ClusterState | None], Result]) -> Future[Result]:
        """Call ``read`` in the controller's thread, between two events, with the cluster, or None if inactive.

        ``read`` must be quick, keep no array, and change nothing.
        """

        def inspect(active: bool) -> Result:
            return read(self._loop.controller.cluster if active else None)

        return self.submit(events.InspectionRequested, inspect)

    # -- requests of administrators

    def elect_leaders(
        self, election_type: ElectionType = ElectionType.PREFERRED, partitions: Sequence[TopicPartition] | None = None
    ) -> Future[PartitionCodes]:
        """Elect leaders for these partitions, or for all (ElectLeaders). The response for all partitions has only those
        that needed an election."""
        chosen = None if partitions is None else tuple(partitions)
        return self._ask(lambda token: events.ElectionRequested(election_type, chosen, token), results.read_election)

    def create_topics(
        self,
        topics: Sequence[NewTopic],
        *,
        timeout_ms: int = TOPIC_TIMEOUT_MS,
        validate_only: bool = False,
        start_index: int | None = None,
        shift: int | None = None,
    ) -> Future[Codes[str]]:
        """Create topics (CreateTopics). The future completes when all partitions have leaders and all live brokers have
        answered the UpdateMetadata of the topics, or after ``timeout_ms``; at once if that is 0 or less.

        After half of the timeout the response of a single broker is enough. Topics without leader, or unknown to all
        brokers at the timeout, get REQUEST_TIMED_OUT, but are created. ``start_index`` and ``shift`` determine
        automatic assignments; the default is random. Source: Kafka 3.9 ``DelayedCreatePartitions``.
        """
        start_index = random.randrange(2**16) if start_index is None else start_index
        shift = random.randrange(2**16) if shift is None else shift
        return self.submit(
            lambda token: events.CreateTopicsRequested(
                tuple(topics), timeout_ms, validate_only, start_index, shift, token
            ),
            lambda response: Codes(response.codes, response.messages, response.created),
        )

    def create_partitions(
        self, topics: Sequence[NewPartitions], *, timeout_ms: int = TOPIC_TIMEOUT_MS, validate_only: bool = False
    ) -> Future[Codes[str]]:
        """Add partitions to topics (CreatePartitions); completes like ``create_topics``."""
        return self.submit(
            lambda token: events.CreatePartitionsRequested(tuple(topics), timeout_ms, validate_only, token), _codes
        )

    def delete_topics(self, names: Sequence[str], *, timeout_ms: int = TOPIC_TIMEOUT_MS) -> Future[Codes[str]]:
        """Delete topics (DeleteTopics). The future completes when all live brokers have answered the UpdateMetadata of
        the deletion, or after ``timeout_ms`` (Kafka 3.9 ``DelayedDeleteTopics``)."""
        return self.submit(lambda token: events.DeleteTopicsRequested(tuple(names), timeout_ms, token), _codes)

    def reassign(self, targets: Targets | Mapping[TopicPartition, Sequence[int] | None]) -> Future[PartitionCodes]:
        """Reassign partitions to broker ids, preferred leader first (AlterPartitionReassignments). None cancels a
        reassignment. ``Targets`` has the same in columns."""
        columns = targets if isinstance(targets, Targets) else Targets.of(list(targets.items()))
        return self.submit(
            lambda token: events.ReassignmentRequested(columns, token), partial(results.read_reassignment, columns)
        )

    def list_reassignments(self, partitions: Sequence[TopicPartition] | None = None) -> Future[Reassignments]:
        """All running reassignments, or those of some partitions (ListPartitionReassignments)."""
        chosen = None if partitions is None else tuple(partitions)
        return self._ask(lambda token: events.ListReassignmentsRequested(chosen, token), results.read_reassignments)

    def alter_configs(
        self, changes: Sequence[ConfigChange], *, replace: bool = False, validate_only: bool = False
    ) -> Future[Codes[str | None]]:
        """Change settings of topics, or under None those of all brokers (IncrementalAlterConfigs); ``replace`` removes
        all other settings (AlterConfigs)."""
        return self.submit(
            lambda token: events.AlterConfigsRequested(tuple(changes), replace, validate_only, token), _codes
        )

    def update_features(self, updates: Sequence[FeatureUpdate]) -> Future[FeaturesResponse]:
        """Finalise feature levels (UpdateFeatures)."""
        return self.submit(lambda token: events.UpdateFeaturesRequested(tuple(updates), token))

    # -- requests of brokers

    def allocate_producer_ids(self, broker_id: int, broker_epoch: int = NO_BROKER_EPOCH) -> Future[ProducerIdsResponse]:
        """Allocate a block of producer ids for a broker (AllocateProducerIds), or for this controller, which has no
        broker epoch."""
        return self.submit(lambda token: events.ProducerIdsRequested(broker_id, broker_epoch, token))

    def controlled_shutdown(self, broker_id: int, broker_epoch: int = NO_BROKER_EPOCH) -> Future[RemainingPartitions]:
        """Elect other leaders for a broker that shuts down (ControlledShutdown). -1 is no broker epoch."""
        return self._ask(
            lambda token: events.ControlledShutdownRequested(broker_id, broker_epoch, token), results.read_shutdown
        )

    def alter_partition(
        self,
        broker_id: int,
        broker_epoch: int,
        proposals: Sequence[IsrProposal],
        version: int = ALTER_PARTITION_VERSION,
    ) -> Future[AlteredPartitions]:
        """Change ISRs as a leader proposes (AlterPartition)."""
        epochs = [(proposal.leader_epoch, proposal.partition_epoch, proposal.recovery) for proposal in proposals]
        leader_epoch, partition_epoch, recovery = np.array(epochs, np.int32).reshape(-1, 3).T
        request = partial(
            events.AlterPartitionRequested,
            broker_id,
            broker_epoch,
            version,
            RequestedPartitions.of((proposal.topic, proposal.partition) for proposal in proposals),
            leader_epoch,
            partition_epoch,
            recovery.astype(np.uint8),
            Ragged.of([proposal.isr for proposal in proposals]),
            isr_epochs=_isr_epochs(proposals),
        )
        return self._ask(request, results.read_altered)

    # -- other

    def resign(self) -> None:
        """Resign after the queued events. Any controller, including this one, may win the next election."""
        self._loop.queue.put(events.ResignRequested())

    def take_over(self) -> None:
        """Take the role after the queued events, also from an active controller."""
        self._loop.queue.put(events.Reelect(takeover=True))

    def submit(
        self, event: Callable[[int], Event], read: Callable[[Any], Result] = lambda response: response
    ) -> Future[Result]:
        """Queue an event of ``kframe.events``, which ``event`` makes from a token. The controller's thread calls
        ``read`` with the response. Its value is the result of the future."""
        return self._loop.submit(event, read)

    def _ask(self, event: Callable[[int], Event], read: Callable[[ClusterState, Any], Result]) -> Future[Result]:
        """``submit`` for a response in rows. They are valid only until the columns change."""

        def translate(response: Any) -> Result:
            controller = self._loop.controller
            return read(controller.cluster if controller.active else _NO_CLUSTER, response)

        return self.submit(event, translate)


def _isr_epochs(proposals: Sequence[IsrProposal]) -> Int64 | None:
    """The broker epochs of all ISR members, in the order of proposals. None if no proposal has any."""
    if all(proposal.isr_epochs is None for proposal in proposals):
        return None
    lists = [
        (NO_BROKER_EPOCH,) * len(proposal.isr) if proposal.isr_epochs is None else proposal.isr_epochs
        for proposal in proposals
    ]
    return np.array([epoch for epochs in lists for epoch in epochs], np.int64)


def _codes(response: Any) -> Codes[Any]:
    return Codes(response.codes, response.messages)
