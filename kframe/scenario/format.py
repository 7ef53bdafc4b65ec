"""Parsing of scenario files (``kframe.scenario/v1``): every field is checked, every error names file and field."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from kframe.errors import ScenarioError
from kframe.model.topic_configs import config_problem
from kframe.model.topics import topic_name_problem
from kframe.scenario import strict_yaml

SCHEMA: Final = "kframe.scenario/v1"
#: People write scenarios by hand; a longer file is a mistake.
FILE_BYTES_MAX: Final = 16 * 2**20
INT32_MAX: Final = 2**31 - 1


@dataclass(frozen=True, slots=True)
class ScenarioBroker:
    """A registered broker."""

    broker_id: int
    rack: str | None = None


@dataclass(frozen=True, slots=True)
class ScenarioPartition:
    """A stored partition before the controller starts. ``leader`` None: assigned, but without state."""

    partition: int
    replicas: tuple[int, ...]
    leader: int | None = None
    isr: tuple[int, ...] = ()
    leader_epoch: int = 0
    leader_recovery_state: int = 0
    adding_replicas: tuple[int, ...] = ()
    removing_replicas: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class ScenarioTopic:
    """A topic that exists before the controller starts."""

    name: str
    partitions: tuple[ScenarioPartition, ...]
    config: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Step:
    """One step of the file: its key, and its argument as parsed from YAML."""

    kind: str
    argument: Any


@dataclass(frozen=True, slots=True)
class Scenario:
    """A whole scenario file."""

    name: str
    source: str
    config: Mapping[str, Any]
    brokers: tuple[ScenarioBroker, ...]
    topics: tuple[ScenarioTopic, ...]
    steps: tuple[Step, ...]
    waiting: tuple[Step, ...] = ()
    """Requests and marks in storage when the controller starts (key ``admin``)."""
    brokers_replicate: bool = False
    """Whether brokers keep logs, replicate, and change ISRs themselves."""


def read_scenario(path: str | Path) -> Scenario:
    """Read and check a scenario file. Raises ScenarioError naming the file and the line or field."""
    path = Path(path)
    try:
        if path.stat().st_size > FILE_BYTES_MAX:
            raise ScenarioError(str(path), f"{path.stat().st_size} bytes", f"at most {FILE_BYTES_MAX}")
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ScenarioError(str(path), error.strerror or "an unreadable file", "a scenario file") from error
    except UnicodeDecodeError as error:
        raise ScenarioError(str(path), f"byte {error.start} that is not UTF-8", "UTF-8 text") from error
    return parse_scenario(text, str(path))


def parse_scenario(text: str, source: str) -> Scenario:
    """Check the text of a scenario; ``source`` names it in errors. Raises ScenarioError."""
    fields = Fields(source, "", strict_yaml.load(text, source))
    fields.allow("schema", "name", "config", "brokers", "topics", "steps", "brokers_replicate", "admin")
    fields.expect(fields.get("schema") == SCHEMA, "schema", f"schema: {SCHEMA}")
    replicate = fields.get("brokers_replicate")
    fields.expect(replicate is None or isinstance(replicate, bool), "brokers_replicate", "true or false")
    brokers = tuple(_broker(source, f"brokers[{i}]", entry) for i, entry in enumerate(fields.sequence("brokers")))
    _unique(source, "brokers", [broker.broker_id for broker in brokers])
    topics = tuple(_topic(source, f"topics[{i}]", entry) for i, entry in enumerate(fields.sequence("topics")))
    _unique(source, "topics", [topic.name for topic in topics])
    steps = tuple(_step(source, i, entry) for i, entry in enumerate(fields.sequence("steps")))
    fields.expect(bool(steps) and steps[0].kind == "elect", "steps", "a list that begins with elect: {}")
    waiting = tuple(Step(kind, argument) for kind, argument in fields.mapping("admin").items())
    config = fields.mapping("config")
    return Scenario(fields.text("name"), source, config, brokers, topics, steps, waiting, bool(replicate))


class Fields:
    """The fields of one mapping. Errors name the field."""

    def __init__(self, source: str, path: str, value: Any) -> None:
        self._source = source
        self._path = path
        if not isinstance(value, dict):
            raise ScenarioError(self._where(""), _shown(value), "a mapping")
        self._value = value

    def allow(self, *names: str) -> None:
        """Reject any other field."""
        for name in self._value:
            if name not in names:
                raise ScenarioError(self._where(str(name)), "an unknown field", "one of " + ", ".join(names))

    def get(self, name: str) -> Any:
        """The value of a field, None if it is absent."""
        return self._value.get(name)

    def expect(self, holds: bool, name: str, expected: str) -> None:
        """Raise ScenarioError about a field unless ``holds``."""
        if not holds:
            raise ScenarioError(self._where(name), _shown(self._value.get(name)), expected)

    def text(self, name: str) -> str:
        """A field that must be a text."""
        value = self._value.get(name)
        self.expect(isinstance(value, str) and bool(value), name, "a text")
        return str(value)

    def mapping(self, name: str) -> dict[str, Any]:
        """A mapping with text keys. Empty if absent."""
        value = self._value.get(name) or {}
        self.expect(isinstance(value, dict) and all(isinstance(key, str) for key in value), name, "a mapping")
        return dict(value)

    def sequence(self, name: str) -> list[Any]:
        """A list; empty if absent."""
        value = self._value.get(name) or []
        self.expect(isinstance(value, list), name, "a list")
        return list(value)

    def whole(self, name: str, default: int | None = None, least: int = 0) -> int:
        """A whole number from ``least`` to the largest int32."""
        value = self._value.get(name, default)
        fits = isinstance(value, int) and not isinstance(value, bool) and least <= value <= INT32_MAX
        self.expect(fits, name, f"a whole number from {least} to {INT32_MAX}")
        return int(value)  # type: ignore[arg-type]

    def ids(self, name: str) -> tuple[int, ...]:
        """A list of distinct broker ids. Empty if absent."""
        return broker_ids(self._where(name), self._value.get(name) or [])

    def _where(self, name: str) -> str:
        path = ".".join(part for part in (self._path, name) if part)
        return f"{self._source}: {path}" if path else self._source


def broker_ids(where: str, value: Any) -> tuple[int, ...]:
    """A list of distinct broker ids. Raises ScenarioError naming ``where``."""
    if not isinstance(value, list) or not all(_is_id(broker_id) for broker_id in value):
        raise ScenarioError(where, _shown(value), f"a list of broker ids from 0 to {INT32_MAX}")
    if len(set(value)) != len(value):
        raise ScenarioError(where, _shown(value), "each broker id once")
    return tuple(value)


def broker_spec(where: str, value: Any) -> ScenarioBroker:
    """A broker as ``id`` or ``{id, rack}``. Raises ScenarioError naming ``where``."""
    if _is_id(value):
        return ScenarioBroker(value)
    fields = Fields(where, "", value)
    fields.allow("id", "rack")
    rack = fields.get("rack")
    fields.expect(rack is None or isinstance(rack, str), "rack", "a text")
    return ScenarioBroker(fields.whole("id"), rack)


def topic_partition(where: str, value: Any) -> tuple[str, int]:
    """Topic and partition of ``topic-partition``. Raises ScenarioError naming ``where``."""
    topic, dash, partition = value.rpartition("-") if isinstance(value, str) else ("", "", "")
    if not (topic and dash and partition.isascii() and partition.isdigit() and int(partition) <= INT32_MAX):
        raise ScenarioError(where, _shown(value), "a partition written topic-partition, such as orders-0")
    return topic, int(partition)


def _broker(source: str, path: str, value: Any) -> ScenarioBroker:
    return broker_spec(f"{source}: {path}", value)


def _topic(source: str, path: str, value: Any) -> ScenarioTopic:
    fields = Fields(source, path, value)
    fields.allow("name", "config", "partitions")
    name = fields.text("name")
    problem = topic_name_problem(name)
    fields.expect(problem is None, "name", problem or "")
    partitions = tuple(
        _partition(source, f"{path}.partitions[{i}]", entry) for i, entry in enumerate(fields.sequence("partitions"))
    )
    numbers = sorted(entry.partition for entry in partitions)
    fields.expect(
        bool(numbers) and numbers == list(range(len(numbers))), "partitions", "partitions 0 to n - 1, each once"
    )
    config = {key: config_text(item) for key, item in fields.mapping("config").items()}
    refused = config_problem(config, remote_storage=True)
    if refused is not None:
        raise ScenarioError(f"{source}: {path}.config", refused.text, "settings that Kafka accepts for a topic")
    return ScenarioTopic(name, tuple(sorted(partitions, key=lambda entry: entry.partition)), config)


def _partition(source: str, path: str, value: Any) -> ScenarioPartition:
    fields = Fields(source, path, value)
    fields.allow(
        "partition", "replicas", "leader", "isr", "leader_epoch", "leader_recovery_state",
        "adding_replicas", "removing_replicas",
    )  # fmt: skip
    replicas, isr = fields.ids("replicas"), fields.ids("isr")
    adding, removing = fields.ids("adding_replicas"), fields.ids("removing_replicas")
    fields.expect(bool(replicas), "replicas", "at least one broker id")
    for name, subset in (("adding_replicas", adding), ("removing_replicas", removing)):
        fields.expect(set(subset) <= set(replicas), name, f"only ids of replicas {list(replicas)}")
    number = fields.whole("partition")
    if fields.get("leader") is None:
        fields.expect(not isr, "isr", "no ISR without a leader (-1 for none)")
        return ScenarioPartition(number, replicas, adding_replicas=adding, removing_replicas=removing)
    leader = fields.whole("leader", least=-1)
    fields.expect(set(isr) <= set(replicas), "isr", f"only ids of replicas {list(replicas)}")
    fields.expect(leader == -1 or leader in replicas, "leader", f"-1 or one of replicas {list(replicas)}")
    recovery = fields.whole("leader_recovery_state", 0)
    fields.expect(recovery in (0, 1), "leader_recovery_state", "0 or 1")
    return ScenarioPartition(number, replicas, leader, isr, fields.whole("leader_epoch", 0), recovery, adding, removing)


def _step(source: str, position: int, value: Any) -> Step:
    where = f"{source}: steps[{position}]"
    if not isinstance(value, dict) or len(value) != 1 or not isinstance(next(iter(value)), str):
        raise ScenarioError(where, _shown(value), "a mapping of one key, the kind of step")
    ((kind, argument),) = value.items()
    return Step(kind, argument)


def _unique(source: str, path: str, values: list[Any]) -> None:
    for position, value in enumerate(values):
        if value in values[:position]:
            raise ScenarioError(f"{source}: {path}[{position}]", f"{value!r} again", "each one once")


def config_text(value: Any) -> str:
    """A setting as Kafka stores it: always a text, booleans in lower case."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def is_replica_list(value: Any) -> bool:
    """Whether this is a list of numbers that a request can encode as broker ids, whether such brokers exist or not."""
    return isinstance(value, list) and all(
        type(element) is int and -INT32_MAX - 1 <= element <= INT32_MAX for element in value
    )


def _is_id(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= INT32_MAX


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
