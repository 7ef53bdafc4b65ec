"""Measure when pages show the end of a broker: ``python -m verification.console.live --kills 10 --record FILE``."""

from __future__ import annotations

import json
import statistics
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any, Final

import click

from kframe.plugin.commands import progress
from verification.console.browser import chromium
from verification.console.live.clusters import WatchedCluster, kraft_brokers, zookeeper_brokers
from verification.console.live.pages import MARKS, watching_console
from verification.support.evidence import facts_lines, run_facts

#: The clusters by name.
CLUSTERS: Final[Mapping[str, Callable[[Path], AbstractContextManager[WatchedCluster]]]] = {
    "Kafka 3.9.1 on ZooKeeper 3.8.4, controller kframe": zookeeper_brokers,
    "Kafka 4.4.0, controller kframe": partial(kraft_brokers, by_kframe=True),
    "Kafka 4.4.0, controller Kafka": partial(kraft_brokers, by_kframe=False),
}
_LIMIT_S: Final = 2.0
_TEXT: Final = """# Pages of a console show the end of a broker

`kframe console` with its defaults shows a real cluster of three brokers, and Chromium has three of its pages open:
overview, brokers and live. A broker is killed (SIGKILL), and no page is loaded again. The time of each page begins when
the controller knows the end of the broker, and ends when the page shows it:

- overview: the broker is marked as unregistered or fenced.
- brokers: its row says so.
- events: the newest event of the broker on the live page says so.
- controller: the live page has one active broker less, from the metrics of `kframe controller run`.

In ZooKeeper mode the controller knows it at the log line with the deleted brokers; the session of the broker is ended
with its process. In KRaft mode the time is that of the record that fences the broker, after its session of 6 s. A time
may be negative: ZooKeeper notifies the controller while the console reads ZooKeeper.

A page shows a change after three pauses of 0.5 s at most: of the readings (`--refresh`), of the samples behind the live
page, and of the page itself.
"""

Row = dict[str, Any]


def measured(kills: int) -> Iterator[Row]:
    """A row for each kill: cluster, source, and the seconds of each mark. Raises ToolMissing."""
    for name, open_cluster in CLUSTERS.items():
        with tempfile.TemporaryDirectory() as folder, chromium() as browser, open_cluster(Path(folder)) as cluster:
            for source in cluster.sources:
                with watching_console(browser, cluster, source) as console:
                    for number in range(kills):
                        yield {"cluster": name, "source": source, "seconds": console.kill(number % 3 + 1)}


@click.command()
@click.option("--kills", type=click.IntRange(1), default=10, show_default=True, help="Of each source.")
@click.option("--record", type=click.Path(dir_okay=False, path_type=Path), help="JSON; the page is beside it.")
def main(kills: int, record: Path | None) -> None:
    """Kill brokers, and print when pages showed it. Exit code 1 if one took longer than 2 seconds."""
    facts = run_facts(f"python -m verification.console.live --kills {kills}")
    rows: list[Row] = []
    with progress("killing") as tick:
        for row in measured(kills):
            rows.append(row)
            tick(len(rows), kills * 4)
    result = {**facts, "kills": rows}
    if record is not None:
        lines = ",\n  ".join(json.dumps(row) for row in rows)
        record.write_text(json.dumps(facts, indent=1)[:-2] + f',\n "kills": [\n  {lines}\n ]\n}}\n')
        record.with_suffix(".md").write_text(page(result))
    click.echo(page(result))
    slowest = max(seconds for row in rows for seconds in row["seconds"].values())
    click.get_current_context().exit(1 if slowest > _LIMIT_S else 0)


def page(record: Mapping[str, Any]) -> str:
    """The page of a record, in Markdown."""
    groups: dict[tuple[str, str], list[Mapping[str, float]]] = {}
    for row in record["kills"]:
        groups.setdefault((row["cluster"], row["source"]), []).append(row["seconds"])
    lines = [
        _TEXT,
        "## Result",
        "",
        "Seconds: median and most.",
        "",
        f"| cluster | source | kills | {' | '.join(MARKS)} |",
        f"|---|---|---|{'---|' * len(MARKS)}",
    ]
    for (cluster, source), rows in groups.items():
        cells = (_cell([row[mark] for row in rows if mark in row]) for mark in MARKS)
        lines.append(f"| {cluster} | `{source}` | {len(rows)} | {' | '.join(cells)} |")
    return "\n".join([*lines, "", *facts_lines(record)]) + "\n"


def _cell(seconds: list[float]) -> str:
    return f"{statistics.median(seconds):.2f}, {max(seconds):.2f}" if seconds else ""


if __name__ == "__main__":
    main()
