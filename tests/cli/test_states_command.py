"""``kframe states``."""

from __future__ import annotations

import json

from kframe.core.state_machines.transitions import PARTITION_TRANSITIONS, REPLICA_TRANSITIONS, to_dot
from tests.cli.running import kframe


def output(*arguments: str) -> str:
    result = kframe("states", *arguments)
    assert result.exit_code == 0
    return result.stdout


def test_dot_output_equals_engine_graph() -> None:
    assert output("--dot") == to_dot()


def test_json_has_every_move() -> None:
    rows = json.loads(output("-o", "json"))["rows"]
    transitions = {(row["machine"], row["state"]): set(row["next_states"]) for row in rows}
    expected = {
        ("partition", state.name): {target.name for target in targets}
        for state, targets in PARTITION_TRANSITIONS.items()
    }
    expected |= {("replica", kind.name): {kind.name for kind in kinds} for kind, kinds in REPLICA_TRANSITIONS.items()}
    assert transitions == expected


def test_states_table_has_line_per_state() -> None:
    assert len(output().splitlines()) == 1 + len(PARTITION_TRANSITIONS) + len(REPLICA_TRANSITIONS)
