"""The store contract, part 4: topics, their assignments, ids and settings, and watches on them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from kframe.errors import ControllerFenced
from kframe.model.arrays import Ragged
from kframe.model.changes import WriteCode
from kframe.model.events import BrokerDefaultsChanged, Event, TopicModified, TopicsChanged, TopicSettingsChanged
from kframe.model.ids import NO_STATE
from kframe.model.tables import TopicSettings, TopicTable, reassignment_flags
from kframe.model.topics import UNSET
from kframe.ports.store_requests import (
    AssignTopicIds,
    Claim,
    CreateTopics,
    DeleteTopics,
    Load,
    ReadConfigs,
    ReadDeletions,
    ReadStates,
    ReadTopicNames,
    ReadTopics,
    ReadTopicSettings,
    ReleaseRole,
    WriteAssignments,
    WriteConfigs,
)
from kframe.testing.clusters import described, small_table
from kframe.testing.store_fixture import (
    FIRST_ID,
    SECOND_ID,
    StorageFixture,
    StoreSuite,
    controller_of,
    end_role,
    opened,
    table_as_read,
)

UNCLEAN, MIN_INSYNC = "unclean.leader.election.enable", "min.insync.replicas"
OK, EXISTS, MISSING, STALE = WriteCode.OK, WriteCode.EXISTS, WriteCode.MISSING, WriteCode.STALE


class TopicsContract(StoreSuite):
    """Reading and writing topics."""

    def test_topics_are_read_by_name(self, storage: StorageFixture) -> None:
        store, _ = controller_of(storage)
        assert store.perform(ReadTopicNames()) == {"orders", "empty.topic", "leaving_topic"}
        table = store.perform(ReadTopics(("empty.topic", "nowhere", "orders")))
        assert table_as_read(table) == {
            "empty.topic": [((1, 2), (), ()), ((2, 1), (), ())],
            "orders": [((1, 2, 3), (), ()), ((2, 3, 4, 1), (2, 3), (1,)), ((3, 1), (), ())],
        }
        assert list(table_as_read(table)) == ["empty.topic", "orders"]
        assert len(store.perform(ReadTopics(()))) == 0

    def test_new_topics_are_stored_completely(self, storage: StorageFixture) -> None:
        store = opened(storage)
        table = small_table({"first": [(3, 1), (1, 9)], "second": [(2,)]})
        assert store.perform(CreateTopics(table, ({UNCLEAN: "true", MIN_INSYNC: "2"}, {}))) == (OK, OK)
        topics = store.perform(ReadTopics(("first", "second")))
        assert table_as_read(topics) == table_as_read(table)
        assert len({*topics.topic_ids, None}) == 3, "each has an id that no other has"
        assert store.perform(ReadTopicSettings(("first", "second"))) == (
            TopicSettings(1, 2),
            TopicSettings(UNSET, UNSET),
        )
        loaded = store.perform(Load())
        assert loaded.topics.find_id(topics.topic_ids[0] or b"") == loaded.topics.find("first")
        assert loaded.row("first", 1) is not None
        assert int(loaded.partitions.partition_epoch[loaded.row("first", 1) or 0]) == NO_STATE

    def test_new_topics_without_ids(self, storage: StorageFixture) -> None:
        store = opened(storage)
        table = replace(small_table({"named": [(1,)]}), topic_ids=(bytes(range(16)),))
        assert store.perform(CreateTopics(small_table({"bare": [(1, 2)]}), ({},), with_ids=False)) == (OK,)
        assert store.perform(CreateTopics(table, ({},), with_ids=False)) == (OK,)
        assert store.perform(ReadTopics(("bare", "named"))).topic_ids == (None, bytes(range(16)))
        loaded = store.perform(Load())
        assert not loaded.topics.ids[loaded.topics.find("bare")].any()

    def test_topic_that_exists_is_not_created_again(self, storage: StorageFixture) -> None:
        store = opened(storage)
        before = described(store.perform(Load()))
        table = small_table({"fresh": [(1,)], "orders": [(9,)], "other": [(2,)]})
        assert store.perform(CreateTopics(table, ({}, {UNCLEAN: "false"}, {}))) == (OK, EXISTS, OK)
        after = described(store.perform(Load()))
        assert {name: after[name] for name in before} == before
        assert after.keys() - before.keys() == {"fresh-0", "other-0"}
        assert store.perform(ReadTopicSettings(("orders",))) == (TopicSettings(1, 2),)

    def test_topic_watch_fires_once_until_read_rearms_it(self, storage: StorageFixture) -> None:
        notified: list[Event] = []
        store, _ = controller_of(storage, notified)
        other = opened(storage)
        for name in ("one", "two"):
            other.perform(CreateTopics(small_table({name: [(1,)]}), ({},)))
        storage.settle()
        assert notified == [TopicsChanged()]
        assert store.perform(ReadTopicNames()) >= {"one", "two"}
        store.perform(DeleteTopics(("one",)))
        storage.settle()
        assert notified == [TopicsChanged(), TopicsChanged()]

    @pytest.mark.parametrize("arm", ["load", "read_topics"])
    def test_assignment_watch_fires_once_and_names_the_topic(self, storage: StorageFixture, arm: str) -> None:
        notified: list[Event] = []
        store, _ = controller_of(storage, notified)
        table = store.perform(ReadTopics(("orders",)))
        assert store.perform(WriteAssignments(table)) == (OK,)
        storage.settle()
        assert notified == []
        storage.drop_controller()
        other = opened(storage)
        other.perform(Claim(SECOND_ID))
        other.perform(Load())
        for expected in (1, 2):
            for _ in range(2):
                assert other.perform(WriteAssignments(table)) == (OK,)
            storage.settle()
            assert notified.count(TopicModified("orders")) == expected
            if arm == "load":
                store.perform(Load())
            else:
                store.perform(ReadTopics(("orders",)))

    def test_assignments_are_replaced_completely(self, storage: StorageFixture) -> None:
        store, cluster = controller_of(storage)
        before, ids = described(cluster), store.perform(ReadTopics(("orders",))).topic_ids
        replicas = Ragged.of([(3, 2, 1), (4, 2), (9, 3, 1), (1, 2)])
        flags = reassignment_flags(
            replicas, adding=Ragged.of([(), (), (9,), ()]), removing=Ragged.of([(), (), (3,), ()])
        )
        table = TopicTable(("orders",), ids, np.array([4], np.int32), replicas, flags)
        assert store.perform(WriteAssignments(table)) == (OK,)
        topics = store.perform(ReadTopics(("orders",)))
        assert (table_as_read(topics), topics.topic_ids) == (table_as_read(table), ids)
        after = described(store.perform(Load()))
        for number in range(3):
            for field in ("leader", "isr", "leader_epoch", "partition_epoch", "controller_epoch"):
                assert after[f"orders-{number}"][field] == before[f"orders-{number}"][field]
        assert (after["orders-3"]["replicas"], after["orders-3"]["leader"]) == ([1, 2], None)
        assert {name: topic for name, topic in after.items() if not name.startswith("orders")} == {
            name: topic for name, topic in before.items() if not name.startswith("orders")
        }

    def test_assignment_by_other_controller_is_stale_until_read(self, storage: StorageFixture) -> None:
        store, _ = controller_of(storage)
        topics = store.perform(ReadTopics(("orders", "empty.topic")))
        storage.drop_controller()
        other = opened(storage)
        other.perform(Claim(SECOND_ID))
        other.perform(Load())
        replacement = small_table({"orders": [(3,), (4,), (1,)]})
        assert other.perform(WriteAssignments(replacement)) == (OK,)
        other.perform(ReleaseRole())
        assert store.perform(Claim(FIRST_ID)) == 3
        assert store.perform(WriteAssignments(topics)) == (STALE, OK)
        assert table_as_read(store.perform(ReadTopics(("orders",)))) == table_as_read(replacement)
        assert store.perform(WriteAssignments(small_table({"nowhere": [(1,)], "orders": [(1,), (2,), (3,)]}))) == (
            MISSING,
            OK,
        )
        assert table_as_read(store.perform(ReadTopics(("orders",))))["orders"][0] == ((1,), (), ())

    def test_own_assignment_writes_are_not_stale(self, storage: StorageFixture) -> None:
        store, _ = controller_of(storage)
        for first in (2, 1, 2):
            assert store.perform(WriteAssignments(small_table({"empty.topic": [(first, 3), (2, 1)]}))) == (OK,)

    def test_assigned_topic_ids_are_stored(self, storage: StorageFixture) -> None:
        store, _ = controller_of(storage)
        names = ("orders", "empty.topic")
        ids = store.perform(AssignTopicIds(names))
        assert [len(topic_id) for topic_id in ids] == [16, 16]
        assert len({*ids, bytes(16)}) == 3
        assert store.perform(ReadTopics(names)).topic_ids == ids
        loaded = store.perform(Load()).topics
        assert [loaded.find_id(topic_id) for topic_id in ids] == [loaded.find(name) for name in names]
        assert store.perform(AssignTopicIds(())) == ()

    def test_settings_are_limited_to_controller_keys(self, storage: StorageFixture) -> None:
        store, _ = controller_of(storage)
        expected = (TopicSettings(0, 1), TopicSettings(1, 2), TopicSettings(UNSET, UNSET))
        assert store.perform(ReadTopicSettings(("leaving_topic", "orders", "empty.topic"))) == expected

    def test_settings_change_event_names_topic(self, storage: StorageFixture) -> None:
        notified: list[Event] = []
        store, _ = controller_of(storage, notified)
        storage.configure_topic("empty.topic", {UNCLEAN: "true"})
        storage.configure_topic("orders", {MIN_INSYNC: "3"})
        storage.settle()
        assert notified == [TopicSettingsChanged("empty.topic"), TopicSettingsChanged("orders")]
        expected = (TopicSettings(1, UNSET), TopicSettings(1, 3))
        assert store.perform(ReadTopicSettings(("empty.topic", "orders"))) == expected
        loaded = store.perform(Load()).topics
        assert loaded.unclean[loaded.find("empty.topic") or 0] == 1

    def test_all_settings_are_replaced_and_notified(self, storage: StorageFixture) -> None:
        notified: list[Event] = []
        store, _ = controller_of(storage, notified)
        assert dict(store.perform(ReadConfigs("orders"))) == {UNCLEAN: "true", MIN_INSYNC: "2"}
        assert (dict(store.perform(ReadConfigs("empty.topic"))), dict(store.perform(ReadConfigs(None)))) == ({}, {})
        other = opened(storage)
        other.perform(WriteConfigs("orders", {"retention.ms": "5", UNCLEAN: "false"}))
        store.perform(WriteConfigs(None, {MIN_INSYNC: "2"}))
        store.perform(WriteConfigs("empty.topic", {}))
        storage.settle()
        assert notified == [
            TopicSettingsChanged("orders"),
            BrokerDefaultsChanged(),
            TopicSettingsChanged("empty.topic"),
        ]
        assert dict(store.perform(ReadConfigs("orders"))) == {"retention.ms": "5", UNCLEAN: "false"}
        assert dict(other.perform(ReadConfigs(None))) == {MIN_INSYNC: "2"}
        assert store.perform(ReadTopicSettings(("orders", "empty.topic"))) == (
            TopicSettings(0, UNSET),
            TopicSettings(UNSET, UNSET),
        )

    def test_assignment_with_fewer_partitions_drops_states(self, storage: StorageFixture) -> None:
        store, _ = controller_of(storage)
        assert store.perform(WriteAssignments(small_table({"empty.topic": [(1, 2)]}))) == (OK,)
        assert table_as_read(store.perform(ReadTopics(("empty.topic",)))) == {"empty.topic": [((1, 2), (), ())]}

    def test_deleted_topic_removes_states_settings_and_mark(self, storage: StorageFixture) -> None:
        store, cluster = controller_of(storage)
        (old_id,) = store.perform(AssignTopicIds(("orders",)))
        store.perform(DeleteTopics(("leaving_topic", "orders")))
        assert store.perform(ReadTopicNames()) == {"empty.topic"}
        assert store.perform(ReadDeletions()) == frozenset()
        assert set(described(store.perform(Load()))) == {"empty.topic-0", "empty.topic-1"}
        assert not store.perform(ReadStates(cluster, np.arange(3, dtype=np.int32))).exists.any()
        store.perform(DeleteTopics(("orders", "nowhere")))
        assert store.perform(CreateTopics(small_table({"orders": [(1, 2)]}), ({},))) == (OK,)
        recreated = store.perform(ReadTopics(("orders",)))
        assert recreated.topic_ids[0] not in (None, old_id)
        assert described(store.perform(Load()))["orders-0"]["leader"] is None
        assert store.perform(ReadTopicSettings(("orders",))) == (TopicSettings(UNSET, UNSET),)

    @pytest.mark.parametrize("end", ["release", "expire", "drop"])
    def test_deposed_controller_writes_no_topics(self, storage: StorageFixture, end: str) -> None:
        first, second = opened(storage), opened(storage)
        first.perform(Claim(FIRST_ID))
        first.perform(Load())
        end_role(storage, first, end)
        assert second.perform(Claim(SECOND_ID)) == 2
        before = described(second.perform(Load()))
        for write in (
            lambda: first.perform(WriteAssignments(small_table({"orders": [(9,), (9,), (9,)]}))),
            lambda: first.perform(AssignTopicIds(("orders",))),
            lambda: first.perform(DeleteTopics(("orders",))),
        ):
            with pytest.raises(ControllerFenced):
                write()
        assert described(second.perform(Load())) == before
        assert second.perform(ReadTopics(("orders",))).topic_ids == (None,)
