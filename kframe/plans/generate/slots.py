"""Which slots to consider for a transfer between two brokers, by what the transfer costs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kframe.model.arrays import Int16, Int32, Int64, Ragged, ragged_positions
from kframe.model.lists import members, same_lists
from kframe.plans.generate.draft import Draft
from kframe.plans.generate.problem import PlanProblem


@dataclass(frozen=True, slots=True, eq=False)
class SlotIndex:
    """Slots by broker. The slots of a broker are in the order of the problem, or ascending without weights.

    A transfer saves a copy only if the target had a replica before the plan and has none now. It copies nothing in this
    case, or if the giver has its replica by the plan.
    """

    returns: Ragged
    """Slots by giver times brokers plus target, of partitions in which the target lacks a replica that it had."""
    copied: Ragged
    """Slots by broker that the plan copies to."""
    slots: Ragged
    """All slots by broker."""

    @staticmethod
    def of(problem: PlanProblem, draft: Draft) -> SlotIndex:
        """The slots of a draft."""
        width, before, lists = len(problem.brokers), problem.original, draft.lists()
        order = problem.order if problem.weighted else np.sort(problem.order)
        changed = order[~same_lists(before, lists)[order]]
        had = before.take(changed)
        missing = had.keep(~members(had, lists.take(changed)))
        filled = draft.replica >= 0
        copied = np.zeros(len(filled), np.bool_)
        copied[filled] = ~members(lists, before)
        starts, counts = draft.offsets[:-1], np.diff(draft.offsets)
        rows = changed[missing.owners]
        returns = ragged_positions(starts[rows], counts[rows])
        targets = np.repeat(missing.values, counts[rows])
        moved = ragged_positions(starts[changed], counts[changed])
        moved = moved[copied[moved]]
        all_slots = ragged_positions(starts[order], counts[order])
        return SlotIndex(
            _by_key(returns, draft.replica[returns].astype(np.int32) * width + targets, width * width),
            _by_key(moved, draft.replica[moved], width),
            _by_key(all_slots, draft.replica[all_slots], width),
        )

    def of_arc(self, arc: tuple[int, int], rate: int) -> Int32:
        """Slots of the giver that may have replicas whose transfer costs ``rate`` - 1."""
        giver, target = arc
        if rate == 2:
            return self.slots[giver]
        returns = self.returns[giver * len(self.slots) + target]
        return returns if rate == 0 else np.concatenate([returns, self.copied[giver]])


def _by_key(slots: Int64, keys: Int16 | Int32, count: int) -> Ragged:
    """The slots by key, each key's in their order; slots whose key is negative are left out."""
    order = np.argsort(keys.astype(np.int16) if count < 1 << 15 else keys, kind="stable")
    offsets = np.searchsorted(keys[order], np.arange(count + 1)).astype(np.int32)
    return Ragged(offsets, slots[order].astype(np.int32))
