"""A controller at work, as the program that embeds it sees it."""

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

from kframe.api import results
from kframe.api.results import AlteredPartitions, Codes, PartitionCodes, Reassignments, RemainingPartitions
from kframe.api.serving import MeasuredServer, Server
from kframe.core.admin.features import FeaturesResponse
from kframe.core.brokers.producer_ids import ProducerIdsResponse
from kframe.model import events
from kframe.model.admin import ConfigChange, FeatureUpdate, NewPartitions, NewTopic
from kframe.model.cluster import ClusterState
from kframe.model.columns import Int64, Ragged
from kframe.model.events import ElectionType, Event, TopicPartition
from kframe.model.ids import NO_BROKER_EPOCH, RecoveryState
from kframe.model.ports import Store, Transport
from kframe.model.tables import Targets
from kframe.runtime.loop import ControllerLoop
from kframe.runtime.status import Status

Result = TypeVar("Result")

#: How long a request to create or delete topics may wait until it is done, unless the caller says otherwise.
PATIENCE_MS = 30_000
#: AlterPartition as brokers of Kafka 3.9 send it.
ALTER_PARTITION_VERSION = 3
#: What answers of a controller that is not active speak of: nothing.
_NO_CLUSTER = ClusterState()


@dataclass(frozen=True, slots=True)
class IsrProposal:
    """The in-sync replicas (broker ids) that the leader of a partition proposes; the topic is a name or a topic id."""

    topic: str | bytes
    partition: int
    leader_epoch: int
    partition_epoch: int
    isr: tuple[int, ...]
    recovery: RecoveryState = RecoveryState.RECOVERED
    isr_epochs: tuple[int, ...] | None = None
    """The broker epoch of each member of the ISR, -1 where it is not said; None: nothing is said."""


class Controller:
    """One controller with its store, transport and event queue. ``ControllerBuilder`` makes them.

    Either it runs in a thread of its own, from ``start`` to ``stop`` or as a context manager::

        with ControllerBuilder(1000, store=..., transport=...).build() as controller:
            controller.elect_leaders(ElectionType.PREFERRED).result(timeout=30)

    or the program drives it: ``open``, then ``run_until_idle`` whenever something has happened, and ``stop`` at last.
    It starts once; after ``stop`` it only answers that it is not the controller.

    What asks the controller something may be called from any thread, returns at once and gives a future. Every future
    gets an answer: errors of Kafka's protocol are results, never exceptions; an exception is a defect, of kframe, a
    plugin, the store or the transport. Do not wait for a future in the controller's own thread, which runs the store,
    the transport, selectors, observers and the callbacks of futures.
    """

    def __init__(self, loop: ControllerLoop, servers: Sequence[Server] = ()) -> None:
        self._loop = loop
        self._servers = tuple(servers)

    # -- at work

    @property
    def store(self) -> Store:
        """Where this controller keeps state."""
        return self._loop.store

    @property
    def transport(self) -> Transport:
        """How this controller reaches brokers."""
        return self._loop.transport

    @property
    def servers(self) -> tuple[Server, ...]:
        """What others reach this controller by."""
        return self._servers

    def open(self, *, takeover: bool = False) -> None:
        """Connect the store, start the servers, connect the transport, and stand for election as soon as events are
        handled.

        The servers start on an open store, because they read ACLs and credentials from it. ``takeover`` takes the role
        also from a controller that holds it, once. A server that cannot start raises, and then nothing is open.
        """
        with ExitStack() as started:
            self._loop.open_store()
            started.callback(self.store.close)
            for server in self._servers:
                server.start(self)
                started.callback(server.stop)
            self._loop.stand(takeover=takeover)
            started.pop_all()

    def run_until_idle(self) -> int:
        """Handle all events that wait, and those that they set off; return how many. Not while a thread runs."""
        return self._loop.run_until_idle()

    def start(self, *, takeover: bool = False) -> None:
        """``open``, and handle events in a thread of its own until ``stop``."""
        self.open(takeover=takeover)
        self._loop.start()

    def stop(self) -> None:
        """Finish the event under way, give the role up, answer all who wait, stop the servers, and at last close
        transport and store, which servers read until then."""
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

    # -- how it stands

    @property
    def running(self) -> bool:
        """Whether the thread that ``start`` has started handles events. Callable from any thread."""
        return self._loop.running

    def status(self) -> Status:
        """Who is controller, and the gauges, as they were after the last event. Callable from any thread."""
        return self._loop.status()

    def metrics(self) -> dict[str, float]:
        """Gauges, timers and meters by the names that dashboards for Kafka know, and what servers measure. Callable
        from any thread."""
        found = self._loop.metrics()
        for server in self._servers:
            if isinstance(server, MeasuredServer):
                found |= server.metrics()
        return found

    def inspect(self, read: Callable[[ClusterState | None], Result]) -> Future[Result]:
        """Call ``read`` in the controller's thread, between two events, with the cluster as it is then, or with None if
        this is not the controller. It must be quick, keep none of the arrays, and change nothing."""

        def look(there: bool) -> Result:
            return read(self._loop.controller.cluster if there else None)

        return self.submit(events.Inspected, look)

    # -- what administrators ask for

    def elect_leaders(
        self, election_type: ElectionType = ElectionType.PREFERRED, partitions: Sequence[TopicPartition] | None = None
    ) -> Future[PartitionCodes]:
        """Elect leaders for these partitions, or for all (ElectLeaders). Of all partitions only those are answered
        that needed an election."""
        chosen = None if partitions is None else tuple(partitions)
        return self._ask(lambda token: events.ElectionRequested(election_type, chosen, token), results.read_election)

    def create_topics(
        self, topics: Sequence[NewTopic], *, timeout_ms: int = PATIENCE_MS, validate_only: bool = False,
        start_index: int | None = None, shift: int | None = None,
    ) -> Future[Codes[str]]:  # fmt: skip
        """Create topics (CreateTopics). Answered when all partitions have leaders and all live brokers have answered
        the UpdateMetadata that announces them, or after ``timeout_ms``; at once if that is 0 or less.

        Topics that have no leader, or that no broker knows by then, get REQUEST_TIMED_OUT, and are created all the
        same. After half of the timeout the answer of one broker is enough. ``start_index`` and ``shift`` place
        automatic assignments; they are drawn at random unless given. Source: Kafka 3.9 ``DelayedCreatePartitions``.
        """
        start_index = random.randrange(2**16) if start_index is None else start_index
        shift = random.randrange(2**16) if shift is None else shift
        return self.submit(
            lambda token: events.CreateTopicsRequested(
                tuple(topics), timeout_ms, validate_only, start_index, shift, token
            ),
            _codes,
        )

    def create_partitions(
        self, topics: Sequence[NewPartitions], *, timeout_ms: int = PATIENCE_MS, validate_only: bool = False
    ) -> Future[Codes[str]]:
        """Add partitions to topics (CreatePartitions); answered as ``create_topics`` is."""
        return self.submit(
            lambda token: events.CreatePartitionsRequested(tuple(topics), timeout_ms, validate_only, token), _codes
        )

    def delete_topics(self, names: Sequence[str], *, timeout_ms: int = PATIENCE_MS) -> Future[Codes[str]]:
        """Delete topics (DeleteTopics). Answered when all live brokers have answered the UpdateMetadata that announces
        the deletion, or after ``timeout_ms``, as ``create_topics`` is (Kafka 3.9 ``DelayedDeleteTopics``)."""
        return self.submit(lambda token: events.DeleteTopicsRequested(tuple(names), timeout_ms, token), _codes)

    def reassign(self, targets: Targets | Mapping[TopicPartition, Sequence[int] | None]) -> Future[PartitionCodes]:
        """Move partitions to these brokers (ids), the preferred one first (AlterPartitionReassignments); None gives a
        running reassignment up. ``Targets`` says the same in columns."""
        wanted = targets if isinstance(targets, Targets) else Targets.of(list(targets.items()))
        return self.submit(
            lambda token: events.ReassignmentRequested(wanted, token), partial(results.read_reassignment, wanted)
        )

    def list_reassignments(self, partitions: Sequence[TopicPartition] | None = None) -> Future[Reassignments]:
        """The reassignments under way, or those of these partitions (ListPartitionReassignments)."""
        chosen = None if partitions is None else tuple(partitions)
        return self._ask(lambda token: events.ListReassignmentsRequested(chosen, token), results.read_reassignments)

    def alter_configs(
        self, changes: Sequence[ConfigChange], *, replace: bool = False, validate_only: bool = False
    ) -> Future[Codes[str | None]]:
        """Change settings of topics, or of all brokers, by ``None`` (IncrementalAlterConfigs); ``replace``: those given
        here are all there are from then on (AlterConfigs)."""
        return self.submit(
            lambda token: events.AlterConfigsRequested(tuple(changes), replace, validate_only, token), _codes
        )

    def update_features(self, updates: Sequence[FeatureUpdate]) -> Future[FeaturesResponse]:
        """Finalise feature levels (UpdateFeatures)."""
        return self.submit(lambda token: events.UpdateFeaturesRequested(tuple(updates), token))

    # -- what brokers ask for

    def allocate_producer_ids(self, broker_id: int, broker_epoch: int = NO_BROKER_EPOCH) -> Future[ProducerIdsResponse]:
        """Set a block of producer ids aside for a broker (AllocateProducerIds), or for this controller itself, which
        has no broker epoch."""
        return self.submit(lambda token: events.ProducerIdsRequested(broker_id, broker_epoch, token))

    def controlled_shutdown(self, broker_id: int, broker_epoch: int = NO_BROKER_EPOCH) -> Future[RemainingPartitions]:
        """A broker wants to hand its leaders over before it stops (ControlledShutdown); -1 is no broker epoch."""
        return self._ask(
            lambda token: events.ControlledShutdownRequested(broker_id, broker_epoch, token), results.read_shutdown
        )

    def alter_partition(
        self, broker_id: int, broker_epoch: int, proposals: Sequence[IsrProposal],
        version: int = ALTER_PARTITION_VERSION,
    ) -> Future[AlteredPartitions]:  # fmt: skip
        """A leader proposes in-sync replicas (AlterPartition)."""
        columns = np.array([(one.leader_epoch, one.partition_epoch, one.recovery) for one in proposals], np.int32)
        leader_epoch, partition_epoch, recovery = columns.reshape(-1, 3).T
        request = partial(
            events.AlterPartitionRequested,
            broker_id,
            broker_epoch,
            version,
            tuple((one.topic, one.partition) for one in proposals),
            leader_epoch,
            partition_epoch,
            recovery.astype(np.uint8),
            Ragged.of([one.isr for one in proposals]),
            isr_epochs=_isr_epochs(proposals),
        )
        return self._ask(request, results.read_altered)

    # -- anything else

    def resign(self) -> None:
        """Give the role up once what waits now has been handled; whoever is first takes it, perhaps this one."""
        self._loop.queue.put(events.ResignRequested())

    def take_over(self) -> None:
        """Take the role also from whoever holds it, once what waits now has been handled."""
        self._loop.queue.put(events.Elect(takeover=True))

    def submit(
        self, event: Callable[[int], Event], read: Callable[[Any], Result] = lambda response: response
    ) -> Future[Result]:
        """Ask by an event of ``kframe.events``, made from the token that ``event`` is given; the future gets what
        ``read``, called in the controller's thread, makes of the core's response."""
        return self._loop.submit(event, read)

    def _ask(self, event: Callable[[int], Event], read: Callable[[ClusterState, Any], Result]) -> Future[Result]:
        """``submit`` with an answer in rows, which mean something only in the columns of this moment."""

        def translate(response: Any) -> Result:
            controller = self._loop.controller
            return read(controller.cluster if controller.active else _NO_CLUSTER, response)

        return self.submit(event, translate)


def _isr_epochs(proposals: Sequence[IsrProposal]) -> Int64 | None:
    """The broker epochs of all ISR members, one proposal after another; None if none is said."""
    if all(one.isr_epochs is None for one in proposals):
        return None
    said = [(NO_BROKER_EPOCH,) * len(one.isr) if one.isr_epochs is None else one.isr_epochs for one in proposals]
    return np.array([epoch for epochs in said for epoch in epochs], np.int64)


def _codes(response: Any) -> Codes[Any]:
    return Codes(response.codes, response.messages)
