"""Reference kernels of ``_list_checks.pyx``."""

from __future__ import annotations

from itertools import pairwise
from typing import Final

from kframe.model.arrays import Int32

__all__ = ["count_wrong_leaders", "count_wrong_lists"]

LONGEST: Final = 64


def count_wrong_lists(offsets: Int32, values: Int32, allowed_offsets: Int32, allowed: Int32) -> int:
    """Lists with a negative id, an id twice or one that is not allowed, and long ones."""
    wrong = 0
    for span, allowed_span in zip(pairwise(offsets.tolist()), pairwise(allowed_offsets.tolist()), strict=True):
        ids, known = values[slice(*span)].tolist(), allowed[slice(*allowed_span)].tolist()
        is_long = len(ids) > LONGEST or len(known) > LONGEST
        wrong += bool(ids) and (is_long or min(ids) < 0 or len(set(ids)) < len(ids) or not set(ids) <= set(known))
    return wrong


def count_wrong_leaders(leader: Int32, offsets: Int32, replicas: Int32) -> int:
    """Leaders that are not among the replicas."""
    spans = pairwise(offsets.tolist())
    return sum(
        broker >= 0 and broker not in replicas[start:end].tolist()
        for broker, (start, end) in zip(leader.tolist(), spans, strict=True)
    )
