"""A running controller: results by name, calls from any thread, and errors."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from typing import Any

import numpy as np
import pytest

import kframe
from kframe.embedded import EmbeddedBrokers, MemoryEnsemble, VirtualClock
from kframe.errors import ErrorCode
from kframe.model.admin import ConfigChange, ConfigOperation, FeatureUpdate, NewPartitions, NewTopic
from kframe.model.effects import Effect
from kframe.model.events import ControllerState, EffectResult, ElectionType, Event
from kframe.model.tables import Targets
from kframe.ports.observer import Observer
from kframe.ports.store_requests import Claim, ReadConfigs
from kframe.runtime.controller import Controller
from kframe.testing.clusters import PartitionSpec, cluster_of, healthy

TIMEOUT_S = 30.0
"""A generous timeout for any machine. Only a deadlock waits that long."""
LED_BY_SECOND = PartitionSpec((1, 2), leader=2, isr=(2, 1))


class Harness:
    """A controller, not open yet, with brokers 1 to 3 and two topics."""

    def __init__(self, *observers: Observer) -> None:
        cluster = cluster_of({"a": [LED_BY_SECOND, healthy(2, 3)], "b": [healthy(3)]}, (1, 2, 3))
        self.ensemble = MemoryEnsemble.from_cluster(cluster)
        self.store = self.ensemble.connect()
        self.clock = VirtualClock()
        self.transport = EmbeddedBrokers(self.clock)
        config = {"auto.leader.rebalance.enable": False}
        builder = kframe.ControllerBuilder(
            1000, store=self.store, transport=self.transport, config=config, observers=observers, clock=self.clock
        )
        self.controller = builder.build()

    def open(self) -> Controller:
        """Open the controller, and run it until it is idle."""
        self.controller.open()
        self.controller.run_until_idle()
        return self.controller

    def get(self, future: Future[Any]) -> Any:
        """Run the controller until it is idle. Return the response."""
        self.controller.run_until_idle()
        return future.result(timeout=0)

    def broker_epoch(self, broker_id: int) -> int:
        return next(
            registration.broker_epoch
            for registration in self.ensemble.registrations()
            if registration.broker_id == broker_id
        )


@pytest.fixture
def harness() -> Iterator[Harness]:
    harness = Harness()
    harness.open()
    yield harness
    harness.controller.stop()


def test_election_results_are_by_partition(harness: Harness) -> None:
    named = [("zz", 4), ("a", 0), ("b", 0), ("a", 7)]
    response = harness.get(harness.controller.elect_leaders(ElectionType.PREFERRED, named))
    assert response.error is ErrorCode.NONE
    assert response.by_partition() == {
        ("a", 0): ErrorCode.NONE,
        ("b", 0): ErrorCode.ELECTION_NOT_NEEDED,
        ("zz", 4): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ("a", 7): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert len(response) == 4
    assert harness.ensemble.states.cluster["a", 0].leader == 1


def test_topics_are_created_grown_and_deleted(harness: Harness) -> None:
    controller = harness.controller
    codes = harness.get(controller.create_topics([NewTopic("c", 2, 3), NewTopic("a", 1, 1)]))
    assert codes == {"c": ErrorCode.NONE, "a": ErrorCode.TOPIC_ALREADY_EXISTS}
    assert harness.get(controller.create_partitions([NewPartitions("c", 5)])) == {"c": ErrorCode.NONE}
    assert controller.status().gauges["GlobalPartitionCount"] == 3 + 5
    codes = harness.get(controller.delete_topics(["c", "nosuch"]))
    assert codes == {"c": ErrorCode.NONE, "nosuch": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    assert controller.status().gauges["GlobalTopicCount"] == 2


def test_reassignment_is_started_listed_and_cancelled(harness: Harness) -> None:
    controller = harness.controller
    response = harness.get(controller.reassign({("a", 0): [3, 1], ("q", 9): [1], ("b", 0): None}))
    assert response.by_partition() == {
        ("a", 0): ErrorCode.NONE,
        ("q", 9): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ("b", 0): ErrorCode.NO_REASSIGNMENT_IN_PROGRESS,
    }
    listed = harness.get(controller.list_reassignments())
    assert (list(listed.partitions), len(listed)) == ([("a", 0)], 1)
    assert listed.replicas[0].tolist() == [3, 1, 2]
    assert (listed.adding_replicas[0].tolist(), listed.removing_replicas[0].tolist()) == ([3], [2])
    assert len(harness.get(controller.list_reassignments([("b", 0), ("q", 9)]))) == 0
    cancelled = harness.get(controller.reassign(Targets.of([(("a", 0), None)])))
    assert cancelled.by_partition() == {("a", 0): ErrorCode.NONE}
    assert len(harness.get(controller.list_reassignments())) == 0


def test_alter_partition_changes_the_isr(harness: Harness) -> None:
    state = harness.ensemble.states.cluster["a", 1]
    proposals = [
        kframe.IsrProposal("a", 1, state.leader_epoch, state.partition_epoch, (2,)),
        kframe.IsrProposal("a", 0, 99, 0, (2,)),
    ]
    altered = harness.get(harness.controller.alter_partition(2, harness.broker_epoch(2), proposals, version=1))
    assert altered.error is ErrorCode.NONE
    assert altered.codes.tolist() == [ErrorCode.NONE, ErrorCode.NOT_CONTROLLER]
    assert altered.known.tolist() == [True, False]
    assert (int(altered.leader[0]), altered.isr[0].tolist()) == (2, [2])
    assert altered.partition_epoch[0] == state.partition_epoch + 1
    refused = harness.get(harness.controller.alter_partition(2, -1, proposals))
    assert (refused.error, len(refused.codes), len(refused.isr)) == (ErrorCode.STALE_BROKER_EPOCH, 0, 0)


def test_controlled_shutdown_returns_remaining_partitions(harness: Harness) -> None:
    harness.get(harness.controller.controlled_shutdown(2))
    remaining = harness.get(harness.controller.controlled_shutdown(3))
    assert (remaining.error, list(remaining.partitions)) == (ErrorCode.NONE, [("a", 1)])
    assert harness.get(harness.controller.controlled_shutdown(77)).error is ErrorCode.BROKER_NOT_AVAILABLE


def test_resign_releases_the_role_and_contends_again(harness: Harness) -> None:
    harness.controller.resign()
    harness.controller.run_until_idle()
    assert harness.controller.status().controller_epoch == 2


REQUESTS: list[tuple[str, Callable[[Controller], Future[Any]], Callable[[Any], bool]]] = [
    (
        "elect",
        lambda c: c.elect_leaders(partitions=[("a", 0)]),
        lambda r: r.by_partition() == {("a", 0): ErrorCode.NOT_CONTROLLER},
    ),
    ("elect all", lambda c: c.elect_leaders(), lambda r: r.error is ErrorCode.NOT_CONTROLLER),
    ("create", lambda c: c.create_topics([NewTopic("n", 1, 1)]), lambda r: r == {"n": ErrorCode.NOT_CONTROLLER}),
    ("grow", lambda c: c.create_partitions([NewPartitions("a", 9)]), lambda r: r == {"a": ErrorCode.NOT_CONTROLLER}),
    ("delete", lambda c: c.delete_topics(["a"]), lambda r: r == {"a": ErrorCode.NOT_CONTROLLER}),
    (
        "reassign",
        lambda c: c.reassign({("a", 0): [3]}),
        lambda r: r.by_partition() == {("a", 0): ErrorCode.NOT_CONTROLLER},
    ),
    ("list", lambda c: c.list_reassignments(), lambda r: (r.error, len(r)) == (ErrorCode.NOT_CONTROLLER, 0)),
    ("alter", lambda c: c.alter_partition(1, 1, []), lambda r: r.error is ErrorCode.NOT_CONTROLLER),
    ("shut down", lambda c: c.controlled_shutdown(1), lambda r: r.error is ErrorCode.STALE_CONTROLLER_EPOCH),
]


@pytest.mark.parametrize("ask, is_expected", [case[1:] for case in REQUESTS], ids=[case[0] for case in REQUESTS])
@pytest.mark.parametrize("when", ["before it is elected", "session expires", "after stop"])
def test_inactive_controller_refuses_requests(
    when: str, ask: Callable[[Controller], Future[Any]], is_expected: Callable[[Any], bool]
) -> None:
    harness = Harness()
    rival = harness.ensemble.connect()
    rival.open(lambda _event: None)
    if when == "before it is elected":
        rival.perform(Claim(7))
    harness.open()
    if when == "after stop":
        harness.controller.stop()
    future = ask(harness.controller)
    if when == "session expires":
        harness.ensemble.expire(harness.store)
        assert future.done(), "pending requests complete immediately"
    harness.controller.run_until_idle()
    assert is_expected(future.result(timeout=0))
    harness.controller.stop()


# -- in a thread


def test_context_manager_starts_and_stops_controller() -> None:
    harness = Harness()
    with harness.controller as controller:
        assert controller is harness.controller
        created = controller.create_topics([NewTopic("n", 4, 2)]).result(TIMEOUT_S)
        status = controller.status()
    assert created == {"n": ErrorCode.NONE}
    assert (status.active, status.gauges["GlobalPartitionCount"]) == (True, 7), "the change precedes the response"
    after = harness.controller.status()
    assert (after.active, after.controller_epoch, after.gauges["GlobalPartitionCount"]) == (False, -1, 0)


def test_context_manager_stops_controller_after_exception() -> None:
    harness = Harness()
    with pytest.raises(ZeroDivisionError), harness.controller:
        raise ZeroDivisionError
    assert not harness.controller.status().active
    assert harness.controller.elect_leaders().result(TIMEOUT_S).error is ErrorCode.NOT_CONTROLLER


def test_requests_from_many_threads() -> None:
    harness = Harness()
    responses: list[dict[str, ErrorCode]] = []

    def ask(number: int) -> None:
        responses.extend(
            controller.create_topics([NewTopic(f"t-{number}-{index}", 1, 1)]).result(TIMEOUT_S) for index in range(10)
        )

    with harness.controller as controller:
        threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(TIMEOUT_S)
        assert controller.status().gauges["GlobalTopicCount"] == 2 + 80
    assert {code for response in responses for code in response.values()} == {ErrorCode.NONE}
    assert len({name for response in responses for name in response}) == 80


def test_cancelled_wait_does_not_cancel_the_request() -> None:
    """Asyncio forwards a cancellation to the future."""
    harness = Harness()

    async def cancel_wait() -> None:
        waiting = asyncio.wrap_future(harness.controller.elect_leaders())
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    harness.controller.open()
    asyncio.run(cancel_wait())
    harness.controller.run_until_idle()
    assert harness.controller.status().active
    assert harness.ensemble.states.cluster["a", 0].leader == 1, "the request is not cancelled"
    harness.controller.stop()


def test_exception_in_future_callback_does_not_affect_controller(harness: Harness) -> None:
    future = harness.controller.elect_leaders()
    future.add_done_callback(lambda _future: 1 / 0)
    assert harness.get(future).error is ErrorCode.NONE
    assert harness.controller.status().controller_epoch == 1


# -- observers


class Notes:
    """Records all steps."""

    def __init__(self) -> None:
        self.steps: list[tuple[Event | EffectResult, Sequence[Effect]]] = []

    def stepped(self, cause: Event | EffectResult, effects: Sequence[Effect]) -> None:
        self.steps.append((cause, effects))


class Broken(Notes):
    """Fails at every step."""

    name = "broken-one"

    def stepped(self, cause: Event | EffectResult, effects: Sequence[Effect]) -> None:
        super().stepped(cause, effects)
        raise ArithmeticError("no")


def test_observers_see_whole_batches_before_they_are_performed() -> None:
    leaders: list[int] = []
    harness: Harness

    class Early(Notes):
        def stepped(self, cause: Event | EffectResult, effects: Sequence[Effect]) -> None:
            super().stepped(cause, effects)
            leaders.append(harness.ensemble.states.cluster["a", 0].leader or 0)

    early, late = Early(), Notes()
    harness = Harness(early, late)
    controller = harness.open()
    for record in (early.steps, late.steps, leaders):
        record.clear()
    controller.elect_leaders()
    controller.run_until_idle()
    kinds = [(type(cause).__name__, [type(effect).__name__ for effect in effects]) for cause, effects in late.steps]
    assert kinds[0] == ("ElectionRequested", ["WriteStates"])
    assert kinds[1] == ("Done", ["Send"])
    assert kinds[2] == ("Done", ["Reply"])
    assert leaders[:2] == [2, 1], "observers see a step before it is performed"
    assert np.array_equal(late.steps[0][1][0].change.rows, [0])  # type: ignore[attr-defined]  # a WriteStates
    assert [cause for cause, _ in early.steps] == [cause for cause, _ in late.steps]
    controller.stop()


def test_observer_exceptions_are_counted_by_name(caplog: pytest.LogCaptureFixture) -> None:
    broken, after = Broken(), Notes()
    controller = Harness(broken, after).open()
    assert controller.status().active
    failures = controller.status().observer_failures
    assert failures == {"broken-one": len(broken.steps)}
    assert len(after.steps) == len(broken.steps) > 3
    metrics = controller.metrics()
    assert metrics['kframe_observer_failures_total{observer="broken-one"}'] == len(broken.steps)
    assert [
        record.getMessage().partition(" at ")[0] for record in caplog.records if record.name == "kframe.runtime"
    ] == ["observer broken-one failed on Reelect; further failures are only counted"]
    controller.stop()


def test_status_has_state_of_current_event() -> None:
    busy: list[ControllerState] = []

    class ReadingNotes(Notes):
        def stepped(self, cause: Event | EffectResult, effects: Sequence[Effect]) -> None:
            busy.append(controller.status().state)

    controller = Harness(ReadingNotes()).controller
    controller.open()
    assert controller.status().events_waiting == 1
    controller.run_until_idle()
    busy.clear()
    controller.elect_leaders()
    controller.run_until_idle()
    assert busy[0] is ControllerState.MANUAL_LEADER_BALANCE
    assert controller.status().state is ControllerState.IDLE
    controller.stop()


def test_inspect_reads_cluster_between_events(harness: Harness) -> None:
    def count_partitions(cluster: kframe.ClusterState | None) -> int:
        return -1 if cluster is None else len(cluster)

    assert harness.get(harness.controller.inspect(count_partitions)) == 3
    harness.ensemble.expire(harness.store)
    future = harness.controller.inspect(count_partitions)
    assert harness.get(future) == 3  # the controller is active again
    harness.controller.stop()
    assert harness.controller.inspect(count_partitions).result(timeout=0) == -1


def test_failed_inspection_does_not_affect_controller(harness: Harness) -> None:
    failed = harness.controller.inspect(lambda cluster: 1 // 0)
    harness.controller.run_until_idle()
    with pytest.raises(ZeroDivisionError):
        failed.result(timeout=0)
    assert harness.controller.status().active


def test_config_feature_and_producer_id_requests(harness: Harness) -> None:
    controller = harness.controller
    change = ConfigChange("a", ((ConfigOperation.SET, "retention.ms", "1"),))
    assert harness.get(controller.alter_configs([change])) == {"a": ErrorCode.NONE}
    assert harness.get(controller.inspect(lambda _: harness.store.perform(ReadConfigs("a")))) == {"retention.ms": "1"}
    assert harness.get(controller.alter_configs([ConfigChange("a", ())], replace=True)) == {"a": ErrorCode.NONE}
    assert harness.get(controller.inspect(lambda _: harness.store.perform(ReadConfigs("a")))) == {}
    assert harness.get(controller.update_features([FeatureUpdate("f", 1)])).codes == {"f": ErrorCode.INVALID_REQUEST}
    theirs = harness.get(controller.allocate_producer_ids(1, harness.broker_epoch(1)))
    ours = harness.get(controller.allocate_producer_ids(1000))
    assert (theirs.error, ours.error) == (ErrorCode.NONE, ErrorCode.NONE)
    assert ours.first == theirs.first + theirs.length
