"""A reassignment that is played, in either mode: its responses, and its result from replica lists."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kframe.errors import ErrorCode
from kframe.model.arrays import Bool, Int16, Int32, Ragged
from kframe.model.lists import loads, members, same_lists
from kframe.model.tables import Targets
from kframe.whatif.engines.script import Script, Step
from kframe.whatif.results.outcome import Operation, Outcome, Verb
from kframe.whatif.results.reassignment_result import ReassignmentResult


class ReassignmentScript(Script):
    """The reassignment of ``k`` partitions, with the controller's responses so far, as in ``ReassignmentResult``."""

    def __init__(
        self,
        targets: Targets,
        steps: Sequence[Step],
        rows: Int32,
        replicas: Ragged,
        being_added: Bool,
        live: frozenset[int],
        loads: Int32,
    ) -> None:
        """The cluster before the reassignment.

        ``rows`` (k,) are -1 for unknown partitions; ``replicas`` are broker ids, a list for each of the others.
        ``being_added`` marks replicas. ``live`` are ids of brokers. ``loads`` (b,) counts the replicas of each broker.
        """
        super().__init__(Operation(Verb.REASSIGN, partitions=len(targets), topics=targets.names), steps)
        self.targets = targets
        self.rows = rows
        self.known = np.flatnonzero(rows >= 0).astype(np.int32)
        """Positions of the partitions that exist."""
        self.codes: Int16 = np.zeros(len(targets), np.int16)
        self.isr_codes: Int16 = np.zeros(len(targets), np.int16)
        self.led = np.zeros(len(targets), np.bool_)
        self.messages: dict[int, str] = {}
        self._live, self._loads = live, loads
        self._replicas, self._origin = self._scatter(replicas), self._scatter(replicas.keep(~being_added))

    def result(self, now: Ragged, ongoing: Bool, known_topics: frozenset[str], outcome: Outcome) -> ReassignmentResult:
        """The result of each partition; ``now`` and ``ongoing`` are replicas and progress of the known ones at the
        end."""
        begun = (self.codes == ErrorCode.NONE) & (self.rows >= 0)
        accepted, before = self.targets.replicas, self._replicas
        adding = accepted.keep(~members(accepted, self._origin) & begun[accepted.owners])
        leaving = self._origin.keep(~members(self._origin, accepted) & begun[self._origin.owners])
        reached = np.zeros(len(self.targets), np.bool_)
        reached[self.known] = same_lists(now, accepted.take(self.known)) & ~ongoing
        ids = outcome.broker_ids
        first_loads = np.zeros(len(ids), np.int32)
        first_loads[: len(self._loads)] = self._loads
        peak = first_loads + loads(accepted.keep(begun[accepted.owners]), ids) + loads(leaving, ids)
        peak -= loads(before.keep(begun[before.owners]), ids)
        return ReassignmentResult(
            targets=self.targets,
            codes=self.codes,
            completed=begun & reached,
            led=self.led,
            isr_codes=self.isr_codes,
            adding=adding,
            deleted=before.keep(~members(before, self._scatter(now)) & begun[before.owners]),
            known_topics=known_topics,
            live=self._live,
            broker_ids=ids,
            replicas_before=first_loads.astype(np.int64),
            replicas_peak=np.maximum(peak, first_loads),
            replicas_after=outcome.after.replicas.astype(np.int64),
            leaders_before=outcome.before.leaders,
            leaders_after=outcome.after.leaders,
            messages=self.messages,
        )

    def _scatter(self, lists: Ragged) -> Ragged:
        """A list for each partition: of the known ones those of ``lists``, the others empty."""
        offsets = np.zeros(len(self.targets) + 1, np.int32)
        offsets[1:][self.known] = lists.counts
        np.cumsum(offsets, out=offsets)
        return Ragged(offsets, lists.values)
