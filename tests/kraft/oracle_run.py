"""Compares the KRaft rules with Kafka's controller classes on random cases.

    python -m tests.kraft.oracle_run --events 1000000 --independent 16 --seed 1 --out result.json

Needs Java 17 or newer and Maven. Exits with 1 if a decision differs.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Final

from tests.kraft.oracle.generate import make_case
from tests.kraft.oracle.process import oracle_command
from tests.kraft.oracle_cases import compare_case

#: Cases on one line of the oracle's input. The oracle decides a line while kframe decides the previous one.
BATCH: Final = 32
#: Most differences that are reported in full.
REPORTED: Final = 20


@dataclass(slots=True)
class Report:
    """The result of a run. ``excluded`` counts the faults and defects of Kafka that were not compared."""

    cases: int = 0
    events: int = 0
    compared: int = 0
    by_type: Counter[str] = field(default_factory=Counter)
    excluded: Counter[str] = field(default_factory=Counter)
    differences: list[str] = field(default_factory=list)

    def add(self, case: dict[str, Any], expected: dict[str, Any]) -> None:
        """Compare one case."""
        self.cases += 1
        self.events += len(case["events"])
        comparison = compare_case(case, expected)
        self.differences += comparison.differences
        for index, event in enumerate(case["events"][: len(expected["results"])]):
            reason = comparison.excluded.get(index)
            if reason is None:
                self.by_type[event["type"]] += 1
                self.compared += 1
                continue
            self.excluded[f"{event['type']}: {reason}"] += 1
            if not case.get("independent"):
                break


@contextmanager
def java_oracle() -> Iterator[subprocess.Popen[str]]:
    """The process of Kafka's classes."""
    with subprocess.Popen(oracle_command(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def compare(events: int, seed: int, independent: int) -> Report:
    """Compare random cases until ``events`` events were decided or REPORTED decisions differ.

    With ``independent`` each case has so many events on one state; else one to five events in sequence, with the state
    that results.
    """
    rng, report = random.Random(seed), Report()
    with java_oracle() as process:
        assert process.stdin is not None
        assert process.stdout is not None
        pending = _send(process.stdin, rng, seed, 0, independent)
        while report.events < events and len(report.differences) < REPORTED:
            results = json.loads(process.stdout.readline())
            batch, pending = pending, _send(process.stdin, rng, seed, report.cases + BATCH, independent)
            for case, expected in zip(batch, results, strict=True):
                report.add(case, expected)
        process.stdin.close()
        process.stdout.readline()
    return report


def _send(stream: IO[str], rng: random.Random, seed: int, first: int, independent: int) -> list[dict[str, Any]]:
    batch = [make_case(rng, f"s{seed}-{first + index}", independent) for index in range(BATCH)]
    stream.write(json.dumps(batch, separators=(",", ":")) + "\n")
    stream.flush()
    return batch


def main() -> int:
    """Run the comparison of the command line; return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--independent", type=int, default=0, help="events on each state; 0: events in sequence")
    parser.add_argument("--out", type=Path, help="file for the result, as JSON")
    arguments = parser.parse_args()
    report = compare(arguments.events, arguments.seed, arguments.independent)
    result = {
        "command": " ".join(["python -m tests.kraft.oracle_run", *sys.argv[1:]]),
        "kafka": "4.4.0",
        "cases": report.cases,
        "events": report.events,
        "compared": report.compared,
        "by_type": dict(report.by_type),
        "left_out": dict(report.excluded),
        "differences": report.differences,
    }
    text = json.dumps(result, indent=1) + "\n"
    if arguments.out is not None:
        arguments.out.write_text(text)
    print(text)
    return 1 if report.differences else 0


if __name__ == "__main__":
    sys.exit(main())
