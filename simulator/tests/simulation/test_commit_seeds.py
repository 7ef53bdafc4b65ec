"""Seeds that derive from the commit, so that each commit is simulated with plans that no earlier one has played."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Final

import pytest

from kframe_simulator import play_seeds

SEEDS: Final = 2_000
PARTS: Final = 20
#: Seeds have nine digits. The first hundred million are chosen by hand.
FIRST: Final = 100_000_000
COMMITS: Final = 400_000


@pytest.fixture(scope="module")
def seeds() -> range:
    """The seeds of the commit. A tree without a commit plays those of zero."""
    head = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=Path(__file__).parent, capture_output=True, text=True, check=False
    )
    commit = int(head.stdout[:8], 16) if head.returncode == 0 else 0
    start = FIRST + commit % COMMITS * SEEDS
    return range(start, start + SEEDS)


@pytest.mark.extended
@pytest.mark.parametrize("part", range(PARTS))
def test_seed_breaks_no_invariant(seeds: range, part: int) -> None:
    violations = {
        result.options.seed: [violation.number for violation in result.violations]
        for result in play_seeds(seeds[part::PARTS], jobs=1)
        if result.violations
    }
    assert violations == {}, "kframe sim replay SEED plays one of these again"
