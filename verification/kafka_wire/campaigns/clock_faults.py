"""Faults of clocks: the system clock of some machines jumps by an hour, and back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Final

from kframe.testing.waiting import until
from verification.kafka_wire.campaigns.fault_cluster import (
    BROKERS,
    CLIENT,
    FAULT_S,
    INSTANCES,
    SERVERS,
    Fault,
    FaultRun,
)
from verification.zookeeper.clocks import Clocks

TEXT: Final = """\
The system clock (CLOCK_REALTIME) of the named machines jumps by an hour, and back at the end of the fault. A preloaded
library (`clock.c`) moves it in running processes. During the fault the leader of partition 0 is killed and restarted,
so the controller writes and logs with the moved clock. `what it did` compares the last lines of logs with the clock of
the test."""
_HOUR_S: Final = 3_600
#: The layout of times in logs of kframe and of Kafka.
_STAMP: Final = len("[2026-01-01 00:00:00,000]")
_TARGETS: Final = {
    "active instance": (INSTANCES[1000],),
    "all ZooKeeper servers": SERVERS,
    "all machines": (*SERVERS, *BROKERS, *INSTANCES.values(), CLIENT),
}


def faults(clocks: Clocks) -> list[Fault]:
    """A jump forward and a jump back of each target."""
    return [
        _jump(clocks, f"{target} 1 h {'ahead' if hours > 0 else 'behind'}", names, hours * _HOUR_S)
        for target, names in _TARGETS.items()
        for hours in (1, -1)
    ]


def _jump(clocks: Clocks, name: str, machines: tuple[str, ...], seconds: int) -> Fault:
    @contextmanager
    def inject(run: FaultRun) -> Iterator[None]:
        try:
            for machine in machines:
                clocks.move(machine, seconds)
            until(lambda: False, FAULT_S)
            run.bounce_leader()
            run.effect = f"kframe logs at {_hours_moved(run.active.log)}, broker 1 at {_hours_moved(_broker_log(run))}"
            yield
        finally:
            for machine in machines:
                clocks.move(machine, 0)

    return Fault(name, inject)


def _broker_log(run: FaultRun) -> str:
    return run.cluster.fixture.cluster.brokers[1].log("server")


def _hours_moved(log: str) -> str:
    """By how many hours the last time in a log differs from the clock of the test."""
    stamp = next(line[1 : _STAMP - 1] for line in reversed(log.splitlines()) if line.startswith("[2"))
    moved_s = datetime.strptime(stamp, "%Y-%m-%d %H:%M:%S,%f").timestamp() - datetime.now().timestamp()
    return f"{round(moved_s / _HOUR_S):+d} h"
