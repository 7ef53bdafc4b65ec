"""The steps of a scenario in which a client requests topics, deletions and reassignments."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from kframe.core.admin.topic_requests import ReassignmentResponse, ReassignmentsListed, TopicsResponse
from kframe.errors import ErrorCode, ScenarioError
from kframe.model.admin import NewPartitions, NewTopic
from kframe.model.events import (
    CreatePartitionsRequested,
    CreateTopicsRequested,
    DeleteTopicsRequested,
    ListReassignmentsRequested,
    ReassignmentRequested,
)
from kframe.model.tables import Targets
from kframe.scenario.format import Fields, config_text, is_replica_list, topic_partition
from kframe.scenario.requests import Action, by_partition

if TYPE_CHECKING:
    from kframe.scenario.runner import ScenarioRunner

#: Time that a client of a scenario waits for an answer.
TIMEOUT_MS: Final = 3_000
DEFAULT: Final = -1


def read_create_topics(where: str, argument: Any) -> Action:
    """Step ``create_topics``: with replica lists, or with counts."""
    if not isinstance(argument, list):
        raise ScenarioError(where, repr(argument), "a list of topics")
    topics = tuple(_new_topic(f"{where}[{i}]", entry) for i, entry in enumerate(argument))
    return partial(_create_topics, topics=topics)


def _new_topic(where: str, value: Any) -> NewTopic:
    fields = Fields(where, "", value)
    fields.allow("name", "assignments", "partitions", "replication_factor", "config")
    lists = fields.sequence("assignments")
    fields.expect(all(is_replica_list(replicas) for replicas in lists), "assignments", "a list of replica lists")
    config = {key: config_text(item) for key, item in fields.mapping("config").items()}
    return NewTopic(
        fields.text("name"),
        fields.whole("partitions", DEFAULT, least=-(2**31)),
        fields.whole("replication_factor", DEFAULT, least=-(2**15)),
        tuple((number, tuple(replicas)) for number, replicas in enumerate(lists)) if lists else None,
        config,
    )


def _create_topics(runner: ScenarioRunner, topics: tuple[NewTopic, ...]) -> dict[str, str]:
    response = runner.call(lambda token: CreateTopicsRequested(topics, TIMEOUT_MS, token=token))
    return _named(response)


def read_create_partitions(where: str, argument: Any) -> Action:
    """Step ``create_partitions``: more partitions for one topic."""
    fields = Fields(where, "", argument)
    fields.allow("topic", "count", "assignments")
    lists = fields.sequence("assignments")
    fields.expect(all(is_replica_list(replicas) for replicas in lists), "assignments", "a list of replica lists")
    given = tuple(tuple(replicas) for replicas in lists) if fields.get("assignments") is not None else None
    growth = NewPartitions(fields.text("topic"), fields.whole("count", least=-(2**31)), given)

    def act(runner: ScenarioRunner) -> dict[str, str]:
        return _named(runner.call(lambda token: CreatePartitionsRequested((growth,), TIMEOUT_MS, token=token)))

    return act


def read_delete_topics(where: str, argument: Any) -> Action:
    """Step ``delete_topics``."""
    if not isinstance(argument, list) or not all(isinstance(name, str) for name in argument):
        raise ScenarioError(where, repr(argument), "a list of topic names")
    names = tuple(argument)

    def act(runner: ScenarioRunner) -> dict[str, str]:
        return _named(runner.call(lambda token: DeleteTopicsRequested(names, TIMEOUT_MS, token=token)))

    return act


def read_targets(where: str, argument: Any, cancellable: bool) -> Targets:
    """``{t-0: [4, 5, 6], t-1: null}``: target replicas, null to cancel."""
    if not isinstance(argument, dict):
        raise ScenarioError(where, repr(argument), "a mapping from partitions to replica lists")
    targets = []
    for name, replicas in argument.items():
        if not is_replica_list(replicas) and not (cancellable and replicas is None):
            raise ScenarioError(f"{where}.{name}", repr(replicas), "a list of broker ids")
        targets.append((topic_partition(f"{where}.{name}", name), replicas))
    return Targets.of(targets)


def read_reassign(where: str, argument: Any) -> Action:
    """Step ``reassign``: begin, change or cancel reassignments."""
    return partial(_reassign, targets=read_targets(where, argument, cancellable=True))


def _reassign(runner: ScenarioRunner, targets: Targets) -> dict[str, str]:
    response: ReassignmentResponse = runner.call(partial(ReassignmentRequested, targets))
    if response.error is not ErrorCode.NONE:
        return {"error": response.error.name}
    names = (f"{targets.names[targets.topic[i]]}-{int(targets.partition[i])}" for i in range(len(targets)))
    codes = dict(zip(names, (ErrorCode(int(code)).name for code in response.codes), strict=True))
    return {name: codes[name] for name in sorted(codes, key=by_partition)}


def read_list_reassignments(where: str, argument: Any) -> Action:
    """Step ``list_reassignments``."""
    Fields(where, "", argument).allow()
    return _list_reassignments


def _list_reassignments(runner: ScenarioRunner) -> dict[str, Any]:
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
    return {name: entries[name] for name in sorted(entries, key=by_partition)}


def _named(response: TopicsResponse) -> dict[str, str]:
    return {name: response.codes[name].name for name in sorted(response.codes)}
