"""Runs fuzz cases in child processes, so that a crash or excessive memory is a finding."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from multiprocessing.connection import Connection, wait
from typing import Any, Final, TypeAlias

from verification.fuzz.cases import DecoderTarget
from verification.fuzz.work import WorkItem, evaluated, memory_bytes, peak_bytes

#: Makes the targets. It is a module function, so that child processes can call it.
Targets: TypeAlias = Callable[[], Sequence[DecoderTarget]]
#: The largest number of escapes of a target that a report lists; the others are only counted.
ESCAPES_MAX: Final = 3


@dataclass(frozen=True, slots=True)
class Escape:
    """A case that was neither decoded nor refused. ``number`` is the case, or the first of ``cases`` candidates."""

    target: str
    number: int
    cases: int
    detail: str


@dataclass(slots=True)
class TargetTotals:
    """The totals of one target."""

    target: str
    decoded: int = 0
    refused: int = 0
    escaped: int = 0
    escapes: list[Escape] = field(default_factory=list)
    peak_bytes: int = 0
    """The most memory that a process used, beyond its memory before the first case."""

    @property
    def cases(self) -> int:
        """The number of evaluated cases."""
        return self.decoded + self.refused + self.escaped

    def add(self, other: TargetTotals) -> None:
        """Add the totals of another process for the same target."""
        self.decoded += other.decoded
        self.refused += other.refused
        self.escaped += other.escaped
        self.escapes = sorted([*self.escapes, *other.escapes], key=lambda escape: escape.number)[:ESCAPES_MAX]
        self.peak_bytes = max(self.peak_bytes, other.peak_bytes)


def run(targets: Targets, seed: int, cases: int, jobs: int = 2, only: Sequence[str] = ()) -> list[TargetTotals]:
    """Distribute ``cases`` to the targets by share. To those named ``only``, if any are. Returns the totals of each.

    The same ``seed`` gives the same cases, whatever ``jobs`` is. There is no time limit: a decoder that hangs blocks
    the run.
    """
    chosen = [(index, item.share) for index, item in enumerate(targets()) if not only or item.name in only]
    ends = list(accumulate(share for _, share in chosen))
    counts = [
        cases * end // ends[-1] - cases * (end - share) // ends[-1]
        for end, (_, share) in zip(ends, chosen, strict=True)
    ]
    totals_by_target: dict[str, TargetTotals] = {}
    context = multiprocessing.get_context("spawn")
    workers = [
        _Worker(
            context,
            targets,
            seed,
            [
                WorkItem(item, count * job // jobs, count * (job + 1) // jobs - count * job // jobs)
                for (item, _), count in zip(chosen, counts, strict=True)
            ],
        )
        for job in range(jobs)
    ]
    try:
        for part in _received(workers):
            totals_by_target.setdefault(part.target, TargetTotals(part.target)).add(part)
    finally:
        for worker in workers:
            worker.end()
    return list(totals_by_target.values())


class _Worker:
    """One process and its current cases."""

    def __init__(self, context: Any, targets: Targets, seed: int, indexes: list[WorkItem]) -> None:
        self.position = ("before the first case", 0, 0)
        self.connection, child_end = context.Pipe(duplex=False)
        self.process = context.Process(target=_work, args=(targets, seed, indexes, child_end), daemon=True)
        self.process.start()
        child_end.close()

    def died(self) -> TargetTotals:
        """The cases that ended the process. They count as one escape."""
        self.process.join()
        name, first, count = self.position
        escape = Escape(name, first, count, f"the process has ended with exit code {self.process.exitcode}")
        return TargetTotals(name, escaped=1, escapes=[escape])

    def end(self) -> None:
        """Kill the process if it runs, and release it."""
        self.process.kill()
        self.process.join()
        self.process.close()
        self.connection.close()


def _received(workers: list[_Worker]) -> Iterator[TargetTotals]:
    """The totals that processes send. Their progress messages update ``workers``."""
    running: dict[object, _Worker] = {worker.connection: worker for worker in workers}
    while running:
        for connection in wait([worker.connection for worker in running.values()]):
            worker = running[connection]
            try:
                message = worker.connection.recv()
            except EOFError:
                del running[connection]
                yield worker.died()
                continue
            if message is None:
                del running[connection]
            elif isinstance(message, tuple):
                worker.position = message
            else:
                yield message


def _work(targets: Targets, seed: int, indexes: list[WorkItem], results: Connection) -> None:
    """The main function of a process."""
    all_targets = targets()
    for index in indexes:
        for _ in evaluated(all_targets[index.target], seed, 0, 1):  # One-time imports do not count as memory of a case.
            pass
    before = memory_bytes()
    for index in indexes:
        target = all_targets[index.target]
        totals = TargetTotals(target.name)
        for batch in evaluated(target, seed, index.first, index.cases):
            if batch.outcomes is None:
                results.send((target.name, batch.first, batch.count))
                continue
            totals.refused += sum(outcome is not None for outcome in batch.outcomes)
            totals.decoded += sum(outcome is None for outcome in batch.outcomes)
            totals.escaped += len(batch.escapes)
            escapes = (Escape(target.name, number, 1, detail) for number, detail in batch.escapes)
            totals.escapes = [*totals.escapes, *escapes][:ESCAPES_MAX]
        totals.peak_bytes = peak_bytes() - before
        results.send(totals)
    results.send(None)
