"""Which benches run at which sizes, and the answers that they are held to."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from typing import Final

import pytest

from kframe.bench import BENCHES
from kframe.bench.run import Bench
from kframe.bench.work import EventWork, World
from kframe.bench.works import WORKS
from kframe.model.cluster import ClusterState

ANSWERS: Final = Path(__file__).with_name("answers.json")
#: A thousand leaders that each ask make a controller tell a thousand brokers a thousand times: minutes a run.
NOT_OVER_A_THOUSAND: Final = ("alter-partition-storm", "reassignment-completion")
#: The size of ordinary tests.
IN_TESTS: Final = 1_000
#: Many requests to every broker, whatever the partitions: too long for an ordinary test over a thousand brokers.
TELLING: Final = ("alter-partition", "topic-creation-storm", "topic-deletion")


class Answers:
    """Known answers by bench, partitions and brokers."""

    def __init__(self, path: Path, anew: bool) -> None:
        self._path, self._anew = path, anew
        self._known: dict[str, str] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}

    def hold(self, bench: Bench, answer: str) -> bool:
        """Fail the test unless the answer is the known one; where answers are made anew, keep it. Returns whether it
        is known: at the size of ordinary tests every answer has to be."""
        place = f"{bench.name}/{bench.partitions}/{bench.brokers}"
        if self._anew:
            self._known[place] = answer
            self._path.write_text(json.dumps(self._known, indent=1, sort_keys=True) + "\n", encoding="utf-8")
        elif place not in self._known and bench.partitions != IN_TESTS:
            return False
        assert answer == self._known.get(place), f"another answer than the one known of {place}; see --new-answers"
        return True


class Worlds:
    """What benches begin with: the last cluster is kept, because the next bench often begins with the same one, which
    takes longer to make than the work on it."""

    def __init__(self) -> None:
        self._made: tuple[object, ClusterState] | None = None

    def of(self, bench: Bench) -> World:
        """As the bench would make it."""
        work = WORKS[bench.name]
        if not isinstance(work, EventWork):
            self._made = None
            return work.world(bench.partitions, bench.brokers)
        which = (work.cluster, bench.partitions, bench.brokers)
        if self._made is None or self._made[0] != which:
            self._made = None  # two large clusters are not held at once
            self._made = which, work.cluster(bench.partitions, bench.brokers)
        return World(bench.partitions, bench.brokers, self._made[1])


def counted_runs(most: int, first: float, seconds: float | None) -> int:
    """How many runs are counted after one that took ``first`` seconds, getting ready included: as many as fit into
    ``seconds``, one at least."""
    return most if seconds is None else max(1, min(most, int(seconds / first)))


def pytest_addoption(parser: pytest.Parser) -> None:
    """The sizes, and how answers are made anew."""
    group = parser.getgroup("kframe's benches")
    group.addoption(
        "--bench-partitions", default=str(IN_TESTS), metavar="N,...", help="sizes of clusters; 1000 by default"
    )
    group.addoption("--bench-brokers", default="10,100,1000", metavar="B,...", help="brokers; 10,100,1000 by default")
    group.addoption("--bench-only", metavar="NAME,...", help="these benches; all of them by default")
    group.addoption("--bench-runs", type=int, default=3, help="counted runs of each bench that is timed; 3 by default")
    group.addoption("--bench-seconds", type=float, help="only as many of them as fit into so many seconds, but one")
    group.addoption("--new-answers", action="store_true", help=f"keep the answers found in {ANSWERS.name}")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Size by size, so that what is compared is measured close together."""
    if "bench" not in metafunc.fixturenames:
        return
    option = metafunc.config.getoption
    runs = option("--bench-runs")
    sizes = product(_numbers(option("--bench-partitions")), _numbers(option("--bench-brokers")))
    only = option("--bench-only")
    benches = [
        Bench(name, partitions, brokers, runs)
        for partitions, brokers in sizes
        for name in (only.split(",") if only else BENCHES)
        if brokers < 1_000 or name not in NOT_OVER_A_THOUSAND + (TELLING if partitions == IN_TESTS else ())
    ]
    metafunc.parametrize("bench", benches, ids=[f"{one.name}-{one.partitions}-{one.brokers}" for one in benches])


@pytest.fixture(scope="session")
def answers(request: pytest.FixtureRequest) -> Answers:
    """What every bench is held to."""
    return Answers(ANSWERS, request.config.getoption("--new-answers"))


@pytest.fixture(scope="session")
def worlds() -> Worlds:
    """The cluster that the last bench began with."""
    return Worlds()


def _numbers(text: str) -> list[int]:
    try:
        return [int(word) for word in text.split(",")]
    except ValueError:
        raise pytest.UsageError(f"{text!r}: expected numbers with commas between them") from None
