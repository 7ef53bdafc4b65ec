"""Deleting topics in the reference model (``spec/controller.md`` section 10)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from tests.reference.context import GONE, INELIGIBLE, OFFLINE, STARTED, SUCCESSFUL
from tests.reference.facts import Key, Replica

if TYPE_CHECKING:
    from tests.reference.controller import Controller


class Deletion:
    """Which topics are to go, which have begun to, which have halted."""

    def __init__(self, controller: Controller) -> None:
        self._controller = controller
        self._context = controller.context
        self._storage = controller.storage

    def take_over(self) -> None:
        """Queue what is marked; halt what has replicas offline or a reassignment under way."""
        context, marked = self._context, self._storage.marked
        if not self._controller.deletes_topics:
            marked.clear()
            return
        context.queued |= marked
        busy = {key[0] for key in context.reassigning}
        away = {key[0] for key, broker in context.replicas_of(context.assignments) if not context.online(broker, key)}
        context.halted |= (busy | away) & context.queued

    def marks_changed(self) -> None:
        """Topics were marked for deletion."""
        context, marked = self._context, self._storage.marked
        marked &= context.topics.keys()
        if not self._controller.deletes_topics:
            marked.clear()
            return
        if marked:
            self.halt({key[0] for key in context.reassigning} & marked)
            context.queued |= marked
            self.resume_all()

    def halt(self, topics: Iterable[str]) -> None:
        if self._controller.deletes_topics:
            self._context.halted |= set(topics) & self._context.queued

    def resume(self, topics: Iterable[str]) -> None:
        """What halted these topics may be over."""
        again = set(topics) & self._context.queued
        if again and self._controller.deletes_topics:
            self._context.halted -= again
            self.resume_all()

    def fail(self, replicas: list[Replica]) -> None:
        failed = [one for one in replicas if one[0][0] in self._context.queued]
        if failed:
            self._controller.machines.move_replicas(failed, INELIGIBLE)
            self.halt({key[0] for key, _ in failed})
            self.resume_all()

    def answered(self, broker: int, error: str, errors: dict[Key, str]) -> None:
        """A broker has deleted replicas, or could not."""
        failed = [key for key, said in errors.items() if error != "NONE" or said != "NONE"]
        self.fail([(key, broker) for key in failed])
        done = [(key, broker) for key in errors if key not in failed and key[0] in self._context.queued]
        if len(failed) != len(errors):
            self._controller.machines.move_replicas(done, SUCCESSFUL)
            self.resume_all()

    def resume_all(self) -> None:
        """Complete what is gone, try again what failed, begin what may begin."""
        context = self._context
        if not self._controller.deletes_topics:
            return
        retried, begun = [], []
        for topic in sorted(context.queued):
            states = context.replica_states(topic)
            if states <= {SUCCESSFUL}:
                self._complete(topic)
            elif STARTED not in states and INELIGIBLE in states:
                retried.append(topic)
            if topic in context.queued and STARTED not in states and topic not in context.halted:
                begun.append(topic)
        failed = [one for topic in retried for one in self._in_state(topic, INELIGIBLE)]
        self._controller.machines.move_replicas(failed, OFFLINE)
        if begun:
            self._begin(begun)

    def _begin(self, topics: list[str]) -> None:
        context, machines = self._context, self._controller.machines
        fresh = [key for topic in topics if topic not in context.started for key in context.of_topic(topic)]
        machines.move(fresh, OFFLINE)
        machines.move(fresh, GONE)
        context.started |= set(topics)
        self._controller.announce(context.live, [key for topic in topics for key in context.of_topic(topic)])
        replicas = [one for topic in topics for one in context.replicas_of(context.of_topic(topic))]
        alive = [(key, broker) for key, broker in replicas if context.online(broker, key)]
        dead = [one for one in replicas if one not in alive]
        again = [one for one in alive if context.replica.get(one) != SUCCESSFUL]
        machines.move_replicas(dead, INELIGIBLE)
        machines.move_replicas(again, OFFLINE)
        machines.move_replicas(again, STARTED)
        self.halt({key[0] for key, _ in dead})

    def _complete(self, topic: str) -> None:
        self._controller.machines.move_replicas(self._in_state(topic, SUCCESSFUL), GONE)
        if not self._controller.remembers_deleted:
            moving = {key for key in self._context.reassigning if key[0] == topic}
            self._controller.reassignment.forget(lambda key, _: key in moving)
        self._storage.drop_topic(topic)
        self._context.forget_topic(topic, wholly=not self._controller.remembers_deleted)
        self._controller.put(self._controller.deletion.marks_changed)

    def _in_state(self, topic: str, state: str) -> list[Replica]:
        context = self._context
        return [one for one in context.replicas_of(context.of_topic(topic)) if context.replica.get(one) == state]
