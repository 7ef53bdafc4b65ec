"""The extension points of kframe that this distribution implements: snapshots, live clusters, commands, documents."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kframe.plugin import ClusterSpec, ControllerSpec, DocumentSpec, SnapshotFormatSpec, hookimpl

if TYPE_CHECKING:
    import click


@hookimpl
def kframe_snapshot_formats() -> list[SnapshotFormatSpec]:
    """The format. Its modules are imported on first use."""
    return [
        SnapshotFormatSpec(
            "kraft",
            "kframe_kraft.sources.detection:is_source",
            "kframe_kraft.sources.snapshots:read_snapshot",
            "The directory, a segment or a snapshot of a KRaft node, or the output of kafka-dump-log.",
            ".checkpoint",
            "kframe_kraft.sources.snapshots:write_snapshot",
            "kframe_kraft.time_travel.history:open_history",
        )
    ]


@hookimpl
def kframe_clusters() -> list[ClusterSpec]:
    """Live clusters by their metadata quorum."""
    return [ClusterSpec("kraft", "kframe_kraft.live.cluster:open_cluster", "Clusters in KRaft mode, by their quorum.")]


@hookimpl
def kframe_controllers() -> list[ControllerSpec]:
    """Controllers that are the only voter of their quorum."""
    memory = "kframe_kraft.server.memory:make_memory_controller"
    return [
        ControllerSpec("kraft", "kframe_kraft.server.serving:make_controller", "The only voter of a KRaft quorum."),
        ControllerSpec("kraft-memory", memory, "A KRaft controller without a directory and listeners, to embed."),
    ]


@hookimpl
def kframe_register_commands(cli: click.Group) -> None:
    """Add ``kframe log`` and ``kframe kraft``."""
    from kframe_kraft.commands import kraft, log

    cli.add_command(kraft.group)
    cli.add_command(log.group)


@hookimpl
def kframe_documents() -> list[DocumentSpec]:
    """The documents of ``kframe log`` and ``kframe kraft``."""
    types, broker = "kframe_kraft.commands.documents", "kframe.plugin.snapshot:SnapshotBroker"
    by = "Differences by {}: `kframe log diff --by {}`."
    return [
        DocumentSpec("kframe.kraft-compare/v1", f"{types}:ReplicaRow", "Logs: `kframe kraft compare`.", rows=True),
        DocumentSpec("kframe.kraft-format/v1", f"{types}:FormatDocument", "Directories: `kframe kraft format`."),
        DocumentSpec("kframe.kraft-recovery/v1", f"{types}:RecoveryDocument", "The recovery: `kframe kraft recover`."),
        DocumentSpec("kframe.log-brokers/v1", broker, "A broker: `kframe log at --list brokers`.", rows=True),
        DocumentSpec("kframe.log-cluster/v1", f"{types}:LogClusterDocument", "The cluster: `kframe log at`."),
        DocumentSpec("kframe.log-diff/v1", f"{types}:DifferenceRow", "A difference: `kframe log diff`.", rows=True),
        *(
            DocumentSpec(
                f"kframe.log-diff-{scope}/v1",
                f"{types}:{scope.capitalize()}Differences",
                by.format(scope, scope),
                rows=True,
            )
            for scope in ("topic", "broker", "rack")
        ),
        DocumentSpec("kframe.log-records/v1", f"{types}:LogRow", "A record: `kframe log show`.", rows=True),
        DocumentSpec("kframe.log-why/v1", f"{types}:LeaderCauseDocument", "Cause of a leader: `kframe log why`."),
    ]
