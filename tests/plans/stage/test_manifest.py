"""The manifest of a staged plan is read as it was written, and a malformed one is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from kframe.errors import SnapshotError
from kframe.plans.file.read import Stamp
from kframe.plans.stage.manifest import (
    MANIFEST_FILE,
    PlanStage,
    StageBroker,
    StagedReassignment,
    StagedSnapshot,
    StageFailure,
    StageLimits,
    StageManifest,
    StageWindow,
    UnstagedReassignment,
    manifest_text,
    read_manifest,
)

MANIFEST = StageManifest(
    summary="2 moves in 1 stage",
    snapshot=StagedSnapshot("generated", "a", 3),
    stamp=Stamp("cluster", 4, "00"),
    limits=StageLimits(moves_per_broker=2, disk_capacity={"1": 10}, windows=["22:00-06:00"]),
    bound=1,
    gap=0.0,
    stages=[
        PlanStage(
            number=1,
            file="stage-001.json",
            moves=2,
            bytes=7,
            alone=False,
            seconds=1.5,
            window=StageWindow(1, "22:00-06:00", "22:00:00", "22:00:02"),
            brokers=[StageBroker(1, 2, 0, 7, 0, 9)],
            failures=[StageFailure(1, "during", 1, None, 0)],
            reassignments=[StagedReassignment("a", 0, [1, 2], [2, 3], 3), StagedReassignment("a", 1, [1], [3], 4)],
        )
    ],
    unstaged=[UnstagedReassignment("b", 0, "disk", "broker 1 lacks 5 bytes")],
    notes=["a note"],
)


def test_manifest_round_trips(tmp_path: Path) -> None:
    path = tmp_path / MANIFEST_FILE
    path.write_bytes(manifest_text(MANIFEST))
    assert manifest_text(read_manifest(path)) == manifest_text(read_manifest(tmp_path)) == manifest_text(MANIFEST)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("kframe.plan-stages/v1", "kframe.plan-stages/v9", "schema"),
        ('"number":1', '"number":2', r"stages\[0\].number: found 2, expected 1"),
        ('"before":[1,2]', '"before":[-1]', r"stages\[0\].reassignments\[0\].before\[0\]"),
        ('"summary"', '"sum"', "sum"),
        ("]}\n", "", "malformed JSON"),
        ('"summary"', '"summary":"x","summary"', "key 'summary' twice in one object"),
    ],
)
def test_malformed_manifest_is_refused(tmp_path: Path, old: str, new: str, message: str) -> None:
    path = tmp_path / MANIFEST_FILE
    path.write_text(new.join(manifest_text(MANIFEST).decode().rsplit(old, 1)))
    with pytest.raises(SnapshotError, match=message):
        read_manifest(path)
