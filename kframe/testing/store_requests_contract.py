"""The store contract, fifth part: what operators and brokers leave in storage for the controller to find."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from kframe.errors import ControllerFenced, StoreError
from kframe.model.events import (
    DeletionsMarked,
    Event,
    IsrChangesLeft,
    LogDirEventsLeft,
    PreferredElectionLeft,
    ReassignmentsLeft,
)
from kframe.model.ports import Store
from kframe.model.tables import Targets
from kframe.testing.clusters import small_table
from kframe.testing.store_world import ONE, TWO, StoreSuite, StoreWorld, controller_of, end_role, opened

#: What is left first and then again, the event that tells of it, and the call that reads it and watches for the next.
LEFT: list[tuple[Callable[[StoreWorld], None], Callable[[StoreWorld], None], Event, Callable[[Store], Any]]] = [
    (lambda world: world.mark_for_deletion(["orders"]), lambda world: world.mark_for_deletion(["empty.topic"]),
     DeletionsMarked(), lambda store: store.read_deletions()),
    (lambda world: world.notify_isr_changes([("orders", 1)]), lambda world: world.notify_isr_changes([("orders", 0)]),
     IsrChangesLeft(), lambda store: store.read_isr_changes()),
    (lambda world: world.notify_log_dir_event(2), lambda world: world.notify_log_dir_event(2),
     LogDirEventsLeft(), lambda store: store.read_log_dir_events()),
]  # fmt: skip
IDS = ["deletions", "isr changes", "log dir events"]
#: The writes that only the controller may do, on a storage where there is something to write.
FENCED: list[Callable[[Store], None]] = [
    lambda store: store.drop_deletions(("leaving_topic",)),
    lambda store: store.write_reassignments(Targets.of([])),
    lambda store: store.write_reassignments(Targets.of([(("orders", 1), (9,))])),
    lambda store: store.drop_preferred_election(),
    lambda store: store.drop_notifications(store.read_isr_changes().paths),
]


def as_wanted(targets: Targets | None) -> dict[tuple[str, int], tuple[int, ...]] | None:
    """Replicas wanted, by partition."""
    if targets is None:
        return None
    names = [
        (targets.names[topic], int(number)) for topic, number in zip(targets.topic, targets.partition, strict=True)
    ]
    return {name: tuple(targets.replicas[i].tolist()) for i, name in enumerate(names)}


class RequestsContract(StoreSuite):
    """Marks for deletion, reassignments, preferred elections, notifications, producer ids."""

    @pytest.mark.parametrize(("leave", "leave_again", "event", "read"), LEFT, ids=IDS)
    def test_watch_on_what_is_left_is_one_shot_and_reading_arms_it_again(
        self,
        world: StoreWorld,
        leave: Callable[[StoreWorld], None],
        leave_again: Callable[[StoreWorld], None],
        event: Event,
        read: Callable[[Store], Any],
    ) -> None:
        """Two are one event until they are read."""
        heard: list[Event] = []
        store, _ = controller_of(world, heard)
        read(store)
        leave(world)
        leave_again(world)
        world.settle()
        assert heard == [event]
        read(store)
        heard.clear()
        world.notify_isr_changes([("orders", 0)])
        world.notify_log_dir_event(1)
        world.mark_for_deletion(["elsewhere"])
        world.settle()
        assert heard.count(event) == 1

    # -- marks for deletion

    def test_marks_are_added_and_taken_away_one_by_one(self, world: StoreWorld) -> None:
        """Marking twice and taking away what is not there are no errors; the topics themselves stay."""
        store, _ = controller_of(world)
        names = store.read_topic_names()
        assert store.read_deletions() == {"leaving_topic"}
        store.queue_deletions(("orders", "leaving_topic"))
        store.queue_deletions(("orders", "nowhere"))
        assert store.read_deletions() == {"leaving_topic", "nowhere", "orders"}
        store.drop_deletions(("orders", "nowhere", "never"))
        assert store.read_deletions() == {"leaving_topic"}
        assert store.read_topic_names() == names

    def test_whoever_is_connected_may_mark(self, world: StoreWorld) -> None:
        """Any broker does that in Kafka (``spec/wire.md`` section 10): marks are not fenced."""
        heard: list[Event] = []
        store, _ = controller_of(world, heard)
        store.read_deletions()
        opened(world).queue_deletions(("orders",))
        world.settle()
        assert heard == [DeletionsMarked()]

    # -- reassignments

    def test_reassignments_are_read_as_they_were_left(self, world: StoreWorld) -> None:
        """Replicas in order, also of unknown partitions and brokers; None while nothing is left."""
        heard: list[Event] = []
        store, _ = controller_of(world, heard)
        assert store.read_reassignments() is None
        wanted = {("orders", 2): (3, 9), ("nowhere", 7): (1,), ("orders", 0): (2, 1, 3)}
        world.leave_reassignments(Targets.of(list(wanted.items())))
        world.settle()
        assert heard == [ReassignmentsLeft()]
        left = store.read_reassignments()
        assert as_wanted(left) == wanted
        assert left is not None
        assert not left.cancel.any()

    def test_reassignments_are_replaced_and_taken_away_once_there_are_none(self, world: StoreWorld) -> None:
        """What is left over stays; leaving again what was taken away is told."""
        heard: list[Event] = []
        store, _ = controller_of(world, heard)
        world.leave_reassignments(Targets.of([(("orders", 2), (3,)), (("orders", 0), (1,))]))
        left = store.read_reassignments()
        assert left is not None
        store.write_reassignments(left.take(np.array([1])))
        assert as_wanted(store.read_reassignments()) == {("orders", 0): (1,)}
        store.write_reassignments(Targets.of([]))
        assert store.read_reassignments() is None
        store.write_reassignments(Targets.of([]))
        world.settle()
        heard.clear()
        world.leave_reassignments(Targets.of([(("orders", 1), (2,))]))
        world.settle()
        assert heard == [ReassignmentsLeft()]

    def test_controller_may_leave_reassignments_itself(self, world: StoreWorld) -> None:
        """A later controller finds them."""
        store, _ = controller_of(world)
        store.write_reassignments(Targets.of([(("orders", 1), (2, 3))]))
        assert as_wanted(opened(world).read_reassignments()) == {("orders", 1): (2, 3)}

    # -- preferred elections

    def test_preferred_election_is_read_and_taken_away(self, world: StoreWorld) -> None:
        """Told of when it is created; taking away what is not there is no error."""
        heard: list[Event] = []
        store, _ = controller_of(world, heard)
        for wanted in ((("orders", 0), ("nowhere", 3)), ()):
            assert store.read_preferred_election() is None
            world.leave_preferred_election(wanted)
            world.settle()
            assert heard == [PreferredElectionLeft()]
            assert store.read_preferred_election() == wanted
            store.drop_preferred_election()
            store.drop_preferred_election()
            assert store.read_preferred_election() is None
            world.settle()
            heard.clear()

    # -- notifications

    def test_notifications_are_read_together_and_taken_away_by_path(self, world: StoreWorld) -> None:
        """In the order in which they were left; what comes after the read stays."""
        store, _ = controller_of(world)
        world.notify_isr_changes([("orders", 1), ("empty.topic", 0)])
        world.notify_isr_changes([("orders", 0)])
        world.notify_log_dir_event(3)
        changes, events = store.read_isr_changes(), store.read_log_dir_events()
        assert changes.items == (("orders", 1), ("empty.topic", 0), ("orders", 0))
        assert (len(changes.paths), events.items, len(events.paths)) == (2, (3,), 1)
        world.notify_isr_changes([("orders", 2)])
        store.drop_notifications(changes.paths + events.paths)
        store.drop_notifications(changes.paths)
        assert store.read_isr_changes().items == (("orders", 2),)
        assert store.read_log_dir_events() == type(events)((), ())

    def test_new_controller_finds_no_notifications(self, world: StoreWorld) -> None:
        """What was left before a failover is dropped: everything is read anyway."""
        world.notify_isr_changes([("orders", 1)])
        world.notify_log_dir_event(3)
        store, _ = controller_of(world)
        assert (store.read_isr_changes().items, store.read_log_dir_events().items) == ((), ())

    # -- producer ids

    def test_blocks_of_producer_ids_follow_each_other(self, world: StoreWorld) -> None:
        """A thousand ids each, never given twice, whoever asks."""
        first, second = opened(world), opened(world)
        given = [store.allocate_producer_ids(broker) for store, broker in ((first, 1), (second, 1), (first, 2))]
        assert given == [0, 1000, 2000]

    # -- who may, and who is told

    @pytest.mark.parametrize("end", ["release", "expire", "drop"])
    @pytest.mark.parametrize("write", FENCED, ids=range(len(FENCED)))
    def test_former_controller_takes_nothing_away(
        self, world: StoreWorld, write: Callable[[Store], None], end: str
    ) -> None:
        """The fence of ``spec/zookeeper.md`` section 5."""
        first, second = opened(world), opened(world)
        first.claim(ONE)
        first.load()
        end_role(world, first, end)
        assert second.claim(TWO) == 2
        world.leave_reassignments(Targets.of([(("orders", 2), (3,))]))
        world.leave_preferred_election([("orders", 0)])
        world.notify_isr_changes([("orders", 1)])
        with pytest.raises(ControllerFenced):
            write(first)
        assert second.read_deletions() == {"leaving_topic"}
        assert as_wanted(second.read_reassignments()) == {("orders", 2): (3,)}
        assert second.read_preferred_election() == (("orders", 0),)
        assert second.read_isr_changes().items == (("orders", 1),)

    def test_nothing_of_this_is_followed_after_release(self, world: StoreWorld) -> None:
        """A former controller is not told of topics, of what operators leave or of notifications."""
        heard: list[Event] = []
        store, _ = controller_of(world, heard)
        for read in (store.read_deletions, store.read_reassignments, store.read_preferred_election):
            read()
        store.release()
        world.settle()
        heard.clear()
        world.mark_for_deletion(["orders"])
        world.leave_reassignments(Targets.of([(("orders", 2), (3,))]))
        world.leave_preferred_election([("orders", 0)])
        world.notify_isr_changes([("orders", 1)])
        world.notify_log_dir_event(3)
        world.configure_topic("orders", {"min.insync.replicas": "3"})
        opened(world).create_topics(small_table({"new": [(1,)]}), ({},))
        world.settle()
        assert heard == []

    def test_closed_store_refuses_these_calls_too(self, world: StoreWorld) -> None:
        """A call on a closed store is a StoreError, not a wait."""
        store = opened(world)
        store.close()
        for call in (
            store.read_topic_names, store.read_deletions, store.read_reassignments, store.read_preferred_election,
            store.read_isr_changes, store.read_log_dir_events, store.drop_preferred_election,
            lambda: store.read_topics(("orders",)), lambda: store.read_topic_settings(("orders",)),
            lambda: store.create_topics(small_table({"new": [(1,)]}), ({},)),
            lambda: store.write_assignments(small_table({"orders": [(1,)]})),
            lambda: store.queue_deletions(("orders",)), lambda: store.allocate_producer_ids(1),
        ):  # fmt: skip
            with pytest.raises(StoreError):
                call()
