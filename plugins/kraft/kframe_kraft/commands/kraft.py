"""``kframe kraft``: format of a controller's directories, comparison of logs, and recovery of a lost quorum."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from kframe.plugin.commands import (
    NamedPath,
    OutputTable,
    ReportingGroup,
    WholeNumber,
    emit_record,
    emit_rows,
    limit_option,
    output_option,
    progress,
)

if TYPE_CHECKING:
    from kframe.plugin.kraft import control
    from kframe_kraft.recovery.comparison import DamagedReplica, QuorumComparison

#: The exit code for logs that diverge or are damaged; the table of ``kframe --help`` has it.
_DIVERGED: Final = 3
_SOURCE: Final = click.Path(exists=True, file_okay=False, path_type=Path)
_LISTENER: Final = re.compile(r"(?P<name>[A-Za-z0-9_.-]+)://(?P<host>.+):(?P<port>[0-9]{1,5})")
_COLUMNS: Final = (
    "directory",
    "node_id",
    "cluster_id",
    "start",
    "end",
    "last_epoch",
    "state",
    "first_difference",
    "can_lead",
    "snapshot_end",
    "quorum_epoch",
    "leader_id",
    "voted_id",
    "torn_bytes",
    "committed_at_least",
    "detail",
)
_WIDE: Final = frozenset({"cluster_id", "quorum_epoch", "leader_id", "voted_id", "torn_bytes", "committed_at_least"})


@click.group("kraft", cls=ReportingGroup)
def group() -> None:
    """Format the directories of a controller, compare metadata logs, and recover a lost quorum."""


@group.command()
@click.argument("directories", metavar="DIR DIR...", type=_SOURCE, nargs=-1, required=True)
@limit_option
@output_option
def compare(directories: tuple[Path, ...], limit: int | None, output: str) -> None:
    """Compare the metadata logs in the directories of controllers.

    The reference is the log with the highest last epoch, then the longest one. A stale tail is one of an older epoch
    that was not committed; its node truncates it. Logs are compared without those that are damaged. Exit code 3 if
    there is such a log, or if one diverges in another way: then it has undetected damage, or belongs to another
    cluster.
    """
    from kframe_kraft.recovery.comparison import DamagedReplica, ReplicaLog, compare_replicas, read_replica

    if len(directories) < 2:
        raise click.UsageError("found one directory, expected at least two")
    if len({directory.resolve() for directory in directories}) < len(directories):
        raise click.UsageError("found a directory twice, expected the directories of different nodes")
    with progress("reading") as tick:
        replicas = []
        for number, directory in enumerate(directories):
            tick(number, len(directories))
            replicas.append(read_replica(directory))
    intact = [replica for replica in replicas if isinstance(replica, ReplicaLog)]
    damaged = [replica for replica in replicas if isinstance(replica, DamagedReplica)]
    comparison = compare_replicas(intact) if intact else None
    rows = [] if comparison is None else _rows(comparison)
    rows += [_damaged_row(replica, None if comparison is None else comparison.committed) for replica in damaged]
    order = {str(directory): number for number, directory in enumerate(directories)}
    rows.sort(key=lambda row: order[row["directory"]])
    emit_rows(OutputTable("kframe.kraft-compare/v1", _COLUMNS, rows, _WIDE, limit), output)
    for replica in damaged:
        click.echo(f"{replica.name} is damaged, and is not compared: {replica.damage}", err=True)
    diverges = comparison is not None and comparison.diverged
    if diverges:
        click.echo("the logs diverge: one is damaged, or is of another cluster", err=True)
    if diverges or damaged:
        click.get_current_context().exit(_DIVERGED)


def _rows(comparison: QuorumComparison) -> list[dict[str, Any]]:
    rows = []
    for row in comparison.replicas:
        replica, state = row.replica, row.replica.history.quorum_state
        is_reference = replica is comparison.reference
        rows.append(
            {
                "directory": replica.name,
                "node_id": replica.node_id,
                "cluster_id": replica.cluster_id,
                "start": replica.history.log.start,
                "end": replica.end,
                "last_epoch": replica.last_epoch,
                "state": "reference" if is_reference else row.state,
                "first_difference": row.first_difference,
                "can_lead": row.can_lead,
                "snapshot_end": replica.history.committed_below,
                "quorum_epoch": None if state is None else state.leader_epoch,
                "leader_id": None if state is None else state.leader_id,
                "voted_id": None if state is None else state.voted_id,
                "torn_bytes": replica.history.log.torn_bytes,
                "committed_at_least": comparison.committed,
                "detail": row.detail,
            }
        )
    return rows


def _damaged_row(replica: DamagedReplica, committed: int | None) -> dict[str, Any]:
    return {
        **dict.fromkeys(_COLUMNS),
        "directory": replica.name,
        "node_id": replica.node_id,
        "cluster_id": replica.cluster_id,
        "state": "damaged",
        "can_lead": False,
        "committed_at_least": committed,
        "detail": replica.damage,
    }


@group.command("format")
@click.option(
    "-t", "--cluster-id", required=True, metavar="ID", help="Id of the cluster, as kafka-storage random-uuid."
)
@click.option(
    "-c",
    "--config",
    "config_path",
    required=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="server.properties of the controller.",
)
@click.option("--standalone", is_flag=True, help="Begin a dynamic quorum with this node as the only voter.")
@click.option(
    "-r", "--release-version", metavar="LEVEL", help="metadata.version and the features of that time.  [default: 4.3]"
)
@click.option("-f", "--feature", "features", multiple=True, metavar="NAME=LEVEL", help="A feature; may be repeated.")
@click.option(
    "-S",
    "--add-scram",
    "users",
    multiple=True,
    metavar="MECHANISM=[name=USER,password=TEXT]",
    help="A SCRAM user, also with iterations, salt and saltedpassword; may be repeated.",
)
@click.option("-g", "--ignore-formatted", is_flag=True, help="Leave directories that are formatted as they are.")
@output_option
def format_(
    cluster_id: str,
    config_path: Path,
    standalone: bool,
    release_version: str | None,
    features: tuple[str, ...],
    users: tuple[str, ...],
    ignore_formatted: bool,
    output: str,
) -> None:
    """Format the directories of a controller, as kafka-storage does.

    Kafka's own controllers start on them, too. Brokers with controller.quorum.bootstrap.servers need a dynamic quorum:
    --standalone.
    """
    from kframe.plugin.settings import read_properties
    from kframe_kraft.commands.scram_users import scram_users
    from kframe_kraft.server.formatting import format_node
    from kframe_kraft.server.node_config import QUORUM_VOTERS, node_config

    given = {entry.key: entry.value for entry in read_properties(config_path)}
    config = node_config(given)
    if standalone and given.get(QUORUM_VOTERS, "").strip():
        raise click.UsageError(f"--standalone: found {QUORUM_VOTERS}, which is for static quorums")
    if not standalone and not config.settings.static_voters.members:
        raise click.UsageError(f"found no {QUORUM_VOTERS} in {config_path}, expected it, or --standalone")
    levels = _levels(release_version, features)
    credentials = scram_users(users, levels["metadata.version"])
    formatted = format_node(
        config,
        cluster_id,
        levels,
        credentials,
        standalone=standalone,
        ignore_formatted=ignore_formatted,
        now=time.time_ns() // 1_000_000,
    )
    record = {
        "cluster_id": cluster_id,
        "node_id": config.node_id,
        "quorum": "dynamic" if standalone else "static",
        "features": levels,
        "scram_users": sorted({user.name for user in credentials}),
        "formatted": [str(each.path) for each in formatted if each.is_new],
        "left": [str(each.path) for each in formatted if not each.is_new],
    }
    emit_record("kframe.kraft-format/v1", record, output)


def _levels(release_version: str | None, features: tuple[str, ...]) -> dict[str, int]:
    """The levels of all features. Raises UsageError for unknown ones."""
    from kframe.plugin.kraft_controller import PRODUCTION_LEVEL, KraftSettings, default_levels, parse_level

    level = PRODUCTION_LEVEL if release_version is None else parse_level(release_version)
    if level is None:
        raise click.UsageError(f"--release-version: found {release_version!r}, expected a level such as 4.3-IV0")
    named, supported = dict[str, int](), KraftSettings().supported_features
    for feature in features:
        name, _, text = feature.partition("=")
        value = parse_level(text)
        if value is None or name not in supported:
            raise click.UsageError(f"--feature: found {feature!r}, expected NAME=LEVEL of {', '.join(supported)}")
        low, high = supported[name]
        if not low <= value <= high:
            raise click.UsageError(f"--feature: found {name} {value}, expected {low} to {high}")
        named[name] = value
    return default_levels(named.pop("metadata.version", level), named)


@group.command()
@click.argument("directory", metavar="DIR", type=_SOURCE)
@click.option("--out", type=NamedPath(), metavar="NEW", help="Write the copy; without it nothing is written.")
@click.option(
    "--listener",
    "listeners",
    multiple=True,
    metavar="NAME://HOST:PORT",
    help="A listener of the only voter, with kraft.version 1; may be repeated.  [default: those in the log]",
)
@click.option(
    "--node-id",
    type=WholeNumber(),
    metavar="N",
    help="The only voter, where DIR is that of a broker; by default the node of DIR.",
)
@output_option
def recover(directory: Path, out: Path | None, listeners: tuple[str, ...], node_id: int | None, output: str) -> None:
    """Plan the recovery of a lost quorum from DIR, metadata.log.dir of one controller or broker; write it with --out.

    The copy has the log to its last complete batch, a higher epoch, and the node as the only voter. DIR is only read.
    A broker has the log too: --node-id then names the controller that starts from the copy.
    Stop the other controllers for good first: a second quorum of the same cluster loses data.
    """
    from kframe_kraft.recovery.plan import plan_recovery
    from kframe_kraft.recovery.writing import write_recovery
    from kframe_kraft.time_travel.positions import time_text

    endpoints = tuple(map(_endpoint, listeners))
    names = [endpoint.name.upper() for endpoint in endpoints]
    if len(set(names)) < len(names):
        raise click.UsageError("--listener: found a name twice, expected each listener once")
    if out is not None and directory.resolve() in out.resolve().parents:
        raise click.UsageError(f"--out: found {out} in DIR, which is only read, expected a path outside")
    with progress("reading"):
        plan = plan_recovery(directory, node_id)
    if out is not None:
        write_recovery(plan, out, now=time.time_ns() // 1_000_000, endpoints=endpoints)
    record = {
        "directory": str(directory),
        "cluster_id": plan.properties.cluster_id,
        "node_id": plan.node_id,
        "source_node_id": plan.source_node_id,
        "former_voters": list(plan.history.voters),
        "kraft_version": plan.kraft_version,
        "log_end": plan.end,
        "last_time": time_text(plan.timestamp),
        "last_epoch": plan.last_epoch,
        "committed_at_least": plan.committed,
        "new_epoch": plan.epoch,
        "brokers": plan.brokers,
        "topics": plan.topics,
        "partitions": plan.partitions,
        "risks": list(plan.risks),
        "written": None if out is None else str(out),
    }
    emit_record("kframe.kraft-recovery/v1", record, output)


def _endpoint(text: str) -> control.VoterEndpoint:
    from kframe.plugin.kraft import control

    match = _LISTENER.fullmatch(text)
    if match is None or not 0 < int(match["port"]) < 1 << 16:
        raise click.UsageError(f"--listener: found {text!r}, expected NAME://HOST:PORT")
    return control.VoterEndpoint(name=match["name"], host=match["host"], port=int(match["port"]))
