"""The documents of small reports about live clusters."""

from __future__ import annotations

from msgspec import UNSET, Struct, UnsetType


class QuarantinedPath(Struct):
    """A record that could not be read, and why."""

    path: str
    reason: str


class CaptureRecord(Struct):
    """A captured cluster: ``kframe snapshot capture``.

    The last five fields exist where the source reads in passes, and those of sizes with ``--log-dirs``.
    """

    snapshot: str
    cluster_id: str | None
    controller_id: int | None
    controller_epoch: int | None
    controllers: list[int]
    """Ids of instances of kframe, which are no brokers."""
    brokers: int
    topics: int
    partitions: int
    sizes: str | UnsetType = UNSET
    partitions_without_size: int | UnsetType = UNSET
    brokers_without_response: list[int] | UnsetType = UNSET
    passes: int | UnsetType = UNSET
    consistent: bool | UnsetType = UNSET
    moved: int | UnsetType = UNSET
    moved_paths: list[str] | UnsetType = UNSET
    quarantined: list[QuarantinedPath] | UnsetType = UNSET


class ResignationRecord(Struct):
    """The controller that lost the role, and the epoch that ended: ``kframe controller resign``."""

    controller_id: int
    controller_epoch: int


class PartitionCode(Struct):
    """The response for a partition by the name of Kafka's error: ``kframe elect``, ``reassign`` and ``plan`` with
    ``--execute``."""

    topic: str
    partition: int
    error: str


class ReassigningPartition(Struct):
    """A partition under reassignment: ``kframe reassign list``."""

    topic: str
    partition: int
    replicas: list[int]
    adding: list[int]
    removing: list[int]
