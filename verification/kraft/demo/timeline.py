"""What the metadata log says about a topic: who led each partition when, and the steps of a failure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from kframe.pages.parts import TimelinePart, TimelineValue
from verification.zookeeper.commands import invoke

NO_LEADER: Final = -1


class Step(NamedTuple):
    """Something that happened, ``at`` a time."""

    at: datetime
    what: str


class Span(NamedTuple):
    """From ``start`` to ``end`` a partition had this leader and ISR. ``epoch`` is its leader epoch."""

    start: datetime
    end: datetime
    leader: int
    isr: tuple[int, ...]
    epoch: int


def log_records(directory: object, topic: str) -> list[dict[str, Any]]:
    """The records of the metadata log that are about a topic or its partitions."""
    shown = invoke("log", "show", directory, "--topics", topic, "-o", "jsonl")
    assert shown.returncode == 0, shown.stderr
    return [json.loads(line) for line in shown.stdout.splitlines()]


def spans(records: Iterable[dict[str, Any]], end: datetime) -> dict[str, list[Span]]:
    """The spans of each partition, up to ``end``."""
    partitions: dict[str, list[Span]] = {}
    for record in records:
        if record["type"] not in ("Partition", "PartitionChange"):
            continue
        at, fields = datetime.fromisoformat(record["time"]), record["fields"]
        known = partitions.setdefault(record["key"], [])
        if known:
            known[-1] = known[-1]._replace(end=at)
        last = known[-1] if known else Span(at, end, NO_LEADER, (), -1)
        leader = fields.get("leader", last.leader)
        epoch = last.epoch + ("leader" in fields)
        known.append(Span(at, end, leader, tuple(fields.get("isr", last.isr)), epoch))
    return partitions


def leaders_at(partitions: dict[str, list[Span]], at: datetime) -> list[dict[str, Any]]:
    """A row for each partition that exists at a time."""
    return [
        {"partition": name, "leader": span.leader, "isr": list(span.isr), "leader epoch": span.epoch}
        for name, known in partitions.items()
        for span in known
        if span.start <= at < span.end
    ]


def took_over(partitions: dict[str, list[Span]], killed: int, after: datetime) -> datetime | None:
    """When the last leadership of a broker ended that it had ``after`` its failure; None if it has led nothing."""
    ends = [span.end for known in partitions.values() for span in known if span.leader == killed and span.end > after]
    return max(ends, default=None)


def seconds(steps: Sequence[Step]) -> list[tuple[str, str]]:
    """Seconds since the first step, and what happened."""
    return [(f"{(step.at - steps[0].at).total_seconds():.1f}", step.what) for step in steps]


def timeline_part(partitions: dict[str, list[Span]], marks: Iterable[tuple[datetime, str]]) -> TimelinePart:
    """The picture of all spans, by partition."""
    rows = [
        (
            name,
            [
                TimelineValue(
                    span.start.timestamp(),
                    span.end.timestamp(),
                    "no leader" if span.leader == NO_LEADER else f"broker {span.leader} leads",
                    f"leader {span.leader}, ISR {list(span.isr)}, leader epoch {span.epoch}",
                )
                for span in known
            ],
        )
        for name, known in sorted(partitions.items())
    ]
    return TimelinePart("the leader of each partition", rows, [(at.timestamp(), what) for at, what in marks])
