"""``kframe whatif sweep``: every failure of one broker, two brokers and one rack, the worst first."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from kframe.cli.output import BadInput, Table, emit_heading, emit_record, emit_rows, output_option
from kframe.cli.progress import progress
from kframe.cli.studies import FAIL_ON, FOUND, PATH, ClusterSettings, cluster_options

if TYPE_CHECKING:
    from kframe.model.columns import Int64
    from kframe.snapshot import Snapshot
    from kframe.whatif.sweep import Sweep

#: The values of ``kframe.whatif.SortBy``.
SORT_BY: Final = ("offline", "under-min-isr", "unclean", "skew")
_SCHEMA: Final = "kframe.sweep/v1"
#: What is said of a failure, and what of it stands only in wide tables and data.
COLUMNS: Final = (
    "kind", "brokers", "rack", "offline", "newly_offline", "under_min_isr", "newly_under_min_isr", "at_min_isr",
    "unclean_elections", "unclean_needed", "leaders_moved", "leaders_most", "leaders_mean", "leader_skew",
)  # fmt: skip
WIDE: Final = frozenset({"newly_offline", "newly_under_min_isr", "leaders_most", "leaders_mean"})
#: Brokers of a rack that a table lists.
_BROKERS_SHOWN: Final = 10


@click.command("sweep")
@cluster_options
@click.option("--depth", type=click.IntRange(1, 2), default=2, show_default=True, help="Brokers that fail together.")
@click.option("--racks/--no-racks", default=True, help="Whether whole racks fail, too (default).")
@click.option("--sort-by", type=click.Choice(SORT_BY), default=SORT_BY[0], show_default=True,
              help="What the worst is judged by first.")  # fmt: skip
@click.option("--top", type=click.IntRange(min=0), default=20, show_default=True,
              help="Failures of each kind that a table lists; data has them all.")  # fmt: skip
@click.option("--out", type=PATH, metavar="FILE", help="Also write all failures as Parquet to FILE.")
@click.option("--plot", type=PATH, metavar="FILE", help="Also draw the pairs as a heat map: FILE.svg or FILE.png.")
@click.option("--force", is_flag=True, help="Replace files that are there already.")
@click.option("--fail-on", multiple=True, type=click.Choice(FAIL_ON),
              help="Exit with 3 if any failure brings this about; may be repeated.")  # fmt: skip
@output_option
def sweep(
    cluster: ClusterSettings, depth: int, racks: bool, sort_by: str, top: int, out: Path | None, plot: Path | None,
    force: bool, fail_on: tuple[str, ...], output: str,
) -> None:  # fmt: skip
    """Every broker dies, every two brokers together, and every rack.

    Each time it is the cluster of SNAPSHOT that is hit, as whatif fail would. The built-in rule elects the leaders.
    """
    from kframe.whatif import SortBy
    from kframe.whatif import sweep as play
    from kframe.whatif.files import PICTURES, check_file
    from kframe.whatif.sweep_export import write_plot, write_table

    if plot is not None and depth == 1:
        raise BadInput("--plot: found --depth 1, expected --depth 2, whose pairs are drawn")
    for file, endings in ((out, ()), (plot, PICTURES)):
        if file is not None:
            check_file(file, endings, force=force)
    snapshot, by = cluster.read(), SortBy(sort_by)
    with progress("sweeping") as tick:
        swept = play(snapshot, cluster.config, depth=depth, racks=racks, progress=tick)
    found = _found(swept, fail_on)
    if out is not None:
        write_table(swept, swept.ranked(by), out)
    if plot is not None:
        write_plot(swept, by, plot)
    if output in ("table", "wide"):
        _emit_tables(swept, snapshot, by, output, top)
    else:
        _emit_data(swept, snapshot, swept.ranked(by), output)
    for what, count in found.items():
        click.echo(f"--fail-on {what}: {count:,} failure{'s' if count > 1 else ''}", err=True)
    if found:
        click.get_current_context().exit(FOUND)


def _found(swept: Sweep, fail_on: tuple[str, ...]) -> dict[str, int]:
    """How many failures bring about what was asked for. Raises BadInput if the snapshot lacks what decides it."""
    import numpy as np

    from kframe.whatif import FailOn

    found = {}
    for what in dict.fromkeys(fail_on):
        partitions = swept.found(FailOn(what))
        if partitions is None:
            raise BadInput(
                f"--fail-on {what}: found a snapshot without topic settings, expected one that has min.insync.replicas"
            )
        if partitions.any():
            found[what] = int(np.count_nonzero(partitions))
    return found


def _summary(swept: Sweep, snapshot: Snapshot) -> dict[str, Any]:
    """What there is to say besides single failures."""
    from dataclasses import asdict

    from kframe.whatif import FailOn
    from kframe.whatif.sweep import KINDS

    bring = {what: swept.found(what) for what in FailOn}
    return {
        "snapshot": {"format": snapshot.source.format, "name": snapshot.source.name, "partitions": len(snapshot)},
        "registered_brokers": len(swept.brokers),
        "failures": {str(kind): int((swept.kind == number).sum()) for number, kind in enumerate(KINDS)},
        "before": {**swept.before, "leader_skew": asdict(swept.before_skew)},
        "findings": {str(what): None if one is None else int((one > 0).sum()) for what, one in bring.items()},
        "assumptions": list(snapshot.assumptions),
    }


def _emit_data(swept: Sweep, snapshot: Snapshot, ranked: Int64, output: str) -> None:
    if output in ("csv", "jsonl"):
        emit_rows(Table(_SCHEMA, COLUMNS, swept.records(ranked)), output)
        return
    summary = _summary(swept, snapshot)
    if output == "yaml":
        emit_record(_SCHEMA, {**summary, "rows": list(swept.records(ranked))}, output)
        return
    click.echo(json.dumps({"schema": _SCHEMA, **summary}, indent=2).removesuffix("\n}") + ',\n  "rows": [', nl=False)
    separator = ""
    for record in swept.records(ranked):
        click.echo(f"{separator}\n    {json.dumps(record)}", nl=False)
        separator = ","
    click.echo("\n  ]\n}")


def _emit_tables(swept: Sweep, snapshot: Snapshot, by: Any, output: str, top: int) -> None:
    from kframe.whatif.sweep import KINDS

    summary = _summary(swept, snapshot)
    source = summary["snapshot"]
    tried = ", ".join(f"every {kind}" for kind, count in summary["failures"].items() if count)
    emit_heading(f"fail {tried or 'nobody'}: {source['partitions']:,} partitions of {source['name'] or 'the snapshot'}")
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
        emit_rows(Table("", COLUMNS, shown(swept.records(ranked)), WIDE), output)
        if count > top:
            click.echo(f"and {count - top:,} more")
    for text in summary["assumptions"]:
        click.echo(f"assumption: {text}")


def shown(records: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Records with long lists of brokers cut."""
    for record in records:
        brokers = record["brokers"]
        if len(brokers) > _BROKERS_SHOWN:
            brokers = [*brokers[:_BROKERS_SHOWN], f"and {len(brokers) - _BROKERS_SHOWN} more"]
        yield {**record, "brokers": brokers}
