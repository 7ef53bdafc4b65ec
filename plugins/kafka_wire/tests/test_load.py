"""What is said of records that were lost, doubled or turned round."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pytest
from kframe_kafka_wire.testing.load import judge

#: Number, partition, offset.
SENT: Final = [(0, 0, 0), (1, 1, 0), (2, 0, 1), (3, 1, 1)]
#: (failed, what is read, what is wrong with it)
CASES: Final[list[tuple[list[int], list[tuple[int, int, int]], dict[str, int]]]] = [
    ([], SENT, {}),
    ([], [SENT[1], SENT[3], SENT[0], SENT[2]], {}),
    ([], SENT[:3], {"lost": 1}),
    ([], [*SENT[:3], (3, 1, 2)], {"moved": 1}),
    ([], [*SENT, (3, 1, 2)], {"doubled": 1}),
    ([], [(2, 0, 0), (1, 1, 0), (0, 0, 1), (3, 1, 1)], {"moved": 2, "disordered": 1}),
    ([], [*SENT, (4, 0, 2)], {"unannounced": 1}),
    ([4], [*SENT, (4, 0, 2)], {}),
    ([4], SENT, {}),
]


@pytest.mark.parametrize("failed, read, wrong", CASES)
def test_a_verdict_counts_what_is_wrong(
    failed: list[int], read: list[tuple[int, int, int]], wrong: dict[str, Any]
) -> None:
    verdict = judge(np.array(SENT, np.int64), np.array(read, np.int64), np.array(failed, np.int64))
    found = {name: getattr(verdict, name) for name in ("lost", "moved", "doubled", "disordered", "unannounced")}
    assert {name: count for name, count in found.items() if count} == wrong
    assert verdict.good is (not wrong)
    assert verdict.acknowledged == 4
