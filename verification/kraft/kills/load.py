"""Clients that create, configure and delete topics until their connection ends, and note what was acknowledged."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from random import Random
from typing import Final
from uuid import UUID

from kframe_kafka_wire.connections.node import CONNECTION_ERRORS, NodeConnection

from kframe.core.kraft.context import SUPPORTED_FEATURES
from kframe.plugin.kraft import KRAFT_VERSION
from kframe.testing.waiting import wait_until
from verification.kraft.scripted_quorum import connect
from verification.kraft.served_controller import FakeBroker

BROKER_ID: Final = 0
_CLIENTS: Final = 3
_REPLY_BYTES_MAX: Final = 1 << 22
_FEATURE: Final = ("name", "min_supported_version", "max_supported_version")
#: Its broker has applied every record.
_APPLIED: Final = 1 << 60


@dataclass(slots=True)
class Acknowledged:
    """What clients know of the topics, by name."""

    topics: dict[str, UUID] = field(default_factory=dict)
    """The ids of topics whose creation was acknowledged, and their deletion was not requested."""
    retention: dict[str, str] = field(default_factory=dict)
    """The acknowledged ``retention.ms`` of these topics."""
    deleted: set[str] = field(default_factory=set)
    """Topics whose deletion was acknowledged."""
    open: set[str] = field(default_factory=set)
    """Topics of requests without a response: they may be in either state."""
    count: int = 0
    """Acknowledged requests."""


class Load:
    """Clients of one start of the controller. ``names`` are topics that no client has used before."""

    def __init__(self, address: tuple[str, int], acknowledged: Acknowledged, names: Iterator[str], seed: int) -> None:
        self._address = address
        self._acknowledged = acknowledged
        self._names = names
        self._lock = threading.Lock()
        self._threads = [
            threading.Thread(target=self._run, args=(Random(seed + number),)) for number in range(_CLIENTS)
        ]

    def start(self) -> None:
        """Start the clients."""
        for thread in self._threads:
            thread.start()

    def join(self) -> None:
        """Return when all connections have ended."""
        for thread in self._threads:
            thread.join()

    def _run(self, random: Random) -> None:
        own: list[str] = []
        try:
            with closing(connect(self._address, reply_bytes_max=_REPLY_BYTES_MAX)) as client:
                while True:
                    choice = random.random()
                    if own and choice < 0.2:
                        self._delete(client, own.pop(random.randrange(len(own))))
                    elif own and choice < 0.4:
                        self._configure(client, random.choice(own), str(random.randrange(1, 10**6)))
                    else:
                        own.append(self._create(client))
        except CONNECTION_ERRORS:
            return

    def _create(self, client: NodeConnection) -> str:
        with self._lock:
            name = next(self._names)
            self._acknowledged.open.add(name)
        topic = {
            "name": name,
            "num_partitions": -1,
            "replication_factor": -1,
            "assignments": [{"partition_index": number, "broker_ids": [BROKER_ID]} for number in range(3)],
            "configs": [],
        }
        response = client.ask(19, {"topics": [topic], "timeout": 1000, "validate_only": False})
        (result,) = response["topics"]
        assert result["error_code"] == 0, result
        with self._lock:
            self._acknowledged.topics[name] = UUID(bytes=result["topic_id"])
            self._closed(name)
        return name

    def _configure(self, client: NodeConnection, name: str, retention: str) -> None:
        with self._lock:
            self._acknowledged.open.add(name)
        config = {"name": "retention.ms", "config_operation": 0, "value": retention}
        resource = {"resource_type": 2, "resource_name": name, "configs": [config]}
        response = client.ask(44, {"resources": [resource], "validate_only": False})
        assert response["responses"][0]["error_code"] == 0, response
        with self._lock:
            self._acknowledged.retention[name] = retention
            self._closed(name)

    def _delete(self, client: NodeConnection, name: str) -> None:
        with self._lock:
            del self._acknowledged.topics[name]
            self._acknowledged.retention.pop(name, None)
            self._acknowledged.open.add(name)
        topics = [{"name": name, "topic_id": bytes(16)}]
        response = client.ask(20, {"topics": topics, "timeout": 1000})
        assert response["responses"][0]["error_code"] == 0, response
        with self._lock:
            self._acknowledged.deleted.add(name)
            self._closed(name)

    def _closed(self, name: str) -> None:
        self._acknowledged.open.discard(name)
        self._acknowledged.count += 1


class Broker:
    """The broker of all replicas, which sends heartbeats only."""

    def __init__(self, cluster_id: str) -> None:
        self._cluster_id = cluster_id
        self._epoch = -1

    def contact(self, address: tuple[str, int]) -> None:
        """Register if it has not, and send heartbeats until it is unfenced. Raises CONNECTION_ERRORS."""
        with closing(connect(address, reply_bytes_max=_REPLY_BYTES_MAX)) as client:
            broker = FakeBroker(client, BROKER_ID)
            broker.epoch = self._epoch
            if self._epoch < 0:
                levels = [(name, *levels) for name, levels in SUPPORTED_FEATURES.items()]
                features = [dict(zip(_FEATURE, level, strict=True)) for level in [*levels, (KRAFT_VERSION, 0, 1)]]
                assert broker.register(cluster_id=self._cluster_id, features=features) == 0
                self._epoch = broker.epoch
            wait_until(lambda: broker.heartbeat(_APPLIED)[2] == 0)
