"""Pictures of the loads of brokers in a proposed plan, as ``PlanProposal.loads`` has them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from kframe.model.arrays import Int64
from kframe.pages.figures import bars_figure
from kframe.pages.parts import BarsPart, Part

#: Most brokers that a page pictures.
_SHOWN: Final = 40
_LOADS: Final = ("replicas", "leaders")


def load_bars(broker_ids: Sequence[int], loads: Mapping[str, Int64]) -> list[Part]:
    """Replicas and preferred leaders of each broker, before and after."""
    parts: list[Part] = []
    for kind in _LOADS:
        before, after = loads[f"{kind}_before"].tolist(), loads[f"{kind}_after"].tolist()
        rows = [(f"broker {broker_id}", before[i], after[i]) for i, broker_id in enumerate(broker_ids[:_SHOWN])]
        parts.append(BarsPart(f"{kind} before (grey) and after (blue)", rows, len(broker_ids)))
    return parts


def loads_figure(broker_ids: Sequence[int], loads: Mapping[str, Int64]) -> Any:
    """A figure of matplotlib: replicas and preferred leaders of each broker, before and after.

    Raises InputError if matplotlib is missing.
    """
    panels = [(kind, loads[f"{kind}_before"].tolist(), loads[f"{kind}_after"].tolist()) for kind in _LOADS]
    return bars_figure(panels, "broker", list(map(str, broker_ids)))
