"""The error response to a whole request, in the format of its API (Kafka 3.9 ``AbstractRequest.getErrorResponse``).

Where a response has items, it repeats the error code for each item of the request. Clients would take a missing item
for a bug of the broker.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

Fields = Mapping[str, Any]
#: Returns the body of the response for a version, a request body, and the fields of the error.
Shape = Callable[[int, Fields, Fields], Fields]
#: The first versions with another format of errors. Fetch has no partitions, LeaderAndIsr names topics by id,
#: OffsetFetch and AddPartitionsToTxn have a single code, and JoinGroup has a null protocol.
_FETCH_WHOLE, _LEADER_BY_ID, _OFFSETS_WHOLE, _TXN_WHOLE, _PROTOCOL_NULL = 13, 5, 2, 4, 7


def refusal(api_key: int, version: int, body: Fields, code: int, message: str | None) -> Fields | None:
    """The body of the error response; None where the client expects no response."""
    error: dict[str, Any] = {"error_code": code, "error_message": message}
    if api_key == _PRODUCE and body["acks"] == 0:
        return None
    return _SHAPES.get(api_key, _whole)(version, body, error)


def partitions(topics: Iterable[Fields], error: Fields, listed: str = "partitions", **more: Any) -> list[Fields]:
    """The error for each partition of each topic, where request and response have the topic's ``name``."""
    return [
        {
            "name": topic["name"],
            "partitions": [{"partition_index": index_of(each), **error, **more} for each in topic[listed]],
        }
        for topic in topics
    ]


def index_of(partition: Any) -> int:
    """The index of a partition, which is a number or a struct."""
    return int(partition if isinstance(partition, int) else partition["partition_index"])


def _whole(version: int, body: Fields, error: Fields) -> Fields:
    return error


def _each(listed: str, answered: str, *names: str) -> Shape:
    """The error for each element of ``listed``, identified by its fields ``names``."""

    def shape(version: int, body: Fields, error: Fields) -> Fields:
        return {answered: [{**{name: each[name] for name in names if name in each}, **error} for each in body[listed]]}

    return shape


def _each_name(listed: str, answered: str, name: str) -> Shape:
    """The error for each string in ``listed``."""

    def shape(version: int, body: Fields, error: Fields) -> Fields:
        return {answered: [{name: each, **error} for each in body[listed]]}

    return shape


def _each_partition(listed: str = "partitions", **more: Any) -> Shape:
    """The error for each partition of each topic."""

    def shape(version: int, body: Fields, error: Fields) -> Fields:
        return {"topics": partitions(body["topics"], error, listed, **more)}

    return shape


def _produce(version: int, body: Fields, error: Fields) -> Fields:
    nothing = {"base_offset": -1, "log_append_time": -1}
    responses = [
        {
            "name": topic["name"],
            "partition_responses": [{"index": each["index"], **error, **nothing} for each in topic["partition_data"]],
        }
        for topic in body["topic_data"]
    ]
    return {"responses": responses}


def fetched(topics: Iterable[Fields], error: Fields) -> list[Fields]:
    """The error for each requested partition of a fetch."""
    nothing = {**error, "high_watermark": -1, "records": None, "aborted_transactions": ()}
    return [
        {
            "topic": topic.get("topic", ""),
            "topic_id": topic.get("topic_id"),
            "partitions": [{"partition_index": each["partition"], **nothing} for each in topic["partitions"]],
        }
        for topic in topics
    ]


def _fetch(version: int, body: Fields, error: Fields) -> Fields:
    responses = fetched(body["topics"], error) if version < _FETCH_WHOLE else []
    return {**error, "session_id": body.get("session_id", 0), "responses": responses}


def _metadata(version: int, body: Fields, error: Fields) -> Fields:
    topics = [
        {**error, "name": each["name"] or "", "topic_id": each.get("topic_id"), "is_internal": False}
        for each in body["topics"] or ()
    ]
    return {"topics": topics, "controller_id": -1}


def _leader_and_isr(version: int, body: Fields, error: Fields) -> Fields:
    if version >= _LEADER_BY_ID:
        topics = [
            {
                "topic_id": topic["topic_id"],
                "partition_errors": [
                    {"partition_index": each["partition_index"], **error} for each in topic["partition_states"]
                ],
            }
            for topic in body["topic_states"]
        ]
        return {**error, "topics": topics}
    return {**error, "partition_errors": _partition_errors(body, "ungrouped_partition_states", error)}


def _stop_replica(version: int, body: Fields, error: Fields) -> Fields:
    return {**error, "partition_errors": _partition_errors(body, "ungrouped_partitions", error)}


def _partition_errors(body: Fields, ungrouped: str, error: Fields) -> list[Fields]:
    """Each partition with its topic name, from either format of the request."""
    named = [(each["topic_name"], each["partition_index"]) for each in body.get(ungrouped, ())]
    for topic in body.get("topic_states", ()):
        named += [(topic["topic_name"], each["partition_index"]) for each in topic["partition_states"]]
    for topic in body.get("topics", ()):
        named += [(topic["name"], index) for index in topic["partition_indexes"]]
    return [{"topic_name": topic, "partition_index": index, **error} for topic, index in named]


def _offset_fetch(version: int, body: Fields, error: Fields) -> Fields:
    if "groups" in body:
        return {"groups": [{"group_id": each["group_id"], **error} for each in body["groups"]]}
    if version >= _OFFSETS_WHOLE:
        return error
    nothing = {"committed_offset": -1, "metadata": ""}
    return {"topics": partitions(body["topics"] or (), error, "partition_indexes", **nothing)}


def _find_coordinator(version: int, body: Fields, error: Fields) -> Fields:
    nowhere = {"node_id": -1, "host": "", "port": -1, **error}
    if "coordinator_keys" in body:
        return {"coordinators": [{"key": key, **nowhere} for key in body["coordinator_keys"]]}
    return nowhere


def _join_group(version: int, body: Fields, error: Fields) -> Fields:
    return {**error, "generation_id": -1, "protocol_name": "" if version < _PROTOCOL_NULL else None}


def _init_producer_id(version: int, body: Fields, error: Fields) -> Fields:
    return {**error, "producer_id": -1, "producer_epoch": -1}


def _create_topics(version: int, body: Fields, error: Fields) -> Fields:
    return {"topics": [{"name": topic["name"], "configs": (), **error} for topic in body["topics"]]}


def _delete_topics(version: int, body: Fields, error: Fields) -> Fields:
    if "topic_names" in body:
        return {"responses": [{"name": name, **error} for name in body["topic_names"]]}
    return _each("topics", "responses", "name", "topic_id")(version, body, error)


def _epochs(version: int, body: Fields, error: Fields) -> Fields:
    topics = [
        {
            "topic": topic["topic"],
            "partitions": [
                {"partition": each["partition"], "leader_epoch": -1, "end_offset": -1, **error}
                for each in topic["partitions"]
            ],
        }
        for topic in body["topics"]
    ]
    return {"topics": topics}


def _add_partitions(version: int, body: Fields, error: Fields) -> Fields:
    if version >= _TXN_WHOLE:
        return error
    return {"results_by_topic_v3_and_below": added(body["v3_and_below_topics"], error["error_code"])}


def added(topics: Iterable[Fields], code: int) -> list[Fields]:
    """The error for each partition that a transaction adds."""
    return [
        {
            "name": topic["name"],
            "results_by_partition": [
                {"partition_index": index, "partition_error_code": code} for index in topic["partitions"]
            ],
        }
        for topic in topics
    ]


def _txn_markers(version: int, body: Fields, error: Fields) -> Fields:
    markers = [
        {
            "producer_id": marker["producer_id"],
            "topics": partitions(marker["topics"], error, "partition_indexes"),
        }
        for marker in body["markers"]
    ]
    return {"markers": markers}


def _alter_log_dirs(version: int, body: Fields, error: Fields) -> Fields:
    results = [
        {
            "topic_name": topic["name"],
            "partitions": [{"partition_index": index, **error} for index in topic["partitions"]],
        }
        for folder in body["dirs"]
        for topic in folder["topics"]
    ]
    return {"results": results}


def _token(version: int, body: Fields, error: Fields) -> Fields:
    anonymous = {"principal_type": "User", "principal_name": "ANONYMOUS"}
    requester = {f"token_requester_{key}": value for key, value in anonymous.items()}
    return {
        **error, **anonymous, **requester, "issue_timestamp": -1, "expiry_timestamp": -1, "max_timestamp": -1,
    }  # fmt: skip


def _token_time(version: int, body: Fields, error: Fields) -> Fields:
    return {**error, "expiry_timestamp": -1}


def _elect_leaders(version: int, body: Fields, error: Fields) -> Fields:
    results = [
        {
            "topic": topic["topic"],
            "partition_result": [{"partition_id": index, **error} for index in topic["partitions"]],
        }
        for topic in body["topic_partitions"] or ()
    ]
    return {**error, "replica_election_results": results}


def _alter_reassignments(version: int, body: Fields, error: Fields) -> Fields:
    return {**error, "responses": partitions(body["topics"], error)}


def _list_reassignments(version: int, body: Fields, error: Fields) -> Fields:
    return {**error, "topics": partitions(body["topics"] or (), {}, "partition_indexes")}


def _alter_scram(version: int, body: Fields, error: Fields) -> Fields:
    users = sorted({each["name"] for each in (*body["deletions"], *body["upsertions"])})
    return {"results": [{"user": user, **error} for user in users]}


def _describe_scram(version: int, body: Fields, error: Fields) -> Fields:
    return {**error, "results": [{"user": each["name"], **error} for each in body["users"] or ()]}


def _cluster(version: int, body: Fields, error: Fields) -> Fields:
    return {**error, "cluster_id": "", "controller_id": -1}


_PRODUCE: Final = 0
#: Error responses with more than the error itself.
_SHAPES: Final[Mapping[int, Shape]] = {
    0: _produce,
    1: _fetch,
    2: _each_partition(timestamp=-1, offset=-1),
    3: _metadata,
    4: _leader_and_isr,
    5: _stop_replica,
    8: _each_partition(),
    9: _offset_fetch,
    10: _find_coordinator,
    11: _join_group,
    15: _each_name("groups", "groups", "group_id"),
    19: _create_topics,
    20: _delete_topics,
    21: _each_partition(low_watermark=-1),
    22: _init_producer_id,
    23: _epochs,
    24: _add_partitions,
    27: _txn_markers,
    28: _each_partition(),
    30: _each("creations", "results"),
    31: _each("filters", "filter_results"),
    32: _each("resources", "results", "resource_type", "resource_name"),
    33: _each("resources", "responses", "resource_type", "resource_name"),
    34: _alter_log_dirs,
    37: _each("topics", "results", "name"),
    38: _token,
    39: _token_time,
    40: _token_time,
    42: _each_name("groups_names", "results", "group_id"),
    43: _elect_leaders,
    44: _each("resources", "responses", "resource_type", "resource_name"),
    45: _alter_reassignments,
    46: _list_reassignments,
    49: _each("entries", "entries", "entity"),
    50: _describe_scram,
    51: _alter_scram,
    60: _cluster,
    61: _each_partition("partition_indexes"),
    65: _each_name("transactional_ids", "transaction_states", "transactional_id"),
}
