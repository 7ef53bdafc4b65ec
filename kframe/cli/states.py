"""``kframe states``: the state machines of partitions and replicas, as the engine checks them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click

from kframe.cli.numbers import limit_option
from kframe.cli.output import OutputTable, emit_rows, output_option


@click.command("states")
@click.option("--dot", is_flag=True, help="Print a Graphviz document.")
@limit_option
@output_option
def command(dot: bool, limit: int | None, output: str) -> None:
    """Show the valid state transitions of partitions and replicas."""
    from kframe.core.state_machines.transitions import to_dot

    if dot:
        click.echo(to_dot(), nl=False)
    else:
        emit_rows(
            OutputTable("kframe.states/v1", ("machine", "state", "code", "next_states"), _rows(), limit=limit), output
        )


def _rows() -> Iterator[dict[str, Any]]:
    from kframe.core.state_machines.transitions import PARTITION_TRANSITIONS, REPLICA_TRANSITIONS

    for state, targets in PARTITION_TRANSITIONS.items():
        yield _row("partition", state.name, state, [target.name for target in sorted(targets)])
    for kind, kinds in REPLICA_TRANSITIONS.items():
        yield _row("replica", kind.name, kind, [target.name for target in sorted(kinds)])


def _row(machine: str, state: str, code: int, next_states: list[str]) -> dict[str, Any]:
    return {"machine": machine, "state": state, "code": int(code), "next_states": next_states}
