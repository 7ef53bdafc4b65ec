"""A controller's session with the simulated ensemble: the embedded store with faults.

The ensemble expires a session after the session timeout without contact. A paused or disconnected process has no
contact, and learns of the expiry when it reconnects. Watch events arrive after a delay, in order, perhaps twice. Events
during a disconnection arrive after it.
"""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, cast

import numpy as np

from kframe.embedded.layout import CONTROLLER, broker_path
from kframe.embedded.records import RecordTree, StoredRecordError, WatchEvent
from kframe.embedded.states import StateColumns
from kframe.embedded.store import MemoryStore
from kframe.embedded.topics import StoredTopics
from kframe.errors import ControllerFenced, StoreError
from kframe.model.changes import StateChange, WriteCode, WriteResult
from kframe.model.cluster import ClusterState
from kframe.model.events import Reelect, SessionExpired
from kframe.ports.store_requests import (
    AssignTopicIds,
    Claim,
    CreateTopics,
    DeleteTopics,
    Load,
    ReadBrokers,
    ReadIsrChanges,
    ReadPreferredElection,
    ReadStates,
    ReadTopics,
    ReleaseRole,
    Reply,
    StoreRead,
    StoreRequest,
    WriteAssignments,
    WriteStates,
)
from kframe.testing.pipelined_write import PipelinedWrite
from kframe_simulator.simulation.ensemble import SimEnsemble
from kframe_simulator.simulation.follower import arm, armed, changed, fork
from kframe_simulator.simulation.network import ENSEMBLE, Network
from kframe_simulator.simulation.scheduler import ProcessClock, Scheduler


class SimStore(MemoryStore):
    """One process's session with the ensemble. Implements ``ports.Store``."""

    def __init__(
        self,
        ensemble: SimEnsemble,
        scheduler: Scheduler,
        network: Network,
        clock: ProcessClock,
        controller_id: int,
        session_timeout_ms: float,
    ) -> None:
        super().__init__(ensemble.records, ensemble.states, ensemble.topics)
        self.controller_id = controller_id
        self.claimed_epoch = -1
        """Controller epoch of the last claim. -1 before the first, and after its release or certain loss."""
        self.faults: deque[str] = deque()
        """The faults of the next writes: the connection is lost "before" or "after" the write."""
        self.races = 0
        """How many of the next state and assignment writes another client precedes."""
        self.watch_delay_ms = 0.0
        self.repeats_watches = False
        self.expiries = 0
        """The number of session expiries that the process has received."""
        self.failed_calls = 0
        """The number of calls that raised because of a fault."""
        self._ensemble, self._scheduler, self._network, self._clock = ensemble, scheduler, network, clock
        self._timeout_ms = session_timeout_ms
        self._stale_snapshot: tuple[RecordTree, StateColumns, StoredTopics] | None = None
        self.lost_role = False
        """Whether the client knows that it lost the role of its last claim."""
        self._linked = True
        self._breaks = 0
        self._contact_ms = 0.0
        self._expired = False
        self._arrived: deque[tuple[int, WatchEvent]] = deque()
        self._registrations_read: set[tuple[int, int]] = set()
        self._pipelined: PipelinedWrite | None = None

    # -- Session.

    @property
    def linked(self) -> bool:
        """Whether calls reach the ensemble."""
        return self._linked

    def may_act(self) -> bool:
        """Whether the client may act as controller. It must have claimed the role in this session and know of no loss.
        By its own clock, its last contact with the ensemble must be within the session timeout."""
        may = self.role_is_certain()
        self.failed_calls += not may
        return may

    def role_is_certain(self) -> bool:
        """The same as ``may_act``, without side effects."""
        claim = self._claimed
        may = claim is not None and claim.session == self._session and not self.lost_role
        return may and (self._linked or self._clock.now_ms() - self._contact_ms < self._timeout_ms)

    def break_link(self) -> None:
        """Disconnect the process from the ensemble."""
        if not self._linked:
            return
        self._linked, self._contact_ms = False, self._clock.now_ms()
        self._breaks += 1
        breaks, session = self._breaks, self._session
        self._scheduler.after(self._timeout_ms, lambda: self._time_out(breaks, session))

    def restore_link(self) -> None:
        """Reconnect the process: in its session, or in a new one if the session has expired."""
        if self._linked or self._session is None:
            return
        self._linked = True
        if self._clock.now_ms() - self._contact_ms >= self._timeout_ms:
            self._end_session()  # It may have expired: after ``may_act`` was false, the client needs a new one.
        if self._expired:
            self._begin_anew()
        else:
            self._deliver()

    def expire(self) -> None:
        """The ensemble expires the session at once. The client is notified soon."""
        if self._session is None or self._expired:
            return
        self._end_session()
        if self._linked:
            self._linked, self._contact_ms = False, self._clock.now_ms()
            self._breaks += 1
            self._scheduler.after(1.0, self.restore_link)

    def vanish(self) -> None:
        """The process ends without closing the session. The ensemble expires it after the timeout."""
        self.break_link()

    def _time_out(self, breaks: int, session: int | None) -> None:
        if not self._linked and self._breaks == breaks and self._session == session:
            self._end_session()

    def _end_session(self) -> None:
        if not self._expired and self._session is not None:
            self._expired, self._stale_snapshot = True, None
            self._arrived.clear()
            self._ensemble.simulation.changed_outside("session-ended")
            self._records.close_session(self._session)

    def _begin_anew(self) -> None:
        """Begin a new session without any state of the old one."""
        self._expired = False
        self._emits_controller_events = False
        self._registrations_read.clear()
        self._start_session()
        self.claimed_epoch = -1
        self.expiries += 1
        self._notify(SessionExpired())
        self._notify(Reelect())

    def close(self) -> None:
        """Disconnect. An expired session is ignored."""
        if self._expired:
            self._session = None
        super().close()

    # -- Watches.

    def _on_watch(self, event: WatchEvent) -> None:
        """A watch fires on the ensemble. The process is notified later, in order."""
        if self._session is None or self._expired:
            return
        for _ in range(2 if self.repeats_watches else 1):
            self._arrived.append((self._session, event))
            self._network.deliver(ENSEMBLE, self.controller_id, self._deliver, self.watch_delay_ms)

    def _deliver(self) -> None:
        """Deliver the watch events that have arrived: one per call, or all after a reconnection."""
        if not self._linked or self._expired or self._stale_snapshot is not None:
            return
        while self._arrived:
            session, event = self._arrived.popleft()
            if session == self._session:
                self._note_role(event)
                super()._on_watch(event)

    def _note_role(self, event: WatchEvent) -> None:
        if event.path == CONTROLLER:
            stat = self._records.exists(self._connected(), CONTROLLER)
            self.lost_role = stat is None or stat.owner != self._session
            if self.lost_role:
                self._claimed = None

    # -- Requests.

    def perform(self, request: StoreRequest[Reply]) -> Reply:
        """Perform a request with its faults."""
        if isinstance(request, WriteStates):
            return cast(Reply, self._write_states_pipelined(request))
        return self._perform(request)

    def _perform(self, request: StoreRequest[Reply]) -> Reply:
        try:
            self._ensemble.simulation.called(self.controller_id, request)
            if isinstance(request, StoreRead):
                return cast(Reply, self._read(request))
            self.catch_up()
            return self._write(request)
        except ControllerFenced:
            self.failed_calls += 1
            raise
        except StoredRecordError as error:
            self.failed_calls += 1
            raise StoreError(str(error)) from error

    def _read(self, request: StoreRead[Any]) -> Any:
        """Read from the connected server, without unreadable records."""
        now = self._records, self._states, self._topics
        if self._stale_snapshot is not None:
            self._records, self._states, self._topics = self._stale_snapshot
        try:
            result = super().perform(request)
        finally:
            self._records, self._states, self._topics = now
        match request:
            case ReadBrokers():
                return tuple(
                    registration
                    for registration in result
                    if self._reads_broker(registration.broker_id, registration.broker_epoch)
                )
            case Load():
                return self._without_broken(result)
            case ReadPreferredElection() if result:
                self._ensemble.simulation.elections_read(self.controller_id, result)
            case ReadIsrChanges():
                self._ensemble.simulation.isr_changes_read(self.controller_id, result.items)
            case ReadStates():
                self._ensemble.simulation.states_read(self.controller_id, request.cluster, request.rows, result)
            case ReadTopics() if self._ensemble.broken:
                readable = self._ensemble.readable(result.names)
                self._forget_versions(result.names, readable)
                return result.take(np.array(readable, np.int64))
        return result

    def _reads_broker(self, broker_id: int, broker_epoch: int) -> bool:
        """Whether this registration is readable, or was read before in this session: then the earlier content is
        used."""
        if broker_path(broker_id) not in self._ensemble.broken:
            self._registrations_read.add((broker_id, broker_epoch))
        return (broker_id, broker_epoch) in self._registrations_read

    def _forget_versions(self, names: Sequence[str], readable: Sequence[int]) -> None:
        """Report unreadable topics, and forget their versions, so that writes over them fail."""
        for index in set(range(len(names))) - set(readable):
            self._read_versions[names[index]] = -2
            self._ensemble.simulation.topic_unread(self.controller_id, names[index])

    def _without_broken(self, cluster: ClusterState) -> ClusterState:
        names, readable = cluster.topics.names, set(self._ensemble.readable(cluster.topics.names))
        self._forget_versions(names, sorted(readable))
        broken = [
            index for index in range(len(names)) if index not in readable and cluster.topics.find(names[index]) == index
        ]
        cluster.drop_topics(np.array(broken, np.int32))
        brokers = cluster.brokers
        for index in np.flatnonzero(brokers.registered).tolist():
            if not self._reads_broker(int(brokers.ids[index]), int(brokers.broker_epoch[index])):
                brokers.unregister(np.array([index], np.int32))
        return cluster

    # -- Lagging server.

    def lag(self, for_ms: float) -> bool:
        """Let the server of this session lag for a while, or until the next write. Returns False if it lags already."""
        if self._stale_snapshot is not None or not self._linked or self._expired or self._session is None:
            return False
        states = StateColumns(self._states.cluster)
        records = fork(self._records)
        topics = copy.copy(self._topics)
        topics._records, topics._states, topics.configs = records, states, dict(topics.configs)
        self._stale_snapshot = records, states, topics
        self._scheduler.after(for_ms, self.catch_up)
        return True

    def catch_up(self) -> None:
        """The server has caught up: watches on changed paths fire, the others are set again."""
        snapshot, self._stale_snapshot = self._stale_snapshot, None
        if snapshot is None or self._expired or self._session is None:
            return
        for of_children, path in armed(snapshot[0], self._session):
            change = changed(snapshot[0], self._records, path, of_children)
            if change is None:
                arm(self._records, self._session, path, of_children)
            else:
                self._on_watch(WatchEvent(change, path))
        self._deliver()

    # -- Writes.

    def _write_states_pipelined(self, request: WriteStates) -> WriteResult:
        """Write each row that was not written as ``following`` of an earlier request, and then ``following``.

        Both writes are done before the result of ``change`` is known. If the connection is lost, both may have been
        done, and the outcome is unknown.
        """
        write = partial(self._write_states_of, request.cluster)
        lost = bool(self.faults) and self.faults[0] == "after"
        try:
            result = self._write_rest(request.change, write)
        except StoreError:
            if request.following is not None and lost:
                PipelinedWrite.of(request.following, write)
            raise
        if request.following is not None:
            self._pipelined = PipelinedWrite.of(request.following, write)
        return result

    def _write_rest(self, change: StateChange, write: Callable[[StateChange], WriteResult]) -> WriteResult:
        pipelined = self._pipelined
        if pipelined is None or not (matching := pipelined.matching_rows(change)).any():
            return write(change)
        self._pipelined = None
        return pipelined.result(change, matching, write)

    def _write_states_of(self, cluster: ClusterState, change: StateChange) -> WriteResult:
        return self._perform(WriteStates(cluster, change))

    def _write(self, request: StoreRequest[Reply]) -> Reply:
        fault = self.faults.popleft() if self.faults and not isinstance(request, ReleaseRole) else None
        if fault and isinstance(request, Claim):
            # A later read shows whether the write was done. If that read fails, too, the session is over.
            self.failed_calls += 1
            self.expire()
            raise StoreError(f"the session ended while {request.name} was under way")
        if fault == "before":
            self.failed_calls += 1
            raise StoreError(f"connection lost before {request.name} was done")
        if self.races and isinstance(request, WriteStates | WriteAssignments):
            self.races -= 1
            self._ensemble.simulation.raced(request)
        if isinstance(request, WriteAssignments):
            self._ensemble.simulation.storing_assignments(request.table)
        zxid = self._records.zxid
        reply = super().perform(request)
        if self._records.zxid != zxid or isinstance(request, WriteStates):
            self._observe(request, reply)
        if fault == "after":
            self.failed_calls += 1
            raise StoreError(f"connection lost after {request.name} was done")
        return reply

    def _observe(self, request: StoreRequest[Any], reply: Any) -> None:
        match request:
            case ReleaseRole():
                self.claimed_epoch = -1
                return
            case Claim():
                if reply is not None:
                    self.claimed_epoch, self.lost_role = reply, False
            case WriteStates():
                self._observe_states(request.cluster, request.change, reply)
            case WriteAssignments(table=table) | CreateTopics(table=table):
                self._ensemble.topics_changed(table.names, self.controller_id)
            case AssignTopicIds(names=names) | DeleteTopics(names=names):
                self._ensemble.topics_changed(names, self.controller_id)
            case _:
                self._ensemble.changes += 1
        self._ensemble.simulation.written(self.controller_id, request, reply)

    def _observe_states(self, cluster: ClusterState, change: StateChange, result: WriteResult) -> None:
        names, p = cluster.topics.names, cluster.partitions
        for row, code in zip(change.rows.tolist(), result.codes.tolist(), strict=True):
            if code == WriteCode.OK:
                key = names[p.topic[row]], int(p.partition[row])
                self._ensemble.state_changed(key, self.controller_id, cluster)
            elif code == WriteCode.STALE:
                self._ensemble.simulation.refused(self.controller_id, (names[p.topic[row]], int(p.partition[row])))
