"""Every failure that a sweep of a KRaft cluster counts equals the what-if of that failure."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from kframe.model.kafka_uuids import uuid_text
from kframe.model.kraft.ids import ELR_VERSION, MetadataLevel
from kframe.model.kraft.metadata import ClusterMetadata
from kframe.model.kraft.records import BrokerFeature
from kframe.ports.progress import ignore_progress
from kframe.snapshot import Snapshot, Source
from kframe.whatif import FailOn, Outcome, WhatIf
from kframe.whatif.engines.kraft.sweep import CountedFailures, count_failures
from kframe.whatif.sweep import sweep
from tests.kraft.golden import SCENARIOS
from tests.kraft.strategies import clusters
from tests.snapshot.test_kraft_metadata import golden_metadata
from tests.whatif.kraft_samples import metadata_with, partition
from tests.whatif.test_sweep_invariants import failures_of, values_of
from verification.support.properties import examples
from verification.support.sampling import every_nth

CONFIGS: Final = st.fixed_dictionaries(
    {}, optional={"min.insync.replicas": st.integers(1, 3), "unclean.leader.election.enable": st.booleans()}
)


def with_racks(metadata: ClusterMetadata) -> Snapshot:
    """The snapshot of a cluster with two racks, and broker 2 in neither."""
    snapshot = Snapshot.from_metadata(metadata, source=Source("kraft", "drawn"))
    racks = {1: "a", 3: "a", 5: "a", 0: "b", 4: "b"}
    return replace(
        snapshot, brokers=tuple(replace(facts, rack=racks.get(facts.broker_id)) for facts in snapshot.brokers)
    )


def with_elr_support(metadata: ClusterMetadata) -> ClusterMetadata:
    """The cluster whose brokers all support ELR."""
    feature = BrokerFeature(name=ELR_VERSION, min_supported_version=0, max_supported_version=1)
    for registration in list(metadata.brokers.registrations.values()):
        metadata.brokers.register(structs.replace(registration, features=(feature,)))
    return metadata


@st.composite
def reassigned(draw: st.DrawFn) -> ClusterMetadata:
    """A cluster whose first partitions have a complete reassignment, which any change of theirs ends."""
    metadata = with_elr_support(draw(clusters()))
    p = metadata.partitions
    for row in np.flatnonzero(p.partition == 0).tolist():
        replicas = p.list_of("replica", row)
        removing = draw(st.lists(st.sampled_from(replicas), unique=True, max_size=len(replicas) - 1))
        p.replace_lists(row, {"isr": replicas, "adding": (), "removing": removing})
        p.leader[row] = draw(st.sampled_from(replicas))
    return metadata


def what_if_of(snapshot: Snapshot, config: dict[str, object], elr: bool | None) -> WhatIf:
    what_if = WhatIf(snapshot, config)
    if elr is not None and elr != what_if.cluster.elr_enabled:
        what_if.update_features({ELR_VERSION: int(elr)})
        assert what_if.cluster.elr_enabled == elr
    return what_if


def failure_values(what_if: WhatIf, outcome: Outcome) -> dict[str, Any]:
    """The sweep's values of a failure, computed from its what-if."""
    health, p = outcome.after, what_if.cluster.partitions
    unclean = np.zeros(len(p), np.bool_)
    unclean[outcome.changes.rows] = outcome.changes.unclean
    without_members = health.offline & (p.isr_count == 0) & (p.elr_count == 0)
    may_lose_data = int(np.count_nonzero(unclean | health.needs_unclean_election | without_members))
    findings = {f"--fail-on {finding}": outcome.count_of(finding) for finding in FailOn}
    return {**values_of(outcome), **findings, "may_lose_data": may_lose_data}


def brute_force(snapshot: Snapshot, config: dict[str, object], elr: bool | None) -> dict[tuple[object, ...], Any]:
    """Every failure played, each on a cluster of its own."""
    first = what_if_of(snapshot, config, elr)
    up = first.registered
    failures = failures_of(snapshot, up)
    results: dict[tuple[object, ...], Any] = {}
    for kind, brokers in failures:
        what_if = what_if_of(snapshot, config, elr)
        results[kind, brokers, None] = failure_values(what_if, what_if.fail(brokers, together=True))
    if first.cluster.metadata_version >= MetadataLevel.DIRECTORIES:
        for broker_id in up:
            for directory in first.cluster.brokers.registrations[broker_id].directories:
                what_if = what_if_of(snapshot, config, elr)
                outcome = what_if.fail_directories(broker_id, [directory])
                results["directory", (broker_id,), uuid_text(directory)] = failure_values(what_if, outcome)
    return results


def swept(snapshot: Snapshot, config: dict[str, object], elr: bool | None) -> dict[tuple[object, ...], Any]:
    result = sweep(snapshot, config, elr=elr)
    findings = {f"--fail-on {finding}": result.count_of(finding) for finding in FailOn}
    return {
        (record["kind"], tuple(record["brokers"]), record["directory"]): {
            **{name: record[name] for name in record if name not in ("kind", "brokers", "rack", "directory")},
            **{name: None if counts is None else int(counts[number]) for name, counts in findings.items()},
        }
        for number, record in enumerate(result.records())
    }


@examples(0.5)
@given(clusters().map(with_elr_support) | reassigned(), CONFIGS, st.sampled_from([None, True, False]))
def test_sweep_equals_what_ifs(metadata: ClusterMetadata, config: dict[str, object], elr: bool | None) -> None:
    if elr and metadata.metadata_version < MetadataLevel.ELR:
        elr = None
    snapshot = with_racks(metadata)
    assert swept(snapshot, config, elr) == brute_force(snapshot, config, elr)


@examples(0.5)
@given(clusters() | reassigned(), CONFIGS, st.integers(2, 9), st.sampled_from([1, 2]))
def test_counts_of_parts_add_up_to_the_sweep(
    metadata: ClusterMetadata, config: dict[str, object], parts: int, depth: int
) -> None:
    snapshot = with_racks(metadata)
    counted = [
        count_failures(
            snapshot, config, depth=depth, racks=True, elr=None, progress=ignore_progress, part=part, parts=parts
        )
        for part in range(parts)
    ]
    joined, whole = CountedFailures.sum(counted).sweep(), sweep(snapshot, config, depth=depth)
    assert list(joined.records()) == list(whole.records())
    assert (joined.before, joined.before_skew) == (whole.before, whole.before_skew)
    assert joined.release == whole.release


def test_completed_reassignment_lowers_min_isr_of_topic() -> None:
    """t-0 has three replicas until the reassignment ends that removes broker 4, and bounds min.insync.replicas of the
    topic; t-1 has two ISR members.

    The failure of broker 4 ends the reassignment, so no partition is below the minimum of two. The failure of broker 1
    or 2 leaves too few ISR members to end it: both partitions have two of three.
    """
    first = partition(0, (1, 2, 4), (1, 2, 4), removing_replicas=(4,))
    metadata = metadata_with([first, partition(1, (3, 5, 2), (3, 5))], min_isr=3, brokers=5)
    snapshot = Snapshot.from_metadata(metadata, source=Source("kraft", "drawn"))
    result = sweep(snapshot)
    assert result.before["under_min_isr"] == 1
    under_min_isr = {
        record["brokers"][0]: record["under_min_isr"] for record in result.records() if record["kind"] == "broker"
    }
    assert under_min_isr == {1: 2, 2: 2, 3: 1, 4: 0, 5: 1}
    assert swept(snapshot, {}, None) == brute_force(snapshot, {}, None)


@pytest.mark.parametrize("path", every_nth(4, SCENARIOS), ids=lambda path: path.stem)
def test_sweep_of_recorded_cluster_equals_what_ifs(path: Path) -> None:
    snapshot = Snapshot.from_metadata(golden_metadata(path), source=Source("kraft", path.stem))
    assert swept(snapshot, {}, None) == brute_force(snapshot, {}, None)
