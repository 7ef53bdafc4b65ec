"""Write the sentences of README.md that contain figures, from the newest records."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from benchmarks.report.page import KAFKA, KFRAME, NONE
from benchmarks.report.saved_records import SavedRecord, saved_record

Row = dict[str, Any]
_EVENTS: Final = {"failover": "a failover", "broker-failure": "a broker's failure"}
#: The ZooKeeper requests of each event.
_ALONE: Final = {"failover": "reads", "broker-failure": "writes"}


def in_memory(results: Path) -> str:
    """Ratios to Kafka's ZooKeeper classes, and bytes of state per partition."""
    sentences = []
    if (figures := saved_record("classes", results)) is not None:
        ratios = [row["ratio"] for row in figures.rows if row["beside"] == "kafka" and row["bench"] != "memory"]
        if ratios:
            lowest, highest = (
                f"{figure(ratio[end] for ratio in ratios):,.0f}" for figure, end in ((min, "least"), (max, "most"))
            )
            sentences.append(
                "In memory, beside Kafka's own controller classes, kframe decides, applies and encodes "
                f"{lowest} to {highest} times as fast ({_record(figures)})."
            )
    if (figures := saved_record("requests", results)) is not None:
        for failover in (row["kframe"][-1] for row in figures.rows if row["bench"] == "controller-failover"):
            sentences.append(
                f"At {failover['partitions']:,} partitions it holds {failover['state_bytes_per_partition']:.0f} bytes "
                f"of state for each ({_record(figures)})."
            )
    return "".join(f"{sentence}\n" for sentence in sentences) or NONE


def live(results: Path) -> str:
    """Running controllers. Uses the largest cluster of both, and the largest of kframe."""
    figures = saved_record("live", results)
    if figures is None:
        return NONE
    sizes = {max((row["partitions"] for row in rows), default=0) for rows in (_beside(figures), figures.rows)}
    text = "; ".join(_event(row) for row in figures.rows if row["partitions"] in sizes)
    row = figures.rows[0]
    first = len(row.get("first_lives", ()))
    runs, but = len(row["kframe"]) + first, f" but the first {first}" if first else ""
    several = f"{runs} runs each, kframe's slowest{but} and Kafka's best" if runs > 1 else "one run each"
    cores = f"{figures.record['cores']} cores for all processes"
    return f"{text[:1].upper()}{text[1:]} ({_record(figures)}, {cores}, {several}).\n"


def live_kraft(results: Path) -> str:
    """Medians of running KRaft controllers, at the largest cluster."""
    figures = saved_record("live_kraft", results)
    if figures is None:
        return NONE
    size = max(row["partitions"] for row in figures.rows)
    rows = {(row["what"], row["figure"]): row for row in figures.rows if row["partitions"] == size}
    durable, restart, creation, memory = (
        rows[key]
        for key in (
            ("broker failure", "seconds_to_durable"),
            ("restart", "seconds"),
            ("creation at 200/s", "p99_seconds"),
            ("resident memory", "bytes"),
        )
    )
    return (
        f"As the KRaft controller of {size:,} partitions: a broker's failure is durable after"
        f" {durable[KFRAME]:.2f} s, with Kafka 4.4 after {durable[KAFKA]:.1f} s;"
        f" a restart takes {restart[KFRAME]:.1f} s and {restart[KAFKA]:.0f} s;"
        f" 99 of 100 creations of a topic, 200 a second, take at most {1000 * creation[KFRAME]:.0f} ms"
        f" and {1000 * creation[KAFKA]:.0f} ms; resident memory is {memory[KFRAME] / 1e6:,.0f} MB"
        f" and {memory[KAFKA] / 1e6:,.0f} MB"
        f" ({_record(figures)}, medians; {figures.record['cores']} cores for all processes).\n"
    )


def cold_server(results: Path) -> str:
    """The slowest runs on cold servers."""
    figures = saved_record("cold_server", results)
    if figures is None:
        return NONE
    text = "; ".join(
        f"{_EVENTS[row['event']]} at {row['partitions']:,} partitions takes {max(row['kframe']):.2f} s, "
        f"the {_ALONE[row['event']]} alone take {max(row['raw']):.2f} s"
        for row in figures.rows
    )
    return f"On a ZooKeeper that has just started, {text} ({_record(figures)}).\n"


def _beside(figures: SavedRecord) -> list[Row]:
    return [row for row in figures.rows if row["kafka"]]


def _event(row: Row) -> str:
    name = _EVENTS[row["event"]]
    theirs = f", Kafka {min(row['kafka']):.1f} s" if row["kafka"] else ""
    return f"{name} at {row['partitions']:,} partitions: kframe {max(row['kframe']):.2f} s{theirs}"


def _record(figures: SavedRecord) -> str:
    name = figures.record["file"]
    return f"[record of {figures.record['when'][:10]}](benchmarks/results/{name})"


#: The generated text by the name of its markers.
SENTENCES: Final[Mapping[str, Callable[[Path], str]]] = {
    "in-memory": in_memory,
    "live": live,
    "live-kraft": live_kraft,
    "cold-server": cold_server,
}
