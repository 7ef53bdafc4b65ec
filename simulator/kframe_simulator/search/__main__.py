"""``python -m kframe_simulator.search`` (``make search``): search ``configurations.py`` and print the coverage."""

from __future__ import annotations

import argparse
import gc
import os
import platform
import sys
from collections.abc import Sequence
from pathlib import Path

from kframe_simulator.search.configurations import CONFIGURATIONS, Configuration
from kframe_simulator.search.explore import SearchReport, replay, search, text
from kframe_simulator.search.state_space import StateSpace
from kframe_simulator.search.subject import quiet


def main(words: Sequence[str] | None = None) -> int:
    """Search, or replay a path. Returns 1 if an invariant is broken."""
    parser = argparse.ArgumentParser(prog="python -m kframe_simulator.search", description=__doc__)
    parser.add_argument(
        "--configuration", action="append", choices=CONFIGURATIONS, help="only this configuration; may be repeated"
    )
    parser.add_argument("--depth", type=int, help="steps from the root, in place of each space's own")
    parser.add_argument("--replay", type=Path, help="a file with a path as it was printed, to be played in the space")
    arguments = parser.parse_args(words)
    chosen = {name: CONFIGURATIONS[name] for name in arguments.configuration or CONFIGURATIONS}
    if arguments.replay is not None:
        return _replay(next(iter(chosen.values())), arguments.replay.read_text().splitlines())
    print(f"Python {platform.python_version()}, {platform.system()} {platform.machine()}, {os.cpu_count()} cores")
    print(
        "\n| state space | depth | states | steps | at rest | steps of the core | processor seconds |\n"
        + "|---" * 7
        + "|"
    )
    failed = [
        name for name, item in chosen.items() if _search(name, item, arguments.depth or item.depth).counterexample
    ]
    return 1 if failed else 0


def _search(name: str, searched: Configuration, depth: int) -> SearchReport:
    gc.disable()  # The search keeps millions of tuples, which contain no cycles.

    def note(level: int, states: int, transitions: int, seconds: float) -> None:
        print(f"{name}: depth {level}, {states:,} new states, {transitions:,} steps, {seconds:.0f} s", file=sys.stderr)

    report = search(StateSpace(searched.options), depth, note)
    gc.enable()
    print(
        f"| {name} | {report.depth} | {report.states:,} | {report.transitions:,} | {report.rested:,} "
        f"| {report.core_steps:,} | {report.seconds:.0f} |",
        flush=True,
    )
    if report.counterexample is not None:
        print(
            "\n".join([*report.counterexample.broken, "after", *(text(label) for label in report.counterexample.path)])
        )
    return report


def _replay(searched: Configuration, path: Sequence[str]) -> int:
    last = replay(StateSpace(searched.options), [line.strip() for line in path if line.strip()])
    broken = last.broken if last is not None else ()
    print("\n".join(broken) or "nothing is broken")
    return 1 if broken else 0


if __name__ == "__main__":
    with quiet():
        sys.exit(main())
