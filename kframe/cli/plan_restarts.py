"""``kframe plan restarts``: the batches of a rolling restart."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
from msgspec import UNSET

from kframe.cli.findings import emit_mode, emit_release
from kframe.cli.inputs import SOURCE, is_url
from kframe.cli.live import COMMAND_CONFIG
from kframe.cli.numbers import IDS, DecimalNumber, WholeNumber, broker_ids
from kframe.cli.options import collected
from kframe.cli.output import (
    BadInput,
    Fields,
    echo_text,
    emit_assumptions,
    emit_data,
    emit_heading,
    emit_section,
    output_option,
)
from kframe.cli.plugins import PluginSettings, plugin_options
from kframe.cli.reading import SnapshotReading, reading_options
from kframe.cli.snapshot import captured
from kframe.cli.stop_signal import StopSignal
from kframe.cli.studies import config_option
from kframe.model.texts import counted

if TYPE_CHECKING:
    from kframe.plans.restarts.document import RestartBatch, RestartPlanDocument
    from kframe.plans.restarts.request import RestartRequest
    from kframe.snapshot import Snapshot
    from kframe.snapshot.files import InputFile

_COLUMNS: Final = (
    "batch",
    "brokers",
    "controllers",
    "racks",
    "leaders_moved",
    "at_min_isr",
    "newly_offline",
    "newly_under_min_isr",
)
#: Reasons that a line names.
_REASONS_SHOWN: Final = 3


@dataclass(frozen=True, slots=True)
class RestartSettings:
    """What the command plans, and how it reads a cluster."""

    request: RestartRequest
    reading: SnapshotReading
    config: Mapping[str, str]
    command_config: Path | None
    plugins: PluginSettings

    def read(self, source: InputFile | str) -> Snapshot:
        """The cluster in a file or at a URL. Raises InputError, StoreError, BadInput."""
        if is_url(source):
            return self.reading.complete(captured(source, None, self.command_config, self.plugins))
        return self.reading.read(source)


def _request(**goals: Any) -> RestartRequest:
    from kframe.plans.restarts.request import RestartRequest

    return RestartRequest(**{**goals, "brokers": goals["brokers"] or None})


#: Adds the options of a ``RestartRequest`` to a command, which receives it as ``request``.
restart_options: Final = collected(
    "request",
    _request,
    click.option("--brokers", multiple=True, callback=broker_ids, metavar=IDS,
                 help="Only these nodes restart; may be repeated."),
    click.option("--voters", multiple=True, callback=broker_ids, metavar=IDS,
                 help="Controllers of a KRaft quorum, where SNAPSHOT does not show them; may be repeated."),
    click.option("--max-at-min-isr", type=WholeNumber(0), metavar="N",
                 help="Partitions that a batch may bring down to min.insync.replicas."),
    click.option("--max-batch", type=WholeNumber(1), metavar="N", help="Nodes in a batch."),
    click.option("--whole-racks", is_flag=True, help="The brokers of a rack restart together."),
    click.option("--same-rack", is_flag=True, help="The brokers of a batch are in one rack."),
    click.option("--allow-unavoidable", is_flag=True,
                 help="Also restart nodes that take a partition offline or under min ISR in any order."),
    click.option("--exact", is_flag=True, help="Search for fewer batches if the bound is lower (needs highspy)."),
)  # fmt: skip


@click.command("restarts")
@click.argument("source", metavar="SNAPSHOT", type=SOURCE)
@reading_options
@config_option
@restart_options
@click.option("--watch", "url", metavar="URL", help="Watch the cluster, and say when each batch may start.")
@click.option("--batch", type=WholeNumber(1), metavar="N", help="With --watch: end as soon as batch N may start.")
@click.option(
    "--interval",
    type=DecimalNumber(0.05),
    default=5.0,
    show_default=True,
    metavar="SECONDS",
    help="With --watch: interval between reads of the cluster.",
)
@COMMAND_CONFIG
@click.option("--conflicts", is_flag=True, help="List all nodes that share no batch, not only those of the proof.")
@click.option(
    "--limit", type=WholeNumber(), default=50, show_default=True, help="Rows that a table lists; data has them all."
)
@plugin_options
@output_option
def restarts(
    source: InputFile | str,
    reading: SnapshotReading,
    config: dict[str, str],
    request: RestartRequest,
    url: str | None,
    batch: int | None,
    interval: float,
    command_config: Path | None,
    conflicts: bool,
    limit: int,
    plugins: PluginSettings,
    output: str,
) -> None:
    """Order brokers and controllers into the fewest batches for a safe rolling restart.

    No batch takes a partition offline or under min.insync.replicas, or the controllers of the quorum below their
    majority. SNAPSHOT is a file or directory, - for standard input, or the URL of a live cluster. With --watch the
    command prints each batch once it may start, waits until its brokers have restarted, and ends after the last one.
    Exit code 1: some nodes cannot restart safely; the report names the partitions that hold them.
    """
    from kframe.plans.restarts.plan import plan_restarts
    from kframe.plans.restarts.report import SCHEMA, report_document

    if url is not None and not is_url(url):
        raise BadInput(f"--watch {url}: found no URL, expected that of a live cluster, such as kafka://HOST:PORT")
    if batch is not None and url is None:
        raise BadInput("--batch: found no --watch, expected the URL of the cluster")
    if command_config is not None and not (is_url(source) or url):
        raise BadInput("--command-config: found a file as SNAPSHOT, expected the URL of a live cluster")
    settings = RestartSettings(request, reading, config, command_config, plugins)
    plan = plan_restarts(settings.read(source), settings.request, settings.config)
    document = report_document(plan, settings.config, conflicts=conflicts)
    if url is not None:
        watch(url, document, settings, interval, batch)
        return
    emit_mode(document.rules, output)
    emit_release(None if document.release is UNSET else document.release, output)
    if not emit_data(SCHEMA, document, _COLUMNS, list(_batch_rows(document)), output):
        _emit_tables(document, conflicts, output, limit)
    click.get_current_context().exit(0 if document.complete else 1)


def watch(
    url: str, document: RestartPlanDocument, settings: RestartSettings, interval: float, last: int | None
) -> None:
    """Print each batch once it may start; with ``last`` only that one. Exit with 1 after a signal."""
    from kframe.errors import StoreError
    from kframe.plans.restarts.watch import RestartWatch, WatchStep

    count = len(document.batches)
    if last is not None and last > count:
        raise BadInput(f"--batch {last}: found a plan with {counted(count, 'batch', 'batches')}, expected one of them")
    first = 0 if last is None else last - 1
    following = RestartWatch(document.batches, settings.request, settings.config, first)
    reported: tuple[str, ...] = ()
    with StopSignal() as stop:
        while not stop:
            try:
                step = following.observe(settings.read(url))
            except StoreError as unreachable:
                step = WatchStep(None, (str(unreachable),))
            if step.waiting and step.waiting != reported:
                click.echo(f"waiting: {'; '.join(step.waiting[:_REASONS_SHOWN])}", err=True)
            reported = step.waiting
            if (batch := step.may_start) is not None:
                click.echo(f"batch {batch.number} of {count} may start: restart {nodes_text(batch)}")
                if last is not None:
                    return
            if step.ended:
                click.echo(f"{counted(count, 'batch', 'batches')} restarted")
                return
            stop.wait(interval)
    click.get_current_context().exit(1)


def nodes_text(batch: RestartBatch) -> str:
    """The nodes of a batch: brokers, and controllers that are no brokers."""
    from kframe.snapshot.content import brokers_text

    controllers = [str(node) for node in batch.controllers if node not in batch.brokers]
    parts = [brokers_text(batch.brokers)] if batch.brokers else []
    if controllers:
        parts.append(f"controller{'s' if len(controllers) > 1 else ''} {', '.join(controllers)}")
    return " and ".join(parts)


def _batch_rows(document: RestartPlanDocument) -> Iterator[Fields]:
    for batch in document.batches:
        outcome = batch.outcome
        yield {
            "batch": batch.number,
            "brokers": batch.brokers,
            "controllers": batch.controllers,
            "racks": batch.racks,
            "leaders_moved": None if outcome is None else outcome.leaders_moved,
            "at_min_isr": None if outcome is None else outcome.at_min_isr,
            "newly_offline": None if outcome is None else outcome.newly_offline,
            "newly_under_min_isr": None if outcome is None else outcome.newly_under_min_isr,
        }


def _emit_tables(document: RestartPlanDocument, conflicts: bool, output: str, limit: int) -> None:
    emit_heading(document.summary, output)
    echo_text(document.proof, output)
    for note in document.notes:
        echo_text(note, output)
    where = "-o json has them all"
    emit_section(list(_batch_rows(document)), output, limit=limit, where=where)
    blocked = [
        {"blocked": item.nodes, "cause": item.cause, "partitions": item.partitions, "reason": item.reason}
        for item in document.blocked
    ]
    emit_section(blocked, output, limit=limit, where=where)
    if conflicts or output == "wide":
        rows = [
            {"nodes": item.nodes, "other_nodes": item.other_nodes, "partitions": item.partitions, "reason": item.reason}
            for item in document.conflicts
        ]
        emit_section(rows, output, limit=limit, where=where)
    emit_assumptions(document.assumptions, output)
