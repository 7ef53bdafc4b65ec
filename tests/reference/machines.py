"""The two state machines of the reference model: partitions and replicas (``spec/state-machines.md``)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TypeAlias

from tests.reference.context import (
    GONE,
    INELIGIBLE,
    NEW,
    OFFLINE,
    ONLINE,
    STARTED,
    SUCCESSFUL,
    Batch,
    Context,
    unclean,
)
from tests.reference.facts import NONE, Key, Replica, State, Storage, hash_order

#: Given a partition and its stored state: the next state or None, and who is told by LeaderAndIsr.
Strategy: TypeAlias = "Callable[[Machines, Key, State], tuple[State | None, tuple[int, ...]]]"

_PARTITION_FROM = {NEW: {GONE}, ONLINE: {NEW, ONLINE, OFFLINE}, OFFLINE: {NEW, ONLINE, OFFLINE}, GONE: {OFFLINE}}
_REPLICA_FROM = {
    NEW: {GONE},
    ONLINE: {NEW, ONLINE, OFFLINE, INELIGIBLE},
    OFFLINE: {NEW, ONLINE, OFFLINE, INELIGIBLE},
    STARTED: {OFFLINE},
    SUCCESSFUL: {STARTED},
    INELIGIBLE: {OFFLINE, STARTED},
    GONE: {SUCCESSFUL},
}


class Machines:
    """Moves partitions and replicas; ``send`` takes each finished batch."""

    def __init__(
        self, storage: Storage, context: Context, unclean_by_default: bool, send: Callable[[Batch], None]
    ) -> None:
        self.storage = storage
        self.context = context
        self.unclean_by_default = unclean_by_default
        self.send = send

    # -- partitions

    def move(self, keys: Iterable[Key], target: str, strategy: Strategy | None = None) -> dict[Key, bool]:
        """Returns which elections succeeded; a partition that gets its first leader is in no election."""
        listed, results = sorted(set(keys)), {}
        if not listed:
            return {}
        batch, states = Batch(self.context), self.context.partition
        valid = [key for key in listed if states.setdefault(key, GONE) in _PARTITION_FROM[target]]
        if target == ONLINE:
            for key in [key for key in valid if states[key] == NEW]:
                valid.remove(key)
                self._initialise(key, batch)
            results = {key: self._elect(key, strategy or offline_strategy(False), batch) for key in valid}
        else:
            states.update(dict.fromkeys(valid, target))
        self.send(batch)
        return results

    def trigger_online(self, topic: str | None = None) -> dict[Key, bool]:
        context = self.context
        waiting = [key for key, state in context.partition.items() if state in (NEW, OFFLINE)]
        return self.move(
            [key for key in waiting if key[0] not in context.queued and topic in (None, key[0])],
            ONLINE,
            offline_strategy(False),
        )

    def raise_epoch(self, key: Key) -> None:
        """The same leadership under the next leader epoch."""
        self._write(key, self.storage.states[key].raised())

    def _initialise(self, key: Key, batch: Batch) -> None:
        live = tuple(one for one in self.context.assignment(key).replicas if self.context.online(one, key))
        if not live or key in self.storage.states:
            return
        self._write(key, State(live[0], live))
        batch.lead(live, key, is_new=True)
        self.context.partition[key] = ONLINE

    def _elect(self, key: Key, strategy: Strategy, batch: Batch) -> bool:
        stored = self.storage.states.get(key)
        chosen, told = strategy(self, key, stored) if stored else (None, ())
        if chosen is None:
            return False
        self._write(key, chosen)
        batch.lead(told, key, is_new=False)
        self.context.partition[key] = ONLINE
        return True

    def _write(self, key: Key, state: State) -> None:
        self.context.states[key] = self.storage.store(key, state, self.context.epoch)

    # -- replicas

    def move_replicas(self, replicas: Iterable[Replica], target: str) -> None:
        """Broker by broker, in Kafka's order of brokers."""
        listed = list(dict.fromkeys(replicas))
        if not listed:
            return
        batch, states = Batch(self.context), self.context.replica
        for broker in hash_order(broker for _, broker in listed):
            keys = sorted(key for key, one in listed if one == broker)
            valid = [key for key in keys if states.setdefault((key, broker), GONE) in _REPLICA_FROM[target]]
            if target == OFFLINE:
                for key in valid:
                    batch.stop(broker, key, delete=False)
            for key in valid:
                self._move_replica(key, broker, target, batch)
        self.send(batch)

    def _move_replica(self, key: Key, broker: int, target: str, batch: Batch) -> None:
        context, place = self.context, (key, broker)
        led = context.states.get(key)
        if target == NEW:
            if led is not None and led.leader == broker:
                return
            if led is not None:
                batch.lead([broker], key, is_new=True)
        elif target == ONLINE:
            self._welcome(key, broker, batch)
        elif target == OFFLINE and not self._take_offline(key, broker, batch):
            return
        elif target == STARTED:
            batch.stop(broker, key, delete=True)
        elif target == GONE:
            context.assignments[key] = context.assignment(key).dropping(broker)
            del context.replica[place]
            return
        context.replica[place] = target

    def _welcome(self, key: Key, broker: int, batch: Batch) -> None:
        context = self.context
        if context.replica[key, broker] != NEW:
            if key in context.states:
                batch.lead([broker], key, is_new=False)
        elif broker not in context.assignment(key).replicas:
            has = context.assignment(key)
            context.assignments[key] = replace(has, replicas=(*has.replicas, broker))

    def _take_offline(self, key: Key, broker: int, batch: Batch) -> bool:
        """Out of the ISR; the last member stays in it. Returns whether the replica is offline now."""
        context, stored = self.context, self.storage.states.get(key)
        if key not in context.states:
            batch.tell(context.live, [key])
            return True
        if stored is None:
            return False
        if broker in stored.isr:
            rest = stored.isr if len(stored.isr) == 1 else tuple(one for one in stored.isr if one != broker)
            self._write(key, stored.raised(NONE if stored.leader == broker else stored.leader, rest))
        else:
            context.states[key] = replace(stored, controller_epoch=context.epoch)
        if key[0] not in context.queued:
            batch.lead([one for one in context.assignment(key).replicas if one != broker], key, is_new=False)
        return True


# -- elections (``spec/elections.md`` section 3)


def offline_strategy(allow_unclean: bool) -> Strategy:
    """For partitions without a leader; a replica outside the ISR leads only if nobody of the ISR is online."""

    def elect(machines: Machines, key: Key, state: State) -> tuple[State | None, tuple[int, ...]]:
        context = machines.context
        online = tuple(one for one in context.assignment(key).replicas if context.online(one, key))
        clean = [one for one in online if one in state.isr]
        if clean:
            isr = tuple(one for one in state.isr if context.online(one, key))
            return state.raised(clean[0], isr), online
        if any(context.online(one, key) for one in state.isr):
            return None, online
        if not online or not (allow_unclean or unclean(machines.storage, key[0], machines.unclean_by_default)):
            return None, online
        return replace(state.raised(online[0], (online[0],)), recovery=1), online

    return elect


def reassign_strategy(machines: Machines, key: Key, state: State) -> tuple[State | None, tuple[int, ...]]:
    """For the end of a reassignment: the first of the target that is online and in sync."""
    target = machines.context.assignment(key).target
    fit = [one for one in target if machines.context.online(one, key) and one in state.isr]
    return (state.raised(fit[0]) if fit else None), target


def preferred_strategy(machines: Machines, key: Key, state: State) -> tuple[State | None, tuple[int, ...]]:
    """The first replica, if it is online and in sync."""
    replicas = machines.context.assignment(key).replicas
    fit = machines.context.online(replicas[0], key) and replicas[0] in state.isr
    return (state.raised(replicas[0]) if fit else None), replicas


def shutdown_strategy(machines: Machines, key: Key, state: State) -> tuple[State | None, tuple[int, ...]]:
    """Away from all brokers that shut down."""
    context = machines.context
    told = tuple(one for one in context.assignment(key).replicas if context.online(one, key, leaving_too=True))
    fit = [one for one in told if one in state.isr and one not in context.shutting_down]
    isr = tuple(one for one in state.isr if one not in context.shutting_down)
    return (state.raised(fit[0], isr) if fit else None), told
