"""Stamps of plans: written, read, and compared with the cluster."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from kframe.errors import SnapshotError
from kframe.model.plan import Plan
from kframe.model.tables import Targets
from kframe.plans.check.resolve import resolve_plan
from kframe.plans.file.read import Stamp, load_plan
from kframe.plans.file.write import plan_document, read_stamp
from tests.plans.embedded_admin import EmbeddedAdmin

PLAN = Plan.of([(("t", 0), (3, 4)), (("u", 0), (2,)), (("t", 2), (3, 4))])


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        (Stamp("c1", 7, "a"), None),
        (Stamp(None, None, "a"), None),
        (Stamp("c2", 7, "a"), "made for cluster c1, this is c2"),
        (Stamp("c1", 8, "a"), "under controller epoch 7, now it is 8"),
        (Stamp("c1", 7, "b"), "assigned anew since"),
        (Stamp(None, None, "b"), "assigned anew since"),
    ],
)
def test_stale_stamp_names_reason(other: Stamp, reason: str | None) -> None:
    """A value that one side does not know is not compared."""
    reason_ = Stamp("c1", 7, "a").stale(other)
    assert reason_ is None if reason is None else reason in str(reason_)


def test_stamp_covers_only_partitions_of_plan() -> None:
    """In any order of partitions. Other partitions and incomplete reassignments do not change the stamp."""
    admin = EmbeddedAdmin()
    before = resolve_plan(PLAN, admin.capture()).stamp()
    assert before.cluster_id == "c1"
    reordered = Plan("turned", PLAN.targets.take(np.array([2, 1, 0])), np.zeros(3, np.bool_))
    assert resolve_plan(reordered, admin.capture()).stamp() == before
    admin.reassign(Targets.of([(("t", 1), (1, 4))]))
    admin.catch_up(("t", 1))
    admin.reassign(Targets.of([(("t", 0), (1, 2, 3))]))
    assert resolve_plan(PLAN, admin.capture()).stamp() == before
    admin.catch_up(("t", 0))
    assert resolve_plan(PLAN, admin.capture()).stamp().assignments != before.assignments


def test_log_directories_are_written_as_they_are_read(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    entries = [
        {"topic": "t", "partition": 0, "replicas": [3, 4], "log_dirs": ["any", "/d1"]},
        {"topic": "t", "partition": 2, "replicas": [3]},
    ]
    path.write_text(json.dumps({"version": 1, "partitions": entries}))
    plan = load_plan(path)
    assert plan.log_dirs == (("any", "/d1"), ())
    assert json.loads(plan_document(plan))["partitions"] == entries
    assert plan.take(np.array([1], np.int32)).log_dirs == ((),)
    assert plan.names_directories().tolist() == [True, False]


def test_stamped_plan_is_readable(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_text(plan_document(PLAN, Stamp("c1", None, "a")))
    assert read_stamp(path) == Stamp("c1", None, "a")
    plan = load_plan(path)
    assert [plan.partition_name(position) for position in range(3)] == ["t-0", "u-0", "t-2"]
    path.write_text(plan_document(PLAN))
    assert read_stamp(path) is None


@pytest.mark.parametrize("text", ['{"kframe": 1}', '{"kframe": {"cluster_id": 1}}', '{"kframe": {}}', "{"])
def test_malformed_stamp_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "plan.json"
    path.write_text(text)
    with pytest.raises(SnapshotError):
        read_stamp(path)
