"""``kframe whatif``: the outcome of an operation on a snapshot of a cluster."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from kframe.cli.completion import complete_brokers, complete_partitions, complete_topics
from kframe.cli.exits import FAILED
from kframe.cli.findings import emit_mode, emit_release, exit_on_findings, fail_on_option, findings
from kframe.cli.inputs import INPUT
from kframe.cli.numbers import IDS, WholeNumber, broker_ids, limit_of
from kframe.cli.options import with_options
from kframe.cli.output import ReportingGroup, output_option
from kframe.cli.progress import progress
from kframe.cli.report import check_page, report_option, write_shown
from kframe.cli.studies import (
    PATH,
    StudySettings,
    config_pairs,
    election_option,
    racks_option,
    replica_lists,
    study_options,
    together_option,
)
from kframe.cli.sweep import sweep
from kframe.cli.topics import topic_partitions
from kframe.model.topic_patterns import named_topics

if TYPE_CHECKING:
    from kframe.snapshot.files import InputFile
    from kframe.whatif import Outcome, WhatIf


@click.group("whatif", cls=ReportingGroup)
def group() -> None:
    """Apply an operation to a snapshot of a cluster and print the outcome.

    The controller's own code decides. Only the snapshot is read; no cluster is contacted.
    """


group.add_command(sweep)
#: The operations by command: the function that applies one to a what-if, and the options of its arguments.
OPERATIONS: Final[dict[str, tuple[Callable[..., Outcome], tuple[Callable[..., Any], ...]]]] = {}

_BROKERS: Final = (
    click.option(
        "--brokers",
        multiple=True,
        callback=broker_ids,
        metavar=IDS,
        shell_complete=complete_brokers,
        help="Brokers, such as 2,5 or 1-3; may be repeated.",
    ),
    racks_option,
    together_option,
)
_REPORTING: Final = (
    click.option("--out", type=PATH, metavar="DIR", help="Also write the outcome as Parquet tables to DIR."),
    click.option("--force", is_flag=True, help="Replace an existing outcome in DIR, and an existing FILE."),
    report_option,
    fail_on_option,
    limit_of(20, "Changed partitions that a table lists"),
    output_option,
)


def run_operation(
    act: Callable[..., Outcome],
    study: StudySettings,
    out: Path | None,
    force: bool,
    page: Path | None,
    fail_on: tuple[str, ...],
    limit: int,
    output: str,
    **arguments: Any,
) -> None:
    """Run, write, print, and exit with the code of ``--fail-on``, or FAILED for a refused operation.

    Nothing is written on an error.
    """
    from kframe.cli.outcome import emit_outcome

    if out is not None:
        from kframe.whatif.export import check_target

        check_target(out, force=force)
    check_page(page, force=force)
    whatif = study.open()
    rules = whatif.rules
    with progress("playing") as tick:
        whatif.step_progress = tick
        outcome = act(whatif, **arguments)
    result = findings(fail_on, outcome.count_of)
    if out is not None:
        from kframe.whatif.export import write_outcome

        write_outcome(outcome, whatif.snapshot, whatif.cluster, out, force=force)
    write_shown(page, outcome)
    emit_mode(rules, output)
    emit_release(outcome.release, output)
    refused = emit_outcome(outcome, whatif, output, limit)
    exit_on_findings(result, "partition")
    if refused:
        click.get_current_context().exit(FAILED)


def _operation(*options: Callable[..., Any]) -> Callable[[Callable[..., Outcome]], Callable[..., Outcome]]:
    """A decorator that makes a command of a function, whose arguments are a what-if and the values of ``options``."""

    def decorate(act: Callable[..., Outcome]) -> Callable[..., Outcome]:
        @functools.wraps(act)
        def command(**values: Any) -> None:
            run_operation(act, **values)

        added = group.command()(with_options(command, study_options, *options, *_REPORTING))
        OPERATIONS[str(added.name)] = act, options
        return act

    return decorate


@_operation(*_BROKERS)
def fail(whatif: WhatIf, brokers: tuple[int, ...], racks: tuple[str, ...], together: bool) -> Outcome:
    """Fail brokers."""
    return whatif.fail(brokers, racks, together=together)


@_operation(
    *_BROKERS,
    click.option("--clean/--unclean", default=None, help="Whether the previous shutdown was clean (KRaft)."),
    click.option(
        "--repair-directories",
        is_flag=True,
        help="Bring failed log directories back online, with their data (KRaft).",
    ),
)
def restart(
    whatif: WhatIf,
    brokers: tuple[int, ...],
    racks: tuple[str, ...],
    together: bool,
    clean: bool | None,
    repair_directories: bool,
) -> Outcome:
    """Start brokers that are down. Bounce brokers that are up."""
    return whatif.restart(brokers, racks, together=together, clean=clean, repair_directories=repair_directories)


@_operation(*_BROKERS)
def shutdown(whatif: WhatIf, brokers: tuple[int, ...], racks: tuple[str, ...], together: bool) -> Outcome:
    """Shut down brokers by controlled shutdown."""
    return whatif.shutdown(brokers, racks, together=together)


@_operation(
    election_option,
    click.option(
        "--partition",
        "partitions",
        multiple=True,
        metavar="TOPIC-PARTITION",
        shell_complete=complete_partitions,
        help="Partition to elect for; may be repeated.  [default: all]",
    ),
)
def elect(whatif: WhatIf, election: str, partitions: tuple[str, ...]) -> Outcome:
    """Elect leaders."""
    from kframe.model.events import ElectionType

    requested = topic_partitions("--partition", partitions)
    return whatif.elect(ElectionType[election.upper()], requested or None)


@_operation(click.argument("plan", metavar="PLAN", type=INPUT))
def reassign(whatif: WhatIf, plan: InputFile) -> Outcome:
    """Reassign partitions as in PLAN, a reassignment JSON.

    PLAN may also be what kafka-reassign-partitions --generate prints: then it is the proposed part.
    """
    from kframe.plans.file.read import load_plan

    return whatif.reassign(load_plan(plan))


@_operation(
    click.argument("name", metavar="TOPIC"),
    click.option("--partitions", type=WholeNumber(), metavar="N", help="Partitions.  [default: num.partitions]"),
    click.option(
        "--rf",
        "replication_factor",
        type=WholeNumber(0, 32_767),
        metavar="N",
        help="Replication factor.  [default: default.replication.factor]",
    ),
    click.option(
        "--seed", type=WholeNumber(), default=0, show_default=True, help="The same seed makes the same placement."
    ),
    click.option(
        "--assignments",
        callback=replica_lists,
        metavar="JSON",
        help="The replicas of each partition instead, such as [[1,2],[2,3]].",
    ),
)
def create(
    whatif: WhatIf,
    name: str,
    partitions: int | None,
    replication_factor: int | None,
    seed: int,
    assignments: list[list[int]] | None,
) -> Outcome:
    """Create TOPIC, with its replicas placed as Kafka's automatic assignment does."""
    counts = [-1 if count is None else count for count in (partitions, replication_factor)]  # -1 as in CreateTopics
    return whatif.create(name, *counts, assignments=assignments, seed=seed)


@_operation(
    click.argument("name", metavar="TOPIC", shell_complete=complete_topics),
    click.option(
        "--partitions", type=WholeNumber(), required=True, metavar="N", help="New partition count of the topic."
    ),
    click.option(
        "--seed",
        type=WholeNumber(),
        default=0,
        show_default=True,
        help="The same seed makes the same placement; for KRaft only, whose controller draws random numbers.",
    ),
    click.option(
        "--assignments",
        callback=replica_lists,
        metavar="JSON",
        help="The replicas of each new partition instead, such as [[1,2],[2,3]].",
    ),
)
def create_partitions(
    whatif: WhatIf, name: str, partitions: int, seed: int, assignments: list[list[int]] | None
) -> Outcome:
    """Add partitions to TOPIC, with their replicas placed as Kafka's automatic assignment does."""
    return whatif.create_partitions(name, partitions, assignments=assignments, seed=seed)


@_operation(click.argument("topics", nargs=-1, required=True, metavar="TOPIC...", shell_complete=complete_topics))
def delete(whatif: WhatIf, topics: tuple[str, ...]) -> Outcome:
    """Delete topics: names, or patterns with * and ?."""
    return whatif.delete(named_topics(whatif.snapshot.topics.names, topics, "TOPIC"))


@_operation(*_BROKERS)
def fence(whatif: WhatIf, brokers: tuple[int, ...], racks: tuple[str, ...], together: bool) -> Outcome:
    """Fence brokers of a KRaft cluster whose processes keep running."""
    return whatif.fence(brokers, racks, together=together)


@_operation(*_BROKERS)
def unfence(whatif: WhatIf, brokers: tuple[int, ...], racks: tuple[str, ...], together: bool) -> Outcome:
    """Unfence brokers of a KRaft cluster."""
    return whatif.unfence(brokers, racks, together=together)


@_operation(
    click.option(
        "--broker", type=WholeNumber(), required=True, metavar="ID", shell_complete=complete_brokers, help="The broker."
    ),
    click.option(
        "--directory",
        "directories",
        multiple=True,
        required=True,
        metavar="ID",
        help="Id of a log directory, as in snapshot show --list brokers -o wide; may be repeated.",
    ),
)
def fail_directories(whatif: WhatIf, broker: int, directories: tuple[str, ...]) -> Outcome:
    """Fail log directories of a broker of a KRaft cluster."""
    from kframe.whatif.engines.kraft.settings import directory_id

    return whatif.fail_directories(broker, list(map(directory_id, directories)))


@_operation(
    click.argument("levels", nargs=-1, required=True, metavar="NAME=LEVEL..."),
    click.option("--unsafe", is_flag=True, help="Permit downgrades that lose metadata."),
    click.option(
        "--voters",
        multiple=True,
        callback=broker_ids,
        metavar=IDS,
        help="Controllers of the quorum, where SNAPSHOT does not show them: others are stale; may be repeated.",
    ),
)
def update_features(whatif: WhatIf, levels: tuple[str, ...], unsafe: bool, voters: tuple[int, ...]) -> Outcome:
    """Change feature levels of a KRaft cluster, such as eligible.leader.replicas.version=1.

    The output names the registered nodes that do not support a level, and the records and rules that change.
    """
    from kframe.whatif.engines.kraft.settings import feature_level

    requested = config_pairs(levels, "NAME=LEVEL")
    parsed = {name: feature_level(name, text) for name, text in requested.items()}
    return whatif.update_features(parsed, unsafe=unsafe, voters=voters)


@_operation(
    _BROKERS[0],
    click.option(
        "--stale-controllers",
        multiple=True,
        callback=broker_ids,
        metavar=IDS,
        help="Controllers that are gone, but registered; may be repeated.",
    ),
)
def unregister(whatif: WhatIf, brokers: tuple[int, ...], stale_controllers: tuple[int, ...]) -> Outcome:
    """Remove registrations of brokers and controllers of a KRaft cluster."""
    return whatif.unregister(brokers, stale_controllers)
