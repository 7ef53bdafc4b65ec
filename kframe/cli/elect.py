"""``kframe elect``: elect leaders of a live cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from kframe.cli.admin import EXECUTE, admin_options, emit_codes
from kframe.cli.exits import FAILED
from kframe.cli.numbers import limit_of
from kframe.cli.outcome import emit_outcome
from kframe.cli.output import BadInput, output_option
from kframe.cli.studies import election_option
from kframe.cli.topics import topic_partitions

if TYPE_CHECKING:
    from kframe.ports.administration import Administration


@click.command("elect")
@election_option
@click.option(
    "--partition",
    "partitions",
    multiple=True,
    metavar="TOPIC-PARTITION",
    help="Partition to elect a leader for; may be repeated.",
)
@click.option("--all", "everything", is_flag=True, help="All partitions that need an election.")
@EXECUTE
@admin_options
@limit_of(50)
@output_option
def command(
    admin: Administration,
    election: str,
    partitions: tuple[str, ...],
    everything: bool,
    execute: bool,
    limit: int,
    output: str,
) -> None:
    """Elect preferred leaders, or unclean leaders where no replica is in sync, by the cluster's admin API."""
    if everything == bool(partitions):
        raise BadInput("give --partition, or --all")
    from kframe.errors import ErrorCode
    from kframe.model.events import ElectionType
    from kframe.whatif import WhatIf

    kind = ElectionType[election.upper()]
    requested = topic_partitions("--partition", partitions) or None
    if not execute:
        whatif = WhatIf(admin.capture())
        refused = emit_outcome(whatif.elect(kind, requested), whatif, output, limit)
        click.echo("nothing was changed; --execute executes it", err=True)
        click.get_current_context().exit(FAILED if refused else 0)
    codes = admin.elect(kind, requested)
    emit_codes(codes, output, limit)
    failed = [code for code in codes.values() if code not in (ErrorCode.NONE, ErrorCode.ELECTION_NOT_NEEDED)]
    click.get_current_context().exit(FAILED if failed else 0)
