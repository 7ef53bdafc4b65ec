"""What if this topic were created? Its placement as Kafka's automatic assignment does it, or as given."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from kframe.core.admin.topic_requests import TopicsResponse
from kframe.errors import ErrorCode, InputError
from kframe.model.admin import NewTopic
from kframe.model.events import CreateTopicsRequested
from kframe.model.lists import distinct_values
from kframe.whatif.outcome import ControllerResponse, Operation, Outcome, Verb
from kframe.whatif.topic_results import TopicResult, TopicStatus
from kframe.whatif.whatif import WhatIf
from kframe.whatif.zookeeper_player import PATIENCE_MS, ZookeeperPlayer


def create(
    study: WhatIf, name: str, partitions: int = -1, replication_factor: int = -1, *,
    assignments: Sequence[Sequence[int]] | None = None, seed: int = 0,
) -> Outcome:  # fmt: skip
    """See ``WhatIf.create``."""
    return study.create(name, partitions, replication_factor, assignments=assignments, seed=seed)


def play_creation(
    study: ZookeeperPlayer, name: str, partitions: int, replication_factor: int, *,
    assignments: Sequence[Sequence[int]] | None, seed: int,
) -> Outcome:  # fmt: skip
    """Create a topic in ZooKeeper mode; ``seed`` draws the two numbers that Kafka draws to place replicas."""
    _check_brokers(study, assignments or ())
    lists = None if assignments is None else tuple((number, tuple(ids)) for number, ids in enumerate(assignments))
    topic = NewTopic(name, partitions, replication_factor, lists)
    count = topic.counts(study.config)[0] if lists is None else len(lists)
    results: list[TopicResult] = []

    def act() -> ControllerResponse:
        start, shift = _drawn(seed, len(study.registered))
        response: TopicsResponse = study.call(
            lambda token: CreateTopicsRequested((topic,), PATIENCE_MS, start_index=start, shift=shift, token=token)
        )
        results.append(_topic_result(study, name, response.codes[name]))
        return answer_of(response)

    outcome = study.play(Operation(Verb.CREATE, partitions=count, topics=(name,)), [("the topic is created", act)])
    return replace(outcome, topics=tuple(results))


def answer_of(response: TopicsResponse) -> ControllerResponse:
    """What was answered about topics. Those with an error are named."""
    codes = np.array(list(response.codes.values()), np.int16)
    wrong = tuple(name for name, code in response.codes.items() if code is not ErrorCode.NONE)
    return ControllerResponse(ErrorCode.NONE, np.empty(0, np.int32), codes, wrong, "topics")


def _check_brokers(study: ZookeeperPlayer, assignments: Sequence[Sequence[int]]) -> None:
    known = study.cluster.brokers
    for number, replicas in enumerate(assignments):
        for broker_id in replicas:
            if broker_id not in known:
                raise InputError(f"assignments[{number}]", f"broker {broker_id}", "brokers that the snapshot knows")


def _drawn(seed: int, brokers: int) -> tuple[int, int]:
    """Start index and shift, both below the number of brokers."""
    drawn = random.Random(seed)
    most = max(brokers, 1)
    return drawn.randrange(most), drawn.randrange(most)


def _topic_result(study: ZookeeperPlayer, name: str, error: ErrorCode) -> TopicResult:
    """A topic exists once it is stored, even if a partition of it has no leader. Then the request times out."""
    cluster = study.cluster
    index = cluster.topics.find(name)
    if index is None or error not in (ErrorCode.NONE, ErrorCode.REQUEST_TIMED_OUT):
        return TopicResult(name, TopicStatus.REFUSED, error, 0, 0)
    p, rows = cluster.partitions, cluster.topics.rows_of(index)
    down = distinct_values(p.replica[p.slots_of(rows[p.leader[rows] < 0])])
    status = TopicStatus.WAITING if len(down) else TopicStatus.COMPLETED
    waiting_for = tuple(sorted(cluster.brokers.ids_of(down)))
    return TopicResult(name, status, error, len(rows), int(p.replica_count[rows].sum()), waiting_for)
