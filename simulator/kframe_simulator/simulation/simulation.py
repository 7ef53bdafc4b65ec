"""One run: ensemble, network, controllers, brokers, clients and clocks in one thread, from one seed."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from kframe.model.elections import LeaderSelector
from kframe.model.events import TopicPartition
from kframe.model.ids import ElectionKind
from kframe.model.tables import TopicTable
from kframe.ports.store_requests import WriteAssignments, WriteStates
from kframe_simulator.faults import actions, races, sequences
from kframe_simulator.faults.plan import Action
from kframe_simulator.invariants import INVARIANTS
from kframe_simulator.invariants.rest import BALANCED_MS
from kframe_simulator.replication.control_requests import Row
from kframe_simulator.simulation.observations import Quiescent, Rested
from kframe_simulator.simulation.options import Options
from kframe_simulator.simulation.state import SimulationState
from kframe_simulator.simulation.watch import Invariant, Violation

#: The simulation is at rest after this time without a write.
QUIET_MS: Final = 22_000.0
#: The simulation is at quiescence after the first time without a write. A run waits at most the second time for it.
QUIESCENCE_MS: Final = 9_000.0
QUIESCENCE_MAX_MS: Final = 75_000.0
#: The time in which all processes receive a broker's new address.
PROPAGATION_MS: Final = 3_000.0
#: The simulation must be at rest after this time without faults.
REST_MAX_MS: Final = 300_000.0


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a run."""

    options: Options
    plan: tuple[Action, ...]
    events: int
    simulated_ms: float
    trace: str
    """A hash of all writes and all bytes sent."""
    violations: tuple[Violation, ...]
    played: Mapping[str, int]
    """By kind of action: how often it had an effect."""
    looks: Mapping[str, int]
    """How often each invariant was checked."""
    counts: Mapping[str, int]
    """Counts of controller events, failovers, writes and requests."""


class Simulation(SimulationState):
    """One run."""

    def __init__(
        self,
        options: Options,
        plan: Sequence[Action],
        selectors: Mapping[ElectionKind, LeaderSelector] | None = None,
        invariants: tuple[Invariant, ...] = INVARIANTS,
    ) -> None:
        super().__init__(options, selectors, invariants)
        self.plan = tuple(plan)

    def run(self) -> Result:
        """Play the plan, end all faults, wait for rest, and check the invariants."""
        log = logging.getLogger("kframe")
        before = log.level, log.propagate
        log.addHandler(self._errors)
        log.setLevel(logging.WARNING)
        log.propagate = False
        try:
            self._play()
        finally:
            log.removeHandler(self._errors)
            log.setLevel(before[0])
            log.propagate = before[1]
        return Result(
            self.options,
            self.plan,
            self.scheduler.happened,
            self.scheduler.now_ms,
            self._trace.hexdigest(),
            tuple(self.watch.violations),
            dict(self.played),
            dict(self.watch.looks),
            dict(self.counts),
        )

    def raced(self, request: WriteStates | WriteAssignments) -> None:
        """Another client writes before this write of a controller."""
        races.race(self, request)

    def storing_assignments(self, table: TopicTable) -> None:
        """A controller is about to store assignments. Their record may become unreadable first."""
        sequences.malform_at_completion(self, table)

    def topic_written(self, name: str, before: Mapping[int, Row], after: Mapping[int, Row], writer: int | None) -> None:
        """A topic was stored: a delayed ISR write may be due."""
        super().topic_written(name, before, after, writer)
        if writer is not None:
            sequences.assignment_stored(self, name)

    def delays_isr_write(self, key: TopicPartition, isr: tuple[int, ...], store: Callable[[], None]) -> bool:
        """Whether a leader's own ISR write is delayed until its reassignment is overridden."""
        return sequences.is_delayed_by_override(self, key, isr, store)

    def _play(self) -> None:
        for number, broker in enumerate(self.brokers.values()):
            self.scheduler.at(number * 3.0, broker.start)
        for number, process in enumerate(self.controllers):
            self.scheduler.at(20.0 + number * 15.0, process.start)
        for action in self.plan:
            self.scheduler.at(action.at_ms, partial(actions.play, self, action))
        last = self.plan[-1].at_ms if self.plan else 0.0
        self._run_until(lambda: self.scheduler.now_ms > last + 1_000.0)
        if self.options.quiescence:
            self._quiescence()
        actions.end_faults(self)
        self._rest()
        if not self.watch.broken:
            self.watch.check(Rested())

    def _run_until(self, done: Callable[[], bool]) -> None:
        scheduler, processes, watch = self.scheduler, self.controllers, self.watch
        while not done() and not watch.broken and scheduler.next_ms() < float("inf"):
            scheduler.step()
            for process in processes:
                process.schedule_pending()

    def _quiescence(self) -> None:
        """Wait for quiescence while stopped processes stay down. Then change the address of one broker, wait until
        every broker must have received it, and check the invariants."""
        actions.quiescence(self)
        began = self.scheduler.now_ms
        changed_at, changes = began + self.session_timeout_ms, -1
        quiescence_ms = BALANCED_MS if self.options.rebalance else QUIESCENCE_MS

        def quiet() -> bool:
            nonlocal changed_at, changes
            now = self.scheduler.now_ms
            if changes != self.ensemble.changes or self._awaits_election():
                changed_at, changes = max(now, changed_at), self.ensemble.changes
            self.changed_ms = changed_at
            return now - changed_at > quiescence_ms or now - began > QUIESCENCE_MAX_MS

        self._run_until(quiet)
        if self.scheduler.now_ms - began > QUIESCENCE_MAX_MS:
            return
        actions.readdress(self, {"broker": self.options.seed})
        checked_at, changes = self.scheduler.now_ms + PROPAGATION_MS, self.ensemble.changes
        self._run_until(lambda: self.scheduler.now_ms > checked_at)
        # Balancing may have begun meanwhile, and its requests may still be in flight.
        if not self.watch.broken and changes == self.ensemble.changes:
            self.watch.check(Quiescent())

    def _awaits_election(self) -> bool:
        """Whether no controller is active although one runs: after failed elections it waits before the next."""
        running = [process for process in self.controllers if process.running and not process.paused]
        return bool(running) and not any(process.active for process in running)

    def _rest(self) -> None:
        began, since, changes = self.scheduler.now_ms, self.scheduler.now_ms, -1
        next_check = 0.0

        def at_rest() -> bool:
            nonlocal since, changes, next_check
            now = self.scheduler.now_ms
            if now < next_check:
                return False
            next_check = now + 500.0
            actions.start_stopped_processes(self)
            actions.elect_last_in_sync_replicas(self)
            busy = any(not controller.idle for controller in self.controllers)
            if changes != self.ensemble.changes:
                since, changes = now, self.ensemble.changes
            self.changed_ms = since
            return (now - since > QUIET_MS and not busy) or now - began > REST_MAX_MS

        self._run_until(at_rest)
        if self.scheduler.now_ms - began > REST_MAX_MS:
            self.watch.report("L3", "the simulation did not come to rest")
