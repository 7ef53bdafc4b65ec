"""Consumer groups of a topic through a fake broker: versions, both kinds of groups, refusals and bounds."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from typing import Any, Final

import pytest
from kframe_kafka_wire.admin import groups as groups_module
from kframe_kafka_wire.admin.capture import open_cluster
from kframe_kafka_wire.sandbox.fake_broker import FakeBroker, Received

from kframe.plugin import StoreError
from kframe.plugin.live import GroupedCluster, GroupPartition, TopicGroups

LIST_OFFSETS, METADATA, OFFSETS, DESCRIBE, LIST, VERSIONS, DESCRIBE_NEW = 2, 3, 9, 15, 16, 18, 69
OLD: Final = {LIST_OFFSETS: 5, METADATA: 9, OFFSETS: 5, DESCRIBE: 4, LIST: 3, VERSIONS: 3}
NEW: Final = {LIST_OFFSETS: 7, METADATA: 12, OFFSETS: 9, DESCRIBE: 5, LIST: 5, VERSIONS: 3, DESCRIBE_NEW: 0}
ENDS: Final = {0: 100, 1: 200}


def assignment(topic: str, *partitions: int) -> bytes:
    """The bytes of Kafka's ``ConsumerProtocolAssignment``, version 3."""
    name = topic.encode()
    head = struct.pack(f">hih{len(name)}si", 3, 1, len(name), name, len(partitions))
    return head + struct.pack(f">{len(partitions)}ii", *partitions, -1)


class Coordinator:
    """Broker 1, leader of ``orders-0`` and ``orders-1``, and coordinator of all groups."""

    def __init__(self, fake: FakeBroker, versions: Mapping[int, int]) -> None:
        self.fake = fake
        fake.versions = dict(versions)
        self.offsets: dict[str, dict[int, int]] = {"billing": {0: 90, 1: 200}, "idle": {1: 150}, "elsewhere": {}}
        self.states = {"billing": "Stable", "idle": "Empty", "elsewhere": "Stable"}
        self.types = dict.fromkeys(self.offsets, "classic")
        self.refused: dict[str, int] = {}
        fake.response_functions = {
            METADATA: self.metadata,
            LIST: self.listed,
            OFFSETS: self.fetched,
            DESCRIBE: self.described,
            DESCRIBE_NEW: self.described_by_new_protocol,
            LIST_OFFSETS: self.ends,
        }

    def groups(self, topic: str = "orders") -> TopicGroups:
        cluster = open_cluster(f"kafka://127.0.0.1:{self.fake.port}", {})
        assert isinstance(cluster, GroupedCluster)
        return cluster.topic_groups(topic)

    def asked(self, api_key: int) -> int:
        return sum(request.api_key == api_key for request in self.fake.others)

    def metadata(self, request: Received) -> Mapping[str, Any]:
        topics = [
            {
                "name": topic["name"],
                "error_code": 0 if topic["name"] == "orders" else 3,
                "partitions": [{"partition_index": number, "leader_id": 1} for number in ENDS],
            }
            for topic in request.body["topics"]
        ]
        brokers = [{"node_id": 1, "host": "127.0.0.1", "port": self.fake.port}]
        return {"cluster_id": "c", "controller_id": 1, "brokers": brokers, "topics": topics}

    def listed(self, _request: Received) -> Mapping[str, Any]:
        listed = [
            {"group_id": name, "protocol_type": "consumer", "group_state": self.states[name], "group_type": kind}
            for name, kind in self.types.items()
        ]
        other = {"group_id": "workers", "protocol_type": "connect", "group_state": "Stable", "group_type": "classic"}
        return {"error_code": self.refused.get("", 0), "groups": [*listed, other]}

    def fetched(self, request: Received) -> Mapping[str, Any]:
        def offsets(name: str, topics: Any) -> dict[str, Any]:
            committed = self.offsets[name]
            partitions = [
                {"partition_index": number, "committed_offset": committed.get(number, -1), "metadata": ""}
                for number in topics[0]["partition_indexes"]
            ]
            return {"error_code": self.refused.get(name, 0), "topics": [{"name": "orders", "partitions": partitions}]}

        if "groups" in request.body:
            requested = request.body["groups"]
            return {
                "groups": [
                    {"group_id": each["group_id"], **offsets(each["group_id"], each["topics"])} for each in requested
                ]
            }
        return offsets(request.body["group_id"], request.body["topics"])

    def described(self, request: Received) -> Mapping[str, Any]:
        members = {"billing": [assignment("orders", 0), assignment("other", 0)], "elsewhere": [b"\0\0", b""]}
        return {
            "groups": [
                {
                    "group_id": name,
                    "group_state": self.states[name],
                    "members": [
                        {"member_id": f"m{number}", "client_id": "app", "client_host": "/h", "member_assignment": each}
                        for number, each in enumerate(members.get(name, []))
                    ],
                }
                for name in request.body["groups"]
            ]
        }

    def described_by_new_protocol(self, request: Received) -> Mapping[str, Any]:
        owned = {"topic_partitions": [{"topic_id": bytes(16), "topic_name": "orders", "partitions": [1]}]}
        member = {
            "member_id": "m",
            "client_id": "app",
            "client_host": "/h",
            "assignment": owned,
            "target_assignment": owned,
        }
        return {
            "groups": [
                {"group_id": name, "group_state": "Stable", "members": [member]} for name in request.body["group_ids"]
            ]
        }

    def ends(self, request: Received) -> Mapping[str, Any]:
        (topic,) = request.body["topics"]
        assert {each["timestamp"] for each in topic["partitions"]} == {-1}
        partitions = [
            {"partition_index": each["partition_index"], "offset": ENDS[each["partition_index"]], "error_code": 0}
            for each in topic["partitions"]
        ]
        return {"topics": [{"name": topic["name"], "partitions": partitions}]}


@pytest.fixture
def fake() -> Iterator[FakeBroker]:
    broker = FakeBroker()
    yield broker
    broker.close()


@pytest.fixture(params=[OLD, NEW], ids=["old", "new"])
def coordinator(request: pytest.FixtureRequest, fake: FakeBroker) -> Coordinator:
    return Coordinator(fake, request.param)


def test_groups_have_members_offsets_and_lags(coordinator: Coordinator) -> None:
    result = coordinator.groups()
    assert result.problems == []
    assert result.partitions == [
        GroupPartition("billing", "Stable", 2, 0, 90, 100, "app /h"),
        GroupPartition("billing", "Stable", 2, 1, 200, 200, None),
        GroupPartition("idle", "Empty", 0, 1, 150, 200, None),
    ]
    assert [row.lag for row in result.partitions] == [10, 0, 50]


def test_newer_brokers_get_one_request_for_many_groups(fake: FakeBroker) -> None:
    coordinator = Coordinator(fake, NEW)
    coordinator.offsets |= {f"g{number:03}": {0: number} for number in range(247)}
    coordinator.states |= dict.fromkeys(coordinator.offsets, "Stable")
    coordinator.types = dict.fromkeys(coordinator.offsets, "classic")
    assert len(coordinator.groups().partitions) == 250
    assert (coordinator.asked(OFFSETS), coordinator.asked(DESCRIBE), coordinator.asked(LIST_OFFSETS)) == (3, 3, 1)


def test_group_of_the_new_protocol_has_its_members(fake: FakeBroker) -> None:
    coordinator = Coordinator(fake, NEW)
    coordinator.types["elsewhere"] = "consumer"
    rows = {row.group: row for row in coordinator.groups().partitions}
    assert rows["elsewhere"] == GroupPartition("elsewhere", "Stable", 1, 1, None, 200, "app /h")


def test_refusals_are_problems_of_the_result(coordinator: Coordinator) -> None:
    coordinator.refused["billing"] = 30
    result = coordinator.groups()
    assert result.problems == ["1 group of broker 1: GROUP_AUTHORIZATION_FAILED"]
    coordinator.refused[""] = 31
    result = coordinator.groups()
    assert result == TopicGroups([], ["groups of broker 1: found CLUSTER_AUTHORIZATION_FAILED, expected a list"])


def test_unknown_topic_is_an_error(coordinator: Coordinator) -> None:
    with pytest.raises(StoreError, match="topic none: found UNKNOWN_TOPIC_OR_PARTITION"):
        coordinator.groups("none")


@pytest.mark.parametrize(
    "name, message", [("GROUPS_MAX", "of which 2 were read"), ("ROWS_MAX", "the first 2 are listed")]
)
def test_result_is_bounded(coordinator: Coordinator, monkeypatch: pytest.MonkeyPatch, name: str, message: str) -> None:
    monkeypatch.setattr(groups_module, name, 2)
    result = coordinator.groups()
    assert len(result.partitions) <= 3
    assert message in " ".join(result.problems)
