"""Evaluates a batch of cases: exceptions that escape, and peak memory."""

from __future__ import annotations

import re
import resource
import sys
import traceback
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

from verification.fuzz.cases import Batch, Cases, DecoderTarget, Outcome

#: The last characters of a traceback that are reported.
_OUTPUT_CHARACTERS: Final = 1500


class WorkItem(NamedTuple):
    """``cases`` cases of a target from number ``first``."""

    target: int
    first: int
    cases: int


@dataclass(slots=True)
class EvaluatedBatch:
    """A batch from case ``first``. ``outcomes`` is None before the evaluation."""

    first: int
    count: int
    outcomes: list[Outcome] | None = None
    escapes: list[tuple[int, str]] = field(default_factory=list)
    """Number of each case that was neither decoded nor refused, and the traceback."""


def evaluated(target: DecoderTarget, seed: int, first: int, count: int) -> Iterator[EvaluatedBatch]:
    """Evaluate cases. Each batch is yielded twice, before and after its evaluation."""
    for number, batch in Cases(target, seed).batches(first, count):
        result = EvaluatedBatch(number, len(batch))
        yield result
        result.outcomes = _outcomes(target, batch, number, result.escapes)
        yield result


def _outcomes(target: DecoderTarget, batch: Batch, first: int, escapes: list[tuple[int, str]]) -> list[Outcome]:
    """The outcomes of a batch. Escaping cases are located by bisection and left out."""
    try:
        return target.evaluate(batch)
    except Exception as problem:  # A target may raise any exception; each one is a finding.
        if len(batch) == 1:
            trace = "".join(traceback.format_exception(problem, limit=-4, chain=False))
            escapes.append((first, f"{batch.kinds[0]}, {batch[0][:200]!r}:\n{trace[-_OUTPUT_CHARACTERS:]}"))
            return []
    middle = len(batch) // 2
    return [
        *_outcomes(target, batch.part(0, middle), first, escapes),
        *_outcomes(target, batch.part(middle, len(batch)), first + middle, escapes),
    ]


def memory_bytes() -> int:
    """The current memory of this process; its peak on systems that do not report that."""
    return _status("VmRSS")


def peak_bytes() -> int:
    """The peak memory of this process."""
    return _status("VmHWM")


def _status(name: str) -> int:
    status = Path("/proc/self/status")
    if status.exists():
        result = re.search(rf"^{name}:\s*(\d+) kB$", status.read_text(), re.MULTILINE)
        if result is not None:
            return int(result[1]) * 1024
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
