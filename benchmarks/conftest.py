"""Options of the suite. pytest reads them for ``benchmarks`` and ``benchmarks/suite``."""

from __future__ import annotations

from typing import Final

import pytest

#: Partitions of the tests.
TEST_PARTITIONS: Final = 1_000


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options for sizes, runs and known answers."""
    group = parser.getgroup("kframe's benches")
    group.addoption(
        "--bench-partitions", default=str(TEST_PARTITIONS), metavar="N,...", help="sizes of clusters; 1000 by default"
    )
    group.addoption("--bench-brokers", default="10,100,1000", metavar="B,...", help="brokers; 10,100,1000 by default")
    group.addoption("--bench-only", metavar="NAME,...", help="these benches; all of them by default")
    group.addoption(
        "--bench-runs", type=int, help="counted runs of each bench that is timed; --benchmark-min-rounds by default"
    )
    group.addoption("--bench-seconds", type=float, help="limit the runs of each bench to so many seconds")
    group.addoption("--new-answers", action="store_true", help="save the answers in answers.json")
