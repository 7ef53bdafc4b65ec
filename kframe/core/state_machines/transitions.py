"""The legal state transitions of partitions and replicas.

The state machines, ``kframe states`` and the tests read these tables
(Kafka 3.9 ``PartitionState.validPreviousStates`` and ``ReplicaState.validPreviousStates``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import Final, TypeVar

from kframe.model.ids import PartitionState, ReplicaState

State = TypeVar("State", bound=IntEnum)

#: The states that may follow each partition state.
PARTITION_TRANSITIONS: Final[Mapping[PartitionState, frozenset[PartitionState]]] = {
    PartitionState.NON_EXISTENT: frozenset({PartitionState.NEW}),
    PartitionState.NEW: frozenset({PartitionState.ONLINE, PartitionState.OFFLINE}),
    PartitionState.ONLINE: frozenset({PartitionState.ONLINE, PartitionState.OFFLINE}),
    PartitionState.OFFLINE: frozenset({PartitionState.ONLINE, PartitionState.OFFLINE, PartitionState.NON_EXISTENT}),
}

#: The states that may follow each replica state.
REPLICA_TRANSITIONS: Final[Mapping[ReplicaState, frozenset[ReplicaState]]] = {
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
    """The states as one bit each, ``1 << code``, as kernels take them."""
    return sum(1 << state for state in set(states))


def source_states(transitions: Mapping[State, frozenset[State]], target: State) -> int:
    """Bits of the states from which ``target`` may follow."""
    return bits(state for state, targets in transitions.items() if target in targets)


def to_dot() -> str:
    """Both machines as one Graphviz document."""
    lines = ["digraph kframe {", "  rankdir=LR;", "  node [shape=box, style=rounded];"]
    for name, transitions in (("partition", PARTITION_TRANSITIONS), ("replica", REPLICA_TRANSITIONS)):
        lines += [f"  subgraph cluster_{name} {{", f'    label="{name} states";']
        lines += [f'    {name}_{state.name} [label="{_title(state)}"];' for state in transitions]
        lines += [
            f"    {name}_{state.name} -> {name}_{target.name};"
            for state, targets in transitions.items()
            for target in sorted(targets)
        ]
        lines.append("  }")
    return "\n".join([*lines, "}", ""])


def _title(state: IntEnum) -> str:
    return "".join(word.capitalize() for word in state.name.split("_"))
