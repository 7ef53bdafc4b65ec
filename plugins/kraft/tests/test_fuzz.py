"""Mutated records and batches, which decoders decode or refuse with a reason, and on which kernels and codec agree.

``python -m verification.kraft.fuzz`` runs the same for longer, and repeats single cases.
"""

from __future__ import annotations

import pytest

from verification.fuzz import CASES, corpus_problems, problems, read_corpus, report, run
from verification.kraft.fuzz.targets import CORPUS, targets

pytestmark = pytest.mark.kernel

SEED = 20


@pytest.mark.timeout(1800)
def test_no_mutated_message_escapes() -> None:
    cases = CASES // 10
    totals_by_target = run(targets, SEED, cases)
    assert problems(totals_by_target, cases) == [], report("verification.kraft.fuzz", SEED, totals_by_target)


def test_corpus_has_unchanged_outcomes_of_every_target() -> None:
    assert corpus_problems(read_corpus(CORPUS), targets()) == []
