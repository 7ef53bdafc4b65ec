"""``kframe snapshot``: read clusters from the files of operators, show them, generate synthetic ones."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from kframe.cli.admin import open_administration
from kframe.cli.completion import complete_topics
from kframe.cli.inputs import INPUT, NamedPath, check_distinct
from kframe.cli.live import (
    COMMAND_CONFIG,
    CONFIG_OPTION,
    KAFKA,
    awaited,
    opened_cluster,
)
from kframe.cli.numbers import DecimalNumber, WholeNumber, limit_option
from kframe.cli.output import (
    OutputTable,
    Record,
    ReportingGroup,
    emit_reasons,
    emit_record,
    emit_rows,
    output_option,
    plain,
)
from kframe.cli.plugins import PluginSettings, plugin_options
from kframe.cli.progress import progress
from kframe.cli.reading import SnapshotReading, rack_map_option, reading_options
from kframe.cli.topics import PATTERNS, TOPICS, topic_names
from kframe.model.texts import counted

if TYPE_CHECKING:
    from kframe.cli.documents.cluster import CaptureRecord
    from kframe.snapshot import Snapshot
    from kframe.snapshot.files import InputFile

#: Columns of each listing that only wide tables have.
_WIDE: Final[Mapping[str, frozenset[str]]] = {
    "brokers": frozenset({"broker_epoch", "endpoints", "log_dirs", "cordoned_log_dirs", "incarnation_id", "features"}),
    "topics": frozenset({"topic_id", "configs"}),
    "partitions": frozenset({"controller_epoch", "partition_epoch", "leader_recovery_state", "directories"}),
}
_PATH: Final = NamedPath()
_FORCE: Final = click.option("--force", is_flag=True, help="Replace an existing snapshot.")


@click.group("snapshot", cls=ReportingGroup)
def group() -> None:
    """Capture, convert, show and generate snapshots of clusters."""


@group.command()
@click.argument("source", metavar="SNAPSHOT", type=INPUT)
@click.argument("target", metavar="OUT", type=_PATH)
@reading_options
@_FORCE
def convert(source: InputFile, target: Path, reading: SnapshotReading, force: bool) -> None:
    """Convert SNAPSHOT to a snapshot directory OUT.

    SNAPSHOT is a ZooKeeper dump, the output of kafka-topics --describe, kcat -L -J or kafka-reassign-partitions, or a
    snapshot directory; files may be gzipped. With the plugin kraft it is also the directory, a segment or a snapshot
    of a KRaft node, or the output of kafka-dump-log; OUT.checkpoint is then a snapshot that Kafka reads.
    """
    _write(reading.read(source), target, force)


@group.command()
@click.argument("url", metavar="URL")
@click.argument("target", metavar="OUT", type=_PATH)
@CONFIG_OPTION
@COMMAND_CONFIG
@rack_map_option("the cluster")
@click.option(
    "--log-dirs",
    "log_dirs",
    type=_PATH,
    metavar="FILE",
    help="Also write the sizes of partitions to FILE.parquet or FILE.csv, or with log directories to FILE.json.",
)
@_FORCE
@plugin_options
@output_option
def capture(
    url: str,
    target: Path,
    config: Path | None,
    command_config: Path | None,
    rack_map: InputFile | None,
    log_dirs: Path | None,
    force: bool,
    plugins: PluginSettings,
    output: str,
) -> None:
    """Capture a live cluster as a snapshot directory OUT. Nothing is written to the cluster.

    URL is zookeeper://HOST:PORT[/chroot], with --config, or with --command-config kafka://HOST:PORT[,HOST:PORT]... for
    brokers, or kraft://HOST:PORT[,HOST:PORT]... for the controllers of a KRaft quorum.
    The cluster is read until nothing changes between two readings, a few times at most; the manifest names
    nodes that changed or could not be read.
    """
    from kframe.snapshot import write_snapshot

    check_distinct([("OUT", target), ("--log-dirs", log_dirs)])
    if log_dirs is not None:
        _check_sizes_file(url, log_dirs, force)
    reading = SnapshotReading(rack_map=rack_map)
    reading.racks()  # Refuse a malformed map before the cluster is read.
    snapshot = reading.complete(captured(url, config, command_config, plugins))
    with progress("writing") as tick:
        write_snapshot(snapshot, target, force=force, progress=tick)
    from kframe.cli.documents.cluster import CaptureRecord, QuarantinedPath

    record = CaptureRecord(
        snapshot=str(target),
        cluster_id=snapshot.cluster_id,
        controller_id=snapshot.controller_id,
        controller_epoch=snapshot.controller_epoch,
        controllers=list(snapshot.controllers),
        brokers=len(snapshot.brokers),
        topics=len(snapshot.topics),
        partitions=len(snapshot),
    )
    if log_dirs is not None:
        _write_sizes(record, snapshot, url, log_dirs, command_config, plugins)
    quarantined: Mapping[str, str] = {}
    if (facts := snapshot.capture) is not None:
        quarantined = facts.quarantined
        record.passes, record.consistent, record.moved = facts.passes, facts.consistent, facts.moved_count
        record.moved_paths = list(facts.moved)
        record.quarantined = list(itertools.starmap(QuarantinedPath, quarantined.items()))
    if output not in ("table", "wide"):
        emit_record("kframe.snapshot-capture/v1", record, output)
        return
    fields = {name: value for name, value in plain(record).items() if name != "moved_paths"}
    emit_record("", fields if facts is None else fields | {"quarantined": len(quarantined)}, output)
    emit_reasons("quarantined", quarantined)


@group.command()
@click.argument("source", metavar="SNAPSHOT", type=INPUT)
@reading_options
@click.option("--list", "listed", type=click.Choice(tuple(_WIDE)), help="What to list, instead of the summary.")
@click.option(
    "--topics",
    multiple=True,
    callback=topic_names,
    metavar=TOPICS,
    shell_complete=complete_topics,
    help=f"List the partitions of these topics, or with --list topics the topics; {PATTERNS}.",
)
@limit_option
@output_option
def show(
    source: InputFile,
    reading: SnapshotReading,
    listed: str | None,
    topics: tuple[str, ...],
    limit: int | None,
    output: str,
) -> None:
    """Summarize the cluster in SNAPSHOT, or list its brokers, topics or partitions."""
    view = listed or ("partitions" if topics else "summary")
    if topics and view == "brokers":
        raise click.UsageError("--topics and --list brokers exclude one another")
    snapshot = reading.read(source)
    if view == "summary":
        from kframe.snapshot.listing import summary_record

        emit_record("kframe.snapshot-summary/v1", summary_record(snapshot), output, wide=("provenance",))
    else:
        emit_rows(_table(snapshot, view, topics, limit), output)


@group.command()
@click.argument("target", metavar="OUT", type=_PATH)
@click.option("--partitions", type=WholeNumber(1), required=True, help="Partitions in all.")
@click.option("--brokers", type=WholeNumber(1), required=True, help="Brokers, with ids from 0.")
@click.option(
    "--rf", "replication_factor", type=WholeNumber(1, 32_767), default=3, show_default=True, help="Replication factor."
)
@click.option("--seed", type=WholeNumber(), default=0, show_default=True, help="The same seed makes the same cluster.")
@click.option("--topics", type=WholeNumber(1), help="Topics in all.")
@click.option(
    "--partitions-per-topic", type=WholeNumber(1), help="Size of a topic, instead of --topics.  [default: 100]"
)
@click.option(
    "--racks",
    type=WholeNumber(),
    default=0,
    show_default=True,
    help="Racks that brokers are spread over; 0 means none.",
)
@click.option(
    "--layout",
    type=click.Choice(("even", "peerbench")),
    default="even",
    show_default=True,
    help="Placement as Kafka's own, or the cluster of the reference benchmark.",
)
@click.option(
    "--under-replicated",
    type=DecimalNumber(0, 1),
    default=0.0,
    metavar="SHARE",
    help="Partitions that are under-replicated.",
)
@click.option(
    "--preferred-replica-imbalance",
    type=DecimalNumber(0, 1),
    default=0.0,
    metavar="SHARE",
    help="Partitions whose leader is not the preferred replica.",
)
@click.option(
    "--unclean", type=DecimalNumber(0, 1), default=0.0, metavar="SHARE", help="Topics that allow unclean elections."
)
@click.option("--min-insync", type=WholeNumber(1), help="min.insync.replicas of every topic.")
@_FORCE
def generate(
    target: Path,
    partitions: int,
    brokers: int,
    replication_factor: int,
    seed: int,
    topics: int | None,
    partitions_per_topic: int | None,
    racks: int,
    layout: str,
    under_replicated: float,
    preferred_replica_imbalance: float,
    unclean: float,
    min_insync: int | None,
    force: bool,
) -> None:
    """Generate a synthetic cluster as a snapshot directory OUT."""
    from kframe.snapshot import Health
    from kframe.snapshot import generate as generate_snapshot

    health = Health(under_replicated, preferred_replica_imbalance, unclean, min_insync)
    snapshot = generate_snapshot(
        partitions,
        brokers,
        replication_factor,
        topics=topics,
        partitions_per_topic=partitions_per_topic,
        racks=racks,
        seed=seed,
        layout="peerbench" if layout == "peerbench" else "even",
        health=health,
    )
    _write(snapshot, target, force)


def captured(url: str, config: Path | None, command_config: Path | None, plugins: PluginSettings) -> Snapshot:
    """The live cluster at a URL: with a client's configuration for ``kafka:`` and ``kraft:``, else with a server's.

    Raises UsageError for the configuration of the other kind.
    """
    cluster, located = opened_cluster(url, config, command_config, plugins)
    with progress("reading", awaited=awaited(url)) as tick, located:
        return cluster.capture(tick)


def _check_sizes_file(url: str, path: Path, force: bool) -> None:
    """Raise an error unless the sizes of partitions can be read, and may be written."""
    from kframe.plans.generate.captured_sizes import check_sizes_file

    if not url.startswith(f"{KAFKA}:"):
        raise click.UsageError(f"--log-dirs asks brokers: found {url}, expected a kafka:// URL")
    check_sizes_file(path, force=force)


def _write_sizes(
    record: CaptureRecord,
    snapshot: Snapshot,
    url: str,
    path: Path,
    command_config: Path | None,
    plugins: PluginSettings,
) -> None:
    """Write the sizes of partitions that brokers know. ``record`` gets a summary."""
    from kframe.plans.generate.captured_sizes import size_rows, write_directories, write_sizes
    from kframe.ports.administration import replica_logs

    with open_administration(url, command_config, plugins) as admin:
        description = admin.describe()
        brokers = sorted(description.brokers.keys() - set(description.controllers))
        listed = admin.log_directories(brokers)
    rows = list(size_rows(snapshot, replica_logs(listed)))
    if path.suffix == ".json":
        write_directories(listed, path)
    else:
        write_sizes(rows, path)
    record.sizes, record.partitions_without_size = str(path), len(snapshot) - len(rows)
    record.brokers_without_response = [broker_id for broker_id in brokers if broker_id not in listed]


def _write(snapshot: Snapshot, target: Path, force: bool) -> None:
    from kframe.snapshot import write_snapshot
    from kframe.snapshot.formats import check_holds, format_written_to

    if spec := format_written_to(target):
        check_holds(snapshot, target)
        spec.write_snapshot(snapshot, target, force)
    else:
        with progress("writing") as tick:
            write_snapshot(snapshot, target, force=force, progress=tick)
    counts = {"partition": len(snapshot), "topic": len(snapshot.topics), "broker": len(snapshot.brokers)}
    click.echo(f"{target}: {', '.join(counted(count, noun) for noun, count in counts.items())}", err=True)
    if snapshot.unknown:
        click.echo(f"unknown: {', '.join(snapshot.unknown)}", err=True)


def _table(snapshot: Snapshot, view: str, topics: tuple[str, ...], limit: int | None) -> OutputTable:
    from kframe.model.topic_patterns import matching_topics
    from kframe.snapshot import listing

    selected = set(matching_topics(snapshot.topics.names, topics, "--topics")) or None
    rows: dict[str, Iterable[Record]] = {
        "brokers": listing.broker_rows(snapshot),
        "topics": listing.topic_rows(snapshot, selected),
        "partitions": listing.partition_rows(snapshot, selected),
    }
    columns, unknown = listing.columns_of(snapshot, view)
    return OutputTable(f"kframe.snapshot-{view}/v1", columns, rows[view], _WIDE[view] | unknown, limit)
