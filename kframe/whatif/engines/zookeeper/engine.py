"""The engine of a cluster in ZooKeeper mode.

The controller has an in-memory store, and its ports are observed. Requests are encoded and counted. No broker responds,
and no time passes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Final

from kframe.errors import BrokenInvariant, ErrorCode
from kframe.model.events import ControlledShutdownRequested, ElectionRequested, ElectionType, TopicPartition
from kframe.model.ids import NO_BROKER_EPOCH
from kframe.snapshot.content import Mode
from kframe.whatif.engines.engine import Explainer
from kframe.whatif.engines.requests import (
    BrokersRestart,
    PartitionsCreation,
    ReassignmentRequest,
    Request,
    TopicCreation,
    TopicsDeletion,
)
from kframe.whatif.engines.script import Action, Script
from kframe.whatif.engines.zookeeper.controller import ObservedController
from kframe.whatif.engines.zookeeper.refusals import election_reasons
from kframe.whatif.results.outcome import KRAFT_VERBS, ZOOKEEPER_RULES, ControllerResponse, Operation, Verb

#: Timeout of requests that cannot complete at once, by the virtual clock.
REQUEST_TIMEOUT_MS: Final = 1_000


class ZookeeperEngine(ObservedController):
    """The controller of a cluster in ZooKeeper mode; see ``Engine``."""

    mode: ClassVar[Mode] = "zookeeper"
    verbs: ClassVar[frozenset[Verb]] = frozenset(Verb) - KRAFT_VERBS

    @property
    def rules(self) -> str:
        """See ``Engine``."""
        return ZOOKEEPER_RULES

    # -- steps

    def stop(self, ids: tuple[int, ...]) -> Action:
        """See ``Engine``."""
        return lambda: self.ensemble.unregister_brokers(ids)

    def request_shutdown(self, broker_id: int) -> Action:
        """See ``Engine``."""

        def act() -> ControllerResponse:
            brokers = self.cluster.brokers
            index = brokers.find(broker_id)
            broker_epoch = NO_BROKER_EPOCH if index is None else int(brokers.broker_epoch[index])
            response = self.call(lambda token: ControlledShutdownRequested(broker_id, broker_epoch, token))
            return ControllerResponse(response.error, response.remaining)

        return act

    def request_election(self, election: ElectionType, partitions: tuple[TopicPartition, ...] | None) -> Action:
        """See ``Engine``."""

        def act() -> ControllerResponse:
            response = self.call(lambda token: ElectionRequested(election, partitions, token))
            named = election_reasons(self.cluster, response.rows, response.codes)
            return ControllerResponse(ErrorCode(response.error), response.rows, response.codes, named)

        return act

    def script(self, request: Request) -> Script:
        """See ``Engine``. A module is imported when its request is made: one command plays one operation."""
        match request:
            case BrokersRestart():
                from kframe.whatif.engines.zookeeper.restart import ZookeeperRestart

                return ZookeeperRestart(self, request)
            case TopicCreation():
                from kframe.whatif.engines.zookeeper.create import ZookeeperCreation

                return ZookeeperCreation.of_topic(self, request)
            case PartitionsCreation():
                from kframe.whatif.engines.zookeeper.create import ZookeeperCreation

                return ZookeeperCreation.of_partitions(self, request)
            case TopicsDeletion():
                from kframe.whatif.engines.zookeeper.delete import ZookeeperDeletion

                return ZookeeperDeletion(self, request.names)
            case ReassignmentRequest():
                from kframe.whatif.engines.zookeeper.reassign import ZookeeperReassignment

                return ZookeeperReassignment(self, request.targets)
        raise BrokenInvariant(f"a request that is not among the verbs of ZooKeeper mode: {request}")

    def explainer(self, row: int) -> Explainer:
        """See ``Engine``."""
        from kframe.whatif.engines.zookeeper.explain import ElectionExplainer

        return ElectionExplainer(self, row)

    def notes(self, operation: Operation) -> Iterator[str]:
        """See ``Engine``."""
        controller_id = self.snapshot.controller_id
        if operation.verb is not Verb.ELECT and controller_id in operation.brokers:
            yield f"broker {controller_id} is the controller: a failover to another controller is not simulated"
