"""``kframe whatif sweep``: every failure of one broker, two brokers and one rack, the worst first."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from kframe.cli.findings import announce_mode, check_elr, end_with, fail_on_option, findings
from kframe.cli.output import (
    BadInput,
    OutputTable,
    emit_assumptions,
    emit_heading,
    emit_record,
    emit_rows,
    output_option,
)
from kframe.cli.progress import progress
from kframe.cli.studies import PATH, ClusterSettings, cluster_options

if TYPE_CHECKING:
    from kframe.model.columns import Int64
    from kframe.snapshot import Snapshot
    from kframe.whatif import FailOn, SortBy
    from kframe.whatif.sweep import Sweep

#: The values of ``kframe.whatif.SortBy``.
SORT_BY: Final = ("offline", "under-min-isr", "unclean", "skew")
_SCHEMA: Final = "kframe.sweep/v1"
#: Fields of a failure, and the fields that appear only in wide tables and data.
COLUMNS: Final = (
    "kind", "brokers", "rack", "offline", "newly_offline", "under_min_isr", "newly_under_min_isr", "at_min_isr",
    "unclean_elections", "unclean_needed", "leaders_moved", "leaders_most", "leaders_mean", "leader_skew",
)  # fmt: skip
WIDE: Final = frozenset({"newly_offline", "newly_under_min_isr", "leaders_most", "leaders_mean"})
#: Brokers of a rack that a table lists.
_BROKERS_SHOWN: Final = 10


@dataclass(frozen=True, slots=True)
class Swept:
    """The failures of the sweep and their ranking, from a command's options."""

    depth: int
    racks: bool
    by: SortBy


def failure_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options for failures and their ranking to a command, as ``swept``."""

    @functools.wraps(command)
    def with_swept(*args: Any, depth: int, racks: bool, sort_by: str, **kwargs: Any) -> Any:
        from kframe.whatif import SortBy

        return command(*args, swept=Swept(depth, racks, SortBy(sort_by)), **kwargs)

    options = (
        click.option("--depth", type=click.IntRange(1, 2), default=2, show_default=True,
                     help="Brokers that fail together."),
        click.option("--racks/--no-racks", default=True, help="Whether whole racks fail, too (default)."),
        click.option("--sort-by", type=click.Choice(SORT_BY), default=SORT_BY[0], show_default=True,
                     help="What the worst is judged by first."),
    )  # fmt: skip
    return functools.reduce(lambda wrapped, option: option(wrapped), reversed(options), with_swept)


@click.command("sweep")
@cluster_options
@failure_options
@click.option("--top", type=click.IntRange(min=0), default=20, show_default=True,
              help="Failures of each kind that a table lists; data has them all.")  # fmt: skip
@click.option("--out", type=PATH, metavar="FILE", help="Also write all failures as Parquet to FILE.")
@click.option("--plot", type=PATH, metavar="FILE", help="Also draw the pairs as a heat map: FILE.svg or FILE.png.")
@click.option("--force", is_flag=True, help="Replace files that are there already.")
@fail_on_option
@output_option
def sweep(
    cluster: ClusterSettings, swept: Swept, top: int, out: Path | None, plot: Path | None, force: bool,
    fail_on: tuple[str, ...], output: str,
) -> None:  # fmt: skip
    """Every broker dies, every two brokers together, and every rack.

    Each time it is the cluster of SNAPSHOT that is hit, as whatif fail would. The built-in rule elects the leaders.
    """
    from kframe.whatif import sweep as play
    from kframe.whatif.files import PICTURES, check_file
    from kframe.whatif.settings import assumptions_of
    from kframe.whatif.sweep_export import write_plot, write_table

    if plot is not None and swept.depth == 1:
        raise BadInput("--plot: found --depth 1, expected --depth 2, whose pairs are drawn")
    for file, endings in ((out, ()), (plot, PICTURES)):
        if file is not None:
            check_file(file, endings, force=force)
    snapshot, by = cluster.read(), swept.by
    with progress("sweeping") as tick:
        every = play(snapshot, cluster.config, depth=swept.depth, racks=swept.racks, progress=tick)
    assumptions = assumptions_of(snapshot, cluster.config)
    check_elr(snapshot, fail_on)
    result = findings(fail_on, lambda what: _bringing(every, what))
    if out is not None:
        write_table(every, every.ranked(by), out)
    if plot is not None:
        write_plot(every, by, plot)
    announce_mode(snapshot, output)
    if output in ("table", "wide"):
        _emit_tables(every, snapshot, assumptions, by, output, top)
    else:
        _emit_data(every, snapshot, assumptions, every.ranked(by), output)
    end_with(result, "failure")


def _bringing(swept: Sweep, what: FailOn) -> int | None:
    """Number of failures with this effect; None if the snapshot lacks the data for it."""
    partitions = swept.count_of(what)
    return None if partitions is None else int((partitions > 0).sum())


def _summary(swept: Sweep, snapshot: Snapshot, assumptions: Sequence[str]) -> dict[str, Any]:
    """The summary besides single failures."""
    from dataclasses import asdict

    from kframe.whatif import FailOn
    from kframe.whatif.sweep import KINDS

    return {
        "snapshot": {
            "format": snapshot.source.format,
            "name": snapshot.source.name,
            "mode": snapshot.mode,
            "partitions": len(snapshot),
        },
        "registered_brokers": len(swept.brokers),
        "failures": {str(kind): int((swept.kind == number).sum()) for number, kind in enumerate(KINDS)},
        "before": {**swept.before, "leader_skew": asdict(swept.before_skew)},
        "findings": {str(what): _bringing(swept, what) for what in FailOn},
        "assumptions": list(assumptions),
    }


def _emit_data(swept: Sweep, snapshot: Snapshot, assumptions: Sequence[str], ranked: Int64, output: str) -> None:
    if output in ("csv", "jsonl"):
        emit_rows(OutputTable(_SCHEMA, COLUMNS, swept.records(ranked)), output)
        return
    summary = _summary(swept, snapshot, assumptions)
    if output == "yaml":
        emit_record(_SCHEMA, {**summary, "rows": list(swept.records(ranked))}, output)
        return
    click.echo(json.dumps({"schema": _SCHEMA, **summary}, indent=2).removesuffix("\n}") + ',\n  "rows": [', nl=False)
    separator = ""
    for record in swept.records(ranked):
        click.echo(f"{separator}\n    {json.dumps(record)}", nl=False)
        separator = ","
    click.echo("\n  ]\n}")


def _emit_tables(swept: Sweep, snapshot: Snapshot, assumptions: Sequence[str], by: Any, output: str, top: int) -> None:
    from kframe.whatif.sweep import KINDS

    summary = _summary(swept, snapshot, assumptions)
    source = summary["snapshot"]
    tried = ", ".join(f"every {kind}" for kind, count in summary["failures"].items() if count)
    emit_heading(
        f"fail {tried or 'no broker'}: {source['partitions']:,} partitions of {source['name'] or 'the snapshot'}"
    )
    before = dict(summary["before"])
    skew = before.pop("leader_skew")
    emit_record(
        "",
        {
            "registered_brokers": summary["registered_brokers"],
            "failures": summary["failures"],
            "failures_that_bring": summary["findings"],
            "before": {**before, "leader_skew": skew["over_mean"]},
        },
        output,
    )
    for kind in KINDS:
        count = summary["failures"][str(kind)]
        if not count:
            continue
        ranked = swept.ranked(by, kind)[:top]
        click.echo()
        emit_rows(OutputTable("", COLUMNS, shown(swept.records(ranked)), WIDE), output)
        if count > top:
            click.echo(f"and {count - top:,} more")
    emit_assumptions(assumptions, output)


def shown(records: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Records with long broker lists shortened."""
    for record in records:
        brokers = record["brokers"]
        if len(brokers) > _BROKERS_SHOWN:
            brokers = [*brokers[:_BROKERS_SHOWN], f"and {len(brokers) - _BROKERS_SHOWN} more"]
        yield {**record, "brokers": brokers}
