"""The conditions that a what-if or a sweep reports as findings."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from kframe.model.arrays import Bool
from kframe.whatif.results.health import ClusterHealth, newly


class FailOn(StrEnum):
    """Conditions of ``--fail-on``: see ``Outcome.count_of``."""

    OFFLINE = "offline"
    UNDER_MIN_ISR = "under-min-isr"
    DATA_LOSS = "data-loss"
    POSSIBLE_DATA_LOSS = "possible-data-loss"

    @staticmethod
    def new_conditions(before: ClusterHealth, after: ClusterHealth) -> dict[FailOn, Bool | None]:
        """The conditions in ``after`` that are not in ``before``: (n,) masks."""
        return {
            FailOn.OFFLINE: newly(before.offline, after.offline),
            FailOn.UNDER_MIN_ISR: newly(before.under_min_isr, after.under_min_isr),
            FailOn.POSSIBLE_DATA_LOSS: newly(before.may_lose_data, after.may_lose_data),
        }


class FindingCounts(Struct, rename="kebab"):
    """What ``--fail-on`` looks for: partitions, or failures that bring some. Null is unknown."""

    offline: int | None
    under_min_isr: int | None
    data_loss: int | None
    possible_data_loss: int | None
