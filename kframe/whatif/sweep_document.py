"""The documents of sweeps: ``kframe.sweep/v1`` and ``kframe.sweep-elr/v1``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal, cast

from msgspec import UNSET, Struct, UnsetType

from kframe.model.arrays import Int64
from kframe.snapshot import Snapshot
from kframe.whatif.results.findings import FailOn, FindingCounts
from kframe.whatif.results.release import ReleaseRecord
from kframe.whatif.results.sweep import KINDS, Failure, Sweep
from kframe.whatif.results.sweep_records import FailureKinds, SweepBefore, SweepRow, SweepSnapshot

SCHEMA: Final = "kframe.sweep/v1"
COMPARISON_SCHEMA: Final = "kframe.sweep-elr/v1"
_FAILURE: Final = ("kind", "brokers", "rack", "directory")
_COMPARED: Final = ("offline", "may_lose_data", "under_min_isr", "unclean_elections", "needs_unclean_election")


class SweepDocument(Struct, kw_only=True):
    """Every failure of one broker, two brokers, one rack, and in KRaft mode one log directory, the worst first:
    ``kframe whatif sweep``."""

    rules: str
    release: ReleaseRecord | UnsetType = UNSET
    snapshot: SweepSnapshot
    registered_brokers: int
    failures: FailureKinds
    before: SweepBefore
    findings: FindingCounts
    assumptions: list[str]
    rows: list[SweepRow]


class ElrFailureRow(Struct):
    """A failure in a KRaft cluster without and with eligible leader replicas, in partitions; null is unknown."""

    kind: Literal["broker", "pair", "rack", "directory"]
    brokers: list[int]
    rack: str | None
    directory: str | None
    offline_elr_off: int
    offline_elr_on: int
    may_lose_data_elr_off: int
    may_lose_data_elr_on: int
    under_min_isr_elr_off: int | None
    under_min_isr_elr_on: int | None
    unclean_elections_elr_off: int
    unclean_elections_elr_on: int
    needs_unclean_election_elr_off: int
    needs_unclean_election_elr_on: int


class ElrRules(Struct):
    """The rules that decided, in words."""

    elr_off: str
    elr_on: str


class ElrSweepDocument(Struct):
    """Every failure in a KRaft cluster with ELR off and on: ``kframe whatif sweep --elr both``."""

    rules: ElrRules
    release: ReleaseRecord | None
    assumptions: list[str]
    rows: list[ElrFailureRow]


def sweep_document(swept: Sweep, snapshot: Snapshot) -> SweepDocument:
    """A sweep without its failures, which ``swept.records`` has."""
    source, before = snapshot.source, cast(Mapping[str, Any], swept.before)
    kinds = [kind for kind in KINDS if snapshot.is_kraft or kind is not Failure.DIRECTORY]
    return SweepDocument(
        rules=swept.rules,
        release=swept.release or UNSET,
        snapshot=SweepSnapshot(source.format, source.name, snapshot.mode, len(snapshot)),
        registered_brokers=len(swept.brokers),
        failures=FailureKinds(*(int((swept.kind == number).sum()) for number in range(len(kinds)))),
        before=SweepBefore(**before, leader_skew=swept.before_skew),
        findings=FindingCounts(*map(swept.failures_with, FailOn)),
        assumptions=list(swept.assumptions),
        rows=[],
    )


def compared_failures(off: Sweep, on: Sweep, positions: Int64) -> Iterator[ElrFailureRow]:
    """The failures at ``positions`` of a KRaft cluster without and with eligible leader replicas."""
    for before, after in zip(off.records(positions), on.records(positions), strict=True):
        counts = [record[name] for name in _COMPARED for record in (before, after)]
        yield ElrFailureRow(*(before[name] for name in _FAILURE), *counts)
