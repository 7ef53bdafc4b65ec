"""When a reassignment is complete, by release (Kafka ``PartitionReassignmentReplicas.maybeCompleteReassignment``)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from kframe.plugin.kraft_controller import Release
from verification.kraft.simulation.image import PartitionState

#: The release since which all remaining replicas must be in sync only if fewer are added than removed (KAFKA-19975).
_RETAINED_OUT_OF_SYNC: Final = Release(4, 3)


@dataclass(frozen=True, slots=True)
class TargetState:
    """What an event wants of a partition."""

    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]

    def is_complete(self, release: Release) -> bool:
        """Whether the reassignment ends here. Without one: no."""
        if not (self.adding or self.removing):
            return False
        remaining, members = without(self.replicas, self.removing), without(self.isr, self.removing)
        if not remaining or not members or not set(self.adding) <= set(members):
            return False
        tolerates = release >= _RETAINED_OUT_OF_SYNC and len(self.adding) >= len(self.removing)
        return tolerates or set(remaining) <= set(members)

    def completed(self, release: Release) -> TargetState:
        """The state without the removing replicas if the reassignment is complete."""
        if not self.is_complete(release):
            return self
        return replace(
            self,
            replicas=without(self.replicas, self.removing),
            isr=without(self.isr, self.removing),
            adding=(),
            removing=(),
        )

    def matches(self, state: PartitionState) -> bool:
        """Whether a state has these replicas, and this ISR unless a replica outside of it was elected."""
        is_elected = state.isr == (state.leader,) and state.leader not in self.isr
        return (self.replicas, self.adding, self.removing) == (state.replicas, state.adding, state.removing) and (
            self.isr == state.isr or is_elected
        )


def without(members: Sequence[int], others: Sequence[int]) -> tuple[int, ...]:
    """The members that are not among others, in order."""
    return tuple(member for member in members if member not in others)
