"""The newest stored figures of each kind, from whichever record has them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks.records import RESULTS, newest

Record = dict[str, Any]
#: Partitions of a cluster of normal size.
_NORMAL_SIZE: Final = 1_000_000


@dataclass(frozen=True)
class SavedRecord:
    """Figures, and the record that they stand in."""

    rows: Any
    record: Mapping[str, Any]


def _live(record: Record) -> list[Record]:
    rows: Sequence[Record] = record.get("live") or record.get("rows", ())
    return [row for row in rows if "event" in row]


def _live_kraft(record: Record) -> list[Record]:
    """The figures of a run without observers, up to the normal size."""
    rows = _live_kraft_rows(record)
    return [] if _is_largest(rows) else rows


def _live_kraft_largest(record: Record) -> list[Record]:
    """The figures of a run with more partitions than that."""
    rows = _live_kraft_rows(record)
    return rows if _is_largest(rows) else []


def _live_kraft_rows(record: Record) -> list[Record]:
    if "--observers" in record.get("command", ()):
        return []
    return [row for row in record.get("rows", ()) if "what" in row and "figure" in row]


def _is_largest(rows: Sequence[Record]) -> bool:
    return any(row["partitions"] > _NORMAL_SIZE for row in rows)


def _whole_suite(record: Record) -> list[Record]:
    """The suite of a run that did not choose benches."""
    return [] if "--benches" in record.get("command", ()) else list(record.get("suite", ()))


def _under(key: str) -> Callable[[Record], Any]:
    return lambda record: record.get(key, ())


#: What there is to look for in a record; empty where it is not there.
KINDS: Final[Mapping[str, Callable[[Record], Any]]] = {
    "live": _live,
    "live_kraft": _live_kraft,
    "live_kraft_largest": _live_kraft_largest,
    "suite": _whole_suite,
    **{
        key: _under(key)
        for key in (
            "classes",
            "requests",
            "roofline",
            "own_work",
            "processes",
            "cold_server",
            "fleet_stages",
            "repeated",
            "builds",
            "floors",
        )
    },
}


def saved_record(kind: str, folder: Path = RESULTS) -> SavedRecord | None:
    """The newest figures of a kind, None if no record has any."""
    matches = [(rows, record) for record in newest(folder) if (rows := KINDS[kind](record))]
    return SavedRecord(*matches[-1]) if matches else None
