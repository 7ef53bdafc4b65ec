"""What a what-if asks of the controller of a cluster, whichever its mode."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from kframe.whatif.engines.script import Assignments, Script
from kframe.whatif.results.outcome import ControllerResponse, Operation, Outcome, Verb

if TYPE_CHECKING:
    from kframe.core.selectors.leader_selection import FaultKind
    from kframe.model.arrays import Int32
    from kframe.model.config import ControllerConfig
    from kframe.model.events import ElectionType, TopicPartition
    from kframe.model.tables import Targets
    from kframe.snapshot import Snapshot
    from kframe.snapshot.content import Mode
    from kframe.whatif.results.changes import PartitionChanges
    from kframe.whatif.results.explanation import Decision
    from kframe.whatif.results.health import ClusterHealth
    from kframe.whatif.results.release import ReleaseRecord
    from kframe.whatif.results.timeline import TimelineEvent
    from kframe.whatif.results.traffic import SentBatch


class Explainer(Protocol):
    """Explains the leader of one partition by the rules of the mode."""

    @property
    def replicas(self) -> tuple[int, ...]:
        """The assigned replicas now, by broker id."""

    @property
    def isr(self) -> tuple[int, ...]:
        """The in-sync replicas now, by broker id."""

    @property
    def leader(self) -> int | None:
        """The leader now, or None."""

    def current_decision(self) -> Decision:
        """The present leader: the rule that would elect it now, or that it stays."""

    def observe(self, step: str) -> AbstractContextManager[list[Decision]]:
        """Collect the elections of the partition that are held in the context; ``step`` names their cause."""


class Engine(Protocol):
    """The controller of a cluster. It decides by its own rules; no broker responds, and no time passes."""

    mode: ClassVar[Mode]
    verbs: ClassVar[frozenset[Verb]]
    """The operations that a cluster of this mode has."""
    config: ControllerConfig
    assumptions: tuple[str, ...]
    """Assumptions about values that the snapshot lacks."""
    snapshot: Snapshot
    """The snapshot without the columns of its partitions."""

    @property
    def cluster(self) -> Any:
        """The cluster in its present state, read-only: a ClusterState, or the ClusterMetadata of a KRaft cluster."""

    @property
    def rules(self) -> str:
        """The rules that decide, in words, with the levels that they depend on."""

    @property
    def registered(self) -> tuple[int, ...]:
        """Ids of the brokers that are up, ascending: registered ones, and in a KRaft cluster not fenced."""

    @property
    def selector_faults(self) -> Mapping[tuple[str, FaultKind], int]:
        """How many partitions leader selectors did wrong, by their names and what was wrong."""

    def quorum(self, voters: Collection[int]) -> tuple[int, ...]:
        """Node ids of the controllers of a KRaft quorum, ascending: those of the snapshot, else ``voters``, else those
        registered. Raises InputError for ``voters`` that the snapshot contradicts, and for any in ZooKeeper mode."""

    @property
    def release(self) -> ReleaseRecord | None:
        """The release of Kafka whose rules decide, and whether another possible one decides otherwise since ``begin``.

        None in ZooKeeper mode.
        """

    def health(self) -> ClusterHealth:
        """The health of the cluster now. Observers do not count as under-replicated."""

    def min_isr(self) -> Int32:
        """(n,) the effective ``min.insync.replicas`` of each partition."""

    # -- steps

    def stop(self, ids: tuple[int, ...]) -> None:
        """Brokers stop, and the controller notices."""

    def shut_down(self, broker_id: int) -> ControllerResponse:
        """A broker requests a controlled shutdown."""

    def elect(self, election: ElectionType, partitions: tuple[TopicPartition, ...] | None) -> ControllerResponse:
        """An administrator requests elections, of all partitions for None."""

    # -- operations, with the arguments of ``WhatIf``

    def restart(self, ids: tuple[int, ...], together: bool, clean: bool | None, repair_directories: bool) -> Script:
        """The restart of brokers."""

    def create_topic(
        self, name: str, partitions: int, replication_factor: int, assignments: Assignments, seed: int
    ) -> Script:
        """The creation of a topic."""

    def create_partitions(self, name: str, count: int, assignments: Assignments, seed: int) -> Script:
        """The creation of further partitions of a topic."""

    def delete_topics(self, names: tuple[str, ...]) -> Script:
        """The deletion of topics, each named once."""

    def reassign(self, targets: Targets) -> Script:
        """A reassignment of partitions, each named once, played to its end."""

    def explainer(self, row: int) -> Explainer:
        """Explains the partition of this row."""

    # -- observing an operation

    def begin(self) -> None:
        """Observe what an operation does from now on."""

    def settle(self) -> None:
        """Let the controller finish what a step began."""

    def take_events(self) -> tuple[TimelineEvent, ...]:
        """The events observed since this was last called."""

    def record_batches(self, *, bodies: bool = False) -> None:
        """Record each batch of requests to brokers from now on; with ``bodies`` the encoded requests too. A KRaft
        controller sends none."""

    def take_batches(self) -> tuple[SentBatch, ...]:
        """The batches recorded since this was last called."""

    def changes(self, health: tuple[ClusterHealth, ClusterHealth]) -> PartitionChanges:
        """The rows that differ since ``begin``; ``health`` is that before and after the operation."""

    def with_messages(self, outcome: Outcome) -> Outcome:
        """The outcome with the requests that were sent, or the records that were written."""

    def notes(self, operation: Operation) -> Iterator[str]:
        """What a real cluster of this mode would do in addition."""
