"""Kafka's election rules as leader selectors of the bulk tier, and examples for plugins.

They run only if configured; by default a kernel applies the same rules to the columns. Sources: Kafka 3.9
``PartitionLeaderElectionAlgorithms``, Kafka 0.8.2 ``ControlledShutdownLeaderSelector``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from kframe.errors import ShapeError
from kframe.kernels import _selectors
from kframe.model.arrays import Int32, Ragged
from kframe.model.elections import ElectionBatch, LeaderSelector
from kframe.model.ids import ElectionKind


def take_first(lists: Ragged, mask: NDArray[Any], out: Int32) -> None:
    """Write into ``out`` (k,) the first value of each list for which ``mask`` holds; keep ``out`` where none does.

    ``mask`` has one entry per value of ``lists``. Raises ShapeError if the lengths differ.
    """
    hits = np.ascontiguousarray(mask if mask.dtype == np.uint8 else mask.astype(np.bool_).view(np.uint8))
    fits = len(hits) == len(lists.values) and len(out) == len(lists)
    if not (fits and _selectors.take_first(lists.offsets, lists.values, hits, out)):
        raise ShapeError(f"{len(lists)} lists of {len(lists.values)} values, a mask of {len(mask)} for {len(out)}")


@dataclass(frozen=True, slots=True)
class FirstInSync:
    """The first eligible, in-sync candidate; if unclean elections are allowed and there is none, the first eligible.

    Kafka's rule for four of five kinds of election. They differ in candidates, eligibility and unclean elections, which
    the batch provides.
    """

    name: str

    def elect(self, batch: ElectionBatch, leader: Int32) -> None:
        """See LeaderSelector."""
        take_first(batch.candidates, batch.may_lead, leader)


@dataclass(frozen=True, slots=True)
class Preferred:
    """The first candidate, if it is eligible and in sync. Else no leader."""

    name: str = "preferred"

    def elect(self, batch: ElectionBatch, leader: Int32) -> None:
        """See LeaderSelector."""
        take_first(batch.candidates, batch.may_lead, leader)


@dataclass(frozen=True, slots=True)
class ControlledShutdown082:
    """Kafka 0.8.2's controlled shutdown: the first ISR member, in ISR order, that is not shutting down.

    It does not check whether that broker is live. If it elects a dead broker (truth table, row 27), the safety rules
    refuse it and the built-in rule decides, as in Kafka 1.0 and later.
    """

    name: str = "controlled-shutdown-0.8.2"

    def elect(self, batch: ElectionBatch, leader: Int32) -> None:
        """See LeaderSelector."""
        take_first(batch.isr, batch.broker_shutting_down[batch.isr.values] == 0, leader)


#: The shipped selectors and their kinds of election.
SHIPPED: Final[Mapping[LeaderSelector, tuple[ElectionKind, ...]]] = {
    FirstInSync("first-in-sync"): (ElectionKind.OFFLINE, ElectionKind.INITIAL),
    FirstInSync("reassigned"): (ElectionKind.REASSIGN,),
    Preferred(): (ElectionKind.PREFERRED,),
    FirstInSync("controlled-shutdown"): (ElectionKind.CONTROLLED_SHUTDOWN,),
    ControlledShutdown082(): (ElectionKind.CONTROLLED_SHUTDOWN,),
}
