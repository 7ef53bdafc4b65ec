"""``kframe whatif``: the outcome of an operation on a snapshot of a cluster."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kframe.cli.completion import complete_brokers, complete_partitions, complete_topics
from kframe.cli.exits import FAILED
from kframe.cli.findings import emit_mode, exit_on_findings, fail_on_option, findings
from kframe.cli.inputs import INPUT
from kframe.cli.numbers import IDS, WholeNumber, broker_ids
from kframe.cli.output import ReportingGroup, output_option, with_options
from kframe.cli.progress import progress
from kframe.cli.studies import PATH, StudySettings, config_pairs, replica_lists, study_options
from kframe.cli.sweep import sweep
from kframe.cli.topics import named_topics, rack_names, topic_partitions

if TYPE_CHECKING:
    from kframe.snapshot.files import InputFile
    from kframe.whatif import Outcome, WhatIf


@dataclass(frozen=True, slots=True)
class Reporting:
    """How to print and save an outcome."""

    output: str
    out: Path | None
    force: bool
    fail_on: tuple[str, ...]
    limit: int


@click.group("whatif", cls=ReportingGroup)
def group() -> None:
    """Apply an operation to a snapshot of a cluster and print the outcome.

    The controller's own code decides. Only the snapshot is read; no cluster is contacted.
    """


group.add_command(sweep)


def _reporting_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the outcome's options to a command, as ``reporting``."""

    @output_option
    @functools.wraps(command)
    def with_reporting(
        *args: Any, output: str, out: Path | None, force: bool, fail_on: tuple[str, ...], limit: int, **kwargs: Any
    ) -> Any:
        return command(*args, reporting=Reporting(output, out, force, fail_on, limit), **kwargs)

    return with_options(
        with_reporting,
        click.option("--out", type=PATH, metavar="DIR", help="Also write the outcome as Parquet tables to DIR."),
        click.option("--force", is_flag=True, help="Replace an existing outcome in DIR."),
        fail_on_option,
        click.option(
            "--limit",
            type=WholeNumber(),
            default=20,
            show_default=True,
            help="Changed partitions that a table lists; data has them all.",
        ),
    )


def _broker_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that select brokers to a command."""
    return with_options(
        command,
        click.option(
            "--brokers",
            multiple=True,
            callback=broker_ids,
            metavar=IDS,
            shell_complete=complete_brokers,
            help="Brokers, such as 2,5 or 1-3; may be repeated.",
        ),
        click.option(
            "--racks",
            multiple=True,
            callback=rack_names,
            metavar="RACK,...",
            help="All brokers of these racks; may be repeated.",
        ),
        click.option("--together/--one-by-one", default=True, help="All at once (default), or one after another."),
    )


@group.command()
@study_options
@_broker_options
@_reporting_options
def fail(
    study: StudySettings, brokers: tuple[int, ...], racks: tuple[str, ...], together: bool, reporting: Reporting
) -> None:
    """Fail brokers."""
    _run(study, reporting, lambda whatif: whatif.fail(brokers, racks, together=together))


@group.command()
@study_options
@_broker_options
@click.option("--clean/--unclean", default=None, help="Whether the previous shutdown was clean (KRaft).")
@click.option(
    "--repair-directories",
    is_flag=True,
    help="Bring failed log directories back online, with their data (KRaft).",
)
@_reporting_options
def restart(
    study: StudySettings,
    brokers: tuple[int, ...],
    racks: tuple[str, ...],
    together: bool,
    clean: bool | None,
    repair_directories: bool,
    reporting: Reporting,
) -> None:
    """Start brokers that are down. Bounce brokers that are up."""

    def act(whatif: WhatIf) -> Outcome:
        return whatif.restart(brokers, racks, together=together, clean=clean, repair_directories=repair_directories)

    _run(study, reporting, act)


@group.command()
@study_options
@_broker_options
@_reporting_options
def shutdown(
    study: StudySettings, brokers: tuple[int, ...], racks: tuple[str, ...], together: bool, reporting: Reporting
) -> None:
    """Shut down brokers by controlled shutdown."""
    _run(study, reporting, lambda whatif: whatif.shutdown(brokers, racks, together=together))


@group.command()
@study_options
@click.option(
    "--type", "election", type=click.Choice(("preferred", "unclean")), required=True, help="Kind of election."
)
@click.option(
    "--partition",
    "partitions",
    multiple=True,
    metavar="TOPIC-PARTITION",
    shell_complete=complete_partitions,
    help="Partition to elect for; may be repeated.  [default: all]",
)
@_reporting_options
def elect(study: StudySettings, election: str, partitions: tuple[str, ...], reporting: Reporting) -> None:
    """Elect leaders."""
    from kframe.model.events import ElectionType

    def act(whatif: WhatIf) -> Outcome:
        requested = topic_partitions("--partition", partitions)
        return whatif.elect(ElectionType[election.upper()], requested or None)

    _run(study, reporting, act)


@group.command()
@study_options
@click.argument("plan", metavar="PLAN", type=INPUT)
@_reporting_options
def reassign(study: StudySettings, plan: InputFile, reporting: Reporting) -> None:
    """Reassign partitions as in PLAN, a reassignment JSON.

    PLAN may also be what kafka-reassign-partitions --generate prints: then it is the proposed part.
    """
    from kframe.plans.file.read import load_plan

    _run(study, reporting, lambda whatif: whatif.reassign(load_plan(plan)))


@group.command()
@study_options
@click.argument("topic", metavar="TOPIC")
@click.option("--partitions", type=WholeNumber(), metavar="N", help="Partitions.  [default: num.partitions]")
@click.option(
    "--rf",
    "replication_factor",
    type=WholeNumber(0, 32_767),
    metavar="N",
    help="Replication factor.  [default: default.replication.factor]",
)
@click.option(
    "--seed", type=WholeNumber(), default=0, show_default=True, help="The same seed makes the same placement."
)
@click.option(
    "--assignments",
    callback=replica_lists,
    metavar="JSON",
    help="The replicas of each partition instead, such as [[1,2],[2,3]].",
)
@_reporting_options
def create(
    study: StudySettings,
    topic: str,
    partitions: int | None,
    replication_factor: int | None,
    seed: int,
    assignments: list[list[int]] | None,
    reporting: Reporting,
) -> None:
    """Create TOPIC, with its replicas placed as Kafka's automatic assignment does."""
    counts = [-1 if count is None else count for count in (partitions, replication_factor)]  # -1 as in CreateTopics
    _run(study, reporting, lambda whatif: whatif.create(topic, *counts, assignments=assignments, seed=seed))


@group.command("create-partitions")
@study_options
@click.argument("topic", metavar="TOPIC", shell_complete=complete_topics)
@click.option("--partitions", type=WholeNumber(), required=True, metavar="N", help="New partition count of the topic.")
@click.option(
    "--seed",
    type=WholeNumber(),
    default=0,
    show_default=True,
    help="The same seed makes the same placement; for KRaft only, whose controller draws random numbers.",
)
@click.option(
    "--assignments",
    callback=replica_lists,
    metavar="JSON",
    help="The replicas of each new partition instead, such as [[1,2],[2,3]].",
)
@_reporting_options
def create_partitions(
    study: StudySettings,
    topic: str,
    partitions: int,
    seed: int,
    assignments: list[list[int]] | None,
    reporting: Reporting,
) -> None:
    """Add partitions to TOPIC, with their replicas placed as Kafka's automatic assignment does."""
    _run(
        study, reporting, lambda whatif: whatif.create_partitions(topic, partitions, assignments=assignments, seed=seed)
    )


@group.command()
@study_options
@click.argument("topics", nargs=-1, required=True, metavar="TOPIC...", shell_complete=complete_topics)
@_reporting_options
def delete(study: StudySettings, topics: tuple[str, ...], reporting: Reporting) -> None:
    """Delete topics: names, or patterns with * and ?."""
    _run(study, reporting, lambda whatif: whatif.delete(named_topics(whatif.snapshot.topics.names, topics, "TOPIC")))


@group.command()
@study_options
@_broker_options
@_reporting_options
def fence(
    study: StudySettings, brokers: tuple[int, ...], racks: tuple[str, ...], together: bool, reporting: Reporting
) -> None:
    """Fence brokers of a KRaft cluster whose processes keep running."""
    _run(study, reporting, lambda whatif: whatif.fence(brokers, racks, together=together))


@group.command()
@study_options
@_broker_options
@_reporting_options
def unfence(
    study: StudySettings, brokers: tuple[int, ...], racks: tuple[str, ...], together: bool, reporting: Reporting
) -> None:
    """Unfence brokers of a KRaft cluster."""
    _run(study, reporting, lambda whatif: whatif.unfence(brokers, racks, together=together))


@group.command("fail-directories")
@study_options
@click.option(
    "--broker", type=WholeNumber(), required=True, metavar="ID", shell_complete=complete_brokers, help="The broker."
)
@click.option(
    "--directory",
    "directories",
    multiple=True,
    required=True,
    metavar="ID",
    help="Id of a log directory, as in snapshot show --list brokers -o wide; may be repeated.",
)
@_reporting_options
def fail_directories(study: StudySettings, broker: int, directories: tuple[str, ...], reporting: Reporting) -> None:
    """Fail log directories of a broker of a KRaft cluster."""
    from kframe.whatif.engines.kraft.settings import directory_id

    _run(study, reporting, lambda whatif: whatif.fail_directories(broker, list(map(directory_id, directories))))


@group.command("update-features")
@study_options
@click.argument("levels", nargs=-1, required=True, metavar="NAME=LEVEL...")
@click.option("--unsafe", is_flag=True, help="Permit downgrades that lose metadata.")
@_reporting_options
def update_features(study: StudySettings, levels: tuple[str, ...], unsafe: bool, reporting: Reporting) -> None:
    """Change feature levels of a KRaft cluster, such as eligible.leader.replicas.version=1."""
    from kframe.whatif.engines.kraft.settings import feature_level

    def act(whatif: WhatIf) -> Outcome:
        requested = config_pairs(levels, "NAME=LEVEL")
        return whatif.update_features(
            {name: feature_level(name, text) for name, text in requested.items()}, unsafe=unsafe
        )

    _run(study, reporting, act)


def _run(settings: StudySettings, reporting: Reporting, act: Callable[[WhatIf], Outcome]) -> None:
    """Run, write, print, and exit with the code of ``--fail-on``, or FAILED for a refused operation.

    Nothing is written on an error.
    """
    from kframe.cli.outcome import emit_outcome
    from kframe.whatif.export import check_target, write_outcome

    if reporting.out is not None:
        check_target(reporting.out, force=reporting.force)
    whatif = settings.open()
    rules = whatif.rules
    with progress("playing") as tick:
        whatif.step_progress = tick
        outcome = act(whatif)
    result = findings(reporting.fail_on, outcome.count_of)
    if reporting.out is not None:
        write_outcome(outcome, whatif.snapshot, whatif.cluster, reporting.out, force=reporting.force)
    emit_mode(rules, reporting.output)
    refused = emit_outcome(outcome, whatif, reporting.output, reporting.limit)
    exit_on_findings(result, "partition")
    if refused:
        click.get_current_context().exit(FAILED)
