"""Measure the processor time of plans in both modes: a plan, its stages and its page, and a rolling restart.

Writes a record.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

import numpy as np

from benchmarks.records import LATEST, IncrementalRecord, command_of, table
from kframe.plans.check.resolve import resolve_plan
from kframe.plans.check.rules import CheckedPlan
from kframe.plans.file.write import plan_document
from kframe.plans.generate import PlanProposal, PlanRequest, plan
from kframe.plans.generate.page import render_page
from kframe.plans.generate.review import PlanReview
from kframe.plans.restarts import RestartRequest, plan_restarts, report_document
from kframe.plans.stage.manifest import manifest_text
from kframe.plans.stage.request import StageRequest
from kframe.plans.stage.stages import stage_plan
from kframe.snapshot import Snapshot, generate

BROKERS, REMOVED, RACKS = 100, 10, 5
HEADINGS: Final = ("mode", "step", "CPU s", "bytes", "reassignments", "stages or batches")
_MIN_INSYNC: Final = {"min.insync.replicas": 2}
_Result = TypeVar("_Result")


def measure(partitions: int, runs: int) -> list[dict[str, Any]]:
    """A row for each step, with the least processor time of ``runs``."""
    snapshot = generate(partitions, BROKERS, 3, racks=RACKS, seed=1)
    weights = np.random.default_rng(1).lognormal(20, 1.5, partitions).astype(np.int64)
    request = PlanRequest(remove_brokers=tuple(range(REMOVED)), weights=weights)
    limits = StageRequest(moves_per_broker=max(partitions // 5_000, 1), weights=weights)
    proposal, seconds = _best(partial(plan, snapshot, request), runs)
    count = len(proposal.plan)
    rows = [_row("both", "plan generate", seconds, None, count)]
    modes: dict[str, Snapshot] = {"ZooKeeper": snapshot, "KRaft": snapshot.with_mode("kraft")}
    for mode, captured in modes.items():
        checked = resolve_plan(proposal.plan, captured)
        staged, seconds = _best(partial(stage_plan, checked, limits, _MIN_INSYNC), runs)
        size = len(manifest_text(staged.manifest))
        rows.append(_row(mode, "plan stage", seconds, size, count, len(staged.manifest.stages)))
        file = plan_document(proposal.plan, checked.stamp()).encode()
        page, seconds = _best(partial(_page, proposal, checked, file), runs)
        rows.append(_row(mode, "page", seconds, len(page.encode()), count))
        restarts, seconds = _best(partial(plan_restarts, captured, RestartRequest(), _MIN_INSYNC), runs)
        rows.append(_row(mode, "plan restarts", seconds, None, 0, len(restarts.batches)))
        _, seconds = _best(partial(report_document, restarts, _MIN_INSYNC), runs)
        rows.append(_row(mode, "report of plan restarts", seconds, None, 0, len(restarts.batches)))
    return rows


def _page(proposal: PlanProposal, checked: CheckedPlan, file: bytes) -> str:
    return render_page(PlanReview.of_proposal(proposal, checked), file)


def _best(work: Callable[[], _Result], runs: int) -> tuple[_Result, float]:
    """The result, and the least processor time of some runs in seconds."""
    seconds = []
    for _ in range(runs):
        begun = time.process_time()
        result = work()
        seconds.append(time.process_time() - begun)
    return result, min(seconds)


def _row(
    mode: str, step: str, seconds: float, size: int | None, count: int, stages: int | None = None
) -> dict[str, Any]:
    return {
        "mode": mode,
        "step": step,
        "cpu_seconds": round(seconds, 3),
        "bytes": size,
        "reassignments": count,
        "stages": stages,
    }


def main(words: Sequence[str] | None = None) -> int:
    """Measure, print, write. Returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.plans.stages", description=__doc__)
    parser.add_argument("--partitions", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--out", type=Path, default=LATEST / "stages.json", help="where the record goes")
    chosen = parser.parse_args(words)
    rows: list[dict[str, Any]] = []
    command = command_of("benchmarks.plans.stages", words)
    record = IncrementalRecord(chosen.out, command, lambda: {"partitions": chosen.partitions, "rows": rows})
    with record.part("stages"):
        rows += measure(chosen.partitions, chosen.runs)
    table(
        [HEADINGS, *(tuple(map(str, row.values())) for row in rows)],
        "CPU s: processor time, the least of all runs",
    )
    return record.end()


if __name__ == "__main__":
    raise SystemExit(main())
