"""controller.log and state-change.log of a controller on an embedded store: Kafka's wording, bounded length."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping

import numpy as np
import pytest

from kframe.model import events
from kframe.model.admin import NewPartitions, NewTopic
from kframe.model.arrays import Ragged
from kframe.model.events import (
    AlterPartitionRequested,
    ControlledShutdownRequested,
    ControllerChanged,
    CreatePartitionsRequested,
    CreateTopicsRequested,
    DeleteTopicsRequested,
    ElectionRequested,
    ElectionType,
    ReassignmentRequested,
    RebalanceLeaders,
    Reelect,
    ResignRequested,
)
from kframe.model.log_entries import Message
from kframe.model.tables import RequestedPartitions, Targets
from kframe.ports.store_requests import Claim, ReleaseRole
from kframe.runtime import controller_log, state_change_log
from kframe.runtime.controller_log import EVENT_NAMES
from kframe.runtime.event_logs import CONTROLLER_LOGGER, EVENTS_PER_SECOND, LINES_PER_SECOND, STATE_CHANGE_LOGGER
from kframe.testing.clusters import cluster_of, healthy
from tests.core.driver import Driver, elected

PREFIX = "[Controller id=1000] "
CHANGED = "[Controller id=1000 epoch=1] "


@pytest.fixture(autouse=True)
def levels(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "kframe")


@pytest.fixture
def driver(caplog: pytest.LogCaptureFixture) -> Driver:
    """The active controller of t-0 and t-1, which are on brokers 1 and 2 and led by 1."""
    return start(2, caplog)


def start(partitions: int, caplog: pytest.LogCaptureFixture, brokers: tuple[int, ...] = (1, 2)) -> Driver:
    driver = elected({"t": [healthy(1, 2)] * partitions}, brokers)
    driver.follow()
    caplog.clear()
    return driver


def lines(caplog: pytest.LogCaptureFixture, logger: str) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == logger]


def controller_lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    """controller.log without the lines on finished events."""
    return [line for line in lines(caplog, CONTROLLER_LOGGER) if "] Processed " not in line]


def change_lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    """state-change.log without the lines on requests."""
    return [line.removeprefix(CHANGED) for line in lines(caplog, STATE_CHANGE_LOGGER) if "] Sending " not in line]


def state(leader: int, leader_epoch: int, isr: tuple[int, ...], partition_epoch: int) -> str:
    members = ", ".join(f"BrokerState(brokerId={broker}, brokerEpoch=-1)" for broker in isr)
    return (
        f"LeaderAndIsr(leader={leader}, leaderEpoch={leader_epoch}, isrWithBrokerEpoch=List({members}), "
        f"leaderRecoveryState=RECOVERED, partitionEpoch={partition_epoch})"
    )


def lose_broker(driver: Driver) -> None:
    driver.fail_brokers(1)


def create_topic(driver: Driver) -> None:
    topic = NewTopic("new", assignments=((0, (2, 1)),))
    driver.handle(CreateTopicsRequested((topic,), timeout_ms=1000, token=1))
    driver.follow()


def delete_topic(driver: Driver) -> None:
    driver.handle(DeleteTopicsRequested(("t",), timeout_ms=1000, token=2))
    driver.follow()


def bounce_broker(driver: Driver) -> None:
    driver.ensemble.unregister_brokers([2])
    driver.start_brokers(2)


def shut_down_broker(driver: Driver) -> None:
    driver.handle(ControlledShutdownRequested(1, -1, token=3))
    lose_broker(driver)


LOGGED_EVENTS: Mapping[str, tuple[Callable[[Driver], None], list[str]]] = {
    "failure": (lose_broker, [
        f"{PREFIX}Newly added brokers: , deleted brokers: 1, bounced brokers: , all live brokers: 2",
        f"{PREFIX}Broker failure callback for 1",
        f"{PREFIX}Updated broker epochs cache: Map(2 -> EPOCH)",
    ]),
    "bounce": (bounce_broker, [
        f"{PREFIX}Newly added brokers: , deleted brokers: , bounced brokers: 2, all live brokers: 1,2",
        f"{PREFIX}Broker failure callback for 2",
        f"{PREFIX}New broker startup callback for 2",
        f"{PREFIX}Updated broker epochs cache: Map(1 -> EPOCH, 2 -> EPOCH)",
    ]),
    "shutdown": (shut_down_broker, [
        f"{PREFIX}Shutting down broker 1",
        f"{PREFIX}Newly added brokers: , deleted brokers: 1, bounced brokers: , all live brokers: 2",
        f"{PREFIX}Broker failure callback for 1",
        f"{PREFIX}Removed 1 from list of shutting down brokers.",
        f"{PREFIX}Updated broker epochs cache: Map(2 -> EPOCH)",
    ]),
    "topic created": (create_topic, [
        (f"{PREFIX}New topics: [Set(new)], deleted topics: [Set()], new partition replica assignment "
        "[Set(TopicIdReplicaAssignment(new,Some(ID),Map(new-0 -> "
                "ReplicaAssignment(replicas=2,1, addingReplicas=, removingReplicas=))))]"),
        f"{PREFIX}New partition creation callback for new-0",
    ]),
    "partitions added": (
        lambda driver: driver.handle(
            CreatePartitionsRequested((NewPartitions("t", 3, ((2, 1),)),), timeout_ms=1000, token=4)
        ),
        [
            (f"{PREFIX}New partitions to be added "
            "Map(t-2 -> ReplicaAssignment(replicas=2,1, addingReplicas=, removingReplicas=))"),
            f"{PREFIX}New partition creation callback for t-2",
        ],
    ),
    "topic deleted": (delete_topic, [
        f"{PREFIX}Starting topic deletion for topics t",
        "[Topic Deletion Manager 1000] Handling deletion for topics t",
        "[Topic Deletion Manager 1000] Deletion of topic t (re)started",
    ]),
    "election": (
        lambda driver: driver.handle(ElectionRequested(ElectionType.UNCLEAN, (("t", 0),), token=5)),
        [f"{PREFIX}Starting replica leader election (UNCLEAN) for partitions  triggered by AdminClientTriggered"],
    ),
    "rebalance": (
        lambda driver: driver.handle(RebalanceLeaders()),
        [f"{PREFIX}Processing automatic preferred replica leader election"],
    ),
    "resignation": (lambda driver: driver.handle(ResignRequested()), [f"{PREFIX}Resigned: asked to resign"]),
}  # fmt: skip


def without_epochs(text: str) -> str:
    """Broker epochs count the store's transactions."""
    return re.sub(r"Some\([-\w]{22}\)", "Some(ID)", re.sub(r"(\d+ -> )\d+", r"\1EPOCH", text))


@pytest.mark.parametrize("name", LOGGED_EVENTS)
def test_events_are_logged_with_kafkas_messages(driver: Driver, caplog: pytest.LogCaptureFixture, name: str) -> None:
    trigger, expected = LOGGED_EVENTS[name]
    trigger(driver)
    assert [without_epochs(line) for line in controller_lines(caplog)] == expected


def test_failover_logs_the_cluster(caplog: pytest.LogCaptureFixture) -> None:
    driver = Driver(cluster_of({"t": [healthy(1, 2)]}, (1, 2)), controller_epoch=7)
    driver.handle(Reelect())
    assert [without_epochs(line) for line in controller_lines(caplog)] == [
        f"{PREFIX}1000 successfully elected as the controller. Epoch incremented to 7",
        f"{PREFIX}Initialized broker epochs cache: Map(1 -> EPOCH, 2 -> EPOCH)",
        f"{PREFIX}Currently active brokers in the cluster: Set(1, 2)",
        f"{PREFIX}Current list of topics in the cluster: Set(t)",
        f"{PREFIX}List of topics to be deleted: ",
        f"{PREFIX}List of topics ineligible for deletion: ",
        f"{PREFIX}Sending update metadata request",
        "[ReplicaStateMachine controllerId=1000] Initializing replica state",
        "[ReplicaStateMachine controllerId=1000] Triggering online replica state changes",
        "[ReplicaStateMachine controllerId=1000] Triggering offline replica state changes",
        "[PartitionStateMachine controllerId=1000] Initializing partition state",
        "[PartitionStateMachine controllerId=1000] Triggering online partition state changes",
        f"{PREFIX}Ready to serve as the new controller with epoch 7",
    ]


def test_broker_failure_logs_new_state_of_each_partition(driver: Driver, caplog: pytest.LogCaptureFixture) -> None:
    lose_broker(driver)
    removed = "LeaderEpoch:1,ZkVersion:1,ControllerEpoch:1) after removing replica 1 from the ISR as part of transition"
    assert change_lines(caplog) == [
        f"Changed partition t-0 from OfflinePartition to OnlinePartition with state {state(2, 1, (2,), 1)}",
        f"Changed partition t-1 from OfflinePartition to OnlinePartition with state {state(2, 1, (2,), 1)}",
        f"Partition t-0 state changed to (Leader:2,ISR:2,LeaderRecoveryState:RECOVERED,{removed} to OfflineReplica",
        f"Partition t-1 state changed to (Leader:2,ISR:2,LeaderRecoveryState:RECOVERED,{removed} to OfflineReplica",
    ]


def test_topic_creation_logs_transitions_and_requests(driver: Driver, caplog: pytest.LogCaptureFixture) -> None:
    create_topic(driver)
    new = state(2, 0, (2, 1), 0)
    assert [line.removeprefix(CHANGED) for line in lines(caplog, STATE_CHANGE_LOGGER)] == [
        "Changed partition new-0 state from NonExistentPartition to NewPartition with assigned replicas 2,1",
        f"Changed partition new-0 from NewPartition to OnlinePartition with state {new}",
        "Sending LeaderAndIsr request to broker 1 with 0 become-leader and 1 become-follower partitions",
        "Sending LeaderAndIsr request to broker 2 with 1 become-leader and 0 become-follower partitions",
        "Sending UpdateMetadata request to brokers Set(1, 2) for 1 partitions",
    ]


def test_partitions_that_stay_offline_are_errors(driver: Driver, caplog: pytest.LogCaptureFixture) -> None:
    driver.fail_brokers(1, 2)
    errors = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert [record.getMessage() for record in errors] == [
        f"{CHANGED}Controller 1000 epoch 1 failed to change state for partition t-{number} from OfflinePartition to "
        "OnlinePartition: no leader could be elected under OFFLINE"
        for number in (0, 1)
    ]


def test_reassignment_logs_assignment_and_epochs(caplog: pytest.LogCaptureFixture) -> None:
    driver = start(1, caplog, brokers=(1, 2, 3))
    driver.handle(ReassignmentRequested(Targets.of([(("t", 0), (1, 3))]), token=6))
    assignment = "ReplicaAssignment(replicas=1,3,2, addingReplicas=3, removingReplicas=2)"
    assert controller_lines(caplog) == [
        f"{PREFIX}Successfully updated assignment of partition t-0 to {assignment}",
        f"{PREFIX}Updated leader epoch for partition t-0 to 1, zkVersion=1",
    ]
    leadership = "(Leader:1,ISR:1,2,LeaderRecoveryState:RECOVERED,LeaderEpoch:1,ZkVersion:1,ControllerEpoch:1)"
    assert (
        f"Sent LeaderAndIsr request {leadership} with new replica assignment {assignment} to leader 1 for partition "
        "being reassigned t-0"
    ) in change_lines(caplog)


def test_isr_change_of_leader_is_logged(driver: Driver, caplog: pytest.LogCaptureFixture) -> None:
    brokers = driver.cluster.brokers
    epoch = int(brokers.broker_epoch[brokers.find(1)])
    for broker_id, broker_epoch in ((1, epoch), (1, epoch - 1), (9, 1)):
        driver.handle(
            AlterPartitionRequested(
                broker_id,
                broker_epoch,
                1,
                RequestedPartitions.of([("t", 0), ("t", 1)]),
                np.array([0, 9], np.int32),
                np.array([0, 0], np.int32),
                np.zeros(2, np.uint8),
                Ragged.of([[1], [1]]),
                token=100 * broker_id + broker_epoch,
            )
        )
    stale = f"stale broker epoch {epoch - 1} and local broker epoch {epoch}"
    assert sorted(controller_lines(caplog)) == [
        f"{PREFIX}ISR for partition t-0 updated to {state(1, 0, (1,), 1)}.",
        f"{PREFIX}Ignoring AlterPartition due to {stale} for broker 1",
        f"{PREFIX}Ignoring AlterPartition due to unknown broker 9",
        f"{PREFIX}Rejecting AlterPartition request from node 1 for t-1 because of NOT_CONTROLLER",
    ]


def test_standby_logs_each_controller_change_once(caplog: pytest.LogCaptureFixture) -> None:
    driver = Driver(cluster_of({}, (1, 2)))
    other = driver.connect()
    other.perform(Claim(1))
    for event in (Reelect(), Reelect(), ControllerChanged()):
        driver.handle(event)
    elected = "has been elected as the controller, so stopping the election process."
    assert controller_lines(caplog) == [f"{PREFIX}Broker 1 {elected}"]
    other.perform(ReleaseRole())
    driver.before(Claim, lambda: other.perform(Claim(2)))
    driver.handle(Reelect())
    driver.handle(ControllerChanged())
    assert controller_lines(caplog)[1:] == [f"{PREFIX}Broker 2 was elected as controller instead of broker 1000"]


def test_processed_event_is_logged_with_duration_and_size(driver: Driver, caplog: pytest.LogCaptureFixture) -> None:
    lose_broker(driver)
    driver.handle(ControlledShutdownRequested(2, -1, token=7))
    assert [line for line in lines(caplog, CONTROLLER_LOGGER) if "Processed" in line] == [
        (
            f"{PREFIX}Processed BrokerChange in 0.000 ms: 2 leaders elected, 2 replicas offline, "
            "0 partitions failed, 2 partition states written, 4 requests sent to 1 brokers "
            "(2 LeaderAndIsr, 2 UpdateMetadata, 0 StopReplica)"
        ),
        (
            f"{PREFIX}Processed ControlledShutdown from broker 2 in 0.000 ms: 0 leaders elected, 0 replicas "
            "offline, 2 partitions failed, 0 partition states written, 0 requests "
            "sent to 0 brokers (0 LeaderAndIsr, 0 UpdateMetadata, 0 StopReplica)"
        ),
    ]


def test_log_lines_per_event_type_are_rate_limited(driver: Driver, caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(EVENTS_PER_SECOND + 5):
        driver.handle(RebalanceLeaders())
    driver.clock.advance(1000)
    driver.handle(RebalanceLeaders())
    processed = [line for line in lines(caplog, CONTROLLER_LOGGER) if "Processed" in line]
    assert len(processed) == EVENTS_PER_SECOND + 1
    assert processed[-1].endswith("(5 lines on such events left out)")


def test_partitions_are_sampled_evenly_and_others_counted(caplog: pytest.LogCaptureFixture) -> None:
    partitions = LINES_PER_SECOND * 3
    driver = start(partitions, caplog)
    driver.clock.advance(1000)
    lose_broker(driver)
    changed = change_lines(caplog)
    assert len(lines(caplog, STATE_CHANGE_LOGGER)) <= LINES_PER_SECOND + 2
    for prefix, counted in (
        ("Changed partition", f"{partitions} partitions got a leader elected"),
        ("Partition t-", f"{partitions} partitions had a replica removed from their ISR"),
    ):
        written = [line for line in changed if line.startswith(prefix)]
        assert LINES_PER_SECOND // 2 - 10 <= len(written) <= LINES_PER_SECOND // 2
        omitted = partitions - len(written)
        assert f"{counted}: {omitted} of them are left out of this log" in changed
        numbers = [int(line.split("t-")[1].split(" ")[0]) for line in written]
        assert max(np.diff(numbers)) - min(np.diff(numbers)) <= 4


def test_every_message_has_one_template_and_every_event_a_name() -> None:
    named = [*controller_log.TEMPLATES, *state_change_log.TEMPLATES]
    assert sorted(named, key=lambda message: message.value) == list(Message)
    kinds = {kind for kind in vars(events).values() if isinstance(kind, type) and issubclass(kind, events.Event)}
    assert EVENT_NAMES.keys() == kinds - {events.Event, events.BrokerResponse, events.PartitionsResponse}
