"""Requests for topics in clusters with more brokers, racks and partitions than a simulation has. Their metadata comes
from drawn records; decisions are compared as in a simulation."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from random import Random
from typing import Final
from uuid import UUID

from kframe.plugin.kraft import ClusterMetadata, ControllerResult, RecordAndVersion, records
from kframe.plugin.kraft_controller import Heartbeats, KraftContext, RequestRefused, controller_apis, topic_requests
from verification.kraft.simulation.controller import DrawnNumbers
from verification.kraft.simulation.expected.topics import compare_creations, compare_new_partitions
from verification.kraft.simulation.image import Image
from verification.kraft.simulation.options import Options
from verification.kraft.simulation.requests import Comparison, Decided, Rule

#: Characters of racks: also some that UTF-16 has two units for, and whose codes are large.
_CHARACTERS: Final = "az09-_.Éß水\U0001f4be￿"
_FEATURES: Final = (records.BrokerFeature(name="metadata.version", min_supported_version=1, max_supported_version=40),)


class WideCluster:
    """Metadata for the rules, and the plain model of it."""

    def __init__(self, options: Options, random: Random) -> None:
        self._random = random
        self._numbers = DrawnNumbers(random)
        self._context = KraftContext(ClusterMetadata(), Heartbeats(10**9), options.kraft_settings(), self._numbers)
        self._image = Image()
        self._offset = 0
        for name, level in options.levels().items():
            self._apply(records.FeatureLevelRecord(name=name, feature_level=level), 0)
        self._register()

    def problems(self) -> Iterator[str]:
        """What is decided otherwise."""
        random = self._random
        topic = topic_requests.CreatableTopic("wide", random.randint(1, 100), random.randint(1, 7))
        ids = iter(range(100, 200))
        yield from self._compare(
            lambda context, end: controller_apis.create_topics(context, [topic], lambda name: UUID(int=next(ids))),
            partial(compare_creations, [topic], False, False),
        )
        for number in range(3):
            name, count = f"topic-{number}", self._add_topic(number)
            request = topic_requests.CreatePartitionsTopic(name, count + random.randint(1, 30))
            yield from self._compare(
                partial(_create_partitions, request), partial(compare_new_partitions, [request], False, False)
            )

    def _register(self) -> None:
        """Brokers in racks whose names have much or little in common. Some are fenced."""
        random = self._random
        count = random.choice((1, 5, 20, 40, 60, 100))
        racks = ["".join(random.choices(_CHARACTERS, k=random.randint(1, 12))) for _ in range(count)]
        racks = random.sample(racks, random.randint(1, count))
        for broker_id in random.sample(range(200), count):
            record = records.RegisterBrokerRecord(
                broker_id=broker_id,
                incarnation_id=UUID(int=broker_id + 1),
                broker_epoch=self._offset,
                end_points=(),
                features=_FEATURES,
                rack=random.choice((None, *racks)),
                fenced=random.random() < 0.3,
                log_dirs=(UUID(int=1000 + broker_id),),
            )
            self._apply(record, 1)

    def _add_topic(self, number: int) -> int:
        """A topic whose partitions differ, of which some have changed. Returns how many it has."""
        random, topic_id = self._random, UUID(int=500 + number)
        self._apply(records.TopicRecord(name=f"topic-{number}", topic_id=topic_id), 0)
        count = random.randint(1, 100)
        brokers = sorted(self._image.brokers)
        for partition in range(count):
            replicas = tuple(random.sample(brokers, random.randint(1, min(4, len(brokers)))))
            record = records.PartitionRecord(
                partition_id=partition,
                topic_id=topic_id,
                replicas=replicas,
                isr=replicas,
                removing_replicas=(),
                adding_replicas=(),
                directories=tuple(self._image.default_directory(each) for each in replicas),
                leader=replicas[0],
                leader_epoch=0,
                partition_epoch=0,
            )
            self._apply(record, 0)
            if random.random() < 0.5 / count:
                self._apply(records.PartitionChangeRecord(partition_id=partition, topic_id=topic_id, leader=-1), 0)
        return count

    def _apply(self, record: records.MetadataRecord, version: int) -> None:
        self._context.apply(RecordAndVersion(record, version), self._offset)
        self._image.apply(record)
        self._image.soft.follow(record, self._offset)
        self._offset += 1

    def _compare(self, rule: Rule, comparison: Comparison) -> Iterator[str]:
        self._numbers.draws.clear()
        decided: Decided
        try:
            decided = rule(self._context, self._offset)
        except RequestRefused as refusal:
            decided = refusal
        self._image.soft.draws = self._numbers.draws
        problem = comparison(self._image, self._offset, decided)
        if problem is not None:
            yield f"K10: with {len(self._image.brokers)} brokers {problem}"


def _create_partitions(
    request: topic_requests.CreatePartitionsTopic, context: KraftContext, end: int
) -> ControllerResult[list[topic_requests.CreatableTopicResult]]:
    return controller_apis.create_partitions(context, [request])
