"""What is measured of one controller: start, memory, creations, a broker failure, and a restart."""

from __future__ import annotations

import shutil
import statistics
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from benchmarks.live_kraft import creations, floor
from benchmarks.live_kraft.controllers import SESSION_MS, SNAPSHOT, RunningController, Setup, stopping
from benchmarks.live_kraft.followers import Followers

_FAILING: Final = 0
#: Replicas of each partition: all of the failing broker change.
_FACTOR: Final = 3
_START_S: Final = 150.0
#: An event is over when no broker has received anything for so long.
_QUIET_S: Final = 4.0
_SINGLE: Final = 200
_PER_SECOND: Final = 200
_RATE_S: Final = 10
#: Topics and partitions of each, of the large creation.
_MANY: Final = 10, 1_000
_REST_S: Final = 20.0
#: Creations a second, and for how long, while observers fetch.
_OBSERVED_PER_SECOND: Final = 5
_OBSERVED_S: Final = 20


def run(kind: str, original: Path, folder: Path, setup: Setup) -> Iterator[dict[str, Any]]:
    """Measure a controller on a copy of a directory. Yields a row for each measurement."""
    shutil.copytree(original, folder / "data")
    controller = RunningController(kind, folder, setup.heap)
    with stopping(controller), followers_of(controller, folder, setup) as followers:
        yield {"what": "start", "seconds": _start(controller, followers)}
        followers.await_quiet(setup.brokers, _QUIET_S)
        yield from _creations(controller.port)
        yield _failure(controller, followers, folder, setup)
        controller.kill()
        yield {"what": "restart", "seconds": _start(controller, followers)}


def memory(kind: str, original: Path, folder: Path, setup: Setup) -> Iterator[dict[str, Any]]:
    """The resident memory of a controller that has loaded the cluster and serves its brokers."""
    shutil.copytree(original, folder / "data")
    controller = RunningController(kind, folder, setup.heap)
    with stopping(controller), followers_of(controller, folder, setup) as followers:
        _start(controller, followers)
        followers.await_quiet(setup.brokers, _QUIET_S)
        yield {"what": "resident memory", "bytes": controller.resident_bytes()}


def at_rest(kind: str, original: Path, folder: Path, setup: Setup) -> Iterator[dict[str, Any]]:
    """The processor time of a controller with many brokers and nothing to do."""
    shutil.copytree(original, folder / "data")
    controller = RunningController(kind, folder, setup.heap)
    controller.start()
    with stopping(controller), followers_of(controller, folder, setup) as followers:
        followers.await_quiet(setup.brokers, _QUIET_S)
        before, begun = controller.cpu_seconds(), time.monotonic()
        time.sleep(_REST_S)
        used = controller.cpu_seconds() - before
        yield {"what": "processor at rest", "cpu_seconds_per_minute": 60 * used / (time.monotonic() - begun)}


def observed(kind: str, original: Path, folder: Path, setup: Setup) -> Iterator[dict[str, Any]]:
    """Heartbeats and creations while observers fetch: at rest, and while a broker fails."""
    shutil.copytree(original, folder / "data")
    controller = RunningController(kind, folder, setup.heap)
    controller.start()
    with stopping(controller), followers_of(controller, folder, setup) as followers:
        for prefix, what in (("rest", "at rest"), ("failure", "during a broker failure")):
            followers.await_quiet(setup.brokers, _QUIET_S)
            followers.seen.took_ns.clear()
            if prefix == "failure":
                followers.stop(_FAILING)
            seconds = creations.at_rate(controller.port, _OBSERVED_PER_SECOND, _OBSERVED_S, prefix)
            beats = [took / 1e9 for took in tuple(followers.seen.took_ns)]
            rows = {"creation": seconds, "heartbeat": beats}
            for name, values in rows.items():
                figures = {**_percentiles(values), "longest_seconds": max(values)}
                yield {"what": f"{name} {what} with {setup.observers:,} observers", **figures}


def followers_of(controller: RunningController, folder: Path, setup: Setup) -> Followers:
    """The brokers of a controller, not entered."""
    replicas = setup.brokers, setup.observers
    return Followers(setup.program, folder, controller.port, *replicas, SNAPSHOT.offset, SNAPSHOT.epoch)


def _start(controller: RunningController, followers: Followers) -> float:
    """Seconds from the start of the process until the first heartbeat is accepted. Raises RuntimeError if none is."""
    count, begun = len(followers.seen.beats), time.monotonic()
    controller.start()
    while len(followers.seen.beats) == count:
        if not controller.is_running or time.monotonic() > begun + _START_S:
            raise RuntimeError(f"the controller accepts no heartbeat within {_START_S:.0f} s")
        time.sleep(0.001)
    return followers.seen.beats[count] / 1e9 - begun


def _creations(port: int) -> Iterator[dict[str, Any]]:
    yield {"what": "creation at rest", **_percentiles([*creations.one_by_one(port, _SINGLE)])}
    yield {"what": "creation at 200/s", **_percentiles(creations.at_rate(port, _PER_SECOND, _RATE_S))}
    yield {"what": "creation of 10,000 partitions", "seconds": creations.many(port, *_MANY)}


def _percentiles(seconds: Sequence[float]) -> dict[str, float]:
    cuts = statistics.quantiles(seconds, n=100, method="inclusive")
    return {"p50_seconds": cuts[49], "p99_seconds": cuts[98]}


def _failure(controller: RunningController, followers: Followers, folder: Path, setup: Setup) -> dict[str, Any]:
    """A broker fails: seconds from the end of its session."""
    end = followers.await_quiet(setup.brokers, _QUIET_S)
    cpu, size = controller.cpu_seconds(), controller.log_bytes()
    over_ns = followers.stop(_FAILING) + SESSION_MS * 1_000_000
    new_end = _await_end(followers, setup.brokers, end)
    least_changes = _FACTOR * setup.partitions // setup.brokers
    if new_end - end < least_changes:
        raise RuntimeError(f"{new_end - end:,} records of a broker failure, and then {_QUIET_S} s without any")
    seen = tuple(followers.seen.fetched)
    durable = min(each.at_ns for each in seen if each.high_watermark >= new_end)
    fetched = [
        min(each.at_ns for each in seen if each.broker == broker and each.offset >= new_end)
        for broker in range(setup.brokers)
    ]
    size = controller.log_bytes() - size
    least = floor.measure(folder, size, setup.brokers)
    return {
        "what": "broker failure",
        "records": new_end - end,
        "bytes": size,
        "seconds_to_durable": (durable - over_ns) / 1e9,
        "seconds_to_last_fetch": (max(fetched) - over_ns) / 1e9,
        "floor_to_durable": least.durable,
        "floor_to_last_fetch": least.durable + least.last_received,
        "cpu_seconds": controller.cpu_seconds() - cpu,
    }


def _await_end(followers: Followers, brokers: int, end: int) -> int:
    """The high watermark after the failure: it has moved, and then rests."""
    while True:
        high_watermark = followers.await_quiet(brokers, _QUIET_S)
        if high_watermark > end:
            return high_watermark
        time.sleep(0.2)
