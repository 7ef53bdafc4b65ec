"""Measure the console with many partitions in Chromium: ``python -m benchmarks.console --partitions 1000000``.

``kframe console`` runs as a process of its own on a generated cluster. Measured are the first paint of pages; random
actions from the input to the paint; the same while the cluster is read again and again; the memory of the server beside
that of a process that only reads the cluster; and sessions over HTTP beside the browser. Needs Chromium, which root
installs, and Playwright, which is installed into ``build/tools``.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import numpy as np

from benchmarks.console import browsing, page, servers, sessions
from benchmarks.records import LATEST, IncrementalRecord, command_of
from verification.console.browser import chromium
from verification.console.running import running_console

#: Pages whose first paint is measured.
PATHS: Final = ("/", "/brokers", "/topics", "/partitions", "/partitions?sort=-leader_epoch&health=under_replicated")
_SUMMARIES: Final = {"p50": 50, "p95": 95, "p99": 99, "max": 100}

Figures = dict[str, Any]


def summary(milliseconds: Sequence[float]) -> Figures:
    """The number of measurements and their percentiles."""
    values = {name: round(float(np.percentile(milliseconds, share)), 1) for name, share in _SUMMARIES.items()}
    return {"count": len(milliseconds), **values}


def action_figures(actions: Sequence[browsing.Row]) -> Figures:
    """The percentiles of all actions and of each kind, in ms, the worst actions, and what blocked the browser.

    Actions that changed nothing visible are only counted.
    """
    rows = [row for row in actions if row["ms"] is not None]
    kinds = sorted({row["kind"] for row in rows})
    return {
        "unchanged": len(actions) - len(rows),
        "all": summary([row["ms"] for row in rows]),
        **{kind: summary([row["ms"] for row in rows if row["kind"] == kind]) for kind in kinds},
        "input_delay": summary([row["input_delay_ms"] for row in actions]),
        "long_tasks": summary([row["long_task_ms"] for row in actions]),
        "slowest": sorted(rows, key=lambda row: -row["ms"])[:10],
    }


def paint_figures(rows: Sequence[browsing.Row]) -> list[Figures]:
    """The largest and the median first contentful paint of each page, in ms, and when all was painted."""
    names = ("first_contentful_paint_ms", "all_painted_ms")
    figures = []
    for path in dict.fromkeys(row["path"] for row in rows):
        own = [row for row in rows if row["path"] == path]
        figure: Figures = {"path": path, "runs": len(own)}
        for name in names:
            figure[name] = round(statistics.median(row[name] for row in own), 1)
            figure[f"{name}_max"] = round(max(row[name] for row in own), 1)
        figures.append(figure)
    return figures


@contextmanager
def http_sessions(port: int, count: int, seconds: float, into: Figures) -> Iterator[None]:
    """Sessions over HTTP in a process, for so long. Their figures are written to ``into`` at the end."""
    command = [sys.executable, "-m", "benchmarks.console.sessions", str(port), str(count), str(seconds)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield
        finally:
            output, _ = process.communicate()
    requests = json.loads(output)
    refused = sum(status != 200 for _, status in requests)
    into |= {"sessions": count, "reading_s": sessions.READING_S, "refused": refused}
    into |= {"requests": summary([milliseconds for milliseconds, _ in requests])}


class Measurements:
    """The figures so far."""

    def __init__(self, chosen: argparse.Namespace) -> None:
        self._chosen = chosen
        self.figures: Figures = {"partitions": chosen.partitions, "brokers": chosen.brokers, "seed": chosen.seed}

    def as_record(self) -> Figures:
        """The figures, and the goals beside them."""
        return {**self.figures, "targets": [*targets(self.figures)]}

    def run(self, record: IncrementalRecord, folder: Path) -> None:
        """Measure all parts."""
        chosen, figures = self._chosen, self.figures
        clusters = servers.write_clusters(folder, chosen.partitions, chosen.brokers, chosen.seed)
        with chromium() as browser:
            with running_console(clusters.first) as console:
                with record.part("first paint"):
                    rows = list(browsing.first_paints(browser, console.port, PATHS, chosen.runs))
                    figures["first_paint"] = paint_figures(rows)
                with record.part("actions"):
                    figures["actions"] = self._actions(browser, console.port, chosen.actions)
                with record.part("memory"):
                    assert console.pid is not None
                    own = servers.memory_of(console.pid)
                    figures["server_memory"] = servers.memory_ratios(own, servers.engine_memory(clusters.first))
                    engine = servers.engine_memory(clusters.first, servers.COMMAND_ALLOCATOR)
                    figures["same_allocator_memory"] = servers.memory_ratios(own, engine)
                with record.part("sessions"):
                    figures["sessions"] = self._with_sessions(browser, console.port)
            with (
                record.part("refreshes"),
                running_console(*clusters.live_arguments, "--refresh", str(chosen.refresh)) as console,
            ):
                actions = self._actions(browser, console.port, chosen.actions // 2)
                figures["refreshes"] = {"every_s": chosen.refresh, **actions}

    def _actions(self, browser: Any, port: int, count: int) -> Figures:
        return action_figures(list(browsing.random_actions(browser, port, count, self._chosen.seed)))

    def _with_sessions(self, browser: Any, port: int) -> Figures:
        figures: Figures = {}
        with http_sessions(port, self._chosen.sessions, self._chosen.seconds, figures):
            actions = self._actions(browser, port, self._chosen.actions // 5)
        return {**figures, "actions": actions}


def targets(figures: Mapping[str, Any]) -> Iterator[tuple[str, float, float]]:
    """The goals whose figures are there: the name, the figure, and what it may be at most."""
    if paints := figures.get("first_paint"):
        yield (
            "first contentful paint of the slowest page, ms",
            max(row["first_contentful_paint_ms_max"] for row in paints),
            1_000,
        )
    if actions := figures.get("actions"):
        yield "actions: 95th percentile, ms", actions["all"]["p95"], 300
    if actions := figures.get("refreshes"):
        yield (
            "input delay while the cluster is read again and again, the longest, ms",
            actions["input_delay"]["max"],
            100,
        )
    for part, engine in (("server_memory", "the engine's in Python"), ("same_allocator_memory", page.SAME_ALLOCATOR)):
        if memory := figures.get(part):
            yield f"memory of the server in units of {engine}", memory["resident_ratio"], 1.3


def main(words: Sequence[str] | None = None) -> int:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.console", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--partitions", type=int, default=1_000_000)
    parser.add_argument("--brokers", type=int, default=100)
    parser.add_argument("--actions", type=int, default=500, help="of the random user; half as many during refreshes")
    parser.add_argument("--runs", type=int, default=5, help="first paints of each page")
    parser.add_argument("--sessions", type=int, default=50, help="over HTTP, beside the browser")
    parser.add_argument("--seconds", type=float, default=60, help="of the sessions")
    parser.add_argument("--refresh", type=float, default=5, help="seconds between two readings of the changing cluster")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=LATEST / "console.json")
    parser.add_argument("--page", type=Path, help="also write the record as Markdown")
    chosen = parser.parse_args(words)
    measurements = Measurements(chosen)
    command = command_of("benchmarks.console", words)
    record = IncrementalRecord(
        chosen.out, command, lambda: {**measurements.figures, "targets": [*targets(measurements.figures)]}
    )
    with tempfile.TemporaryDirectory() as folder:
        measurements.run(record, Path(folder))
    text = page.markdown(record.document)
    print(text)
    if chosen.page:
        chosen.page.write_text(text, encoding="utf-8")
    return record.end()


if __name__ == "__main__":
    raise SystemExit(main())
