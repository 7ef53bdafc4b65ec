"""``kframe states``: the state machines of partitions and replicas, as the engine checks them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from kframe.cli.numbers import limit_option
from kframe.cli.output import OutputTable, emit_rows, output_option

if TYPE_CHECKING:
    from kframe.cli.documents.engine import TransitionRow


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


def _rows() -> Iterator[TransitionRow]:
    from kframe.cli.documents.engine import TransitionRow
    from kframe.core.state_machines.transitions import PARTITION_TRANSITIONS, REPLICA_TRANSITIONS

    for state, targets in PARTITION_TRANSITIONS.items():
        yield TransitionRow("partition", state.name, int(state), [target.name for target in sorted(targets)])
    for kind, kinds in REPLICA_TRANSITIONS.items():
        yield TransitionRow("replica", kind.name, int(kind), [target.name for target in sorted(kinds)])
