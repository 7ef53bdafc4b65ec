"""The table of all topics."""

from __future__ import annotations

from kframe.plugin.snapshot import SnapshotTopic, topic_rows
from kframe_console.pages.page import PageContext, TablePage, page
from kframe_console.tables.records import record_table
from kframe_console.tables.table import ColumnTable


@page(
    TablePage,
    "topics",
    "/topics",
    row=SnapshotTopic,
    schema="kframe.snapshot-topics/v1",
    links={"topic": "/topics/{topic}"},
    in_navigation=True,
)
def topics_page(context: PageContext) -> ColumnTable:
    """All topics: kframe snapshot show --list topics."""
    records = topic_rows(context.reading.snapshot, conditions=context.reading.conditions)
    return record_table((context.reading.number, "topics"), records, SnapshotTopic.__struct_fields__)
