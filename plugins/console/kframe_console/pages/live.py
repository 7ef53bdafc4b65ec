"""The live page: running controllers, their queues and latencies, recent events, and the buttons of a demo."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from kframe.plugin import ParameterError
from kframe_console.jobs.computations import Overloaded
from kframe_console.pages.page import ActionPage, ContentPage, PageContext, page
from kframe_console.sources.controller_values import ControllerContent
from kframe_console.sources.demo.operations import BROKER_BUTTONS, CLUSTER_BUTTONS, DemoOperation, operations_of
from kframe_console.sources.demo.source import DemoSource
from kframe_console.sources.monitor import ClusterEvent, Sample
from kframe_console.sources.reading_events import broker_state


class LiveParameters(Struct, forbid_unknown_fields=True):
    """The curves begin after sample number ``after``; ``broker`` is that of the operations of a demo."""

    after: Annotated[int, Meta(ge=0)] = 0
    broker: int | None = None


class Curves(Struct):
    """Samples of the active controller as columns. ``times`` are seconds since 1970; null is unknown.

    ``p95_ms`` has for each event the 95th percentile of its latest 1,024.
    """

    times: list[float]
    events_waiting: list[int | None]
    requests_waiting: list[int]
    p95_ms: dict[str, list[float | None]]


class DemoBroker(Struct):
    """A broker of the demo, as the cluster knows it."""

    broker_id: int
    state: str
    rack: str | None
    leaders: int | None
    log_dirs: int | None


class DemoContent(Struct):
    """The demo: its brokers, its operations, the one in progress, and why it has refused the last one."""

    brokers: list[DemoBroker]
    operations: list[str]
    performing: str | None
    waiting: int
    refusal: str | None


class LiveContent(Struct):
    """What runs now. ``sample`` is the number of the last sample, at ``time``; 0 if nothing is sampled.

    ``events`` are the newest first.
    """

    sample: int
    time: str
    controllers: list[ControllerContent]
    events: list[ClusterEvent]
    curves: Curves
    demo: DemoContent | None


class DemoReply(Struct):
    """Confirms that an operation is queued."""

    result: str


@page(
    ContentPage,
    "live",
    "/live",
    in_navigation=True,
    extras=lambda _context, _parameters, _content: (BROKER_BUTTONS, CLUSTER_BUTTONS),
)
def live_page(context: PageContext, parameters: LiveParameters) -> LiveContent:
    """The running controllers: event queue, latency by event, queues of brokers, stand-bys, and recent events."""
    state = context.monitor.state
    return LiveContent(
        sample=state.samples[-1].number if state.samples else 0,
        time=state.time.isoformat(timespec="milliseconds"),
        controllers=list(state.controllers),
        events=list(state.events),
        curves=_curves([sample for sample in state.samples if sample.number > parameters.after]),
        demo=_demo(context, context.source) if isinstance(context.source, DemoSource) else None,
    )


def _curves(samples: list[Sample]) -> Curves:
    names = dict.fromkeys(name for sample in samples for name in sample.p95_ms)
    return Curves(
        [sample.time_s for sample in samples],
        [sample.events_waiting for sample in samples],
        [sample.requests_waiting for sample in samples],
        {name: [sample.p95_ms.get(name) for sample in samples] for name in names},
    )


def _demo(context: PageContext, source: DemoSource) -> DemoContent:
    key = (context.reading.number, "demo")
    brokers = context.cache.get(key, lambda: _brokers(context), lambda brokers: 200 * len(brokers))
    performing = source.performing
    return DemoContent(
        brokers,
        operations_of(source.cluster.mode),
        None if performing is None else performing.text(),
        source.waiting,
        source.refusal,
    )


def _brokers(context: PageContext) -> list[DemoBroker]:
    loads, brokers = context.reading.loads, context.reading.snapshot.brokers
    leaders = [None] * len(brokers) if loads.leaders is None else loads.leaders.tolist()
    return [
        DemoBroker(
            facts.broker_id,
            broker_state(facts),
            facts.rack,
            count,
            None if facts.registration is None else len(facts.registration.directories),
        )
        for facts, count in zip(brokers, leaders, strict=True)
    ]


@page(ActionPage, "demo", "/demo")
def demo_page(context: PageContext, operation: DemoOperation) -> DemoReply:
    """Perform an operation on the cluster of kframe console --demo.

    Raises ParameterError, and Overloaded.
    """
    if not isinstance(context.source, DemoSource):
        raise ParameterError("operation", operation.text(), "none: the source is not that of kframe console --demo")
    if not context.source.request(operation):
        raise Overloaded("too many operations of the demo wait: try later")
    return DemoReply(f"{operation.text()}: requested")
