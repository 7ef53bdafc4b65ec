"""The page about stages: where each is on the axis, and which stand out."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from kframe.pages.parts import SpansPart
from kframe.pages.render import document
from kframe.plans.check.resolve import resolve_plan
from kframe.plans.generate import plan
from kframe.plans.stage.page import SPANS_MAX, failure_rows, stage_axis
from kframe.plans.stage.request import StageRequest
from kframe.plans.stage.stages import StagedPlan, stage_plan
from kframe.plans.stage.windows import parse_windows
from kframe.snapshot import Snapshot, read_snapshot
from tests.cli.running import HEALTHY

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def snapshot() -> Snapshot:
    return read_snapshot(HEALTHY)


def staged(snapshot: Snapshot, **limits: object) -> StagedPlan:
    """A plan that empties broker 3; a replica has a gigabyte where a rate is given."""
    weights = snapshot.partitions.replicas.counts.astype("int64") * 0 + 1_000_000_000
    known = {"weights": weights} if "rate" in limits else {}
    checked = resolve_plan(plan(snapshot, remove_brokers=(3,)).plan, snapshot)
    return stage_plan(checked, StageRequest(**limits, **known))  # type: ignore[arg-type]


def spans(part: SpansPart) -> list[tuple[float, float]]:
    return [(row.begin, row.end) for row in part.rows]


def test_without_a_rate_a_stage_is_as_long_as_its_moves(snapshot: Snapshot) -> None:
    manifest = staged(snapshot, moves_per_broker=20).manifest
    axis, moves = stage_axis(manifest), [stage.moves for stage in manifest.stages]
    assert spans(axis) == [(float(sum(moves[:index])), float(sum(moves[: index + 1]))) for index in range(len(moves))]
    assert [label for _, label in axis.ticks] == ["0", "50", "100", "150", "200", "250", "300"]
    assert "no rate" in axis.title


def test_with_a_rate_a_stage_is_as_long_as_its_copies(snapshot: Snapshot) -> None:
    manifest = staged(snapshot, moves_per_broker=20, rate=10_000_000).manifest
    axis = stage_axis(manifest)
    assert [end - begin for begin, end in spans(axis)] == pytest.approx([stage.seconds for stage in manifest.stages])
    assert [label for _, label in axis.ticks][:3] == ["0 s", "3 h", "6 h"]
    assert axis.bands == []


@pytest.mark.parametrize("window", ["22:00-06:00", "00:00-04:00", "12:00-11:30"])
def test_windows_are_bands_and_each_stage_is_within_one(snapshot: Snapshot, window: str) -> None:
    limits = {"moves_per_broker": 20, "rate": 1_000_000, "windows": parse_windows([window])}
    manifest = staged(snapshot, **limits).manifest
    axis = stage_axis(manifest)
    assert len(axis.rows) == len(manifest.stages) == axis.total
    for (begin, end), stage in zip(spans(axis), manifest.stages, strict=True):
        assert end - begin == pytest.approx(stage.seconds, abs=1)
        assert any(opens <= begin and end <= closes for opens, closes in axis.bands), (begin, end)
    assert spans(axis) == sorted(spans(axis))


def test_stage_that_fits_no_window_is_left_out_of_the_axis(snapshot: Snapshot) -> None:
    stages = staged(snapshot, rate=1, windows=parse_windows(["01:00-02:00"]))
    axis = stage_axis(stages.manifest)
    assert (len(axis.rows), axis.total) == (0, len(stages.manifest.stages))
    assert "longer than the longest window" in document(stages.page())


def test_long_plans_have_parts_of_the_axis(snapshot: Snapshot) -> None:
    manifest = staged(snapshot, moves=1).manifest
    first, second = stage_axis(manifest), stage_axis(manifest, SPANS_MAX)
    assert len(first.rows) == len(second.rows) == SPANS_MAX < first.total == 307
    assert first.rows[-1].end == second.rows[0].begin == second.begin


def test_stages_stand_out_in_which_a_failure_harms_more(snapshot: Snapshot) -> None:
    manifest = staged(snapshot, moves_per_broker=20).manifest
    marked = {row.name for row in stage_axis(manifest).rows if row.is_marked}
    assert marked == {f"stage {row['stage']}" for row in failure_rows(manifest)} != set()


def test_picture_is_well_formed_and_has_a_bar_for_each_stage(snapshot: Snapshot) -> None:
    stages = staged(snapshot, moves_per_broker=20, rate=1_000_000, windows=parse_windows(["22:00-06:00"]))
    (svg,) = re.findall("<svg.*?</svg>", document(stages.page()), re.DOTALL)
    root = ElementTree.fromstring(svg)
    bars = [bar for bar in root.iter(f"{SVG}rect") if bar.get("class") in ("after", "marked")]
    assert len(bars) == len(stages.manifest.stages)
    width = float(root.get("width", "0"))
    for bar in bars:
        assert 90 <= float(bar.get("x", "0")) <= float(bar.get("x", "0")) + float(bar.get("width", "0")) < width
