"""The reference model of a whole scenario: plays its steps, and writes the trace that Kafka 3.9 should leave behind.

It is written from ``spec/`` and Kafka's source, one partition at a time, on dicts and lists; it imports nothing of
kframe. ``tests/reference/test_golden.py`` proves it against what Kafka itself did.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tests.reference import admin
from tests.reference.controller import Controller
from tests.reference.facts import Assignment, Entry, Key, State, Storage, key_of, name_of

PATIENCE_SECONDS = 3.0


class Reference:
    """One scenario, as YAML gives it."""

    def __init__(self, scenario: Mapping[str, Any], remembers_deleted: bool = True) -> None:
        self.name = scenario["name"]
        self.storage = Storage()
        config = {"auto.leader.rebalance.enable": False} | (scenario.get("config") or {})
        settings = {key: text(value) for key, value in config.items()}
        self.controller = Controller(self.storage, settings, remembers_deleted)
        self.known: dict[int, int] = {}
        """Broker epochs of the last registrations."""
        for topic in scenario.get("topics") or []:
            self._existing(topic)
        waiting = scenario.get("admin") or {}
        targets = waiting.get("reassign") or {}
        self.storage.reassignments = {key_of(name): tuple(ids) for name, ids in targets.items()} or None
        self.storage.preferred = [key_of(name) for name in waiting.get("preferred") or []] or None
        self.storage.marked = set(waiting.get("delete_topics") or [])
        self._register(scenario["brokers"])

    def _existing(self, topic: Mapping[str, Any]) -> None:
        listed = {one["partition"]: one for one in topic["partitions"]}
        assignments = {
            number: Assignment(
                *(tuple(one.get(key) or ()) for key in ("replicas", "adding_replicas", "removing_replicas"))
            )
            for number, one in listed.items()
        }
        config = {key: text(value) for key, value in (topic.get("config") or {}).items()}
        self.storage.add_topic(topic["name"], assignments, config)
        for number, one in listed.items():
            if one.get("leader") is not None:
                self.storage.states[topic["name"], number] = State(
                    one["leader"],
                    tuple(one["isr"]),
                    one.get("leader_epoch", 0),
                    one.get("controller_epoch", 0),
                    one.get("leader_recovery_state", 0),
                )

    def _register(self, brokers: list[Any]) -> None:
        for one in brokers:
            spec = one if isinstance(one, dict) else {"id": one}
            broker = spec["id"]
            self.storage.brokers[broker] = self.known[broker] = self.storage.next()
            self.storage.racks[broker] = spec.get("rack", self.storage.racks.get(broker))

    def take(self, step: Mapping[str, Any]) -> Entry:
        """Play one step to rest; return its entry of the trace."""
        ((kind, argument),) = step.items()
        before, topics = self.storage.partitions(), set(self.storage.topics)
        self.controller.brokers.take()
        response = getattr(self, f"_{kind}")(argument)
        self.controller.run()
        after = self.storage.partitions()
        return {
            "step": dict(step),
            "partitions": {name: entry for name, entry in after.items() if before.get(name) != entry},
            "topics_deleted": sorted(topics - set(self.storage.topics)),
            "requests": self.controller.brokers.take(),
            "response": response,
        }

    # -- steps

    def _elect(self, _: Any) -> None:
        self.controller.take_over()

    def _broker_failure(self, brokers: list[int]) -> None:
        for broker in brokers:
            del self.storage.brokers[broker]
        self.controller.put(self.controller.brokers_changed)

    def _broker_startup(self, brokers: list[Any]) -> None:
        self._register(brokers)
        self.controller.put(self.controller.brokers_changed)

    def _broker_bounce(self, brokers: list[int]) -> None:
        self._register(brokers)
        self.controller.put(self.controller.brokers_changed)

    def _controlled_shutdown(self, broker: int) -> Entry:
        error, remaining = self.controller.shut_down(broker, self.known.get(broker, -1))
        return {"error": error, "remaining": [name_of(key) for key in sorted(remaining)]}

    def _alter_partition(self, proposals: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
        senders: dict[int, dict[Key, State]] = {}
        for name, given in proposals.items():
            has = self.storage.states.get(key_of(name), State(0, ()))
            sender = given.get("sender", has.leader)
            state = State(
                sender,
                tuple(given["isr"]),
                given.get("leader_epoch", has.leader_epoch),
                recovery=given.get("leader_recovery_state", has.recovery),
                partition_epoch=given.get("partition_epoch", has.partition_epoch),
            )
            senders.setdefault(sender, {})[key_of(name)] = state
        answers: dict[str, str] = {}
        for sender, theirs in senders.items():
            found = self.controller.alter_partitions(sender, self.known.get(sender, 0), theirs)
            self.controller.run()
            answers |= {name_of(key): found if isinstance(found, str) else found[key] for key in theirs}
        return {name: answers[name] for name in proposals}

    def _isr_znode(self, proposals: Mapping[str, Mapping[str, Any]]) -> None:
        for name, given in proposals.items():
            has = self.storage.states[key_of(name)]
            changed = State(has.leader, tuple(given["isr"]), has.leader_epoch, 0, has.recovery, has.partition_epoch)
            self.storage.store(key_of(name), changed, has.controller_epoch)
        self.controller.put(self.controller.isrs_changed, [key_of(name) for name in proposals])

    def _create_topics(self, topics: list[Mapping[str, Any]]) -> dict[str, str]:
        return self._patiently(lambda: admin.create_topics(self.controller, topics), self._unled)

    def _create_partitions(self, growth: Mapping[str, Any]) -> dict[str, str]:
        return self._patiently(lambda: admin.create_partitions(self.controller, growth), self._unled)

    def _delete_topics(self, names: list[str]) -> dict[str, str]:
        return self._patiently(lambda: admin.delete_topics(self.controller, names), self._heard_of)

    def _reassign(self, targets: Mapping[str, list[int] | None]) -> dict[str, str]:
        codes = self.controller.reassignment.asked({key_of(name): to for name, to in targets.items()})
        return {name_of(key): codes[key] for key in sorted(codes)}

    def _reassign_znode(self, targets: Mapping[str, list[int]]) -> None:
        self.storage.reassignments = {key_of(name): tuple(ids) for name, ids in targets.items()}
        self.controller.put(self.controller.reassignment.stored)

    def _list_reassignments(self, _: Any) -> Entry:
        context = self.controller.context
        found = {key: context.assignment(key) for key in sorted(context.reassigning)}
        return {
            name_of(key): {
                "replicas": list(one.replicas),
                "adding_replicas": list(one.adding),
                "removing_replicas": list(one.removing),
            }
            for key, one in found.items()
            if one.moving
        }

    def _elect_leaders(self, wanted: Mapping[str, Any]) -> dict[str, str]:
        named = wanted.get("partitions")
        keys = sorted(self.controller.metadata) if named is None else [key_of(name) for name in named]
        codes = self.controller.elect(dict.fromkeys(keys), wanted["type"])
        told = {key: code for key, code in codes.items() if named is not None or code != "ELECTION_NOT_NEEDED"}
        return {name_of(key): told[key] for key in sorted(told)}

    def _preferred_znode(self, names: list[str]) -> None:
        self.storage.preferred = [key_of(name) for name in names]
        self.controller.put(self.controller.preferred_stored)

    def _topic_config(self, changes: Mapping[str, Mapping[str, Any]]) -> None:
        for name, config in changes.items():
            topic = self.storage.topics[name]
            topic.config |= {key: text(value) for key, value in config.items()}
            if topic.config.get("unclean.leader.election.enable") == "true":
                self.controller.put(self.controller.unclean_enabled, name)

    def _log_dir_failure(self, failure: Mapping[str, Any]) -> None:
        for api in ("LeaderAndIsr", "StopReplica"):
            self._answer({**failure, "api": api, "error": "KAFKA_STORAGE_ERROR"})
        self.controller.put(self.controller.log_dirs_failed, failure["broker"])

    def _answer(self, said: Mapping[str, Any]) -> None:
        keys = [key_of(name) for name in said.get("partitions") or []]
        self.controller.brokers.say(said["broker"], said["error"], said.get("api"), keys)

    def _advance(self, seconds: float) -> None:
        controller, brokers = self.controller, self.controller.brokers
        until = brokers.now + seconds
        while (due := min(controller.rebalance_at, brokers.next_timer())) <= until:
            brokers.now = due
            if controller.rebalance_at <= due:
                controller.rebalance()
            brokers.send_again()
            controller.run()
        brokers.now = until

    # -- clients that wait

    def _patiently(self, ask: Callable[[], dict[str, str]], unfinished: Callable[[str], bool]) -> dict[str, str]:
        """Ask, and wait a while for what was accepted."""
        codes = ask()
        accepted = [name for name, code in codes.items() if code == "NONE"]
        done: list[bool] = []

        def look() -> None:
            done.append(not any(map(unfinished, accepted)))

        look()
        self.controller.run(look)
        if not any(done):
            self._advance(PATIENCE_SECONDS)
            codes |= {name: "REQUEST_TIMED_OUT" for name in accepted if unfinished(name)}
        return dict(sorted(codes.items()))

    def _unled(self, topic: str) -> bool:
        stored = self.storage.topics.get(topic)
        entries = [self.controller.metadata.get((topic, number)) for number in (stored.assignments if stored else ())]
        return not entries or any(entry is None or entry["leader"] == -1 for entry in entries)

    def _heard_of(self, topic: str) -> bool:
        return any(name == topic for name, _ in self.controller.metadata)


def text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
