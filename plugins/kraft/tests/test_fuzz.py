"""Mutated records and batches, which decoders decode or refuse with a reason, and on which kernels and codec agree.

``python -m kframe_kraft.testing.fuzz`` runs the same for longer, and repeats single cases.
"""

from __future__ import annotations

import pytest
from kframe_kraft.testing.fuzz.targets import CORPUS, targets

from kframe_simulator.fuzz import CASES, PEAK_BYTES_MAX, Base, Batch, DecoderTarget, read_corpus, report, run, signature

SEED = 20
SAVED = read_corpus(CORPUS)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_no_mutated_message_escapes() -> None:
    cases = CASES // 10
    totals_by_target = run(targets, SEED, cases)
    summary = report("kframe_kraft.testing.fuzz", SEED, totals_by_target)
    assert [totals.target for totals in totals_by_target if totals.escaped] == [], summary
    assert sum(totals.cases for totals in totals_by_target) == cases, summary
    assert all(min(totals.decoded, totals.refused) >= totals.cases / 50 for totals in totals_by_target), summary
    assert max(totals.peak_bytes for totals in totals_by_target) <= PEAK_BYTES_MAX, summary


def test_corpus_covers_every_target() -> None:
    decoded = {entry.target for entry in SAVED if entry.outcome == "decoded"}
    refused = {entry.target for entry in SAVED if entry.outcome != "decoded"}
    assert decoded == refused == {target.name for target in targets()}


@pytest.mark.parametrize("target", targets(), ids=lambda target: target.name)
def test_corpus_outcomes_are_unchanged(target: DecoderTarget) -> None:
    entries = [entry for entry in SAVED if entry.target == target.name]
    outcomes = target.evaluate(Batch.of([Base(entry.kind, entry.raw) for entry in entries]))
    assert [
        entry._replace(outcome=signature(outcome)) for entry, outcome in zip(entries, outcomes, strict=True)
    ] == entries
