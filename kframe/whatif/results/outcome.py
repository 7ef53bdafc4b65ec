"""The outcome of a what-if."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from typing import Any, Final, Literal

import numpy as np
from msgspec import Struct, field

from kframe.errors import ErrorCode
from kframe.model.arrays import Bool, Int16, Int32
from kframe.model.ids import Api
from kframe.model.texts import counted
from kframe.pages.parts import FactsPart, Heading, NotesPart, Part, TablePart
from kframe.pages.shown import Tabular
from kframe.whatif.results.brokers import OutcomeBrokers
from kframe.whatif.results.changes import PartitionChanges
from kframe.whatif.results.feature_update import FeatureUpdateRecord
from kframe.whatif.results.findings import FailOn
from kframe.whatif.results.health import ClusterHealth, newly
from kframe.whatif.results.reassignment_result import ReassignmentResult
from kframe.whatif.results.release import ZOOKEEPER_RULES, ReleaseRecord
from kframe.whatif.results.timeline import RecordsWritten, RequestsSent, StatesWritten, TimelineEvent, TopicsWritten
from kframe.whatif.results.topic_results import TopicResult
from kframe.whatif.results.traffic import SentBatch, Traffic

#: Most rows that a page lists, and the columns of changed partitions there.
_SHOWN: Final = 20
_CHANGES: Final = ("topic", "partition", "leader_before", "leader_after", "isr_before", "isr_after")
#: What a step can record that reaches storage or a broker; an election without a winner reaches neither.
_EFFECTS: Final = (RecordsWritten, RequestsSent, StatesWritten, TopicsWritten)


class Verb(StrEnum):
    """What is done to the cluster."""

    FAIL = "fail"
    RESTART = "restart"
    SHUTDOWN = "shutdown"
    ELECT = "elect"
    REASSIGN = "reassign"
    CREATE = "create"
    CREATE_PARTITIONS = "create-partitions"
    DELETE = "delete"
    FENCE = "fence"
    UNFENCE = "unfence"
    DIRECTORY = "directory"
    FEATURE = "feature"
    UNREGISTER = "unregister"


#: The operations that only KRaft clusters have.
KRAFT_VERBS: Final = frozenset({Verb.FENCE, Verb.UNFENCE, Verb.DIRECTORY, Verb.FEATURE, Verb.UNREGISTER})


class Operation(Struct, frozen=True):
    """The requested operation: its brokers (ids), all at once or one after another, its election, or its topics."""

    verb: Verb
    brokers: tuple[int, ...] = ()
    together: bool = True
    election: str | None = None
    partitions: int | None = None
    """How many partitions an election was asked for, None is all; or are to be reassigned or created; or a topic is to
    have."""
    topics: tuple[str, ...] = ()
    directories: tuple[str, ...] = ()
    """Ids of the log directories that fail."""
    features: Mapping[str, int] = field(default_factory=dict)
    """The feature levels that are requested."""
    controllers: tuple[int, ...] = ()
    """Controllers that are unregistered."""

    def text(self) -> str:
        """The operation in words."""
        partitions = "all partitions"
        if self.partitions is not None:
            partitions = counted(self.partitions, "partition")
        topics = f"topic{'' if len(self.topics) == 1 else 's'} {names_text(self.topics)}"
        match self.verb:
            case Verb.ELECT:
                return f"elect {self.election} leaders for {partitions}"
            case Verb.REASSIGN:
                return f"reassign {partitions} of {counted(len(self.topics), 'topic')}"
            case Verb.CREATE:
                return f"create {topics} with {partitions}"
            case Verb.CREATE_PARTITIONS:
                return f"expand {topics} to {partitions}"
            case Verb.DELETE:
                return f"delete {topics}"
            case Verb.DIRECTORY:
                return f"fail log directories {names_text(self.directories)} of broker {self.brokers[0]}"
            case Verb.FEATURE:
                return "set " + ", ".join(f"{name} to {level}" for name, level in self.features.items())
            case Verb.UNREGISTER:
                nodes = (("broker", self.brokers), ("controller", self.controllers))
                return "unregister " + ", ".join(f"{role} {node_id}" for role, ids in nodes for node_id in ids)
        ids = ", ".join(str(broker_id) for broker_id in self.brokers)
        how = "" if len(self.brokers) == 1 else " together" if self.together else " one by one"
        return f"{self.verb} {'brokers' if len(self.brokers) > 1 else 'broker'} {ids}{how}"


class ControllerResponse(Struct, frozen=True, eq=False):
    """The response of the controller to a request: its error, and the results of single partitions.

    To ControlledShutdown, ``rows`` are the partitions that the broker still leads, and ``codes`` is None; to
    ElectLeaders, ``codes`` holds the error of each. Where partitions or topics need not exist, ``rows`` is empty, and
    ``named`` are some of those that got an error.
    """

    error: ErrorCode
    rows: Int32
    codes: Int16 | None = None
    named: tuple[str, ...] | None = None
    unit: Literal["partitions", "topics"] = "partitions"
    """What ``codes`` are of."""

    def counts(self) -> dict[str, int]:
        """The number of partitions by Kafka's error name."""
        codes, counts = np.unique(self.codes if self.codes is not None else np.empty(0, np.int16), return_counts=True)
        return {ErrorCode(int(code)).name: int(count) for code, count in zip(codes, counts, strict=True)}


class StepReport(Struct, frozen=True, eq=False):
    """The response of a step. ``events`` and ``health`` replace the observed ones."""

    response: ControllerResponse | None = None
    events: tuple[TimelineEvent, ...] | None = None
    health: ClusterHealth | None = None


class StepOutcome(Struct, frozen=True, eq=False):
    """One step: its events in order. It also counts the partitions in each condition at its end."""

    name: str
    events: tuple[TimelineEvent, ...]
    counts: Mapping[str, int | None]
    response: ControllerResponse | None = None
    batches: tuple[SentBatch, ...] = ()
    """The requests of each batch to brokers, if the engine records them (``ZookeeperController.record_batches``)."""


class RecordCount(Struct, frozen=True):
    """The records of one type that the controller of a KRaft cluster writes, and the bytes of their values."""

    record: str
    count: int
    bytes: int


class Impact(Struct, frozen=True):
    """The outcome in numbers of partitions. ``newly_…``: not so before, but so at the end; the peaks are those of the
    worst step. None where the snapshot lacks what decides it."""

    leaders_moved: int
    newly_offline: int
    back_online: int
    newly_under_min_isr: int | None
    newly_at_min_isr: int | None
    newly_under_replicated: int
    unclean_elections: int
    needs_unclean_election: int
    states_changed: int
    partition_states_written: int
    offline_peak: int
    under_min_isr_peak: int | None
    requests: int
    bytes: int | None
    """Of requests to brokers; in KRaft mode of the records that the controller writes."""
    records: int | None = None
    """Records that the controller writes; None in ZooKeeper mode."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Outcome(Tabular):
    """The outcome of one operation. Brokers are indexes into ``broker_ids`` (b,), partitions are in columns."""

    operation: Operation
    broker_ids: Int32
    racks: tuple[str | None, ...]
    before: ClusterHealth
    after: ClusterHealth
    steps: tuple[StepOutcome, ...]
    changes: PartitionChanges
    traffic: Mapping[Api, Traffic]
    findings: Mapping[FailOn, Bool | None]
    """(n,) masks of the partitions that ``count_of`` counts."""
    bytes_unknown: str | None
    """Why bytes are not known, if they are not."""
    assumptions: tuple[str, ...]
    """Assumptions about values that the snapshot lacks."""
    notes: tuple[str, ...]
    """Further effects in a real cluster, and faults of leader selectors."""
    encode_ms: float
    """Time spent on encoding requests, by the clock that the what-if was given."""
    reassignment: ReassignmentResult | None = None
    """The result of each partition, if the operation was a reassignment."""
    topics: tuple[TopicResult, ...] = ()
    """The result of each topic to create or delete."""
    rules: str = ZOOKEEPER_RULES
    """The rules that decided, in words."""
    records: tuple[RecordCount, ...] | None = None
    """The records that a KRaft controller writes, by type; None in ZooKeeper mode."""
    release: ReleaseRecord | None = None
    """The release of Kafka whose rules decided; None in ZooKeeper mode."""
    feature_update: FeatureUpdateRecord | None = None
    """What new feature levels change, and which nodes block them, if the operation was an update of features."""

    def to_arrow(self) -> Any:
        """The changed partitions as a ``pyarrow.Table``: the columns of ``--out``."""
        return self.changes.to_arrow()

    @property
    def brokers(self) -> OutcomeBrokers:
        """The brokers before and after."""
        return OutcomeBrokers(self.operation.text(), self.broker_ids, self.racks, self.before, self.after, self.traffic)

    def heading(self) -> Heading:
        """See ``Shown``."""
        facts: list[tuple[str, object]] = [("partitions changed", len(self.changes))]
        counts = {what: self.count_of(what) for what in FailOn}
        facts += [(f"partitions {what}", "unknown" if count is None else count) for what, count in counts.items()]
        return Heading(self.operation.text(), FactsPart(facts))

    def parts(self) -> Sequence[Part]:
        """See ``Shown``."""
        changes, steps = self.changes, [{"step": step.name, **step.counts} for step in self.steps[:_SHOWN]]
        return (
            TablePart("steps, with the partitions in each condition", tuple(steps[0]), steps, len(self.steps)),
            *self.brokers.pictures(),
            TablePart("changed partitions", _CHANGES, list(islice(changes.records(), _SHOWN)), len(changes)),
            NotesPart((*self.assumptions, *self.notes)),
        )

    def count_of(self, what: FailOn) -> int | None:
        """The number of partitions with this condition. None if the snapshot lacks what decides it.

        OFFLINE and UNDER_MIN_ISR: after any of the steps, but not before the first. DATA_LOSS: a leader was elected
        outside the ISR, so that acknowledged records may be lost. POSSIBLE_DATA_LOSS: DATA_LOSS, or a partition is in
        ``ClusterHealth.may_lose_data`` after any of the steps, but not before the first.
        """
        mask = self.findings[what]
        return None if mask is None else int(np.count_nonzero(mask))

    @property
    def changed(self) -> bool:
        """Whether a partition, a topic or a broker registration changed. A request to a broker also counts."""
        return (
            len(self.changes) > 0
            or not np.array_equal(self.before.registered, self.after.registered)
            or any(isinstance(timeline_event, _EFFECTS) for step in self.steps for timeline_event in step.events)
        )

    @property
    def impact(self) -> Impact:
        """The outcome in numbers."""
        sent = [event for step in self.steps for event in step.events if isinstance(event, RequestsSent)]
        stored = [event for step in self.steps for event in step.events if isinstance(event, StatesWritten)]
        written = [event for step in self.steps for event in step.events if isinstance(event, RecordsWritten)]
        under = [count for step in self.steps if (count := step.counts["under_min_isr"]) is not None]
        known = len(self.before.offline)
        still = self.after.counted[:known]
        return Impact(
            leaders_moved=int(np.count_nonzero(self.changes.moved)),
            newly_offline=_newly(self.before.offline, self.after.offline) or 0,
            back_online=int(np.count_nonzero(self.before.offline & ~self.after.offline[:known] & still)),
            newly_under_min_isr=_newly(self.before.under_min_isr, self.after.under_min_isr),
            newly_at_min_isr=_newly(self.before.at_min_isr, self.after.at_min_isr),
            newly_under_replicated=_newly(self.before.under_replicated, self.after.under_replicated) or 0,
            unclean_elections=int(np.count_nonzero(self.changes.unclean)),
            needs_unclean_election=int(np.count_nonzero(self.after.needs_unclean_election)),
            states_changed=len(self.changes),
            partition_states_written=sum(event.partitions for event in stored),
            offline_peak=max(step.counts["offline"] or 0 for step in self.steps),
            under_min_isr_peak=max(under) if under else None,
            requests=sum(event.requests for event in sent),
            bytes=None
            if self.bytes_unknown is not None
            else sum(event.nbytes or 0 for event in sent) + sum(event.nbytes for event in written),
            records=None if self.records is None else sum(event.count for event in written),
        )


def _newly(before: Bool | None, after: Bool | None) -> int | None:
    new = newly(before, after)
    return None if new is None else int(np.count_nonzero(new))


def names_text(names: Sequence[str], limit: int = 5) -> str:
    """The first names with commas between them, and the number of the others."""
    suffix = f" and {len(names) - limit:,} more" if len(names) > limit else ""
    return f"{', '.join(names[:limit])}{suffix}"
