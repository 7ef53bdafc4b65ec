"""Samples the controllers and the readings of a console: their newest values, curves, and events."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from msgspec import Struct

from kframe.plugin import KframeError
from kframe_console.sources.controller_values import ControllerContent, controller_content
from kframe_console.sources.controllers import Controllers
from kframe_console.sources.reading import ClusterSource, Reading
from kframe_console.sources.reading_events import EventKind, events_between
from kframe_console.sources.refresh import Refresher

#: Seconds between two samples.
PERIOD_S: Final = 0.5
#: Samples and events that are retained: ten minutes.
SAMPLES_MAX: Final = 1_200
EVENTS_MAX: Final = 200
#: Gauges whose changes are events, for sources whose readings do not show them.
_GAUGES: Final[Mapping[str, tuple[EventKind, str]]] = {
    "activebrokercount": ("fencing", "active brokers"),
    "offlinepartitionscount": ("offline", "partitions without a leader"),
}


class ClusterEvent(Struct):
    """An event of the cluster. It happened before ``time``, and after the sample before."""

    number: int
    time: str
    kind: EventKind
    text: str


@dataclass(frozen=True, slots=True)
class Sample:
    """The values of all curves at one time, in seconds since 1970. ``p95_ms`` is by the name of the event."""

    number: int
    time_s: float
    events_waiting: int | None
    requests_waiting: int
    p95_ms: dict[str, float]


@dataclass(frozen=True, slots=True)
class LiveState:
    """The newest values."""

    time: datetime
    controllers: tuple[ControllerContent, ...] = ()
    samples: tuple[Sample, ...] = ()
    events: tuple[ClusterEvent, ...] = ()
    """The newest first."""


class ClusterMonitor:
    """A thread that samples ``controllers``, and the readings of ``source`` if it is live."""

    def __init__(self, source: ClusterSource, controllers: Controllers | None = None) -> None:
        self.is_watching: Final = controllers is not None or source.is_live
        self._source = source
        self._controllers = controllers
        self._samples: deque[Sample] = deque(maxlen=SAMPLES_MAX)
        self._events: deque[ClusterEvent] = deque(maxlen=EVENTS_MAX)
        self._event_count = self._sample_count = 0
        self._reading: Reading | None = None
        self._state = LiveState(datetime.now(UTC))
        # The first sample is taken at once: later samples compare the cluster with it.
        self._refresher = Refresher(self.sample, PERIOD_S, first_pause_s=0.0)

    @property
    def state(self) -> LiveState:
        """The values of the last sample. Thread-safe."""
        return self._state

    def start(self) -> None:
        """Begin to sample, if there is anything to sample."""
        if self.is_watching:
            self._refresher.start()

    def close(self) -> None:
        """Stop sampling."""
        self._refresher.close()

    def sample(self) -> None:
        """Take a sample."""
        now = datetime.now(UTC)
        readings = [] if self._controllers is None else self._controllers.read_controllers()
        controllers = tuple(controller_content(reading) for reading in readings)
        before = self._state.controllers
        events = [*self._cluster_events(), *_controller_events(before, controllers)]
        if not self._source.is_live:
            events += _gauge_events(before, controllers)
        for kind, text in events:
            self._event_count += 1
            self._events.appendleft(ClusterEvent(self._event_count, now.isoformat(timespec="milliseconds"), kind, text))
        self._sample_count += 1
        self._samples.append(_sample(self._sample_count, now.timestamp(), controllers))
        self._state = LiveState(now, controllers, tuple(self._samples), tuple(self._events))

    def _cluster_events(self) -> Iterator[tuple[EventKind, str]]:
        if not self._source.is_live:
            return
        try:
            reading = self._source.reading("")
        except KframeError:
            return  # Pages show why.
        before, self._reading = self._reading, reading
        if before is None or before.number == reading.number or before.snapshot is reading.snapshot:
            return
        old, new = before.snapshot, reading.snapshot
        yield from events_between(old, new)
        if self._controllers is None and old.controller_epoch != new.controller_epoch:
            yield "controller", f"controller {new.controller_id} is active in epoch {new.controller_epoch}"


def _sample(number: int, time_s: float, controllers: tuple[ControllerContent, ...]) -> Sample:
    active = next((controller for controller in controllers if controller.role == "active"), None)
    if active is None:
        return Sample(number, time_s, None, 0, {})
    latencies = {latency.event: latency.p95_ms for latency in active.latencies}
    return Sample(number, time_s, active.events_waiting, sum(queue.waiting for queue in active.queues), latencies)


def _gauge_events(
    before: tuple[ControllerContent, ...], after: tuple[ControllerContent, ...]
) -> Iterator[tuple[EventKind, str]]:
    """Changed gauges of the active controllers, for a cluster that is not read."""
    old_gauges = {controller.name: controller.gauges for controller in before if controller.role == "active"}
    for controller in after:
        old = old_gauges.get(controller.name) if controller.role == "active" else None
        for name, (kind, label) in _GAUGES.items():
            if old is not None and name in old and controller.gauges.get(name, old[name]) != old[name]:
                yield kind, f"{label}: {old[name]:,.0f}, now {controller.gauges[name]:,.0f}"


def _controller_events(
    before: tuple[ControllerContent, ...], after: tuple[ControllerContent, ...]
) -> Iterator[tuple[EventKind, str]]:
    """Roles and epochs that changed, elections that may have lost records, and new differences of shadows."""
    old_controllers = {controller.name: controller for controller in before}
    for controller in after:
        old = old_controllers.get(controller.name)
        if old is None:
            continue
        if (old.role, old.controller_epoch) != (controller.role, controller.controller_epoch):
            epoch = "" if controller.controller_epoch is None else f" in epoch {controller.controller_epoch}"
            role = "a stand-by" if controller.role == "standby" else controller.role
            yield "controller", f"{controller.name} is {role}{epoch}"
        for name, label in (("unclean", "unclean"), ("from_elr", "from the ELR")):
            count = controller.elections.get(name, 0) - old.elections.get(name, 0)
            if count > 0:
                yield "election", f"{count} of the elections {label}"
        added = controller.shadow.get("disagreements", 0) - old.shadow.get("disagreements", 0)
        if added > 0:
            yield "controller", f"{controller.name} has found {added} differences"
