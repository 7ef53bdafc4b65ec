"""Snapshots and outcomes as tables of other libraries, as text and as HTML."""

from __future__ import annotations

import sys

import pytest

import kframe
from tests.architecture.source import ROOT

CLUSTER = ROOT / "examples" / "clusters" / "kafka-3.9.1-six-brokers"


@pytest.fixture(scope="module")
def snapshot() -> kframe.Snapshot:
    return kframe.read_snapshot(CLUSTER / "healthy.zookeeper.jsonl.gz")


@pytest.fixture(scope="module")
def outcome(snapshot: kframe.Snapshot) -> kframe.Outcome:
    return kframe.WhatIf(snapshot).fail(brokers=[4])


def test_frames_of_a_snapshot_are_equal(snapshot: kframe.Snapshot) -> None:
    table = snapshot.to_arrow()
    assert (table.num_rows, table.column_names[:3]) == (645, ["topic", "partition", "replicas"])
    assert snapshot.to_polars().to_dicts() == table.to_pylist()
    assert snapshot.to_pandas()["leader"].tolist() == table["leader"].to_pylist()


def test_frames_of_an_outcome_have_the_changed_partitions(outcome: kframe.Outcome) -> None:
    assert outcome.to_arrow().num_rows == outcome.to_polars().height == len(outcome.to_pandas()) == len(outcome.changes)
    assert set(outcome.to_polars()["leader_before"]) >= {4}


def test_reprs_are_short(snapshot: kframe.Snapshot, outcome: kframe.Outcome) -> None:
    name = "zookeeper healthy.zookeeper.jsonl.gz"
    assert repr(snapshot) == f"<Snapshot {name}: 645 partitions, 51 topics, 6 brokers>"
    assert repr(outcome).startswith("<Outcome fail broker 4: ")
    assert max(len(repr(value)) for value in (snapshot, outcome)) < 160


def test_html_is_escaped(snapshot: kframe.Snapshot) -> None:
    text = snapshot._repr_html_()
    assert "<caption>zookeeper healthy" in text
    assert "<th>partitions</th><td>645</td>" in text


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_missing_libraries_are_named(library: str, snapshot: kframe.Snapshot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(kframe.KframeError, match=f"found no {library}, expected an installed {library}"):
        getattr(snapshot, f"to_{library}")()
