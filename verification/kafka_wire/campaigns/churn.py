"""Random changes of a live cluster: admin requests of a client, and faults of its brokers. Both depend on a seed."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from typing import Any, Final, TypeAlias

from kazoo.client import KazooClient
from kframe_kafka_wire.admin.client import ALTER, AdminRequestRefused, open_admin
from kframe_kafka_wire.protocol.errors import error_of
from kframe_zookeeper.znodes import paths

from kframe.plugin import ErrorCode, StoreError
from kframe.plugin.admin import ConfigResource
from kframe.plugin.cluster import ElectionType
from kframe.testing.waiting import PATIENCE_S, until
from verification.kafka_wire.client import CREATE_PARTITIONS, CREATE_TOPICS, DELETE_TOPICS
from verification.zookeeper.handover import ALL
from verification.zookeeper.kafka import Cluster, KafkaProcess

#: Most topics at a time, and most partitions of a topic.
TOPICS_MAX: Final = 12
_PARTITIONS_MAX: Final = 8
_TIMEOUT_MS: Final = 15_000
#: Share of requests before which the client connects again.
_RECONNECT: Final = 0.05
_RETENTIONS_MS: Final = ("3600000", "86400000", None)

Counts: TypeAlias = "Counter[tuple[str, str]]"
"""How often an operation had an outcome, the name of an error code."""


class AdminChurn:
    """Random admin requests of one client. Each topic has a new name, as in a cluster that lives long."""

    def __init__(self, url: str, seed: int) -> None:
        """``url`` is that of a cluster, ``kafka://HOST:PORT,...``."""
        self.counts: Counts = Counter()
        self.topics: dict[str, int] = {}
        """Topics by name with their partition counts, according to responses."""
        self._url = url
        self._client = open_admin(url, {})
        self._random = random.Random(seed)
        self._created = 0
        self._operations: dict[str, tuple[Callable[[str], ErrorCode], int]] = {
            "create topic": (self._create, 6),
            "delete topic": (self._delete, 5),
            "create partitions": (self._create_partitions, 3),
            "reassign": (self._reassign, 6),
            "reassign and cancel": (self._reassign_and_cancel, 3),
            "elect preferred leaders": (self._elect, 3),
            "change a configuration": (self._configure, 3),
            "describe the cluster": (self._describe, 3),
        }

    @property
    def names(self) -> list[str]:
        """All operations."""
        return list(self._operations)

    def close(self) -> None:
        """Disconnect."""
        self._client.close()

    def step(self) -> None:
        """Execute a random operation."""
        if self._random.random() < _RECONNECT:
            self._client.close()
            self._client = open_admin(self._url, {})
        self.execute(self._random.choices(self.names, [weight for _, weight in self._operations.values()])[0])

    def execute(self, name: str) -> None:
        """Execute an operation, on a random topic, and count its outcome. Without topics, one is created."""
        if not self.topics or (name == "create topic" and len(self.topics) < TOPICS_MAX):
            name, topic = "create topic", ""
        else:
            topic = self._random.choice(list(self.topics))
            name = "delete topic" if name == "create topic" else name
        try:
            outcome = self._operations[name][0](topic).name
        except AdminRequestRefused as refusal:
            outcome = refusal.code.name
        except StoreError as error:
            outcome = type(error).__name__
        self.counts[name, outcome] += 1

    def delete_all(self) -> None:
        """Delete all topics."""
        for topic in list(self.topics):
            self._delete(topic)

    def _create(self, _: str) -> ErrorCode:
        self._created += 1
        topic, partitions = f"churn-{self._created}", self._random.randint(1, _PARTITIONS_MAX // 2)
        described = {"name": topic, "num_partitions": partitions, "replication_factor": self._random.randint(1, 3)}
        code = self._ask(CREATE_TOPICS, "topics", topics=[described], validate_only=False)
        if code in (ErrorCode.NONE, ErrorCode.REQUEST_TIMED_OUT):
            self.topics[topic] = partitions
        return code

    def _delete(self, topic: str) -> ErrorCode:
        code = self._ask(DELETE_TOPICS, "responses", topics=[{"name": topic, "topic_id": None}], topic_names=[topic])
        if code in (ErrorCode.NONE, ErrorCode.REQUEST_TIMED_OUT, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION):
            del self.topics[topic]
        return code

    def _create_partitions(self, topic: str) -> ErrorCode:
        count = min(self.topics[topic] + self._random.randint(1, 2), _PARTITIONS_MAX)
        requested = {"name": topic, "count": count, "assignments": None}
        code = self._ask(CREATE_PARTITIONS, "results", topics=[requested], validate_only=False)
        if code is ErrorCode.NONE:
            self.topics[topic] = count
        return code

    def _reassign(self, topic: str) -> ErrorCode:
        replicas = self._random.sample(ALL, self._random.randint(1, 3))
        return self._alter(topic, self._random.randrange(self.topics[topic]), replicas)

    def _reassign_and_cancel(self, topic: str) -> ErrorCode:
        """The outcome of the cancellation. A reassignment may be complete before it."""
        partition = self._random.randrange(self.topics[topic])
        self._alter(topic, partition, self._random.sample(ALL, self._random.randint(1, 3)))
        return self._alter(topic, partition, None)

    def _alter(self, topic: str, partition: int, replicas: list[int] | None) -> ErrorCode:
        target = {"name": topic, "partitions": [{"partition_index": partition, "replicas": replicas}]}
        response = self._client.ask(ALTER, timeout=_TIMEOUT_MS, topics=[target])
        return error_of(response["responses"][0]["partitions"][0]["error_code"])

    def _elect(self, topic: str) -> ErrorCode:
        partitions = None if self._random.random() < 0.3 else [(topic, number) for number in range(self.topics[topic])]
        codes = self._client.elect(ElectionType.PREFERRED, partitions).values()
        return max(codes, default=ErrorCode.NONE)

    def _configure(self, topic: str) -> ErrorCode:
        resource = ConfigResource(topic)
        changes = {resource: {"retention.ms": self._random.choice(_RETENTIONS_MS)}}
        return self._client.change_configs(changes)[resource]

    def _describe(self, _: str) -> ErrorCode:
        self._client.describe()
        return ErrorCode.NONE

    def _ask(self, api_key: int, results: str, **fields: Any) -> ErrorCode:
        """The error code of a request about one topic."""
        return error_of(self._client.ask(api_key, timeout=_TIMEOUT_MS, **fields)[results][0]["error_code"])


class BrokerChurn:
    """Random faults of one broker at a time."""

    def __init__(self, cluster: Cluster, client: KazooClient, session_s: float, seed: int) -> None:
        """``client`` reads registrations. ``session_s`` is the session timeout of brokers."""
        self.counts: Counter[str] = Counter()
        self._cluster = cluster
        self._client = client
        self._session_s = session_s
        self._random = random.Random(seed)
        self._faults: dict[str, Callable[[KafkaProcess], None]] = {
            "stopped (SIGTERM)": self._stop,
            "killed (SIGKILL)": self._kill,
            "frozen (SIGSTOP), within the session": lambda broker: self._freeze(broker, 0.8),
            "frozen (SIGSTOP), beyond the session": lambda broker: self._freeze(broker, 1.8),
        }

    @property
    def names(self) -> list[str]:
        """All faults."""
        return list(self._faults)

    def step(self) -> None:
        """Inject a random fault into a random broker, and end it."""
        self.inject(self._random.choice(self.names))

    def inject(self, name: str) -> None:
        """Inject a fault into a random broker, and end it."""
        broker = self._cluster.brokers[self._random.choice(ALL)]
        try:
            self._faults[name](broker)
        finally:
            if broker.pid is None:
                broker.start()
        broker.await_started()
        self.counts[name] += 1

    def _stop(self, broker: KafkaProcess) -> None:
        broker.stop(PATIENCE_S)
        pause(self._random.uniform(0, self._session_s))

    def _kill(self, broker: KafkaProcess) -> None:
        """A broker that starts before its session has ended would end at once."""
        broker.kill()
        registered = f"{paths.BROKER_IDS}/{broker.id}"
        assert until(lambda: self._client.retry(self._client.exists, registered) is None)
        pause(self._random.uniform(0, self._session_s))

    def _freeze(self, broker: KafkaProcess, sessions: float) -> None:
        broker.pause()
        pause(sessions * self._session_s)
        broker.resume()


def pause(seconds: float) -> None:
    """Wait for so long."""
    until(lambda: False, seconds)
