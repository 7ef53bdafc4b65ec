"""The requests of an observer to a KRaft node: Fetch, FetchSnapshot, DescribeQuorum and DescribeCluster.

The observer has no replica id, as consumers. A leader serves it like any replica (Kafka ``KafkaRaftClient``), does not
count it for the high watermark, and also returns uncommitted records. It requires the right ``ClusterAction``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from kframe_kafka_wire.connections.node import NodeConnection
from kframe_kafka_wire.protocol.errors import WireError, error_of
from kframe_kafka_wire.protocol.metadata_log import TOPIC, TOPIC_ID, only_partition

from kframe_kraft.disk import SnapshotId

FETCH: Final = 1
DESCRIBE_QUORUM: Final = 55
FETCH_SNAPSHOT: Final = 59
DESCRIBE_CLUSTER: Final = 60
#: Bytes of records in a response. A leader sends more only for a single larger batch.
FETCH_BYTES: Final = 8 * 2**20
SNAPSHOT_PART_BYTES: Final = 2**20
_NO_REPLICA: Final = -1
_CONTROLLERS: Final = 2
Address: TypeAlias = tuple[str, int]


@dataclass(frozen=True, slots=True)
class QuorumLeader:
    """The leader in a response. ``leader_id`` is -1 if the node knows none."""

    leader_id: int = -1
    leader_epoch: int = -1
    addresses: Mapping[int, Address] = field(default_factory=dict)
    """Addresses of the controllers that the response names, by id."""
    voters: tuple[int, ...] = ()
    """The controllers of the quorum, empty if the response does not name them."""

    @property
    def address(self) -> Address | None:
        """The address of the leader, or None if the response has none."""
        return self.addresses.get(self.leader_id)


@dataclass(frozen=True, slots=True)
class FetchResult:
    """The response to a Fetch of the metadata log. ``error_code`` is Kafka's; offsets of -1 are unknown."""

    error_code: int
    leader: QuorumLeader
    high_watermark: int = -1
    diverging: tuple[int, int] | None = None
    """The largest epoch of the leader's log that is not above the requested one, and its end offset."""
    snapshot_id: SnapshotId | None = None
    records: bytes = b""


@dataclass(frozen=True, slots=True)
class SnapshotPart:
    """The response to a FetchSnapshot: bytes of a snapshot of ``size`` bytes from ``position`` on."""

    error_code: int
    leader: QuorumLeader
    snapshot_id: SnapshotId
    size: int
    position: int
    content: bytes


def fetch(node: NodeConnection, leader_epoch: int, offset: int, last_epoch: int, wait_ms: int) -> FetchResult:
    """Fetch records from ``offset`` on, after a record of ``last_epoch``. Raises WireError for another response."""
    partition = {
        "partition": 0,
        "current_leader_epoch": leader_epoch,
        "fetch_offset": offset,
        "last_fetched_epoch": last_epoch,
        "log_start_offset": -1,
        "partition_max_bytes": FETCH_BYTES,
    }
    response = node.ask(
        FETCH,
        {
            "replica_id": _NO_REPLICA,
            "replica_state": {"replica_id": _NO_REPLICA, "replica_epoch": -1},
            "max_wait": wait_ms,
            "min_bytes": 1,
            "max_bytes": FETCH_BYTES,
            "session_id": 0,
            "session_epoch": -1,
            "topics": [{"topic": TOPIC, "topic_id": TOPIC_ID, "partitions": [partition]}],
            "forgotten_topics_data": [],
            "rack_id": "",
        },
    )
    if response["error_code"]:
        return FetchResult(response["error_code"], QuorumLeader())
    content = only_partition("Fetch", response["responses"], "partition_index")
    diverging, snapshot = _tagged(content, "diverging_epoch"), _tagged(content, "snapshot_id")
    has_diverged = diverging.get("epoch", -1) >= 0 and diverging.get("end_offset", -1) >= 0
    needs_snapshot = snapshot.get("end_offset", -1) >= 0 and snapshot.get("epoch", -1) >= 0
    return FetchResult(
        content["error_code"],
        _leader(content, response),
        content["high_watermark"],
        (diverging["epoch"], diverging["end_offset"]) if has_diverged else None,
        SnapshotId(snapshot["end_offset"], snapshot["epoch"]) if needs_snapshot else None,
        content["records"] or b"",
    )


def fetch_snapshot(node: NodeConnection, leader_epoch: int, snapshot_id: SnapshotId, position: int) -> SnapshotPart:
    """Fetch a part of a snapshot from byte ``position`` on. Raises WireError for another response."""
    partition = {
        "partition": 0,
        "current_leader_epoch": leader_epoch,
        "position": position,
        "snapshot_id": {"end_offset": snapshot_id.offset, "epoch": snapshot_id.epoch},
    }
    response = node.ask(
        FETCH_SNAPSHOT,
        {
            "replica_id": _NO_REPLICA,
            "max_bytes": SNAPSHOT_PART_BYTES,
            "topics": [{"name": TOPIC, "partitions": [partition]}],
        },
    )
    if response["error_code"]:
        return SnapshotPart(response["error_code"], QuorumLeader(), snapshot_id, 0, 0, b"")
    content = only_partition("FetchSnapshot", response["topics"], "index")
    response_id = content["snapshot_id"]
    return SnapshotPart(
        content["error_code"],
        _leader(content, response),
        SnapshotId(response_id["end_offset"], response_id["epoch"]),
        content["size"],
        content["position"],
        content["unaligned_records"] or b"",
    )


def describe_quorum(node: NodeConnection) -> QuorumLeader:
    """The leader as a broker or controller knows it. Raises WireError for an error response."""
    response = node.ask(DESCRIBE_QUORUM, {"topics": [{"topic_name": TOPIC, "partitions": [{"partition_index": 0}]}]})
    if response["error_code"]:
        raise WireError(f"DescribeQuorum: found {error_of(response['error_code']).name}, expected the quorum's leader")
    content = only_partition("DescribeQuorum", response["topics"], "partition_index")
    if content["error_code"]:
        raise WireError(f"DescribeQuorum: found {error_of(content['error_code']).name}, expected the quorum's leader")
    addresses = {
        member["node_id"]: (member["listeners"][0]["host"], member["listeners"][0]["port"])
        for member in response.get("nodes") or ()
        if member["listeners"]
    }
    voters = tuple(voter["replica_id"] for voter in content["current_voters"])
    return QuorumLeader(content["leader_id"], content["leader_epoch"], addresses, voters)


def cluster_id(node: NodeConnection) -> str | None:
    """The id of the cluster. None if the node cannot name it."""
    if (version := node.version(DESCRIBE_CLUSTER)) is None or version < 1:
        return None
    response = node.ask(DESCRIBE_CLUSTER, {"endpoint_type": _CONTROLLERS})
    return None if response["error_code"] else response["cluster_id"] or None


def _leader(content: Mapping[str, Any], response: Mapping[str, Any]) -> QuorumLeader:
    current_leader = _tagged(content, "current_leader")
    addresses = {
        endpoint["node_id"]: (endpoint["host"], endpoint["port"]) for endpoint in response.get("node_endpoints") or ()
    }
    return QuorumLeader(current_leader.get("leader_id", -1), current_leader.get("leader_epoch", -1), addresses)


def _tagged(content: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """A struct in a tagged field. Empty in versions without it."""
    value: Mapping[str, Any] = content.get(name, {})
    return value
