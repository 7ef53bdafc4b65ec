"""The extension points of kframe that this distribution implements: a format of snapshots."""

from __future__ import annotations

from kframe.plugin import SnapshotFormatSpec, hookimpl


@hookimpl
def kframe_snapshot_formats() -> list[SnapshotFormatSpec]:
    """The format. Its modules are imported on first use."""
    return [
        SnapshotFormatSpec(
            "kraft",
            "kframe_kraft.detection:is_source",
            "kframe_kraft.formats:read_snapshot",
            "The directory, a segment or a snapshot of a KRaft node, or the output of kafka-dump-log.",
            ".checkpoint",
            "kframe_kraft.formats:write_snapshot",
        )
    ]
