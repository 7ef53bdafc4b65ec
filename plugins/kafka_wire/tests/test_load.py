"""Reports of lost, misplaced, duplicated and reordered records."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pytest
from kframe_kafka_wire.testing.load import compare_records

#: Number, partition, offset.
SENT: Final = [(0, 0, 0), (1, 1, 0), (2, 0, 1), (3, 1, 1)]
#: (failed records, consumed records, expected faults)
CASES: Final[list[tuple[list[int], list[tuple[int, int, int]], dict[str, int]]]] = [
    ([], SENT, {}),
    ([], [SENT[1], SENT[3], SENT[0], SENT[2]], {}),
    ([], SENT[:3], {"lost": 1}),
    ([], [*SENT[:3], (3, 1, 2)], {"misplaced": 1}),
    ([], [*SENT, (3, 1, 2)], {"duplicated": 1}),
    ([], [(2, 0, 0), (1, 1, 0), (0, 0, 1), (3, 1, 1)], {"misplaced": 2, "out_of_order": 1}),
    ([], [*SENT, (4, 0, 2)], {"unexpected": 1}),
    ([4], [*SENT, (4, 0, 2)], {}),
    ([4], SENT, {}),
]


@pytest.mark.parametrize("failed, read, wrong", CASES)
def test_a_load_report_counts_violations(
    failed: list[int], read: list[tuple[int, int, int]], wrong: dict[str, Any]
) -> None:
    report = compare_records(np.array(SENT, np.int64), np.array(read, np.int64), np.array(failed, np.int64))
    counts = {name: getattr(report, name) for name in ("lost", "misplaced", "duplicated", "out_of_order", "unexpected")}
    assert {name: count for name, count in counts.items() if count} == wrong
    assert report.good is (not wrong)
    assert report.acknowledged == 4
