"""Moving partitions in the reference model (``spec/controller.md`` section 7)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from tests.reference.context import GONE, NEW, OFFLINE, ONLINE, STARTED, SUCCESSFUL, Batch
from tests.reference.facts import Assignment, Key, Undone
from tests.reference.machines import reassign_strategy

if TYPE_CHECKING:
    from tests.reference.controller import Controller


class Reassignment:
    """One partition at a time: begin, change, complete."""

    def __init__(self, controller: Controller) -> None:
        self._controller = controller
        self._context = controller.context
        self._storage = controller.storage
        self._machines = controller.machines
        self._later: set[str] | None = None

    def take_over(self) -> None:
        """What waits in storage first, then what was under way."""
        taken = self.stored()
        self.resume(lambda key: key not in taken)

    def resume(self, wanted: Callable[[Key], bool]) -> None:
        """One after another; what deletions that makes possible is looked at in the end. (Kafka looks after each, in no
        certain order.)"""
        self._later = set()
        for key in sorted(self._context.reassigning):
            if wanted(key):
                self._try(key, self._context.assignment(key))
        topics, self._later = self._later, None
        self._controller.deletion.resume(topics)

    def stored(self) -> set[Key]:
        """What an operator has left; returns what is under way now, drops what failed."""
        left = self._storage.reassignments
        if left is None:
            return set()
        results = self._trigger({key: self._context.assignment(key).towards(to) for key, to in sorted(left.items())})
        failed = {key for key, code in results.items() if code != "NONE"}
        if failed:
            self.forget(lambda key, _: key in failed)
        return results.keys() - failed

    def asked(self, targets: Mapping[Key, list[int] | None]) -> dict[Key, str]:
        """AlterPartitionReassignments; None cancels."""
        codes, wanted = {}, {}
        for key, target in targets.items():
            has = self._context.assignment(key)
            if target is not None and self._invalid(has, target):
                codes[key] = "INVALID_REPLICA_ASSIGNMENT"
            elif target is None and not has.moving:
                codes[key] = "NO_REASSIGNMENT_IN_PROGRESS"
            else:
                wanted[key] = has.towards(has.origin if target is None else target)
        self.forget(lambda key, _: key in wanted)
        return codes | self._trigger(wanted)

    def complete_if_in_sync(self, key: Key) -> None:
        if key in self._context.reassigning and self._in_sync(key, self._context.assignment(key)):
            self._try(key, self._context.assignment(key))

    def _invalid(self, has: Assignment, target: list[int]) -> bool:
        odd = not target or len(set(target)) != len(target) or min(target) < 0
        return odd or not all(self._context.serving(one) for one in has.towards(target).adding)

    def _trigger(self, wanted: Mapping[Key, Assignment]) -> dict[Key, str]:
        codes = {}
        for key, assignment in wanted.items():
            if key[0] in self._context.queued or not self._context.assignment(key).replicas:
                codes[key] = "UNKNOWN_TOPIC_OR_PARTITION"
            else:
                codes[key] = "NONE" if self._try(key, assignment) else "UNKNOWN_SERVER_ERROR"
        return codes

    def _try(self, key: Key, assignment: Assignment) -> bool:
        try:
            self._move(key, assignment)
        except Undone:
            return False
        return True

    def _move(self, key: Key, assignment: Assignment) -> None:
        self._controller.deletion.halt({key[0]})
        self._change(key, assignment)
        self._context.reassigning.add(key)
        if self._in_sync(key, assignment):
            self._complete(key, assignment)
            return
        self._raise_epoch(key, assignment)
        for broker in assignment.adding:
            self._machines.move_replicas([(key, broker)], NEW)

    def _change(self, key: Key, assignment: Assignment) -> None:
        has = self._context.assignment(key)
        if has != assignment:
            self._store(key, assignment)
            self._context.assignments[key] = assignment
            self._stop(key, [one for one in has.replicas if one not in assignment.replicas])

    def _in_sync(self, key: Key, assignment: Assignment) -> bool:
        stored = self._storage.states.get(key)
        return not assignment.moving or (stored is not None and set(assignment.target) <= set(stored.isr))

    def _raise_epoch(self, key: Key, assignment: Assignment) -> None:
        if key not in self._storage.states:
            raise Undone
        self._machines.raise_epoch(key)
        batch = Batch(self._context)
        batch.lead(assignment.origin, key, is_new=False, assignment=assignment)
        batch.lead(assignment.adding, key, is_new=True, assignment=assignment)
        self._controller.send(batch)

    def _complete(self, key: Key, assignment: Assignment) -> None:
        context, machines = self._context, self._machines
        machines.move_replicas([(key, one) for one in assignment.adding], ONLINE)
        if not assignment.target:
            raise Undone
        reached = context.assignments[key] = Assignment(assignment.target)
        if key not in context.states:
            raise Undone
        leader = context.states[key].leader
        if leader in reached.replicas and context.online(leader, key):
            self._raise_epoch(key, reached)
        else:
            machines.move([key], ONLINE, reassign_strategy)
        self._stop(key, list(assignment.removing))
        self._store(key, reached)
        self.forget(lambda other, target: other == key and target == reached.replicas)
        context.reassigning.discard(key)
        self._controller.announce(context.live, [key])
        if self._later is None:
            self._controller.deletion.resume({key[0]})
        else:
            self._later.add(key[0])

    def _stop(self, key: Key, brokers: list[int]) -> None:
        for target in (OFFLINE, STARTED, SUCCESSFUL, GONE):
            self._machines.move_replicas([(key, broker) for broker in brokers], target)

    def _store(self, key: Key, assignment: Assignment) -> None:
        """The whole topic is written: all its partitions as the controller knows them."""
        topic = self._storage.topics.get(key[0])
        if topic is None:
            raise Undone
        known = {number: has for (name, number), has in self._context.assignments.items() if name == key[0]}
        topic.assignments = known | {key[1]: assignment}

    def forget(self, ours: Callable[[Key, tuple[int, ...]], bool]) -> None:
        """Take partitions out of what an operator has left in storage."""
        left = self._storage.reassignments
        if left is not None:
            rest = {key: target for key, target in left.items() if not ours(key, target)}
            self._storage.reassignments = rest or None
            if not rest:
                self._controller.put(self.stored)
