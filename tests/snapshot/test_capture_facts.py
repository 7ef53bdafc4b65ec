"""The manifest, and no other file, has the capture method of a snapshot."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from kframe.snapshot import read_snapshot, write_snapshot
from kframe.snapshot.facts import CaptureFacts
from tests.whatif.samples import small

FACTS = CaptureFacts(3, False, 77, 2, ("/brokers/topics/a", "/controller"), {"/brokers/ids/x": "found 'x'"})


@pytest.mark.parametrize("facts", [FACTS, None], ids=["captured", "not captured"])
def test_facts_come_back(tmp_path: Path, facts: CaptureFacts | None) -> None:
    snapshot = replace(small(), capture=facts)
    write_snapshot(snapshot, tmp_path / "out")
    assert read_snapshot(tmp_path / "out").capture == facts
    assert ('"capture"' in (tmp_path / "out" / "manifest.json").read_text()) == (facts is not None)


def test_capture_facts_are_excluded_from_digest() -> None:
    assert replace(small(), capture=FACTS).digest() == small().digest()
