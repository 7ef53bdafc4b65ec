"""Checks of the brokers, topics and partitions that a step names, when the step runs.

Requests of clients, operators and brokers may name anything: Kafka answers or ignores them. But a broker that acts must
be registered, and a setting or an ISR must belong to a stored topic or partition.
"""

from __future__ import annotations

from collections.abc import Iterable

from kframe.errors import ScenarioError
from kframe.model.events import TopicPartition
from kframe.scenario.state import ScenarioState


def require_registered(runner: ScenarioState, where: str, broker_ids: Iterable[int]) -> None:
    """Raise ScenarioError unless all of these brokers are registered."""
    registered = {registration.broker_id for registration in runner.storage.registrations()}
    for broker_id in broker_ids:
        if broker_id not in registered:
            raise ScenarioError(where, f"broker {broker_id}", "a broker that is registered at this step")


def require_known(runner: ScenarioState, where: str, broker_id: int) -> None:
    """Raise ScenarioError for a broker that never registered and has never been named by an assignment."""
    if broker_id not in runner.registrations and broker_id not in runner.storage.stored().brokers:
        raise ScenarioError(where, f"broker {broker_id}", "a broker that has registered or been assigned a replica")


def require_topics(runner: ScenarioState, where: str, names: Iterable[str]) -> None:
    """Raise ScenarioError unless storage has all of these topics."""
    topics = runner.storage.stored().topics
    for name in names:
        if name not in topics:
            raise ScenarioError(where, f"topic {name}", "a topic that exists at this step")


def require_partitions(runner: ScenarioState, where: str, partitions: Iterable[TopicPartition]) -> None:
    """Raise ScenarioError unless storage has all of these partitions."""
    for topic, partition in partitions:
        if runner.stored((topic, partition)) is None:
            raise ScenarioError(where, f"partition {topic}-{partition}", "a partition that exists at this step")
