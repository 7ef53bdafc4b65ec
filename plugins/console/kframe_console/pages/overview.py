"""The overview: brokers by rack, health, the quorum, and what changed in the last hour."""

from __future__ import annotations

import msgspec
from msgspec import Struct

from kframe.plugin.snapshot import SummaryRecord, summary_record
from kframe_console.pages.brokers import BrokerRow, KnownBytes, brokers_with_bytes, known_bytes
from kframe_console.pages.page import ContentPage, NoParameters, PageContext, page
from kframe_console.sources.reading import ClusterChanges


class RackContent(Struct):
    """The brokers of a rack, and sums of their loads. ``rack`` null: brokers of which no rack is known."""

    rack: str | None
    leaders: int | None
    replicas: int | None
    brokers: list[BrokerRow]


class BytesContent(Struct):
    """The bytes of all replicas, and their skew as in the summary. ``problem`` says what is not known, and why."""

    total: int | None
    skew: float | None
    problem: str | None = None


class OverviewContent(Struct):
    """A cluster at a glance. ``changes`` is null if nothing is known from before, ``bytes`` without sizes."""

    summary: SummaryRecord
    racks: list[RackContent]
    changes: ClusterChanges | None
    bytes: BytesContent | None


@page(ContentPage, "overview", "/", in_navigation=True)
def overview_page(context: PageContext, _parameters: NoParameters) -> OverviewContent:
    """The cluster at a glance: brokers by rack, health, the quorum, and what changed in the last hour."""
    key = (context.reading.number, "overview")
    return context.cache.get(key, lambda: _overview(context), lambda content: 1_000 * content.summary.brokers)


def _overview(context: PageContext) -> OverviewContent:
    return OverviewContent(
        msgspec.convert(summary_record(context.reading.snapshot, context.reading.summary), SummaryRecord),
        racks_content(context),
        context.source.changes(context.reading),
        _bytes_content(known_bytes(context)),
    )


def _bytes_content(known: KnownBytes | None) -> BytesContent | None:
    if known is None:
        return None
    return BytesContent(sum(known.by_broker.values()) if known.by_broker else None, known.skew, known.problem)


def racks_content(context: PageContext) -> list[RackContent]:
    """The brokers of the reading by rack."""
    reading = context.reading
    size = 1_000 * len(reading.snapshot.brokers)
    return context.cache.get((reading.number, "racks"), lambda: _racks(context), lambda _: size)


def _racks(context: PageContext) -> list[RackContent]:
    racks: dict[str | None, list[BrokerRow]] = {}
    for broker in brokers_with_bytes(context):
        racks.setdefault(broker.rack, []).append(broker)
    return [
        RackContent(
            rack,
            _total([broker.leaders for broker in brokers]),
            _total([broker.replicas for broker in brokers]),
            brokers,
        )
        for rack, brokers in sorted(racks.items(), key=lambda item: (item[0] is None, item[0] or ""))
    ]


def _total(counts: list[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None
