"""``kframe bench``: the engine timed on a generated cluster."""

from __future__ import annotations

from typing import Any

import click

from kframe.bench import BENCHES
from kframe.cli.numbers import WholeNumber
from kframe.cli.output import emit_record, output_option
from kframe.cli.progress import progress
from kframe.model.texts import counted


@click.command("bench", epilog="WHAT is one of " + ", ".join(BENCHES) + ".")
@click.argument("name", metavar="WHAT", type=click.Choice(BENCHES))
@click.option(
    "--partitions",
    type=WholeNumber(1),
    default=1_000_000,
    show_default=True,
    help="Partitions of the generated cluster.",
)
@click.option(
    "--brokers", type=WholeNumber(4), default=100, show_default=True, help="Brokers of the generated cluster."
)
@click.option("--runs", type=WholeNumber(1), default=5, show_default=True, help="Measured runs, after one warm-up run.")
@output_option
def command(name: str, partitions: int, brokers: int, runs: int, output: str) -> None:
    """Time the engine at WHAT, on a generated cluster of replication factor 3.

    Events of a controller are timed phase by phase: deciding, storing in memory, and encoding every request. Choosing
    leaders is part of deciding. Other parts of the engine are timed as a whole. Seconds are wall clock, as min, median
    and max over the runs; the digest is that of the result. Loading and saving need the arrow extra. The allocator
    retains freed memory, as in the process of a controller.
    """
    from kframe.bench.run import SCHEMA, Bench, run
    from kframe.runtime.memory import preallocate

    preallocate()
    with progress(f"{name}, {counted(partitions, 'partition')}") as line:
        result = run(Bench(name, partitions, brokers, runs), line)
    if output in ("table", "wide", "csv"):
        result = _flat(result)
    emit_record(SCHEMA, {key: value for key, value in result.items() if key != "schema"}, output)


def _flat(result: dict[str, Any]) -> dict[str, Any]:
    """One line per phase, in milliseconds."""
    flat = {key: value for key, value in result.items() if key != "seconds"}
    for phase, spread in result["seconds"].items():
        flat[f"{phase} ms"] = " / ".join(f"{spread[name] * 1000:.2f}" for name in ("min", "median", "max"))
    return flat
