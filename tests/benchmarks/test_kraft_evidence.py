"""``docs/evidence/kraft.md`` has the figures of the records of KRaft benchmarks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.records import RESULTS

PAGE = (Path(__file__).parents[2] / "docs" / "evidence" / "kraft.md").read_text()
FENCES = sorted(RESULTS.glob("*-kraft-fence*.json"))


def read(path: Path) -> Any:
    return json.loads(path.read_text())


def peer_seconds(record: Any) -> tuple[float, float]:
    """The best seconds of Kafka's classes: to decide and apply, and to encode."""
    peer = record["peer"]
    parts = ("kraft.broker_failure.generate_and_replay", "kraft.broker_failure.serialise")
    return peer[parts[0]]["seconds_min"], peer[parts[1]]["seconds_min"]


@pytest.mark.parametrize("path", FENCES, ids=lambda path: path.stem)
def test_each_fence_record_has_a_row(path: Path) -> None:
    record = read(path)
    ours, theirs = min(run["seconds"] for run in record["runs"]), sum(peer_seconds(record))
    assert record["best"]["seconds"] == ours
    ratio = theirs / ours
    cells = f"{ours * 1000:.1f} ms | {theirs * 1000:.1f} ms | {ratio:.{1 if ratio >= 10 else 2}f} |"
    assert f"| [{path.name}](../../benchmarks/results/{path.name}) | {cells}" in PAGE
    assert f"{record['best']['records']:,} records are decided" in PAGE


def test_newest_fence_is_reported_by_parts() -> None:
    record = read(FENCES[-1])
    decided, encoded = peer_seconds(record)
    best = record["best"]
    expected = (
        f"decisions with their application are {decided / best['decide_seconds']:.1f} times as fast, "
        f"encoding is {encoded / best['encode_seconds']:.1f} times as fast."
    )
    assert expected in " ".join(PAGE.split())


def test_rows_of_fleets_have_the_best_rounds() -> None:
    (fleet,) = read(RESULTS / "2026-11-24-kraft-fleet-commands.json")["fleets"]
    for run in fleet["runs"]:
        loop, spark = min(run["loop"]), min(run["spark"])
        written = "yes" if run["written"] else "no"
        assert f"| {written} | {loop:.1f} | {spark:.1f} | {spark / loop:.2f} |" in PAGE
