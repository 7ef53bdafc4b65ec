"""The controller that a scenario is played to: its formatted directory, its settings, its process and its files."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from kframe_kraft.batches import RecordBatch, read_batches
from kframe_kraft.disk import SnapshotId
from kframe_kraft.disk.names import BOOTSTRAP_ID
from kframe_kraft.live.calls import Address
from kframe_kraft.log.acknowledged import FILE_NAME
from kframe_kraft.server.formatting import format_node
from kframe_kraft.server.node_config import ENDS_SESSIONS, node_config
from kframe_kraft.server.serving import ServedController
from kframe_kraft.sources.detection import LOG_DIRECTORY

from kframe.scenario.format import config_text
from kframe.scenario.kraft.format import KraftScenario
from kframe.scenario.kraft.quorum import NODE_ID
from kframe.scenario.kraft.quorum_run import feature_levels
from verification.zookeeper.servers import free_ports

HOST: Final = "127.0.0.1"
#: "scenario-kraft-a" in base64.
CLUSTER_ID: Final = "c2NlbmFyaW8ta3JhZnQtYQ"
SESSION_TIMEOUT: Final = "broker.session.timeout.ms"
#: The settings of the recorder that differ from Kafka's defaults (``tests/golden-kraft/README.md``), and Kafka's rule
#: of sessions at the end of a controlled shutdown.
SETTINGS: Final = {
    "metadata.max.idle.interval.ms": "0",
    SESSION_TIMEOUT: "3000",
    "auto.leader.rebalance.enable": "false",
    "unclean.leader.election.interval.ms": "3600000",
    ENDS_SESSIONS: "false",
}


class ScenarioController:
    """A controller on a port of its own, which keeps its directory and its port when it starts again."""

    def __init__(self, scenario: KraftScenario, directory: Path) -> None:
        """Format the directory. Raises ConfigError for settings that the controller refuses."""
        (port,) = free_ports(1)
        self.address: Address = (HOST, port)
        given = {key: config_text(value) for key, value in scenario.config.items()}
        settings = {
            "process.roles": "controller",
            "node.id": str(NODE_ID),
            "controller.quorum.voters": f"{NODE_ID}@{HOST}:{port}",
            "controller.listener.names": "CONTROLLER",
            "listeners": f"CONTROLLER://{HOST}:{port}",
            "log.dirs": str(directory),
            **SETTINGS,
            **given,
        }
        self.session_ms = int(settings[SESSION_TIMEOUT])
        self._config = node_config(settings)
        self._log_directory = directory / LOG_DIRECTORY
        self._served: ServedController | None = None
        format_node(self._config, CLUSTER_ID, feature_levels(scenario), standalone=False, now=0)

    def start(self) -> None:
        """Start on the directory. The controller leads afterwards, but may not have committed any record."""
        self._served = ServedController(self._config)
        self._served.start()

    def stop(self) -> None:
        """Stop. May be called again."""
        if self._served is not None:
            self._served.stop()
            self._served = None

    def failure(self) -> str | None:
        """Why the controller no longer leads; None while it leads."""
        return None if self._served is None else self._served.failure

    def batches(self) -> list[RecordBatch]:
        """The batches on the disk."""
        segments = sorted(self._log_directory.glob("*.log"))
        return [batch for path in segments for batch in read_batches(path.read_bytes(), where=path.name)]

    def newest_snapshot(self) -> SnapshotId | None:
        """The newest snapshot of the log; None if there is only the one that the format wrote."""
        names = [path.stem.split("-") for path in self._log_directory.glob("*.checkpoint")]
        snapshot_ids = [SnapshotId(int(offset), int(epoch)) for offset, epoch in names]
        return max((snapshot_id for snapshot_id in snapshot_ids if snapshot_id != BOOTSTRAP_ID), default=None)

    def snapshot_batches(self, snapshot_id: SnapshotId) -> list[RecordBatch]:
        """The batches of a snapshot."""
        path = self._log_directory / snapshot_id.file_name
        return list(read_batches(path.read_bytes(), where=path.name))

    def cut_log(self, offset: int) -> None:
        """Remove the batches from ``offset`` on from the disk, and the mark that they were acknowledged, as a power
        failure may. With the mark the controller refuses to start."""
        (segment,) = self._log_directory.glob("*.log")
        size = sum(batch.header.size for batch in self.batches() if batch.header.base_offset < offset)
        with segment.open("r+b") as file:
            file.truncate(size)
        (self._log_directory / FILE_NAME).unlink()
