"""A plan for a KRaft cluster is checked by KRaft rules: the findings predict the responses of the controller."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, permutations
from typing import Any, Final

import pytest

from kframe.model.kraft.records import PartitionRecord
from kframe.model.plan import Plan
from kframe.plans.check.document import PlanFinding
from kframe.plans.check.findings import Check
from kframe.plans.check.report import PlanReport
from kframe.plans.check.resolve import resolve_plan
from kframe.plans.file.read import load_plan
from kframe.snapshot import Snapshot, read_snapshot
from kframe.whatif import TopicStatus, WhatIf
from kframe.whatif.results.release import ReleaseRecord
from tests.architecture.source import ROOT
from tests.whatif.kraft_samples import metadata_with, partition, with_broker_states

BROKERS: Final = 7
DEAD_REPLICA: Final = ROOT / "tests/whatif/inputs/dead-kept-replica.txt"
DEAD_REPLICA_PLAN: Final = DEAD_REPLICA.with_name("dead-kept-replica-plan.json")
INVALID: Final = "INVALID_REPLICA_ASSIGNMENT"
PARTITIONS: Final = (
    partition(0, (1, 2), (1, 2)),
    partition(1, (1, 2, 4), (1, 2), adding_replicas=(4,)),
    partition(2, (3, 1, 2), (3, 1), removing_replicas=(2,)),
    partition(3, (1, 8), (1,)),
    partition(4, (1, 4), (1,)),
)


#: The latest ``metadata.version`` of these releases.
LATEST_LEVELS: Final = {"4.4": 33, "4.3": 30, "4.2": 29, "3.7": 19}


def cluster(partitions: tuple[PartitionRecord, ...] = PARTITIONS, release: str = "4.4") -> Snapshot:
    """Broker 4 is fenced, 5 in controlled shutdown. All directories of 6 are cordoned, and one of 7. 8 is unknown."""
    supported = LATEST_LEVELS[release]
    return with_broker_states(metadata_with(partitions, brokers=BROKERS, fenced=[4], supported=supported))


def findings(number: int, target: tuple[int, ...], snapshot: Snapshot | None = None) -> dict[str, PlanFinding]:
    """The findings about one partition by check."""
    plan = Plan.of([(("t", number), target)])
    return findings_of(PlanReport.of(plan, resolve_plan(plan, snapshot or cluster())))


def findings_of(report: PlanReport) -> dict[str, PlanFinding]:
    ignored = (Check.PARTIAL_TOPIC, Check.FEWER_REPLICAS, Check.MORE_REPLICAS, Check.ORDER_ONLY)
    return {row.check: row for row in report.rows() if row.check not in ignored}


#: Partition of topic t, its target, and the findings with error and detail.
CASES: Final[tuple[tuple[int, tuple[int, ...], dict[str, tuple[str | None, str]]], ...]] = (
    (0, (2, 3), {}),
    (0, (1, 8), {"dead-broker": (INVALID, "broker 8 is not registered")}),
    (3, (1, 8), {"dead-broker": (INVALID, "broker 8 is not registered"),
                 "no-op": (None, "the partition already has these replicas")}),
    (0, (1, 6), {"cordoned-broker": (INVALID, "all log directories of broker 6 are cordoned")}),
    (0, (1, 7), {"cordoned-directories":
                 (None, "some log directories of broker 7 are cordoned: the others get the replica")}),
    (0, (1, 4), {"fenced-broker": (None, "broker 4 is fenced: it must be unfenced and catch up"),
                 "min-isr": (None, "1 of its target brokers can be in the ISR, and min.insync.replicas is 2")}),
    (0, (1, 2, 5), {"broker-shutting-down":
                    (None, "broker 5 is in controlled shutdown: it must restart and catch up")}),
    (0, (2,), {"min-isr": (None, "1 of its target brokers can be in the ISR, and min.insync.replicas is 2")}),
    # A replica that stays does not have to be in the ISR while at least as many are added as removed.
    (4, (4, 2, 3), {}),
    (1, (1, 2), {
        "already-moving": (None, "a reassignment is in progress; the plan replaces it"),
        "cannot-complete":
            (None, "a stored adding or removing replica contradicts this target: cancel first"),
    }),
    (2, (1, 2, 3), {
        "already-moving": (None, "a reassignment is in progress; the plan replaces it"),
        "cannot-complete":
            (None, "a stored adding or removing replica contradicts this target: cancel first"),
    }),
    (1, (1, 2, 3), {
        "already-moving": (None, "a reassignment is in progress; the plan replaces it"),
    }),
)  # fmt: skip


@pytest.mark.parametrize("number, target, expected", CASES)
def test_findings_by_kraft_rules(number: int, target: tuple[int, ...], expected: dict[str, Any]) -> None:
    rows = findings(number, target)
    assert {check: (row.error, row.detail) for check, row in rows.items()} == expected


def test_unknown_broker_is_invalid_assignment() -> None:
    assert findings(0, (1, 99))["unknown-broker"].error == INVALID


@pytest.mark.parametrize(
    "release, severity, error, ending",
    [
        ("4.4", "error", INVALID, "are cordoned"),
        ("4.3", "warning", None, "are cordoned: Kafka 4.3 accepts the plan, 4.4 refuses it"),
    ],
)
def test_cordoned_target_is_refused_from_kafka_4_4_on(
    release: str, severity: str, error: str | None, ending: str
) -> None:
    snapshot, plan = cluster(release=release), Plan.of([(("t", 0), (1, 6))])
    finding = findings(0, (1, 6), snapshot)["cordoned-broker"]
    assert (finding.severity, finding.error) == (severity, error)
    assert finding.detail.endswith(ending)
    report = PlanReport.of(plan, resolve_plan(plan, snapshot))
    assert (report.valid, report.counts()["error"]) == (error is None, int(error is not None))
    result = WhatIf(snapshot).reassign(plan).reassignment
    assert result is not None
    assert result.status(0) is (TopicStatus.COMPLETED if error is None else TopicStatus.REFUSED)


@pytest.mark.parametrize(
    "number, release", [*((number, "4.4") for number in range(len(PARTITIONS))), (0, "4.2"), (4, "4.2"), (4, "3.7")]
)
def test_findings_predict_response_of_controller(number: int, release: str) -> None:
    """Targets of one to three brokers: an error means refusal, a warning of waiting that it does not complete."""
    snapshot = cluster(release=release)
    waits = {Check.FENCED_BROKER, Check.BROKER_SHUTTING_DOWN, Check.CANNOT_COMPLETE, Check.NO_LEADER}
    statuses = set()
    brokers = range(1, BROKERS + 2)
    for target in (*permutations(brokers, 1), *permutations(brokers, 2), *combinations(brokers, 3)):
        plan = Plan.of([(("t", number), target)])
        checked = resolve_plan(plan, snapshot)
        result = WhatIf(snapshot).reassign(plan).reassignment
        assert result is not None
        status = result.status(0)
        statuses.add(status)
        rows = findings_of(PlanReport.of(plan, checked))
        assert (status is TopicStatus.REFUSED) == (not checked.valid[0]), target
        assert any(row.severity == "error" for row in rows.values()) == (not checked.valid[0]), target
        if status is not TopicStatus.REFUSED:
            assert (status is TopicStatus.WAITING) == bool(waits & rows.keys()), (target, rows)
    assert statuses == set(TopicStatus)


@pytest.mark.parametrize(
    "config, rules",
    [
        ({"metadata.version": "4.2"}, ["retained-out-of-sync"]),
        ({"metadata.version": "4.3"}, []),
        ({"kframe.kraft.release": "4.2"}, []),
    ],
)
def test_check_says_whether_an_unknown_release_matters(config: dict[str, object], rules: list[str]) -> None:
    """Broker 2, which is fenced, stays a replica."""
    snapshot, plan = read_snapshot(DEAD_REPLICA).with_mode("kraft"), load_plan(DEAD_REPLICA_PLAN)
    release = PlanReport.of(plan, resolve_plan(plan, snapshot, config)).document().release
    assert isinstance(release, ReleaseRecord)
    assert ([rule.name for rule in release.rules], release.matters) == (rules, bool(rules))


def test_unknown_configs_omit_min_isr_finding() -> None:
    snapshot = cluster()
    topics = replace(snapshot.topics, configs=None)
    assert "min-isr" not in findings(0, (2,), replace(snapshot, topics=topics))


def test_report_names_rules() -> None:
    plan = Plan.of([(("t", 0), (2, 3))])
    report = PlanReport.of(plan, resolve_plan(plan, cluster()))
    assert report.document().rules == "KRaft (Kafka 4.4, metadata.version 4.3-IV0, ELR on)"
    assert PlanReport.of(plan, None).document().rules is None
