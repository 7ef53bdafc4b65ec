"""Traces of scenarios that a running controller plays over loopback equal those of Apache Kafka 4.4's controller."""

from __future__ import annotations

from itertools import takewhile
from pathlib import Path
from typing import Any, Final

import pytest

from kframe.scenario.kraft.format import read_kraft_scenario
from tests.kraft.golden import SCENARIOS
from tests.kraft.test_golden_traces import TRACES, differences, read_trace
from verification.kraft.wire_scenarios.player import play
from verification.kraft.wire_scenarios.stalls import MachineStalled, check_sessions

#: The scenarios that ``make test`` plays, too, of three seconds at most.
SMOKE: Final = ("alter-partition", "boot-elr", "fence-by-request-elr")
#: The steps, from 1 on, at which kframe departs from Kafka on purpose (``docs/reference/departures-from-kafka.md``).
DEPARTURES: Final = {
    # UpdateFeatures does not raise kraft.version.
    "features": (19,),
}
#: The step, from 1 on, in which two sessions expire at once. Kafka takes the first in hash order, kframe the oldest.
EXPIRED_TOGETHER: Final = {"large-5": 15}


def parameters() -> list[Any]:
    return [
        pytest.param(
            path,
            id=path.stem,
            marks=pytest.mark.smoke if path.stem in SMOKE else pytest.mark.extended,
        )
        for path in SCENARIOS
    ]


@pytest.mark.parametrize("path", parameters())
def test_trace_over_the_wire_equals_kafkas(path: Path, tmp_path: Path) -> None:
    golden, trace = read_trace(TRACES[path.stem]), play(read_kraft_scenario(path), tmp_path)
    if path.stem in EXPIRED_TOGETHER:
        for steps in (golden["steps"], trace["steps"]):
            sort_last_fencings(steps[EXPIRED_TOGETHER[path.stem] - 1])
    listed = differences(golden, trace)
    departures = tuple(f"step {step} " for step in DEPARTURES.get(path.stem, ()))
    assert [difference for difference in listed if not difference.startswith(departures)] == []
    assert all(any(difference.startswith(departure) for difference in listed) for departure in departures)


def sort_last_fencings(step: dict[str, Any]) -> None:
    """Sort the batches at the end of a step that only fence one broker by broker."""
    batches = step["batches"]
    last = list(takewhile(lambda batch: is_fencing(batch["records"]), reversed(batches)))
    batches[len(batches) - len(last) :] = sorted(last, key=lambda batch: str(batch["records"]))


def is_fencing(batch_records: list[dict[str, Any]]) -> bool:
    """Whether records only fence one broker."""
    return [record["data"].get("fenced") for record in batch_records] == [1]


@pytest.mark.extended
def test_sessions_of_kafkas_traces_end_as_their_scenarios_say() -> None:
    for path in TRACES.values():
        check_sessions(read_trace(path))


def fencing(broker: int) -> dict[str, Any]:
    """A batch that fences a broker."""
    data = {"brokerId": broker, "brokerEpoch": f"{broker}.1", "fenced": 1}
    return {"records": [{"type": "BROKER_REGISTRATION_CHANGE_RECORD", "version": 0, "data": data}]}


@pytest.mark.parametrize(
    "steps",
    [
        pytest.param([{"step": {"heartbeat_stop": [1, 2]}, "batches": [fencing(2), fencing(1)]}], id="another order"),
        pytest.param(
            [{"step": {"unclean_stop": [1]}, "batches": []}, {"step": {"fence": [2]}, "batches": [fencing(1)]}],
            id="another step",
        ),
        pytest.param([{"step": {"unclean_stop": [1]}, "batches": [fencing(1)]}], id="the step that stops the broker"),
    ],
)
def test_session_that_ends_at_another_time_is_a_stall(steps: list[dict[str, Any]]) -> None:
    with pytest.raises(MachineStalled):
        check_sessions({"steps": steps})
