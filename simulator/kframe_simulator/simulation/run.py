"""Plays seeds, in one or several processes, and sums the results."""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from multiprocessing import active_children, connection, get_context, parent_process
from threading import Thread, current_thread, main_thread
from typing import Any, Final

from kframe.model.elections import LeaderSelector
from kframe.model.ids import ElectionKind
from kframe_simulator.faults.plan import CLASS_OF, CLASSES, FAULTS, Action, draw_plan
from kframe_simulator.simulation.options import Options, draw_options
from kframe_simulator.simulation.simulation import Result, Simulation
from kframe_simulator.simulation.watch import Violation

#: A plan with fewer events is replaced by a longer one.
EVENTS_MIN: Final = 500
#: One of this many seeds is played twice, to compare the traces.
TWICE_EVERY: Final = 50

#: Seeds that a process plays at a time.
_CHUNK: Final = 8

#: A plugin's leader selectors, by kind of election.
Selectors = Mapping[ElectionKind, LeaderSelector]


def plan_of(seed: int, selector: str | None = None) -> tuple[Options, tuple[Action, ...]]:
    """The options and the plan of a seed."""
    options = replace(draw_options(seed, tuple(FAULTS)), selector=selector)
    return options, draw_plan(options)


def play(options: Options, plan: Sequence[Action], selectors: Selectors | None = None) -> Result:
    """Play a plan in a simulation until the simulation is at rest."""
    return Simulation(options, plan, selectors).run()


def play_seed(seed: int, twice: bool = False) -> Result:
    """Play a seed. The number of actions doubles until there are ``EVENTS_MIN`` events. With ``twice`` the seed is
    played a second time, and both traces must be equal (I27)."""
    options, plan = plan_of(seed)
    result = play(options, plan)
    while result.events < EVENTS_MIN and not result.violations:
        options = replace(options, actions=2 * options.actions)
        plan = draw_plan(options)
        result = play(options, plan)
    if twice and play(options, plan).trace != result.trace:
        differs = Violation("I27", "the same seed gave another trace", result.simulated_ms, result.events)
        result = replace(result, violations=(*result.violations, differs))
    return result


@dataclass(slots=True)
class Totals:
    """The totals of many seeds."""

    seeds: int = 0
    events: int = 0
    events_least: int = 0
    simulated_ms: float = 0.0
    failed: list[Result] = field(default_factory=list)
    played: Counter[str] = field(default_factory=Counter)
    looks: Counter[str] = field(default_factory=Counter)
    counts: Counter[str] = field(default_factory=Counter)

    def add(self, result: Result) -> None:
        """Add one seed."""
        self.events_least = min(self.events_least, result.events) if self.seeds else result.events
        self.seeds += 1
        self.events += result.events
        self.simulated_ms += result.simulated_ms
        self.played.update(result.played)
        self.looks.update(result.looks)
        self.counts.update(result.counts)
        if result.violations:
            self.failed.append(result)

    def faults(self) -> dict[str, int]:
        """The number of affected simulations by class of faults."""
        faults = dict.fromkeys(CLASSES, 0)
        for kind, times in self.played.items():
            faults[CLASS_OF[kind]] += times
        return faults

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "seeds": self.seeds,
            "events": self.events,
            "events_least": self.events_least,
            "simulated_seconds": round(self.simulated_ms / 1000.0),
            "failed_seeds": len(self.failed),
            "faults": self.faults(),
            "actions": dict(sorted(self.played.items())),
            "looks": dict(sorted(self.looks.items())),
            "counts": dict(sorted(self.counts.items())),
        }


def play_seeds(seeds: Sequence[int], jobs: int = 1) -> Iterator[Result]:
    """Play seeds in ``jobs`` processes. Yields results as they complete."""
    work = [(seed, seed % TWICE_EVERY == 0) for seed in seeds]
    if jobs <= 1:
        for item in work:
            yield play_seed(*item)
        return
    others = set(active_children())
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn"), initializer=_end_with_parent) as pool:
        with _interrupts_ignored():
            parts = [pool.submit(_play_items, work[first : first + _CHUNK]) for first in range(0, len(work), _CHUNK)]
        try:
            for part in parts:
                yield from part.result()
        except BaseException:
            for worker in set(active_children()) - others:
                worker.terminate()
            raise


@contextmanager
def _interrupts_ignored() -> Iterator[None]:
    """Ignore SIGINT, as processes that start meanwhile do: Ctrl-C in a terminal reaches all, and only this process ends
    the others."""
    if current_thread() is not main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _end_with_parent() -> None:
    """End this worker when its parent has ended. A worker holds both ends of the queue of seeds, so that it never reads
    the end of it."""
    parent = parent_process()
    if parent is not None:
        Thread(target=_exit_after, args=(parent.sentinel,), daemon=True).start()


def _exit_after(sentinel: int) -> None:
    connection.wait([sentinel])
    os._exit(1)


def _play_items(work: Sequence[tuple[int, bool]]) -> list[Result]:
    return [play_seed(*item) for item in work]


def shrink(
    options: Options,
    plan: Sequence[Action],
    number: str,
    on_progress: Callable[[int, int], None] = lambda done, remaining: None,
    tries_max: int = 400,
) -> Result:
    """A shorter plan that still breaks the invariant ``number``. It leaves out groups of actions of decreasing size.

    ``on_progress`` gets the number of tried plans and of remaining actions. Raises ValueError if the complete plan does
    not break the invariant.
    """

    def breaks(candidate: Sequence[Action]) -> Result | None:
        result = play(options, candidate)
        return result if any(violation.number == number for violation in result.violations) else None

    saved, best, tries = tuple(plan), breaks(plan), 1
    if best is None:
        raise ValueError(f"the plan does not break {number}")
    part = max(len(saved) // 2, 1)
    while tries < tries_max:
        index, shorter = 0, False
        while index < len(saved) and tries < tries_max:
            candidate = saved[:index] + saved[index + part :]
            matches, tries = breaks(candidate), tries + 1
            on_progress(tries, len(saved))
            if matches is not None:
                saved, best, shorter = candidate, matches, True
            else:
                index += part
        if part == 1 and not shorter:
            break
        part = max(part // 2, 1) if not shorter or part > 1 else 1
    return best
