"""The API of a KRaft controller for programs that embed it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from types import TracebackType
from typing import Final, TypeVar, cast
from uuid import UUID, uuid4

from kframe.core.kraft import controller_apis
from kframe.core.kraft.brokers import broker_events, registration
from kframe.core.kraft.configuration.configs import KraftConfigChange, KraftConfigOperation
from kframe.core.kraft.context import KraftContext
from kframe.core.kraft.controller_result import ControllerResult, PartitionResult
from kframe.core.kraft.replication.elections import elect_leaders
from kframe.core.kraft.replication.reassignment import RequestedReassignment, reassign_partitions
from kframe.core.kraft.topics.topic_requests import CreatableTopic, CreatableTopicResult, CreatePartitionsTopic
from kframe.errors import ErrorCode
from kframe.model.admin import ConfigChange, NewPartitions, NewTopic
from kframe.model.elections import LeaderSelector
from kframe.model.events import ElectionType, TopicPartition
from kframe.model.ids import ElectionKind
from kframe.model.kraft.ids import KraftElection, ResourceType
from kframe.model.kraft.metadata import ClusterMetadata
from kframe.model.kraft.records import BrokerFeature
from kframe.ports.quorum_controller import CommitObserver, QuorumController
from kframe.registry.registry import Registry, build_registry
from kframe.runtime.exposition import labelled
from kframe.runtime.observers import CommitObservers, is_commit_observer, named_observers
from kframe.runtime.results import Codes
from kframe.runtime.selectors import GivenSelectors, selectors_by_kind

Result = TypeVar("Result")

#: The directory id of broker 0, above those that Kafka reserves.
_DIRECTORIES: Final = 1 << 64
_ELECTIONS: Final = {ElectionType.PREFERRED: KraftElection.PREFERRED, ElectionType.UNCLEAN: KraftElection.UNCLEAN}


class KraftController:
    """A KRaft controller, which leads from ``start`` to ``stop``, or as a context manager::

        with KraftControllerBuilder(3000, "kraft-memory:").build() as controller:
            for broker_id in (1, 2, 3):
                controller.register_broker(broker_id).result(timeout=30)
            controller.create_topics([NewTopic("orders", 6, 3)]).result(timeout=30)

    Requests are thread-safe and return a future at once, which completes when its records are committed. Errors of
    Kafka's protocol are results; RequestRefused is the exception of a request that is refused as a whole. Callbacks
    of futures, selectors and ``inspect`` run in the controller's threads, which must not wait for a future.
    """

    def __init__(
        self,
        quorum: QuorumController,
        selectors: Mapping[ElectionKind, LeaderSelector],
        observers: Iterable[tuple[str, CommitObserver]] = (),
    ) -> None:
        self._quorum = quorum
        self._selectors = selectors
        self._observers = CommitObservers(observers)

    @property
    def quorum(self) -> QuorumController:
        """The node that leads the quorum."""
        return self._quorum

    def start(self) -> None:
        """Open the log, and lead. Raises what ``QuorumController.start`` raises."""
        self._quorum.start(self._selectors, self._observers)

    def stop(self) -> None:
        """Resign, and close everything. May be called again."""
        self._quorum.stop()

    def __enter__(self) -> KraftController:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    def metrics(self) -> dict[str, float]:
        """Values by the names of Kafka's dashboards. Thread-safe."""
        failures = self._observers.failures.copy()
        counted = {labelled("kframe_observer_failures_total", observer=name): failures[name] for name in failures}
        return {**self._quorum.metrics(), **counted}

    def inspect(self, read: Callable[[ClusterMetadata], Result]) -> Future[Result]:
        """Call ``read`` with the metadata, between two events. It must be quick, keep no array, and change nothing."""
        return self.submit(lambda context: ControllerResult((), read(context.metadata)))

    def submit(self, event: Callable[[KraftContext], ControllerResult[Result]]) -> Future[Result]:
        """Decide an event: a rule of ``kframe.plugin.kraft_controller`` with its request. Raises StoreError unless the
        controller runs."""
        return cast("Future[Result]", self._quorum.submit(event))

    # -- brokers: those of an embedded cluster, which send no requests of their own

    def register_broker(
        self, broker_id: int, rack: str | None = None, *, clean: bool = False, directories: Sequence[UUID] = ()
    ) -> Future[int]:
        """Register a process of a broker, and unfence it. The result is its broker epoch.

        ``clean``: the process before has stopped in order. Without ``directories`` it has one, that of the process
        before.
        """

        def event(context: KraftContext) -> ControllerResult[int]:
            ranges = context.settings.supported_features.items()
            former = context.metadata.brokers.registrations.get(broker_id)
            request = registration.BrokerRegistrationRequest(
                broker_id,
                context.settings.cluster_id,
                uuid4(),
                features=tuple(
                    BrokerFeature(name=name, min_supported_version=low, max_supported_version=high)
                    for name, (low, high) in ranges
                ),
                rack=rack,
                directories=tuple(directories) or (UUID(int=_DIRECTORIES + broker_id),),
                previous_broker_epoch=former.broker_epoch if clean and former is not None else -1,
            )
            return registration.register_broker(context, request, self._quorum.log_end)

        registered = self.submit(event)

        def unfence(context: KraftContext) -> ControllerResult[int]:
            refusal = registered.exception() if registered.done() else None  # It is set before this event.
            if refusal is not None:
                raise refusal
            return _unfence(context, broker_id)

        return self.submit(unfence)

    def fence_broker(self, broker_id: int) -> Future[None]:
        """End the session of a broker, as when it fails: it loses its leaderships and leaves its ISRs."""
        return self.submit(partial(_fence, broker_id=broker_id))

    # -- requests of administrators

    def create_topics(self, topics: Sequence[NewTopic], *, validate_only: bool = False) -> Future[Codes[str]]:
        """Create topics (CreateTopics)."""
        requested = [
            CreatableTopic(
                topic.name, topic.partitions, topic.replication_factor, topic.assignments or (), dict(topic.config)
            )
            for topic in topics
        ]
        return self._topics(
            lambda context: controller_apis.create_topics(
                context, requested, lambda _name: uuid4(), validate_only=validate_only
            )
        )

    def create_partitions(self, topics: Sequence[NewPartitions], *, validate_only: bool = False) -> Future[Codes[str]]:
        """Add partitions to topics (CreatePartitions)."""
        requested = [CreatePartitionsTopic(topic.name, topic.count, topic.assignments) for topic in topics]
        return self._topics(
            lambda context: controller_apis.create_partitions(context, requested, validate_only=validate_only)
        )

    def delete_topics(self, names: Sequence[str]) -> Future[Codes[str]]:
        """Delete topics (DeleteTopics)."""
        return self._topics(lambda context: controller_apis.delete_topics(context, names))

    def elect_leaders(
        self, election_type: ElectionType = ElectionType.PREFERRED, partitions: Sequence[TopicPartition] | None = None
    ) -> Future[dict[TopicPartition, ErrorCode]]:
        """Elect leaders of these partitions, or of all that need it (ElectLeaders)."""
        kind = _ELECTIONS[election_type]
        return self._partitions(lambda context: elect_leaders(context, kind, partitions))

    def reassign(
        self, targets: Mapping[TopicPartition, Sequence[int] | None]
    ) -> Future[dict[TopicPartition, ErrorCode]]:
        """Reassign partitions to broker ids, preferred leader first (AlterPartitionReassignments). None cancels."""
        requested = [
            RequestedReassignment(topic, partition, None if replicas is None else tuple(replicas))
            for (topic, partition), replicas in targets.items()
        ]
        return self._partitions(lambda context: reassign_partitions(context, requested))

    def alter_configs(
        self, changes: Sequence[ConfigChange], *, validate_only: bool = False
    ) -> Future[Codes[str | None]]:
        """Change settings of topics, or under None those of all brokers (IncrementalAlterConfigs)."""
        requested = [
            KraftConfigChange(
                (ResourceType.BROKER, "") if change.topic is None else (ResourceType.TOPIC, change.topic),
                {key: (KraftConfigOperation[operation.name], value) for operation, key, value in change.operations},
            )
            for change in changes
        ]

        def event(context: KraftContext) -> ControllerResult[Codes[str | None]]:
            decided = controller_apis.alter_configs(context, requested, validate_only=validate_only)
            results = {name or None: result for result in decided.response for name in [result.resource[1]]}
            codes = {name: result.error for name, result in results.items()}
            messages = {name: result.message for name, result in results.items() if result.message is not None}
            return ControllerResult(decided.parts, Codes(codes, messages), decided.atomic)

        return self.submit(event)

    def _topics(
        self, decide: Callable[[KraftContext], ControllerResult[list[CreatableTopicResult]]]
    ) -> Future[Codes[str]]:
        def event(context: KraftContext) -> ControllerResult[Codes[str]]:
            decided = decide(context)
            codes = {result.topic: result.error for result in decided.response}
            messages = {result.topic: result.message for result in decided.response if result.message is not None}
            return ControllerResult(decided.parts, Codes(codes, messages), decided.atomic)

        return self.submit(event)

    def _partitions(
        self, decide: Callable[[KraftContext], ControllerResult[list[PartitionResult]]]
    ) -> Future[dict[TopicPartition, ErrorCode]]:
        def event(context: KraftContext) -> ControllerResult[dict[TopicPartition, ErrorCode]]:
            decided = decide(context)
            codes = {(result.topic, result.partition): result.error for result in decided.response}
            return ControllerResult(decided.parts, codes, decided.atomic)

        return self.submit(event)


def _fence(context: KraftContext, broker_id: int) -> ControllerResult[None]:
    """The end of a broker's session. Nothing for a broker that is fenced or not registered."""
    registered = context.metadata.brokers.registrations.get(broker_id)
    if registered is None or registered.fenced:
        return ControllerResult((), None)
    return broker_events.end_session(context, registered)


def _unfence(context: KraftContext, broker_id: int) -> ControllerResult[int]:
    """The heartbeat of a broker that has read its registration. The response is its broker epoch."""
    registered = context.metadata.brokers.registrations[broker_id]
    beat = broker_events.BrokerHeartbeat(broker_id, registered.broker_epoch, registered.offset)
    decided = broker_events.handle_heartbeat(context, beat)
    return ControllerResult(decided.parts, registered.broker_epoch)


@dataclass(slots=True)
class KraftControllerBuilder:
    """The parts of a KRaft controller. Nothing is opened or started here."""

    node_id: int
    """``node.id``."""
    url: str
    """``kraft:`` leads a directory and serves real brokers; ``kraft-memory:`` has a log in memory and no listener."""
    config: Mapping[str, str] = field(default_factory=dict)
    """Values by Kafka's keys."""
    selectors: GivenSelectors = ()
    """Leader selectors, as those of ``ControllerBuilder``."""
    selector_options: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    """Options of selectors given by name."""
    observers: Iterable[CommitObserver | str] = ()
    """Observers of what is committed: objects, or names."""
    registry: Registry | None = None
    """The plugins. By default all that are installed."""

    def build(self) -> KraftController:
        """Make the controller, not started.

        Raises ConfigError for an invalid key or value, and PluginError for an unknown name or URL scheme, for a
        selector that is not for its kind of election, and for an observer of ZooKeeper mode.
        """
        registry = build_registry() if self.registry is None else self.registry
        selectors = selectors_by_kind(self.selectors, self.selector_options, lambda: registry)
        config = {**self.config, "node.id": str(self.node_id)}
        observers = named_observers(self.observers, is_commit_observer, lambda: registry)
        return KraftController(registry.open_controller(self.url, config), selectors, observers)
