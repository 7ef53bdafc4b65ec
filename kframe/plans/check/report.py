"""The findings of a check of a plan. They are rows, and one document under the schema ``kframe.plan-check/v1``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from msgspec.structs import replace

from kframe.errors import ErrorCode
from kframe.model.lists import distinct_values
from kframe.model.plan import Plan
from kframe.model.texts import counted
from kframe.plans.check.document import (
    ChangeKinds,
    PlanBroker,
    PlanCheckDocument,
    PlanFinding,
    PlanMoves,
    PlanRecord,
    PlanSnapshot,
    SeverityCounts,
)
from kframe.plans.check.findings import SEVERITY, Check, Findings, Severity
from kframe.plans.check.kraft import check_kraft_rules, kraft_detail
from kframe.plans.check.placement_constraints import constraints_note
from kframe.plans.check.resolve import (
    CheckedPlan,
    brokers_in,
    check_against,
    check_alone,
    check_zookeeper_rules,
    racks_of,
    replica_loads,
)
from kframe.whatif.results.health import Skew

SCHEMA: Final = "kframe.plan-check/v1"

#: The error of the controller, or of Kafka's own tool, for a finding. Neither refuses the others.
_ERRORS: Final = {
    Check.EMPTY_REPLICAS: ErrorCode.INVALID_REPLICA_ASSIGNMENT,
    Check.DUPLICATE_BROKER: ErrorCode.INVALID_REPLICA_ASSIGNMENT,
    Check.BROKER_ID: ErrorCode.INVALID_REPLICA_ASSIGNMENT,
    Check.UNKNOWN_BROKER: ErrorCode.INVALID_REPLICA_ASSIGNMENT,
    Check.DEAD_BROKER: ErrorCode.INVALID_REPLICA_ASSIGNMENT,
    Check.CORDONED_BROKER: ErrorCode.INVALID_REPLICA_ASSIGNMENT,
    Check.UNKNOWN_TOPIC: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    Check.UNKNOWN_PARTITION: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    Check.TOPIC_BEING_DELETED: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    Check.TOPIC_NAME: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    Check.PARTITION_NUMBER: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
}
_PLAIN: Final = {
    Check.EMPTY_PLAN: "no partition in it",
    Check.TOPIC_NAME: "not a topic name that Kafka allows",
    Check.PARTITION_NUMBER: "a negative partition number",
    Check.DUPLICATE_PARTITION: "appears earlier in the plan",
    Check.EMPTY_REPLICAS: "an empty replica list",
    Check.BROKER_ID: "a negative broker id",
    Check.OBSERVERS: "observers that are not the last replicas, or are all of them",
    Check.LOG_DIRS: "another number of log directories than of replicas",
    Check.UNKNOWN_TOPIC: "no such topic in the snapshot",
    Check.TOPIC_BEING_DELETED: "the topic is being deleted",
    Check.CANNOT_COMPLETE: "a stored adding or removing replica contradicts this target: cancel first",
    Check.NO_LEADER: "no live leader: the reassignment cannot complete before there is one",
    Check.ALREADY_MOVING: "a reassignment is in progress; the plan replaces it",
    Check.UNEVEN_REPLICATION: "its partitions get different replication factors",
    Check.ORDER_ONLY: "the same replicas in another order: only the preferred leader may change",
    Check.NO_OP: "the partition already has these replicas",
}


#: What the partitions or topics of a check have in common, where the detail of each differs.
_FOLDED: Final = {
    Check.PARTIAL_TOPIC: "the plan has some of their partitions",
    Check.MORE_REPLICAS: "the replication factor becomes greater",
    Check.CORDONED_DIRECTORIES: "some log directories of a broker are cordoned",
}
#: What a check or a plan without racks says.
RACKS_UNKNOWN: Final = "racks unknown: rack rules not checked (--rack-map FILE gives racks)"


@dataclass(frozen=True, slots=True, eq=False)
class PlanReport:
    """A checked plan: what was found, the errors first; and where it is held against a snapshot, what it would move."""

    plan: Plan
    checked: CheckedPlan | None
    findings: tuple[Findings, ...]

    @staticmethod
    def of(plan: Plan, checked: CheckedPlan | None) -> PlanReport:
        """Check a plan alone, and against a snapshot if there is one."""
        findings = check_alone(plan)
        if checked is not None:
            findings += check_against(checked)
            findings += (
                check_zookeeper_rules(checked) if checked.kraft is None else check_kraft_rules(checked, checked.kraft)
            )
        order = list(Severity)
        ordered = sorted(
            findings, key=lambda finding: (order.index(_severity(finding)), list(Check).index(finding.check))
        )
        return PlanReport(plan, checked, tuple(ordered))

    def counts(self) -> dict[str, int]:
        """How many findings there are of each severity."""
        counts = Counter[Severity]()
        for finding in self.findings:
            counts[_severity(finding)] += len(finding)
        return {str(severity): counts[severity] for severity in Severity}

    @property
    def valid(self) -> bool:
        """Whether nothing was found that keeps any part of the plan from being carried out."""
        return not any(_severity(finding) is Severity.ERROR for finding in self.findings)

    @property
    def notes(self) -> tuple[str, ...]:
        """What the check leaves out, a sentence each."""
        if self.checked is None:
            return ()
        snapshot, topics = self.checked.snapshot, self.checked.topics
        racks_known = any(broker.rack is not None for broker in snapshot.brokers)
        constraints = constraints_note(snapshot, topics[topics >= 0].tolist())
        return (*(() if racks_known else (RACKS_UNKNOWN,)), *(() if constraints is None else (constraints,)))

    @property
    def folded_count(self) -> int:
        """How many ``folded_rows`` there are."""
        return sum(1 if _is_folded(finding) else len(finding) for finding in self.findings)

    def folded_rows(self) -> Iterator[PlanFinding]:
        """The rows of ``rows``, but a single row for several of a check that a plan is expected to have.

        Such a row counts topics or partitions, and its ``detail`` says what these have in common.
        """
        for finding in self.findings:
            rows = self._finding_rows(finding)
            if not _is_folded(finding):
                yield from rows
                continue
            first = next(rows)
            unit = "topics" if finding.of_topics else "partitions"
            detail = _FOLDED.get(finding.check, first.detail)
            yield replace(first, topic=f"{len(finding):,} {unit}", partition=None, detail=detail)

    def rows(self) -> Iterator[PlanFinding]:
        """A row a finding."""
        for finding in self.findings:
            yield from self._finding_rows(finding)

    def _finding_rows(self, finding: Findings) -> Iterator[PlanFinding]:
        targets = self.plan.targets
        error = None if finding.lowered else _ERRORS.get(finding.check)
        common = _severity(finding), finding.check, None if error is None else error.name
        if finding.check is Check.EMPTY_PLAN:
            yield PlanFinding(*common, None, None, _PLAIN[finding.check])
        for position in finding.positions.tolist():
            topic = position if finding.of_topics else int(targets.topic[position])
            partition = None if finding.of_topics else int(targets.partition[position])
            yield PlanFinding(*common, targets.names[topic], partition, self._detail(finding.check, position))

    def document(self) -> PlanCheckDocument:
        """Everything as data."""
        plan, checked = self.plan, self.checked
        return PlanCheckDocument(
            rules=None if checked is None else checked.rules,
            plan=PlanRecord(plan.name, len(plan.targets.names), len(plan), len(plan.targets.replicas.values)),
            snapshot=None if checked is None else PlanSnapshot.of(checked.snapshot),
            valid=self.valid,
            counts=SeverityCounts(**self.counts()),
            moves=None if checked is None else plan_moves(checked),
            findings=list(self.rows()),
            notes=list(self.notes),
            assumptions=[] if checked is None else list(_assumptions(checked)),
        )

    def _detail(self, check: Check, position: int) -> str:
        if check in _PLAIN:
            return _PLAIN[check]
        lists = self.plan.targets.replicas
        if check is Check.DUPLICATE_BROKER:
            target = lists[position].tolist()
            return f"broker {_named(sorted(_duplicates(target)))} twice in {target}"
        if self.checked is None:
            raise ValueError(f"{check} says something about a snapshot")
        return _snapshot_detail(self.checked, check, position)


def _is_folded(finding: Findings) -> bool:
    return len(finding) > 1 and _severity(finding) is Severity.INFO


def _severity(finding: Findings) -> Severity:
    return finding.lowered or SEVERITY[finding.check]


def _assumptions(checked: CheckedPlan) -> tuple[str, ...]:
    """What the checks assume of the cluster, a sentence each."""
    return checked.snapshot.assumptions if checked.kraft is None else checked.kraft.assumptions


def plan_moves(checked: CheckedPlan) -> PlanMoves:
    """What a plan would move. Partitions for which it cannot be carried out are left as they are."""
    ids, loads = replica_loads(checked)
    registered = np.array([facts.registered is not False for facts in checked.snapshot.brokers], np.bool_)
    kinds = Counter(kind for kind, valid in zip(checked.kinds(), checked.valid.tolist(), strict=True) if valid)
    skew = {name: Skew.of(column[registered].astype(np.int32)) for name, column in loads.items()}
    return PlanMoves(
        partitions=ChangeKinds(*(kinds[kind] for kind in ("none", "order", "grow", "shrink", "move"))),
        not_valid=int(np.count_nonzero(~checked.valid)),
        replicas_copied=int(loads["copied"].sum()),
        replicas_deleted=int(loads["deleted"].sum()),
        replica_skew_before=skew["replicas_before"],
        replica_skew_after=skew["replicas_after"],
        preferred_skew_before=skew["preferred_leaders_before"],
        preferred_skew_after=skew["preferred_leaders_after"],
        brokers=[
            PlanBroker(broker_id, **{name: int(column[index]) for name, column in loads.items()})
            for index, broker_id in enumerate(ids.tolist())
        ],
    )


def _snapshot_detail(checked: CheckedPlan, check: Check, position: int) -> str:
    targets = checked.plan.targets
    topics, brokers = checked.snapshot.topics, checked.snapshot.brokers
    target = targets.replicas[position].tolist() if check is not Check.PARTIAL_TOPIC else []
    match check:
        case Check.UNKNOWN_PARTITION | Check.PARTIAL_TOPIC:
            topic = position if check is Check.PARTIAL_TOPIC else int(targets.topic[position])
            partition_count = int(topics.partition_counts[topics.names.index(targets.names[topic])])
            planned = len(distinct_values(checked.rows[(targets.topic == topic) & (checked.rows >= 0)]))
            if check is Check.PARTIAL_TOPIC:
                return f"the plan has {planned:,} of its {counted(partition_count, 'partition')}"
            return f"the topic has partitions 0 to {partition_count - 1}"
        case Check.UNKNOWN_BROKER:
            known = {facts.broker_id for facts in brokers}
            unknown = [broker_id for broker_id in target if broker_id not in known]
            if instances := [broker_id for broker_id in unknown if broker_id in checked.snapshot.controllers]:
                return f"node {_named(instances)} is an instance of kframe, no broker"
            return f"broker {_named(unknown)} is not in the snapshot"
        case (
            Check.DEAD_BROKER
            | Check.CORDONED_BROKER
            | Check.FENCED_BROKER
            | Check.BROKER_SHUTTING_DOWN
            | Check.CORDONED_DIRECTORIES
            | Check.MIN_ISR
        ) if checked.kraft is not None:
            return kraft_detail(checked, checked.kraft, check, position)
        case Check.DEAD_BROKER:
            dead = [
                broker_id for broker_id in brokers_in(checked, position, False) if broker_id in checked.adding[position]
            ]
            return f"broker {_named(dead)} is to be added, but is not registered"
        case Check.DEAD_BROKER_STAYS:
            dead = [
                broker_id
                for broker_id in brokers_in(checked, position, False)
                if broker_id not in checked.adding[position]
            ]
            return f"broker {_named(dead)} stays, but is not registered: complete only while it is in the ISR"
        case Check.FEWER_OBSERVERS:
            current = checked.snapshot.partitions.observers
            observers = [] if current is None else current[int(checked.rows[position])].tolist()
            return f"observers {_named(observers)} become fewer: the other replicas join the ISR"
        case Check.FEWER_REPLICAS | Check.MORE_REPLICAS:
            return f"replication factor {len(checked.origin[position])} becomes {len(target)}"
        case _:
            return f"racks {', '.join(map(str, racks_of(checked, position)))}: fewer than possible"


def _named(ids: Sequence[int]) -> str:
    return ", ".join(map(str, ids))


def _duplicates(values: Sequence[int]) -> set[int]:
    return {value for value in values if values.count(value) > 1}
