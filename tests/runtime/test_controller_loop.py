"""The controller loop: each event completes before the next, and every request gets a response."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any

import pytest

from kframe.core.controller import ControllerCore
from kframe.core.selectors.leader_selection import Selection
from kframe.embedded import MemoryEnsemble, MemoryStore, RecordingTransport, VirtualClock
from kframe.errors import ErrorCode, ShapeError, StoreError
from kframe.model.admin import NewTopic
from kframe.model.brokers import Registration
from kframe.model.cluster import ClusterState
from kframe.model.config import ControllerConfig
from kframe.model.events import (
    BrokersChanged,
    ControlledShutdownRequested,
    ControllerState,
    CreateTopicsRequested,
    ElectionRequested,
    ElectionType,
    InspectionRequested,
    ListReassignmentsRequested,
)
from kframe.model.ids import NO_BROKER_EPOCH
from kframe.model.requests import ControlRequests
from kframe.ports.store import BrokersLoaded
from kframe.ports.store_requests import Claim, Load, OwnsRole, ReadController, Reply, StoreRequest, WriteStates
from kframe.runtime.loop import ControllerLoop
from kframe.testing.clusters import PartitionSpec, cluster_of, healthy, registration

RESPONSE_S = 30.0
"""A generous timeout for any machine. Only a deadlock waits that long."""


class Flaky(MemoryStore):
    """An in-memory store that can run an action before a write, and can then forbid the controller to act."""

    def __init__(self, ensemble: MemoryEnsemble) -> None:
        super().__init__(ensemble.records, ensemble.states, ensemble.topics)
        self.before_write: list[Callable[[], object]] = []
        self.role_uncertain = False
        """Whether the controller cannot exclude that it was deposed."""
        self.confirms_role = False
        """Whether the store confirms the role on request."""
        self.reachable = threading.Event()
        self.reachable.set()

    def perform(self, request: StoreRequest[Reply]) -> Reply:
        if isinstance(request, WriteStates) and self.before_write:
            self.before_write.pop(0)()
        if isinstance(request, OwnsRole | ReadController):
            self.role_uncertain = self.role_uncertain and not self.confirms_role
        return super().perform(request)

    def may_act(self) -> bool:
        return super().may_act() and not self.role_uncertain

    def connected(self) -> bool:
        return super().connected() and self.reachable.is_set()

    def close(self) -> None:
        super().close()
        self.reachable.set()


class Harness:
    """A controller loop over one topic ``t``: t-0 on brokers 1 and 2, led by 2."""

    def __init__(self) -> None:
        spec = PartitionSpec((1, 2), 2, (1, 2))
        self.ensemble = MemoryEnsemble.from_cluster(cluster_of({"t": [spec, healthy(1, 2)]}, (1, 2)))
        self.store = Flaky(self.ensemble)
        self.transport = RecordingTransport()
        self.clock = VirtualClock()
        controller = ControllerCore(1000, ControllerConfig(), Selection({}))
        self.loop = ControllerLoop(controller, self.store, self.transport, self.clock)

    def connect(self) -> MemoryStore:
        """Return the store of another controller, which ignores events."""
        other = self.ensemble.connect()
        other.open(lambda _event: None)
        return other

    def open(self) -> ControllerLoop:
        self.loop.open()
        self.loop.run_until_idle()
        return self.loop


@pytest.fixture
def harness() -> Iterator[Harness]:
    harness = Harness()
    yield harness
    harness.loop.stop()


def prefer(token: int) -> ElectionRequested:
    return ElectionRequested(ElectionType.PREFERRED, (("t", 0),), token)


def shut_down(token: int) -> ControlledShutdownRequested:
    return ControlledShutdownRequested(1, NO_BROKER_EPOCH, token)


def fail_with(error: Exception) -> Callable[[], object]:
    def act() -> None:
        raise error

    return act


def test_each_future_gets_its_own_response(harness: Harness) -> None:
    loop = harness.open()
    futures = [loop.submit(prefer), loop.submit(prefer), loop.submit(shut_down)]
    loop.run_until_idle()
    first, second, third = (future.result(0) for future in futures)
    assert (first.codes.tolist(), second.codes.tolist()) == ([ErrorCode.NONE], [ErrorCode.ELECTION_NOT_NEEDED])
    assert third.error is ErrorCode.NONE


def test_events_are_handled_sequentially(harness: Harness) -> None:
    """controller 1: single consumer."""
    loop = harness.open()
    observed: list[tuple[ControllerState, bool, int]] = []

    def interrupt() -> None:
        harness.ensemble.unregister_brokers([2])
        observed.append((loop.state, loop.controller.busy, len(loop.queue)))

    harness.store.before_write.append(interrupt)
    future = loop.submit(prefer)
    assert loop.run_until_idle() == 2
    assert observed == [(ControllerState.MANUAL_LEADER_BALANCE, True, 1)]
    assert future.result(0).codes.tolist() == [ErrorCode.NONE]


@pytest.mark.parametrize("request_of", [prefer, shut_down], ids=["election", "controlled shutdown"])
def test_store_error_completes_all_futures(
    harness: Harness, request_of: Callable[[int], ElectionRequested | ControlledShutdownRequested]
) -> None:
    loop = harness.open()
    harness.store.before_write.append(fail_with(StoreError("connection lost")))
    future: Future[Any] = loop.submit(request_of)
    loop.run_until_idle()
    assert future.done()


def test_uncertain_controller_does_not_announce_stored_states(harness: Harness) -> None:
    """The controller paused after its write: brokers receive no request, the client gets a response, and the role
    ends."""
    loop = harness.open()
    harness.transport.take()
    harness.store.before_write.append(partial(setattr, harness.store, "role_uncertain", True))
    future = loop.submit(prefer)
    loop.process(loop.queue.take() or BrokersChanged())
    assert (harness.transport.take(), loop.controller.active, harness.store.perform(OwnsRole())) == ([], False, False)
    assert future.result(0).error is ErrorCode.NOT_CONTROLLER
    harness.store.role_uncertain = False
    loop.run_until_idle()
    assert (loop.controller.active, loop.controller.controller_epoch) == (True, 2)
    assert harness.ensemble.states.cluster["t", 0].leader == 1
    assert {request["controller_epoch"] for request in harness.transport.take()} == {2}


def test_stored_states_are_sent_after_role_is_confirmed(harness: Harness) -> None:
    """An outage of storage within the session costs neither the role nor the request."""
    loop = harness.open()
    epoch = loop.controller.controller_epoch
    harness.transport.take()
    harness.store.confirms_role = True
    harness.store.before_write.append(lambda: setattr(harness.store, "role_uncertain", True))
    future = loop.submit(prefer)
    loop.run_until_idle()
    assert future.result(0).codes.tolist() == [ErrorCode.NONE]
    assert harness.transport.take() != []
    assert (loop.controller.active, loop.controller.controller_epoch) == (True, epoch)


@pytest.mark.parametrize("confirms", [False, True])
def test_uncertain_controller_completes_no_read(harness: Harness, confirms: bool) -> None:
    """Another controller may have changed the topics since. A read does not wait for storage, also if that would
    confirm the role."""
    loop = harness.open()
    harness.store.role_uncertain, harness.store.confirms_role = True, confirms
    inspected, listed = loop.submit(InspectionRequested), loop.submit(partial(ListReassignmentsRequested, None))
    loop.run_until_idle()
    assert (inspected.result(0), listed.result(0).error) == (False, ErrorCode.NOT_CONTROLLER)
    harness.store.role_uncertain = False
    inspected, listed = loop.submit(InspectionRequested), loop.submit(partial(ListReassignmentsRequested, None))
    loop.run_until_idle()
    assert (inspected.result(0), listed.result(0).error) == (True, ErrorCode.NONE)


@pytest.mark.parametrize("confirms, code", [(False, ErrorCode.NOT_CONTROLLER), (True, ErrorCode.TOPIC_ALREADY_EXISTS)])
def test_uncertain_controller_refuses_no_change_from_its_columns(
    harness: Harness, confirms: bool, code: ErrorCode
) -> None:
    """Another controller may have deleted the topic since."""
    loop = harness.open()
    harness.store.role_uncertain, harness.store.confirms_role = True, confirms
    future = loop.submit(lambda token: CreateTopicsRequested((NewTopic("t", 1, 1),), 1_000, token=token))
    loop.run_until_idle()
    assert future.result(0).codes == {"t": code}


def test_stop_closes_store_that_current_event_waits_for(harness: Harness) -> None:
    """The event that waits for storage ends. Otherwise a controller could not stop during an outage."""
    loop = harness.open()
    waits = threading.Event()

    def wait() -> None:
        harness.store.reachable.clear()
        waits.set()
        assert harness.store.reachable.wait(RESPONSE_S)

    harness.store.before_write.append(wait)
    loop.start()
    future = loop.submit(prefer)
    assert waits.wait(RESPONSE_S)
    loop.stop()
    assert future.result(RESPONSE_S).error is ErrorCode.NOT_CONTROLLER
    assert not loop.controller.active


@pytest.mark.parametrize("end", ["drop", "takeover", "expire"])
def test_deposed_controller_does_not_announce_stored_states(
    harness: Harness, end: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even while the events that report the loss are queued behind this event (I3)."""
    loop = harness.open()
    harness.transport.take()
    rival = harness.connect()
    lose: dict[str, Callable[[], object]] = {
        "drop": harness.ensemble.drop_controller,
        "takeover": partial(rival.perform, Claim(7, takeover=True)),
        "expire": partial(harness.ensemble.expire, harness.store),
    }
    perform = harness.store.perform

    def write_and_lose(request: StoreRequest[Any]) -> Any:
        reply = perform(request)
        if isinstance(request, WriteStates):
            lose[end]()
        return reply

    monkeypatch.setattr(harness.store, "perform", write_and_lose)
    future = loop.submit(prefer)
    loop.process(loop.queue.take() or BrokersChanged())
    assert harness.transport.take() == []
    assert future.result(0).error is ErrorCode.NOT_CONTROLLER
    assert not loop.controller.active


def test_transport_receives_may_act(harness: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    """A transport with queues checks before each request, in any thread."""
    checks: list[Callable[[], bool]] = []
    monkeypatch.setattr(harness.transport, "open", lambda _notify, may_act: checks.append(may_act))
    loop = harness.open()
    assert [ask() for ask in checks] == [True]
    harness.ensemble.expire(harness.store)
    assert [ask() for ask in checks] == [False]
    loop.run_until_idle()
    assert [ask() for ask in checks] == [True, True], "it was opened again, and the role won again"


@pytest.mark.parametrize("error", [ShapeError("a defect"), ZeroDivisionError("a defect")])
def test_unexpected_failure_is_reported_to_callers_and_ends_the_term(harness: Harness, error: Exception) -> None:
    """controller 1: errors, which cost kframe the role."""
    loop = harness.open()
    epoch = loop.controller.controller_epoch
    harness.store.before_write.append(fail_with(error))
    future = loop.submit(prefer)
    loop.process(loop.queue.take() or BrokersChanged())
    assert not loop.controller.active
    assert not loop.controller.busy
    with pytest.raises(type(error), match="a defect"):
        future.result(0)
    loop.run_until_idle()
    assert loop.controller.controller_epoch == epoch + 1


def test_failed_failovers_back_off_exponentially(harness: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    """After an immediate release, the controller would take and lose the role in an endless loop."""
    attempts: list[float] = []
    perform = harness.store.perform

    def failing(request: StoreRequest[Any]) -> Any:
        if isinstance(request, Load):
            attempts.append(harness.clock.now_ms())
            if len(attempts) <= 4:
                raise StoreError("no response")
        return perform(request)

    monkeypatch.setattr(harness.store, "perform", failing)
    loop = harness.open()
    assert (len(attempts), loop.controller.active) == (2, False)

    def settle() -> None:
        loop.run_until_idle()

    harness.clock.advance(10.0, settle)
    assert loop.controller.active
    assert [round(later - earlier) for earlier, later in itertools.pairwise(attempts)] == [0, 100, 200, 400]


def test_adopt_changes_and_sends_nothing(harness: Harness) -> None:
    before = harness.ensemble.states.cluster["t", 0]
    harness.loop.adopt()
    harness.loop.run_until_idle()
    assert harness.loop.controller.active
    assert harness.ensemble.states.cluster["t", 0] == before
    assert harness.transport.take() == []


def test_adopt_is_refused_while_another_controller_is_active(harness: Harness) -> None:
    rival = harness.connect()
    rival.perform(Claim(7))
    with pytest.raises(StoreError, match="controller 7 holds the role"):
        harness.loop.adopt()


def test_stop_completes_futures_and_releases_the_role(harness: Harness) -> None:
    """controller 1: close."""
    loop = harness.open()
    future = loop.submit(prefer)
    loop.stop()
    assert future.result(0).error is ErrorCode.NOT_CONTROLLER
    assert not loop.controller.active
    watcher = harness.connect()
    assert watcher.perform(ReadController()).controller_id == -1
    assert watcher.perform(Claim(7)) == 2, "a stopped controller does not contend"


# -- in a thread


class Gate(RecordingTransport):
    """A transport that runs an action once, in the sending thread."""

    def __init__(self) -> None:
        super().__init__()
        self.once: list[Callable[[], object]] = []

    def send(self, cluster: ClusterState, requests: ControlRequests) -> None:
        super().send(cluster, requests)
        if self.once:
            self.once.pop()()


def test_stop_waits_for_current_event_and_completes_queued_ones(harness: Harness) -> None:
    """controller 1: process/preempt exclusive, close."""
    gate = Gate()
    loop = ControllerLoop(ControllerCore(1000, ControllerConfig(), Selection({})), harness.store, gate, harness.clock)
    loop.open()
    loop.run_until_idle()
    later: Future[Future[Any]] = Future()
    gate.once.append(lambda: later.set_result(loop.submit(shut_down)))
    first = loop.submit(prefer)
    loop.start()
    assert first.result(RESPONSE_S).codes.tolist() == [ErrorCode.NONE]
    waiting = later.result(RESPONSE_S)
    loop.stop()
    assert waiting.result(RESPONSE_S).error in (ErrorCode.NONE, ErrorCode.STALE_CONTROLLER_EPOCH)
    assert not loop.controller.active


def test_brokers_may_register_from_another_thread(harness: Harness) -> None:
    loop = harness.loop
    loop.open()
    loop.start()
    assert loop.submit(prefer).result(RESPONSE_S).error is ErrorCode.NONE
    harness.ensemble.register_brokers([registration(3), Registration(4, NO_BROKER_EPOCH)])
    assert loop.submit(prefer).result(RESPONSE_S).error is ErrorCode.NONE
    assert loop.controller.cluster.brokers.registered_ids() == [1, 2, 3, 4]


class EarlyReportingStore(MemoryStore):
    """An in-memory store that reports the registered brokers early."""

    def report_brokers(self, callback: BrokersLoaded) -> None:
        self.callback = callback

    def perform(self, request: StoreRequest[Reply]) -> Reply:
        reply = super().perform(request)
        if isinstance(reply, ClusterState):
            self.callback([registration for registration in reply.brokers.registrations if registration is not None])
        return reply


class ExpectingTransport(RecordingTransport):
    """No broker model: it records the order of ``expect`` and ``connect``."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple[str, list[int]]] = []

    def expect(self, registrations: Sequence[Registration]) -> None:
        self.calls.append(("expected", [registration.broker_id for registration in registrations]))

    def connect(self, cluster: ClusterState, brokers: tuple[int, ...]) -> None:
        super().connect(cluster, brokers)
        self.calls.append(("connected", cluster.brokers.ids_of(brokers)))


def test_transport_expects_loaded_brokers_before_connect() -> None:
    ensemble = MemoryEnsemble.from_cluster(cluster_of({"t": [healthy(1, 2)]}, (1, 2)))
    store, transport = EarlyReportingStore(ensemble.records, ensemble.states, ensemble.topics), ExpectingTransport()
    loop = ControllerLoop(ControllerCore(1000, ControllerConfig(), Selection({})), store, transport, VirtualClock())
    loop.open()
    loop.run_until_idle()
    assert transport.calls == [("expected", [1, 2]), ("connected", [1, 2])]
    loop.stop()
