"""Requests to leaders and coordinators, which the controller never is (``wire.md`` section 18).

The response makes a client look for the right node. Where a client queries every node, the response is empty.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

from kframe.plugin import ErrorCode
from kframe_kafka_wire.apis.calls import Call, RequestError
from kframe_kafka_wire.apis.refusals import NO_OFFSET, added, fetched, partitions
from kframe_kafka_wire.protocol.codec import Fields

Handler: TypeAlias = Callable[[Call], Awaitable[Fields]]
"""Returns the body of the response to a request. Raises RequestError for an error response."""

_NOT_COORDINATOR: Final = {"error_code": ErrorCode.NOT_COORDINATOR}


def refused(code: ErrorCode, message: str | None = None) -> Handler:
    """A handler that refuses the whole request, so that a client looks for the leader or coordinator."""

    async def respond(call: Call) -> Fields:
        raise RequestError(code, message)

    return respond


async def fetch(call: Call) -> Fields:
    """NOT_LEADER_OR_FOLLOWER for each partition in every version, without a fetch session."""
    return {"responses": fetched(call.body["topics"], {"error_code": ErrorCode.NOT_LEADER_OR_FOLLOWER})}


async def offset_fetch(call: Call) -> Fields:
    """NOT_COORDINATOR for each group. Versions without groups have it for each partition, too."""
    if "groups" in call.body:
        raise RequestError(ErrorCode.NOT_COORDINATOR)
    entries = {**_NOT_COORDINATOR, **NO_OFFSET}
    return {
        **_NOT_COORDINATOR,
        "topics": partitions(call.body["topics"] or (), entries, request_field="partition_indexes"),
    }


async def add_partitions(call: Call) -> Fields:
    """NOT_COORDINATOR for each partition, also for several transactions."""
    if "transactions" not in call.body:
        raise RequestError(ErrorCode.NOT_COORDINATOR)
    results = [
        {
            "transactional_id": each["transactional_id"],
            "topic_results": added(each["topics"], ErrorCode.NOT_COORDINATOR),
        }
        for each in call.body["transactions"]
    ]
    return {"results_by_transaction": results}


async def describe_log_dirs(call: Call) -> Fields:
    """An empty log directory. AdminClient would take an empty list for a refusal."""
    return {"results": [{"error_code": 0, "log_dir": "none", "topics": (), "total_bytes": -1, "usable_bytes": -1}]}


async def empty_response(call: Call) -> Fields:
    """An empty response without error."""
    return {}
