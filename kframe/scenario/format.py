"""Scenario files (``kframe.scenario/v1``): their type, from which the JSON Schema is generated, and their reader."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

from kframe.errors import ScenarioError
from kframe.model.config import KEYS
from kframe.model.texts import short_repr
from kframe.model.topic_configs import TOPIC_CONFIGS, config_problem
from kframe.model.topics import topic_name_problem
from kframe.scenario import strict_yaml
from kframe.scenario.fields import BrokerIds, ConfigValue, Flag, Text, Whole, convert, expecting, located, whole
from kframe.scenario.step_types import BrokerEntry, ScenarioBroker, StepEntry, StoredRequests

SCHEMA: Final = "kframe.scenario/v1"
#: People write scenarios by hand; a longer file is a mistake.
FILE_BYTES_MAX: Final = 16 * 2**20
_SINGLE_KEY: Final = {"minProperties": 1, "maxProperties": 1}
_FIRST_STEP: Final = {"$ref": "#/$defs/StepEntry", "required": ["elect"], **_SINGLE_KEY}
_ANY_VALUE: Final = {"type": ["string", "number", "boolean"]}
_KEYS: Final = {name: {"description": key.doc, "default": key.default} for name, key in KEYS.items()}
_CONFIGS: Final = {
    "properties": dict.fromkeys(TOPIC_CONFIGS, _ANY_VALUE),
    "propertyNames": {"enum": list(TOPIC_CONFIGS)},
}


class ScenarioPartition(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A stored partition before the controller starts; without ``leader`` it is assigned, but has no state."""

    partition: Whole
    replicas: Annotated[BrokerIds, Meta(extra_json_schema={"minItems": 1})]
    leader: Annotated[int, whole(-1)] | None = None
    isr: BrokerIds = ()
    leader_epoch: Whole = 0
    leader_recovery_state: Annotated[Literal[0, 1], expecting("0 or 1")] = 0
    adding_replicas: BrokerIds = ()
    removing_replicas: BrokerIds = ()


class ScenarioTopic(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A topic that exists before the controller starts."""

    name: Text
    partitions: Annotated[tuple[ScenarioPartition, ...], expecting("partitions 0 to n - 1, each once")]
    config: Annotated[dict[str, ConfigValue], expecting("a mapping", extra_json_schema=_CONFIGS)] | None = None


class ScenarioDocument(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A scenario file: the cluster before the controller starts, and the steps that follow."""

    schema: Annotated[Literal["kframe.scenario/v1"], expecting(f"schema: {SCHEMA}")]
    name: Text
    steps: Annotated[
        tuple[Annotated[StepEntry, Meta(extra_json_schema=_SINGLE_KEY)], ...],
        expecting("a list that begins with elect: {}", extra_json_schema={"minItems": 1, "prefixItems": [_FIRST_STEP]}),
    ]
    config: (
        Annotated[
            dict[str, Any],
            expecting("a mapping", extra_json_schema={"properties": _KEYS, "additionalProperties": _ANY_VALUE}),
        ]
        | None
    ) = None
    brokers: Annotated[tuple[BrokerEntry, ...], expecting("a list of brokers")] | None = None
    topics: Annotated[tuple[ScenarioTopic, ...], expecting("a list of topics")] | None = None
    brokers_replicate: Flag | None = None
    admin: Annotated[StoredRequests, expecting("a mapping")] | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """One step of the file: its key, its argument as parsed from YAML, and the argument by its type."""

    kind: str
    argument: Any
    content: Any


@dataclass(frozen=True, slots=True)
class Scenario:
    """A whole scenario file."""

    name: str
    source: str
    config: Mapping[str, Any]
    brokers: tuple[ScenarioBroker, ...]
    topics: tuple[ScenarioTopic, ...]
    steps: tuple[Step, ...]
    stored_requests: tuple[Step, ...] = ()
    """Requests and marks in storage when the controller starts (key ``admin``)."""
    brokers_replicate: bool = False
    """Whether brokers keep logs, replicate, and change ISRs themselves."""


def read_scenario(path: str | Path) -> Scenario:
    """Read and check a scenario file. Raises ScenarioError naming the file and the line or field."""
    return parse_scenario(read_text(path), str(path))


def read_text(path: str | Path) -> str:
    """Read the text of a scenario file. Raises ScenarioError."""
    path = Path(path)
    try:
        if path.stat().st_size > FILE_BYTES_MAX:
            raise ScenarioError(str(path), f"{path.stat().st_size} bytes", f"at most {FILE_BYTES_MAX}")
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise ScenarioError(str(path), error.strerror or "an unreadable file", "a scenario file") from error
    except UnicodeDecodeError as error:
        raise ScenarioError(str(path), f"byte {error.start} that is not UTF-8", "UTF-8 text") from error


def parse_scenario(text: str, source: str) -> Scenario:
    """Check the text of a scenario; ``source`` names it in errors. Raises ScenarioError."""
    value = strict_yaml.load(text, source)
    if isinstance(value, dict):
        _check_steps(value.get("steps"), source)
    document = convert(value, ScenarioDocument, source)
    brokers = tuple(map(broker_of, document.brokers or ()))
    _unique(source, "brokers", [broker.broker_id for broker in brokers])
    topics = tuple(_checked_topic(topic, source, i) for i, topic in enumerate(document.topics or ()))
    _unique(source, "topics", [topic.name for topic in topics])
    steps = tuple(_step(raw, entry) for raw, entry in zip(value["steps"], document.steps, strict=True))
    if not steps or steps[0].kind != "elect":
        raise ScenarioError(located(source, "steps"), short_repr(value["steps"]), "a list that begins with elect: {}")
    return Scenario(
        document.name,
        source,
        document.config or {},
        brokers,
        topics,
        steps,
        _stored_requests(value.get("admin"), document.admin),
        bool(document.brokers_replicate),
    )


def broker_of(entry: BrokerEntry) -> ScenarioBroker:
    """A broker that is written as ``id`` or ``{id, rack}``."""
    return entry if isinstance(entry, ScenarioBroker) else ScenarioBroker(entry)


def distinct_ids(where: str, ids: tuple[int, ...]) -> tuple[int, ...]:
    """The ids. Raises ScenarioError, which names ``where``, if one occurs twice."""
    if len(set(ids)) != len(ids):
        raise ScenarioError(where, short_repr(list(ids)), "each broker id once")
    return ids


def config_text(value: Any) -> str:
    """A setting as Kafka stores it: always a text, booleans in lower case."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def config_texts(config: Mapping[str, Any] | None) -> dict[str, str]:
    """Settings as Kafka stores them."""
    return {key: config_text(value) for key, value in (config or {}).items()}


def _checked_topic(topic: ScenarioTopic, source: str, position: int) -> ScenarioTopic:
    """The topic with its partitions by number. Raises ScenarioError for what types do not exclude."""
    path = ("topics", position)
    problem = topic_name_problem(topic.name)
    if problem is not None:
        raise ScenarioError(located(source, *path, "name"), short_repr(topic.name), problem)
    numbers = sorted(partition.partition for partition in topic.partitions)
    if not numbers or numbers != list(range(len(numbers))):
        raise ScenarioError(
            located(source, *path, "partitions"), short_repr(numbers), "partitions 0 to n - 1, each once"
        )
    for index, partition in enumerate(topic.partitions):
        _check_partition(partition, located(source, *path, "partitions", index))
    refused = config_problem(config_texts(topic.config), remote_storage=True)
    if refused is not None:
        raise ScenarioError(located(source, *path, "config"), refused.text, "settings that Kafka accepts for a topic")
    return msgspec.structs.replace(
        topic, partitions=tuple(sorted(topic.partitions, key=lambda partition: partition.partition))
    )


def _check_partition(partition: ScenarioPartition, where: str) -> None:
    replicas = partition.replicas

    def require(holds: bool, name: str, expected: str) -> None:
        if not holds:
            value = getattr(partition, name)
            raise ScenarioError(
                f"{where}.{name}", short_repr(list(value) if isinstance(value, tuple) else value), expected
            )

    for name in ("replicas", "isr", "adding_replicas", "removing_replicas"):
        distinct_ids(f"{where}.{name}", getattr(partition, name))
    require(bool(replicas), "replicas", "at least one broker id")
    for name in ("adding_replicas", "removing_replicas"):
        require(set(getattr(partition, name)) <= set(replicas), name, f"only ids of replicas {list(replicas)}")
    if partition.leader is None:
        require(not partition.isr, "isr", "no ISR without a leader (-1 for none)")
        return
    require(set(partition.isr) <= set(replicas), "isr", f"only ids of replicas {list(replicas)}")
    leads = partition.leader == -1 or partition.leader in replicas
    require(leads, "leader", f"-1 or one of replicas {list(replicas)}")


def _check_steps(steps: Any, source: str) -> None:
    """Raise ScenarioError for a step that is no mapping of one key, or whose key is no kind of step."""
    kinds = sorted(StepEntry.__struct_fields__)
    for position, step in enumerate(steps if isinstance(steps, list) else ()):
        where = located(source, "steps", position)
        if not isinstance(step, dict) or len(step) != 1 or not isinstance(next(iter(step)), str):
            raise ScenarioError(where, short_repr(step), "a mapping of one key, the kind of step")
        (kind,) = step
        if kind not in kinds:
            raise ScenarioError(where, f"unknown step {kind!r}", "one of " + ", ".join(kinds))


def _step(raw: dict[str, Any], entry: StepEntry) -> Step:
    ((kind, argument),) = raw.items()
    return Step(kind, argument, getattr(entry, kind))


def _stored_requests(raw: dict[str, Any] | None, requests: StoredRequests | None) -> tuple[Step, ...]:
    return tuple(Step(kind, argument, getattr(requests, kind)) for kind, argument in (raw or {}).items())


def _unique(source: str, path: str, values: list[Any]) -> None:
    for position, value in enumerate(values):
        if value in values[:position]:
            raise ScenarioError(located(source, path, position), f"{value!r} again", "each one once")
