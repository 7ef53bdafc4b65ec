"""Breadth-first search of all states. The path to the first violation is a shortest path."""

from __future__ import annotations

import time
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from kframe_simulator.search.state_space import State, StateSpace
from kframe_simulator.search.values import Label


@dataclass(frozen=True, slots=True)
class Counterexample:
    """A violation. Also the shortest path to it."""

    broken: tuple[str, ...]
    path: tuple[Label, ...]


@dataclass(frozen=True, slots=True)
class SearchReport:
    """The coverage of a search."""

    depth: int
    """The search visited every state within this distance of the root. It checked the invariants at rest in all nearer
    states."""
    states: int
    transitions: int
    levels: tuple[int, ...]
    """The number of new states, by distance. The root has distance 0."""
    rested: int
    """The number of states with nothing in progress."""
    core_steps: int
    """The steps that the real core performed. All others came from the table."""
    seconds: float
    """CPU time."""
    counterexample: Counterexample | None


def search(
    space: StateSpace, depth: int, note: Callable[[int, int, int, float], None] = lambda *_: None, most: int = 0
) -> SearchReport:
    """Search all states within ``depth`` steps of the root, up to the first violation.

    The search calls ``note`` for each level: distance, new states, transitions so far, CPU seconds. It stops after the
    level with ``most`` states (0: no limit); the report has the reached ``depth``.
    """
    began, opening = time.process_time(), list(space.opening())
    root, broken = opening[-1].state, [label for label in opening if label.broken]
    numbers: dict[State, int] = {root: 0}
    parents, labels = array("q", [-1]), array("i", [-1])
    frontier, levels, transitions, rested = [root], [1], 0, 0
    result: Counterexample | None = None
    if broken:
        result = Counterexample(
            broken[0].broken, tuple(label.label for label in opening[: opening.index(broken[0]) + 1])
        )
    while frontier and len(levels) <= depth and result is None and not (most and len(numbers) >= most):
        next_frontier: list[State] = []
        for state in frontier:
            number = numbers[state]
            successors, resting = space.expand(state)
            rested += resting is not None
            if resting:
                result = Counterexample(tuple(resting), _path(space, parents, labels, number))
                break
            for position, successor in enumerate(successors if result is None else ()):
                transitions += 1
                if successor.broken:  # Another state at this distance may still break an invariant at rest.
                    result = Counterexample(successor.broken, (*_path(space, parents, labels, number), successor.label))
                    break
                if successor.state not in numbers:
                    numbers[successor.state] = len(numbers)
                    parents.append(number)
                    labels.append(position)
                    next_frontier.append(successor.state)
        if result is not None:
            break
        frontier = next_frontier
        levels.append(len(next_frontier))
        note(len(levels) - 1, len(next_frontier), transitions, time.process_time() - began)
    steps = sum(subject.performed for subject in space.subjects.values())
    return SearchReport(
        len(levels) - 1, len(numbers), transitions, tuple(levels), rested, steps, time.process_time() - began, result
    )


def _path(space: StateSpace, parents: array[int], labels: array[int], number: int) -> tuple[Label, ...]:
    """The steps from the root to a state, found by replay."""
    positions: list[int] = []
    while parents[number] >= 0:
        positions.append(labels[number])
        number = parents[number]
    state, path = space.root(), list[Label]()
    for position in reversed(positions):
        successor = space.expand(state)[0][position]
        path.append(successor.label)
        state = successor.state
    return tuple(path)


def text(label: Label) -> str:
    """The text of a step, for people and for ``replay``."""
    actor, number, action, *details = label
    return " ".join(
        [f"{actor} {number}" if number else str(actor), str(action), *(_described(item) for item in details)]
    )


def _described(part: Any) -> str:
    match part:
        case ("U", _, _, live):
            return f"UpdateMetadata({list(live)} live)"
        case ("L", controller_epoch, _, leader, leader_epoch, isr, *_):
            return f"LeaderAndIsr(leader {leader}, epoch {leader_epoch}, ISR {list(isr)}, by epoch {controller_epoch})"
        case ("S", _, _, leader_epoch, _):
            return f"StopReplica(epoch {leader_epoch})"
    return str(part)


def replay(space: StateSpace, path: Sequence[str]) -> Counterexample | None:
    """Replay the steps of ``text`` from the root. Returns the violation of the last step, or of the state at rest after
    it. Raises ValueError if a step is not possible."""
    state, broken = space.root(), tuple[str, ...]()
    labels: list[Label] = []
    for expected in path:
        successors, _ = space.expand(state)
        result = next((successor for successor in successors if text(successor.label) == expected), None)
        if result is None:
            possible = "\n".join(text(successor.label) for successor in successors)
            raise ValueError(f"not possible here: {expected}\npossible:\n{possible}")
        state, broken = result.state, result.broken
        labels.append(result.label)
    broken += tuple(space.expand(state)[1] or ())
    return Counterexample(broken, tuple(labels)) if broken else None
