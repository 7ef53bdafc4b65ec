"""The table of all partitions."""

from __future__ import annotations

from typing import Final

import numpy as np

from kframe.plugin.cluster import NO_LEADER
from kframe.plugin.columns import UInt8
from kframe.plugin.kraft import uuid_text
from kframe.plugin.snapshot import Conditions, SnapshotPartition
from kframe_console.pages.page import PARTITION_LINKS, PageContext, TablePage, page
from kframe_console.sources.reading import Reading
from kframe_console.tables.columns import DataColumn, FlagsColumn, NamedColumn, NumericColumn, lists, numeric
from kframe_console.tables.table import ColumnTable

#: Conditions of a partition, the worst last, so that rows sort by the worst.
_CONDITIONS: Final = (
    "reassigning",
    "preferred_replica_imbalance",
    "under_replicated",
    "at_min_isr",
    "under_min_isr",
    "offline",
)
_LEADERS: Final = {NO_LEADER: "none"}


class PartitionRow(SnapshotPartition, kw_only=True):
    """A partition and the conditions that hold for it: ``kframe snapshot show --list partitions`` has the others.

    A condition that the source does not show is left out.
    """

    health: list[str]


@page(TablePage, "partitions", "/partitions", row=PartitionRow, links=PARTITION_LINKS, in_navigation=True)
def partitions_page(context: PageContext) -> ColumnTable:
    """All partitions: leaders, replicas, ISRs, epochs, and conditions."""
    reading = context.reading
    topics, partitions = reading.snapshot.topics, reading.snapshot.partitions
    count = len(partitions)
    columns: dict[str, DataColumn] = {
        "topic": NamedColumn(topics.names, topics.topic_of_rows()),
        "partition": NumericColumn(topics.partition_of_rows()),
        "leader": numeric(partitions.leader, count, _LEADERS),
        "replicas": lists(partitions.replicas, count),
        "isr": lists(partitions.isr, count),
        "health": FlagsColumn(_CONDITIONS, _health_bits(reading)),
        "leader_epoch": numeric(partitions.leader_epoch, count),
        "partition_epoch": numeric(partitions.partition_epoch, count),
        "controller_epoch": numeric(partitions.controller_epoch, count),
        "leader_recovery_state": numeric(partitions.leader_recovery_state, count, {0: "recovered", 1: "recovering"}),
        "adding_replicas": lists(partitions.adding_replicas, count),
        "removing_replicas": lists(partitions.removing_replicas, count),
        "elr": lists(partitions.elr, count),
        "last_known_elr": lists(partitions.last_known_elr, count),
    }
    if reading.snapshot.kraft is not None:
        directories = [uuid_text(directory) for directory in reading.snapshot.kraft.directory_ids]
        columns["directories"] = lists(partitions.directories, count, directories)
    if partitions.observers is not None:
        columns["observers"] = lists(partitions.observers, count)
    return ColumnTable((reading.number, "partitions"), columns, count)


def _health_bits(reading: Reading) -> UInt8:
    conditions: Conditions = reading.conditions
    bits = np.zeros(len(reading.snapshot), np.uint8)
    for bit, name in enumerate(_CONDITIONS):
        mask = getattr(conditions, name)
        if mask is not None:
            bits |= mask.astype(np.uint8) << bit
    return bits
