"""When the next batch of a rolling restart may start, from repeated captures of the cluster."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from kframe.model.lists import loads
from kframe.plans.restarts.document import RestartBatch
from kframe.plans.restarts.plan import plan_restarts
from kframe.plans.restarts.report import blocked_nodes, conflicts_of, proof
from kframe.plans.restarts.request import RestartRequest
from kframe.snapshot import Snapshot
from kframe.snapshot.facts import BrokerFacts
from kframe.whatif.engines.script import step_name


def obstacles(
    snapshot: Snapshot,
    nodes: Iterable[int],
    expected: Iterable[int],
    request: RestartRequest,
    config: Mapping[str, object] | None = None,
) -> tuple[str, ...]:
    """Why these nodes may not restart together now; empty if they may.

    ``expected`` are the brokers that must be up: those of the batches before. The ``request`` is that of the plan. The
    batch is planned again on the cluster as it stands: it may start if all of its nodes still fit one batch.
    """
    up = {facts.broker_id for facts in snapshot.brokers if _is_up(facts)}
    if down := tuple(sorted(set(expected) - up)):
        return (step_name(down, "is not up yet", "are not up yet"),)
    present = tuple(node for node in nodes if node in up)
    if not present:
        return ()
    plan = plan_restarts(snapshot, replace(request, brokers=present, exact=False), config)
    if plan.blocked.any():
        return tuple(blocked.reason for blocked in blocked_nodes(plan))
    if len(plan.batches) <= 1:
        return ()
    return tuple(conflict.reason for conflict in conflicts_of(plan)) or (proof(plan),)


@dataclass(frozen=True, slots=True)
class WatchStep:
    """What a capture of the cluster shows. ``may_start``: the batch that may start from now on, else None; ``waiting``:
    why the next one may not, or what has not happened yet. ``ended``: all batches have restarted."""

    may_start: RestartBatch | None
    waiting: tuple[str, ...]
    ended: bool = False


class RestartWatch:
    """Follows a rolling restart. Each batch is announced once, as soon as it may start."""

    def __init__(
        self,
        batches: Sequence[RestartBatch],
        request: RestartRequest,
        config: Mapping[str, object] | None = None,
        first: int = 0,
    ) -> None:
        """``batches`` are those of the plan for ``request``. Those before position ``first`` have restarted already."""
        self._batches = batches
        self._request = request
        self._config = config
        self._next = first
        self._restarted = {broker for batch in batches[:first] for broker in batch.brokers}
        self._announced: Snapshot | None = None
        self._running: set[int] = set()
        """The brokers of the announced batch that have not been seen to stop."""

    def observe(self, snapshot: Snapshot) -> WatchStep:
        """Take note of the cluster as it is now."""
        if self._announced is not None:
            self._running -= stopped_since(self._announced, snapshot, self._running)
            if self._running:
                running = tuple(sorted(self._running))
                return WatchStep(None, (step_name(running, "has not stopped yet", "have not stopped yet"),))
            self._restarted |= set(self._batches[self._next].brokers)
            if self._next + 1 == len(self._batches):
                waiting = _not_returned(self._announced, snapshot, self._restarted)
                return WatchStep(None, waiting, ended=not waiting)
            self._announced, self._next = None, self._next + 1
        if not self._batches:
            return WatchStep(None, (), ended=True)
        batch = self._batches[self._next]
        nodes = sorted({*batch.brokers, *batch.controllers})
        if waiting := obstacles(snapshot, nodes, self._restarted, self._request, self._config):
            return WatchStep(None, waiting)
        self._announced, self._running = snapshot, set(batch.brokers)
        return WatchStep(batch, ())


def stopped_since(before: Snapshot, snapshot: Snapshot, brokers: set[int]) -> set[int]:
    """Those of the brokers that have stopped: they are not up, have registered anew, or have left ISRs."""
    now = {facts.broker_id: facts for facts in snapshot.brokers}
    earlier, later = (_isr_memberships(each, brokers) for each in (before, snapshot))
    stopped = {broker_id for broker_id in brokers if later[broker_id] < earlier[broker_id]}
    for facts in before.brokers:
        current = now.get(facts.broker_id)
        if current is None or not _is_up(current) or current.broker_epoch != facts.broker_epoch:
            stopped.add(facts.broker_id)
    return stopped & brokers


def _not_returned(before: Snapshot, snapshot: Snapshot, brokers: set[int]) -> tuple[str, ...]:
    """What is missing until the brokers are up, and in as many ISRs as before."""
    up = {facts.broker_id for facts in snapshot.brokers if _is_up(facts)}
    earlier, later = (_isr_memberships(each, brokers) for each in (before, snapshot))
    if down := tuple(sorted(brokers - up)):
        return (step_name(down, "is not up yet", "are not up yet"),)
    behind = tuple(broker for broker in sorted(brokers) if later[broker] < earlier[broker])
    return (step_name(behind, "is not back in all ISRs", "are not back in all ISRs"),) if behind else ()


def _is_up(facts: BrokerFacts) -> bool:
    """Whether a broker is registered, and in a KRaft cluster not fenced. True where the source does not say."""
    fenced = facts.registration is not None and facts.registration.fenced
    return facts.registered is not False and not fenced


def _isr_memberships(snapshot: Snapshot, brokers: set[int]) -> dict[int, int]:
    """In how many ISRs each of the brokers is."""
    ids = np.array(sorted(brokers), np.int32)
    isr = snapshot.partitions.isr
    counts = np.zeros(len(ids), np.int64) if isr is None else loads(isr, ids)
    return dict(zip(ids.tolist(), counts.tolist(), strict=True))
