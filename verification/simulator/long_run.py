"""Simulate days of a cluster with rare faults, and see whether the active controller stays of the same size.

    python -m verification.simulator.long_run --days 7 --seeds 1..4

The exit code is 1 if a run breaks an invariant, or if a controller without faults of its own grows.
"""

from __future__ import annotations

import argparse
import gc
import json
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from random import Random
from types import FunctionType, MethodType, ModuleType
from typing import Final, NamedTuple

import numpy as np

from kframe.core.controller import ControllerCore
from kframe_simulator.faults.plan import FAULTS, Action, draw_plan
from kframe_simulator.simulation.options import Options
from kframe_simulator.simulation.run import plan_of
from kframe_simulator.simulation.simulation import Simulation
from verification.support.slopes import Slope, slope_of

#: The mean time between two actions.
GAP_MS: Final = 120_000.0
_HOUR_MS: Final = 3_600_000.0
_DAY_S: Final = 86_400.0
#: A controller grows if the slope of its size is above this share an hour: 1 % a week.
LIMIT_PER_HOUR: Final = 0.01 / 168
#: Not parts of a controller, though reachable from it.
_SHARED: Final = (type, ModuleType, FunctionType, MethodType)
#: Faults of a controller without an argument that names it.
_CONTROLLER_FAULTS: Final = frozenset({"crash_in", "drop_controller", "fail_failovers", "misdirect", "swap_disks"})
#: A stopped process starts after this time at most, and an operator acts after this time on average.
_RESTART_MS: Final = 300_000.0
_OPERATION_MS: Final = 240_000.0
_OPERATIONS: Final = ("create_topic", "delete_topic", "create_partitions", "reassign", "cancel", "elect")


class ControllerSample(NamedTuple):
    """The size of the active controller at a time."""

    seconds: float
    columns: int
    """Bytes of the columns and of the structures beside them."""
    other: int
    """Bytes of everything else."""
    topics: int
    """Topic indexes, those of deleted topics included."""
    rows: int
    """Rows, those of deleted topics included."""


@dataclass(frozen=True, slots=True)
class LongRun:
    """What was seen in a run."""

    seed: int
    controller_faults: bool
    """Whether controllers have faults, too. Otherwise one process keeps the role."""
    days: float
    actions: int
    events: int
    failovers: int
    violations: list[str]
    samples: list[ControllerSample]
    """One for each simulated hour."""

    @property
    def slope(self) -> Slope:
        """The slope of the bytes beside the columns, by means of days."""
        return slope_of([each.seconds for each in self.samples], [each.other for each in self.samples], 0, _DAY_S)

    @property
    def outcome(self) -> str:
        """``flat``, ``grows`` or ``undecided``."""
        return self.slope.outcome(LIMIT_PER_HOUR * self.slope.start)

    @property
    def bytes_per_topic(self) -> float:
        """Bytes of the columns for each topic index, at the end."""
        return self.samples[-1].columns / self.samples[-1].topics


def play_long(seed: int, days: float, *, controller_faults: bool) -> LongRun:
    """Play a seed for so many simulated days."""
    options, _ = plan_of(seed)
    options = replace(options, gap_ms=GAP_MS, actions=int(1000 * _DAY_S * days / GAP_MS), quiescence=False)
    drawn = [action for action in draw_plan(options) if controller_faults or not _affects_controller(action)]
    plan = tuple(sorted([*drawn, *_upkeep(options, 1000 * _DAY_S * days)], key=lambda action: action.at_ms))
    simulation = Simulation(options, plan)
    samples: list[ControllerSample] = []

    def sample() -> None:
        active = next((process for process in simulation.controllers if process.active), None)
        if active is not None:
            samples.append(sample_of(active.loop.controller, simulation.scheduler.now_ms / 1000))

    for hour in range(1, int(24 * days) + 1):
        simulation.scheduler.at(hour * _HOUR_MS, sample)
    result = simulation.run()
    return LongRun(
        seed,
        controller_faults,
        round(result.simulated_ms / 1000 / _DAY_S, 2),
        len(plan),
        result.events,
        result.counts["claims"],
        list(map(str, result.violations)),
        samples,
    )


def sample_of(controller: ControllerCore, seconds: float) -> ControllerSample:
    """The size of an active controller."""
    context, cluster = controller._context, controller.cluster
    assert context is not None, "inactive"
    columns = (cluster, context.replica_index, context.gauges)
    size = sum(size_of(part) for part in columns)
    return ControllerSample(
        seconds, size, size_of(controller, without=columns), len(cluster.topics.names), len(cluster)
    )


def size_of(root: object, without: Sequence[object] = ()) -> int:
    """Bytes of the objects that are reachable from an object, arrays included.

    Classes, functions, and objects that are reachable only through those of ``without`` do not count.
    """
    seen, waiting, total = {id(root), *map(id, without)}, [root], 0
    while waiting:
        current = waiting.pop()
        total += sys.getsizeof(current)
        is_view = isinstance(current, np.ndarray) and current.base is not None
        for item in [current.base] if is_view else gc.get_referents(current):  # type: ignore[attr-defined]
            if id(item) not in seen and not isinstance(item, _SHARED):
                seen.add(id(item))
                waiting.append(item)
    return total


def _affects_controller(action: Action) -> bool:
    return "controller" in action.arguments or action.kind in _CONTROLLER_FAULTS


def _upkeep(options: Options, end_ms: float) -> Iterator[Action]:
    """Restarts of stopped processes, and operations that create and delete topics."""
    random = Random(f"upkeep/{options.seed}")
    draws = {kind: draw for kind, _, draw in FAULTS["operators"]}
    for number in range(int(end_ms / _RESTART_MS)):
        for broker in range(len(options.brokers)):
            yield Action(number * _RESTART_MS, "start_broker", {"broker": broker})
        yield Action(number * _RESTART_MS, "start_controller", {"controller": number})
    for number in range(int(end_ms / _OPERATION_MS)):
        kind = random.choice(_OPERATIONS)
        yield Action((number + random.random()) * _OPERATION_MS, kind, draws[kind](random))


def main() -> int:
    """Run the command."""
    options = _parsed()
    first, _, last = options.seeds.partition("..")
    seeds = range(int(first), int(last or first) + 1)
    with ProcessPoolExecutor(options.jobs, mp_context=get_context("spawn")) as pool:
        waiting = [
            pool.submit(partial(play_long, seed, options.days, controller_faults=faults))
            for seed in seeds
            for faults in (False, True)
        ]
        runs = []
        for future in waiting:
            runs.append(run := future.result())
            print(summary(run), flush=True)
    if options.record is not None:
        options.record.write_text(json.dumps([asdict(run) for run in runs], separators=(",", ":")) + "\n")
    return int(any(run.violations or (run.outcome != "flat" and not run.controller_faults) for run in runs))


def summary(run: LongRun) -> str:
    """A row of a Markdown table."""
    slope, last, faults = run.slope, run.samples[-1], "yes" if run.controller_faults else "no"
    return (
        f"| {run.seed} | {faults} | {run.days:.1f} | {run.actions:,} | {run.events:,} |"
        f" {run.failovers:,} | {len(run.violations)} | {slope.start:,.0f} | {slope.end:,.0f} |"
        f" {168 * slope.per_hour:+,.0f} ± {168 * slope.error:,.0f} | {run.outcome} | {last.topics:,} |"
        f" {run.bytes_per_topic:,.0f} |"
    )


def _parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--days", type=float, default=7.0, help="simulated days of each run (default: 7)")
    parser.add_argument("--seeds", default="1..2", help="A..B, both included (default: 1..2)")
    parser.add_argument("--jobs", type=int, default=2, help="processes at a time (default: 2)")
    parser.add_argument("--record", type=Path, help="write all samples to this .json file")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
