"""Select benches and sizes, and compare answers with the known ones."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from typing import Final

import pytest

from benchmarks.conftest import TEST_PARTITIONS
from kframe.bench import BENCHES
from kframe.bench.run import Bench
from kframe.bench.workload import EventWorkload, Fixture
from kframe.bench.workloads import WORKLOADS
from kframe.model.cluster import ClusterState

ANSWERS: Final = Path(__file__).with_name("answers.json")
#: With a thousand leaders the controller notifies a thousand brokers a thousand times: minutes a run.
NOT_OVER_A_THOUSAND: Final = ("alter-partition-storm", "reassignment-completion")
#: Brokers of the tests that ``make test`` runs.
TEST_BROKERS: Final = 100
#: Many requests to every broker at any size: too slow for an ordinary test over a thousand brokers.
MANY_REQUESTS: Final = ("alter-partition", "topic-creation-storm", "topic-deletion")


class Answers:
    """Known answers by bench, partitions and brokers."""

    def __init__(self, path: Path, update: bool) -> None:
        self._path, self._update = path, update
        self._known: dict[str, str] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}

    def check(self, bench: Bench, answer: str) -> bool:
        """Fail the test unless the answer equals the known one; with ``--new-answers`` save it instead.

        Returns whether the answer is known. At the size of the ordinary tests each must be.
        """
        key = f"{bench.name}/{bench.partitions}/{bench.brokers}"
        if self._update:
            self._known[key] = answer
            self._path.write_text(json.dumps(self._known, indent=1, sort_keys=True) + "\n", encoding="utf-8")
        elif key not in self._known and bench.partitions != TEST_PARTITIONS:
            return False
        assert answer == self._known.get(key), f"{key}: the answer differs from the known one; see --new-answers"
        return True


class Fixtures:
    """Fixtures of benches. The last cluster is reused. The next bench often starts with the same cluster."""

    def __init__(self) -> None:
        self._last: tuple[object, ClusterState] | None = None

    def of(self, bench: Bench) -> Fixture:
        """The fixture of a bench."""
        workload = WORKLOADS[bench.name]
        if not isinstance(workload, EventWorkload):
            self._last = None
            return workload.fixture(bench.partitions, bench.brokers)
        key = (workload.cluster, bench.partitions, bench.brokers)
        if self._last is None or self._last[0] != key:
            self._last = None  # two large clusters are not held at once
            self._last = key, workload.cluster(bench.partitions, bench.brokers)
        return Fixture(bench.partitions, bench.brokers, self._last[1])


def counted_runs(max_runs: int, first: float, seconds: float | None) -> int:
    """How many counted runs fit into ``seconds`` after a first run of ``first`` seconds. At least one."""
    return max_runs if seconds is None else max(1, min(max_runs, int(seconds / first)))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run size by size, so that compared benches run close together."""
    if "bench" not in metafunc.fixturenames:
        return
    option = metafunc.config.getoption
    runs = option("--bench-runs") or option("--benchmark-min-rounds")
    sizes = product(_numbers(option("--bench-partitions")), _numbers(option("--bench-brokers")))
    only = option("--bench-only")
    benches = [
        Bench(name, partitions, brokers, runs)
        for partitions, brokers in sizes
        for name in (only.split(",") if only else BENCHES)
        if brokers < 1_000 or name not in NOT_OVER_A_THOUSAND + (MANY_REQUESTS if partitions == TEST_PARTITIONS else ())
    ]
    parameters = [
        pytest.param(bench, marks=pytest.mark.extended if bench.brokers != TEST_BROKERS else ()) for bench in benches
    ]
    metafunc.parametrize("bench", parameters, ids=[f"{b.name}-{b.partitions}-{b.brokers}" for b in benches])


@pytest.fixture(scope="session")
def answers(request: pytest.FixtureRequest) -> Answers:
    """The known answers."""
    return Answers(ANSWERS, request.config.getoption("--new-answers"))


@pytest.fixture(scope="session")
def fixtures() -> Fixtures:
    """The shared fixtures."""
    return Fixtures()


def _numbers(text: str) -> list[int]:
    try:
        return [int(word) for word in text.split(",")]
    except ValueError:
        raise pytest.UsageError(f"{text!r}: expected comma-separated numbers") from None
