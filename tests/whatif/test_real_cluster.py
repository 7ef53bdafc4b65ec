"""The what-if compared with a real event: broker 4 of the bundled cluster was killed."""

from __future__ import annotations

from pathlib import Path

import pytest

from kframe.model.cluster import PartitionView
from kframe.snapshot import read_snapshot
from kframe.whatif import WhatIf
from tests.architecture.source import ROOT

CLUSTER = ROOT / "examples" / "clusters" / "kafka-3.9.1-six-brokers"
#: A reassignment of this topic started between the two snapshots.
REASSIGNED = "clickstream.events.v1"


def example_of(name: str, format: str) -> Path:
    return CLUSTER / f"{name}.{format}.gz"


def partitions(whatif: WhatIf) -> dict[tuple[str, int], PartitionView]:
    return {(view.topic, view.partition): view for view in whatif.cluster if view.topic != REASSIGNED}


def test_failure_of_broker_4_equals_recorded_states() -> None:
    predicted = WhatIf(read_snapshot(example_of("healthy", "zookeeper.jsonl")))
    predicted.fail([4])
    real = WhatIf(read_snapshot(example_of("broker-4-dead", "zookeeper.jsonl")))
    predicted_views, real_views = partitions(predicted), partitions(real)
    assert len(predicted_views) > 600
    assert predicted_views == real_views


@pytest.mark.parametrize("format", ["kcat.json", "topics-describe.txt"])
def test_incomplete_formats_predict_same_leaders(format: str) -> None:
    predicted = WhatIf(read_snapshot(example_of("healthy", format)))
    outcome = predicted.fail([4])
    real = WhatIf(read_snapshot(example_of("broker-4-dead", "zookeeper.jsonl")))
    predicted_views, real_views = partitions(predicted), partitions(real)
    assert {key: (view.leader, set(view.isr)) for key, view in predicted_views.items()} == {
        key: (view.leader, set(view.isr)) for key, view in real_views.items()
    }
    assert outcome.changes.leader_epoch_after is None
    assert outcome.impact.newly_offline == 5


def test_impact_of_recorded_failure() -> None:
    outcome = WhatIf(read_snapshot(example_of("healthy", "zookeeper.jsonl"))).fail([4])
    impact = outcome.impact
    assert (impact.leaders_moved, impact.newly_offline, impact.partition_states_written) == (105, 5, 312)
    assert (outcome.before.counts()["at_min_isr"], outcome.after.counts()["at_min_isr"]) == (24, 262)
    assert impact.requests == 18


def test_restart_of_broker_4_brings_partitions_online() -> None:
    outcome = WhatIf(read_snapshot(example_of("broker-4-dead", "zookeeper.jsonl"))).restart([4])
    assert (outcome.impact.back_online, outcome.after.counts()["offline"]) == (5, 0)
    # The dump has no endpoints of a dead broker, so that requests with this broker have no known size.
    assert outcome.impact.bytes is None
