"""``kframe kraft``: comparison of controllers' logs, and recovery of a lost quorum."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from kframe.plugin.commands import (
    OutputTable,
    ReportingGroup,
    emit_record,
    emit_rows,
    output_option,
    progress,
)

if TYPE_CHECKING:
    from kframe.plugin.kraft import control
    from kframe_kraft.recovery import QuorumComparison

#: The exit code for logs that diverge; the table of ``kframe --help`` has it.
_DIVERGED: Final = 3
_SOURCE: Final = click.Path(exists=True, file_okay=False, path_type=Path)
_LISTENER: Final = re.compile(r"(?P<name>[A-Za-z0-9_.-]+)://(?P<host>.+):(?P<port>\d{1,5})")
_COLUMNS: Final = (
    "directory", "node_id", "start", "end", "last_epoch", "state", "first_difference", "can_lead", "snapshot_end",
    "quorum_epoch", "leader_id", "voted_id", "torn_bytes", "committed_at_least", "detail",
)  # fmt: skip
_WIDE: Final = frozenset({"quorum_epoch", "leader_id", "voted_id", "torn_bytes", "committed_at_least"})


@click.group("kraft", cls=ReportingGroup)
def group() -> None:
    """Compare the metadata logs of controllers, and recover a lost quorum."""


@group.command()
@click.argument("directories", metavar="DIR DIR...", type=_SOURCE, nargs=-1, required=True)
@output_option
def compare(directories: tuple[Path, ...], output: str) -> None:
    """Compare the metadata logs in the directories of controllers.

    The reference is the log with the highest last epoch, then the longest one. A stale tail is one of an older epoch
    that was not committed; its node truncates it. Exit code 3 if a log diverges in another way: then it is damaged, or
    is of another cluster.
    """
    from kframe_kraft.recovery import compare_replicas, read_replica

    if len(directories) < 2:
        raise click.UsageError("found one directory, expected at least two")
    with progress("reading") as tick:
        replicas = []
        for number, directory in enumerate(directories):
            tick(number, len(directories))
            replicas.append(read_replica(directory))
    comparison = compare_replicas(replicas)
    emit_rows(OutputTable("kframe.kraft-compare/v1", _COLUMNS, _rows(comparison), _WIDE), output)
    if comparison.diverged:
        click.echo("the logs diverge: one is damaged, or is of another cluster", err=True)
        click.get_current_context().exit(_DIVERGED)


def _rows(comparison: QuorumComparison) -> list[dict[str, Any]]:
    rows = []
    for row in comparison.replicas:
        replica, state = row.replica, row.replica.history.quorum_state
        is_reference = replica is comparison.reference
        rows.append(
            {
                "directory": replica.name, "node_id": replica.node_id, "start": replica.history.log.start,
                "end": replica.end, "last_epoch": replica.last_epoch,
                "state": "reference" if is_reference else row.state,
                "first_difference": row.first_difference, "can_lead": row.can_lead,
                "snapshot_end": replica.history.committed_below,
                "quorum_epoch": None if state is None else state.leader_epoch,
                "leader_id": None if state is None else state.leader_id,
                "voted_id": None if state is None else state.voted_id, "torn_bytes": replica.history.log.torn_bytes,
                "committed_at_least": comparison.committed, "detail": row.detail,
            }
        )  # fmt: skip
    return rows


@group.command()
@click.argument("directory", metavar="DIR", type=_SOURCE)
@click.option(
    "--out", type=click.Path(path_type=Path), metavar="NEW", help="Write the copy; without it nothing is written."
)
@click.option("--listener", "listeners", multiple=True, metavar="NAME://HOST:PORT",
              help="A listener of the only voter, with kraft.version 1; by default those in the log.")  # fmt: skip
@output_option
def recover(directory: Path, out: Path | None, listeners: tuple[str, ...], output: str) -> None:
    """Plan the recovery of a lost quorum from DIR, metadata.log.dir of one controller; write it with --out.

    The copy has the log to its last complete batch, a higher epoch, and the node as the only voter. DIR is only read.
    Stop the other controllers for good first: a second quorum of the same cluster loses data.
    """
    from kframe_kraft.recovery import plan_recovery, write_recovery
    from kframe_kraft.time_travel import time_text

    endpoints = tuple(map(_endpoint, listeners))
    with progress("reading"):
        plan = plan_recovery(directory)
    if out is not None:
        write_recovery(plan, out, now=time.time_ns() // 1_000_000, endpoints=endpoints)
    record = {
        "directory": str(directory), "cluster_id": plan.properties.cluster_id, "node_id": plan.node_id,
        "former_voters": list(plan.history.voters), "kraft_version": plan.kraft_version, "log_end": plan.end,
        "last_time": time_text(plan.timestamp), "last_epoch": plan.last_epoch, "committed_at_least": plan.committed,
        "new_epoch": plan.epoch, "brokers": plan.brokers, "topics": plan.topics, "partitions": plan.partitions,
        "risks": list(plan.risks), "written": None if out is None else str(out),
    }  # fmt: skip
    emit_record("kframe.kraft-recovery/v1", record, output)


def _endpoint(text: str) -> control.VoterEndpoint:
    from kframe.plugin.kraft import control

    match = _LISTENER.fullmatch(text)
    if match is None or not 0 < int(match["port"]) < 1 << 16:
        raise click.UsageError(f"--listener: found {text!r}, expected NAME://HOST:PORT")
    return control.VoterEndpoint(name=match["name"], host=match["host"], port=int(match["port"]))
