"""The documents of ``kframe snapshot`` except those of its rows (``kframe/snapshot/row_types.py``)."""

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
