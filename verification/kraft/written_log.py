"""A log of a small cluster for tests, written batch by batch with the plugin's own writer."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import UUID

from kframe_kraft.batches import BatchPosition, encode_control_batch, encode_data_batch
from kframe_kraft.disk import (
    CheckpointWriter,
    MetaProperties,
    QuorumState,
    SnapshotId,
    write_properties,
    write_quorum_state,
)
from kframe_kraft.records import record_version
from kframe_kraft.sources.detection import LOG_DIRECTORY

from kframe.plugin.kraft import RecordAndVersion, control, records

#: The time of offset 0; each batch is a second later.
START_MS = 1_700_000_000_000
LEVEL = 25
ORDERS = UUID(int=1000)


class WrittenLog:
    """Writes a node's directory. ``offsets`` has the base offset of each batch."""

    def __init__(self, directory: Path, *, node_id: int = 1, voters: tuple[int, ...] = (1,), kraft_version: int = 0):
        self.directory, self.node_id, self.voters, self.kraft_version = directory, node_id, voters, kraft_version
        self.log = directory / LOG_DIRECTORY
        self.log.mkdir(parents=True)
        self.offset, self.epoch, self.data, self.batches = 0, 1, b"", 0
        self.segment = self.log / f"{0:020}.log"
        write_properties(directory, MetaProperties("cluster", node_id, UUID(int=500 + node_id)))

    def lead(self, leader: int, epoch: int) -> int:
        """Append the first batch of an epoch."""
        self.epoch = epoch
        voters = tuple(control.LeaderChangeVoter(voter_id=voter) for voter in self.voters)
        content: list[control.ControlRecord] = [control.LeaderChangeMessage(leader_id=leader, voters=voters)]
        if self.kraft_version:
            endpoint = control.VoterEndpoint(name="CONTROLLER", host="localhost", port=9093)
            members = tuple(
                control.Voter(voter_id=voter, voter_directory_id=UUID(int=500 + voter), endpoints=(endpoint,))
                for voter in self.voters
            )
            content += [control.KRaftVersionRecord(k_raft_version=1), control.VotersRecord(voters=members)]
        return self._write(encode_control_batch(content, self._position()), len(content))

    def append(self, *content: records.MetadataRecord) -> int:
        """Append a batch; returns the offset of its first record."""
        versioned = [RecordAndVersion(record, record_version(record, LEVEL)) for record in content]
        return self._write(encode_data_batch(versioned, self._position()), len(content))

    def quorum(self, **state: Any) -> None:
        """Write ``quorum-state``."""
        write_quorum_state(self.log, QuorumState(**{"voters": self.voters, **state}))

    def _position(self) -> BatchPosition:
        return BatchPosition(self.offset, self.epoch, START_MS + 1000 * self.batches)

    def _write(self, batch: bytes, count: int) -> int:
        first = self.offset
        self.data += batch
        self.offset += count
        self.batches += 1
        self.segment.write_bytes(self.data)
        return first

    def roll(self) -> None:
        """Begin the next segment, whose content ``data`` is from here on."""
        self.data, self.segment = b"", self.log / f"{self.offset:020}.log"
        self.segment.touch()


def batch(offset: int, name: str = "x", epoch: int = 1) -> bytes:
    """A batch that sets the configuration ``name`` of all brokers."""
    record = records.ConfigRecord(resource_type=4, resource_name="", name=name, value="1")
    return encode_data_batch([RecordAndVersion(record, 0)], BatchPosition(offset, epoch, START_MS))


def write_snapshot(directory: Path, snapshot_id: SnapshotId, *content: RecordAndVersion, timestamp: int = 0) -> Path:
    """Write a snapshot with a static quorum."""
    path = directory / snapshot_id.file_name
    with CheckpointWriter(path, snapshot_id, timestamp=timestamp, now=START_MS) as writer:
        writer.add_records(content)
        return writer.finish()


def register(
    broker_id: int, *, epoch: int = 10, fenced: bool = False, incarnation: int = 1
) -> records.RegisterBrokerRecord:
    """A registration; broker 3 is in rack b, all others in rack a."""
    return records.RegisterBrokerRecord(
        broker_id=broker_id,
        incarnation_id=UUID(int=100 * broker_id + incarnation),
        broker_epoch=epoch,
        end_points=(),
        features=(),
        rack="b" if broker_id == 3 else "a",
        fenced=fenced,
        log_dirs=(UUID(int=9000 + broker_id),),
    )


def partition(number: int, *replicas: int, leader: int | None = None) -> records.PartitionRecord:
    """A partition of ``orders`` with all replicas in the ISR."""
    return records.PartitionRecord(
        partition_id=number,
        topic_id=ORDERS,
        replicas=replicas,
        isr=replicas,
        removing_replicas=(),
        adding_replicas=(),
        leader=replicas[0] if leader is None else leader,
        leader_epoch=0,
        partition_epoch=0,
        directories=tuple(UUID(int=9000 + replica) for replica in replicas),
    )


def change(number: int, **fields: Any) -> records.PartitionChangeRecord:
    """A change of a partition of ``orders``."""
    return records.PartitionChangeRecord(partition_id=number, topic_id=ORDERS, **fields)


def registration(broker_id: int, *, epoch: int = 10, **fields: Any) -> records.BrokerRegistrationChangeRecord:
    """A change of a broker's registration."""
    return records.BrokerRegistrationChangeRecord(broker_id=broker_id, broker_epoch=epoch, **fields)


def small_cluster(directory: Path, *, elr: bool = False, **options: Any) -> WrittenLog:
    """Brokers 1 to 3 and the topic ``orders`` with partitions 0 of [1,2,3] and 1 of [2,3]; offsets 0 to 9 or more."""
    log = WrittenLog(directory, **options)
    log.lead(log.voters[0], 1)
    features = [records.FeatureLevelRecord(name="metadata.version", feature_level=LEVEL)]
    if elr:
        features.append(records.FeatureLevelRecord(name="eligible.leader.replicas.version", feature_level=1))
    log.append(*features)
    minimum = records.ConfigRecord(resource_type=4, resource_name="", name="min.insync.replicas", value="2")
    log.append(register(1), register(2), register(3), minimum)
    log.append(records.TopicRecord(name="orders", topic_id=ORDERS), partition(0, 1, 2, 3), partition(1, 2, 3))
    return log
