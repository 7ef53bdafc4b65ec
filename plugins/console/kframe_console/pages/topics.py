"""The table of all topics."""

from __future__ import annotations

from typing import Final

from kframe.plugin.snapshot import SnapshotTopic, topic_rows
from kframe_console.pages.page import PageContext, TablePage
from kframe_console.tables.records import record_table
from kframe_console.tables.table import ColumnTable


def topics_table(context: PageContext) -> ColumnTable:
    """The topics of the reading, by name."""
    records = topic_rows(context.reading.snapshot, conditions=context.reading.conditions)
    return record_table((context.reading.number, "topics"), records, SnapshotTopic.__struct_fields__)


PAGE: Final = TablePage(
    name="topics",
    title="Topics",
    path="/topics",
    doc="All topics: kframe snapshot show --list topics.",
    schema="kframe.snapshot-topics/v1",
    row=SnapshotTopic,
    build=topics_table,
    links={"topic": "/topics/{topic}"},
)
