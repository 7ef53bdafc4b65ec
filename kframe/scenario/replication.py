"""The step ``produce`` of scenarios with ``brokers_replicate: true``."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final

from kframe.errors import ScenarioError
from kframe.model.events import TopicPartition
from kframe.scenario import checks
from kframe.scenario.format import topic_partition
from kframe.scenario.state import Action, ScenarioState
from kframe.scenario.step_types import ProducedRecords

_ACKS: Final = {"all": -1, -1: -1, 0: 0, 1: 1}


def read_produce(where: str, content: Mapping[str, ProducedRecords]) -> Action:
    """Step ``produce``: clients write records, ``{t-0: {records: 3, acks: all}}``."""
    partitions = {
        topic_partition(f"{where}.{name}", name): (
            produced.records,
            _ACKS["all" if produced.acks is None else produced.acks],
        )
        for name, produced in content.items()
    }
    return partial(_produce, where=where, partitions=partitions)


def _produce(runner: ScenarioState, where: str, partitions: dict[TopicPartition, tuple[int, int]]) -> dict[str, str]:
    if runner.replication is None:
        raise ScenarioError(where, "brokers that do not replicate", "brokers_replicate: true")
    checks.require_partitions(runner, where, partitions)
    produce = runner.replication.produce
    return {
        f"{topic}-{number}": produce((topic, number), *arguments) for (topic, number), arguments in partitions.items()
    }
