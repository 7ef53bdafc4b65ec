"""Write all plots, the tables of docs/explanation/performance.md and the figures in README.md from the records.

    python -m benchmarks.report.plots

Each plot shows the newest record in ``benchmarks/results`` that has its figures; without one it stays unchanged. The
background is white, lines are labelled at their ends, and axes are logarithmic.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from benchmarks.records import RESULTS, ROOT
from benchmarks.report import page, readme
from benchmarks.report.saved_records import saved_record
from kframe.pages.figures import new_figure
from kframe.whatif.files import write_figure

README: Final = ROOT / "README.md"
DOCS: Final = ROOT / "docs"
OURS, THEIRS, OTHER, QUIET = "#2f6f8f", "#b0413e", "#8a6d3b", "#6b757c"
RAW: Final = "#b9c3c9"
#: How many times shorter than the shortest bar an axis begins.
ROOM: Final = 20

Row = dict[str, Any]


def bars(panels: Sequence[Any], titles: Mapping[str, str], rows: Mapping[str, Sequence[Row]], unit: str) -> None:
    """A panel for each title. A row of it is a group of bars: name, colour and seconds under ``bars``."""
    for axes, (key, title) in zip(panels, titles.items(), strict=True):
        for position, row in enumerate(rows[key]):
            visible_bars = [bar for bar in row["bars"] if bar[2] is not None]
            for number, (label, colour, seconds) in enumerate(visible_bars):
                x = position + (number - (len(visible_bars) - 1) / 2) * 0.29
                axes.bar(x, seconds, 0.26, color=colour)
                axes.annotate(duration(seconds), (x, seconds), ha="center", va="bottom", fontsize=8)
                axes.annotate(
                    label,
                    (x, 0),
                    (0, 5),
                    xycoords=("data", "axes fraction"),
                    textcoords="offset points",
                    ha="center",
                    va="bottom",
                    rotation=90,
                    fontsize=8,
                    color="#222222" if colour == RAW else "white",
                )
        axes.set_title(title, fontsize=10)
        axes.set_yscale("log")
        axes.set_xticks(range(len(rows[key])), [f"{row['partitions']:,}\npartitions" for row in rows[key]])
        _bare(axes)
    heights = (bar[2] for group in rows.values() for row in group for bar in row["bars"])
    least = min((seconds for seconds in heights if seconds is not None), default=1.0)
    panels[0].set_ylim(bottom=least / ROOM)  # room for a name in the shortest bar
    panels[0].set_ylabel(unit)


def duration(seconds: float) -> str:
    """Two digits and a unit."""
    value, unit = next(
        ((seconds * scale, unit) for scale, unit in ((1.0, "s"), (1e3, "ms")) if seconds * scale >= 0.9995),
        (seconds * 1e6, "µs"),
    )
    return f"{value:.0f} {unit}" if value >= 9.95 or abs(value - round(value)) < 0.005 else f"{value:.1f} {unit}"


def _bare(axes: Any) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=8)
    axes.yaxis.set_major_formatter(lambda value, _: duration(value))
    axes.grid(axis="y", which="major", color="#e4e8ea", linewidth=0.7)
    axes.set_axisbelow(True)


def draw_live(rows: Sequence[Row], figure: Any) -> None:
    """Whole controllers on a real ZooKeeper (rows of ``benchmarks.live``)."""
    brokers = rows[0].get("brokers", 10)
    titles = {"failover": "a controller fails over", "broker-failure": f"one of {brokers} brokers fails"}
    grouped: dict[str, list[Row]] = {event: [] for event in titles}
    for row in rows:
        kafka = min(row["kafka"]) if row["kafka"] else None
        row_bars = [
            ("Kafka 3.9.1", THEIRS, kafka),
            ("kframe", OURS, max(row["kframe"])),
            ("requests", RAW, row["raw"]),
        ]
        grouped[row["event"]].append({"partitions": row["partitions"], "bars": row_bars})
    bars(figure.subplots(1, len(titles), sharey=True), titles, grouped, "elapsed, all bytes arrived")


CLASSES: Final = {
    "broker-failure": "one broker of a hundred fails",
    "controller-failover": "a controller takes over",
    "preferred-election": "all preferred leaders elected",
}


def draw_classes(rows: Sequence[Row], figure: Any) -> None:
    """Kafka's ZooKeeper controller classes in memory (rows of ``benchmarks.against_kafka``)."""
    grouped: dict[str, list[Row]] = {bench: [] for bench in CLASSES}
    for row in rows:
        if row["beside"] == "kafka" and row["bench"] in grouped:
            theirs, ours = row["peer"][row["collector"]], statistics.median(row["kframe"])
            row_bars = [("Kafka's classes", THEIRS, theirs), ("kframe", OURS, ours)]
            grouped[row["bench"]].append({"partitions": row["partitions"], "bars": row_bars})
    bars(figure.subplots(1, len(CLASSES), sharey=True), CLASSES, grouped, "elapsed, all bytes ready")


GROWTH: Final = {
    ("broker-failure", "hosted"): ("a broker fails, by what it hosts", OURS),
    ("broker-failure", "partitions"): ("a broker that hosts {hosted:,} fails,\nby partitions of the cluster", THEIRS),
    ("alter-partition", "partitions"): ("one AlterPartition,\nby partitions of the cluster", OTHER),
}


def draw_growth(series: Sequence[Row], figure: Any) -> None:
    """Cost against size (``benchmarks.limits.failure_cost``): what depends on the cluster, and what on the broker."""
    axes = figure.subplots()
    for row in series:
        label, colour = GROWTH[row["series"], row["along"]]
        sizes = [point[row["along"]] for point in row["points"]]
        seconds = [point["seconds"] * 1000 for point in row["points"]]
        axes.plot(sizes, seconds, marker="o", markersize=4, color=colour, linewidth=1.6)
        text = f"{label.format(**row['points'][-1])}\nexponent {row['exponent']:.2f}"
        axes.annotate(
            text, (sizes[-1], seconds[-1]), (8, 0), textcoords="offset points", color=colour, fontsize=8, va="center"
        )
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("partitions", fontsize=9)
    axes.set_ylabel("processor time of one event", fontsize=9)
    low, high = axes.get_xlim()
    axes.set_xlim(low, high * 30)
    _bare(axes)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.yaxis.set_major_formatter(lambda value, _: duration(value / 1000))


def draw_roofline(figures: Row, figure: Any) -> None:
    """How many times longer than its limit each kernel takes (``benchmarks.limits.roofline``)."""
    panels = figure.subplots(1, 2)
    for axes, rows in zip(panels, ("all", "one broker's"), strict=True):
        kernel_rows = sorted(
            (row for row in figures["kernels"] if row["rows"] == rows), key=lambda row: -float(row["times"])
        )
        colours = [THEIRS if row["times"] > 3 else OURS for row in kernel_rows]
        positions = range(len(kernel_rows))
        axes.barh(positions, [row["times"] for row in kernel_rows], color=colours, height=0.7)
        for position, row in enumerate(kernel_rows):
            axes.annotate(f" {row['times']:.1f} × {row['limit']}", (row["times"], position), va="center", fontsize=7)
        axes.set_yticks(positions, [row["kernel"] for row in kernel_rows], fontsize=7)
        axes.set_xscale("log")
        axes.set_xlim(0.3, max(10.0, *(row["times"] for row in kernel_rows)) * 3)
        axes.axvline(1, color=QUIET, linewidth=0.8)
        axes.axvline(3, color=QUIET, linewidth=0.8, linestyle=":")
        axes.set_xticks([0.5, 1, 3, 10], ["0.5", "1", "3", "10"])
        axes.set_xlabel("time, in times of its limit", fontsize=8)
        axes.set_title(
            f"{'all rows' if rows == 'all' else 'rows of one broker'}, {kernel_rows[0]['row_count']:,}", fontsize=9
        )
        axes.spines[["top", "right"]].set_visible(False)
        axes.minorticks_off()
        axes.invert_yaxis()


#: Each picture: what kind of figures it shows, how, and its size in inches.
PICTURES: Final[Mapping[str, tuple[str, Callable[[Any, Any], None], tuple[float, float]]]] = {
    "live": ("live", draw_live, (9.0, 3.6)),
    "classes": ("classes", draw_classes, (9.0, 3.6)),
    "growth": ("own_work", draw_growth, (7.5, 4.0)),
    "roofline": ("roofline", draw_roofline, (9.0, 6.0)),
}


def draw(docs: Path, results: Path = RESULTS, ending: str = ".svg") -> list[Path]:
    """Draw all pictures that there are figures for; return their files."""
    drawn = []
    for name, (kind, paint, size) in PICTURES.items():
        figures = saved_record(kind, results)
        if figures is not None:
            figure = new_figure(*size)
            paint(figures.rows, figure)
            drawn.append(docs / "plots" / f"{name}{ending}")
            write_figure(figure, drawn[-1])
    return drawn


def main(words: Sequence[str] | None = None) -> int:
    """Draw the pictures, write the tables and sentences."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.report.plots", description=__doc__)
    parser.add_argument("--docs", type=Path, default=DOCS, help="where explanation/performance.md and plots/ are")
    parser.add_argument("--readme", type=Path, default=README, help="whose sentences tell figures")
    parser.add_argument("--results", type=Path, default=RESULTS, help="where the records are")
    chosen = parser.parse_args(words)
    for path in draw(chosen.docs, chosen.results):
        print(path)
    for path, blocks in (
        (chosen.docs / "explanation" / "performance.md", page.TABLES),
        (chosen.readme, readme.SENTENCES),
    ):
        path.write_text(page.filled(path.read_text(encoding="utf-8"), chosen.results, blocks), encoding="utf-8")
        print(path)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
