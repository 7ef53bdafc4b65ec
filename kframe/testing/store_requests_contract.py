"""The store contract, part 5: requests and notifications that operators and brokers write to storage."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from kframe.errors import ControllerFenced, StoreError
from kframe.model.events import (
    DeletionsMarked,
    Event,
    IsrChangesNotified,
    LogDirEventsNotified,
    PreferredElectionStored,
    ReassignmentsStored,
)
from kframe.model.tables import Targets
from kframe.ports.store import Store
from kframe.ports.store_requests import (
    AllocateProducerIds,
    Claim,
    CreateTopics,
    DropDeletions,
    DropNotifications,
    DropPreferredElection,
    Load,
    Prepare,
    QueueDeletions,
    ReadDeletions,
    ReadIsrChanges,
    ReadLogDirEvents,
    ReadPreferredElection,
    ReadReassignments,
    ReadTopicNames,
    ReadTopics,
    ReadTopicSettings,
    ReleaseRole,
    StoreRead,
    StoreRequest,
    WriteAssignments,
    WriteReassignments,
)
from kframe.testing.clusters import small_table
from kframe.testing.store_fixture import (
    FIRST_ID,
    SECOND_ID,
    StorageFixture,
    StoreSuite,
    controller_of,
    end_role,
    opened,
)

#: Two writes of notifications, their event, and the request that reads them and rearms the watch.
NOTIFICATIONS: list[
    tuple[Callable[[StorageFixture], None], Callable[[StorageFixture], None], Event, StoreRead[Any]]
] = [
    (
        lambda storage: storage.mark_for_deletion(["orders"]),
        lambda storage: storage.mark_for_deletion(["empty.topic"]),
        DeletionsMarked(),
        ReadDeletions(),
    ),
    (
        lambda storage: storage.notify_isr_changes([("orders", 1)]),
        lambda storage: storage.notify_isr_changes([("orders", 0)]),
        IsrChangesNotified(),
        ReadIsrChanges(),
    ),
    (
        lambda storage: storage.notify_log_dir_event(2),
        lambda storage: storage.notify_log_dir_event(2),
        LogDirEventsNotified(),
        ReadLogDirEvents(),
    ),
]
IDS = ["deletions", "isr changes", "log dir events"]
#: The writes that are reserved for the controller, on a storage with content for each of them.
FENCED: list[Callable[[Store], None]] = [
    lambda store: store.perform(DropDeletions(("leaving_topic",))),
    lambda store: store.perform(WriteReassignments(Targets.of([]))),
    lambda store: store.perform(WriteReassignments(Targets.of([(("orders", 1), (9,))]))),
    lambda store: store.perform(DropPreferredElection()),
    lambda store: store.perform(DropNotifications(store.perform(ReadIsrChanges()).paths)),
]


def targets_by_partition(targets: Targets | None) -> dict[tuple[str, int], tuple[int, ...]] | None:
    """Target replicas by partition."""
    if targets is None:
        return None
    names = [
        (targets.names[topic], int(number)) for topic, number in zip(targets.topic, targets.partition, strict=True)
    ]
    return {name: tuple(targets.replicas[i].tolist()) for i, name in enumerate(names)}


class RequestsContract(StoreSuite):
    """Marks for deletion, reassignments, preferred elections, notifications, producer ids."""

    @pytest.mark.parametrize(("first_write", "second_write", "event", "read"), NOTIFICATIONS, ids=IDS)
    def test_request_watch_fires_once_until_read_rearms_it(
        self,
        storage: StorageFixture,
        first_write: Callable[[StorageFixture], None],
        second_write: Callable[[StorageFixture], None],
        event: Event,
        read: StoreRead[Any],
    ) -> None:
        notified: list[Event] = []
        store, _ = controller_of(storage, notified)
        store.perform(read)
        first_write(storage)
        second_write(storage)
        storage.settle()
        assert notified == [event]
        store.perform(read)
        notified.clear()
        storage.notify_isr_changes([("orders", 0)])
        storage.notify_log_dir_event(1)
        storage.mark_for_deletion(["elsewhere"])
        storage.settle()
        assert notified.count(event) == 1

    # -- marks for deletion

    def test_delete_markers_are_added_and_removed(self, storage: StorageFixture) -> None:
        store, _ = controller_of(storage)
        names = store.perform(ReadTopicNames())
        assert store.perform(ReadDeletions()) == {"leaving_topic"}
        store.perform(QueueDeletions(("orders", "leaving_topic")))
        store.perform(QueueDeletions(("orders", "nowhere")))
        assert store.perform(ReadDeletions()) == {"leaving_topic", "nowhere", "orders"}
        store.perform(DropDeletions(("orders", "nowhere", "never")))
        assert store.perform(ReadDeletions()) == {"leaving_topic"}
        assert store.perform(ReadTopicNames()) == names

    def test_any_client_may_add_delete_markers(self, storage: StorageFixture) -> None:
        notified: list[Event] = []
        store, _ = controller_of(storage, notified)
        store.perform(ReadDeletions())
        opened(storage).perform(QueueDeletions(("orders",)))
        storage.settle()
        assert notified == [DeletionsMarked()]

    # -- reassignments

    def test_reassignments_are_read_as_written(self, storage: StorageFixture) -> None:
        notified: list[Event] = []
        store, _ = controller_of(storage, notified)
        assert store.perform(ReadReassignments()) is None
        targets = {("orders", 2): (3, 9), ("nowhere", 7): (1,), ("orders", 0): (2, 1, 3)}
        storage.request_reassignments(Targets.of(list(targets.items())))
        storage.settle()
        assert notified == [ReassignmentsStored()]
        stored = store.perform(ReadReassignments())
        assert targets_by_partition(stored) == targets
        assert stored is not None
        assert not stored.cancel.any()

    def test_reassignments_are_replaced_and_removed_when_empty(self, storage: StorageFixture) -> None:
        notified: list[Event] = []
        store, _ = controller_of(storage, notified)
        storage.request_reassignments(Targets.of([(("orders", 2), (3,)), (("orders", 0), (1,))]))
        stored = store.perform(ReadReassignments())
        assert stored is not None
        store.perform(WriteReassignments(stored.take(np.array([1]))))
        assert targets_by_partition(store.perform(ReadReassignments())) == {("orders", 0): (1,)}
        store.perform(WriteReassignments(Targets.of([])))
        assert store.perform(ReadReassignments()) is None
        store.perform(WriteReassignments(Targets.of([])))
        storage.settle()
        notified.clear()
        storage.request_reassignments(Targets.of([(("orders", 1), (2,))]))
        storage.settle()
        assert notified == [ReassignmentsStored()]

    # -- preferred elections

    def test_preferred_election_is_read_and_removed(self, storage: StorageFixture) -> None:
        notified: list[Event] = []
        store, _ = controller_of(storage, notified)
        for partitions in ((("orders", 0), ("nowhere", 3)), ()):
            assert store.perform(ReadPreferredElection()) is None
            storage.request_preferred_election(partitions)
            storage.settle()
            assert notified == [PreferredElectionStored()]
            assert store.perform(ReadPreferredElection()) == partitions
            store.perform(DropPreferredElection())
            store.perform(DropPreferredElection())
            assert store.perform(ReadPreferredElection()) is None
            storage.settle()
            notified.clear()

    # -- notifications

    def test_notifications_are_read_at_once_and_removed_by_path(self, storage: StorageFixture) -> None:
        store, _ = controller_of(storage)
        storage.notify_isr_changes([("orders", 1), ("empty.topic", 0)])
        storage.notify_isr_changes([("orders", 0)])
        storage.notify_log_dir_event(3)
        changes, events = store.perform(ReadIsrChanges()), store.perform(ReadLogDirEvents())
        assert changes.items == (("orders", 1), ("empty.topic", 0), ("orders", 0))
        assert (len(changes.paths), events.items, len(events.paths)) == (2, (3,), 1)
        storage.notify_isr_changes([("orders", 2)])
        store.perform(DropNotifications(changes.paths + events.paths))
        store.perform(DropNotifications(changes.paths))
        assert store.perform(ReadIsrChanges()).items == (("orders", 2),)
        assert store.perform(ReadLogDirEvents()) == type(events)((), ())

    def test_new_controller_finds_no_notifications(self, storage: StorageFixture) -> None:
        storage.notify_isr_changes([("orders", 1)])
        storage.notify_log_dir_event(3)
        store, _ = controller_of(storage)
        assert (store.perform(ReadIsrChanges()).items, store.perform(ReadLogDirEvents()).items) == ((), ())

    def test_notifications_since_prepare_are_notified_by_load(self, storage: StorageFixture) -> None:
        notified: list[Event] = []
        store = opened(storage, notified)
        store.perform(Claim(FIRST_ID))
        store.perform(Prepare())
        storage.notify_isr_changes([("orders", 1)])
        storage.notify_log_dir_event(3)
        store.perform(Load())
        storage.settle()
        assert {IsrChangesNotified(), LogDirEventsNotified()} <= set(notified)

    # -- producer ids

    def test_producer_id_blocks_are_consecutive(self, storage: StorageFixture) -> None:
        first, second = opened(storage), opened(storage)
        blocks = [store.perform(AllocateProducerIds(broker)) for store, broker in ((first, 1), (second, 1), (first, 2))]
        assert blocks == [0, 1000, 2000]

    # -- fencing and watches

    @pytest.mark.parametrize("end", ["release", "expire", "drop"])
    @pytest.mark.parametrize("write", FENCED, ids=range(len(FENCED)))
    def test_deposed_controller_removes_no_request(
        self, storage: StorageFixture, write: Callable[[Store], None], end: str
    ) -> None:
        first, second = opened(storage), opened(storage)
        first.perform(Claim(FIRST_ID))
        first.perform(Load())
        end_role(storage, first, end)
        assert second.perform(Claim(SECOND_ID)) == 2
        storage.request_reassignments(Targets.of([(("orders", 2), (3,))]))
        storage.request_preferred_election([("orders", 0)])
        storage.notify_isr_changes([("orders", 1)])
        with pytest.raises(ControllerFenced):
            write(first)
        assert second.perform(ReadDeletions()) == {"leaving_topic"}
        assert targets_by_partition(second.perform(ReadReassignments())) == {("orders", 2): (3,)}
        assert second.perform(ReadPreferredElection()) == (("orders", 0),)
        assert second.perform(ReadIsrChanges()).items == (("orders", 1),)

    def test_released_store_has_no_request_watches(self, storage: StorageFixture) -> None:
        notified: list[Event] = []
        store, _ = controller_of(storage, notified)
        requests: tuple[StoreRead[Any], ...] = ReadDeletions(), ReadReassignments(), ReadPreferredElection()
        for request in requests:
            store.perform(request)
        store.perform(ReleaseRole())
        storage.settle()
        notified.clear()
        storage.mark_for_deletion(["orders"])
        storage.request_reassignments(Targets.of([(("orders", 2), (3,))]))
        storage.request_preferred_election([("orders", 0)])
        storage.notify_isr_changes([("orders", 1)])
        storage.notify_log_dir_event(3)
        storage.configure_topic("orders", {"min.insync.replicas": "3"})
        opened(storage).perform(CreateTopics(small_table({"new": [(1,)]}), ({},)))
        storage.settle()
        assert notified == []

    def test_closed_store_refuses_request_calls(self, storage: StorageFixture) -> None:
        store = opened(storage)
        store.close()
        requests: tuple[StoreRequest[Any], ...] = (
            ReadTopicNames(),
            ReadDeletions(),
            ReadReassignments(),
            ReadPreferredElection(),
            ReadIsrChanges(),
            ReadLogDirEvents(),
            DropPreferredElection(),
            ReadTopics(("orders",)),
            ReadTopicSettings(("orders",)),
            CreateTopics(small_table({"new": [(1,)]}), ({},)),
            WriteAssignments(small_table({"orders": [(1,)]})),
            QueueDeletions(("orders",)),
            AllocateProducerIds(1),
        )
        for request in requests:
            with pytest.raises(StoreError):
                store.perform(request)
