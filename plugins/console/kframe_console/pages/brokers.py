"""The table of all brokers."""

from __future__ import annotations

from typing import Final

from msgspec import UNSET, UnsetType
from msgspec.structs import asdict

from kframe.plugin import InputError
from kframe.plugin.snapshot import BrokerBytes, SnapshotBroker, broker_rows, bytes_of_brokers
from kframe_console.pages.page import PageContext, TablePage, page
from kframe_console.tables.records import record_table
from kframe_console.tables.table import ColumnTable


class BrokerRow(SnapshotBroker, kw_only=True):
    """A broker and the bytes of its replicas; without sizes of partitions they are left out."""

    bytes: int | UnsetType = UNSET


#: The columns in order, without those that a cell cannot show.
_COLUMNS: Final = tuple(name for name in BrokerRow.__struct_fields__ if name != "features")


def known_bytes(context: PageContext) -> BrokerBytes | str | None:
    """The bytes on each broker of the reading; None without sizes, or why the sizes do not fit the reading."""
    reading = context.reading

    def compute() -> BrokerBytes | str | None:
        try:
            sizes = context.plans.sizes(reading.snapshot)
        except InputError as problem:
            return str(problem)
        return None if sizes is None else bytes_of_brokers(reading.snapshot, sizes)

    return context.cache.get((reading.number, "bytes"), compute, lambda _: 100 * len(reading.snapshot.brokers))


def brokers_with_bytes(context: PageContext) -> list[BrokerRow]:
    """The brokers of the reading, by id."""
    known = known_bytes(context)
    brokers = broker_rows(context.reading.snapshot, context.reading.loads)
    if not isinstance(known, BrokerBytes):
        return [BrokerRow(**asdict(broker)) for broker in brokers]
    pairs = zip(brokers, known.by_broker.tolist(), strict=True)
    return [BrokerRow(**asdict(broker), bytes=count) for broker, count in pairs]


@page(
    TablePage,
    "brokers",
    "/brokers",
    row=BrokerRow,
    links={"leaders": "/partitions?leader={broker_id}", "replicas": "/partitions?replicas={broker_id}"},
    in_navigation=True,
)
def brokers_page(context: PageContext) -> ColumnTable:
    """All brokers and their loads: kframe snapshot show --list brokers, and their bytes if sizes are known."""
    return record_table((context.reading.number, "brokers"), brokers_with_bytes(context), _COLUMNS)
