"""A shadow of a KRaft log predicts what Kafka 4.4's controller wrote in each scenario, and reports altered records."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kframe.core.kraft.context import KraftSettings
from kframe.core.kraft.replay import replay
from kframe.core.kraft.replication.leader_selection import BuiltinSelection, Candidates, choose_leaders
from kframe.model.arrays import Int32, Ragged, UInt8
from kframe.model.kraft.metadata import ClusterMetadata
from kframe.model.kraft.records import (
    NO_LEADER_CHANGE,
    AbortTransactionRecord,
    BeginTransactionRecord,
    BrokerRegistrationChangeRecord,
    EndTransactionRecord,
    MetadataRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
)
from kframe.ports.committed_log import CommittedBatch, CommittedRecord
from kframe.ports.progress import Progress, ignore_progress
from kframe.scenario.kraft.format import read_kraft_scenario
from kframe.scenario.kraft.quorum import NODE_ID, LogBatch
from kframe.scenario.kraft.runner import KraftScenarioRunner
from kframe.whatif.shadow.kraft import BatchComparison, BatchOutcome, LogShadow, RecordDifference
from kframe.whatif.shadow.kraft.batches import STATIC_UNCLEAN
from tests.kraft.golden import SCENARIOS, scenario_parameters

MARKERS = (BeginTransactionRecord, EndTransactionRecord, AbortTransactionRecord)


def committed(log: Sequence[LogBatch]) -> Iterator[CommittedBatch]:
    for batch in log:
        if batch.control:
            continue
        records = tuple(
            CommittedRecord(batch.offset + number, *versioned)
            for number, versioned in enumerate(batch.records)
            if not isinstance(versioned.record, MARKERS)
        )
        in_transaction = len(records) < len(batch.records)
        yield CommittedBatch(batch.offset, 0, NODE_ID, batch.epoch, records, in_transaction)


class ScenarioLog:
    """Implements ``CommittedLog`` for a complete log, which it returns at once."""

    def __init__(self, batches: Sequence[CommittedBatch]) -> None:
        self.batches = list(batches)
        self.generation = 0
        self.end = 0
        self.leader_id = NODE_ID
        self.replacement: list[CommittedBatch] = []
        """Batches that a snapshot has, which replaces the log at the next poll."""
        self.state = ClusterMetadata()

    def open(self, progress: Progress = ignore_progress, *, from_start: bool = False) -> None:
        assert from_start

    def metadata(self) -> ClusterMetadata:
        return self.state

    def poll(self) -> list[CommittedBatch]:
        for batch in self.replacement:
            for offset, record, _ in batch.records:
                replay(self.state, record, offset)
                self.end = offset + 1
            self.generation = 1
        self.replacement = []
        batches, self.batches = self.batches, []
        if batches:
            self.end = batches[-1].records[-1].offset + 1
        return batches

    def close(self) -> None:
        pass


def played(name: str) -> list[CommittedBatch]:
    """The batches of a scenario, which is played once, by the rules as they are then."""
    return list(_log_of(name))


@cache
def _log_of(name: str) -> tuple[CommittedBatch, ...]:
    (path,) = (path for path in SCENARIOS if path.stem == name)
    runner = KraftScenarioRunner(read_kraft_scenario(path))
    runner.play()
    return tuple(committed(runner.log))


def compared(
    batches: Sequence[CommittedBatch], settings: KraftSettings | None = None, *, knows_unclean: bool = False
) -> list[BatchComparison]:
    shadow = LogShadow(ScenarioLog(batches), settings or KraftSettings(), knows_unclean=knows_unclean)
    shadow.open(from_start=True)
    return [*shadow.poll(), *shadow.finish()]


def differences(results: Sequence[BatchComparison]) -> list[RecordDifference]:
    return [difference for result in results for difference in result.differences]


# No other test of the shadow has the fencing of a broker that is split into several batches, as in fence-large.
@pytest.mark.parametrize("path", scenario_parameters(extended=("create-many",)))
def test_shadow_predicts_every_scenario(path: Path) -> None:
    results = compared(played(path.stem))
    assert differences(results) == []


def test_scenarios_cover_every_event_kind() -> None:
    names = (
        "elr-unclean-elr",
        "controlled-shutdown",
        "directories-lost",
        "reassign-cancel",
        "preferred-election",
        "unclean-election-api",
        "delete-topics",
        "create-partitions-elr",
        "configs-elr",
        "features",
    )
    events = {event.split(":")[0] for name in names for result in compared(played(name)) for event in result.events}
    assert events >= {
        "AlterPartition of the leader",
        "broker fenced",
        "broker registered",
        "broker restarted after an unclean stop",
        "broker unfenced",
        "configurations changed",
        "controlled shutdown",
        "directories assigned",
        "directory failed",
        "features updated",
        "partitions created",
        "preferred election",
        "reassignment cancelled",
        "reassignment started",
        "topic created",
        "topic deleted",
        "unclean election",
    }


def altered(
    batches: Sequence[CommittedBatch], kind: type[MetadataRecord], **fields: Any
) -> tuple[list[CommittedBatch], int]:
    """The batches with other fields in the last record of a type that has them, and its offset."""
    changed = list(batches)
    for index in reversed(range(len(batches))):
        for number, committed_record in enumerate(batches[index].records):
            record = committed_record.record
            if isinstance(record, kind) and all(
                getattr(record, name) not in (None, NO_LEADER_CHANGE) for name in fields
            ):
                records = list(batches[index].records)
                records[number] = committed_record._replace(record=msgspec.structs.replace(record, **fields))
                changed[index] = replace(batches[index], records=tuple(records))
                return changed[: index + 1], committed_record.offset
    raise AssertionError(f"no {kind.__name__} with {sorted(fields)}")


@pytest.mark.parametrize(
    "name, kind, fields, event",
    [
        ("fence-by-silence", PartitionChangeRecord, {"leader": 7}, "broker"),
        ("fence-by-silence", PartitionChangeRecord, {"isr": (7,)}, "broker"),
        ("elr-filled-and-emptied-elr", PartitionChangeRecord, {"eligible_leader_replicas": (1, 2, 3, 9)}, ""),
        ("create-topics", PartitionRecord, {"leader_epoch": 3}, "topic created"),
        ("create-topics", PartitionRecord, {"leader": 7}, "topic created"),
        ("register-again", RegisterBrokerRecord, {"broker_epoch": 2}, "broker registered"),
        ("reassign", PartitionChangeRecord, {"adding_replicas": (9,)}, ""),
    ],
)
def test_altered_record_is_reported(name: str, kind: type[MetadataRecord], fields: dict[str, Any], event: str) -> None:
    batches, offset = altered(played(name), kind, **fields)
    results = compared(batches)
    assert [result.outcome for result in results[:-1]].count(BatchOutcome.DIFFERS) == 0
    last = results[-1]
    assert last.outcome is BatchOutcome.DIFFERS
    assert any(offset == difference.offset for difference in last.differences)
    assert any(event in difference.event for difference in last.differences)


def test_missing_partition_change_of_fenced_broker_is_reported() -> None:
    batches = played("fence-by-silence")
    index = next(
        index
        for index, batch in enumerate(batches)
        if isinstance(batch.records[-1].record, BrokerRegistrationChangeRecord) and len(batch.records) > 1
    )
    dropped = batches[index].records[0].record
    assert isinstance(dropped, PartitionChangeRecord)
    batches[index] = replace(batches[index], records=batches[index].records[1:])
    (difference,) = compared(batches[: index + 1])[-1].differences
    assert (difference.type, difference.field, difference.offset) == ("PartitionChange", "record", None)
    assert (difference.predicted, difference.committed) == ("written", None)
    assert difference.event.startswith("broker fenced: broker ")


def test_altered_leader_rule_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the order of replicas, the last in-sync replica leads."""

    def choose_last(_self: BuiltinSelection, metadata: ClusterMetadata, candidates: Candidates) -> tuple[Int32, UInt8]:
        values, offsets = candidates.replicas.values.tolist(), candidates.replicas.offsets.tolist()
        lists = [values[start:end] for start, end in itertools.pairwise(offsets)]
        backwards = replace(candidates, replicas=Ragged.of([members[::-1] for members in lists]))
        return choose_leaders(metadata, backwards)

    batches = played("fence-by-silence")
    monkeypatch.setattr(BuiltinSelection, "choose", choose_last)
    results = compared(batches)
    leaders = [difference for difference in differences(results) if difference.field == "leader"]
    assert leaders
    assert all(difference.predicted != difference.committed for difference in leaders)


def test_unknown_static_setting_is_not_a_difference() -> None:
    batches = played("unclean-by-static-elr")
    results = compared(batches)
    assert differences(results) == []
    assert any(STATIC_UNCLEAN in result.reasons for result in results)
    assert differences(compared(batches, KraftSettings(), knows_unclean=True))
    stated = KraftSettings(unclean_leader_election_enable=True)
    assert not any(STATIC_UNCLEAN in result.reasons for result in compared(batches, stated, knows_unclean=True))


def test_records_of_transactions_and_requests_are_unpredictable() -> None:
    results = compared(played("acls"))
    reasons = [reason for result in results for reason in result.reasons]
    assert reasons[0] == "records of a transaction"
    assert {"the request says all of an ACL", "a controller says all of its registration"} <= set(reasons)
    assert BatchOutcome.DIFFERS not in {result.outcome for result in results}


def test_new_log_snapshot_skips_offsets() -> None:
    batches = played("fence-by-silence")
    log = ScenarioLog(batches[:1])
    shadow = LogShadow(log, KraftSettings())
    shadow.open(from_start=True)
    list(shadow.poll())
    log.replacement = batches[1:-1]
    assert list(shadow.poll()) == []
    assert shadow.skipped == batches[-2].records[-1].offset - batches[0].records[-1].offset
    log.batches = batches[-1:]
    (result,) = shadow.poll()
    assert (result.outcome, bool(result.events)) == (BatchOutcome.EQUAL, True)
