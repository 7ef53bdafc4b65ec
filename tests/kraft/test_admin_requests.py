"""Requests of administrators: repeated, unknown and forbidden names, with the responses of Kafka's ControllerApis."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final
from uuid import UUID, uuid5

import pytest

from kframe.core.kraft import controller_apis
from kframe.core.kraft.configuration.configs import KraftConfigChange, KraftConfigOperation
from kframe.core.kraft.context import KraftContext
from kframe.core.kraft.controller_result import ControllerResult, RequestRefused
from kframe.core.kraft.topics.topic_requests import PARTITIONS_MAX, CreatableTopic, CreatePartitionsTopic
from kframe.model.kraft.ids import ResourceType
from tests.whatif.kraft_samples import TOPIC_ID, new_engine, partition

UNKNOWN_ID: Final = UUID(int=7)


def context() -> KraftContext:
    """Topic t has a partition."""
    return new_engine([partition(0, (1, 2), (1, 2))]).context


def creating(*names: str, count: int = 1) -> Callable[[KraftContext], ControllerResult[Any]]:
    requested = [CreatableTopic(name, count, 1) for name in names]
    return lambda context: controller_apis.create_topics(context, requested, lambda name: uuid5(TOPIC_ID, name))


def growing(*topics: tuple[str, int]) -> Callable[[KraftContext], ControllerResult[Any]]:
    return lambda context: controller_apis.create_partitions(
        context, [CreatePartitionsTopic(*topic) for topic in topics]
    )


def deleting(*names: str, ids: tuple[UUID, ...] = ()) -> Callable[[KraftContext], ControllerResult[Any]]:
    return lambda context: controller_apis.delete_topics(context, names, ids)


#: Name, request, and then the errors and the number of records.
REQUESTS: Final[tuple[tuple[str, Callable[[KraftContext], ControllerResult[Any]], dict[object, str], int], ...]] = (
    ("topics", creating("a", "b"), {"a": "NONE", "b": "NONE"}, 4),
    ("a repeated topic", creating("a", "b", "a"), {"a": "INVALID_REQUEST", "b": "NONE"}, 2),
    (
        "the metadata topic",
        creating("__cluster_metadata", "b"),
        {"__cluster_metadata": "INVALID_REQUEST", "b": "NONE"},
        2,
    ),
    ("the metadata topic twice", creating(*["__cluster_metadata"] * 2), {"__cluster_metadata": "INVALID_REQUEST"}, 0),
    ("partitions", growing(("t", 3), ("x", 2)), {"t": "NONE", "x": "UNKNOWN_TOPIC_OR_PARTITION"}, 2),
    ("partitions of a repeated topic", growing(("t", 3), ("t", 4)), {"t": "INVALID_REQUEST"}, 0),
    ("no more partitions", growing(("t", 1)), {"t": "INVALID_PARTITIONS"}, 0),
    ("a deletion", deleting("t", "x"), {"t": "NONE", "x": "UNKNOWN_TOPIC_OR_PARTITION"}, 1),
    ("a deletion twice", deleting("t", "t"), {"t": "INVALID_REQUEST"}, 0),
    ("a deletion by id", deleting(ids=(TOPIC_ID,)), {"t": "NONE"}, 1),
    ("a deletion by a repeated id", deleting(ids=(TOPIC_ID, TOPIC_ID)), {TOPIC_ID: "INVALID_REQUEST"}, 0),
    ("a deletion by an unknown id", deleting(ids=(UNKNOWN_ID,)), {UNKNOWN_ID: "UNKNOWN_TOPIC_ID"}, 0),
    ("a deletion by name and id", deleting("t", ids=(TOPIC_ID,)), {"t": "INVALID_REQUEST"}, 0),
)


@pytest.mark.parametrize("name, request_of, results, records", REQUESTS, ids=[row[0] for row in REQUESTS])
def test_each_topic_of_request_has_result(
    name: str, request_of: Callable[[KraftContext], ControllerResult[Any]], results: dict[object, str], records: int
) -> None:
    result = request_of(context())
    assert {
        topic_result.topic or topic_result.topic_id: topic_result.error.name for topic_result in result.response
    } == results
    assert all(topic_result.message for topic_result in result.response if topic_result.error.name != "NONE")
    assert len(result.records) == records


@pytest.mark.parametrize("request_of", [creating("a", count=PARTITIONS_MAX + 1), growing(("t", PARTITIONS_MAX + 2))])
def test_request_with_too_many_partitions_is_refused(
    request_of: Callable[[KraftContext], ControllerResult[Any]],
) -> None:
    with pytest.raises(RequestRefused, match="POLICY_VIOLATION"):
        request_of(context())


def test_repeated_config_resource_is_refused() -> None:
    def change(name: str) -> KraftConfigChange:
        operation: Any = (KraftConfigOperation.SET, "5")
        return KraftConfigChange((ResourceType.TOPIC, name), {"retention.ms": operation})

    changes = [change("t"), change("x"), change("x")]
    result = controller_apis.alter_configs(context(), changes)
    assert {topic_result.resource[1]: topic_result.error.name for topic_result in result.response} == {
        "t": "NONE",
        "x": "INVALID_REQUEST",
    }
    assert len(result.records) == 1
    validated = controller_apis.alter_configs(context(), changes, validate_only=True)
    assert (validated.response, validated.records) == (result.response, [])
