"""Traces of scenarios that a running controller plays over loopback equal those of Apache Kafka 4.4's controller."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest

from kframe.scenario.kraft.format import read_kraft_scenario
from tests.kraft.golden import SCENARIOS
from tests.kraft.test_golden_traces import TRACES, differences, read_trace
from verification.kraft.wire_scenarios.player import play
from verification.kraft.wire_scenarios.stalls import MachineStalled, check_sessions

#: The scenarios that ``make test`` plays, too: a start, a restart and a kill; refused heartbeats.
SMOKE: Final = ("boot-elr", "heartbeat-refused")
#: What the controller lacks for a scenario.
MISSING: Final = {
    "acls": "an authorizer",
    "configs": "checks of configuration names and values",
    "configs-elr": "checks of configuration names and values",
    "create-topics-refused": "checks of configuration names and values",
    "features": "upgrades of kraft.version",
    "reassign-factor": "AlterPartitionReassignments 1",
    "reassign-factor-elr": "AlterPartitionReassignments 1",
    "snapshot-restart": "AlterClientQuotas",
    "unregister-controller": "UnregisterController",
    "users": "AlterClientQuotas and AlterUserScramCredentials",
}


def parameters() -> list[Any]:
    return [
        pytest.param(
            path,
            id=path.stem,
            marks=[
                pytest.mark.smoke if path.stem in SMOKE else pytest.mark.extended,
                *([pytest.mark.xfail(reason=f"no {MISSING[path.stem]}")] if path.stem in MISSING else []),
            ],
        )
        for path in SCENARIOS
    ]


@pytest.mark.parametrize("path", parameters())
def test_trace_over_the_wire_equals_kafkas(path: Path, tmp_path: Path) -> None:
    assert differences(read_trace(TRACES[path.stem]), play(read_kraft_scenario(path), tmp_path)) == []


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
