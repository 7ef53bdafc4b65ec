"""What cost terms add to a plan: a cost for each partition and broker on which a replica may be placed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kframe.errors import ParameterError
from kframe.model.arrays import Bool, Int32, Int64, Ragged
from kframe.model.placements import FORBIDDEN, PlacementBatch
from kframe.registry.placements import CostTerm

#: Partitions by brokers of the largest table.
CELLS_MAX: Final = 1 << 24
#: Ratios are rounded down, so that a bound stays one.
_ROUNDING: Final = 1 - 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class PlacementCosts:
    """The sums of cost terms. ``position`` (n,) is the index in ``table`` (k, b) of each row in scope, -1 elsewhere."""

    names: tuple[str, ...]
    position: Int32
    table: Int64

    def of(self, rows: Int32 | Int64) -> Int64:
        """(len(rows), b) costs of rows in scope, FORBIDDEN where a term forbids the placement."""
        costs: Int64 = self.table[self.position[rows]]
        return costs

    def allowed(self, rows: Int32 | Int64) -> Bool:
        """(len(rows), b) placements that no term forbids."""
        return np.asarray(self.of(rows) < FORBIDDEN, np.bool_)

    def total(self, added: Ragged) -> int:
        """The sum for replicas that are added to rows in scope; ``added`` has a list for each row of the snapshot."""
        rows = added.owners
        return int(self.table[self.position[rows], added.values].sum()) if len(rows) else 0

    def min_costs(self, rows: Int32, candidates: Bool) -> Int64:
        """(len(rows),) least cost of each row among ``candidates`` (len(rows), b); 0 where all are forbidden."""
        costs = np.where(candidates, self.of(rows), FORBIDDEN)
        min_costs = costs.min(axis=1, initial=FORBIDDEN)
        return np.where(min_costs < FORBIDDEN, min_costs, 0)

    def ratios(self, rows: Int32, weight: Int64, candidates: Bool) -> NDArray[np.float64]:
        """(b,) least cost of a unit of weight on each broker, rounded down; infinite where none can be placed there.

        ``weight`` (len(rows),) is that of the rows. Rows without weight are left out.
        """
        heavy = np.flatnonzero(weight > 0)
        costs = np.where(candidates[heavy], self.of(rows[heavy]), FORBIDDEN)
        ratio = np.where(costs < FORBIDDEN, costs / weight[heavy, None] * _ROUNDING, np.inf)
        min_ratios: NDArray[np.float64] = ratio.min(axis=0, initial=np.inf)
        return min_ratios


def placement_costs(terms: Sequence[CostTerm], batch: PlacementBatch, scope: Int32, rows: int) -> PlacementCosts:
    """The sum of all terms for a batch of the rows ``scope``, of ``rows`` in the snapshot.

    Raises InputError if the table would be too large, PluginError for an invalid result of a term.
    """
    cells = len(scope) * len(batch.broker_ids)
    if cells > CELLS_MAX:
        expected = f"at most {CELLS_MAX:,}: fewer topics"
        raise ParameterError("cost_terms", f"{cells:,} placements (partitions by brokers)", expected)
    table = np.zeros((len(scope), len(batch.broker_ids)), np.int64)
    for term in terms:
        costs = term.costs(batch)
        table = np.where((table == FORBIDDEN) | (costs == FORBIDDEN), FORBIDDEN, table + costs)
    position = np.full(rows, -1, np.int32)
    position[scope] = np.arange(len(scope))
    return PlacementCosts(tuple(term.name for term in terms), position, table)
