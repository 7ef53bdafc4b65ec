"""The table of all brokers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from msgspec import UNSET, UnsetType
from msgspec.structs import asdict

from kframe.plugin import InputError
from kframe.plugin.snapshot import SnapshotBroker, broker_rows, bytes_of_brokers, skew_of
from kframe_console.pages.page import PageContext, TablePage, page
from kframe_console.tables.records import record_table
from kframe_console.tables.table import ColumnTable


class BrokerRow(SnapshotBroker, kw_only=True):
    """A broker and the bytes of its replicas. They are null where this broker did not list them, and are left out where
    nothing is known of any."""

    bytes: int | UnsetType | None = UNSET


#: The columns in order, without those that a cell cannot show.
_COLUMNS: Final = tuple(name for name in BrokerRow.__struct_fields__ if name != "features")


@dataclass(frozen=True, slots=True)
class KnownBytes:
    """The bytes of the replicas of brokers, by id, their skew as in the summary, and why some are unknown."""

    by_broker: Mapping[int, int]
    skew: float | None = None
    problem: str | None = None


def known_bytes(context: PageContext) -> KnownBytes | None:
    """The bytes on the brokers of the reading, listed by them or by the sizes of partitions; None without either."""
    key, size = (context.reading.number, "bytes"), 100 * len(context.reading.snapshot.brokers)
    return context.cache.get(key, lambda: _compute_bytes(context), lambda _: size)


def _compute_bytes(context: PageContext) -> KnownBytes | None:
    snapshot, listed = context.reading.snapshot, context.reading.listed
    if listed is not None:
        skew = skew_of(np.array([*listed.by_broker.values()], np.int64))
        return KnownBytes(listed.by_broker, skew, listed.problem(snapshot))
    try:
        sizes = context.plans.sizes(snapshot)
    except InputError as problem:
        return KnownBytes({}, problem=str(problem))
    if sizes is None:
        return None
    computed = bytes_of_brokers(snapshot, sizes)
    ids = (broker.broker_id for broker in snapshot.brokers)
    return KnownBytes(dict(zip(ids, computed.by_broker.tolist(), strict=True)), computed.skew)


def brokers_with_bytes(context: PageContext) -> list[BrokerRow]:
    """The brokers of the reading, by id."""
    known = known_bytes(context)
    brokers = broker_rows(context.reading.snapshot, context.reading.loads)
    if known is None or not known.by_broker:
        return [BrokerRow(**asdict(broker)) for broker in brokers]
    return [BrokerRow(**asdict(broker), bytes=known.by_broker.get(broker.broker_id)) for broker in brokers]


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
