"""Log directories of small brokers, and the best assignment of replicas by trying all."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product

import numpy as np
from hypothesis import strategies as st

from kframe.model.arrays import Int32
from kframe.plans.disks.problem import DirectoryProblem
from kframe.ports.administration import DirectoryLog, LogDirectory
from kframe.snapshot import Snapshot
from tests.plans.generate.clusters import snapshot_of

#: The sizes of replicas by log directory.
Sizes = Mapping[str, Mapping[int, int]]


def directories(sizes: Sizes, **volumes: tuple[int, int]) -> tuple[LogDirectory, ...]:
    """Log directories ``/NAME`` with logs of topic ``t``; ``volumes`` has total and usable bytes by name."""

    def directory(name: str) -> LogDirectory:
        total, usable = volumes.get(name, (None, None))
        return LogDirectory(f"/{name}", [DirectoryLog("t", *log) for log in sizes[name].items()], None, total, usable)

    return tuple(map(directory, sizes))


def snapshot(partitions: int = 9, broker: int = 1) -> Snapshot:
    """A topic ``t`` whose partitions are on ``broker`` and broker 2."""
    return snapshot_of({"t": [[broker, 2]] * partitions}, {broker: None, 2: None})


@st.composite
def problems(draw: st.DrawFn) -> DirectoryProblem:
    """Up to 6 replicas in up to 3 directories, of which some give or receive nothing, or have little room."""
    count, replicas = draw(st.integers(1, 3)), draw(st.integers(0, 6))

    def numbers(low: int, high: int, size: int) -> list[int]:
        return draw(st.lists(st.integers(low, high), min_size=size, max_size=size))

    unit = draw(st.sampled_from([1, 1, 10**9 + 7]))
    size, home = (
        np.array(numbers(0, 20, replicas), np.int64) * unit,
        np.array(numbers(0, count - 1, replicas), np.int32),
    )
    used = np.bincount(home, size, count).astype(np.int64) + np.array(numbers(0, 9, count)) * unit
    lower = np.array(numbers(0, 40, count), np.int64) * unit
    upper = lower + np.array(numbers(0, 20, count)) * unit
    gives, receives = (np.array([draw(st.integers(0, 4)) > 0 for _ in range(count)], np.bool_) for _ in range(2))
    room = np.array([draw(st.integers(0, 30) | st.just(1000)) for _ in range(count)], np.int64) * unit
    return DirectoryProblem(size, home, used, lower, upper, gives, receives, room)


def is_allowed(problem: DirectoryProblem, target: Int32) -> bool:
    """Whether only directories that may give and receive do, within their room."""
    moved = target != problem.home
    return bool(
        (problem.gives[problem.home[moved]]).all()
        and (problem.receives[target[moved]]).all()
        and (problem.received(target) <= problem.room).all()
    )


def optimum(problem: DirectoryProblem) -> tuple[int, int]:
    """The least bytes outside of the limits, and then the fewest bytes that move, by trying all assignments."""
    every = (np.array(target, np.int32) for target in product(range(len(problem.used)), repeat=len(problem.size)))
    return min(problem.rating(target) for target in every if is_allowed(problem, target))
