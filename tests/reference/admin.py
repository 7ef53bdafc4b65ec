"""What clients ask of the reference model about topics; Kafka's rules (``ZkAdminManager``, ``KafkaApis``)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tests.reference.facts import Assignment

if TYPE_CHECKING:
    from tests.reference.controller import Controller

_LEGAL = re.compile(r"[a-zA-Z0-9._-]{1,249}")
_BOOLEANS = {"true", "false"}


def create_topics(controller: Controller, topics: list[Mapping[str, Any]]) -> dict[str, str]:
    storage, listed = controller.storage, [topic["name"] for topic in topics]
    codes = {}
    for topic in topics:
        name = topic["name"]
        lists = topic.get("assignments") or _by_count(controller, topic)
        code = "INVALID_REQUEST" if listed.count(name) > 1 else _creation(controller, topic, lists)
        codes[name] = code
        if code == "NONE" and isinstance(lists, list):
            assignments = {number: Assignment(tuple(ids)) for number, ids in enumerate(lists)}
            config = {key: str(value) for key, value in (topic.get("config") or {}).items()}
            storage.add_topic(name, assignments, config)
    controller.put(controller.topics_changed)
    return codes


def _creation(controller: Controller, topic: Mapping[str, Any], lists: list[list[int]] | str) -> str:
    name, storage = topic["name"], controller.storage
    if any(one[0] == name for one in controller.metadata):
        return "TOPIC_ALREADY_EXISTS"
    if "assignments" in topic and ("partitions" in topic or "replication_factor" in topic):
        return "INVALID_REQUEST"
    if isinstance(lists, str):
        return lists
    if not _LEGAL.fullmatch(name) or name in (".", ".."):
        return "INVALID_TOPIC_EXCEPTION"
    if name in storage.marked or name in storage.topics:
        return "TOPIC_ALREADY_EXISTS"
    if any(other.replace(".", "_") == name.replace(".", "_") for other in storage.topics):
        return "INVALID_TOPIC_EXCEPTION"
    if len({len(ids) for ids in lists}) != 1 or any(len(set(ids)) != len(ids) for ids in lists):
        return "INVALID_REPLICA_ASSIGNMENT"
    return "NONE" if _fits(topic.get("config") or {}) else "INVALID_CONFIG"


def _fits(config: Mapping[str, Any]) -> bool:
    """Of topic settings only the two that scenarios use."""
    for key, value in config.items():
        said = str(value).lower()
        good = {
            "unclean.leader.election.enable": said in _BOOLEANS,
            "min.insync.replicas": said.isdigit() and said != "0",
        }
        if not good.get(key, False):
            return False
    return True


def _by_count(controller: Controller, topic: Mapping[str, Any]) -> list[list[int]] | str:
    """Some placement of the right shape: Kafka draws its own by lot."""
    count, factor = topic.get("partitions", 1), topic.get("replication_factor", 1)
    brokers = sorted(controller.storage.brokers)
    if count <= 0:
        return "INVALID_PARTITIONS"
    if not 0 < factor <= len(brokers):
        return "INVALID_REPLICATION_FACTOR"
    return [[brokers[(number + place) % len(brokers)] for place in range(factor)] for number in range(count)]


def create_partitions(controller: Controller, growth: Mapping[str, Any]) -> dict[str, str]:
    name, storage = growth["topic"], controller.storage
    code = _growth(controller, name, growth["count"], growth.get("assignments"))
    if code == "NONE":
        has = storage.topics[name].assignments
        lists = growth.get("assignments") or _placed(controller, name, growth["count"] - len(has))
        new = enumerate(lists, len(has))
        storage.topics[name].assignments = has | {number: Assignment(tuple(ids)) for number, ids in new}
        controller.put(controller.topic_modified, name)
    return {name: code}


def _growth(controller: Controller, name: str, count: int, lists: list[list[int]] | None) -> str:
    topic = controller.storage.topics.get(name)
    if name in controller.context.queued:
        return "INVALID_TOPIC_EXCEPTION"
    if topic is None:
        return "UNKNOWN_TOPIC_OR_PARTITION"
    if any(one.moving for one in topic.assignments.values()):
        return "REASSIGNMENT_IN_PROGRESS"
    if count <= len(topic.assignments):
        return "INVALID_PARTITIONS"
    factor, brokers = len(topic.assignments[0].replicas), controller.storage.brokers.keys()
    if lists is None:
        return "NONE" if factor <= len(brokers) else "INVALID_REPLICATION_FACTOR"
    fits = len(lists) == count - len(topic.assignments)
    fits = fits and all(len(ids) == len(set(ids)) == factor and set(ids) <= brokers for ids in lists)
    return "NONE" if fits else "INVALID_REPLICA_ASSIGNMENT"


def _placed(controller: Controller, name: str, count: int) -> list[list[int]]:
    """Further partitions by Kafka's algorithm, racks left out: it goes on where partition 0 begins."""
    brokers, has = sorted(controller.storage.brokers), controller.storage.topics[name].assignments
    start = next((place for place, one in enumerate(brokers) if one >= has[0].replicas[0]), 0)
    shift, lists = start, []
    for number in range(len(has), len(has) + count):
        shift += number % len(brokers) == 0
        first = (number + start) % len(brokers)
        others = ((shift + place) % max(len(brokers) - 1, 1) + 1 for place in range(len(has[0].replicas) - 1))
        lists.append([brokers[first], *(brokers[(first + step) % len(brokers)] for step in others)])
    return lists


def delete_topics(controller: Controller, names: list[str]) -> dict[str, str]:
    if not controller.deletes_topics:
        return dict.fromkeys(names, "TOPIC_DELETION_DISABLED")
    heard = {topic for topic, _ in controller.metadata}
    codes = {name: "NONE" if name in heard else "UNKNOWN_TOPIC_OR_PARTITION" for name in names}
    marked = {name for name, code in codes.items() if code == "NONE"}
    if marked:
        controller.storage.marked |= marked
        controller.put(controller.deletion.marks_changed)
    return codes
