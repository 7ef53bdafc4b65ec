"""What exists in the cluster of a controller."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from uuid import UUID

from kframe_kraft.server.serving import ServedController

TEXTS: Final = (
    "orders",
    "other",
    "*",
    "alice",
    "User:alice",
    "cluster",
    "metadata.version",
    "kraft.version",
    "eligible.leader.replicas.version",
    "min.insync.replicas",
    "unclean.leader.election.enable",
    "user",
    "client-id",
    "controller_mutation_rate",
    "127.0.0.1",
    "PLAINTEXT",
    "1",
    "true",
)
#: DefaultPrincipalData 0 of User:alice.
ALICE: Final = b"\x00\x00" + b"\x05User" + b"\x06alice" + b"\x00\x00"
#: A client on this machine.
LOOPBACK: Final = bytes((127, 0, 0, 1))


@dataclass(frozen=True, slots=True)
class Known:
    """``leader`` leads partition 0 of ``topic_id``, whose epochs follow. ``brokers`` have their broker epochs."""

    brokers: dict[int, int]
    directories: tuple[bytes, ...]
    topic_id: bytes
    leader: int
    leader_epoch: int
    partition_epoch: int
    quorum_epoch: int
    log_end: int

    @property
    def numbers(self) -> tuple[int, ...]:
        """Ids and epochs."""
        return (0, 1, 2, 9, self.leader, self.leader_epoch, self.partition_epoch, self.quorum_epoch, self.log_end)

    @property
    def ids(self) -> tuple[bytes, ...]:
        """Ids of topics and directories."""
        return (self.topic_id, *self.directories)


def known_values(controller: ServedController) -> Known:
    """The values of a controller. The topic may be an unknown one."""
    assert controller.node is not None
    metadata = controller.node.metadata
    partitions, registrations = metadata.partitions, metadata.brokers.registrations
    topic_id = next(iter(metadata.topics.index_by_id), UUID(int=5))
    row = metadata.topics.row_by_id(topic_id, 0)
    leader = -1 if row is None else int(partitions.leader[row])
    return Known(
        {broker_id: each.broker_epoch for broker_id, each in registrations.items()},
        (*(directory.bytes for each in registrations.values() for directory in each.directories), bytes(16)),
        topic_id.bytes,
        int(metadata.brokers.ids[leader]) if leader >= 0 else -1,
        0 if row is None else int(partitions.leader_epoch[row]),
        0 if row is None else int(partitions.partition_epoch[row]),
        controller.node.quorum.epoch,
        controller.log_end,
    )
