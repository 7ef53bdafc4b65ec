"""An admin client of a controller in this process."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from kframe.embedded import CountingTransport, MemoryEnsemble, VirtualClock
from kframe.errors import ErrorCode
from kframe.model.events import ElectionType, TopicPartition
from kframe.model.tables import Targets
from kframe.ports.administration import ConfigResource, DirectoryLog, LogDirectory
from kframe.runtime.builder import ControllerBuilder
from kframe.snapshot import Snapshot
from kframe.snapshot.metadata import ClusterDescription, DescribedPartition, PartitionReassignment, snapshot_of
from kframe.testing.clusters import cluster_of, healthy


class EmbeddedAdmin:
    """New replicas catch up on request. Implements ``Administration``."""

    def __init__(self) -> None:
        self.ensemble = MemoryEnsemble.from_cluster(
            cluster_of({"t": [healthy(1, 2), healthy(2, 3), healthy(3, 1)], "u": [healthy(1)]}, (1, 2, 3, 4))
        )
        self.controller = ControllerBuilder(
            1000,
            self.ensemble.connect(),
            CountingTransport(),
            {"auto.leader.rebalance.enable": "false"},
            clock=VirtualClock(),
        ).build()
        self.controller.open()
        self.controller.run_until_idle()
        self.configs: dict[ConfigResource, dict[str, str]] = {}
        self.moved: dict[tuple[int, TopicPartition], str] = {}

    def capture(self) -> Snapshot:
        return snapshot_of(self._description())

    def describe(self) -> ClusterDescription:
        self.catch_up(*self.reassignments())
        return self._description()

    def read_configs(self, resources: Mapping[ConfigResource, Sequence[str]]) -> dict[ConfigResource, dict[str, str]]:
        return {
            resource: {name: value for name, value in self.configs.get(resource, {}).items() if name in names}
            for resource, names in resources.items()
        }

    def change_configs(
        self, changes: Mapping[ConfigResource, Mapping[str, str | None]]
    ) -> dict[ConfigResource, ErrorCode]:
        for resource, values in changes.items():
            merged: dict[str, str | None] = {**self.configs.get(resource, {}), **values}
            self.configs[resource] = {name: value for name, value in merged.items() if value is not None}
        return dict.fromkeys(changes, ErrorCode.NONE)

    def log_directories(self, broker_ids: Collection[int]) -> dict[int, list[LogDirectory]]:
        """Replicas in one of two directories of each broker, which both have room. Moves end at once."""
        stored = list(self.ensemble.stored())
        return {
            broker_id: [
                LogDirectory(
                    path,
                    [
                        DirectoryLog(each.topic, each.partition, 1000)
                        for each in stored
                        if broker_id in each.isr
                        and self.moved.get((broker_id, (each.topic, each.partition)), "/data") == path
                    ],
                )
                for path in ("/data", "/empty")
            ]
            for broker_id in broker_ids
        }

    def alter_log_directories(
        self, paths: Mapping[int, Mapping[TopicPartition, str]]
    ) -> dict[int, dict[TopicPartition, ErrorCode]]:
        self.moved |= {(broker_id, name): path for broker_id, part in paths.items() for name, path in part.items()}
        return {broker_id: dict.fromkeys(part, ErrorCode.NONE) for broker_id, part in paths.items()}

    def _description(self) -> ClusterDescription:
        brokers = {broker_id: ("h", 9000 + broker_id, None) for broker_id in (1, 2, 3, 4)}
        described = [
            DescribedPartition(
                partition.topic,
                partition.partition,
                -1 if partition.leader is None else partition.leader,
                partition.leader_epoch,
                partition.replicas,
                partition.isr,
            )
            for partition in self.ensemble.stored()
        ]
        return ClusterDescription("here", "c1", 1, brokers, described, self.reassignments())

    def reassign(self, targets: Targets) -> tuple[ErrorCode, ...]:
        future = self.controller.reassign(targets)
        self.controller.run_until_idle()
        return tuple(ErrorCode(int(code)) for code in future.result(timeout=0).codes)

    def reassignments(self) -> dict[TopicPartition, PartitionReassignment]:
        stored = (
            partition
            for partition in self.ensemble.stored()
            if partition.adding_replicas or partition.removing_replicas
        )
        return {
            (partition.topic, partition.partition): PartitionReassignment(
                partition.replicas, partition.adding_replicas, partition.removing_replicas
            )
            for partition in stored
        }

    def elect(
        self, election: ElectionType, partitions: Sequence[TopicPartition] | None
    ) -> Mapping[TopicPartition, ErrorCode]:
        future = self.controller.elect_leaders(election, partitions)
        self.controller.run_until_idle()
        return future.result(timeout=0).by_partition()

    def close(self) -> None:
        self.controller.stop()

    def catch_up(self, *partitions: TopicPartition) -> None:
        """Report all replicas of these partitions as in sync."""
        for topic, partition in partitions:
            self.ensemble.write_state(topic, partition, isr=self.ensemble.stored()[topic, partition].replicas)
        self.ensemble.notify_isr_changes(partitions)
        self.controller.run_until_idle()

    def replicas(self, topic: str, partition: int) -> tuple[int, ...]:
        return self.ensemble.stored()[topic, partition].replicas
