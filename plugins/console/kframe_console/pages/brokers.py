"""The table of all brokers."""

from __future__ import annotations

from typing import Final

from kframe.plugin.snapshot import SnapshotBroker, broker_rows
from kframe_console.pages.page import PageContext, TablePage
from kframe_console.tables.records import record_table
from kframe_console.tables.table import ColumnTable

#: The columns in order, without those that a cell cannot show.
_COLUMNS: Final = tuple(name for name in SnapshotBroker.__struct_fields__ if name != "features")


def brokers_table(context: PageContext) -> ColumnTable:
    """The brokers of the reading, by id."""
    reading = context.reading
    return record_table((reading.number, "brokers"), broker_rows(reading.snapshot, reading.loads), _COLUMNS)


PAGE: Final = TablePage(
    name="brokers",
    title="Brokers",
    path="/brokers",
    doc="All brokers and their loads: kframe snapshot show --list brokers.",
    schema="kframe.snapshot-brokers/v1",
    row=SnapshotBroker,
    build=brokers_table,
    links={"leaders": "/partitions?leader={broker_id}", "replicas": "/partitions?replicas={broker_id}"},
)
