"""What the controller of the reference model remembers between events, and what it sends."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from tests.reference.brokers import Sent
from tests.reference.facts import DELETING, NONE, Assignment, Entry, Key, Replica, State, Storage, name_of

NEW, ONLINE, OFFLINE, GONE = "new", "online", "offline", "gone"
STARTED, SUCCESSFUL, INELIGIBLE = "deletion started", "deletion successful", "deletion ineligible"


@dataclass(slots=True)
class Context:
    """Everything that a failover forgets and reads again."""

    epoch: int = 0
    live: dict[int, int] = field(default_factory=dict)
    """Broker epochs of the registered, those that shut down included."""
    shutting_down: set[int] = field(default_factory=set)
    topics: dict[str, int] = field(default_factory=dict)
    """Number (for id) by name."""
    assignments: dict[Key, Assignment] = field(default_factory=dict)
    states: dict[Key, State] = field(default_factory=dict)
    """Leadership as last read or written."""
    partition: dict[Key, str] = field(default_factory=dict)
    replica: dict[Replica, str] = field(default_factory=dict)
    reassigning: set[Key] = field(default_factory=set)
    offline_dirs: dict[int, set[Key]] = field(default_factory=dict)
    queued: set[str] = field(default_factory=set)
    started: set[str] = field(default_factory=set)
    halted: set[str] = field(default_factory=set)

    def serving(self, broker: int) -> bool:
        return broker in self.live and broker not in self.shutting_down

    def online(self, broker: int, key: Key, leaving_too: bool = False) -> bool:
        up = broker in self.live if leaving_too else self.serving(broker)
        return up and key not in self.offline_dirs.get(broker, ())

    def assignment(self, key: Key) -> Assignment:
        return self.assignments.get(key, Assignment())

    def of_topic(self, topic: str) -> list[Key]:
        return sorted(key for key in self.assignments if key[0] == topic)

    def replicas_of(self, keys: Iterable[Key]) -> list[Replica]:
        return [(key, broker) for key in keys for broker in self.assignment(key).replicas]

    def replicas_on(self, brokers: Iterable[int]) -> list[Replica]:
        wanted = set(brokers)
        return [one for one in self.replicas_of(sorted(self.assignments)) if one[1] in wanted]

    def replica_states(self, topic: str) -> set[str]:
        return {self.replica.get(one, GONE) for one in self.replicas_of(self.of_topic(topic))}

    def leader_epoch(self, key: Key) -> int:
        """As StopReplica carries it."""
        if key[0] in self.queued:
            return DELETING
        return self.states[key].leader_epoch if key in self.states else NONE

    def forget_topic(self, topic: str, wholly: bool) -> None:
        self.queued.discard(topic)
        self.started.discard(topic)
        self.topics.pop(topic, None)
        for key in self.of_topic(topic):
            del self.assignments[key]
            self.states.pop(key, None)
            if wholly:
                self.reassigning.discard(key)
        if wholly:
            self.halted.discard(topic)
            for dead in self.offline_dirs.values():
                dead -= {key for key in dead if key[0] == topic}


class Batch:
    """Requests that one transition gives rise to; what they say is what holds when they are added."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._leading: dict[int, dict[Key, Entry]] = {}
        self._stopping: dict[int, dict[Key, Entry]] = {}
        self._told: set[int] = set()
        self._metadata: dict[Key, Entry] = {}

    def lead(self, brokers: Iterable[int], key: Key, is_new: bool, assignment: Assignment | None = None) -> None:
        """LeaderAndIsr to ``brokers``, UpdateMetadata to all."""
        state = self._context.states[key]
        has = assignment or self._context.assignment(key)
        for broker in brokers:
            entries = self._leading.setdefault(broker, {})
            entries[key] = {
                "leader": state.leader,
                "leader_epoch": state.leader_epoch,
                "isr": list(state.isr),
                "partition_epoch": state.partition_epoch,
                "replicas": list(has.replicas),
                "adding_replicas": list(has.adding),
                "removing_replicas": list(has.removing),
                "is_new": is_new or entries.get(key, {}).get("is_new", False),
                "leader_recovery_state": state.recovery,
            }
        self.tell(self._context.live, [key])

    def tell(self, brokers: Iterable[int], keys: Iterable[Key] = ()) -> None:
        """UpdateMetadata; partitions without leadership are left out."""
        self._told.update(brokers)
        for key in keys:
            state = self._context.states.get(key)
            if state is None:
                continue
            deleting = key[0] in self._context.queued
            replicas = self._context.assignment(key).replicas
            self._metadata[key] = {
                "leader": DELETING if deleting else state.leader,
                "leader_epoch": 0 if deleting else state.leader_epoch,
                "isr": list(state.isr),
                "partition_epoch": 0 if deleting else state.partition_epoch,
                "replicas": list(replicas),
                "offline_replicas": [one for one in replicas if not self._context.online(one, key)],
            }

    def stop(self, broker: int, key: Key, delete: bool) -> None:
        entries = self._stopping.setdefault(broker, {})
        deleted = entries.get(key, {}).get("delete_partition", False)
        entries[key] = {"leader_epoch": self._context.leader_epoch(key), "delete_partition": delete or deleted}

    def requests(self, order: Callable[[int], int]) -> list[Sent]:
        """LeaderAndIsr, then UpdateMetadata, then StopReplica, to whoever is registered."""
        found = []
        for broker, entries in sorted(self._leading.items(), key=lambda item: order(item[0])):
            leaders = {entry["leader"] for entry in entries.values()}
            head = {"live_leaders": sorted(leaders & self._context.live.keys())}
            found.append(self._sent("LeaderAndIsr", broker, head, entries))
        for broker in sorted(self._told & self._context.live.keys(), key=order):
            found.append(
                self._sent("UpdateMetadata", broker, {"live_brokers": sorted(self._context.live)}, self._metadata)
            )
        for broker, entries in sorted(self._stopping.items(), key=lambda item: order(item[0])):
            found.append(self._sent("StopReplica", broker, {}, entries))
        return [sent for sent in found if sent.request["broker"] in self._context.live]

    def announced(self) -> dict[Key, Entry] | None:
        """What every registered broker learns by UpdateMetadata, None if only some are told."""
        return self._metadata if self._told >= self._context.live.keys() else None

    def _sent(self, api: str, broker: int, head: Entry, entries: dict[Key, Entry]) -> Sent:
        named = {name_of(key): entry for key, entry in sorted(entries.items())}
        request = {"broker": broker, "api": api, "controller_epoch": self._context.epoch, **head, "partitions": named}
        numbers = {key[0]: self._context.topics.get(key[0], 0) for key in entries}
        return Sent(request, dict(entries), numbers)


def unclean(storage: Storage, topic: str, by_default: bool) -> bool:
    """Whether a replica outside the ISR may lead."""
    config = storage.topics[topic].config if topic in storage.topics else {}
    return config.get("unclean.leader.election.enable", str(by_default)).lower() == "true"
