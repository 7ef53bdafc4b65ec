"""The evidence page and the plot of a soak test, written from its record."""

from __future__ import annotations

import importlib
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from verification.support.evidence import facts_lines
from verification.support.slopes import Slope, slope_of

#: The share of the run before the first block of the fits.
WARM_UP: Final = 1 / 6
BLOCK_S: Final = 60.0
_COLOUR, _LINE, _QUIET = "#2f6f8f", "#b0413e", "#e4e8ea"
_RULE: Final = """\
Sizes are sampled every 5 s. The first sixth of the run is the warm-up. Of the rest, the means of each minute are
fitted by a line (least squares). A size is *flat* if the 95 % interval of the slope (± 2 standard errors) does not lie
above the limit: 1 % of the first mean an hour for memory, 1 an hour for threads and for descriptors. A fit with fewer
than five means, or with an interval of more than five limits on each side, is *undecided* and fails. This rule was
stated before the run."""


class Size(NamedTuple):
    """A measured size: its column in the samples, its unit, and the limit of its slope."""

    title: str
    column: int
    scale: float
    unit: str
    share: float
    """Limit of the slope an hour, as a share of the first mean."""
    absolute: float
    """Limit of the slope an hour."""

    def slope(self, record: Mapping[str, Any]) -> Slope:
        """The slope in a record."""
        samples = record["samples"]
        return slope_of(
            [sample[0] for sample in samples],
            [sample[self.column] * self.scale for sample in samples],
            WARM_UP * record["seconds"],
            BLOCK_S,
        )

    def limit(self, slope: Slope) -> float:
        """The limit of its slope an hour."""
        return self.share * slope.start + self.absolute


SIZES: Final = (
    Size("resident memory", 1, 1 / 1024, " MiB", 0.01, 0.0),
    Size("threads", 2, 1.0, "", 0.0, 1.0),
    Size("descriptors", 3, 1.0, "", 0.0, 1.0),
)


def violations(record: Mapping[str, Any]) -> list[str]:
    """The violations of a record, and sizes that are not flat."""
    outcomes = {size.title: (slope := size.slope(record)).outcome(size.limit(slope)) for size in SIZES}
    return [*record["violations"], *(f"{title}: {outcome}" for title, outcome in outcomes.items() if outcome != "flat")]


def page(record: Mapping[str, Any]) -> str:
    """The page in Markdown."""
    return "\n".join([*_introduction(record), *_sizes(record), *_changes(record), *_warnings(record)]) + "\n"


def _introduction(record: Mapping[str, Any]) -> list[str]:
    return [
        "# Soak test of a live controller",
        "",
        f"Three Kafka 3.9.1 brokers and a ZooKeeper 3.8.4 server ran for {record['seconds'] / 60:.0f} minutes under",
        "one `kframe controller run` in its own process. A client sent four admin requests a second at most. Meanwhile",
        "brokers were stopped, killed and frozen, one at a time, with 10 s between two faults. An idempotent producer",
        "with `acks=all` sent 200 records a second to a topic of six partitions with `min.insync.replicas=2`. The",
        "metrics page was read every 5 s.",
        "",
        f"- Violations: {len(violations(record))}.",
        *(f"  - `{violation}`" for violation in violations(record)),
        f"- Acknowledged records: {record['acknowledged']:,}. A consumer compared each with its offset and order.",
        f"- Created and deleted topics: {record['topics']:,}, each with a new name. All were deleted at the end.",
        f"- Controller elections during the run: {record['elections']}.",
        *facts_lines(record),
        "",
    ]


def _sizes(record: Mapping[str, Any]) -> list[str]:
    lines = [
        "## Sizes of the process",
        "",
        _RULE,
        "",
        "| size | first minute | last minute | slope an hour | limit | result |",
        "|---|---|---|---|---|---|",
    ]
    for size in SIZES:
        slope = size.slope(record)
        limit = size.limit(slope)
        lines.append(
            f"| {size.title} | {slope.start:.1f}{size.unit} | {slope.end:.1f}{size.unit} |"
            f" {slope.per_hour:+.2f} ± {slope.error:.2f}{size.unit} | {limit:.2f}{size.unit} | {slope.outcome(limit)} |"
        )
    return [*lines, "", "![Sizes of the process over time](../plots/soak.svg)", ""]


def _changes(record: Mapping[str, Any]) -> list[str]:
    outcomes: defaultdict[str, list[str]] = defaultdict(list)
    counts: defaultdict[str, int] = defaultdict(int)
    for name, outcome, count in record["operations"]:
        counts[name] += count
        outcomes[name].append(f"{outcome} {count:,}")
    lines = ["## Changes", "", "| change | count | responses |", "|---|---|---|"]
    lines += [f"| {name} | {counts[name]:,} | {', '.join(outcomes[name])} |" for name in sorted(counts)]
    return [*lines, *(f"| broker {name} | {count} | |" for name, count in sorted(record["faults"].items())), ""]


def _warnings(record: Mapping[str, Any]) -> list[str]:
    lines = [
        "## Warnings and errors",
        "",
        f"The logs of kframe have {record['log_lines']:,} lines. Each warning and error belongs to an entry of the",
        "[runbook](../reference/runbook.md); a test compares them.",
        "",
        "| level | entry | lines |",
        "|---|---|---|",
    ]
    return [*lines, *(f"| {level} | `{entry}` | {count:,} |" for level, entry, count, _ in record["warnings"])]


def draw(record: Mapping[str, Any], path: Path) -> None:
    """A panel for each size: samples and the fitted line."""
    pyplot: Any = importlib.import_module("matplotlib.figure")
    figure = pyplot.Figure(figsize=(8, 5), layout="constrained")
    minutes = [sample[0] / 60 for sample in record["samples"]]
    for axes, size in zip(figure.subplots(len(SIZES), 1, sharex=True), SIZES, strict=True):
        slope = size.slope(record)
        begin, end = WARM_UP * record["seconds"] / 60, record["seconds"] / 60
        middle = (slope.start + slope.end) / 2
        rise = slope.per_hour * (end - begin) / 120
        axes.plot(minutes, [sample[size.column] * size.scale for sample in record["samples"]], color=_COLOUR, lw=0.8)
        axes.plot([begin, end], [middle - rise, middle + rise], color=_LINE, lw=1.2)
        axes.set_title(f"{size.title}{',' * bool(size.unit)}{size.unit}", fontsize=9, loc="left")
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(axis="y", color=_QUIET, linewidth=0.7)
        axes.set_ylim(bottom=0)
        axes.tick_params(labelsize=8)
    figure.axes[-1].set_xlabel("minutes", fontsize=9)
    figure.savefig(path, metadata={"Date": None})
