"""The part of ``kframe demo`` that moves partitions to other brokers. It shows the reassignment of one partition."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

from kframe.model.texts import counted

if TYPE_CHECKING:
    from rich.console import Console

    from kframe.cli.stopwatch import Stopwatch
    from kframe.model.cluster import PartitionView
    from kframe.pages.parts import Part
    from kframe.snapshot import Snapshot
    from kframe.whatif import Impact, PartitionTimeline, ReassignmentResult, WhatIf

_COLUMNS: Final = ("stored", "assigned", "adding", "removing", "ISR", "leader")
_NONE: Final = "No healthy partition has as many other brokers as replicas."


def show_move(console: Console, watch: Stopwatch, snapshot: Snapshot) -> list[Part]:
    """Move all partitions off the brokers of one partition, and follow that partition. Returns the parts of a page."""
    from kframe.pages.parts import NotesPart, TablePart
    from kframe.plans.generate.broker_replacement import replacement_brokers, replacement_plan
    from kframe.whatif import WhatIf
    from kframe.whatif.engines.zookeeper.engine import ZookeeperEngine
    from kframe.whatif.engines.zookeeper.start import ZookeeperStart

    engine = ZookeeperEngine(ZookeeperStart.of(snapshot), clock=watch.clock)
    whatif = WhatIf.of(engine)
    partition = _movable_partition(whatif)
    if partition is None:
        console.print(f"  {_NONE}")
        return [NotesPart((_NONE,))]
    replacements = replacement_brokers(whatif.cluster, sorted(partition.replicas))
    plan, timeline = replacement_plan(whatif.cluster, replacements), engine.follow(partition.topic, partition.partition)
    moving = "partition moves" if len(plan) == 1 else "partitions move"
    with watch.phase(f"{len(plan):,} {moving} from {_ids(replacements)} to {_ids(replacements.values())}"):
        outcome = whatif.reassign(plan)
    console.print()
    title = f"{partition.topic}-{partition.partition} on its way"
    console.print(_timeline_table(title, timeline))
    if outcome.reassignment is not None:
        console.print(_totals(outcome.impact, outcome.reassignment), highlight=False, soft_wrap=True)
    rows = [dict(zip(_COLUMNS, row, strict=True)) for row in _timeline_rows(timeline)]
    return [TablePart(title, _COLUMNS, rows, len(rows)), *outcome.parts()]


def _movable_partition(whatif: WhatIf) -> PartitionView | None:
    """The first healthy partition with enough other brokers. An internal topic only if there is no other."""
    from kframe.plans.generate.broker_replacement import replacement_brokers

    def is_movable(view: PartitionView) -> bool:
        healthy = view.leader != -1 and set(view.isr) == set(view.replicas)
        return healthy and len(replacement_brokers(whatif.cluster, view.replicas)) == len(view.replicas)

    views = (view for kind in (False, True) for view in whatif.cluster if view.topic.startswith("__") is kind)
    return next((view for view in views if is_movable(view)), None)


def _timeline_table(title: str, timeline: PartitionTimeline) -> Any:
    from rich.table import Table

    table = Table(title=title, title_justify="left", title_style="bold")
    for name in _COLUMNS:
        table.add_column(name, justify="right" if name == "leader" else "left")
    for row in _timeline_rows(timeline):
        table.add_row(*row)
    return table


def _timeline_rows(timeline: PartitionTimeline) -> Iterator[tuple[str, ...]]:
    for state in timeline.entries:
        view = state.view
        lists = (view.replicas, view.adding_replicas, view.removing_replicas, view.isr)
        yield state.description, *(_ids(ids) or "–" for ids in lists), str(view.leader)


def _totals(impact: Impact, result: ReassignmentResult) -> str:
    from kframe.whatif.results.timeline import size_text

    totals = result.totals()
    size = "" if impact.bytes is None else f", {size_text(impact.bytes)}"
    states = counted(impact.partition_states_written, "partition state")
    return (
        f"  all of them: {totals['completed']:,} moved, {counted(totals['replicas_copied'], 'replica')} copied, "
        f"{totals['replicas_deleted']:,} deleted, {states} written, "
        f"{counted(impact.requests, 'request')}{size}"
    )


def _ids(brokers: Iterable[int]) -> str:
    return ",".join(str(broker) for broker in brokers)
