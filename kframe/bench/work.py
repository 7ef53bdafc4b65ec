"""What a bench is: a world made once, and trials on it, each one timed run of the same work."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

from kframe.bench import memory
from kframe.bench.answers import digest_of_cluster
from kframe.bench.life import Life
from kframe.core.context import Context
from kframe.model.cluster import ClusterState
from kframe.model.elections import LeaderSelector
from kframe.model.ids import ElectionKind

Timed: TypeAlias = Callable[[], Any]
"""The work, once all is ready for it."""


@dataclass(frozen=True, slots=True)
class World:
    """What all trials of a bench begin with: ``made`` is the bench's own, and no trial changes it."""

    partitions: int
    brokers: int
    made: Any


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one trial. ``seconds`` by phase are those of all its events; ``ready`` is always among them.

    Among the ``counts`` of an event is, where the system tells, ``resident_bytes``: the most memory that the process
    had during the event, without what stands in for storage and without the bytes of the largest batch.

    ``digest`` pins the work that was timed, in every trial. ``answer`` does so byte by byte: what was decided, the
    columns at the end and all bytes that were made; it is worked out where the trial was asked for it, else empty.
    """

    seconds: Mapping[str, float]
    counts: Mapping[str, float]
    digest: str
    answer: str


class Trial(Protocol):
    """One run."""

    def run(self) -> None:
        """Do the work; this is what is timed."""

    def finish(self) -> Outcome:
        """Look at what was done, once, and let go of it. Raises AssertionError if it is not what should have been."""


class Work(Protocol):
    """One bench."""

    @property
    def events(self) -> int:
        """How many equal events a trial times; a single one may be too short."""

    def world(self, partitions: int, brokers: int) -> World:
        """Make what all trials begin with."""

    def trial(self, world: World, whole: bool) -> Trial:
        """Go up to the work; with ``whole`` the outcome has the answer."""


@dataclass(frozen=True, slots=True)
class EventWork:
    """An event that befalls a controller. ``cluster`` makes what storage holds of so many partitions and brokers;
    ``prepare`` goes up to the event and returns it; ``check`` says afterwards whether it did what it should."""

    cluster: Callable[[int, int], ClusterState]
    prepare: Callable[[Life, int], Timed]
    check: Callable[[Life, int], None]
    events: int = 1
    selectors: Mapping[ElectionKind, LeaderSelector] = field(default_factory=dict)

    def world(self, partitions: int, brokers: int) -> World:
        """See Work."""
        return World(partitions, brokers, self.cluster(partitions, brokers))

    def trial(self, world: World, whole: bool) -> Trial:
        """See Work."""
        return _EventTrial(self, world, whole)


class _EventTrial:
    """One controller's life up to the end of the timed event."""

    def __init__(self, work: EventWork, world: World, whole: bool) -> None:
        self._work, self._partitions, self._whole = work, world.partitions, whole
        self._life = Life(world.made, work.selectors)
        self._timed = work.prepare(self._life, world.partitions)
        self._life.transport.count_anew(whole)
        # What storage would hold: the world itself, and the stand-in's copy of it.
        self._stand_in_bytes = 2 * world.made.partitions.nbytes
        self._peak_bytes: int | None = None

    def run(self) -> None:
        memory.forget_peak()
        with self._life.watch.event():
            self._timed()
        self._peak_bytes = memory.peak_bytes()

    def finish(self) -> Outcome:
        life, phases = self._life, self._life.watch.phases
        del self._life, self._timed  # whoever still holds this trial holds no cluster
        self._work.check(life, self._partitions)
        names = ("decide", "choose", "store", "encode", "ready")
        sent = life.transport.digest.hexdigest()
        answer = digest_of_cluster(life.cluster, life.transport.bytes_digest.hexdigest()) if self._whole else ""
        counts = {name: getattr(phases, name) for name in ("requests", "sent_bytes", "made_bytes")}
        counts["state_bytes_per_partition"] = state_bytes(life.context) / len(life.cluster)
        if self._peak_bytes is not None:
            counts["resident_bytes"] = self._peak_bytes - self._stand_in_bytes - phases.batch_bytes
        return Outcome({name: getattr(phases, f"{name}_seconds") for name in names}, counts, sent, answer)


@dataclass(frozen=True, slots=True)
class PieceWork:
    """A part of the engine by itself. ``make`` makes what it works on, ``prepare`` returns the work, ``answer`` is a
    digest of what the work returned, and ``counts`` counts it."""

    make: Callable[[int, int], Any]
    prepare: Callable[[Any], Timed]
    answer: Callable[[Any], str]
    counts: Callable[[Any], Mapping[str, float]]
    events: int = 1

    def world(self, partitions: int, brokers: int) -> World:
        """See Work."""
        return World(partitions, brokers, self.make(partitions, brokers))

    def trial(self, world: World, whole: bool) -> Trial:
        """See Work."""
        return _PieceTrial(self, world)


class _PieceTrial:
    """One run of a part; it is always looked at whole."""

    def __init__(self, work: PieceWork, world: World) -> None:
        self._work = work
        self._timed = work.prepare(world.made)
        self._seconds = 0.0
        self._made: Any = None

    def run(self) -> None:
        begun = time.perf_counter()
        self._made = self._timed()
        self._seconds = time.perf_counter() - begun

    def finish(self) -> Outcome:
        made = self._made
        del self._made, self._timed
        answer = self._work.answer(made)
        return Outcome({"ready": self._seconds}, self._work.counts(made), answer, answer)


def state_bytes(context: Context) -> int:
    """Bytes that a controller holds for a cluster: partition columns, topic columns and names, and what it keeps
    beside them (who hosts what, what each row counts for)."""
    cluster, topics = context.cluster, context.cluster.topics
    columns = (topics.ids, topics.first_row, topics.block_length, topics.partition_count, topics.unclean,
               topics.min_insync, topics.deleting)  # fmt: skip
    names = sum(len(name) + 49 for name in topics.names)
    kept = context.replica_index.nbytes + context.gauges.nbytes
    return cluster.partitions.nbytes + sum(column.nbytes for column in columns) + names + kept
