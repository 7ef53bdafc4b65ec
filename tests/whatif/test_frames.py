"""Snapshots and outcomes as tables of other libraries, as text and as HTML."""

from __future__ import annotations

import base64
import dataclasses
import re
import struct
import sys
import zlib
from collections.abc import Callable
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest

import kframe
from kframe.pages.heat import heat_cells, heat_image, heat_range
from kframe.whatif import sweep
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


SHOWN: dict[str, Callable[[kframe.Snapshot], Any]] = {
    "snapshot": lambda snapshot: snapshot,
    "what-if": kframe.WhatIf,
    "outcome": lambda snapshot: kframe.WhatIf(snapshot).fail(brokers=[4]),
    "brokers": lambda snapshot: kframe.WhatIf(snapshot).fail(brokers=[4]).brokers,
    "sweep": sweep,
    "explanation": lambda snapshot: kframe.WhatIf(snapshot).explain(snapshot.topics.names[3], 0, fail=[4]),
    "proposal": lambda snapshot: kframe.plan(snapshot, remove_brokers=(4,)),
    "plan": lambda snapshot: kframe.plan(snapshot, remove_brokers=(4,)).plan,
}
TABLES = ("brokers", "sweep", "proposal", "plan")
PLOTS = ("brokers", "sweep", "proposal")


class Checker(HTMLParser):
    """Notes the tags of a fragment, and that all are closed."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.seen.add(tag)
        if tag != "img":
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: Any) -> None:
        self.seen.add(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.mark.parametrize("name", SHOWN)
def test_objects_are_shown_in_a_line_and_in_a_notebook(name: str, snapshot: kframe.Snapshot) -> None:
    shown = SHOWN[name](snapshot)
    assert len(repr(shown)) < 300
    assert "\n" not in repr(shown)
    checker = Checker()
    checker.feed(shown._repr_html_())
    assert checker.open == []
    assert {"table", "style"} <= checker.seen
    assert not {"script", "link", "iframe"} & checker.seen
    assert len(shown._repr_html_()) < 100_000


def test_numbers_in_a_notebook_are_those_of_the_engine(outcome: kframe.Outcome) -> None:
    text = outcome._repr_html_()
    assert f"<th>partitions changed</th><td>{len(outcome.changes)}</td>" in text
    loads = [*outcome.after.leaders.tolist(), *outcome.after.in_sync.tolist()]
    assert [int(each) for each in re.findall(r"before, (\d+) after</title>", text)] == loads


def test_sweep_in_a_notebook_has_a_number_for_each_pair(snapshot: kframe.Snapshot) -> None:
    swept = kframe.sweep(snapshot)
    text = swept._repr_html_()
    offline = {tuple(row["brokers"]): row["offline"] for row in swept.records() if row["kind"] == "pair"}
    cells = re.findall(r"<title>broker (\d+) and broker (\d+): (\d+)</title>", text)
    assert {tuple(sorted((int(first), int(second)))): int(number) for first, second, number in cells} == offline
    assert len(cells) == 2 * len(offline)


@pytest.mark.parametrize("name", TABLES)
def test_tables_of_each_library_are_equal(name: str, snapshot: kframe.Snapshot) -> None:
    shown = SHOWN[name](snapshot)
    rows = shown.to_arrow().to_pylist()
    assert rows
    assert len(shown.to_pandas()) == len(rows)
    assert shown.to_polars().to_dicts() == rows


@pytest.mark.parametrize("name", PLOTS)
def test_figures_have_the_brokers(name: str, snapshot: kframe.Snapshot) -> None:
    axes = SHOWN[name](snapshot).plot().axes[0]
    assert [text.get_text() for text in axes.get_xticklabels()] == ["1", "2", "3", "4", "5", "6"]


def test_heat_image_has_a_dot_for_each_value() -> None:
    head, _, data = heat_image(np.array([[0.0, 1.0, np.nan], [2.0, 3.0, 4.0]])).partition(",")
    assert head == "data:image/png;base64"
    content = base64.b64decode(data)
    assert struct.unpack(">II", content[16:24]) == (3, 2)
    rows = zlib.decompress(content[content.index(b"IDAT") + 4 : content.index(b"IEND") - 8])
    assert rows[:10] == b"\0" + bytes((247, 251, 255)) + bytes((198, 219, 239)) + b"\xff\xff\xff"
    assert rows[-3:] == bytes((8, 48, 107))


def test_heat_cells_have_numbers_that_are_legible_on_their_colours() -> None:
    values = np.array([[0.0, 1234.0], [1.256, np.nan]])
    cells = [(cell.text, cell.colour, cell.is_dark) for row in heat_cells(values) for cell in row]
    assert cells == [
        ("0", "#f7fbff", False), ("1,234", "#08306b", True), ("1.26", "#f7fbff", False), ("–", "#ffffff", False),
    ]  # fmt: skip
    assert (heat_range(values), heat_range(np.full((1, 1), np.nan))) == ("0 to 1,234", "–")


def test_reprs_are_short(snapshot: kframe.Snapshot, outcome: kframe.Outcome) -> None:
    name = "zookeeper healthy.zookeeper.jsonl.gz"
    assert repr(snapshot) == f"<Snapshot {name}: 645 partitions, 51 topics, 6 brokers>"
    assert repr(outcome).startswith("<Outcome fail broker 4: ")
    assert max(len(repr(value)) for value in (snapshot, outcome)) < 160


def test_html_is_escaped(snapshot: kframe.Snapshot) -> None:
    named = dataclasses.replace(snapshot, source=dataclasses.replace(snapshot.source, name="<b>'s"))
    text = named._repr_html_()
    assert "zookeeper &lt;b&gt;&#39;s" in text
    assert "<b>" not in text


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_missing_libraries_are_named(library: str, snapshot: kframe.Snapshot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(kframe.KframeError, match=f"found no {library}, expected an installed {library}"):
        getattr(snapshot, f"to_{library}")()
