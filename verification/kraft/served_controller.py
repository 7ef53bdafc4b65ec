"""A KRaft controller of kframe on loopback, its formatted directory, and fake brokers, for tests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any
from uuid import UUID

from kframe_kafka_wire.connections.node import NodeConnection
from kframe_kafka_wire.listeners.identity import security_protocol
from kframe_kraft.disk import CheckpointWriter, MetaProperties, write_properties
from kframe_kraft.disk.names import BOOTSTRAP_ID
from kframe_kraft.quorum import Voters
from kframe_kraft.server.node import NodeSettings
from kframe_kraft.server.node_config import NodeConfig
from kframe_kraft.server.serving import ServedController
from kframe_kraft.sources.detection import LOG_DIRECTORY

from kframe.plugin import ElectionKind, LeaderSelector
from kframe.plugin.cluster import Endpoint
from kframe.plugin.kraft import RecordAndVersion, control, records
from kframe.plugin.kraft_controller import KraftSettings
from verification.kraft.scripted_quorum import connect

LISTENER = Endpoint("CONTROLLER", "127.0.0.1", 0, "PLAINTEXT")
CONFIG = {"listener.security.protocol.map": "CONTROLLER:PLAINTEXT"}
ENDPOINT = control.VoterEndpoint(name="CONTROLLER", host="127.0.0.1", port=0)
VOTER = control.Voter(voter_id=9, voter_directory_id=UUID(int=509), endpoints=(ENDPOINT,))


def level_record(level: int) -> RecordAndVersion:
    """The level of metadata.version."""
    return RecordAndVersion(records.FeatureLevelRecord(name="metadata.version", feature_level=level), 0)


LEVEL = level_record(25)


def formatted(directory: Path, *, dynamic: bool = False, level: int = 25) -> Path:
    """Format as ``kafka-storage`` of Kafka 4.4 does."""
    log = directory / LOG_DIRECTORY
    log.mkdir(parents=True)
    write_properties(directory, MetaProperties("cluster", 9, UUID(int=509)))
    voters = control.VotersRecord(voters=(VOTER,)) if dynamic else None
    path = log / BOOTSTRAP_ID.file_name
    with CheckpointWriter(path, BOOTSTRAP_ID, timestamp=0, now=0, kraft_version=int(dynamic), voters=voters) as writer:
        writer.add_records([level_record(level)])
        writer.finish()
    return directory


@contextmanager
def served(
    directory: Path,
    kraft: KraftSettings | None = None,
    *,
    selectors: Mapping[ElectionKind, LeaderSelector] = {},
    config: Mapping[str, str] = MappingProxyType(CONFIG),
    **settings: Any,
) -> Iterator[ServedController]:
    """The controller of a directory, until the end of the block. ``settings`` are those of NodeSettings, and ``config``
    has the keys of its listener."""
    node_settings = NodeSettings((ENDPOINT,), Voters((VOTER,)), **settings)
    kraft = kraft or KraftSettings(ends_sessions_at_shutdown=True)
    listener = replace(LISTENER, security_protocol=security_protocol(config, LISTENER.listener))
    controller = ServedController(NodeConfig(9, directory, (directory,), (listener,), node_settings, kraft, config))
    controller.start(selectors)
    try:
        yield controller
    finally:
        controller.stop()


def address(controller: ServedController) -> tuple[str, int]:
    """Host and port of the controller."""
    host, _, port = controller.addresses["CONTROLLER"].rpartition(":")
    return host, int(port)


def connected(controller: ServedController) -> NodeConnection:
    """A connection of a client."""
    return connect(address(controller), reply_bytes_max=2**24)


class FakeBroker:
    """A broker that sends what a test says."""

    def __init__(self, client: NodeConnection, broker_id: int) -> None:
        """``client`` is its connection to the controller."""
        self.client, self.broker_id, self.epoch = client, broker_id, -1
        self.incarnation = UUID(int=100 * broker_id)
        self.directory = UUID(int=1000 + broker_id)

    def register(self, **fields: Any) -> int:
        """Send a registration. Returns the error code."""
        body = {
            "broker_id": self.broker_id,
            "cluster_id": "cluster",
            "incarnation_id": self.incarnation.bytes,
            "listeners": [{"name": "PLAINTEXT", "host": "h", "port": 9092, "security_protocol": 0}],
            "features": [{"name": "metadata.version", "min_supported_version": 7, "max_supported_version": 29}],
            "rack": "r",
            "log_dirs": [self.directory.bytes],
            "previous_broker_epoch": -1,
            **fields,
        }
        response = self.client.ask(62, body)
        self.epoch = response["broker_epoch"] if response["error_code"] == 0 else self.epoch
        return int(response["error_code"])

    def heartbeat(self, offset: int, **fields: Any) -> tuple[int, ...]:
        """Send a heartbeat. Returns error code, is caught up, is fenced, should shut down."""
        wants = {"want_fence": False, "want_shut_down": False, **fields}
        body = {"broker_id": self.broker_id, "broker_epoch": self.epoch, "current_metadata_offset": offset, **wants}
        response = self.client.ask(63, body)
        return tuple(int(response[name]) for name in ("error_code", "is_caught_up", "is_fenced", "should_shut_down"))
