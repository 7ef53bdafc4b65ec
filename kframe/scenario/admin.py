"""The steps of a scenario in which a client requests topics, deletions and reassignments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

import numpy as np

from kframe.core.operations.topic_requests import ReassignmentResponse, ReassignmentsListed, TopicsResponse
from kframe.errors import ErrorCode
from kframe.model.admin import NewPartitions, NewTopic
from kframe.model.events import (
    CreatePartitionsRequested,
    CreateTopicsRequested,
    DeleteTopicsRequested,
    Event,
    ListReassignmentsRequested,
    ReassignmentRequested,
)
from kframe.model.tables import Targets
from kframe.model.topic_partitions import parse_topic_partition
from kframe.scenario.fields import Empty, split_partition
from kframe.scenario.format import config_texts
from kframe.scenario.state import ScenarioState
from kframe.scenario.step_types import CreatedTopic, CreatePartitionsStep

#: Time that a client of a scenario waits for a response.
TIMEOUT_MS: Final = 3_000


def create_topics(runner: ScenarioState, where: str, topics: tuple[CreatedTopic, ...]) -> dict[str, str]:
    """Step ``create_topics``: with replica lists, or with counts."""
    new_topics = tuple(map(_new_topic, topics))
    return _topics_request(runner, lambda token: CreateTopicsRequested(new_topics, TIMEOUT_MS, token=token))


def _new_topic(topic: CreatedTopic) -> NewTopic:
    lists = tuple(enumerate(topic.assignments)) if topic.assignments else None
    return NewTopic(topic.name, topic.partitions, topic.replication_factor, lists, config_texts(topic.config))


def create_partitions(runner: ScenarioState, where: str, content: CreatePartitionsStep) -> dict[str, str]:
    """Step ``create_partitions``: more partitions for one topic."""
    growth = NewPartitions(content.topic, content.count, content.assignments)
    return _topics_request(runner, lambda token: CreatePartitionsRequested((growth,), TIMEOUT_MS, token=token))


def delete_topics(runner: ScenarioState, where: str, names: tuple[str, ...]) -> dict[str, str]:
    """Step ``delete_topics``."""
    return _topics_request(runner, lambda token: DeleteTopicsRequested(names, TIMEOUT_MS, token=token))


def _topics_request(runner: ScenarioState, event: Callable[[int], Event]) -> dict[str, str]:
    """Send a request about topics; the response has an error by name for each topic."""
    response: TopicsResponse = runner.call(event)
    return {name: response.codes[name].name for name in sorted(response.codes)}


def read_targets(where: str, content: Mapping[str, tuple[int, ...] | None]) -> Targets:
    """``{t-0: [4, 5, 6], t-1: null}``: target replicas, null to cancel."""
    return Targets.of(
        [(parse_topic_partition(f"{where}.{name}", name), replicas) for name, replicas in content.items()]
    )


def reassign(runner: ScenarioState, where: str, content: Mapping[str, tuple[int, ...] | None]) -> dict[str, str]:
    """Step ``reassign``: begin, change or cancel reassignments."""
    targets = read_targets(where, content)
    response: ReassignmentResponse = runner.call(partial(ReassignmentRequested, targets))
    if response.error is not ErrorCode.NONE:
        return {"error": response.error.name}
    names = (f"{targets.names[targets.topic[i]]}-{int(targets.partition[i])}" for i in range(len(targets)))
    codes = dict(zip(names, (ErrorCode(int(code)).name for code in response.codes), strict=True))
    return {name: codes[name] for name in sorted(codes, key=split_partition)}


def list_reassignments(runner: ScenarioState, where: str, content: Empty) -> dict[str, Any]:
    """Step ``list_reassignments``."""
    response: ReassignmentsListed = runner.call(partial(ListReassignmentsRequested, None))
    cluster = runner.loop.controller.cluster
    entries = {}
    for row in np.sort(response.rows).tolist():
        view = cluster.view(row)
        entries[f"{view.topic}-{view.partition}"] = {
            "replicas": list(view.replicas),
            "adding_replicas": list(view.adding_replicas),
            "removing_replicas": list(view.removing_replicas),
        }
    return {name: entries[name] for name in sorted(entries, key=split_partition)}
