"""``kframe log``: the metadata log of a KRaft cluster as a table, and the cluster at any offset."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

import click

from kframe.plugin import SnapshotError, StoreError, counted
from kframe.plugin.commands import (
    COMMAND_CONFIG,
    IDS,
    PATTERNS,
    TOPICS,
    BadInput,
    NamedPath,
    OutputTable,
    ReportingGroup,
    StopSignal,
    awaited,
    awaited_stream,
    broker_ids,
    check_reader,
    client_properties,
    emit_record,
    emit_rows,
    limit_option,
    output_option,
    progress,
    topic_names,
)
from kframe_kraft.commands.log_parameters import QUORUM, LogSource, RecordType, position_options

if TYPE_CHECKING:
    from kframe_kraft.disk import LogHistory
    from kframe_kraft.sources.paths import NodeSource
    from kframe_kraft.time_travel.following import LogFollower

_PATH: Final = NamedPath()
_SCOPES: Final = ("topic", "broker", "rack")
#: The snapshot format of the sources.
_FORMAT: Final = "kraft"
#: The exit code for a log that is damaged; the table of ``kframe --help`` has it.
_DAMAGED: Final = 1


@click.group("log", cls=ReportingGroup)
def group() -> None:
    """Show the metadata log of a KRaft cluster, and the cluster at any offset.

    SOURCE is the directory of a KRaft node, which may be running, its log directory, a segment, a snapshot, or the
    output of kafka-dump-log. kraft://HOST:PORT[,HOST:PORT]... is a running quorum, by the listener of its controllers:
    its log from the newest snapshot to the high watermark. Positions are offsets, "end", or times such as
    2026-11-24T09:30:00Z. An offset means the whole batch that contains it.

    A damaged log is read up to the damage. Standard error names it and the offsets left out, and the exit code is 1.
    """


_SOURCE: Final = LogSource(exists=True)


@group.command()
@click.argument("source", type=_SOURCE)
@click.option("--type", "types", multiple=True, type=RecordType(), help="Only this type; may be repeated.")
@click.option(
    "--topics",
    multiple=True,
    callback=topic_names,
    metavar=TOPICS,
    help=f"List only records about these topics; {PATTERNS}.",
)
@click.option(
    "--brokers",
    multiple=True,
    callback=broker_ids,
    metavar=IDS,
    help="Only records that name these brokers; may be repeated.",
)
@click.option("--from", "start", metavar="POSITION", help="Only from this offset or time on.")
@click.option("--to", "end", metavar="POSITION", help="Only to this offset or time.")
@click.option("--control", is_flag=True, help="Also control records: leaders and voters of the quorum.")
@click.option("--boundaries", is_flag=True, help="Also a row for each batch, and the markers of transactions.")
@click.option(
    "--follow",
    is_flag=True,
    help="Keep listing new records until SIGTERM or SIGINT. SOURCE is a directory or a quorum.",
)
@COMMAND_CONFIG
@limit_option
@output_option
def show(
    source: str | Path,
    types: tuple[str, ...],
    topics: tuple[str, ...],
    brokers: tuple[int, ...],
    start: str | None,
    end: str | None,
    control: bool,
    boundaries: bool,
    follow: bool,
    command_config: Path | None,
    limit: int | None,
    output: str,
) -> None:
    """List the records of the log in SOURCE."""
    from kframe_kraft.time_travel.entries import EntryFilter, entries
    from kframe_kraft.time_travel.following import followed_entries
    from kframe_kraft.time_travel.mentions import check_mentioned
    from kframe_kraft.time_travel.positions import end_of, start_of

    def selection(history: LogHistory) -> EntryFilter:
        first = 0 if start is None else start_of(history, start)
        last = None if end is None else end_of(history, end)
        if last is not None and first >= last > 0:
            raise BadInput(f"--from {start}: found offset {first}, expected one up to --to {end}")
        return EntryFilter(types, topics, brokers, first, last, control, boundaries)

    if not follow:
        history = _read(source, command_config).history
        check_mentioned(history, topics, brokers)
        _emit_entries(entries(history, selection(history)), output, limit)
        _exit_if_damaged(history)
        return
    if end is not None:
        raise click.UsageError("--follow and --to exclude one another")
    if limit is not None:
        raise click.UsageError("--follow and --limit exclude one another")
    with StopSignal() as stop:
        try:
            with followed(source, command_config, stop) as (history, follower):
                rows = followed_entries(history, follower, selection(history), stop, _report)
                _emit_entries(_for_reader(rows), output)
        except StoreError:
            if not stop:
                raise


def _emit_entries(rows: Iterable[dict[str, Any] | None], output: str, limit: int | None = None) -> None:
    from kframe_kraft.time_travel.entries import COLUMNS

    wide = frozenset({"version", "batch", "transaction", "committed", "fields"})
    emit_rows(OutputTable("kframe.log-records/v1", COLUMNS, rows, wide, limit), output)


def _for_reader(rows: Iterable[dict[str, Any] | None]) -> Iterator[dict[str, Any] | None]:
    """Yield all rows. Raises BrokenPipeError before a wait if the reader has closed the pipe."""
    for row in rows:
        yield row
        if row is None:
            check_reader()


def _report(text: str) -> None:
    click.echo(f"kframe log: {text}", err=True)


@contextmanager
def followed(
    source: str | Path, command_config: Path | None, stop: StopSignal
) -> Iterator[tuple[LogHistory, LogFollower]]:
    """The current log of a source, and a follower of later records. Raises as ``_read``."""
    if isinstance(source, str):
        live = _live()
        observer = live.open_observer(source, client_properties(command_config), stop.wait)
        try:
            with progress("reading", awaited=awaited(source)) as tick:
                history = live.spooled_history(observer, tick)
            yield history, live.QuorumFollower(observer, history, lambda text: None if stop else _report(text))
        finally:
            observer.close()
        return
    from kframe_kraft.disk import read_history
    from kframe_kraft.disk.following import DirectoryFollower
    from kframe_kraft.sources.detection import log_directory

    directory = log_directory(source) if source.is_dir() else None
    if directory is None:
        raise click.UsageError(f"--follow needs the directory of a node, or {QUORUM}HOST:PORT, not {source}")
    _refuse_client_properties(command_config)
    with progress("reading"):
        history = read_history(directory, from_oldest=True)
    yield history, DirectoryFollower(directory, history)


@group.command()
@click.argument("source", type=_SOURCE)
@position_options
@click.option("--list", "listed", type=click.Choice(("brokers",)), help="What to list, instead of the summary.")
@click.option("--out", type=_PATH, metavar="DIR", help="Write the cluster as a snapshot directory.")
@click.option("--force", is_flag=True, help="Replace an existing snapshot.")
@COMMAND_CONFIG
@output_option
def at(
    source: str | Path,
    position: str,
    listed: str | None,
    out: Path | None,
    force: bool,
    command_config: Path | None,
    output: str,
) -> None:
    """Summarize the cluster at an offset or time; at the end of the log by default."""
    from kframe.plugin.snapshot import broker_rows, summary_record, write_snapshot
    from kframe_kraft.sources.snapshots import snapshot_of
    from kframe_kraft.time_travel.positions import end_of, time_before, time_text

    node = _read(source, command_config)
    end = end_of(node.history, position)
    snapshot = snapshot_of(node, source if isinstance(source, str) else source.name, end)
    if out is not None:
        with progress("writing") as tick:
            write_snapshot(snapshot, out, force=force, progress=tick)
    if listed == "brokers":
        rows = list(broker_rows(snapshot))
        columns = rows[0].__struct_fields__ if rows else ("broker_id",)
        wide = frozenset(columns) - {
            "broker_id",
            "registered",
            "rack",
            "fenced",
            "leaders",
            "replicas",
            "in_sync_replicas",
        }
        emit_rows(OutputTable("kframe.log-brokers/v1", columns, rows, wide), output)
    else:
        record = {"at": time_text(time_before(node.history, end)), **summary_record(snapshot)}
        emit_record("kframe.log-cluster/v1", record, output, wide=("provenance", "assumptions"))
    _exit_if_damaged(node.history)


@group.command()
@click.argument("source", type=_SOURCE)
@click.argument("first", metavar="A")
@click.argument("second", metavar="B")
@click.option("--by", "scope", type=click.Choice(_SCOPES), help="Count the differences by topic, broker or rack.")
@COMMAND_CONFIG
@limit_option
@output_option
def diff(
    source: str | Path,
    first: str,
    second: str,
    scope: str | None,
    command_config: Path | None,
    limit: int | None,
    output: str,
) -> None:
    """List what changes from the cluster at A to that at B, which are offsets or times. B may be the earlier one."""
    from kframe_kraft.replay.image import Timeline
    from kframe_kraft.time_travel.differences import COLUMNS, differences, summarize
    from kframe_kraft.time_travel.positions import end_of

    history = _read(source, command_config).history
    ends = [end_of(history, position) for position in (first, second)]
    timeline = Timeline(history)
    before = timeline.advance(min(ends)).copy()
    after = timeline.advance(max(ends))
    changes = differences(before, after)
    if ends[0] > ends[1]:
        changes = (difference.reversed() for difference in changes)
    if scope is None:
        rows: Iterator[dict[str, Any]] = (
            asdict(difference) | {"brokers": list(difference.brokers)} for difference in changes
        )
        emit_rows(
            OutputTable(
                "kframe.log-diff/v1", (*COLUMNS, "topic", "brokers"), rows, frozenset({"topic", "brokers"}), limit
            ),
            output,
        )
        _exit_if_damaged(history)
        return
    registrations = {**before.brokers.registrations, **after.brokers.registrations}
    racks = {broker_id: registration.rack for broker_id, registration in registrations.items()}
    columns = (scope, "changes", "by_change")
    emit_rows(
        OutputTable(f"kframe.log-diff-{scope}/v1", columns, summarize(changes, scope, racks), limit=limit), output
    )
    _exit_if_damaged(history)


@group.command()
@click.argument("source", type=_SOURCE)
@click.argument("partition", metavar="TOPIC-PARTITION")
@position_options
@COMMAND_CONFIG
@output_option
def why(source: str | Path, partition: str, position: str, command_config: Path | None, output: str) -> None:
    """Explain why a partition has its leader: the record, the state before, the event and the rule.

    The rules of KRaft decide every event that the records beside the change allow. An event is named if the rules
    write this change for it; other events for which they do are listed too.
    """
    from kframe_kraft.time_travel.causes import leader_cause
    from kframe_kraft.time_travel.timelines import RetainedTimelines

    timelines = RetainedTimelines(_read(source, command_config).history)
    cause = leader_cause(timelines, partition, timelines.index.end_of(position))
    record = asdict(cause)
    record["not_elected"] = {str(broker): reason for broker, reason in (cause.not_elected or {}).items()}
    record["other_events"] = list(cause.other_events)
    if output in ("table", "wide"):
        record = {name: value for name, value in record.items() if value not in (None, [], {})}
        if cause.snapshot_offset is not None:
            record["event"] = "unknown: only a snapshot names this leader, and the log before it is deleted"
        elif cause.event is None:
            record["event"] = "unknown: no event that the log shows gives this change"
    emit_record("kframe.log-why/v1", record, output)
    _exit_if_damaged(timelines.history)


def _read(source: str | Path, command_config: Path | None) -> NodeSource:
    """The log of a source, up to its first damage, which is reported.

    Raises BadInput, and ConfigError, StoreError or LogError.
    """
    if isinstance(source, str):
        with progress("reading", awaited=awaited(source)) as tick:
            quorum: NodeSource = _live().read_quorum(source, client_properties(command_config), tick)
            return quorum
    _refuse_client_properties(command_config)
    from kframe_kraft.sources.paths import read_source

    _check_is_log(source)
    with progress("reading", awaited=awaited_stream(source)):
        node = read_source(source, from_oldest=True, to_damage=True)
    log, absent = node.history.log, node.history.absent
    for reason in dict.fromkeys(absent.values()):
        columns = ", ".join(column for column, why in absent.items() if why == reason)
        click.echo(f"note: {columns} unknown: {reason}", err=True)
    for text in node.history.damage:
        click.echo(f"warning: damaged log: {text}", err=True)
    if log.torn_bytes:
        click.echo(
            f"note: {counted(log.torn_bytes, 'byte')} without a batch at the end of the log: {log.torn_reason}",
            err=True,
        )
    return node


def _refuse_client_properties(command_config: Path | None) -> None:
    if command_config is not None:
        raise click.UsageError(f"--command-config has settings for {QUORUM} URLs")


def _check_is_log(source: Path) -> None:
    """Raise BadInput for a snapshot in another format: it has no log."""
    from kframe.plugin.snapshot import detect_format

    if not source.is_file():
        return
    try:
        name = detect_format(source)
    except SnapshotError:
        return  # The reader of logs says what it expects.
    if name != _FORMAT:
        raise BadInput(
            f"{source}: found a snapshot in the format {name}, which has no log, expected a source of "
            f"kframe log: use kframe snapshot show {source}"
        )


def _exit_if_damaged(history: LogHistory) -> None:
    """End with exit code 1 if records were left out."""
    if history.damage:
        click.get_current_context().exit(_DAMAGED)


def _live() -> ModuleType:
    """The package that reads quorums. Raises BadInput if its requirements are not installed."""
    try:
        import kframe_kraft.live
    except ImportError as error:
        raise BadInput(f"{QUORUM} URLs need kframe-kafka-wire, which is not installed ({error})") from error
    return kframe_kraft.live
