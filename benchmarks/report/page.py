"""Write the tables of docs/explanation/performance.md between their markers, from the kept records."""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

from benchmarks.limits.roofline import TIMES_MAX, nanoseconds, why
from benchmarks.records import RESULTS, newest, spread
from benchmarks.report.ratios import compare_targets, of_record
from benchmarks.report.saved_records import SavedRecord, saved_record

Row = dict[str, Any]
Block: TypeAlias = Callable[[Path], str]
"""What stands between two marks, out of the records in a folder."""
_BLOCK: Final = re.compile(r"(<!-- figures: (\S+) -->\n).*?(<!-- end -->)", re.DOTALL)
NONE: Final = "No record has these figures yet.\n"
#: The controllers of ``benchmarks.live_kraft``, as its rows name them.
KFRAME, KAFKA = "kframe", "Kafka 4.4.0"
#: Figures that are not better where they are lower: both controllers write and send the same.
_SAME_FOR_BOTH: Final = ("records", "bytes_written", "floor_to_durable", "floor_to_last_fetch")


def filled(text: str, results: Path = RESULTS, blocks: Mapping[str, Block] | None = None) -> str:
    """A page with its ``blocks`` (by default TABLES) from the newest records. Raises KeyError for a mark that names
    none of them."""
    known = TABLES if blocks is None else blocks
    return _BLOCK.sub(lambda block: f"{block[1]}\n{known[block[2]](results)}\n{block[3]}", text)


def _table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [headings, ["---"] * len(headings), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _source(figures: SavedRecord) -> str:
    """Where figures come from: the record, when, at which commit, on what, by which command."""
    record = figures.record
    machine = f"{record['cores']} cores, {record['processor']}, Python {record['python']}"
    changed = ", with changes" if record.get("modified") else ""
    command = f" by `{' '.join(record['command'])}`" if "command" in record else ""
    return (
        f"\n[{record['file']}](../../benchmarks/results/{record['file']}), {record['when'][:10]}, commit "
        f"{record['commit'][:12]}{changed}{command}; {machine}.\n"
    )


def _of(kind: str, write: Callable[[Any], str]) -> Block:
    def block(results: Path) -> str:
        figures = saved_record(kind, results)
        return NONE if figures is None else write(figures.rows) + _source(figures)

    return block


def milliseconds(seconds: float) -> str:
    """Three digits or more."""
    value = seconds * 1000
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def targets(results: Path) -> str:
    """Every target beside the latest measurement."""
    records = newest(results)
    outcomes = compare_targets((), {record["file"]: of_record(record) for record in records})
    if not any(outcome.reached is not None for outcome in outcomes):
        return NONE
    word = {True: "yes", False: "**no**", None: "not measured"}
    return _table(
        ("what", "wanted", "measured", "reached"),
        [
            (outcome.target.text, outcome.limit_text, outcome.measured_text or "", word[outcome.reached])
            for outcome in outcomes
        ],
    )


def classes(rows: Sequence[Row]) -> str:
    """Beside Kafka's classes."""
    return _table(
        ("beside", "what", "partitions", "kframe", "the peer", "times"),
        [_class(row) for row in rows],
    )


def _class(row: Row) -> tuple[str, ...]:
    ours, theirs = statistics.median(row["kframe"]), row["peer"][row["collector"]]
    memory = row["bench"] == "memory"
    text = [f"{value:,.0f} B" if memory else f"{milliseconds(value)} ms" for value in (ours, theirs)]
    spread = f"{row['ratio']['least']:.1f} to {row['ratio']['most']:.1f}"
    return (
        {"kafka": "ZooKeeper classes", "kraft": "KRaft classes"}[row["beside"]],
        f"{row['bench']}, {row['phase']}",
        f"{row['partitions']:,}",
        *text,
        spread,
    )


def live(rows: Sequence[Row]) -> str:
    """Whole controllers."""
    return _table(
        (
            "event",
            "partitions",
            "kframe, slowest",
            "its first runs",
            "server's compiler, run by run",
            "Kafka, best",
            "times",
            "requests alone",
            "kframe in times of them",
            "back to back",
            "kframe in times of these",
        ),
        [_live(row) for row in rows],
    )


def _live(row: Row) -> tuple[str, ...]:
    first = ", ".join(f"{seconds:.3f} s" for seconds in row.get("first_lives", ()))
    at_once = (f"{row['raw_at_once']:.3f} s", _times(row["times_raw_at_once"])) if "raw_at_once" in row else ("", "")
    return (
        row["event"],
        f"{row['partitions']:,}",
        f"{max(row['kframe']):.3f} s",
        first,
        ", ".join(f"{seconds:.2f} s" for seconds in row.get("compiler", ())),
        f"{min(row['kafka']):.1f} s" if row["kafka"] else "not run",
        f"{row['ratio']:.1f}" if row["ratio"] else "",
        f"{row['raw']:.3f} s",
        _times(row["times_raw"]),
        *at_once,
    )


def _times(ratios: Sequence[float]) -> str:
    spread = f" ({min(ratios):.1f} to {max(ratios):.1f})" if len(ratios) > 1 else ""
    return f"{statistics.median(ratios):.1f}{spread}"


def live_kraft(rows: Sequence[Row]) -> str:
    """Running KRaft controllers, seen from outside."""
    return _table(
        ("what", "partitions", KFRAME, KAFKA, "times"),
        [
            (
                f"{row['what']}: {row['figure'].replace('_', ' ')}",
                f"{row['partitions']:,}",
                *(_measured(row.get(name), row["figure"]) for name in (KFRAME, KAFKA)),
                "" if row["ratio"] is None or row["figure"] in _SAME_FOR_BOTH else f"{row['ratio']:.1f}",
            )
            for row in rows
        ],
    )


def _measured(value: float | None, figure: str) -> str:
    if value is None:
        return ""
    if figure == "bytes":
        return f"{value / 1e6:,.1f} MB"
    if figure == "records":
        return f"{value:,.0f}"
    return f"{value:.2f} s" if value >= 1 else f"{1000 * value:.1f} ms"


def cold_server(rows: Sequence[Row]) -> str:
    """First runs on cold servers."""
    return _table(
        (
            "event",
            "partitions",
            "kframe",
            "server's compiler",
            "requests alone",
            "server's compiler",
            "kframe in times of them",
            "its bytes alone",
        ),
        [
            (
                row["event"],
                f"{row['partitions']:,}",
                *(_seconds(row[key]) for key in ("kframe", "compiler", "raw", "raw_compiler")),
                _times(row["times_raw"]),
                _seconds(row["sending"]),
            )
            for row in rows
        ],
    )


def _seconds(values: Sequence[float]) -> str:
    return ", ".join(f"{value:.2f} s" for value in values)


def repeated(events: Sequence[Row]) -> str:
    """The least ratio beside Kafka's classes in every run."""
    return _table(
        ("what", "partitions", "times, least of each run"),
        [
            (event["bench"], f"{event['partitions']:,}", ", ".join(f"{ratio:.1f}" for ratio in event["least"]))
            for event in events
        ],
    )


def fleet_stages(stages: Sequence[Row]) -> str:
    """Stages of a fleet beside the engine, by master."""
    by_stage = {stage["stage"]: {row["master"]: row for row in stage["masters"]} for stage in stages}
    masters = list(dict.fromkeys(master for rows in by_stage.values() for master in rows))
    rows = []
    for stage in stages:
        own = by_stage[stage["stage"]]
        cells = (f"{min(own[m]['spark']):.1f} s ({own[m]['times']:.2f})" if m in own else "-" for m in masters)
        rows.append((stage["stage"], f"{min(stage['engine']):.1f} s", *cells))
    starts = {master: min(row["start"]) for own in by_stage.values() for master, row in own.items()}
    last = ("session start", "", *(f"{starts[master]:.1f} s" for master in masters))
    return _table(("stage", "engine", *masters), [*rows, last])


def own_work(series: Sequence[Row]) -> str:
    """Cost against size."""
    rows = []
    for row in series:
        first, last = row["points"][0], row["points"][-1]
        name = (
            row["series"]
            if row["along"] == "hosted" or row["series"] != "broker-failure"
            else (f"{row['series']}, {first['hosted']:,} hosted")
        )
        sizes = [f"{milliseconds(point['seconds'])} ms at {point[row['along']]:,}" for point in (first, last)]
        by = {"hosted": "hosted by the broker", "partitions": "in the cluster"}[row["along"]]
        rows.append((name, by, *sizes, f"{row['exponent']:.2f}"))
    return _table(("what", "partitions", "least", "most", "exponent"), rows)


def requests(rows: Sequence[Row]) -> str:
    """Events in clusters of more and more partitions."""
    sizes = rows[0]["partitions"]
    return _table(
        ("milliseconds at", *(f"{size:,}" for size in sizes), "exponent"),
        [(row["bench"], *map(milliseconds, row["seconds"]), f"{row['exponent']:.2f}") for row in rows],
    )


def builds(rows: Sequence[Row]) -> str:
    """Two builds beside each other."""
    return _table(
        ("what", "earlier", "now", "times", "peak, earlier", "peak, now"),
        [
            (
                row["row"],
                *(f"{milliseconds(row['seconds'][name])} ms" for name in ("earlier", "now")),
                spread(row["ratios"]),
                *(f"{row['peak_bytes'][name] / 1e6:.0f} MB" for name in ("earlier", "now")),
            )
            for row in rows
        ],
    )


def floors(rows: Sequence[Row]) -> str:
    """What the machine alone needs for rows."""
    return _table(
        ("what", "kframe", "floor", "times", "bytes", "requests"),
        [
            (
                row["what"],
                f"{milliseconds(row['kframe'])} ms",
                f"{milliseconds(row['floor'])} ms",
                f"{row['kframe'] / row['floor']:.1f}",
                f"{row['made_bytes'] / 1e6:,.0f} MB" if "made_bytes" in row else "",
                f"{row['requests']:,}" if "requests" in row else "",
            )
            for row in rows
        ],
    )


def roofline(figures: Row) -> str:
    """The kernels beyond their limits, and why. The plot has all of them."""
    slow = [row for row in figures["kernels"] if row["times"] > TIMES_MAX]
    rows = [
        (
            f"`{row['kernel']}`",
            row["rows"],
            f"{row['bytes'] / row['row_count']:.0f}",
            f"{row['seconds'] * 1e9 / row['row_count']:.1f}",
            nanoseconds(row, "cached_seconds"),
            nanoseconds(row, "all_cores_seconds"),
            f"{row['bytes'] / row['seconds'] / 1e9:.1f}",
            f"{row['limit']}, {row['limit_rate'] / 1e9:.1f}",
            f"{row['times']:.1f}",
        )
        for row in slow
    ]
    notes = "".join(f"- `{row['kernel']}`, {row['rows']}: {why(row)}\n" for row in slow)
    count = f"{len(slow)} of {len(figures['kernels'])} measurements are beyond {TIMES_MAX:g} times the limit"
    size = f"{figures['partitions']:,} partitions, {figures['brokers']:,} brokers; {count}.\n\n"
    headings = ("kernel", "rows", "bytes a row", "ns a row", "in cache", "all cores", "GB/s", "limit, GB/s", "times")
    return f"{size}{_table(headings, rows)}\n{notes}" if slow else size


def processes(results: Sequence[Row]) -> str:
    """Whole commands."""
    return _table(
        ("command", "partitions", "processor", "elapsed", "peak memory"),
        [
            (
                row["command"],
                f"{row['partitions']:,}" if row["partitions"] else "",
                f"{row['processor']:.3f} s",
                f"{row['elapsed']:.3f} s",
                f"{row['peak_bytes'] / 1e6:.0f} MB",
            )
            for row in results
        ],
    )


def suite(results: Sequence[Row]) -> str:
    """Every bench at every size that it was run at, and the phases of an event at one of about a million partitions."""
    by_bench = {(result["bench"], result["partitions"], result["brokers"]): result for result in results}
    sizes = sorted({(partitions, brokers) for _, partitions, brokers in by_bench})
    middle = min(sizes, key=_distance)
    names = [f"{partitions:,} / {brokers:,}" for partitions, brokers in sizes]
    of_middle = names[sizes.index(middle)]
    rows = [
        (
            name,
            *(_median(by_bench.get((name, *size)), "ready") for size in sizes),
            *(_median(by_bench.get((name, *middle)), phase) for phase in ("decide", "encode")),
        )
        for name in dict.fromkeys(name for name, *_ in by_bench)
    ]
    known = sum(result.get("answer_known", False) for result in results)
    table = _table(("ready, ms", *names, f"deciding, {of_middle}", f"encoding, {of_middle}"), rows)
    return f"Partitions / brokers.\n\n{table}\n{known} of these {len(results)} were held to a known answer.\n"


def _median(result: Row | None, phase: str) -> str:
    return "" if result is None or phase not in result["seconds"] else milliseconds(result["seconds"][phase]["median"])


def _distance(size: tuple[int, int]) -> tuple[float, float]:
    """How far a size is from a million partitions over a hundred brokers."""
    return abs(math.log10(size[0] / 1_000_000)), abs(math.log10(size[1] / 100))


TABLES: Final[Mapping[str, Block]] = {
    "targets": targets,
    "classes": _of("classes", classes),
    "live": _of("live", live),
    "live-kraft": _of("live_kraft", live_kraft),
    "live-kraft-largest": _of("live_kraft_largest", live_kraft),
    "cold-server": _of("cold_server", cold_server),
    "repeated": _of("repeated", repeated),
    "fleet-stages": _of("fleet_stages", fleet_stages),
    "own-work": _of("own_work", own_work),
    "requests": _of("requests", requests),
    "builds": _of("builds", builds),
    "floors": _of("floors", floors),
    "roofline": _of("roofline", roofline),
    "processes": _of("processes", processes),
    "suite": _of("suite", suite),
}
