"""Requests and responses of the quorum's protocol as fields: Fetch, FetchSnapshot, DescribeQuorum, votes and epochs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from kframe_kafka_wire.protocol.codec import Fields
from kframe_kafka_wire.protocol.errors import Refused
from kframe_kafka_wire.protocol.metadata_log import TOPIC, TOPIC_ID

from kframe.plugin import ErrorCode
from kframe.plugin.kraft import control, directory_ids
from kframe_kraft.quorum import FetchAnswer, Leadership, ReplicaFetch, ReplicaKey, SoleVoter

#: The first version of Fetch that names topics by id, and the first that has the replica in a struct.
_TOPIC_IDS, _REPLICA_STATE = 13, 15
#: Most bytes of records in a response to Fetch, unless the first batch is larger. Brokers before 4.3 ask for as many.
_FETCH_BYTES_MAX: Final = 8 << 20
_UNKNOWN: Final = -1


@dataclass(frozen=True, slots=True)
class LeaderName:
    """The leader that a node knows in an epoch, and its endpoint. ``node_id`` is -1 if it knows none."""

    epoch: int
    node_id: int = _UNKNOWN
    host: str = ""
    port: int = 0

    def current(self) -> Fields:
        """The field ``current_leader``."""
        return {"leader_id": self.node_id, "leader_epoch": self.epoch}

    def endpoints(self) -> Sequence[Fields]:
        """The field ``node_endpoints``."""
        return [] if self.node_id < 0 else [{"node_id": self.node_id, "host": self.host, "port": self.port}]


def only(topics: Sequence[Fields], topic: Mapping[str, Any], index: str) -> Fields:
    """The partition of a request for the metadata log alone. Raises Refused for any other request.

    Brokers do not survive INVALID_REQUEST in such a response, so that the connection ends instead.
    """
    is_log = len(topics) == 1 and all(topics[0][name] == value for name, value in topic.items())
    partitions: Sequence[Fields] = topics[0]["partitions"] if is_log else []
    if len(partitions) != 1 or partitions[0][index] != 0:
        raise Refused(f"a request that is not for partition 0 of {TOPIC} alone")
    return partitions[0]


def fetch_of(version: int, body: Fields) -> ReplicaFetch:
    """The Fetch request. Raises Refused if it is not for the metadata log, or contradicts itself.

    The limit is that of the whole request, as in Kafka 4.4 ``KafkaRaftClient.handleFetchRequest``: replicas do not set
    that of the partition.
    """
    by_id = version >= _TOPIC_IDS
    partition = only(body["topics"], {"topic_id": TOPIC_ID} if by_id else {"topic": TOPIC}, "partition")
    node_id = (body["replica_state"] if version >= _REPLICA_STATE else body)["replica_id"]
    request = ReplicaFetch(
        ReplicaKey(node_id, directory_id_of(partition)),
        partition["current_leader_epoch"],
        partition["fetch_offset"],
        partition["last_fetched_epoch"],
        min(body["max_bytes"], _FETCH_BYTES_MAX),
        body["max_wait"],
        partition.get("high_watermark"),
    )
    if min(request.wait_ms, request.offset, request.last_epoch) < 0 or request.last_epoch > request.epoch >= 0:
        raise Refused(f"Fetch from offset {request.offset} after epoch {request.last_epoch}, in epoch {request.epoch}")
    return request


def directory_id_of(partition: Fields) -> UUID:
    """The directory id of a replica; zero in versions without it."""
    value = partition.get("replica_directory_id")
    return UUID(bytes=value) if value else directory_ids.ZERO_UUID


def fetch_response(version: int, answer: FetchAnswer, leader: LeaderName) -> Fields:
    """The response to Fetch."""
    partition: dict[str, Any] = {
        "partition_index": 0,
        "error_code": answer.error,
        "high_watermark": answer.high_watermark,
        "last_stable_offset": answer.high_watermark,
        "log_start_offset": answer.log_start,
        "aborted_transactions": None,
        "records": answer.records,
        "current_leader": leader.current(),
    }
    if answer.diverged is not None:
        partition["diverging_epoch"] = {"epoch": answer.diverged.epoch, "end_offset": answer.diverged.offset}
    if answer.snapshot_id is not None:
        partition["snapshot_id"] = {"end_offset": answer.snapshot_id.offset, "epoch": answer.snapshot_id.epoch}
    topic = {"topic_id": TOPIC_ID, "topic": TOPIC, "partitions": [partition]}
    return {"error_code": ErrorCode.NONE, "responses": [topic], "node_endpoints": _with_racks(leader.endpoints())}


def whole_response(version: int, error: ErrorCode) -> Fields:
    """The response to Fetch with a top-level error."""
    return {"error_code": error, "responses": []}


def describe_response(
    quorum: SoleVoter, leadership: Leadership, leader: LeaderName, log_end: int, times: tuple[int, int]
) -> Fields:
    """The response to DescribeQuorum of the leader.

    ``times`` are now on the clock of Fetch times, and since the epoch, in milliseconds.
    """
    now_ms, wall_ms = times
    shift = wall_ms - now_ms
    own = _replica(quorum.node, log_end, wall_ms, wall_ms)
    observers = [
        _replica(key, progress.end, _shifted(progress.fetched_ms, shift), _shifted(progress.caught_up_ms, shift))
        for key, progress in sorted(leadership.observers(now_ms).items())
    ]
    partition = {
        "partition_index": 0,
        "error_code": ErrorCode.NONE,
        "error_message": "",
        "leader_id": leader.node_id,
        "leader_epoch": leader.epoch,
        "high_watermark": _UNKNOWN if leadership.high_watermark is None else leadership.high_watermark,
        "current_voters": [own],
        "observers": observers,
    }
    return {
        "error_code": ErrorCode.NONE,
        "error_message": "",
        "topics": [{"topic_name": TOPIC, "partitions": [partition]}],
        "nodes": [_node(voter) for voter in quorum.voters.members],
    }


def epoch_response(topic_error: ErrorCode, leader: LeaderName, **fields: Any) -> Fields:
    """The response to Vote, BeginQuorumEpoch and EndQuorumEpoch."""
    partition = {"partition_index": 0, "error_code": topic_error, **leader.current(), **fields}
    topic = {"topic_name": TOPIC, "partitions": [partition]}
    return {"error_code": ErrorCode.NONE, "topics": [topic], "node_endpoints": leader.endpoints()}


def _with_racks(endpoints: Iterable[Fields]) -> list[Fields]:
    return [{**endpoint, "rack": None} for endpoint in endpoints]


def _node(voter: control.Voter) -> Fields:
    listeners = [{"name": each.name, "host": each.host, "port": each.port} for each in voter.endpoints]
    return {"node_id": voter.voter_id, "listeners": listeners}


def _replica(key: ReplicaKey, end: int, fetched_ms: int, caught_up_ms: int) -> Fields:
    return {
        "replica_id": key.node_id,
        "replica_directory_id": key.directory_id.bytes,
        "log_end_offset": end,
        "last_fetch_timestamp": fetched_ms,
        "last_caught_up_timestamp": caught_up_ms,
    }


def _shifted(time_ms: int, shift: int) -> int:
    return _UNKNOWN if time_ms < 0 else time_ms + shift
