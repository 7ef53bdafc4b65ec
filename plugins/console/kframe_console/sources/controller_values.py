"""The metrics of a controller as values of the live page, by the names of ``docs/reference/metrics.md``."""

from __future__ import annotations

import re
from typing import Final, Literal, TypeAlias

from msgspec import Struct

from kframe.plugin.server import TIMERS
from kframe_console.sources.controllers import ControllerReading

_STATS: Final = "kafka_controller_controllerstats_"
_EVENTS: Final = "kafka_controller_controllereventmanager_"
_CHANNELS: Final = "kafka_controller_controllerchannelmanager_"
_GAUGES: Final = "kafka_controller_kafkacontroller_"
_SHADOW: Final = "kframe_shadow_"
_TOTAL: Final = "_total"
#: Kafka's names of timers by their exported names, without the unit.
_EVENT_NAMES: Final = {f"{_STATS}{timer.lower()}": timer.removesuffix("RateAndTimeMs") for timer in TIMERS.values()} | {
    f"{_EVENTS}eventqueueprocessingtimems": "all events",
    f"{_EVENTS}eventqueuetimems": "wait in the queue",
}
_ELECTIONS: Final = {
    "unclean": f"{_STATS}uncleanleaderelections_total",
    "from_elr": f"{_STATS}electionfromeligibleleaderreplicas_total",
}
_QUEUE: Final = re.compile(rf'{_CHANNELS}queuesize\{{broker_id="(\d+)"\}}')
_QUEUE_TIMES: Final = f"{_CHANNELS}requestrateandqueuetimems"
_QUANTILES: Final = ("0.50", "0.95", "0.99")
_NO_EPOCH: Final = -1

Role: TypeAlias = Literal["active", "standby", "shadow", "unreachable"]


class EventLatency(Struct):
    """The latency of a kind of events: quantiles of the last 1,024 in milliseconds, and the count of all."""

    event: str
    count: int
    p50_ms: float
    p95_ms: float
    p99_ms: float


class BrokerQueueContent(Struct):
    """The queue of requests to a broker: how many wait, and how long the latest have waited, in milliseconds."""

    broker_id: int
    waiting: int
    p95_ms: float


class ControllerContent(Struct):
    """A controller. Null is unknown.

    ``gauges`` have Kafka's names in lower case, ``elections`` counts of unclean elections and of those from the ELR,
    ``shadow`` the counts of a shadow that compares decisions.
    """

    name: str
    role: Role
    controller_id: int | None
    controller_epoch: int | None
    events_waiting: int | None
    problems: list[str]
    gauges: dict[str, float]
    elections: dict[str, int]
    shadow: dict[str, int]
    latencies: list[EventLatency]
    queues: list[BrokerQueueContent]


def controller_content(reading: ControllerReading) -> ControllerContent:
    """The values of a reading of a controller."""
    details, metrics = reading.details, reading.metrics
    waiting, epoch = metrics.get(f"{_EVENTS}eventqueuesize"), details.get("controller_epoch")
    return ControllerContent(
        name=reading.name,
        role=_role(reading),
        controller_id=details.get("controller_id"),
        controller_epoch=None if epoch == _NO_EPOCH else epoch,
        events_waiting=None if waiting is None else int(waiting),
        problems=list(reading.problems),
        gauges={
            name.removeprefix(_GAUGES): value
            for name, value in metrics.items()
            if name.startswith(_GAUGES) and "{" not in name
        },
        elections={name: int(metrics[key]) for name, key in _ELECTIONS.items() if key in metrics},
        shadow={
            name.removeprefix(_SHADOW).removesuffix(_TOTAL): int(count)
            for name, count in metrics.items()
            if name.startswith(_SHADOW)
        },
        latencies=[
            EventLatency(
                event, int(count), *(metrics.get(f'{key}{{quantile="{quantile}"}}', 0.0) for quantile in _QUANTILES)
            )
            for key, event in _EVENT_NAMES.items()
            if (count := metrics.get(f"{key}_count", 0))
        ],
        queues=[
            BrokerQueueContent(
                int(match[1]),
                int(waiting),
                metrics.get(f'{_QUEUE_TIMES}{{broker_id="{match[1]}",quantile="0.95"}}', 0.0),
            )
            for name, waiting in metrics.items()
            if (match := _QUEUE.fullmatch(name))
        ],
    )


def _role(reading: ControllerReading) -> Role:
    if not reading.is_reachable:
        return "unreachable"
    if any(name.startswith(_SHADOW) for name in reading.metrics):
        return "shadow"
    return "active" if reading.details.get("active") is True else "standby"
