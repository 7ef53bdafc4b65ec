"""The parts of a bench: a fixture that is made once, and runs on it. Each run times the same work."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeAlias

from kframe.bench.controller import TimedController
from kframe.bench.digests import digest_of_cluster
from kframe.core.context import Context
from kframe.model.cluster import ClusterState
from kframe.model.elections import LeaderSelector
from kframe.model.ids import ElectionKind

Action: TypeAlias = Callable[[], Any]
"""The timed work, after all preparations."""
_CLEAR_REFS: Final = Path("/proc/self/clear_refs")
_STATUS: Final = Path("/proc/self/status")
#: The value that makes Linux reset the peak resident set size (``proc_pid_clear_refs(5)``).
_RESET_PEAK: Final = "5"


@dataclass(frozen=True, slots=True)
class Fixture:
    """The initial state of all runs of a bench. No run changes ``content``, whose type depends on the bench."""

    partitions: int
    brokers: int
    content: Any


@dataclass(frozen=True, slots=True)
class Measurement:
    """The result of one run. ``seconds`` by phase are those of all its events; ``ready`` is always among them.

    ``counts`` of an event include ``resident_bytes`` where the system reports it: the peak resident memory during the
    event, less the in-memory store and the bytes of the largest batch.

    ``digest`` identifies the timed work, in every run. ``answer`` does so byte by byte: the decisions, the final
    columns and all encoded bytes. It is computed only when the run was started with ``with_answer``, else empty.
    """

    seconds: Mapping[str, float]
    counts: Mapping[str, float]
    digest: str
    answer: str


@dataclass(frozen=True, slots=True)
class EventWorkload:
    """An event handled by a controller.

    ``cluster`` makes the stored state for a number of partitions and brokers. ``prepare`` brings the controller to the
    event and returns it. ``check`` verifies the result. A run times ``events`` equal events, because a single one may
    be too short.
    """

    cluster: Callable[[int, int], ClusterState]
    prepare: Callable[[TimedController, int], Action]
    check: Callable[[TimedController, int], None]
    events: int = 1
    selectors: Mapping[ElectionKind, LeaderSelector] = field(default_factory=dict)

    def fixture(self, partitions: int, brokers: int) -> Fixture:
        """Make the initial state of all runs."""
        return Fixture(partitions, brokers, self.cluster(partitions, brokers))

    def new_run(self, fixture: Fixture, with_answer: bool) -> EventRun:
        """Prepare a run up to its timed work."""
        return EventRun(self, fixture, with_answer)


class EventRun:
    """One controller, from its start to the end of the timed event."""

    def __init__(self, workload: EventWorkload, fixture: Fixture, with_answer: bool) -> None:
        self._workload, self._partitions, self._with_answer = workload, fixture.partitions, with_answer
        self._controller = TimedController(fixture.content, workload.selectors)
        self._action = workload.prepare(self._controller, fixture.partitions)
        self._controller.transport.reset_digests(with_answer)
        # What a real store would hold: the fixture itself, and the in-memory store's copy of it.
        self._store_bytes = 2 * fixture.content.partitions.nbytes
        self._peak_bytes: int | None = None

    def run(self) -> None:
        """Do the timed work."""
        _reset_peak()
        with self._controller.watch.event():
            self._action()
        self._peak_bytes = _peak_bytes()

    def finish(self) -> Measurement:
        """Check the result once and release it. Raises AssertionError if the work was not done correctly."""
        controller, phases = self._controller, self._controller.watch.phases
        del self._controller, self._action  # A caller that keeps this run keeps no cluster.
        self._workload.check(controller, self._partitions)
        names = ("decide", "choose", "store", "encode", "ready")
        transport = controller.transport
        answer = digest_of_cluster(controller.cluster, transport.bytes_digest.hexdigest()) if self._with_answer else ""
        counts = {name: getattr(phases, name) for name in ("requests", "sent_bytes", "made_bytes")}
        counts["state_bytes_per_partition"] = state_bytes(controller.context) / len(controller.cluster)
        if self._peak_bytes is not None:
            counts["resident_bytes"] = self._peak_bytes - self._store_bytes - phases.batch_bytes
        seconds = {name: getattr(phases, f"{name}_seconds") for name in names}
        return Measurement(seconds, counts, transport.digest.hexdigest(), answer)


@dataclass(frozen=True, slots=True)
class FunctionWorkload:
    """A benchmark of one part of the engine.

    ``make`` makes the input, ``prepare`` returns the work, ``answer`` digests its result and ``counts`` counts it.
    """

    make: Callable[[int, int], Any]
    prepare: Callable[[Any], Action]
    answer: Callable[[Any], str]
    counts: Callable[[Any], Mapping[str, float]]
    events: int = 1

    def fixture(self, partitions: int, brokers: int) -> Fixture:
        """Make the input of all runs."""
        return Fixture(partitions, brokers, self.make(partitions, brokers))

    def new_run(self, fixture: Fixture, with_answer: bool) -> FunctionRun:
        """Prepare a run up to its timed work; every outcome has the answer."""
        return FunctionRun(self, fixture)


class FunctionRun:
    """One call of the work."""

    def __init__(self, workload: FunctionWorkload, fixture: Fixture) -> None:
        self._workload = workload
        self._action = workload.prepare(fixture.content)
        self._seconds = 0.0
        self._result: Any = None

    def run(self) -> None:
        """Do the timed work."""
        start = time.perf_counter()
        self._result = self._action()
        self._seconds = time.perf_counter() - start

    def finish(self) -> Measurement:
        """Return the digest of the result, and release it."""
        result = self._result
        del self._result, self._action
        answer = self._workload.answer(result)
        return Measurement({"ready": self._seconds}, self._workload.counts(result), answer, answer)


Workload: TypeAlias = EventWorkload | FunctionWorkload
Run: TypeAlias = EventRun | FunctionRun


def state_bytes(context: Context) -> int:
    """Bytes of a controller's state: partition columns, topic columns and names, replica index and gauges."""
    cluster, topics = context.cluster, context.cluster.topics
    columns = (
        topics.ids,
        topics.first_row,
        topics.block_length,
        topics.partition_count,
        topics.unclean,
        topics.min_insync,
        topics.deleting,
    )
    names = sum(len(name) + 49 for name in topics.names)
    indexes = context.replica_index.nbytes + context.gauges.nbytes
    return cluster.partitions.nbytes + sum(column.nbytes for column in columns) + names + indexes


def _reset_peak() -> None:
    """Reset the peak resident set size to the current one, where the system can."""
    with suppress(OSError):
        _CLEAR_REFS.write_text(_RESET_PEAK)


def _peak_bytes() -> int | None:
    """The peak resident set size since the reset. None where the system does not report it."""
    try:
        lines = _STATUS.read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:")), None)
