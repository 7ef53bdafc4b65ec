"""One partition: its state, why it has its leader, its leader after failures, and its history."""

from __future__ import annotations

from typing import Annotated, Any, Final

import click
import numpy as np
from msgspec import Meta, Struct

from kframe.plugin.commands import IDS, broker_ids
from kframe.plugin.live import HistoryRecord, LeaderCause
from kframe.plugin.whatif import Explanation, WhatIf
from kframe_console.pages.page import ContentPage, PageContext, page
from kframe_console.pages.partitions import PartitionRow, partitions_page
from kframe_console.plans.forms import OptionForm
from kframe_console.sources.state_changes import StateChangeLine
from kframe_console.sources.topic_lookup import partition_row, topic_snapshot

#: Most records of the history.
_RECORDS_MAX: Final = 100


class PartitionParameters(Struct, forbid_unknown_fields=True):
    """The partition of a page."""

    topic: str
    partition: Annotated[int, Meta(ge=0, le=2**31 - 1)]


#: The brokers that are assumed to fail together.
EXPLAIN: Final = OptionForm(
    "explain",
    lambda *, fail: fail,
    click.option("--fail", multiple=True, callback=broker_ids, metavar=IDS),
    parameters=PartitionParameters,
)


class PartitionContent(Struct):
    """A partition, and the decisions that gave it its leader: ``kframe explain``.

    ``cause`` and ``history`` are null if the source has no history: ``kframe log why`` and ``kframe log show``.
    ``state_changes`` are null without ``--state-change-log``.
    """

    partition: PartitionRow
    explanation: Explanation
    cause: LeaderCause | None
    history: list[HistoryRecord] | None
    state_changes: list[StateChangeLine] | None


@page(ContentPage, "partition", "/topics/{topic}/{partition}", parameters=EXPLAIN.parameters)
def partition_page(context: PageContext, parameters: Any) -> PartitionContent:
    """One partition: its state, why it has its leader, and its history.

    Raises InputError for an unknown partition or broker.
    """
    snapshot, topic, number = context.reading.snapshot, parameters.topic, parameters.partition
    row = partition_row(snapshot, topic, number)
    table = partitions_page.table(context)
    failed = EXPLAIN.request({name: text.replace(" ", "") for name, text in EXPLAIN.texts_of(parameters).items()})
    explanation = WhatIf(topic_snapshot(snapshot, topic)).explain(topic, number, failed)
    (record,) = table.records(np.array([row]))
    history, point = context.source.history, context.reading.point
    return PartitionContent(
        PartitionRow(**record),
        explanation,
        None if history is None or point is None else history.leader_cause(topic, number, point),
        None if history is None or point is None else history.partition_records(topic, number, point, _RECORDS_MAX),
        None if context.state_changes is None else context.state_changes.lines(topic, number),
    )
