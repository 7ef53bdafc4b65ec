"""What clients ask a node that is neither leader nor coordinator of anything (``spec/wire.md`` section 18).

Answered so that a client looks for the right node, or finds nothing where every node is asked for its part.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from kframe import ErrorCode
from kframe_kafka_wire.calls import Call

Fields = Mapping[str, Any]
_NOT_LEADER: Final = ErrorCode.NOT_LEADER_OR_FOLLOWER
_NOT_COORDINATOR: Final = ErrorCode.NOT_COORDINATOR
_ASK_A_BROKER: Final = "a controller does not serve this on a listener with authentication: ask a broker"


async def produce(call: Call) -> Fields | None:
    """6 for each partition; nothing at all to who wants no answer."""
    if call.body["acks"] == 0:
        return None
    responses = [
        {
            "name": topic["name"],
            "partition_responses": [
                {"index": one["index"], "error_code": _NOT_LEADER, "base_offset": -1, "log_append_time": -1}
                for one in topic["partition_data"]
            ],
        }
        for topic in call.body["topic_data"]
    ]
    return {"responses": responses}


async def fetch(call: Call) -> Fields:
    """6 for each partition, outside of any session."""
    nothing = {"error_code": _NOT_LEADER, "high_watermark": -1, "records": None, "aborted_transactions": None}
    responses = [
        {
            "topic": topic.get("topic", ""),
            "topic_id": topic.get("topic_id"),
            "partitions": [{"partition_index": one["partition"], **nothing} for one in topic["partitions"]],
        }
        for topic in call.body["topics"]
    ]
    return {"responses": responses, "session_id": 0}


async def list_offsets(call: Call) -> Fields:
    """6 for each partition."""
    return {
        "topics": _each(call.body["topics"], lambda one: one["partition_index"], _NOT_LEADER, timestamp=-1, offset=-1)
    }


async def delete_records(call: Call) -> Fields:
    """6 for each partition."""
    return {"topics": _each(call.body["topics"], lambda one: one["partition_index"], _NOT_LEADER, low_watermark=-1)}


async def offset_for_leader_epoch(call: Call) -> Fields:
    """6 for each partition."""
    topics = [
        {
            "topic": topic["topic"],
            "partitions": [
                {"error_code": _NOT_LEADER, "partition": one["partition"], "leader_epoch": -1, "end_offset": -1}
                for one in topic["partitions"]
            ],
        }
        for topic in call.body["topics"]
    ]
    return {"topics": topics}


async def describe_producers(call: Call) -> Fields:
    """6 for each partition."""
    return {"topics": _each(call.body["topics"], int, _NOT_LEADER, "partition_indexes")}


async def alter_replica_log_dirs(call: Call) -> Fields:
    """9 for each partition."""
    results = [
        {
            "topic_name": topic["name"],
            "partitions": [
                {"partition_index": one, "error_code": ErrorCode.REPLICA_NOT_AVAILABLE} for one in topic["partitions"]
            ],
        }
        for folder in call.body["dirs"]
        for topic in folder["topics"]
    ]
    return {"results": results}


async def describe_log_dirs(call: Call) -> Fields:
    """One that is empty: AdminClient takes no directory at all for a refusal."""
    return {"results": [{"error_code": 0, "log_dir": "none", "topics": (), "total_bytes": -1, "usable_bytes": -1}]}


async def offset_commit(call: Call) -> Fields:
    """16 for each partition."""
    return {"topics": _each(call.body["topics"], lambda one: one["partition_index"], _NOT_COORDINATOR)}


async def offset_fetch(call: Call) -> Fields:
    """16 for each group, and where there is no place for that for each partition."""
    if "groups" in call.body:
        return {
            "groups": [{"group_id": one["group_id"], "error_code": _NOT_COORDINATOR} for one in call.body["groups"]]
        }
    topics = _each(
        call.body["topics"] or (), int, _NOT_COORDINATOR, "partition_indexes", committed_offset=-1, metadata=""
    )
    return {"error_code": _NOT_COORDINATOR, "topics": topics}


async def offset_delete(call: Call) -> Fields:
    """16."""
    return {"error_code": _NOT_COORDINATOR}


async def group(call: Call) -> Fields:
    """16, where it stands at the top."""
    return {"error_code": _NOT_COORDINATOR, "generation_id": -1, "protocol_name": "" if call.version < 7 else None}


async def describe_groups(call: Call) -> Fields:
    """16 for each group."""
    return {"groups": [{"group_id": one, "error_code": _NOT_COORDINATOR} for one in call.body["groups"]]}


async def delete_groups(call: Call) -> Fields:
    """16 for each group."""
    return {"results": [{"group_id": one, "error_code": _NOT_COORDINATOR} for one in call.body["groups_names"]]}


async def add_partitions(call: Call) -> Fields:
    """16 for each partition."""
    if "transactions" in call.body:
        results = [
            {"transactional_id": one["transactional_id"], "topic_results": _added(one["topics"])}
            for one in call.body["transactions"]
        ]
        return {"results_by_transaction": results}
    return {"results_by_topic_v3_and_below": _added(call.body["v3_and_below_topics"])}


def _added(topics: Any) -> list[Fields]:
    return [
        {
            "name": topic["name"],
            "results_by_partition": [
                {"partition_index": one, "partition_error_code": _NOT_COORDINATOR} for one in topic["partitions"]
            ],
        }
        for topic in topics
    ]


async def txn_markers(call: Call) -> Fields:
    """6 for each partition."""
    markers = [
        {
            "producer_id": marker["producer_id"],
            "topics": _each(marker["topics"], int, _NOT_LEADER, "partition_indexes"),
        }
        for marker in call.body["markers"]
    ]
    return {"markers": markers}


async def describe_transactions(call: Call) -> Fields:
    """16 for each transaction."""
    states = [{"transactional_id": one, "error_code": _NOT_COORDINATOR} for one in call.body["transactional_ids"]]
    return {"transaction_states": states}


async def nothing(call: Call) -> Fields:
    """No error, and nothing there."""
    return {}


async def no_acls(call: Call) -> Fields:
    """54: there is no authorizer, or none that is changed here."""
    told = {"error_code": ErrorCode.SECURITY_DISABLED, "error_message": _ASK_A_BROKER}
    return told | {
        "results": [told for _ in call.body.get("creations", ())],
        "filter_results": [told for _ in call.body.get("filters", ())],
    }


async def no_tokens(call: Call) -> Fields:
    """61: no delegation tokens."""
    return {"error_code": ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED}


async def no_quotas(call: Call) -> Fields:
    """Refused entity by entity."""
    told = {"error_code": ErrorCode.UNSUPPORTED_VERSION, "error_message": _ASK_A_BROKER}
    return {"entries": [told | {"entity": one["entity"]} for one in call.body["entries"]]}


async def no_credentials(call: Call) -> Fields:
    """Refused as a whole."""
    return {"error_code": ErrorCode.UNSUPPORTED_VERSION, "error_message": _ASK_A_BROKER}


def _each(
    topics: Any, number: Callable[[Any], int], code: int, listed: str = "partitions", **more: Any
) -> list[Fields]:
    """The same code for each partition of each topic."""
    return [
        {
            "name": topic["name"],
            "partitions": [{"partition_index": number(one), "error_code": code, **more} for one in topic[listed]],
        }
        for topic in topics
    ]


Handler = Callable[[Call], Awaitable[Fields | None]]
#: API key to its answer.
STRANGERS: Final[Mapping[int, Handler]] = {
    0: produce, 1: fetch, 2: list_offsets, 8: offset_commit, 9: offset_fetch, 11: group, 12: group, 13: group,
    14: group, 15: describe_groups, 16: nothing, 21: delete_records, 23: offset_for_leader_epoch, 24: add_partitions,
    25: group, 26: group, 27: txn_markers, 28: offset_commit, 29: no_acls, 30: no_acls, 31: no_acls,
    34: alter_replica_log_dirs, 35: describe_log_dirs, 38: no_tokens, 39: no_tokens, 40: no_tokens, 41: no_tokens,
    42: delete_groups, 47: offset_delete, 48: nothing, 49: no_quotas, 50: no_credentials,
    61: describe_producers, 65: describe_transactions, 66: nothing,
}  # fmt: skip
