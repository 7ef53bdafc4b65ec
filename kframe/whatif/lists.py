"""Lists of broker ids, counted."""

from __future__ import annotations

import numpy as np

from kframe.model.columns import Int32, Int64, Ragged


def loads(lists: Ragged, broker_ids: Int32) -> Int64:
    """How often each of ``broker_ids``, ascending or not, stands in the lists; ids that are not among them are passed
    over."""
    order = np.argsort(broker_ids)
    ordered = broker_ids[order]
    indexes = np.searchsorted(ordered, lists.values)
    known = indexes < len(ordered)
    known[known] = ordered[indexes[known]] == lists.values[known]
    counts = np.zeros(len(broker_ids), np.int64)
    counts[order] = np.bincount(indexes[known], minlength=len(broker_ids))
    return counts
