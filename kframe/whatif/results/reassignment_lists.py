"""The result of a reassignment from the replica lists before and after it, whichever the mode of the cluster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from kframe.errors import ErrorCode
from kframe.model.arrays import Bool, Int16, Int32, Ragged
from kframe.model.lists import loads, members, same_lists
from kframe.model.tables import Targets
from kframe.whatif.results.outcome import Outcome
from kframe.whatif.results.reassignment_result import ReassignmentResult


@dataclass(frozen=True, slots=True, eq=False)
class BeforeReassignment:
    """The cluster before a reassignment of ``k`` partitions.

    ``rows`` (k,) are -1 for unknown partitions; ``known`` are the positions of the others, and the lists of broker ids
    have an entry for each of these. ``origin`` are the replicas without those being added. ``loads`` (b,) counts the
    replicas of each broker.
    """

    rows: Int32
    known: Int32
    replicas: Ragged
    origin: Ragged
    live: frozenset[int]
    loads: Int32


@dataclass(frozen=True, slots=True, eq=False)
class ReassignmentResponses:
    """The responses of the controller for each partition, as in ``ReassignmentResult``."""

    codes: Int16
    isr_codes: Int16
    led: Bool
    known_topics: frozenset[str]
    messages: Mapping[int, str] = field(default_factory=dict)


def reassignment_result(
    targets: Targets,
    before: BeforeReassignment,
    responses: ReassignmentResponses,
    now: Ragged,
    ongoing: Bool,
    outcome: Outcome,
) -> ReassignmentResult:
    """The result of each partition; ``now`` and ``ongoing`` are replicas and progress of the known ones at the end."""
    total = len(targets)
    begun = (responses.codes == ErrorCode.NONE) & (before.rows >= 0)
    origin = _scatter(before.origin, before.known, total)
    replicas_before = _scatter(before.replicas, before.known, total)
    accepted = Ragged(targets.replicas.offsets, targets.replicas.values)
    adding = accepted.keep(~members(accepted, origin) & begun[accepted.owners])
    leaving = origin.keep(~members(origin, accepted) & begun[origin.owners])
    replicas_after = _scatter(now, before.known, total)
    reached = np.zeros(total, np.bool_)
    reached[before.known] = same_lists(now, accepted.take(before.known)) & ~ongoing
    ids = outcome.broker_ids
    first_loads = np.zeros(len(ids), np.int32)
    first_loads[: len(before.loads)] = before.loads
    peak = first_loads + loads(accepted.keep(begun[accepted.owners]), ids) + loads(leaving, ids)
    peak -= loads(replicas_before.keep(begun[replicas_before.owners]), ids)
    return ReassignmentResult(
        targets=targets,
        codes=responses.codes,
        completed=begun & reached,
        led=responses.led,
        isr_codes=responses.isr_codes,
        adding=adding,
        deleted=replicas_before.keep(~members(replicas_before, replicas_after) & begun[replicas_before.owners]),
        known_topics=responses.known_topics,
        live=before.live,
        broker_ids=ids,
        replicas_before=first_loads.astype(np.int64),
        replicas_peak=np.maximum(peak, first_loads),
        replicas_after=outcome.after.replicas.astype(np.int64),
        leaders_before=outcome.before.leaders,
        leaders_after=outcome.after.leaders,
        messages=responses.messages,
    )


def _scatter(lists: Ragged, positions: Int32, total: int) -> Ragged:
    """``total`` lists: ``lists`` at ``positions`` (ascending), the others empty."""
    offsets = np.zeros(total + 1, np.int32)
    offsets[1:][positions] = lists.counts
    np.cumsum(offsets, out=offsets)
    return Ragged(offsets, lists.values)
