"""A simulation at rest, and events for its invariants. Each test changes one fact of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

import numpy as np
import pytest

from kframe.core.state_machines import leader_election
from kframe.model.events import BrokersChanged
from kframe_simulator import Options, Simulation
from kframe_simulator.broker.log import Log
from kframe_simulator.broker.messages import Record, Stop, StopReplica, UpdateMetadata
from kframe_simulator.replication.control_requests import ControlRequest, Row
from kframe_simulator.simulation.controller_memory import digest
from kframe_simulator.simulation.observations import (
    EventCompleted,
    RequestQueued,
    RequestSent,
    StateWritten,
    TopicWritten,
)
from kframe_simulator.simulation.options import ProducerOptions, TopicOptions
from kframe_simulator.simulation.record_history import Promise, Value
from kframe_simulator.simulation.watch import Watch

KEY = ("t", 0)
#: Options of a simulation without faults, operators or drawn actions.
QUIET: Final = Options(
    seed=1,
    brokers=(1, 2, 3, 4),
    racks=0,
    controllers=2,
    topics=(TopicOptions("t", ((1, 2, 3), (2, 3, 1)), unclean=False, min_insync=1),),
    protocol="3.9",
    strict=False,
    rebalance=False,
    session_timeout_ms=3_000.0,
    request_timeout_ms=1_500.0,
    delay_ms=(0.3, 4.0),
    faults=(),
    actions=0,
    gap_ms=100.0,
    producers=(ProducerOptions(-1, idempotent=True),),
)
#: An invariant, and the function that breaks it in a simulation at rest. The function returns the observation.
ViolationCase: TypeAlias = tuple[Callable[[Watch, Any], str | None], Callable[[Simulation], Any]]


def state(simulation: Simulation, **changes: Any) -> StateWritten:
    """A controller's write after the stored state. The leader epoch is one higher unless ``changes`` has another."""
    before = simulation.ensemble.rows[KEY]
    defaults = {"leader_epoch": before.leader_epoch + 1, "partition_epoch": before.partition_epoch + 1}
    process = simulation.controllers[0]
    after = before._replace(**(defaults | changes))
    return StateWritten(KEY, before, after, process, process.loop.controller.cluster)


def request(simulation: Simulation, message: Any) -> ControlRequest:
    return ControlRequest(1, simulation.brokers[1].registration.broker_epoch, message, np.empty(0, np.int32))


def queued(simulation: Simulation, message: Any) -> RequestQueued:
    return RequestQueued(simulation.controllers[0], request(simulation, message))


def sent(simulation: Simulation, message: Any) -> RequestSent:
    return RequestSent(simulation.controllers[0], request(simulation, message))


def metadata(simulation: Simulation, controller_epoch: int = 1, **changes: Any) -> UpdateMetadata:
    defaults: dict[str, Any] = {
        "broker_epoch": simulation.brokers[1].registration.broker_epoch,
        "live_brokers": (1, 2, 3, 4),
    }
    return UpdateMetadata(1000, controller_epoch, **(defaults | changes))


def stop(simulation: Simulation, leader_epoch: int = 0) -> StopReplica:
    epoch = simulation.brokers[1].registration.broker_epoch
    return StopReplica(1000, 1, epoch, {KEY: Stop(leader_epoch, True)})


def topic(
    simulation: Simulation,
    before: dict[int, Row] | None = None,
    after: dict[int, Row] | None = None,
    topic_id: bytes | None = None,
) -> TopicWritten:
    now = simulation.ensemble.topic_partitions("t")
    known = simulation.ensemble.topic_ids["t"] if topic_id is None else topic_id
    chosen = (now if before is None else before, now if after is None else after)
    return TopicWritten("t", *chosen, known, simulation.controllers[0])


def assigned(simulation: Simulation, **changes: Any) -> TopicWritten:
    """A controller's write of another assignment of the partition."""
    now = simulation.ensemble.topic_partitions("t")
    return topic(simulation, after=now | {0: now[0]._replace(**changes)})


def ended(simulation: Simulation, event: Any = None, **changes: Any) -> EventCompleted:
    process = simulation.controllers[0]
    succeeded, columns = simulation.watch.observed.in_term(process), digest(process.loop.controller.cluster)
    return EventCompleted(process, event or BrokersChanged(), succeeded=succeeded, columns=columns, **changes)


def edit(simulation: Simulation, **changes: Any) -> Simulation:
    """Change a stored state directly. Returns the simulation."""
    simulation.ensemble.rows[KEY] = simulation.ensemble.rows[KEY]._replace(**changes)
    return simulation


def log(simulation: Simulation, broker_id: int) -> Log:
    return simulation.brokers[broker_id].model.disks.logs[KEY]


def write(
    simulation: Simulation, *broker_ids: int, number: int = 1, leader_epoch: int = 0, high_watermark: int = 0
) -> None:
    """Append a record to these brokers' logs."""
    for broker_id in broker_ids:
        log(simulation, broker_id).append(Record(leader_epoch, Value(0, number), 0, 0, number))
        log(simulation, broker_id).set_high_watermark(high_watermark)


def promise(simulation: Simulation, offset: int = 0) -> None:
    simulation.watch.record_history.promises[KEY].append(Promise(Value(0, 1), offset, 0))


def break_elections(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make elections store a leader epoch that is one too high (I8)."""
    plain = leader_election.elect

    def elect(context: Any, rows: Any, *arguments: Any) -> Any:
        context.cluster.partitions.leader_epoch[rows] += 1
        return (yield from plain(context, rows, *arguments))

    monkeypatch.setattr(leader_election, "elect", elect)
