"""``kframe reassign``: move a few partitions of a live cluster, list running reassignments, and cancel them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from kframe.cli.admin import EXECUTE, admin_options, apply, emit_codes
from kframe.cli.exits import FAILED
from kframe.cli.numbers import WholeNumber, limit_option, parse_ids
from kframe.cli.output import BadInput, OutputTable, ReportingGroup, emit_rows, output_option
from kframe.cli.topics import topic_partitions
from kframe.model.texts import counted

if TYPE_CHECKING:
    from kframe.model.events import TopicPartition
    from kframe.snapshot.administration import Administration

_COLUMNS = ("topic", "partition", "replicas", "adding", "removing")
_ASSIGNMENT: Final = "TOPIC-PARTITION=ID,ID..."


@click.group("reassign", cls=ReportingGroup)
def group() -> None:
    """Reassign partitions of a live cluster by its admin API. kframe plan apply takes plans in files."""


@group.command()
@click.argument("assignments", nargs=-1, required=True, metavar=_ASSIGNMENT)
@EXECUTE
@click.option("--rollback", type=click.Path(path_type=Path), help="Where to write the plan that reverts this one.")
@click.option("--wait/--no-wait", default=True, help="Wait until all reassignments are complete.")
@click.option("--limit", type=WholeNumber(), default=50, show_default=True,
              help="Rows that a table lists; data has them all.")  # fmt: skip
@admin_options
@output_option
def start(
    admin: Administration,
    assignments: tuple[str, ...],
    execute: bool,
    rollback: Path | None,
    wait: bool,
    limit: int,
    output: str,
) -> None:
    """Reassign partitions to these brokers, the preferred leader first."""
    from kframe.plans.file.write import plan_of

    plan = plan_of(_assignments(assignments), "reassign")
    code = apply(
        admin, plan, None, execute=execute, rollback=rollback, batch_size=None, wait=wait, output=output, limit=limit,
        how_to_cancel="kframe reassign cancel",
    )  # fmt: skip
    click.get_current_context().exit(code)


@group.command("list")
@admin_options
@limit_option
@output_option
def list_(admin: Administration, limit: int | None, output: str) -> None:
    """List the reassignments in progress."""
    rows = (
        {"topic": topic, "partition": partition, "replicas": list(entry.replicas), "adding": list(entry.adding),
         "removing": list(entry.removing)}
        for (topic, partition), entry in sorted(admin.reassignments().items())
    )  # fmt: skip
    emit_rows(OutputTable("kframe.reassignments/v1", _COLUMNS, rows, limit=limit), output)


@group.command()
@click.argument("partitions", nargs=-1, metavar="TOPIC-PARTITION...")
@click.option("--all", "everything", is_flag=True, help="All reassignments in progress.")
@EXECUTE
@admin_options
@limit_option
@output_option
def cancel(
    admin: Administration, partitions: tuple[str, ...], everything: bool, execute: bool, limit: int | None, output: str
) -> None:
    """Cancel reassignments: adding replicas are removed, the others stay."""
    if everything == bool(partitions):
        raise BadInput("give partitions, or --all")
    from kframe.plans.execute.batches import reassignments_to_cancel

    requested = topic_partitions("TOPIC-PARTITION", partitions)
    click.get_current_context().exit(
        cancel_reassignments(
            admin, requested or reassignments_to_cancel(dict(admin.reassignments()), None), execute, output, limit
        )
    )


def cancel_reassignments(
    admin: Administration, partitions: list[TopicPartition], execute: bool, output: str, limit: int | None
) -> int:
    """Cancel these reassignments, or only list them. Return the exit code."""
    from kframe.errors import ErrorCode
    from kframe.plans.execute.batches import cancel

    codes = cancel(admin, partitions) if execute and partitions else dict.fromkeys(partitions, ErrorCode.NONE)
    emit_codes(codes, output, limit)
    if not execute:
        click.echo(f"{counted(len(partitions), 'reassignment')} would be cancelled with --execute", err=True)
    return FAILED if any(code is not ErrorCode.NONE for code in codes.values()) else 0


def _assignments(texts: tuple[str, ...]) -> dict[TopicPartition, tuple[int, ...]]:
    """The replicas of each partition. Raises BadInput, or InputError for what is no partition."""
    names, replicas = [], []
    for text in texts:
        name, _, ids = text.partition("=")
        names.append(name)
        try:
            replicas.append(tuple(parse_ids(ids)))
        except ValueError as problem:
            raise BadInput(f"{text!r}: expected {_ASSIGNMENT}") from problem
    return dict(zip(topic_partitions(_ASSIGNMENT, names), replicas, strict=True))
