"""Kills of ``kframe controller run`` at any time, and at operations on the disk."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from uuid import UUID

import pytest

from kframe.testing.waiting import wait_until
from verification.kraft.kills.__main__ import page
from verification.kraft.kills.campaign import Campaign
from verification.kraft.kills.load import Acknowledged
from verification.kraft.kills.log_check import complete_batches, contradictions, prefixes, rewritten
from verification.kraft.served_controller import formatted, served

EVIDENCE = Path(__file__).parents[3] / "docs" / "evidence"


@pytest.mark.extended
def test_log_has_what_was_acknowledged(tmp_path: Path) -> None:
    with closing(Campaign(tmp_path, seed=3)) as campaign:
        for _ in range(6):
            campaign.kill()
    assert campaign.report.violations == []
    assert campaign.report.kills.total() == 6
    assert campaign.report.acknowledged > 20


def test_check_finds_what_is_missing(tmp_path: Path) -> None:
    """The directory has no topic at all."""
    acknowledged = Acknowledged({"a": UUID(int=1), "b": UUID(int=2)}, {"a": "7"}, {"c"}, {"b"})
    with served(formatted(tmp_path)) as controller:
        wait_until(lambda: not controller.problems())
    assert list(contradictions(tmp_path, acknowledged)) == [
        "topic a was created and is missing",
        "topic a has retention.ms None, acknowledged was 7",
    ]


def test_check_finds_a_rewritten_segment(tmp_path: Path) -> None:
    batch = bytes(8) + (3).to_bytes(4, "big") + b"abc"
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(batch + batch[:-1])
    before = prefixes(complete_batches(tmp_path))
    assert complete_batches(tmp_path) == {path.name: batch}
    path.write_bytes(batch * 3)
    assert list(rewritten(before, complete_batches(tmp_path))) == []
    path.write_bytes(batch.replace(b"abc", b"abd") * 3)
    assert len(list(rewritten(before, complete_batches(tmp_path)))) == 1
    path.unlink()
    assert list(rewritten(before, complete_batches(tmp_path))) == []


def test_page_has_the_counts_and_violations() -> None:
    kills = {"at a time": 3, "before it served": 1}
    result = {"kills": kills, "acknowledged": 1234, "open": 5, "snapshots": 2, "removed_segments": 1}
    facts = {"machine": "m", "commit": "c", "command": "k", "seconds": 90}
    text = page({**facts, "result": {**result, "violations": ["kill 2, after 0.1 s: topic a is missing"]}})
    assert "- Violations: 1." in text
    assert "- Acknowledged requests: 1,234. Without a response: 5." in text
    assert "| at a time | 3 |" in text
    assert "- kill 2, after 0.1 s: topic a is missing" in text


@pytest.mark.skipif(not EVIDENCE.exists(), reason="no clone of kframe")
def test_page_matches_the_record() -> None:
    record = json.loads((EVIDENCE / "kraft-kills.json").read_text())
    assert (EVIDENCE / "kraft-kills.md").read_text() == page(record)
