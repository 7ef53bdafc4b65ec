"""Brokers register, fail and change (``controller.md`` section 6). The tests check the order of events, and the
requests to brokers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kframe.embedded import Api
from kframe.model.brokers import Endpoint, Registration
from kframe.model.effects import CloseChannels, OpenChannels
from kframe.model.events import BrokerModified
from kframe.model.ids import ReplicaState
from kframe.ports.store_requests import WriteStates
from kframe.testing.clusters import PartitionSpec, healthy, registration
from tests.core.driver import Driver, assigned, kinds, quiet
from tests.core.reassignments import store_reassignments


def metadata_sent(driver: Driver) -> list[tuple[int, list[str]]]:
    """Return (broker, partitions) of each UpdateMetadata."""
    return [(request["broker"], sorted(request["partitions"])) for request in driver.requests(Api.UPDATE_METADATA)]


def test_new_bounced_and_dead_brokers_in_order() -> None:
    """controller 6.1: new brokers come first, then the bounced, then the dead."""
    driver = quiet({"t": [healthy(1, 2, 3)]}, (1, 2, 3))
    driver.ensemble.bounce_brokers([2])
    driver.ensemble.unregister_brokers([3])
    driver.start_brokers(4)
    channels = [name for name in kinds(driver.effects) if name.endswith("Channels")]
    assert channels == ["OpenChannels", "CloseChannels", "OpenChannels", "CloseChannels"]
    brokers = driver.cluster.brokers
    channel_brokers = [
        brokers.ids_of(effect.brokers) for effect in driver.effects if isinstance(effect, OpenChannels | CloseChannels)
    ]
    assert channel_brokers == [[4], [2], [2], [3]]


def test_new_broker_receives_all_metadata_and_others_endpoints() -> None:
    """controller 6.2: the others learn that it is there. It receives every partition with a leader."""
    stateless, deleted = PartitionSpec((1,)), healthy(1, 4)
    driver = quiet({"t": [healthy(1, 4), stateless], "going": [deleted]}, (1, 2))
    driver.cluster.topics.deleting[1] = driver.cluster.topics.deletion_halted[1] = 1
    driver.start_brokers(4)
    assert metadata_sent(driver)[:3] == [(1, []), (2, []), (4, ["t-0"])]
    assert driver.recipients(Api.LEADER_AND_ISR, "t-0")[0] == 4


@pytest.mark.parametrize(
    ("topics", "dead", "settings", "prefetched"),
    [
        # t-0 is elected. The ISR changes of t-1 and t-2 can be prefetched. t-3 does not have 3 in its ISR.
        ([(3, 1), (1, 3), (2, 3, 1)], [3], {}, ["t-1", "t-2"]),
        # The election also applies to t-1. Each partition loses one replica in the first write.
        ([(2, 1), (3, 2, 1), (1, 2, 3), (1, 3)], [2, 3], {}, ["t-2", "t-3"]),
        # No partition is elected, so that nothing is prefetched.
        ([(1, 3), (2, 3)], [3], {}, None),
        # Leaders write ISRs themselves, so that the controller reads states first.
        ([(3, 1), (1, 3)], [3], {"inter_broker_protocol_version": "2.6"}, None),
        # No candidate is left, which needs no write.
        ([(3,), (1, 3)], [3], {}, None),
    ],
)
def test_isr_removals_are_pipelined_with_elections(
    topics: list[tuple[int, ...]], dead: list[int], settings: dict[str, object], prefetched: list[str] | None
) -> None:
    """ISR writes that no election can affect are prefetched behind the elections. Brokers are notified after the store
    answers."""
    left_before = PartitionSpec((1, 3), 1, (1,))
    driver = quiet({"t": [*(healthy(*replicas) for replicas in topics), left_before]}, (1, 2, 3), **settings)
    driver.fail_brokers(*dead)
    first = next(effect for effect in driver.effects if isinstance(effect, WriteStates))
    following = None if first.following is None else first.following.rows.tolist()
    assert following == (None if prefetched is None else driver.rows(*prefetched).tolist())
    assert not any(broker in driver.stored(f"t-{row}").isr for row in range(1, len(topics)) for broker in dead)


MOVED = (Endpoint("PLAINTEXT", "elsewhere", 1),)


@pytest.mark.parametrize(
    "change, recipients",
    [
        (lambda registration: replace(registration, endpoints=MOVED), [(1, []), (2, [])]),
        (lambda registration: replace(registration, rack="r"), []),
        (lambda registration: registration, []),
    ],
    ids=["endpoints", "rack", "nothing"],
)
def test_changed_endpoints_are_announced(change: object, recipients: list[tuple[int, list[str]]]) -> None:
    """controller 6.4: other endpoints are sent to all brokers. Another rack is not sent."""
    driver = quiet({"t": [healthy(1, 2)]}, (1, 2))
    current = next(registration for registration in driver.ensemble.registrations() if registration.broker_id == 2)
    assert callable(change)
    changed: Registration = change(current)
    driver.ensemble.unregister_brokers([2])
    driver.ensemble.register_brokers([changed])
    driver.handle(BrokerModified(2))
    assert metadata_sent(driver) == recipients
    assert driver.writes() == []


@pytest.mark.parametrize("broker_id", [3, 9], ids=["dead", "never seen"])
def test_modification_of_unknown_broker_is_ignored(broker_id: int) -> None:
    """controller 6.4: known and present, or nothing happens. kframe also ignores unknown brokers."""
    driver = quiet({"t": [healthy(1, 3)]}, (1, 2))
    driver.handle(BrokerModified(broker_id))
    assert kinds(driver.effects) == ["ReadBrokers"]


def test_broker_starts_when_registration_becomes_readable() -> None:
    """Kafka waits for the next broker that registers or fails."""
    driver = quiet({"t": [PartitionSpec((3, 1), 1, (1,))]}, (1, 2))
    driver.ensemble.register_brokers([registration(3)])
    driver.handle(BrokerModified(3))
    assert driver.cluster.brokers.registered_ids() == [1, 2, 3]
    assert list(driver.entries(Api.LEADER_AND_ISR, "t-0")) == [3]


def test_reassignment_stored_before_first_leader_completes() -> None:
    """Found by the simulator, seed 2054: the first ISR is the whole target. No leader proposes another ISR then. In
    Kafka the reassignment stays until the next failover: golden trace ``reassign-errors``."""
    driver = quiet({"t": [PartitionSpec((9,))]}, (2,), kframe_reassignment_strict=True)
    store_reassignments(driver, [(("t", 0), (3, 1))])
    assert assigned(driver.stored("t-0")) == ((3, 1, 9), (3, 1), (9,))
    driver.start_brokers(1, 3)
    assert assigned(driver.stored("t-0")) == ((3, 1), (), ())
    assert driver.known("t-0").replica_states == (ReplicaState.ONLINE, ReplicaState.ONLINE)


def test_reassignment_waits_for_first_leader_and_target_broker() -> None:
    """Found by the simulator, seeds 14167 and 28863: the broker is also in the target. The reassignment completed for
    the broker before the first election started. The controller did not know the new replicas. A failed replica stayed
    in the ISR, and received no LeaderAndIsr after its restart."""
    driver = quiet({"t": [PartitionSpec((9,))]}, (2,), kframe_reassignment_strict=True)
    store_reassignments(driver, [(("t", 0), (3, 1, 9))])
    driver.start_brokers(1, 3, 9)
    assert assigned(driver.stored("t-0")) == ((3, 1, 9), (), ())
    assert driver.known("t-0").replica_states == (ReplicaState.ONLINE,) * 3
    driver.fail_brokers(1)
    assert driver.stored("t-0").isr == (3, 9)
