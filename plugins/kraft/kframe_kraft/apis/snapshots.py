"""FetchSnapshot: the bytes of a stored snapshot, cut anywhere."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from kframe_kafka_wire.protocol.codec import Fields
from kframe_kafka_wire.protocol.metadata_log import TOPIC

from kframe.plugin import ErrorCode
from kframe_kraft.apis.raft_requests import LeaderName, only
from kframe_kraft.disk import SnapshotId
from kframe_kraft.disk.names import BOOTSTRAP_ID

#: Bytes of a response, whatever a request asks for.
PART_BYTES_MAX: Final = 8 * 2**20


def fetch_snapshot(body: Fields, directory: Path | None, leader: LeaderName, error: ErrorCode) -> Fields:
    """The response to FetchSnapshot. ``error`` refuses it, unless it is NONE. Raises Refused for another topic."""
    partition = only(body["topics"], {"name": TOPIC}, "partition")
    snapshot_id = SnapshotId(partition["snapshot_id"]["end_offset"], partition["snapshot_id"]["epoch"])
    position, data, size = partition["position"], b"", 0
    if error is ErrorCode.NONE:
        error, size, data = _read(directory, snapshot_id, position, body["max_bytes"])
    answered = {
        "index": 0,
        "error_code": error,
        "snapshot_id": {"end_offset": snapshot_id.offset, "epoch": snapshot_id.epoch},
        "current_leader": leader.current(),
        "size": size,
        "position": position,
        "unaligned_records": data,
    }
    topic = {"name": TOPIC, "partitions": [answered]}
    return {"error_code": ErrorCode.NONE, "topics": [topic], "node_endpoints": leader.endpoints()}


def _read(
    directory: Path | None, snapshot_id: SnapshotId, position: int, max_bytes: int
) -> tuple[ErrorCode, int, bytes]:
    """The error, the size of the snapshot and the bytes from ``position`` on."""
    if directory is None or snapshot_id == BOOTSTRAP_ID or min(snapshot_id) < 0:
        return ErrorCode.SNAPSHOT_NOT_FOUND, 0, b""
    try:
        with (directory / snapshot_id.file_name).open("rb") as file:
            size = file.seek(0, 2)
            if not 0 <= position < size:
                return ErrorCode.POSITION_OUT_OF_RANGE, size, b""
            file.seek(position)
            return ErrorCode.NONE, size, file.read(min(max(max_bytes, 1), PART_BYTES_MAX))
    except FileNotFoundError:
        return ErrorCode.SNAPSHOT_NOT_FOUND, 0, b""
