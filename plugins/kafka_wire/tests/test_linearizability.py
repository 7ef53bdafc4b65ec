"""Admin requests of clients to live controllers under faults: an order of all requests explains all answers."""

from __future__ import annotations

from pathlib import Path

import pytest
from kframe_kafka_wire.testing import history_check
from kframe_kafka_wire.testing.linearizability import CUT_OFF_WITH_READERS, FROZEN, history_cluster, mutated


def test_responses_are_linearizable_under_faults(needs_java: None, tmp_path: Path) -> None:
    """An instance whose session ends while it is frozen, or while it reaches clients but not ZooKeeper."""
    if reason := history_check.missing():
        pytest.skip(reason)
    with history_cluster(tmp_path, seed=1) as cluster:
        operations = cluster.record(0, [FROZEN, CUT_OFF_WITH_READERS])
    report = history_check.check(operations, tmp_path)
    assert (report.violations, report.undecided) == ([], [])
    assert {operation.kind for operation in operations if operation.code == "NONE"} >= {
        "create", "delete", "grow", "reassign", "describe", "list",
    }  # fmt: skip
    assert len(history_check.check(mutated(operations)).violations) == 1
