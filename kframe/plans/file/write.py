"""Write a plan as Kafka's tools read it, with a stamp or without, and read the stamp."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Final

import msgspec
import numpy as np

from kframe.errors import SnapshotError
from kframe.model.events import TopicPartition
from kframe.model.plan import Plan
from kframe.plans.file.read import Stamp
from kframe.snapshot.decode import decode
from kframe.snapshot.files import InputFile, read_document

#: The field of the stamp in a plan's document, which Kafka's tools ignore.
STAMP: Final = "kframe"
#: Partitions of a part of a document.
_LINES: Final = 1 << 14


class _Stamped(msgspec.Struct):
    kframe: Stamp | None = None


_STAMPED: Final = msgspec.json.Decoder(_Stamped)


def read_stamp(path: InputFile) -> Stamp | None:
    """The stamp of a plan's file, None if it has none. Raises SnapshotError for a malformed stamp."""
    document = read_document(path)
    if not document.lstrip().startswith(b"{"):
        return None  # what --generate prints
    return decode(_STAMPED, document, str(path)).kframe


def plan_document(plan: Plan, stamp: Stamp | None = None) -> str:
    """A plan as Kafka's tools read it, a partition a line; observers as Confluent's tools read them."""
    return "".join(plan_lines(plan, stamp))


def plan_lines(plan: Plan, stamp: Stamp | None = None) -> Iterator[str]:
    """The document of a plan in parts, so that a plan of a million partitions is never in memory as text."""
    targets = plan.targets
    yield '{"version":1,"partitions":[\n'
    names = [json.dumps(name) for name in targets.names]
    for start in range(0, len(targets), _LINES):
        part = targets.take(np.arange(start, min(start + _LINES, len(targets))))
        values, offsets = part.replicas.values.tolist(), part.replicas.offsets.tolist()
        rows = zip(part.topic.tolist(), part.partition.tolist(), offsets, offsets[1:], strict=False)
        suffixes = _suffixes(plan, start, len(part))
        lines = (
            f'{{"topic": {names[topic]}, "partition": {partition}, "replicas": {values[begin:end]}{suffix}}}'
            for (topic, partition, begin, end), suffix in zip(rows, suffixes, strict=True)
        )
        yield (",\n" if start else "") + ",\n".join(lines)
    stamp_field = "" if stamp is None else f',"{STAMP}":{json.dumps(msgspec.structs.asdict(stamp))}'
    yield f"\n]{stamp_field}}}\n"


def _suffixes(plan: Plan, start: int, count: int) -> list[str]:
    """The members ``observers`` and ``log_dirs`` of each of ``count`` entries, empty for those without."""
    suffixes = [""] * count
    if plan.observers is None and plan.log_dirs is None:
        return suffixes
    for index, position in enumerate(range(start, start + count)):
        if plan.observers is not None and plan.observers.counts[position]:
            suffixes[index] += f', "observers": {plan.observers[position].tolist()}'
        if plan.log_dirs is not None and plan.log_dirs[position]:
            suffixes[index] += f', "log_dirs": {json.dumps(plan.log_dirs[position])}'
    return suffixes


def plan_of(assignments: dict[TopicPartition, tuple[int, ...]], name: str) -> Plan:
    """A small plan."""
    if not assignments:
        raise SnapshotError(name, "no partition", "at least one")
    return Plan.of(list(assignments.items()), name)
