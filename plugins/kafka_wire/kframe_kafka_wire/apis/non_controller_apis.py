"""Requests to leaders and coordinators, which the controller never is (``wire.md`` section 18).

The answer makes a client look for the right node. Where a client queries every node for its part, the answer is empty.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from kframe.plugin import ErrorCode
from kframe_kafka_wire.acls import Operation
from kframe_kafka_wire.apis.refusals import added, fetched, partitions, refusal
from kframe_kafka_wire.calls import Call

Fields = Mapping[str, Any]
Handler = Callable[[Call], Awaitable[Fields | None]]
_NOT_LEADER: Final = {"error_code": ErrorCode.NOT_LEADER_OR_FOLLOWER}
_NOT_COORDINATOR: Final = {"error_code": ErrorCode.NOT_COORDINATOR}


async def refer_to_leader(call: Call) -> Fields | None:
    """NOT_LEADER_OR_FOLLOWER for each partition, so that the client looks for the leaders."""
    return refusal(call.header.api_key, call.version, call.body, ErrorCode.NOT_LEADER_OR_FOLLOWER, None)


async def refer_to_coordinator(call: Call) -> Fields | None:
    """NOT_COORDINATOR for each item, so that the client looks for the coordinator."""
    return refusal(call.header.api_key, call.version, call.body, ErrorCode.NOT_COORDINATOR, None)


async def fetch(call: Call) -> Fields:
    """NOT_LEADER_OR_FOLLOWER for each partition in every version, without a fetch session."""
    return {"responses": fetched(call.body["topics"], _NOT_LEADER), "session_id": 0}


async def offset_fetch(call: Call) -> Fields | None:
    """NOT_COORDINATOR for each group. Versions without groups have it for each partition, too."""
    answer = await refer_to_coordinator(call)
    if answer is None or "groups" in call.body:
        return answer
    nothing = {"committed_offset": -1, "metadata": ""}
    return {**answer, "topics": partitions(call.body["topics"] or (), _NOT_COORDINATOR, "partition_indexes", **nothing)}


async def add_partitions(call: Call) -> Fields | None:
    """NOT_COORDINATOR for each partition, also for several transactions."""
    if "transactions" not in call.body:
        return await refer_to_coordinator(call)
    results = [
        {
            "transactional_id": each["transactional_id"],
            "topic_results": added(each["topics"], ErrorCode.NOT_COORDINATOR),
        }
        for each in call.body["transactions"]
    ]
    return {"results_by_transaction": results}


async def txn_markers(call: Call) -> Fields | None:
    """NOT_LEADER_OR_FOLLOWER for each partition. Only brokers send this request."""
    call.require(Operation.CLUSTER_ACTION)
    return await refer_to_leader(call)


async def alter_replica_log_dirs(call: Call) -> Fields | None:
    """REPLICA_NOT_AVAILABLE for each partition."""
    call.require(Operation.ALTER)
    return refusal(call.header.api_key, call.version, call.body, ErrorCode.REPLICA_NOT_AVAILABLE, None)


async def describe_log_dirs(call: Call) -> Fields:
    """An empty log directory. AdminClient would take an empty list for a refusal."""
    call.require(Operation.DESCRIBE)
    return {"results": [{"error_code": 0, "log_dir": "none", "topics": (), "total_bytes": -1, "usable_bytes": -1}]}


async def nothing(call: Call) -> Fields:
    """An empty answer without error."""
    return {}


#: Handlers by API key.
NON_CONTROLLER_APIS: Final[Mapping[int, Handler]] = {
    0: refer_to_leader, 1: fetch, 2: refer_to_leader, 8: refer_to_coordinator, 9: offset_fetch,
    11: refer_to_coordinator, 12: refer_to_coordinator, 13: refer_to_coordinator, 14: refer_to_coordinator,
    15: refer_to_coordinator, 16: nothing, 21: refer_to_leader, 23: refer_to_leader, 24: add_partitions,
    25: refer_to_coordinator, 26: refer_to_coordinator, 27: txn_markers, 28: refer_to_coordinator,
    34: alter_replica_log_dirs, 35: describe_log_dirs, 42: refer_to_coordinator, 47: refer_to_coordinator,
    61: refer_to_leader, 65: refer_to_coordinator, 66: nothing,
}  # fmt: skip
