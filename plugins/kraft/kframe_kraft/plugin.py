"""The extension points of kframe that this distribution implements: a format of snapshots, live clusters, commands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kframe.plugin import ClusterSpec, SnapshotFormatSpec, hookimpl

if TYPE_CHECKING:
    import click


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


@hookimpl
def kframe_clusters() -> list[ClusterSpec]:
    """Live clusters by their metadata quorum."""
    return [ClusterSpec("kraft", "kframe_kraft.live.cluster:open_cluster", "Clusters in KRaft mode, by their quorum.")]


@hookimpl
def kframe_register_commands(cli: click.Group) -> None:
    """Add ``kframe log`` and ``kframe kraft``."""
    from kframe_kraft.commands import kraft, log

    cli.add_command(kraft.group)
    cli.add_command(log.group)
