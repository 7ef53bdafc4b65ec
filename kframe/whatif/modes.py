"""The class of a what-if in each mode of a cluster, and the functions that play its operations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from kframe.snapshot.content import Mode

if TYPE_CHECKING:
    from kframe.whatif.explanation import Explanation
    from kframe.whatif.outcome import Outcome
    from kframe.whatif.plan import Plan

#: The replicas of each partition, by broker ids; None lets the controller place them.
Assignments: TypeAlias = Sequence[Sequence[int]] | None
#: The module and the name of the class for each mode. Only that of the snapshot's mode is imported.
CLASSES: Final[Mapping[Mode, tuple[str, str]]] = {
    "zookeeper": ("kframe.whatif.zookeeper", "ZookeeperWhatIf"),
    "kraft": ("kframe.whatif.kraft.whatif", "KraftWhatIf"),
}


@dataclass(frozen=True, slots=True)
class ModeOperations:
    """The operations that a mode plays in its own way: functions of a what-if and of the arguments of its methods."""

    create: Callable[[Any, str, int, int, Assignments, int], Outcome]
    create_partitions: Callable[[Any, str, int, Assignments, int], Outcome]
    delete: Callable[[Any, Iterable[str]], Outcome]
    reassign: Callable[[Any, Plan], Outcome]
    explain: Callable[[Any, str, int, Iterable[int]], Explanation]
