"""The ordinary work of a client library and an operator, on real brokers under kframe in either mode."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, Protocol, TypeAlias

from kframe.testing.waiting import until
from verification.kafka_wire.clients import JavaClient, Librdkafka
from verification.kafka_wire.kafka_python import KafkaPython

AnyClient: TypeAlias = JavaClient | Librdkafka | KafkaPython
#: Client libraries, and the module that each needs.
MAKES: Final[Mapping[str, tuple[Callable[[Path, str], AnyClient], str]]] = {
    "java": (JavaClient, "kazoo"),
    "librdkafka": (Librdkafka, "confluent_kafka"),
    "kafka-python": (KafkaPython, "kafka"),
}


class StoredTopics(Protocol):
    """What the controller has stored."""

    def assignment(self, topic: str) -> Mapping[int, Sequence[int]]:
        """Replicas by partition. Empty for a missing topic."""

    def leader(self, topic: str, partition: int) -> int:
        """The leader of a partition."""


def check_client_operations(
    stored: StoredTopics, client: AnyClient, java: JavaClient, name: str, created: tuple[int, int]
) -> None:
    """``java`` runs the reassignments that ``client`` does not support. ``created``: the partitions and replicas of a
    topic that brokers create."""
    topic, auto = f"ordered-{name}", f"auto-{name}"

    client.create(topic, 3, 2)
    await_settled(client, topic, 3, 2)
    client.produce(topic, numbered("a", 20))
    assert sorted(client.consume("readers", topic, 20)) == numbered("a", 20)
    client.transact(f"txn-{name}", topic, numbered("b", 10), numbered("never", 10))
    assert sorted(client.consume("readers", topic, 10)) == numbered("b", 10)
    client.produce(auto, numbered("c", 10))
    assert sorted(client.consume("others", auto, 10)) == numbered("c", 10)
    await_settled(client, auto, *created)

    client.grow(topic, 5)
    await_settled(client, topic, 5, 2)
    leader, replicas, _ = client.describe()[topic][0]
    (third,) = {1, 2, 3} - set(replicas)
    mover = client if client.reassigns else java
    mover.reassign(topic, 0, [third, leader])
    assert until(lambda: not mover.reassignments())
    assert stored.assignment(topic)[0] == [third, leader]
    assert until(lambda: sorted(client.describe()[topic][0][2]) == sorted([third, leader]))
    assert stored.leader(topic, 0) == leader
    client.elect(topic, 0)
    assert stored.leader(topic, 0) == third
    client.configure(topic, "max.message.bytes", "54321")
    assert until(lambda: "54321" in str(client.configs(topic)))
    client.produce(topic, numbered("d", 20))
    assert sorted(client.consume("readers", topic, 20)) == numbered("d", 20)

    client.delete(topic)
    assert until(lambda: topic not in client.describe())
    assert until(lambda: not stored.assignment(topic))


def numbered(prefix: str, count: int) -> list[str]:
    """Values of records."""
    return [f"{prefix}{number:02}" for number in range(count)]


def await_settled(client: AnyClient, topic: str, count: int, factor: int) -> None:
    """Wait until all partitions exist with a leader. All replicas must be in sync and on brokers."""

    def settled() -> bool:
        states = client.describe().get(topic, {})
        return len(states) == count and all(
            leader in isr and sorted(isr) == sorted(replicas) and len(replicas) == factor and set(replicas) <= {1, 2, 3}
            for leader, replicas, isr in states.values()
        )

    assert until(settled), client.describe().get(topic)
