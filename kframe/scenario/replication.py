"""The step ``produce`` of scenarios with ``brokers_replicate: true``."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

from kframe.errors import ScenarioError
from kframe.model.events import TopicPartition
from kframe.scenario import checks
from kframe.scenario.format import topic_partition
from kframe.scenario.requests import Action
from kframe.scenario.step_types import ProducedRecords

if TYPE_CHECKING:
    from kframe.scenario.runner import ScenarioRunner

_ACKS: Final = {"all": -1, -1: -1, 0: 0, 1: 1}


class BrokerModels(Protocol):
    """The broker models of one scenario and the network between them."""

    @property
    def brokers(self) -> EmbeddedBrokers:
        """The controller's transport: brokers that replicate."""

    @property
    def controller_settings(self) -> dict[str, object]:
        """The scenario's settings without those for brokers only."""

    def follow(self) -> None:
        """Read registrations and topic settings again after a step."""

    def carry(self) -> bool:
        """Deliver the messages that brokers send now. Return whether there were any. Raises ScenarioError if they never
        end."""

    def produce(self, partition: TopicPartition, records: int, acks: int) -> str:
        """Send records one after the other to the leader in storage. Return the first error by name, or NONE."""


#: Makes the broker models from the runner, the scenario's settings, and the name of their source in errors.
ReplicationFactory: TypeAlias = Callable[["ScenarioRunner", Mapping[str, object], str], BrokerModels]


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
    return {f"{topic}-{number}": produce((topic, number), *how) for (topic, number), how in partitions.items()}
