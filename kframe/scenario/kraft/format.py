"""Parsing of KRaft scenario files (``kframe.scenario/v1`` with ``controller: kraft``)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from msgspec import UNSET, Struct

from kframe.errors import ScenarioError
from kframe.model.kraft.releases import RELEASE_KEY
from kframe.model.texts import short_repr
from kframe.scenario import strict_yaml
from kframe.scenario.fields import RequestedId, Text, convert, expecting, located
from kframe.scenario.format import Step, read_text
from kframe.scenario.kraft.arguments import KraftBrokerEntry, KraftStepEntry, KraftTopicEntry, Scalar, Values

PARTITION: Final = re.compile(r".+-[0-9]{1,10}", re.DOTALL)
#: Settings of the controller that change what it decides or writes, or that recorded scenarios name.
CONFIGS: Final = frozenset(
    {
        "authorizer.class.name",
        "auto.leader.rebalance.enable",
        "broker.heartbeat.interval.ms",
        "broker.session.timeout.ms",
        "default.replication.factor",
        RELEASE_KEY,
        "leader.imbalance.check.interval.seconds",
        "metadata.log.max.record.bytes.between.snapshots",
        "metadata.max.idle.interval.ms",
        "min.insync.replicas",
        "num.partitions",
        "super.users",
        "unclean.leader.election.enable",
        "unclean.leader.election.interval.ms",
    }
)


class KraftScenarioDocument(Struct, forbid_unknown_fields=True, kw_only=True):
    """A scenario file of a KRaft cluster: the cluster, and the steps that happen to it."""

    schema: Annotated[Literal["kframe.scenario/v1"], expecting("kframe.scenario/v1")]
    controller: Literal["kraft"]
    name: Text
    steps: Annotated[list[KraftStepEntry], expecting("a list of steps")]
    features: Annotated[dict[str, int | str], expecting("a mapping from features to levels")] = {}
    config: Values = {}
    brokers: list[RequestedId | KraftBrokerEntry] = []
    topics: list[KraftTopicEntry] = []


@dataclass(frozen=True, slots=True)
class KraftScenario:
    """A whole scenario file."""

    name: str
    source: str
    features: Mapping[str, int | str]
    config: Mapping[str, Scalar]
    brokers: tuple[KraftBrokerEntry, ...]
    topics: tuple[KraftTopicEntry, ...]
    steps: tuple[Step, ...]


def read_kraft_scenario(path: str | Path) -> KraftScenario:
    """Read and check a scenario file. Raises ScenarioError naming the file and the line or field."""
    return parse_kraft_scenario(strict_yaml.load(read_text(path), str(path)), str(path))


def is_kraft(document: object) -> bool:
    """Whether the document of a scenario file is for a KRaft controller."""
    return isinstance(document, dict) and document.get("controller") == "kraft"


def parse_kraft_scenario(document: Any, source: str) -> KraftScenario:
    """Check the document of a scenario file. Raises ScenarioError naming the file and the field."""
    _check_steps(document, source)
    parsed = convert(document, KraftScenarioDocument, source)
    for key in parsed.config:
        if key not in CONFIGS:
            raise ScenarioError(located(source, "config", key), "an unknown setting", f"one of {_listed(CONFIGS)}")
    brokers = tuple(KraftBrokerEntry(id=broker) if isinstance(broker, int) else broker for broker in parsed.brokers)
    steps = tuple(_step(raw, entry) for raw, entry in zip(document["steps"], parsed.steps, strict=True))
    if [index for index, step in enumerate(steps) if step.kind == "elect"] != [0]:
        raise ScenarioError(located(source, "steps"), "another order", "elect: {}, once and first")
    _check_topics(parsed.topics, source)
    _check_partitions(steps, source)
    return KraftScenario(parsed.name, source, parsed.features, parsed.config, brokers, tuple(parsed.topics), steps)


def _listed(names: frozenset[str]) -> str:
    return ", ".join(sorted(names))


def _check_steps(document: Any, source: str) -> None:
    """Every step has one key. Types are checked afterwards."""
    steps = document.get("steps") if isinstance(document, dict) else None
    for index, step in enumerate(steps if isinstance(steps, list) else ()):
        if not isinstance(step, dict) or len(step) != 1:
            raise ScenarioError(
                located(source, "steps", index), short_repr(step), "a mapping with one key, the name of a step"
            )


def _check_topics(topics: list[KraftTopicEntry], source: str) -> None:
    for position, topic in enumerate(topics):
        for index, partition in enumerate(topic.partitions):
            if partition.partition != index:
                where = located(source, "topics", position, "partitions", index)
                raise ScenarioError(
                    where, f"partition {partition.partition}", f"partition {index}: list them from 0 on"
                )


def _check_partitions(steps: tuple[Step, ...], source: str) -> None:
    """The keys of ``reassign`` are partitions, but for its option."""
    for index, step in enumerate(steps):
        for name in step.content if step.kind == "reassign" else ():
            if name != "allow_replication_factor_change" and not PARTITION.fullmatch(name):
                expected = "a partition written topic-partition, such as orders-0"
                raise ScenarioError(located(source, "steps", index, "reassign", name), short_repr(name), expected)


def _step(raw: dict[str, Any], entry: KraftStepEntry) -> Step:
    ((kind, argument),) = raw.items()
    typed = getattr(entry, kind)
    assert typed is not UNSET
    return Step(kind, argument, typed)
