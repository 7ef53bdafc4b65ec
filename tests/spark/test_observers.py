"""Confluent's observers in a fleet: rows keep them, and partitions alone show them."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from kframe.model.columns import Ragged
from kframe.snapshot import Snapshot, generate, read_snapshot
from kframe.spark.inputs import ClusterRows
from kframe.spark.rows import rows_of, snapshot_of, table_of
from kframe.spark.schema import CLUSTER_TABLES, PARTITIONS
from kframe.whatif import WhatIf
from tests.snapshot.samples import ROOT

OBSERVERS: Final = ROOT / "tests" / "snapshot" / "texts" / "observers.txt"


def tables(snapshot: Snapshot) -> list[pa.Table]:
    return [table_of(rows_of(snapshot, "c", table), table) for table in CLUSTER_TABLES]


def lists(observers: Ragged | None) -> list[list[int]] | None:
    return None if observers is None else [observers[row].tolist() for row in range(len(observers))]


def test_rows_of_a_fleet_keep_observers() -> None:
    snapshot = read_snapshot(OBSERVERS)
    back = snapshot_of(*tables(snapshot))
    assert back.digest() == snapshot.digest()
    assert lists(back.partitions.observers) == lists(snapshot.partitions.observers)
    assert snapshot_of(*tables(generate(4, 3))).partitions.observers is None


def test_observers_of_partitions_alone_are_not_under_replicated() -> None:
    snapshot = read_snapshot(OBSERVERS)
    part = ClusterRows("c", {PARTITIONS.name: tables(snapshot)[0]}).snapshot()
    assert WhatIf(part).health().counts() == WhatIf(snapshot).health().counts()
    assert WhatIf(part).health().counts()["under_replicated"] == 0
