"""The consumer groups that read a topic, as their coordinators describe them.

Each broker lists the groups that it coordinates. Offsets and members are requested in parts, of which only those of the
topic are retained.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from kio.schema.consumer_protocol_assignment.v0.data import ConsumerProtocolAssignment

from kframe.plugin import ErrorCode, StoreError, counted
from kframe.plugin.live import GroupPartition, Progress, TopicGroups
from kframe_kafka_wire.admin.client import AdminClient
from kframe_kafka_wire.connections.node import METADATA
from kframe_kafka_wire.protocol.errors import CodecError, error_of
from kframe_kafka_wire.protocol.shapes import Cursor, struct_shape

#: API keys.
LIST_OFFSETS: Final = 2
OFFSET_FETCH: Final = 9
DESCRIBE_GROUPS: Final = 15
LIST_GROUPS: Final = 16
DESCRIBE_CONSUMER_GROUPS: Final = 69
#: The protocols of groups that commit offsets; empty without members, or where members choose their partitions.
_PROTOCOLS: Final = ("consumer", "")
#: The type of groups whose coordinator assigns partitions (KIP-848). The other API describes the others.
_COORDINATED: Final = "consumer"
#: The timestamp that asks for the end offset.
_LATEST: Final = -1
#: Groups in a request, groups of which a broker is asked, and rows of a result.
_PART: Final = 100
GROUPS_MAX: Final = 10_000
ROWS_MAX: Final = 100_000
#: Version 0 has the layout of all versions.
_ASSIGNMENT: Final = struct_shape(ConsumerProtocolAssignment)
_VERSION_BYTES: Final = 2


@dataclass(slots=True)
class _TopicGroup:
    """A group, and what it has of the topic: committed offsets, and clients by partition."""

    group_id: str
    state: str
    kind: str
    members: int = 0
    offsets: dict[int, int] = field(default_factory=dict)
    clients: dict[int, str] = field(default_factory=dict)


def topic_groups(client: AdminClient, topic: str, progress: Progress) -> TopicGroups:
    """The groups that read a topic, by name and partition. Raises StoreError without a controller, and for a topic that
    the cluster does not describe.

    A broker or group that refuses, or does not respond, is a problem of the result.
    """
    response = client.ask(METADATA, topics=[{"name": topic}], allow_auto_topic_creation=False)
    (described,) = response["topics"]
    code = error_of(described["error_code"])
    if code is not ErrorCode.NONE:
        raise StoreError(f"topic {topic}: found {code.name}, expected a description")
    leaders = {partition["partition_index"]: partition["leader_id"] for partition in described["partitions"]}
    reader = _GroupReader(client, topic, sorted(leaders))
    groups: list[_TopicGroup] = []
    for index, broker in enumerate(response["brokers"]):
        progress(index, len(response["brokers"]))
        groups += reader.groups_of(broker["node_id"])
    ends = reader.end_offsets(leaders) if groups else {}
    rows = [row for group in sorted(groups, key=lambda group: group.group_id) for row in _rows(group, ends)]
    if len(rows) > ROWS_MAX:
        reader.problems.append(f"{len(rows):,} partitions of groups, of which the first {ROWS_MAX:,} are listed")
    return TopicGroups(rows[:ROWS_MAX], reader.problems)


@dataclass(slots=True)
class _GroupReader:
    client: AdminClient
    topic: str
    partitions: Sequence[int]
    problems: list[str] = field(default_factory=list)

    def groups_of(self, broker_id: int) -> list[_TopicGroup]:
        """The groups that a broker coordinates and that read the topic."""
        try:
            return list(self._groups_of(broker_id))
        except StoreError as problem:
            self.problems.append(f"groups of broker {broker_id}: {problem}")
            return []

    def end_offsets(self, leaders: Mapping[int, int]) -> dict[int, int]:
        """The end offset of each partition whose leader responds."""
        ends: dict[int, int] = {}
        for leader in sorted({*leaders.values()} - {-1}):
            requested = [
                {"partition_index": partition, "timestamp": _LATEST}
                for partition, broker_id in leaders.items()
                if broker_id == leader
            ]
            fields = {"replica_id": -1, "topics": [{"name": self.topic, "partitions": requested}]}
            try:
                response = self.client.ask_broker(leader, LIST_OFFSETS, fields)
            except StoreError as problem:
                self.problems.append(f"end offsets of broker {leader}: {problem}")
                continue
            for partition in response["topics"][0]["partitions"]:
                if error_of(partition["error_code"]) is ErrorCode.NONE:
                    ends[partition["partition_index"]] = partition["offset"]
        return ends

    def _groups_of(self, broker_id: int) -> Iterator[_TopicGroup]:
        response = self.client.ask_broker(broker_id, LIST_GROUPS, {})
        code = error_of(response["error_code"])
        if code is not ErrorCode.NONE:
            raise StoreError(f"found {code.name}, expected a list")
        groups = [
            _TopicGroup(listed["group_id"], listed.get("group_state", ""), listed.get("group_type", ""))
            for listed in response["groups"]
            if listed["protocol_type"] in _PROTOCOLS
        ]
        if len(groups) > GROUPS_MAX:
            self.problems.append(f"{len(groups):,} groups of broker {broker_id}, of which {GROUPS_MAX:,} were read")
        groups = groups[:GROUPS_MAX]
        for first in range(0, len(groups), _PART):
            part = {group.group_id: group for group in groups[first : first + _PART]}
            refused = Counter(self._read_offsets(broker_id, part))
            described = [group for group in part.values() if group.offsets or group.state != "Empty"]
            refused.update(self._read_members(broker_id, described))
            for name, count in refused.items():
                self.problems.append(f"{counted(count, 'group')} of broker {broker_id}: {name}")
            yield from (group for group in part.values() if group.offsets or group.clients)

    def _read_offsets(self, broker_id: int, groups: Mapping[str, _TopicGroup]) -> Iterator[str]:
        """Read the committed offsets, and yield the error of each group that is refused."""
        topics = [{"name": self.topic, "partition_indexes": self.partitions}]
        requested = [{"group_id": name, "topics": topics} for name in groups]
        remaining = list(groups)
        while remaining:
            # Before version 8 a request has one group, whose name its response lacks.
            response = self.client.ask_broker(
                broker_id, OFFSET_FETCH, {"groups": requested, "group_id": remaining[0], "topics": topics}
            )
            results = response.get("groups") or [{**response, "group_id": remaining[0]}]
            remaining = [] if "groups" in response else remaining[1:]
            for result in results:
                code = error_of(result.get("error_code", 0))
                if code is not ErrorCode.NONE:
                    yield code.name
                groups[result["group_id"]].offsets = {
                    partition["partition_index"]: partition["committed_offset"]
                    for topic in result["topics"]
                    for partition in topic["partitions"]
                    if partition["committed_offset"] >= 0
                }

    def _read_members(self, broker_id: int, groups: Sequence[_TopicGroup]) -> Iterator[str]:
        """Read states and members, and yield the error of each group that is refused."""
        for api_key, name, is_coordinated in (
            (DESCRIBE_GROUPS, "groups", False),
            (DESCRIBE_CONSUMER_GROUPS, "group_ids", True),
        ):
            by_id = {
                group.group_id: group for group in groups if (group.kind.lower() == _COORDINATED) == is_coordinated
            }
            if not by_id:
                continue
            for described in self.client.ask_broker(broker_id, api_key, {name: list(by_id)})["groups"]:
                code = error_of(described["error_code"])
                if code is not ErrorCode.NONE:
                    yield code.name
                    continue
                group = by_id[described["group_id"]]
                group.state, group.members = described["group_state"], len(described["members"])
                for member in described["members"]:
                    client = f"{member['client_id']} {member['client_host']}"
                    group.clients.update(dict.fromkeys(_assigned(member, self.topic), client))


def _assigned(member: Mapping[str, Any], topic: str) -> list[int]:
    """The partitions of the topic that a member has. None of an assignment of another protocol."""
    if "assignment" in member:
        topics = member["assignment"]["topic_partitions"]
        return [number for each in topics if each["topic_name"] == topic for number in each["partitions"]]
    try:
        topics = _ASSIGNMENT.read(Cursor(member["member_assignment"], _VERSION_BYTES))["assigned_partitions"]
    except CodecError:
        return []
    return [number for each in topics if each["topic"] == topic for number in each["partitions"]]


def _rows(group: _TopicGroup, ends: Mapping[int, int]) -> Iterator[GroupPartition]:
    for partition in sorted({*group.offsets, *group.clients}):
        yield GroupPartition(
            group.group_id,
            group.state,
            group.members,
            partition,
            group.offsets.get(partition),
            ends.get(partition),
            group.clients.get(partition),
        )
