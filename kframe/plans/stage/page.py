"""The page about a plan in stages: the stages on an axis of time, what each copies, and the failures that harm more."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate, count
from typing import Any, Final

from msgspec.structs import asdict

from kframe.model.texts import counted, duration_text
from kframe.pages.parts import FactsPart, NotesPart, Part, Span, SpansPart, TablePart
from kframe.plans.stage.manifest import PlanStage, StageManifest
from kframe.plans.stage.windows import DAY_SECONDS, TimeWindow, clock_seconds, clock_text

#: Most spans of a picture, rows of a table, and labels along an axis.
SPANS_MAX: Final = 60
_ROWS_MAX: Final = 500
_TICKS: Final = 8
#: Steps between labels of a time axis, in seconds; longer ones are whole days.
_STEPS: Final = (1, 5, 15, 60, 300, 900, 1_800, 3_600, 10_800, 21_600, 43_200, DAY_SECONDS)


def stage_parts(manifest: StageManifest) -> list[Part]:
    """All that a page shows of the stages."""
    stages, failures = stage_rows(manifest), failure_rows(manifest)
    limits = [(name.replace("_", " "), value) for name, value in asdict(manifest.limits).items() if value]
    parts: list[Part] = [FactsPart(limits or [("limits", "none")])]
    if stages:
        parts.append(stage_axis(manifest))
        parts.append(_table("stages", stages))
    if failures:
        parts.append(_table("broker failures that harm more than before the plan", failures))
    if manifest.unstaged:
        parts.append(_table("partitions without a stage", list(map(asdict, manifest.unstaged))))
    no_failure = () if failures else ("no broker failure affects more partitions in a stage than before the plan",)
    parts.append(NotesPart([*no_failure, *manifest.notes]))
    return parts


def stage_rows(manifest: StageManifest) -> list[dict[str, Any]]:
    """A row for each stage: what it copies at most into a broker and out of it, its time, and the failures that harm
    more than before the plan."""
    return [
        {
            "stage": stage.number,
            "partitions": len(stage.reassignments),
            "moves": stage.moves,
            "bytes": stage.bytes,
            "max_in": max((broker.moves_in for broker in stage.brokers), default=0),
            "max_out": max((broker.moves_out for broker in stage.brokers), default=0),
            "seconds": None if stage.seconds is None else round(stage.seconds, 1),
            "day": None if stage.window is None else stage.window.day,
            "begin": None if stage.window is None else stage.window.begin,
            "end": None if stage.window is None else stage.window.end,
            "failures": len(stage.failures),
        }
        for stage in manifest.stages
    ]


def failure_rows(manifest: StageManifest) -> list[dict[str, Any]]:
    """The failures that harm more than before the plan, with the number of their stage."""
    return [{"stage": stage.number, **asdict(failure)} for stage in manifest.stages for failure in stage.failures]


def stage_axis(manifest: StageManifest, first: int = 0) -> SpansPart:
    """At most SPANS_MAX stages from index ``first`` on an axis: local time where there are windows, time where there is
    a rate, and replicas copied otherwise. Stages that fit no window are left out."""
    stages = manifest.stages
    if manifest.limits.windows:
        placed = [(stage, *_window_times(stage)) for stage in stages if stage.window is not None]
        title = "stages in their windows, by local time"
    elif all(stage.seconds is not None for stage in stages):
        placed = list(_in_a_row(stages, [stage.seconds or 0.0 for stage in stages]))
        title = "stages one after the other, by the time that they take"
    else:
        placed = list(_in_a_row(stages, [float(stage.moves) for stage in stages]))
        title = "stages one after the other, by replicas copied (no rate is known that gives a time)"
    shown = placed[first : first + SPANS_MAX]
    begin, end = (shown[0][1], shown[-1][2]) if shown else (0.0, 1.0)
    is_time = bool(manifest.limits.windows) or all(stage.seconds is not None for stage in stages)
    return SpansPart(
        title=title,
        begin=begin,
        end=end,
        ticks=list(_time_ticks(begin, end, bool(manifest.limits.windows)) if is_time else _count_ticks(begin, end)),
        bands=list(_bands(manifest.limits.windows, begin, end)),
        rows=[_span(*stage) for stage in shown],
        total=len(stages),
    )


def _in_a_row(stages: Sequence[PlanStage], lengths: Sequence[float]) -> Iterator[tuple[PlanStage, float, float]]:
    ends = list(accumulate(lengths))
    return zip(stages, [0.0, *ends], ends, strict=False)


def _window_times(stage: PlanStage) -> tuple[float, float]:
    """Begin and end in seconds after the first midnight. The day of a window is that of its begin."""
    window = stage.window
    assert window is not None
    opens, begin, end = TimeWindow.of(window.window).begin, clock_seconds(window.begin), clock_seconds(window.end)
    midnight = (window.day - 1) * DAY_SECONDS
    begin += DAY_SECONDS if begin < opens else 0
    end += DAY_SECONDS if end < opens else 0
    return float(midnight + begin), float(midnight + max(begin, end))


def _span(stage: PlanStage, begin: float, end: float) -> Span:
    copied = counted(stage.moves, "move")
    if stage.bytes is not None:
        copied += f" of {counted(stage.bytes, 'byte')}"
    times = "" if stage.seconds is None else f", {duration_text(stage.seconds)}"
    if stage.window is not None:
        times += f", day {stage.window.day} from {stage.window.begin} to {stage.window.end}"
    harm = f"; {counted(len(stage.failures), 'broker failure')} would harm more" if stage.failures else ""
    description = f"stage {stage.number}: {copied}{times}{harm}"
    return Span(
        f"stage {stage.number}", begin, end, counted(stage.moves, "move") + harm, description, bool(stage.failures)
    )


def _time_ticks(begin: float, end: float, is_clock: bool) -> Iterator[tuple[float, str]]:
    shortest = (end - begin) / _TICKS
    step = next((step for step in _STEPS if step >= shortest), -(-int(shortest) // DAY_SECONDS) * DAY_SECONDS)
    for position in _multiples(step, begin, end):
        day, second = divmod(position, DAY_SECONDS)
        clock = f"day {day + 1}" if not second else clock_text(second)[: 8 if step < 60 else 5]
        yield float(position), clock if is_clock else duration_text(position)


def _count_ticks(begin: float, end: float) -> Iterator[tuple[float, str]]:
    shortest = (end - begin) / _TICKS
    steps = (size * 10**power for power in count() for size in (1, 2, 5))
    for position in _multiples(next(step for step in steps if step >= shortest), begin, end):
        yield float(position), f"{position:,}"


def _multiples(step: int, begin: float, end: float) -> range:
    return range(-int(-begin // step) * step, int(end) + 1, step)


def _bands(windows: Sequence[str], begin: float, end: float) -> Iterator[tuple[float, float]]:
    """The parts of windows between two times."""
    for day in range(int(begin // DAY_SECONDS) - 1, int(end // DAY_SECONDS) + 1) if windows else ():
        for window in map(TimeWindow.of, windows):
            opens = day * DAY_SECONDS + window.begin
            closes = opens + window.length
            if opens < end and closes > begin:
                yield max(opens, begin), min(closes, end)


def _table(title: str, rows: Sequence[Mapping[str, Any]]) -> TablePart:
    columns = [name for name in rows[0] if any(row[name] is not None for row in rows)]
    return TablePart(title, columns, rows[:_ROWS_MAX], len(rows))
