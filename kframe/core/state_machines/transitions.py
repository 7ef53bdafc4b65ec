"""The legal moves of partitions and replicas, as data.

Read by the state machines, by ``kframe states --dot``, by the documentation, and by a test of every pair
(Kafka 3.9 ``PartitionState.validPreviousStates`` and ``ReplicaState.validPreviousStates``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import Final, TypeVar

from kframe.model.ids import PartitionState, ReplicaState

State = TypeVar("State", bound=IntEnum)

#: Where a partition may go from each state.
PARTITION_MOVES: Final[Mapping[PartitionState, frozenset[PartitionState]]] = {
    PartitionState.NON_EXISTENT: frozenset({PartitionState.NEW}),
    PartitionState.NEW: frozenset({PartitionState.ONLINE, PartitionState.OFFLINE}),
    PartitionState.ONLINE: frozenset({PartitionState.ONLINE, PartitionState.OFFLINE}),
    PartitionState.OFFLINE: frozenset({PartitionState.ONLINE, PartitionState.OFFLINE, PartitionState.NON_EXISTENT}),
}

#: Where a replica may go from each state.
REPLICA_MOVES: Final[Mapping[ReplicaState, frozenset[ReplicaState]]] = {
    ReplicaState.NON_EXISTENT: frozenset({ReplicaState.NEW}),
    ReplicaState.NEW: frozenset({ReplicaState.ONLINE, ReplicaState.OFFLINE}),
    ReplicaState.ONLINE: frozenset({ReplicaState.ONLINE, ReplicaState.OFFLINE}),
    ReplicaState.OFFLINE: frozenset(
        {
            ReplicaState.ONLINE,
            ReplicaState.OFFLINE,
            ReplicaState.DELETION_STARTED,
            ReplicaState.DELETION_INELIGIBLE,
        }
    ),
    ReplicaState.DELETION_STARTED: frozenset({ReplicaState.DELETION_SUCCESSFUL, ReplicaState.DELETION_INELIGIBLE}),
    ReplicaState.DELETION_SUCCESSFUL: frozenset({ReplicaState.NON_EXISTENT}),
    ReplicaState.DELETION_INELIGIBLE: frozenset({ReplicaState.ONLINE, ReplicaState.OFFLINE}),
}


def bits(states: Iterable[IntEnum]) -> int:
    """One bit a state, ``1 << code``: the form in which kernels take sets of states."""
    return sum(1 << state for state in set(states))


def leaves(moves: Mapping[State, frozenset[State]], target: State) -> int:
    """Bits of the states that may be left for ``target``."""
    return bits(state for state, targets in moves.items() if target in targets)


def to_dot() -> str:
    """Both machines as one Graphviz document."""
    lines = ["digraph kframe {", "  rankdir=LR;", "  node [shape=box, style=rounded];"]
    for name, moves in (("partition", PARTITION_MOVES), ("replica", REPLICA_MOVES)):
        lines += [f"  subgraph cluster_{name} {{", f'    label="{name} states";']
        lines += [f'    {name}_{state.name} [label="{_title(state)}"];' for state in moves]
        lines += [
            f"    {name}_{state.name} -> {name}_{target.name};"
            for state, targets in moves.items()
            for target in sorted(targets)
        ]
        lines.append("  }")
    return "\n".join([*lines, "}", ""])


def _title(state: IntEnum) -> str:
    return "".join(word.capitalize() for word in state.name.split("_"))
