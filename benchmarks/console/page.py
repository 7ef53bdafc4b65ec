"""A record of the benchmark as Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

_PERCENTILES: Final = ("count", "p50", "p95", "p99", "max")
_KINDS: Final = ("all", "page", "sort", "filter", "scroll", "input_delay", "long_tasks")
_PAINT_HEADS: Final = ("page", "first contentful paint, ms", "slowest", "all painted, ms", "slowest")
_PARTS: Final = {
    "actions": "Random actions, ms from the input to the paint",
    "refreshes": "Random actions while the cluster is read again and again, ms",
}
#: The engine in the processes of the command ``kframe``, where Arrow has the allocator of the C library.
SAME_ALLOCATOR: Final = "the engine with the allocator of the console"


def markdown(record: Mapping[str, Any]) -> str:
    """The page of a record."""
    return "\n".join(_lines(record)) + "\n"


def _lines(record: Mapping[str, Any]) -> Iterator[str]:
    yield f"# The console with {record['partitions']:,} partitions"
    yield ""
    yield f"- {record['when']}, commit {str(record['commit'])[:12]}{', modified' if record['modified'] else ''}."
    yield f"- {record['cores']} cores, {record['processor']}, Python {record['python']}."
    yield f"- Command: `{' '.join(record['command'])}`."
    yield from _table("Goals", ("goal", "measured", "at most"), [_goal(each) for each in record["targets"]])
    if paints := record.get("first_paint"):
        yield from _table("First paint, medians of new profiles", _PAINT_HEADS, [_paint(row) for row in paints])
    for part, title in _PARTS.items():
        if actions := record.get(part):
            yield from _actions(title, actions)
    if "refreshes" in record:
        yield ""
        yield "A new reading that is painted before the next action counts as the last change of the one before."
    if sessions := record.get("sessions"):
        title = f"Beside {sessions['sessions']} sessions over HTTP, ms"
        yield from _actions(title, sessions["actions"], [("HTTP requests", sessions["requests"])])
        yield ""
        yield f"Sessions read for {sessions['reading_s']:g} s on average; {sessions['refused']} requests were refused."
    for part, engine in (("server_memory", "the engine in Python"), ("same_allocator_memory", SAME_ALLOCATOR)):
        if memory := record.get(part):
            rows = [_memory(memory, name) for name in ("resident", "peak")]
            yield from _table(f"Memory beside {engine}, MB", ("", "console", "engine", "ratio"), rows)


def _actions(
    title: str, figures: Mapping[str, Any], more: Sequence[tuple[str, Mapping[str, Any]]] = ()
) -> Iterator[str]:
    kinds = [(kind.replace("_", " "), figures[kind]) for kind in _KINDS if kind in figures]
    rows = [(name, *(each[key] for key in _PERCENTILES)) for name, each in [*kinds, *more]]
    yield from _table(title, ("", *_PERCENTILES), rows)


def _paint(row: Mapping[str, Any]) -> tuple[Any, ...]:
    names = ("first_contentful_paint_ms", "all_painted_ms")
    return row["path"], *(row[f"{name}{suffix}"] for name in names for suffix in ("", "_max"))


def _memory(memory: Mapping[str, Any], name: str) -> tuple[str, ...]:
    megabytes = (f"{memory[kind][f'{name}_bytes'] / 1e6:,.0f}" for kind in ("console", "engine"))
    return name, *megabytes, f"{memory[f'{name}_ratio']:.2f}"


def _goal(target: Sequence[Any]) -> tuple[str, str, str]:
    name, measured, limit = target
    return name, f"{measured:,.4g}", f"{limit:,g}"


def _table(title: str, heads: Sequence[str], rows: Sequence[Sequence[Any]]) -> Iterator[str]:
    yield from ("", f"## {title}", "", f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}")
    for row in rows:
        yield f"| {' | '.join(f'{cell:,}' if isinstance(cell, int | float) else str(cell) for cell in row)} |"
