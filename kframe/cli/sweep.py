"""``kframe whatif sweep``: every failure of one broker, two brokers and one rack, the worst first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from kframe.cli.findings import emit_mode, emit_release, exit_on_findings, fail_on_option, findings
from kframe.cli.inputs import check_distinct
from kframe.cli.numbers import WholeNumber, limit_of
from kframe.cli.options import with_options
from kframe.cli.output import (
    BadInput,
    OutputTable,
    echo_more,
    emit_assumptions,
    emit_heading,
    emit_json,
    emit_record,
    emit_rows,
    output_option,
    plain,
)
from kframe.cli.progress import progress
from kframe.cli.report import check_page, report_option, write_shown
from kframe.cli.studies import PATH, ClusterSettings, cluster_options
from kframe.model.texts import counted

if TYPE_CHECKING:
    from kframe.model.arrays import Int64
    from kframe.snapshot import Snapshot
    from kframe.whatif import SortBy
    from kframe.whatif.results.sweep import Sweep

#: The values of ``kframe.whatif.SortBy``.
SORT_BY: Final = ("offline", "under-min-isr", "unclean", "skew")
ELR: Final = ("on", "off", "both")
#: Fields of a failure that appear only in wide tables and data.
WIDE: Final = frozenset({"newly_offline", "newly_under_min_isr", "newly_may_lose_data", "leaders_max", "leaders_mean"})
#: The effects of failures in words, where they are not the names of conditions.
_EFFECTS: Final = {"data-loss": "data loss", "possible-data-loss": "possible data loss"}
#: Brokers of a rack that a table lists.
_BROKERS_SHOWN: Final = 10


def failure_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options for failures and their ranking to a command, as ``depth``, ``racks`` and ``sort_by``."""
    return with_options(
        command,
        click.option(
            "--depth", type=WholeNumber(1, 2), default=2, show_default=True, help="Brokers that fail together."
        ),
        click.option("--racks/--no-racks", default=True, help="Whether whole racks fail, too (default)."),
        click.option(
            "--sort-by",
            type=click.Choice(SORT_BY),
            default=SORT_BY[0],
            show_default=True,
            help="The effect by which failures are ordered first.",
        ),
    )


@click.command("sweep")
@cluster_options
@failure_options
@click.option(
    "--elr",
    type=click.Choice(ELR),
    help="Eligible leader replicas of a KRaft cluster; both: side by side (default: as they are).",
)
@limit_of(20, "Failures of each kind that a table lists")
@click.option("--out", type=PATH, metavar="FILE", help="Also write all failures as Parquet to FILE.")
@click.option("--plot", type=PATH, metavar="FILE", help="Also draw the pairs as a heat map: FILE.svg or FILE.png.")
@click.option("--force", is_flag=True, help="Replace files that are there already.")
@report_option
@fail_on_option
@output_option
def sweep(
    cluster: ClusterSettings,
    depth: int,
    racks: bool,
    sort_by: str,
    elr: str | None,
    limit: int,
    out: Path | None,
    plot: Path | None,
    force: bool,
    page: Path | None,
    fail_on: tuple[str, ...],
    output: str,
) -> None:
    """Fail every broker, every two brokers together, every rack, and every log directory of a KRaft cluster.

    Each failure starts from the cluster of SNAPSHOT, as whatif fail does. The built-in rule elects the leaders.
    """
    from kframe.whatif import SortBy
    from kframe.whatif.files import PICTURES, check_file
    from kframe.whatif.sweep_export import write_plot, write_table

    if elr == "both":
        options = (
            ("--out", out is not None),
            ("--plot", plot is not None),
            ("--report", page is not None),
            ("--fail-on", bool(fail_on)),
        )
        for option, is_set in options:
            if is_set:
                raise BadInput(f"{option}: found --elr both, expected --elr on or off")
        off, on = _play(cluster.read(), cluster, depth, racks, (False, True))
        _emit_comparison(off, on, SortBy(sort_by), limit, output)
        return
    if plot is not None and depth == 1:
        raise BadInput("--plot: found --depth 1, expected --depth 2, whose pairs are drawn")
    check_distinct([("SNAPSHOT", cluster.source), ("--out", out), ("--plot", plot), ("--report", page)])
    check_page(page, force=force)
    for file, suffixes in ((out, ()), (plot, PICTURES)):
        if file is not None:
            check_file(file, suffixes, force=force)
    snapshot, by = cluster.read(), SortBy(sort_by)
    (failures,) = _play(snapshot, cluster, depth, racks, (None if elr is None else elr == "on",))
    result = findings(fail_on, failures.failures_with)
    if out is not None:
        write_table(failures, failures.ranked(by), out)
    if plot is not None:
        write_plot(failures, by, plot)
    write_shown(page, failures)
    emit_mode(failures.rules, output)
    emit_release(failures.release, output)
    if output in ("table", "wide"):
        _emit_tables(failures, snapshot, by, output, limit)
    else:
        _emit_data(failures, snapshot, failures.ranked(by), output)
    exit_on_findings(result, "failure")


def _play(
    snapshot: Snapshot, cluster: ClusterSettings, depth: int, racks: bool, elrs: Iterable[bool | None]
) -> list[Sweep]:
    """A sweep for each state of eligible leader replicas; None is that of the snapshot."""
    from kframe.whatif import sweep

    sweeps = []
    for elr in elrs:
        with progress("sweeping") as tick:
            sweeps.append(sweep(snapshot, cluster.config, depth=depth, racks=racks, elr=elr, progress=tick))
    return sweeps


def _emit_comparison(off: Sweep, on: Sweep, by: SortBy, limit: int, output: str) -> None:
    """Print the failures of a KRaft cluster without and with eligible leader replicas, side by side."""
    from kframe.whatif.sweep_document import (
        COMPARISON_SCHEMA,
        ElrFailureRow,
        ElrRules,
        ElrSweepDocument,
        compared_failures,
    )

    emit_mode(f"{off.rules} and {on.rules}", output)
    release = off.release if off.release is not None and off.release.matters else on.release
    emit_release(release, output)
    ranked = off.ranked(by)
    is_table = output in ("table", "wide")
    rows = compared_failures(off, on, ranked[:limit] if is_table else ranked)
    if output in ("json", "yaml"):
        document = ElrSweepDocument(ElrRules(off.rules, on.rules), release, list(on.assumptions), list(rows))
        emit_record(COMPARISON_SCHEMA, document, output)
        return
    listed = shorten_broker_lists(map(plain, rows)) if is_table else rows
    emit_rows(OutputTable(COMPARISON_SCHEMA, ElrFailureRow.__struct_fields__, listed), output)
    if is_table:
        echo_more(len(ranked) - limit, "data has them all")
        emit_assumptions(on.assumptions, output)


def _emit_data(swept: Sweep, snapshot: Snapshot, ranked: Int64, output: str) -> None:
    from kframe.whatif.sweep_document import SCHEMA, sweep_document

    if output in ("csv", "jsonl"):
        emit_rows(OutputTable(SCHEMA, swept.columns, swept.records(ranked)), output)
        return
    document = plain(sweep_document(swept, snapshot))
    if output == "yaml":
        emit_record(SCHEMA, {**document, "rows": list(swept.records(ranked))}, output)
        return
    emit_json({"schema": SCHEMA, **document}, "rows", swept.records(ranked))


def _emit_tables(swept: Sweep, snapshot: Snapshot, by: SortBy, output: str, limit: int) -> None:
    from kframe.whatif.results.sweep import KINDS
    from kframe.whatif.sweep_document import sweep_document

    document = plain(sweep_document(swept, snapshot))
    source, failures, before = document["snapshot"], document["failures"], document["before"]
    kinds = ", ".join(f"every {kind}" for kind, count in failures.items() if count)
    partitions = counted(source["partitions"], "partition")
    emit_heading(f"fail {kinds or 'no broker'}: {partitions} of {source['name'] or 'the snapshot'}", output)
    skew = before.pop("leader_skew")
    emit_record(
        "",
        {
            "registered_brokers": document["registered_brokers"],
            "failures": failures,
            "failures_with": {_EFFECTS.get(name, name): count for name, count in document["findings"].items()},
            "before": {
                **{name.replace("_", " "): count for name, count in before.items()},
                "leader skew": skew["max_mean_ratio"],
            },
        },
        output,
    )
    for kind in KINDS:
        count = failures.get(str(kind), 0)
        if not count:
            continue
        ranked = swept.ranked(by, kind)[:limit]
        click.echo()
        emit_rows(OutputTable("", swept.columns, shorten_broker_lists(swept.records(ranked)), WIDE), output)
        echo_more(count - limit, "data has them all")
    emit_assumptions(swept.assumptions, output)


def shorten_broker_lists(records: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """Records with long broker lists shortened."""
    for record in records:
        brokers = record["brokers"]
        if len(brokers) > _BROKERS_SHOWN:
            brokers = [*brokers[:_BROKERS_SHOWN], f"and {len(brokers) - _BROKERS_SHOWN} more"]
        yield {**record, "brokers": brokers}
