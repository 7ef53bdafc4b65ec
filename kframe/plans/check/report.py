"""The findings of a check of a plan. They are rows, and one document under the schema ``kframe.plan-check/v1``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Final

import numpy as np
from msgspec import UNSET
from msgspec.structs import replace

from kframe.errors import ParameterError
from kframe.model.arrays import Int32, Int64
from kframe.model.lists import distinct_values
from kframe.model.plan import Plan
from kframe.model.texts import counted, ids_text
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
from kframe.plans.check.duration import copy_seconds
from kframe.plans.check.findings import Check, Findings, Severity
from kframe.plans.check.placement_constraints import constraints_detail, constraints_note
from kframe.plans.check.resolve import check_against, check_alone, leader_loads, replica_loads
from kframe.plans.check.rules import CheckedPlan
from kframe.whatif.results.health import Skew
from kframe.whatif.results.release import ReleaseRecord

SCHEMA: Final = "kframe.plan-check/v1"

#: What a check with a rate says of a plan whose replicas may move between log directories.
DIRECTORIES_NOT_TIMED: Final = (
    "expected duration unknown: the plan names log directories (kframe plan disks --rate gives that of its moves)"
)
#: What a check or a plan without racks says.
RACKS_UNKNOWN: Final = "racks unknown: rack rules not checked (--rack-map FILE gives racks)"


@dataclass(frozen=True, slots=True, eq=False)
class PlanReport:
    """A checked plan: what was found, the errors first; and where it is held against a snapshot, what it would move.

    ``weights`` (n,) are bytes of a replica by row of the snapshot, ``rate`` bytes per second into a broker, and out of
    it; None: unknown.
    """

    plan: Plan
    checked: CheckedPlan | None
    findings: tuple[Findings, ...]
    weights: Int64 | None = None
    rate: int | None = None

    @staticmethod
    def of(
        plan: Plan, checked: CheckedPlan | None, weights: Int64 | None = None, rate: int | None = None
    ) -> PlanReport:
        """Check a plan alone, and against a snapshot if there is one. Raises ParameterError for a rate without
        weights."""
        if rate is not None and (rate < 1 or weights is None):
            actual = "no sizes of partitions" if weights is None else str(rate)
            raise ParameterError("rate", actual, "weights, and 1 or more bytes per second")
        findings = check_alone(plan)
        if checked is not None:
            findings += [*check_against(checked), *checked.rules.findings(checked)]
        severities, checks = list(Severity), list(Check)
        findings.sort(key=lambda finding: (severities.index(finding.severity), checks.index(finding.check)))
        return PlanReport(plan, checked, tuple(finding for finding in findings if len(finding)), weights, rate)

    def counts(self) -> dict[str, int]:
        """How many findings there are of each severity."""
        counts = Counter[Severity]()
        for finding in self.findings:
            counts[finding.severity] += len(finding)
        return {str(severity): counts[severity] for severity in Severity}

    @property
    def valid(self) -> bool:
        """Whether nothing was found that keeps any part of the plan from being carried out."""
        return not any(finding.severity is Severity.ERROR for finding in self.findings)

    @property
    def notes(self) -> tuple[str, ...]:
        """What the check leaves out, a sentence each."""
        if self.checked is None:
            return ()
        snapshot, topics = self.checked.snapshot, self.checked.topics
        racks_known = any(broker.rack is not None for broker in snapshot.brokers)
        constraints = constraints_note(snapshot, topics[topics >= 0].tolist())
        within = DIRECTORIES_NOT_TIMED if self.rate is not None and self.plan.names_directories().any() else None
        notes = (None if racks_known else RACKS_UNKNOWN, constraints, within)
        return tuple(note for note in notes if note is not None)

    @property
    def release(self) -> ReleaseRecord | None:
        """The release of Kafka whose rules decided. None without a snapshot, and in ZooKeeper mode."""
        return None if self.checked is None else self.checked.rules.release_record(self.checked)

    @property
    def folded_count(self) -> int:
        """How many ``folded_rows`` there are."""
        return sum(1 if finding.is_folded else len(finding) for finding in self.findings)

    def folded_rows(self) -> Iterator[PlanFinding]:
        """The rows of ``rows``, but a single row for several of a check that a plan is expected to have.

        Such a row counts topics or partitions, and its ``detail`` says what these have in common.
        """
        for finding in self.findings:
            rows = self._finding_rows(finding)
            if not finding.is_folded:
                yield from rows
                continue
            first = next(rows)
            unit = "topics" if finding.of_topics else "partitions"
            detail = finding.check.folded or first.detail
            yield replace(first, topic=f"{len(finding):,} {unit}", partition=None, detail=detail)

    def rows(self) -> Iterator[PlanFinding]:
        """A row a finding."""
        return chain.from_iterable(map(self._finding_rows, self.findings))

    def _finding_rows(self, finding: Findings) -> Iterator[PlanFinding]:
        targets = self.plan.targets
        error = None if finding.lowered else finding.check.error
        common = finding.severity, finding.check, None if error is None else error.name
        if finding.check is Check.EMPTY_PLAN:
            yield PlanFinding(*common, None, None, finding.check.text)
        for position in finding.positions.tolist():
            topic = position if finding.of_topics else int(targets.topic[position])
            partition = None if finding.of_topics else int(targets.partition[position])
            yield PlanFinding(*common, targets.names[topic], partition, self._detail(finding.check, position))

    def document(self) -> PlanCheckDocument:
        """Everything as data."""
        plan, checked = self.plan, self.checked
        return PlanCheckDocument(
            rules=None if checked is None else checked.rules.name,
            release=self.release or UNSET,
            plan=PlanRecord(plan.name, len(plan.targets.names), len(plan), len(plan.targets.replicas.values)),
            snapshot=None if checked is None else PlanSnapshot.of(checked.snapshot),
            valid=self.valid,
            counts=SeverityCounts(**self.counts()),
            moves=None if checked is None else plan_moves(checked, self.weights, self.rate),
            findings=list(self.rows()),
            notes=list(self.notes),
            assumptions=[] if checked is None else list(checked.rules.assumptions),
        )

    def _detail(self, check: Check, position: int) -> str:
        if check.text:
            return check.text
        if check is Check.DUPLICATE_BROKER:
            target = self.plan.targets.replicas[position].tolist()
            return f"broker {ids_text(sorted({id_ for id_ in target if target.count(id_) > 1}))} twice in {target}"
        if self.checked is None:
            raise ValueError(f"{check} says something about a snapshot")
        return _snapshot_detail(self.checked, check, position)


def plan_moves(checked: CheckedPlan, weights: Int64 | None = None, rate: int | None = None) -> PlanMoves:
    """What a plan would move. Partitions for which it cannot be carried out are left as they are."""
    ids = np.array([facts.broker_id for facts in checked.snapshot.brokers], np.int32)
    valid = np.flatnonzero(checked.valid).astype(np.int32)
    loads, leaders = replica_loads(checked, ids, valid), leader_loads(checked, ids, valid)
    columns = (loads["before"], loads["copied"], loads["deleted"], loads["after"], *leaders)
    registered = np.array([facts.registered is not False for facts in checked.snapshot.brokers], np.bool_)
    kinds = Counter(kind for kind, valid in zip(checked.kinds(), checked.valid.tolist(), strict=True) if valid)
    copied_bytes, seconds = _copied(checked, valid, weights, rate)
    skews = [Skew.of(column[registered].astype(np.int32)) for column in (loads["before"], loads["after"], *leaders)]
    return PlanMoves(
        partitions=ChangeKinds(*(kinds[kind] for kind in ("none", "order", "grow", "shrink", "move"))),
        not_valid=len(checked.plan) - len(valid),
        replicas_copied=int(loads["copied"].sum()),
        replicas_deleted=int(loads["deleted"].sum()),
        bytes_copied=copied_bytes,
        expected_seconds=seconds,
        replica_skew_before=skews[0],
        replica_skew_after=skews[1],
        preferred_skew_before=skews[2],
        preferred_skew_after=skews[3],
        brokers=[PlanBroker(*row) for row in np.stack([ids, *columns], axis=1).tolist()],
    )


def _copied(
    checked: CheckedPlan, positions: Int32, weights: Int64 | None, rate: int | None
) -> tuple[int | None, float | None]:
    """Bytes that the partitions at ``positions`` copy between brokers, and the seconds of that and of nothing else."""
    if weights is None:
        return None, None
    rows, adding, leader = checked.rows[positions], checked.adding.take(positions), checked.snapshot.partitions.leader
    size = weights[rows]
    total = int((size * adding.counts).sum())
    if rate is None or checked.plan.names_directories().any():
        return total, None
    return total, round(copy_seconds(adding, None if leader is None else leader[rows], size, rate), 1)


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
                return f"node {ids_text(instances)} is an instance of kframe, no broker"
            return f"broker {ids_text(unknown)} is not in the snapshot"
        case Check.FEWER_OBSERVERS:
            current = checked.snapshot.partitions.observers
            observers = [] if current is None else current[int(checked.rows[position])].tolist()
            return f"observers {ids_text(observers)} become fewer: the other replicas join the ISR"
        case Check.FEWER_REPLICAS | Check.MORE_REPLICAS:
            return f"replication factor {len(checked.origin[position])} becomes {len(target)}"
        case Check.RACKS:
            racks = {facts.broker_id: facts.rack for facts in brokers}
            names = ", ".join(str(racks.get(broker_id)) for broker_id in target)
            problem = "expected one rack" if checked.one_rack[position] else "spread less evenly than possible"
            return f"racks {names}: {problem}"
        case Check.PLACEMENT_CONSTRAINTS:
            return constraints_detail(checked, position)
        case _:
            return checked.rules.detail(checked, check, position)
