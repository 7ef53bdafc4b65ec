"""A watched restart announces each batch once it may start, and ends when all brokers are back in their ISRs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from kframe.plans.restarts.plan import plan_restarts
from kframe.plans.restarts.report import report_document
from kframe.plans.restarts.request import RestartRequest
from kframe.plans.restarts.watch import RestartWatch, WatchStep
from kframe.snapshot import Snapshot
from tests.plans.restarts.clusters import cluster

BROKERS = {1: "a", 2: "b", 3: "c"}
REPLICAS = ([1, 2, 3], [2, 3, 1])


def state(lagging: Sequence[int] = (), dead: Sequence[int] = (), *, kraft: bool = False) -> Snapshot:
    """Two partitions with three replicas and ``min.insync.replicas`` 2. Dead brokers lag as well."""
    out = {*lagging, *dead}
    partitions = [
        ([broker for broker in replicas if broker not in out], [broker for broker in replicas if broker in out], 2)
        for replicas in REPLICAS
    ]
    return cluster(partitions, BROKERS, dead, kraft=kraft)


def steps(*states: Snapshot, first: int = 0, kraft: bool = False) -> list[str]:
    """What each state leads to."""
    request = RestartRequest()
    document = report_document(plan_restarts(state(kraft=kraft), request))
    watch = RestartWatch(document.batches, request, first=first)
    return [text_of(watch.observe(each)) for each in states]


def text_of(step: WatchStep) -> str:
    if step.may_start is not None:
        return f"start {step.may_start.brokers}"
    return "ended" if step.ended else "; ".join(step.waiting)


@pytest.mark.parametrize("kraft", [False, True], ids=["zookeeper", "kraft"])
def test_whole_restart(kraft: bool) -> None:
    spares_none = "t000-0, in sync on {} with min.insync.replicas 2, spares 0"
    scenario = {
        "healthy": (state(kraft=kraft), "start [1]"),
        "nothing stops": (state(kraft=kraft), "broker 1 has not stopped yet"),
        "1 stops": (state(dead=[1], kraft=kraft), "broker 1 is not up yet"),
        "1 is up, and lags": (state(lagging=[1], kraft=kraft), spares_none.format("2, 3")),
        "1 is in sync": (state(kraft=kraft), "start [2]"),
        "2 left the ISRs and is up": (state(lagging=[2], kraft=kraft), spares_none.format("1, 3")),
        "2 is in sync": (state(kraft=kraft), "start [3]"),
        "3 stops": (state(dead=[3], kraft=kraft), "broker 3 is not up yet"),
        "3 is up, and lags": (state(lagging=[3], kraft=kraft), "broker 3 is not back in all ISRs"),
        "3 is in sync": (state(kraft=kraft), "ended"),
    }
    assert steps(*(each for each, _ in scenario.values()), kraft=kraft) == [text for _, text in scenario.values()]


def test_restart_between_two_captures_shows_by_the_broker_epoch() -> None:
    brokers = tuple(replace(facts, broker_epoch=9 if facts.broker_id == 1 else 1) for facts in state().brokers)
    assert steps(state(), replace(state(), brokers=brokers)) == ["start [1]", "start [2]"]


def test_later_batch_requires_that_earlier_brokers_are_up() -> None:
    assert steps(state(dead=[1]), state(), first=1) == ["broker 1 is not up yet", "start [2]"]
