"""The error response to a whole request, in the format of its API (Kafka 3.9 ``AbstractRequest.getErrorResponse``).

Where a response has items, it repeats the error code for each item of the request. Clients would take a missing item
for a bug of the broker. A response may have more fields than its version: the encoder ignores them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from kframe_kafka_wire.protocol.codec import Fields

#: Returns the body of the response for a version, a request body, and the fields of the error.
ErrorFormat = Callable[[int, Fields, Fields], Fields]
#: The first versions with another format of errors. Fetch has no partitions, LeaderAndIsr names topics by id,
#: OffsetFetch and AddPartitionsToTxn have a single code, and JoinGroup has a null protocol.
_FETCH_WHOLE, _LEADER_BY_ID, _OFFSETS_WHOLE, _TXN_WHOLE, _PROTOCOL_NULL = 13, 5, 2, 4, 7
NO_FIELDS: Final[Fields] = {}
NO_OFFSET: Final[Fields] = {"committed_offset": -1, "metadata": ""}


def partitions(
    topics: Iterable[Fields],
    fields: Fields,
    *,
    topic: str = "name",
    request_field: str = "partitions",
    response_field: str = "partitions",
    index: str = "partition_index",
) -> list[Fields]:
    """``fields`` for each partition of each topic. The names are those of the topic, of both lists, and of the index.

    A partition in the request is a number or a struct.
    """
    return [
        {
            topic: entry[topic],
            response_field: [
                {index: partition if isinstance(partition, int) else partition[index], **fields}
                for partition in entry[request_field]
            ],
        }
        for entry in topics
    ]


def plain(version: int, body: Fields, error: Fields) -> Fields:
    """The error alone."""
    return error


def fields(**extra_fields: Any) -> ErrorFormat:
    """The error and further fields."""
    return lambda version, body, error: {**error, **extra_fields}


def each_entry(request_field: str, response_field: str, *names: str, **extra_fields: Any) -> ErrorFormat:
    """The error for each element of ``request_field``, a struct with the key fields ``names``, or a string."""

    def entry(element: Any) -> Fields:
        if isinstance(element, str):
            return {names[0]: element}
        return {name: element[name] for name in names if name in element}

    return lambda version, body, error: {
        **error,
        response_field: [{**entry(each), **error, **extra_fields} for each in body[request_field]],
    }


def each_partition(
    requested: str = "topics", response: str = "topics", /, extra_fields: Fields = NO_FIELDS, **names: str
) -> ErrorFormat:
    """The error and ``extra_fields`` for each partition of each topic, with the ``names`` of ``partitions``."""
    return lambda version, body, error: {
        **error,
        response: partitions(body[requested] or (), {**error, **extra_fields}, **names),
    }


def fetched(topics: Iterable[Fields], error: Fields) -> list[Fields]:
    """The error for each requested partition of a fetch."""
    no_records = {**error, "high_watermark": -1, "records": None, "aborted_transactions": ()}
    return [
        {
            "topic": topic.get("topic", ""),
            "topic_id": topic.get("topic_id"),
            "partitions": [{"partition_index": each["partition"], **no_records} for each in topic["partitions"]],
        }
        for topic in topics
    ]


def fetch(version: int, body: Fields, error: Fields) -> Fields:
    """Fetch."""
    responses = fetched(body["topics"], error) if version < _FETCH_WHOLE else []
    return {**error, "session_id": body.get("session_id", 0), "responses": responses}


def metadata(version: int, body: Fields, error: Fields) -> Fields:
    """Metadata."""
    topics = [
        {**error, "name": each["name"] or "", "topic_id": each.get("topic_id"), "is_internal": False}
        for each in body["topics"] or ()
    ]
    return {"topics": topics, "controller_id": -1}


def leader_and_isr(version: int, body: Fields, error: Fields) -> Fields:
    """LeaderAndIsr."""
    if version < _LEADER_BY_ID:
        return stop_replica(version, body, error)
    topics = partitions(
        body["topic_states"],
        error,
        topic="topic_id",
        request_field="partition_states",
        response_field="partition_errors",
    )
    return {**error, "topics": topics}


def stop_replica(version: int, body: Fields, error: Fields) -> Fields:
    """StopReplica, and LeaderAndIsr with topic names: partitions from any format of the request."""
    ungrouped = (*body.get("ungrouped_partitions", ()), *body.get("ungrouped_partition_states", ()))
    named = [(each["topic_name"], each["partition_index"]) for each in ungrouped]
    for topic in body.get("topic_states", ()):
        named += [(topic["topic_name"], each["partition_index"]) for each in topic["partition_states"]]
    for topic in body.get("topics", ()):
        named += [(topic["name"], index) for index in topic["partition_indexes"]]
    errors = [{"topic_name": topic, "partition_index": index, **error} for topic, index in named]
    return {**error, "partition_errors": errors}


def offset_fetch(version: int, body: Fields, error: Fields) -> Fields:
    """OffsetFetch."""
    if "groups" in body:
        return {"groups": [{"group_id": each["group_id"], **error} for each in body["groups"]]}
    if version >= _OFFSETS_WHOLE:
        return error
    return {"topics": partitions(body["topics"] or (), {**error, **NO_OFFSET}, request_field="partition_indexes")}


def find_coordinator(version: int, body: Fields, error: Fields) -> Fields:
    """FindCoordinator."""
    no_node = {"node_id": -1, "host": "", "port": -1, **error}
    return {**no_node, "coordinators": [{"key": key, **no_node} for key in body.get("coordinator_keys", ())]}


def join_group(version: int, body: Fields, error: Fields) -> Fields:
    """JoinGroup."""
    return {**error, "generation_id": -1, "protocol_name": "" if version < _PROTOCOL_NULL else None}


def delete_topics(version: int, body: Fields, error: Fields) -> Fields:
    """DeleteTopics."""
    if "topic_names" in body:
        return each_entry("topic_names", "responses", "name")(version, body, error)
    return each_entry("topics", "responses", "name", "topic_id")(version, body, error)


def add_partitions(version: int, body: Fields, error: Fields) -> Fields:
    """AddPartitionsToTxn."""
    if version >= _TXN_WHOLE:
        return error
    return {"results_by_topic_v3_and_below": added(body["v3_and_below_topics"], error["error_code"])}


def added(topics: Iterable[Fields], code: int) -> list[Fields]:
    """The error for each partition that a transaction adds."""
    return partitions(topics, {"partition_error_code": code}, response_field="results_by_partition")


def txn_markers(version: int, body: Fields, error: Fields) -> Fields:
    """WriteTxnMarkers."""
    markers = [
        {
            "producer_id": marker["producer_id"],
            "topics": partitions(marker["topics"], error, request_field="partition_indexes"),
        }
        for marker in body["markers"]
    ]
    return {"markers": markers}


def alter_log_dirs(version: int, body: Fields, error: Fields) -> Fields:
    """AlterReplicaLogDirs."""
    topics = ({**topic, "topic_name": topic["name"]} for folder in body["dirs"] for topic in folder["topics"])
    return {"results": partitions(topics, error, topic="topic_name")}


def list_reassignments(version: int, body: Fields, error: Fields) -> Fields:
    """ListPartitionReassignments."""
    return {**error, "topics": partitions(body["topics"] or (), {}, request_field="partition_indexes")}


def alter_scram(version: int, body: Fields, error: Fields) -> Fields:
    """AlterUserScramCredentials."""
    users = sorted({each["name"] for each in (*body["deletions"], *body["upsertions"])})
    return {"results": [{"user": user, **error} for user in users]}


def describe_scram(version: int, body: Fields, error: Fields) -> Fields:
    """DescribeUserScramCredentials."""
    return {**error, "results": [{"user": each["name"], **error} for each in body["users"] or ()]}
