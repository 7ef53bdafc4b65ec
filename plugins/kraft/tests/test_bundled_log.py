"""The bundled metadata log: what-ifs predict the failure that it records, and its script records such a failure."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from kframe_kraft.sources.paths import read_image

import kframe
from verification.kraft.record_example import main
from verification.zookeeper.commands import kframe_json

BUNDLED = Path(kframe.__file__).parent / "snapshot" / "examples" / "kafka-4.4-broker-failure"
#: The last record before the shutdown of broker 2, and the record that fences broker 3.
BEFORE, AFTER = 271, 632


def leaderless(source: Path, offset: int) -> set[str]:
    """The partitions that have a leader at ``BEFORE`` and none at ``offset``."""
    rows: list[dict[str, Any]] = kframe_json("log", "diff", source, BEFORE, offset)["rows"]
    return {row["name"] for row in rows if (row["change"], row["after"]) == ("leader", -1)}


def test_whatif_predicts_the_recorded_failure(tmp_path: Path) -> None:
    kframe_json("log", "at", BUNDLED, "--offset", BEFORE, "--out", tmp_path / "before")
    outcome = kframe_json("whatif", "fail", tmp_path / "before", "--brokers", "2,3")
    predicted = {f"{row['topic']}-{row['partition']}" for row in outcome["partitions"] if row["went_offline"]}
    assert predicted == leaderless(BUNDLED, AFTER)
    assert len(predicted) == 53


def test_snapshot_equals_the_log_at_its_offset() -> None:
    (snapshot,) = BUNDLED.glob("*/*1041-*.checkpoint")
    from_log = kframe_json("log", "at", BUNDLED, "--offset", 1040, "--list", "brokers")
    assert kframe_json("log", "at", snapshot, "--list", "brokers")["rows"] == from_log["rows"]


@pytest.mark.real
@pytest.mark.extended
def test_script_records_a_failure_with_elections_from_the_elr(tmp_path: Path) -> None:
    main(tmp_path / "recorded")
    image = read_image(tmp_path / "recorded")
    assert all(image.metadata.brokers.is_active(broker_id) for broker_id in (1, 2, 3))
    rows = kframe_json("log", "show", tmp_path / "recorded", "--type", "PartitionChange")["rows"]
    assert any("leader -1, isr [], elr [2,3]" in row["summary"] for row in rows)
    assert any("leader 3, isr [3], last known elr [], recovery 1" in row["summary"] for row in rows)
    with pytest.raises(FileExistsError):
        main(tmp_path / "recorded")
