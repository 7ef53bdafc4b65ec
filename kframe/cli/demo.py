"""``kframe demo``: broker failures of a real, a KRaft and a million-partition cluster, and partitions that move."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

import kframe
from kframe.cli.demo_log import BUNDLED_LOG, show_log
from kframe.cli.demo_move import show_move
from kframe.cli.numbers import WholeNumber
from kframe.cli.output import plain
from kframe.cli.report import check_page, force_option, report_option, write_page
from kframe.cli.stopwatch import Stopwatch
from kframe.cli.studies import PATH
from kframe.model.texts import counted

if TYPE_CHECKING:
    from rich.console import Console

    from kframe.pages.parts import Part
    from kframe.snapshot import Snapshot
    from kframe.whatif import Outcome, WhatIf

#: The bundled snapshot, a data file of the package.
BUNDLED: Final = (
    Path(kframe.__file__).parent / "snapshot" / "examples" / "kafka-3.9.1-six-brokers" / "healthy.zookeeper.jsonl.gz"
)
_REPLICATION_FACTOR: Final = 3
_RACKS: Final = 4
#: Brokers that a table shows, the busiest first.
_BROKERS_SHOWN: Final = 6


@click.command("demo")
@click.argument("source", metavar="[SNAPSHOT]", required=False, type=PATH)
@click.option(
    "--partitions", type=WholeNumber(1), default=1_000_000, show_default=True, help="Partitions of the large cluster."
)
@click.option("--brokers", type=WholeNumber(4), default=100, show_default=True, help="Brokers of the large cluster.")
@report_option
@force_option
def command(source: Path | None, partitions: int, brokers: int, page: Path | None, force: bool) -> None:
    """Fail a broker of a real cluster, move partitions of it, show how brokers of a real KRaft cluster failed, then
    fail a broker of a million-partition cluster.

    The real cluster is that of SNAPSHOT, or a bundled one. No server and no network: the controller's engine runs on an
    in-memory store, and encodes every request.
    """
    from rich.console import Console

    from kframe.snapshot import Health, generate, read_snapshot

    check_page(page, force=force)
    path = BUNDLED if source is None else source
    health = Health(under_replicated=0.01, preferred_replica_imbalance=0.02, unclean=0.05, min_insync=2)
    console = Console()
    watch, report = Stopwatch(console), _DemoPage()
    report.begin(console, f"1. {path.name}")
    with watch.phase("read the snapshot"):
        real = read_snapshot(path)
    report.parts += _show(console, watch, real)
    report.begin(console, f"2. {path.name}: partitions move")
    report.parts += show_move(console, watch, real)
    report.begin(console, f"3. {BUNDLED_LOG.name}: the metadata log of a KRaft cluster")
    report.parts += show_log(console, watch, captured=page is not None)
    report.begin(console, f"4. {counted(partitions, 'partition')} on {counted(brokers, 'broker')}, generated")
    with watch.phase("generate the cluster"):
        large = generate(partitions, brokers, _REPLICATION_FACTOR, racks=_RACKS, seed=1, health=health)
    report.parts += _show(console, watch, large)
    console.print(f"\nThe phases took {watch.total_ms / 1000:.1f} s. Try your own cluster: kframe whatif fail --help")
    console.print(f"Or explore the snapshot: kframe whatif sweep {path}\n", soft_wrap=True, highlight=False)
    report.write(page, watch)


class _DemoPage:
    """The parts of the page, by chapter."""

    def __init__(self) -> None:
        self.parts: list[Part] = []

    def begin(self, console: Console, title: str) -> None:
        """Begin a chapter."""
        from kframe.pages.parts import SectionPart

        console.print(f"\n[bold]{title}[/bold]")
        self.parts.append(SectionPart(title))

    def write(self, page: Path | None, watch: Stopwatch) -> None:
        """Write the page, if there is a path, with the duration of each phase. Raises InputError."""
        from kframe.pages.parts import FactsPart, Heading, PageContent
        from kframe.pages.render import document

        if page is not None:
            phases = FactsPart([(label, f"{took_ms / 1000:.3f} s") for label, took_ms in watch.phases])
            write_page(page, document(PageContent(Heading("kframe demo", phases), self.parts)))


def _show(console: Console, watch: Stopwatch, snapshot: Snapshot) -> list[Part]:
    """Fail the broker with the most leaders. Print the outcome, and return the parts of its page."""
    from kframe.pages.parts import FactsPart
    from kframe.whatif import WhatIf
    from kframe.whatif.engines.zookeeper.engine import ZookeeperEngine
    from kframe.whatif.engines.zookeeper.start import ZookeeperStart

    with watch.phase("fail over to kframe as its controller"):
        whatif = WhatIf.of(ZookeeperEngine(ZookeeperStart.of(snapshot), clock=watch.clock))
    health = whatif.health()
    failed_broker = int(whatif.cluster.brokers.ids[int(health.leaders.argmax())])
    with watch.phase(f"broker {failed_broker} fails: decide, store, encode every request"):
        outcome = whatif.fail([failed_broker])
    watch.print_time("  of that, encoding the requests", outcome.encode_ms)
    console.print()
    console.print(_impact_table(outcome, whatif))
    console.print(_brokers_table(outcome))
    for step in outcome.steps:
        for timeline_event in step.events:
            console.print(f"  {timeline_event.text()}")
    heading = outcome.heading()
    facts = FactsPart([("what if", heading.title), *heading.facts.rows])
    return [facts, *outcome.parts(), *_explain_partition(console, outcome, whatif)]


def _impact_table(outcome: Outcome, whatif: WhatIf) -> Any:
    from rich.table import Table

    from kframe.whatif.results.timeline import size_text

    impact, before, after = outcome.impact, outcome.before, outcome.after
    table = Table(title=outcome.operation.text(), title_justify="left", title_style="bold red")
    table.add_column("")
    for name in ("before", "after"):
        table.add_column(name, justify="right")
    counts_before, counts_after = before.counts(), after.counts()
    rows = [
        (name.replace("_", " "), _number(counts_before[name]), _number(counts_after[name])) for name in counts_before
    ]
    for name, first, last in (
        ("leader", before.leader_skew, after.leader_skew),
        ("replica", before.replica_skew, after.replica_skew),
    ):
        rows.append((f"{name} skew (max/mean)", _number(first.max_mean_ratio), _number(last.max_mean_ratio)))
    rows += [
        ("leaders moved", "", _number(impact.leaders_moved)),
        ("partition states written", "", _number(impact.partition_states_written)),
        ("requests to brokers", "", _number(impact.requests)),
        ("bytes to brokers", "", "unknown" if impact.bytes is None else size_text(impact.bytes)),
        ("columns in memory, bytes a partition", "", f"{whatif.cluster.partitions.nbytes / len(whatif.cluster):.0f}"),
    ]
    for row in rows:
        table.add_row(*row)
    return table


def _brokers_table(outcome: Outcome) -> Any:
    """The brokers that receive the most bytes or requests."""
    from rich.table import Table

    from kframe.whatif.results.timeline import size_text

    records = sorted(
        map(plain, outcome.brokers.records()),
        key=lambda record: (record["registered_after"], -(record["bytes"] or record["requests"])),
    )
    table = Table(title="brokers, the failed one first", title_justify="left", title_style="bold")
    for name in ("broker", "rack", "leaders before", "after", "in sync before", "after", "requests", "bytes"):
        table.add_column(name, justify="left" if name == "rack" else "right")
    counts = ("leaders_before", "leaders_after", "in_sync_replicas_before", "in_sync_replicas_after", "requests")
    for record in records[:_BROKERS_SHOWN]:
        size = "unknown" if record["bytes"] is None else size_text(record["bytes"])
        table.add_row(
            str(record["broker_id"]),
            record["rack"] or "-",
            *(_number(record[name]) for name in counts),
            size,
            style="red" if not record["registered_after"] else None,
        )
    if len(records) > _BROKERS_SHOWN:
        table.caption = f"and {len(records) - _BROKERS_SHOWN} more"
    return table


def _explain_partition(console: Console, outcome: Outcome, whatif: WhatIf) -> Iterator[Part]:
    """Explain for one partition why it has its leader, or none."""
    import numpy as np

    from kframe.pages.parts import TextPart

    changes = outcome.changes
    indexes = np.flatnonzero(changes.went_offline if changes.went_offline.any() else changes.moved)
    for index in indexes[:1].tolist():
        topic, partition = changes.topic_names[int(changes.topic[index])], int(changes.partition[index])
        decision = whatif.explain(topic, partition).before
        question = f"Why? {topic}-{partition}: {decision.text}"
        candidates = [f"broker {each.broker_id}: {each.outcome}; {each.reason}" for each in decision.candidates]
        console.print(f"\n  {question}", highlight=False, soft_wrap=True)
        for line in candidates:
            console.print(f"    {line}", highlight=False, soft_wrap=True)
        yield TextPart(question, "\n".join(candidates))


def _number(value: float | None) -> str:
    if value is None:
        return "unknown"
    return f"{value:,}" if isinstance(value, int) else f"{value:.3f}"
