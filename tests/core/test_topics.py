"""Topics and partitions are created, deleted and added. Topic ids and settings (``controller.md`` section 9)."""

from __future__ import annotations

import numpy as np
import pytest

from kframe.embedded import Api
from kframe.errors import ErrorCode, StoreError
from kframe.model.admin import NewPartitions, NewTopic
from kframe.model.arrays import Ragged
from kframe.model.events import (
    CreatePartitionsRequested,
    CreateTopicsRequested,
    TopicModified,
    TopicsChanged,
    TopicSettingsChanged,
)
from kframe.model.ids import PartitionState, ReplicaState
from kframe.model.tables import TopicTable, reassignment_flags
from kframe.ports.store_requests import (
    AssignTopicIds,
    CreateTopics,
    DeleteTopics,
    ReadTopics,
    WriteStates,
)
from kframe.testing.clusters import PartitionSpec, healthy, small_table
from tests.core.driver import Driver, assigned, elected, quiet, refusals, state_of

UNCLEAN = "unclean.leader.election.enable"


def create(driver: Driver, topics: dict[str, list[tuple[int, ...]]]) -> None:
    """Create topics as an admin tool does, and send the event to the controller."""
    driver.create_topics(topics)
    driver.follow()


def grow(driver: Driver, *added: tuple[int, ...]) -> None:
    """Store added partitions of ``t``."""
    table = driver.store.perform(ReadTopics(("t",)))
    addition = small_table({"t": added})
    counts = table.partition_counts + addition.partition_counts
    replicas, flags = Ragged.chain([table.replicas, addition.replicas]), np.append(table.flags, addition.flags)
    driver.write_topics(TopicTable(table.names, table.topic_ids, counts, replicas, flags))
    driver.follow()


# -- 9.1 and 9.2


def test_new_topics_come_online() -> None:
    """controller 9.1: new = topics minus allTopics; 9.2: the partitions get their first leaders."""
    driver = quiet({"t": [healthy(1)]}, (1, 2, 3))
    create(driver, {"new": [(1, 2), (2, 3)], "more": [(3,)]})
    assert state_of(driver.stored("new-0")) == (1, (1, 2), 0)
    assert state_of(driver.stored("new-1")) == (2, (2, 3), 0)
    assert state_of(driver.stored("more-0")) == (3, (3,), 0)
    assert {view.state for view in driver.cluster} == {PartitionState.ONLINE}
    recipients = driver.entries(Api.LEADER_AND_ISR, "new-0")
    assert {broker: entry["is_new"] for broker, entry in recipients.items()} == {1: True, 2: True}
    assert driver.recipients(Api.UPDATE_METADATA, "new-0") == [1, 2, 3]
    assert driver.recipients(Api.LEADER_AND_ISR, "t-0") == []


def test_offline_replicas_of_new_partitions_become_online() -> None:
    """controller 9.2: offline replicas also end Online in the replica map. They are not in the ISR."""
    driver = quiet({}, (2, 3))
    create(driver, {"new": [(1, 2)]})
    assert state_of(driver.stored("new-0")) == (2, (2,), 0)
    assert driver.known("new-0").replica_states == (ReplicaState.ONLINE, ReplicaState.ONLINE)


def test_new_partition_waits_for_online_replica() -> None:
    """controller 9.2: it stays New. It comes online when one of its brokers starts."""
    driver = quiet({}, (2, 3))
    create(driver, {"new": [(1, 9)], "led": [(2,)]})
    assert (driver.known("new-0").state, driver.stored("new-0").leader) == (PartitionState.NEW, None)
    assert driver.stored("led-0").leader == 2
    driver.start_brokers(9)
    assert state_of(driver.stored("new-0")) == (9, (9,), 0)


def test_new_partition_with_existing_state_is_adopted(caplog: pytest.LogCaptureFixture) -> None:
    """controller 9.2: it stays New, without a second try, up to the next failover. kframe stores its state again
    with a new leader epoch."""
    driver = quiet({}, (1, 2))
    driver.before(WriteStates, lambda: driver.ensemble.write_state("new", 0, leader=2, isr=(2,), leader_epoch=7))
    create(driver, {"new": [(1, 2)]})
    assert driver.known("new-0").state is PartitionState.ONLINE
    assert state_of(driver.stored("new-0")) == (2, (2,), 8)
    assert {entry["leader_epoch"] for entry in driver.entries(Api.LEADER_AND_ISR, "new-0").values()} == {8}
    assert any("storage has a state for it already" in line for line in refusals(caplog))


def test_topic_deleted_in_storage_is_removed_from_memory() -> None:
    """controller 9.1: a topic deleted by hand only disappears from memory, no StopReplica, no UpdateMetadata."""
    driver = quiet({"t": [healthy(1, 2)], "kept": [healthy(1, 2)]}, (1, 2))
    driver.store.perform(DeleteTopics(("t",)))
    driver.follow()
    assert [view.topic for view in driver.cluster] == ["kept"]
    assert (driver.batches, "t" in driver.cluster.topics) == ([], False)
    driver.ensemble.unregister_brokers([1])
    driver.follow()
    assert state_of(driver.stored("kept-0")) == (2, (2,), 1)


def test_topic_recreated_between_reads_is_unchanged() -> None:
    """controller 9.1: names alone are compared."""
    driver = quiet({"t": [healthy(1, 2)], "kept": [healthy(1)]}, (1, 2))
    driver.store.perform(DeleteTopics(("t",)))
    driver.create_topics({"u": [(2,)]})
    driver.follow()
    assert {view.topic for view in driver.cluster} == {"u", "kept"}


def test_topic_created_with_reassignment_is_reassigning() -> None:
    """controller 9.1: assignments come with adding and removing replicas."""
    driver = quiet({}, (1, 2, 3))
    replicas, adding, removing = (Ragged.of([[*lists]]) for lists in ((3, 1), (3,), (1,)))
    flags = reassignment_flags(replicas, adding, removing)
    table = TopicTable(("new",), (None,), np.array([1], np.int32), replicas, flags)
    driver.connect().perform(CreateTopics(table, ({},)))
    driver.follow()
    assert assigned(driver.known("new-0")) == ((3, 1), (3,), (1,))
    assert driver.cluster.partitions.reassigning_rows().tolist() == [0]


# -- 9.3


def test_added_partitions_come_online() -> None:
    """controller 9.3: added = partitions with no cached assignment."""
    driver = quiet({"t": [healthy(1, 2)], "u": [healthy(2)]}, (1, 2, 3))
    grow(driver, (3, 1), (2, 3))
    assert [state_of(driver.stored(name)) for name in ("t-0", "t-1", "t-2")] == [
        (1, (1, 2), 0),
        (3, (3, 1), 0),
        (2, (2, 3), 0),
    ]
    assert driver.recipients(Api.LEADER_AND_ISR, "t-0") == []
    grow(driver, (1,))
    assert (driver.stored("t-3").leader, driver.cluster.topics.partition_count.tolist()) == (1, [4, 1])


@pytest.mark.parametrize("lists", [[(2, 1), (1, 2)], [(3, 9), (1,)]], ids=["order", "brokers"])
def test_changed_assignments_in_storage_have_no_effect(lists: list[tuple[int, ...]]) -> None:
    """controller 9.3: shrinking or editing existing partitions' replica lists has no effect on the controller."""
    driver = quiet({"t": [healthy(1, 2), healthy(2, 1)]}, (1, 2, 3))
    driver.write_topics(small_table({"t": lists}))
    assert driver.events == [TopicModified("t")]
    driver.follow()
    assert [driver.known(name).replicas for name in ("t-0", "t-1")] == [(1, 2), (2, 1)]
    assert (driver.batches, driver.writes()) == ([], [])


@pytest.mark.parametrize("name", ["nowhere", "gone"])
def test_modification_of_unknown_topic_is_ignored(name: str) -> None:
    """controller 9.3: unknown to storage, or to the controller."""
    driver = quiet({"gone": [healthy(1)], "t": [healthy(1)]}, (1,))
    driver.store.perform(DeleteTopics(("gone",)))
    driver.handle(TopicModified(name))
    assert (driver.batches, driver.writes()) == ([], [])


def test_create_partitions_keeps_concurrent_changes() -> None:
    """controller 9.3: CreatePartitions writes the whole topic. A concurrent change is not overwritten."""
    driver = quiet({"t": [healthy(1, 2)]}, (1, 2, 3))
    driver.write_topics(small_table({"t": [(1, 2), (3, 2)]}))
    response = driver.ask(CreatePartitionsRequested((NewPartitions("t", 2, ((2, 1),)),), 1_000, token=1))
    assert response.codes == {"t": ErrorCode.UNKNOWN_SERVER_ERROR}
    assert assigned(driver.stored("t-1")) == ((3, 2), (), ())
    assert driver.known("t-1").replicas == (3, 2)


# -- 9.4


def ids(driver: Driver) -> list[bool]:
    return [bool(topic_id.any()) for topic_id in driver.cluster.topics.ids]


@pytest.mark.parametrize("protocol, expected", [("2.7", False), ("2.8-IV0", True), ("3.9", True)])
def test_topics_get_ids_from_protocol_2_8(protocol: str, expected: bool) -> None:
    """controller 9.4: from inter-broker protocol 2.8 on, at failover and on TopicChange. Earlier versions have no
    ids."""
    driver = elected({"t": [healthy(1)], "u": [healthy(1)]}, [1], inter_broker_protocol_version=protocol)
    assert ids(driver) == [expected, expected]
    assert [topic_id is not None for topic_id in driver.store.perform(ReadTopics(("t", "u"))).topic_ids] == [
        expected,
        expected,
    ]
    assert len(driver.performed(AssignTopicIds)) == int(expected)


@pytest.mark.parametrize("protocol, expected", [("2.4", False), ("2.7", False), ("2.8-IV0", True), ("3.9", True)])
def test_created_topics_get_ids_from_protocol_2_8(protocol: str, expected: bool) -> None:
    """``AdminZkClient.createTopicWithAssignment``: brokers without topic ids in requests serve no fetch by id."""
    driver = quiet({}, (1,), inter_broker_protocol_version=protocol)
    driver.ask(CreateTopicsRequested((NewTopic("t", 1, 1),), 1_000, token=1))
    (stored,) = driver.store.perform(ReadTopics(("t",))).topic_ids
    assert (stored is not None) is expected
    assert ids(driver) == [expected]
    assert state_of(driver.stored("t-0")) == (1, (1,), 0)


def test_existing_topic_ids_are_retained() -> None:
    """controller 9.4: only topics lacking one get an id."""
    driver = quiet({}, (1,))
    driver.ask(CreateTopicsRequested((NewTopic("t", 1, 1),), 1_000, token=1))
    (topic_id,) = driver.store.perform(ReadTopics(("t",))).topic_ids
    assert topic_id is not None
    assert driver.cluster.topics.find_id(topic_id) == driver.cluster.topics.find("t")
    assert not driver.performed(AssignTopicIds)


@pytest.mark.parametrize("restored", [True, False])
@pytest.mark.parametrize("count", [2, 3], ids=["same partitions", "one more"])
def test_lost_topic_id_is_restored(restored: bool, count: int) -> None:
    """Other fields of the stored record remain (``docs/explanation/safety.md`` X5)."""
    driver = quiet({"t": [healthy(1), healthy(2)]}, (1, 2), kframe_topic_id_restore=restored)
    for cluster in (driver.cluster, driver.ensemble.states.cluster):
        cluster.topics.set_id(0, b"i" * 16)
    driver.write_topics(small_table({"t": [(1,), (2,), (1,)][:count]}))
    driver.forget_topic_id("t")
    driver.follow()
    table = driver.store.perform(ReadTopics(("t",)))
    assert table.topic_ids == ((b"i" * 16) if restored else None,)
    assert table.partition_counts.tolist() == [count]
    assert driver.cluster.topics.ids[0].tobytes() == b"i" * 16
    assert driver.known(f"t-{count - 1}").leader is not None


# -- settings


def stuck() -> Driver:
    """Topics ``t`` and ``u`` have one partition each whose only ISR member is dead."""
    spec = PartitionSpec((1, 2), None, (1,), leader_epoch=3)
    driver = quiet({"t": [spec, healthy(2)], "u": [spec]}, (2, 3))
    assert [driver.known(name).state for name in ("t-0", "u-0")] == [PartitionState.OFFLINE] * 2
    return driver


def test_enabling_unclean_election_of_topic_elects_leaders() -> None:
    """controller 2: TopicUncleanLeaderElectionEnable, trigger-online for the topic."""
    driver = stuck()
    driver.ensemble.configure_topic("t", {UNCLEAN: "true"})
    driver.follow()
    assert state_of(driver.stored("t-0")) == (2, (2,), 4)
    assert state_of(driver.stored("u-0")) == (-1, (1,), 3)
    assert state_of(driver.stored("t-1"))[2] == 0


@pytest.mark.parametrize("config", [{UNCLEAN: "false"}, {"min.insync.replicas": "2"}, {UNCLEAN: "perhaps"}])
def test_other_topic_settings_elect_no_leader(config: dict[str, str]) -> None:
    """controller 2: only a setting that allows it now."""
    driver = stuck()
    driver.ensemble.configure_topic("t", config)
    driver.follow()
    assert driver.writes() == []


def test_changed_unclean_setting_applies_to_later_elections() -> None:
    """elections 3: the topic's setting decides, also after a recent change."""
    driver = quiet({"t": [healthy(1, 2)], "u": [healthy(1, 2)]}, (1, 2, 3))
    for name in ("t", "u"):
        driver.ensemble.write_state(name, 0, isr=(1,))
    driver.cluster.partitions.isr_count[:] = 1
    driver.cluster.partitions.partition_epoch[:] = 1
    driver.ensemble.configure_topic("u", {UNCLEAN: "true"})
    driver.follow()
    driver.ensemble.unregister_brokers([1])
    driver.follow()
    assert [driver.stored(name).leader for name in ("t-0", "u-0")] == [-1, 2]


def test_settings_of_unknown_topic_are_ignored() -> None:
    """controller 2: a topic that the controller has not met."""
    driver = stuck()
    driver.handle(TopicSettingsChanged("nowhere"))
    assert driver.writes() == []


def test_storage_failure_during_topic_creation_resigns() -> None:
    """controller 3.5: any failure of a whole write ends the controller role. Brokers receive no request."""
    driver = quiet({}, (1,))
    driver.store.perform(CreateTopics(small_table({"new": [(1,)]}), ({},)))
    driver.fail(WriteStates, StoreError("lost"))
    driver.handle(TopicsChanged())
    assert not driver.controller.active
    assert driver.requests(Api.LEADER_AND_ISR) == []
