"""The controller as a whole: one event at a time, storage before brokers, and loss of the controller role."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from kframe.embedded import Api
from kframe.errors import BrokenInvariant, KframeError, StoreError
from kframe.model.arrays import Int32
from kframe.model.cluster import ClusterState
from kframe.model.effects import Effect, Resigned, Send
from kframe.model.events import (
    BrokerModified,
    BrokersChanged,
    ControlledShutdownRequested,
    ControllerChanged,
    Done,
    ElectionRequested,
    ElectionType,
    Event,
    RebalanceLeaders,
    Reelect,
    ResignRequested,
    SessionExpired,
)
from kframe.model.ids import NO_BROKER_EPOCH, PartitionState
from kframe.ports.store_requests import Claim, Load, Prepare, ReadBrokers, ReadController, WriteStates
from kframe.testing.clusters import PartitionSpec, cluster_of, healthy
from tests.cluster_strategies import clusters
from tests.core.driver import CONTROLLER_ID, Driver, active, kinds, state_of


def usurp(driver: Driver) -> None:
    """Give the controller role to another controller."""
    driver.ensemble.drop_controller()
    rival = driver.connect()
    assert rival.perform(Claim(7)) is not None


# -- failover


def test_failover_follows_kafkas_order() -> None:
    """controller 3.2: step 3, step 4, step 6, step 7.
    state-machines 3.5: startup.
    state-machines 2.4: startup comes after that of the replicas.

    The controller sends the registered brokers to all brokers, then all states to online replicas. It then removes
    dead replicas from ISRs, and elects missing leaders.
    """
    driver = Driver(
        cluster_of({"t": [healthy(1, 2), PartitionSpec((9, 2), 9, (9, 2)), PartitionSpec((3,))]}, (1, 2, 3))
    )
    driver.handle(Reelect())
    assert kinds(driver.effects) == [
        "ReadController",
        "Claim",
        "Prepare",
        "Load",
        "OpenChannels",
        "AssignTopicIds",
        "ReadDeletions",
        "Send",
        "Send",
        "WriteStates",
        "Send",
        "WriteStates",
        "WriteStates",
        "Send",
        "ReadReassignments",
        "ReadPreferredElection",
        "SetTimer",
    ]
    brokers_announced, states_sent, isrs_shrunk, elected = driver.batches
    assert [(request["api"], request["broker"], request["partitions"]) for request in brokers_announced] == [
        (Api.UPDATE_METADATA, broker, {}) for broker in (1, 2, 3)
    ]
    recipients = [request for request in states_sent if request["api"] == Api.LEADER_AND_ISR]
    assert [(request["broker"], *request["partitions"]) for request in recipients] == [(1, "t-0"), (2, "t-0", "t-1")]
    assert [(request["api"], *request["partitions"]) for request in isrs_shrunk if request["broker"] == 2] == [
        (Api.LEADER_AND_ISR, "t-1"),
        (Api.UPDATE_METADATA, "t-1"),
    ]
    assert {name for request in elected for name in request["partitions"]} == {"t-1", "t-2"}
    assert state_of(driver.stored("t-1")) == (2, (2,), 2)


def test_failover_clears_shutting_down_brokers_and_offline_log_dirs() -> None:
    """controller 3.3: the set of brokers that shut down is cleared, and so are offline log directories."""
    driver = active(healthy(1, 2))
    driver.handle(ControlledShutdownRequested(1, NO_BROKER_EPOCH))
    assert driver.cluster.brokers.shutting_down.any()
    driver.handle(ResignRequested())
    driver.handle(Reelect())
    assert driver.controller.controller_epoch == 5
    assert not driver.cluster.brokers.shutting_down.any()


# -- order of effects


class Witness(Driver):
    """A driver that compares every sent LeaderAndIsr state with storage."""

    def watch(self, sends: int) -> None:
        for _ in range(sends):
            self.before(Send, self._compare)

    def _compare(self) -> None:
        send = self.effects[-1]
        assert isinstance(send, Send)
        rows: Int32 = send.requests.leader_and_isr.rows
        for row in set(rows.tolist()):
            view = self.cluster.view(row)
            stored = self.ensemble.states.cluster[view.topic, view.partition]
            assert (*state_of(view), view.partition_epoch, view.recovery) == (
                *state_of(stored),
                stored.partition_epoch,
                stored.recovery,
            )


@given(cluster=clusters(), data=st.data())
def test_brokers_receive_stored_states(cluster: ClusterState, data: st.DataObject) -> None:
    """state-machines 4: storage before brokers."""
    cluster.brokers.shutting_down[:] = 0
    cluster.partitions.replica_status[:] = 0
    assume((cluster.partitions.topic >= 0).all())
    driver = Witness(cluster)
    driver.watch(sends=20)
    driver.handle(Reelect())
    driver.watch(sends=20)
    registered = cluster.brokers.registered_ids()
    lost = data.draw(st.sets(st.sampled_from(registered))) if registered else set()
    driver.fail_brokers(*lost)
    assert driver.controller.active
    for send in (effect for effect in driver.effects if isinstance(effect, Send)):
        for table in (send.requests.leader_and_isr, send.requests.stop_replica):
            for _, part in table.slices():
                rows = table.rows[part].tolist()
                assert rows == sorted(set(rows))


# -- brokers


def test_unchanged_registrations_have_no_effect() -> None:
    driver = active(healthy(1, 2))
    driver.handle(BrokersChanged())
    driver.handle(BrokerModified(1))
    driver.handle(BrokerModified(99))
    assert kinds(driver.effects) == ["ReadBrokers"] * 3


# -- the controller role


def test_standby_reads_id_of_active_controller() -> None:
    """controller 3.1: who finds a controller stops."""
    driver = Driver(cluster_of({"t": [healthy(1)]}, (1,)))
    rival = driver.connect()
    rival.perform(Claim(7))
    driver.handle(Reelect())
    assert kinds(driver.effects) == ["ReadController"]
    assert (driver.controller.active, driver.controller.active_controller) == (False, 7)


def test_lost_controller_election_is_not_a_failure() -> None:
    """controller 3.1: controller epoch and role are claimed in one."""
    driver = Driver(cluster_of({"t": [healthy(1)]}, (1,)))
    rival = driver.connect()
    driver.before(Claim, lambda: rival.perform(Claim(7)))
    driver.handle(Reelect())
    assert (driver.controller.active, driver.controller.active_controller) == (False, 7)


def test_election_event_does_not_affect_active_controller() -> None:
    driver = active(healthy(1))
    driver.handle(Reelect())
    assert kinds(driver.effects) == ["ReadController"]
    assert (driver.controller.active, driver.controller.active_controller) == (True, CONTROLLER_ID)


@pytest.mark.parametrize("event", [Reelect(), ControllerChanged()], ids=lambda event: type(event).__name__)
def test_controller_resigns_if_another_is_active(event: Event) -> None:
    """controller 3.4: maybeResign."""
    driver = active(healthy(1))
    usurp(driver)
    driver.handle(event)
    assert kinds(driver.effects) == ["ReadController", "Resigned"]
    assert (driver.controller.active, driver.controller.active_controller) == (False, 7)
    assert driver.store.perform(ReadController()).controller_id == 7


def test_controller_resigns_if_another_session_holds_role() -> None:
    driver = active(healthy(1))
    driver.ensemble.drop_controller()
    namesake = driver.connect()
    namesake.perform(Claim(CONTROLLER_ID))
    driver.handle(ControllerChanged())
    assert not driver.controller.active


def test_session_expiry_resigns_without_read() -> None:
    """controller 3.4: an expired session resigns unconditionally."""
    driver = active(healthy(1))
    driver.handle(SessionExpired())
    assert driver.effects == [Resigned("our session with storage expired", release=True)]
    assert (driver.controller.active, driver.controller.active_controller) == (False, -1)


def test_requested_resignation_releases_role() -> None:
    driver = active(healthy(1))
    driver.handle(ResignRequested())
    assert driver.effects == [Resigned("asked to resign", release=True)]
    assert driver.store.perform(ReadController()).controller_id == -1


@pytest.mark.parametrize("event", [SessionExpired(), ResignRequested()], ids=lambda event: type(event).__name__)
def test_inactive_controller_does_not_resign(event: Event) -> None:
    driver = Driver(cluster_of({}, (1,)))
    driver.handle(event)
    assert driver.effects == []


# -- failures


def test_fenced_controller_resigns_without_release() -> None:
    """controller 3.1: ControllerMoved anywhere.
    controller 3.5: controller epoch zk version.
    """
    driver = active(healthy(1, 2))
    driver.before(WriteStates, lambda: usurp(driver))
    driver.fail_brokers(1)
    last = driver.effects[-1]
    assert isinstance(last, Resigned)
    assert not last.release
    assert not driver.controller.active
    assert not driver.controller.busy
    assert driver.store.perform(ReadController()).controller_id == 7
    assert state_of(driver.stored("t-0")) == (1, (1, 2), 0)
    assert driver.batches == []


@pytest.mark.parametrize("error", [StoreError("down"), BrokenInvariant("no")], ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("kind", [ReadBrokers, WriteStates, Send], ids=lambda kind: kind.__name__)
def test_failed_effect_resigns_and_releases_role(
    kind: type[Effect], error: KframeError, caplog: pytest.LogCaptureFixture
) -> None:
    """controller 3.1: any other error.
    controller 3.4: triggerControllerMove.
    """
    driver = active(healthy(1, 2))
    driver.fail(kind, error)
    driver.fail_brokers(1)
    last = driver.effects[-1]
    assert last == Resigned(str(error), release=True)
    assert f"Error processing event BrokersChanged: {error}" in caplog.text
    assert not driver.controller.active
    assert driver.store.perform(ReadController()).controller_id == -1


@pytest.mark.parametrize("kind", [Prepare, Load], ids=lambda kind: kind.__name__)
def test_failure_during_failover_releases_role(kind: type[Effect]) -> None:
    driver = Driver(cluster_of({"t": [healthy(1)]}, (1,)))
    driver.fail(kind, StoreError("down"))
    driver.handle(Reelect())
    assert not driver.controller.active
    assert driver.store.perform(ReadController()).controller_id == -1
    assert isinstance(driver.effects[-1], Resigned)


@pytest.mark.parametrize("kind", [ReadController, Claim], ids=lambda kind: kind.__name__)
def test_failure_before_claim_does_not_resign(kind: type[Effect]) -> None:
    driver = Driver(cluster_of({"t": [healthy(1)]}, (1,)))
    driver.fail(kind, StoreError("down"))
    driver.handle(Reelect())
    assert not driver.controller.busy
    assert driver.performed(Resigned) == []
    driver.handle(Reelect())
    assert driver.controller.active


@pytest.mark.parametrize("fails, leader_epoch", [(WriteStates, 2), (Send, 1)], ids=["before the write", "behind it"])
def test_failover_after_failure_sends_no_earlier_requests(fails: type[Effect], leader_epoch: int) -> None:
    """state-machines 2.4: no poisoned batch after resignation. The first UpdateMetadata has no partitions."""
    driver = active(healthy(1, 2), healthy(2, 1))
    driver.fail(fails, StoreError("down"))
    driver.fail_brokers(1)
    driver.forget()
    driver.handle(Reelect())
    assert driver.controller.controller_epoch == 5
    assert [(request["api"], request["partitions"]) for request in driver.batches[0]] == [(Api.UPDATE_METADATA, {})] * 2
    assert state_of(driver.stored("t-0")) == (2, (2,), leader_epoch)
    assert driver.known("t-0").state is PartitionState.ONLINE
    assert {request["controller_epoch"] for batch in driver.batches for request in batch} == {5}


# -- inactive controllers, and misuse


@pytest.mark.parametrize(
    "event",
    [
        BrokersChanged(),
        BrokerModified(1),
        RebalanceLeaders(),
        ControlledShutdownRequested(1, NO_BROKER_EPOCH),
        ElectionRequested(ElectionType.PREFERRED, None),
    ],
    ids=lambda event: type(event).__name__,
)
def test_event_without_effect_is_ignored(event: Event) -> None:
    driver = Driver(cluster_of({"t": [healthy(1)]}, (1,)))
    driver.handle(event)
    assert driver.effects == []
    assert driver.controller.preempt(event) == []


def test_event_during_operation_raises() -> None:
    driver = active(healthy(1))
    (effect,) = driver.controller.step(BrokersChanged())
    assert isinstance(effect, ReadBrokers)
    assert driver.controller.busy
    with pytest.raises(BrokenInvariant, match="BrokersChanged received while busy"):
        driver.controller.step(BrokersChanged())
    assert driver.controller.step(Done(driver.store.perform(effect))) == []
    assert not driver.controller.busy


def test_active_controller_cannot_adopt_cluster() -> None:
    with pytest.raises(BrokenInvariant, match="cannot adopt"):
        active(healthy(1)).controller.adopt(ClusterState(), 9)
