"""Adapt concurrency to the health of a cluster, and report when the execution should pause."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from kframe.model.texts import counted
from kframe.plans.execute.entries import ExecutionLimits, UnhealthyPartitions

#: Successive observations that show a problem before an execution pauses. Elections take less.
PROBLEM_ROUNDS: Final = 5
#: The part of the maximum by which the limit grows.
_STEPS: Final = 10


class HealthWatch:
    """Counts successive observations of a problem, and limits the partitions in flight.

    The limit starts at half of the maximum. It grows by a tenth of the maximum after a healthy observation, and halves
    while there are new under-replicated partitions.
    """

    def __init__(self, limits: ExecutionLimits) -> None:
        self._settings = limits
        self.limit = max(limits.concurrency // 2, 1)
        self.pauses_starts = False
        """Whether no partition should be started now."""
        self.problem: str | None = None
        """Why the execution should pause; None if it should not."""
        self.failed_brokers: frozenset[int] = frozenset()
        """Brokers that the plan needs and that have been down for PROBLEM_ROUNDS observations."""
        self._rounds = 0
        self._down_rounds = 0

    def observe(self, before: UnhealthyPartitions, now: UnhealthyPartitions, down: Collection[int]) -> None:
        """Take the unhealthy partitions ``before`` the execution and ``now``, and needed brokers that are ``down``."""
        offline = set(now.offline) - set(before.offline)
        under_replicated = set(now.under_replicated) - set(before.under_replicated) - set(before.offline)
        is_worse = bool(offline) or len(under_replicated) > self._settings.max_under_replicated
        self._rounds = self._rounds + 1 if is_worse else 0
        self._down_rounds = self._down_rounds + 1 if down else 0
        self.pauses_starts = is_worse
        if offline or under_replicated:
            self.limit = max(self.limit // 2, 1)
        else:
            step = max(self._settings.concurrency // _STEPS, 1)
            self.limit = min(self.limit + step, self._settings.concurrency)
        self.failed_brokers = frozenset(down) if self._down_rounds >= PROBLEM_ROUNDS else frozenset()
        self.problem = None
        if self._rounds >= PROBLEM_ROUNDS:
            topic, partition = min(offline or under_replicated)
            self.problem = (
                f"health has worsened: {counted(len(offline), 'partition')} newly offline and "
                f"{len(under_replicated):,} newly under-replicated since the start, such as {topic}-{partition}"
            )
        elif self.failed_brokers:
            self.problem = f"brokers that the plan needs are down: {', '.join(map(str, sorted(down)))}"
