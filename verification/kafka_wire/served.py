"""A controller on an in-memory cluster, with brokers that apply requests at once, and its server on loopback."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence

from kframe_kafka_wire.records.credentials import credential_text, make_credential
from kframe_kafka_wire.records.store import Records
from kframe_kafka_wire.server.server import WireServer

from kframe import Controller, ControllerBuilder
from kframe.embedded import EmbeddedBrokers, MemoryEnsemble, VirtualClock
from kframe.plugin.cluster import Endpoint, Registration
from kframe.plugin.store import Claim
from kframe.testing.clusters import PartitionSpec, cluster_of, healthy
from verification.kafka_wire.client import Client

CONTROLLER_ID = 1000
PLAIN = {"listeners": "PLAINTEXT://127.0.0.1:0", "broker.id": str(CONTROLLER_ID)}


def broker(broker_id: int, *listeners: str, rack: str | None = None, ports: int = 9000) -> Registration:
    """A registration with these listeners. Ports begin at ``ports + broker_id``."""
    endpoints = (
        Endpoint(listener, "127.0.0.1", ports + broker_id + 100 * index)
        for index, listener in enumerate(listeners or ("PLAINTEXT",))
    )
    return Registration(broker_id, 100 * broker_id, tuple(endpoints), rack)


class Served:
    """A controller and its server, which run until ``stop``. A context manager."""

    def __init__(
        self,
        topics: Mapping[str, Sequence[PartitionSpec]] = {},
        brokers: Sequence[int | Registration] = (1, 2, 3),
        config: Mapping[str, str] = {},
        records: Records | None = None,
        controller_config: Mapping[str, object] = {},
        *,
        standby: bool = False,
    ) -> None:
        """``standby``: broker 1 is the controller for the whole test."""
        registrations = [broker(entry) if isinstance(entry, int) else entry for entry in brokers]
        self.ensemble = MemoryEnsemble.from_cluster(cluster_of(topics, registrations))
        if standby:
            holder = self.ensemble.connect()
            holder.open(lambda _event: None)
            holder.perform(Claim(1))
        self.server = WireServer({**PLAIN, **config}, records)
        self.controller: Controller = ControllerBuilder(
            CONTROLLER_ID,
            store=self.ensemble.connect(),
            transport=EmbeddedBrokers(VirtualClock()),
            config={"auto.leader.rebalance.enable": False, **controller_config},
            servers=[self.server],
        ).build()
        self.controller.start()
        self.controller.inspect(lambda cluster: None).result(timeout=30)  # Wait for the end of the election.

    def client(self, listener: str = "PLAINTEXT", client_id: str = "a-test") -> Client:
        """A plaintext connection."""
        return Client(self.server.addresses[listener], client_id=client_id)

    def stop(self) -> None:
        """Stop both."""
        self.controller.stop()

    def __enter__(self) -> Served:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


class FakeRecords:
    """Implements ``records.Records`` and ``records.RecordWriter`` on a mapping from path to text."""

    def __init__(self, records: Mapping[str, str]) -> None:
        self.records = dict(records)
        self.versions: Counter[str] = Counter()
        self.appended: list[tuple[str, str]] = []
        """Prefix and text of appended records, in order."""

    def read_record(self, path: str) -> bytes | None:
        """The text at a path, or None."""
        return self.records[path].encode() if path in self.records else None

    def read_record_names(self, path: str) -> tuple[str, ...]:
        """Names of the children of a path."""
        below = [name.removeprefix(f"{path}/") for name in self.records if name.startswith(f"{path}/")]
        return tuple(dict.fromkeys(path.partition("/")[0] for path in below))

    def read_versioned_record(self, path: str) -> tuple[bytes, int] | None:
        """The text at a path and the number of its writes."""
        return (self.records[path].encode(), self.versions[path]) if path in self.records else None

    def write_record(self, path: str, data: bytes, version: int | None) -> bool:
        """Replace or create a record by version."""
        if version != (self.versions[path] if path in self.records else None):
            return False
        self.records[path] = data.decode()
        self.versions[path] += 1
        return True

    def delete_record(self, path: str, version: int) -> bool:
        """Delete a record by version, unless it has children."""
        if path not in self.records or version != self.versions[path] or self.read_record_names(path):
            return False
        del self.records[path]
        return True

    def append_record(self, prefix: str, data: bytes) -> None:
        """Add the record to ``appended``."""
        self.appended.append((prefix, data.decode()))


def config_record(**config: str) -> str:
    """The record of settings of a topic, user, client or address."""
    return json.dumps({"version": 1, "config": config})


def acl_record(*entries: tuple[str, str, str, str]) -> str:
    """The record of ACLs: principal, Allow or Deny, operation and host of each."""
    names = ("principal", "permissionType", "operation", "host")
    return json.dumps({"version": 1, "acls": [dict(zip(names, entry, strict=True)) for entry in entries]})


def user_record(mechanism: str, password: str, iterations: int = 4096) -> str:
    """The record of a user as kafka-configs writes it."""
    credential = credential_text(make_credential(mechanism, password, b"some-salt", iterations))
    return config_record(**{mechanism: credential})


def sample_cluster() -> Served:
    """A cluster with an id, three brokers and two topics.

    The third broker has another listener than the controller. Partition 1 of ``t`` is not led by its preferred replica.
    The leader of ``dead`` is offline.
    """
    topics = {
        "t": [healthy(1, 2), PartitionSpec((2, 3), leader=3, isr=(3, 2))],
        "dead": [PartitionSpec((9, 1), leader=9, isr=(9,))],
    }
    brokers = [broker(1, rack="a"), broker(2, rack="b"), broker(3, "OTHER", rack="a")]
    records = FakeRecords({"/cluster/id": '{"version":"1","id":"the-cluster"}'})
    return Served(topics, brokers, {"broker.rack": "a"}, records)
