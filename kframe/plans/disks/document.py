"""The document of moves between log directories."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from kframe.plans.check.document import PlanSnapshot


class DirectoryMove(Struct):
    """A replica that moves to another log directory of its broker. ``source_bytes`` is what its former directory has
    once this and all earlier moves have ended. ``seconds`` are from the start until then; null without a rate."""

    broker_id: int
    topic: str
    partition: int
    bytes: int
    source: str
    target: str
    source_bytes: int
    source_percent: float | None
    """``source_bytes`` in percent of the disk; null if its size is unknown."""
    seconds: float | None


class DiskDirectory(Struct):
    """A log directory before and after the plan. ``lower`` and ``upper`` are its limits.

    ``disk_bytes`` is the size of its disk, null if unknown. Its bytes are those in use on the disk where the source
    says how many are free, else those of its replicas, once moves in progress have ended.
    """

    broker_id: int
    log_dir: str
    state: Literal["online", "offline", "cordoned", "excluded"]
    disk_bytes: int | None
    bytes_before: int
    bytes_after: int
    percent_before: float | None
    percent_after: float | None
    lower: int
    upper: int
    replicas_left: int
    replicas_received: int


class UnmetDirectory(Struct):
    """A log directory outside of its limits after the plan, and why. ``outside`` are the bytes that it has above the
    upper limit, or lacks below the lower one."""

    broker_id: int
    log_dir: str
    bytes: int
    lower: int
    upper: int
    outside: int
    reason: str


class DiskPlanDocument(Struct):
    """Moves between the log directories of brokers: ``kframe plan disks``. ``complete``: each directory is within its
    limits.

    ``bytes`` is what all moves copy. No plan that leaves as few bytes outside of the limits copies less than ``bound``;
    ``gap`` is by how much the moves exceed it. ``seconds`` is how long the broker with the most bytes copies, null
    without a rate. The moves are in the order of their effect, the largest first.
    """

    snapshot: PlanSnapshot
    summary: str
    complete: bool
    bytes: int
    bound: int
    gap: int
    proof: str
    seconds: float | None
    moves: list[DirectoryMove]
    directories: list[DiskDirectory]
    unmet: list[UnmetDirectory]
    notes: list[str]
