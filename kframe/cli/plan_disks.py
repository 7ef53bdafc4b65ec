"""``kframe plan disks``: moves between the log directories of brokers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from kframe.cli.exits import FAILED
from kframe.cli.inputs import SOURCE, is_url
from kframe.cli.live import COMMAND_CONFIG
from kframe.cli.log_dirs import DIRECTORY, directories, listed_directories, log_dirs_option, parse_directory
from kframe.cli.numbers import IDS, ByteSize, DecimalNumber, broker_ids, limit_of, parse_decimal, parse_ids, parse_size
from kframe.cli.options import collected
from kframe.cli.output import (
    BadInput,
    echo_text,
    emit_data,
    emit_heading,
    emit_section,
    output_option,
    plain,
)
from kframe.cli.plan_generate import PlanOutput
from kframe.cli.plugins import PluginSettings, plugin_options
from kframe.cli.reading import SnapshotReading, reading_options
from kframe.cli.report import force_option
from kframe.cli.snapshot import captured
from kframe.model.texts import duration_text

if TYPE_CHECKING:
    from kframe.plans.disks.document import DiskPlanDocument
    from kframe.plans.disks.request import DiskRequest
    from kframe.snapshot.files import InputFile

_DIRECTORIES: Final = (
    "broker_id",
    "log_dir",
    "state",
    "bytes_before",
    "bytes_after",
    "percent_before",
    "percent_after",
    "replicas_left",
    "replicas_received",
)
_UNMET: Final = ("broker_id", "log_dir", "outside", "reason")
_ALL: Final = "-o json has them all"


def _disk_bytes(
    _ctx: click.Context, _option: click.Parameter, values: Iterable[str]
) -> Mapping[tuple[int, str | None] | None, int]:
    """Callback of ``--disk-capacity``: ``4TB``, ``1-3=4TB`` and ``1:/data=4TB`` by broker and path."""
    sizes: dict[tuple[int, str | None] | None, int] = {}
    for text in values:
        key, equals, size = text.rpartition("=")
        try:
            if equals and not key:
                raise ValueError("a size, alone or after ID= or ID:PATH=")
            keys: Sequence[tuple[int, str | None] | None] = [None]
            if ":" in key:
                keys = [parse_directory(key)]
            elif key:
                keys = [(broker_id, None) for broker_id in parse_ids(key)]
            number = parse_size(size)
        except ValueError as problem:
            raise click.BadParameter(f"found {text!r}, expected {problem}") from problem
        for directory in keys:
            if directory in sizes:
                raise click.BadParameter(f"found {key or 'a size for all'} twice, expected it once")
            sizes[directory] = number
    return sizes


def _level(_ctx: click.Context, _option: click.Parameter, value: str | None) -> dict[str, Any]:
    """Callback of ``--until``: the field of a ``DiskRequest`` for ``80%`` or ``500GB``."""
    if value is None:
        return {}
    try:
        if value.endswith("%"):
            return {"until_percent": parse_decimal(value.removesuffix("%"))}
        return {"until_bytes": parse_size(value)}
    except ValueError as problem:
        expected = f"percent of the disk such as 80%, or {problem}"
        raise click.BadParameter(f"found {value!r}, expected {expected}") from problem


def _request(until: dict[str, Any], **goals: Any) -> DiskRequest:
    from kframe.plans.disks.request import DiskRequest

    return DiskRequest(**{**goals, **until, "brokers": goals["brokers"] or None})


#: Adds the options of a ``DiskRequest`` to a command, which receives it as ``request``.
_request_options: Final = collected(
    "request",
    _request,
    click.option("--brokers", multiple=True, callback=broker_ids, metavar=IDS,
                 help="Level only these brokers; may be repeated."),
    click.option("--relieve", multiple=True, callback=directories, metavar=DIRECTORY,
                 help="Relieve this log directory, and level none; may be repeated."),
    click.option("--until", callback=_level, metavar="LEVEL",
                 help="With --relieve: the level to reach, such as 80% of the disk, or 500GB. No other directory "
                      "receives more."),
    click.option("--tolerance", type=DecimalNumber(0, 100), default=10.0, show_default=True, metavar="PERCENT",
                 help="Deviation from the share of bytes that levelling allows."),
    click.option("--exclude", multiple=True, callback=directories, metavar=DIRECTORY,
                 help="Leave this log directory as it is; may be repeated."),
    click.option("--disk-capacity", "disk_bytes", multiple=True, callback=_disk_bytes, metavar="[ID[-ID]|ID:PATH=]SIZE",
                 help="Size of disks, where the input does not say it; may be repeated."),
    click.option("--rate", type=ByteSize(per_second=True), metavar="RATE",
                 help="Bytes per second that a broker copies, such as 50MB/s; gives the expected duration."),
    click.option("--exact", is_flag=True, help="Solve each broker to the optimum (needs highspy)."),
)  # fmt: skip


@click.command("disks")
@click.argument("source", metavar="SNAPSHOT", type=SOURCE)
@reading_options
@COMMAND_CONFIG
@log_dirs_option
@_request_options
@click.option("--out", metavar="FILE", help="Write the plan, Kafka's reassignment JSON; - is stdout.")
@force_option
@limit_of(50)
@plugin_options
@output_option
def disks(
    source: InputFile | str,
    reading: SnapshotReading,
    command_config: Path | None,
    log_dirs: InputFile | None,
    request: DiskRequest,
    out: str | None,
    force: bool,
    limit: int,
    plugins: PluginSettings,
    output: str,
) -> None:
    """Level the log directories of each broker, or relieve full ones, with the fewest bytes moved between them.

    SNAPSHOT is a file or directory, - for standard input, or the URL of a live cluster, whose brokers are asked for
    their log directories without --log-dirs. No replica leaves its broker. Exit code 1: a log directory is not within
    its limits; the first line and the report say why.
    """
    from kframe.plans.check.resolve import resolve_plan
    from kframe.plans.disks import plan_disks, report_document
    from kframe.plans.disks.report import SCHEMA
    from kframe.plans.file.write import plan_lines

    writing = PlanOutput(out, None, force)
    writing.check([("SNAPSHOT", source), ("--log-dirs", log_dirs), ("--rack-map", reading.rack_map)])
    if command_config is not None and not is_url(source):
        raise BadInput("--command-config: found a file as SNAPSHOT, expected the URL of a live cluster")
    if is_url(source):
        snapshot = reading.complete(captured(source, None, command_config, plugins))
    else:
        snapshot = reading.read(source)
    listed = listed_directories(source, log_dirs, command_config, plugins)
    if listed is None:
        raise BadInput("--log-dirs: found none, expected the output of kafka-log-dirs --describe, or a kafka:// URL")
    plan = plan_disks(snapshot, listed, request)
    document = report_document(plan)
    if out is not None:
        planned = plan.plan
        writing.write(plan_lines(planned, resolve_plan(planned, snapshot).stamp()))
    if writing.on_stdout:
        for text in (document.summary, *document.notes):
            click.echo(text, err=True)
    elif not emit_data(SCHEMA, document, _DIRECTORIES, document.directories, output):
        _emit_tables(document, output, limit)
    click.get_current_context().exit(0 if document.complete else FAILED)


def _emit_tables(document: DiskPlanDocument, output: str, limit: int) -> None:
    from kframe.plans.disks.document import DirectoryMove

    emit_heading(document.summary, output)
    echo_text(document.proof, output)
    if document.seconds is not None:
        echo_text(f"expected duration: {duration_text(document.seconds)}", output)
    for note in document.notes:
        echo_text(note, output)
    emit_section(document.unmet, output, _UNMET, limit, _ALL)
    moves = list(map(plain, document.moves))
    hidden = "source_bytes" if any(move["source_percent"] is not None for move in moves) else "source_percent"
    known = [name for name in DirectoryMove.__struct_fields__ if name != hidden]
    known = [name for name in known if name != "seconds" or document.seconds is not None]
    emit_section(moves, output, known, limit, _ALL)
    emit_section(document.directories, output, _DIRECTORIES, limit, _ALL)
