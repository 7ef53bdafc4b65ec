"""The newest stored figures of each kind, from whichever record has them."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks.records import RESULTS, newest

Record = dict[str, Any]


@dataclass(frozen=True)
class SavedRecord:
    """Figures, and the record that they stand in."""

    rows: Any
    record: Mapping[str, Any]


def _classes(record: Record) -> list[Record]:
    if "classes" in record:
        return list(record["classes"])
    return [_first_form(row) for row in record.get("rows", ()) if "kafka_seconds" in row]


def _first_form(row: Record) -> Record:
    """A row as records had it when Kafka's classes ran under one collector."""
    medians = [run["seconds"]["ready"]["median"] for run in row["kframe"]]
    theirs = row["kafka_seconds"]
    ratio = {**row["ratio"], "median": theirs / statistics.median(medians)}
    return {"beside": "kafka", "bench": row["bench"], "phase": "ready", "partitions": row["partitions"],
            "brokers": row["kframe"][0]["brokers"], "kframe": medians, "peer": {"parallel": theirs},
            "collector": "parallel", "ratio": ratio}  # fmt: skip


def _live(record: Record) -> list[Record]:
    rows: Sequence[Record] = record.get("live") or record.get("rows", ())
    return [row for row in rows if "event" in row]


def _whole_suite(record: Record) -> list[Record]:
    """The suite of a run that did not choose benches."""
    return [] if "--benches" in record.get("command", ()) else list(record.get("suite", ()))


def _under(key: str) -> Callable[[Record], Any]:
    return lambda record: record.get(key, ())


#: What there is to look for in a record; empty where it is not there.
KINDS: Final[Mapping[str, Callable[[Record], Any]]] = {
    "classes": _classes,
    "live": _live,
    "suite": _whole_suite,
    **{
        key: _under(key)
        for key in (
            "ratios",
            "requests",
            "sweep",
            "roofline",
            "own_work",
            "processes",
            "cold_server",
            "fleet_stages",
            "repeated",
        )
    },
}


def saved_record(kind: str, folder: Path = RESULTS) -> SavedRecord | None:
    """The newest figures of a kind, None if no record has any."""
    matches = [(rows, record) for record in newest(folder) if (rows := KINDS[kind](record))]
    return SavedRecord(*matches[-1]) if matches else None
