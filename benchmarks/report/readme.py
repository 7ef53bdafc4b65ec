"""The sentences of README.md that tell figures, out of the newest kept records."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from benchmarks.report.kept import Kept, kept
from benchmarks.report.page import NONE

Row = dict[str, Any]


def in_memory(results: Path) -> str:
    """Beside Kafka's ZooKeeper classes, and bytes of state a partition."""
    told = []
    if (found := kept("classes", results)) is not None:
        ratios = [row["ratio"] for row in found.rows if row["beside"] == "kafka" and row["bench"] != "memory"]
        if ratios:
            least, most = (
                f"{figure(ratio[end] for ratio in ratios):,.0f}" for figure, end in ((min, "least"), (max, "most"))
            )
            told.append(
                "In memory, beside Kafka's own controller classes, kframe decides, applies and encodes "
                f"{least} to {most} times as fast ({_record(found)})."
            )
    if (found := kept("suite", results)) is not None:
        states = [row for row in found.rows if "state_bytes_per_partition" in row]
        if states:
            largest = max(states, key=lambda row: (row["partitions"], row["bench"] == "controller-failover"))
            told.append(
                f"At {largest['partitions']:,} partitions it holds {largest['state_bytes_per_partition']:.0f} bytes of "
                f"state for each ({_record(found)})."
            )
    return "".join(f"{sentence}\n" for sentence in told) or NONE


def live(results: Path) -> str:
    """Whole controllers: the largest cluster that both took over, and the largest that kframe did."""
    found = kept("live", results)
    if found is None:
        return NONE
    sizes = {max((row["partitions"] for row in rows), default=0) for rows in (_beside(found), found.rows)}
    told = "; ".join(_event(row) for row in found.rows if row["partitions"] in sizes)
    row = found.rows[0]
    first = len(row.get("first_lives", ()))
    lives, but = len(row["kframe"]) + first, f" but the first {first}" if first else ""
    several = f"{lives} lives each, kframe's slowest{but} and Kafka's best" if lives > 1 else "one life each"
    return (
        f"{told[:1].upper()}{told[1:]} ({_record(found)}, {found.record['cores']} cores for all of them, {several}).\n"
    )


def _beside(found: Kept) -> list[Row]:
    return [row for row in found.rows if row["kafka"]]


def _event(row: Row) -> str:
    what = {"failover": "a failover", "broker-failure": "a broker's failure"}[row["event"]]
    theirs = f", Kafka {min(row['kafka']):.1f} s" if row["kafka"] else ""
    return f"{what} at {row['partitions']:,} partitions: kframe {max(row['kframe']):.2f} s{theirs}"


def _record(found: Kept) -> str:
    name = found.record["file"]
    return f"[record of {found.record['when'][:10]}](benchmarks/results/{name})"


#: What stands between the marks of each name.
SENTENCES: Final[Mapping[str, Callable[[Path], str]]] = {"in-memory": in_memory, "live": live}
