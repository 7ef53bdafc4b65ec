"""Kafka's own election rules as leader selectors of the bulk tier: shipped by name, and patterns for other people's.

The engine does not run these unless they are asked for: its built-in rule is a kernel that reads the columns. They say
the same in array passes over an ElectionBatch (rules: Kafka 3.9 ``PartitionLeaderElectionAlgorithms``; 0.8.2
``ControlledShutdownLeaderSelector``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from kframe.errors import ShapeError
from kframe.kernels import _selectors
from kframe.model.columns import Int32, Ragged
from kframe.model.elections import ElectionBatch, LeaderSelector
from kframe.model.ids import ElectionKind


def take_first(lists: Ragged, mask: NDArray[Any], out: Int32) -> None:
    """Write into ``out`` (k,) the first value of each list for which ``mask`` holds; leave it alone where none does.

    ``mask`` stands beside ``lists.values``. Raises ShapeError if these do not fit together.
    """
    hits = np.ascontiguousarray(mask if mask.dtype == np.uint8 else mask.astype(np.bool_).view(np.uint8))
    fits = len(hits) == len(lists.values) and len(out) == len(lists)
    if not (fits and _selectors.take_first(lists.offsets, lists.values, hits, out)):
        raise ShapeError(f"{len(lists)} lists of {len(lists.values)} values, a mask of {len(mask)} for {len(out)}")


@dataclass(frozen=True, slots=True)
class FirstInSync:
    """The first candidate that is eligible and in sync; where that is allowed and there is none, the first eligible.

    This is Kafka's rule for four of its five kinds of election, which differ in who is a candidate, who is eligible and
    whether an unclean leader is allowed; the batch says all three.
    """

    name: str

    def elect(self, batch: ElectionBatch, leader: Int32) -> None:
        """See LeaderSelector."""
        take_first(batch.candidates, batch.may_lead, leader)


@dataclass(frozen=True, slots=True)
class Preferred:
    """The first candidate, if it is eligible and in sync; else nobody."""

    name: str = "preferred"

    def elect(self, batch: ElectionBatch, leader: Int32) -> None:
        """See LeaderSelector."""
        take_first(batch.candidates, batch.may_lead, leader)


@dataclass(frozen=True, slots=True)
class ControlledShutdown082:
    """Kafka 0.8.2's controlled shutdown: the first ISR member, in ISR order, that is not shutting down.

    It does not ask whether that broker lives. Where it elects a dead one (truth table, row 27) the safety rules refuse
    it and the built-in rule decides, so that partition fares as in Kafka 1.0 and later.
    """

    name: str = "controlled-shutdown-0.8.2"

    def elect(self, batch: ElectionBatch, leader: Int32) -> None:
        """See LeaderSelector."""
        take_first(batch.isr, batch.broker_shutting_down[batch.isr.values] == 0, leader)


#: The shipped selectors and the kinds of election that each is for.
SHIPPED: Final[Mapping[LeaderSelector, tuple[ElectionKind, ...]]] = {
    FirstInSync("first-in-sync"): (ElectionKind.OFFLINE, ElectionKind.INITIAL),
    FirstInSync("reassigned"): (ElectionKind.REASSIGN,),
    Preferred(): (ElectionKind.PREFERRED,),
    FirstInSync("controlled-shutdown"): (ElectionKind.CONTROLLED_SHUTDOWN,),
    ControlledShutdown082(): (ElectionKind.CONTROLLED_SHUTDOWN,),
}
