"""The quorum's protocol on the leader of one voter: Fetch, FetchSnapshot, DescribeQuorum, votes and epochs."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kframe_kafka_wire.access.session import ClientSession
from kframe_kafka_wire.protocol.codec import Fields, Header
from kframe_kafka_wire.protocol.metadata_log import TOPIC

from kframe.plugin import ErrorCode
from kframe_kraft.apis import snapshots
from kframe_kraft.apis.fetching import Fetching, now_ms
from kframe_kraft.apis.raft_requests import (
    LeaderName,
    describe_response,
    epoch_response,
    fetch_of,
    fetch_response,
    only,
    whole_response,
)
from kframe_kraft.quorum import Leadership, ReadableLog, Role, SoleVoter

FETCH: Final = 1
FETCH_SNAPSHOT: Final = 59
#: Fetch before this version has no leader epochs of replicas.
_QUORUM_FETCH: Final = 12


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """``endpoint`` returns the node's host and port as brokers are to reach it. ``directory`` has the snapshots; None:
    there are none."""

    cluster_id: str
    endpoint: Callable[[], tuple[str, int]]
    directory: Path | None = None


class QuorumApis:
    """Answers for one node."""

    def __init__(self, quorum: SoleVoter, log: ReadableLog, fetching: Fetching, node: NodeFacts) -> None:
        self._quorum = quorum
        self._log = log
        self._fetching = fetching
        self._node = node

    async def fetch(self, header: Header, body: Fields, session: ClientSession) -> Fields:
        """Fetch. Raises Refused for a request that no replica of the metadata log sends."""
        cluster_id = body.get("cluster_id")
        if cluster_id is not None and cluster_id != self._node.cluster_id:
            return whole_response(header.api_version, ErrorCode.INCONSISTENT_CLUSTER_ID)
        if header.api_version < _QUORUM_FETCH:
            return whole_response(header.api_version, ErrorCode.UNSUPPORTED_VERSION)
        answer = await self._fetching.answer(fetch_of(header.api_version, body))
        return fetch_response(header.api_version, answer, self._leader())

    async def fetch_snapshot(self, header: Header, body: Fields, session: ClientSession) -> Fields:
        """FetchSnapshot."""
        if body.get("cluster_id") not in (None, self._node.cluster_id):
            return {"error_code": ErrorCode.INCONSISTENT_CLUSTER_ID, "topics": []}
        partition = only(body["topics"], {"name": TOPIC}, "partition")
        refusal = self._quorum.refusal(partition["current_leader_epoch"])
        directory = self._node.directory
        return await asyncio.to_thread(snapshots.fetch_snapshot, body, directory, self._leader(), refusal)

    async def describe_quorum(self, header: Header, body: Fields, session: ClientSession) -> Fields:
        """DescribeQuorum."""
        only(body["topics"], {"topic_name": TOPIC}, "partition_index")
        leadership, leader = self._quorum.leadership, self._leader()
        if not isinstance(leadership, Leadership):
            return epoch_response(ErrorCode.NOT_LEADER_OR_FOLLOWER, leader, current_voters=[], observers=[])
        return describe_response(self._quorum, leadership, leader, self._log.end, (now_ms(), _wall_ms()))

    async def vote(self, header: Header, body: Fields, session: ClientSession) -> Fields:
        """Vote: the only voter grants none. A candidate of a later epoch cannot be a voter."""
        partition = only(body["topics"], {"topic_name": TOPIC}, "partition_index")
        is_older = partition["candidate_epoch"] < self._quorum.epoch
        error = ErrorCode.FENCED_LEADER_EPOCH if is_older else ErrorCode.INCONSISTENT_VOTER_SET
        return epoch_response(error, self._leader(), vote_granted=False)

    async def begin_or_end_epoch(self, header: Header, body: Fields, session: ClientSession) -> Fields:
        """BeginQuorumEpoch and EndQuorumEpoch: there is no other leader."""
        partition = only(body["topics"], {"topic_name": TOPIC}, "partition_index")
        is_older = partition["leader_epoch"] < self._quorum.epoch
        error = ErrorCode.FENCED_LEADER_EPOCH if is_older else ErrorCode.INCONSISTENT_VOTER_SET
        return epoch_response(error, self._leader())

    def _leader(self) -> LeaderName:
        if self._quorum.role is not Role.LEADER:
            return LeaderName(self._quorum.epoch)
        return LeaderName(self._quorum.epoch, self._quorum.node.node_id, *self._node.endpoint())


def _wall_ms() -> int:
    return time.time_ns() // 1_000_000
