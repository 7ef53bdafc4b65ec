"""``kframe explain``: why a partition has its leader, and why the election did not choose the other replicas."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from kframe.cli.completion import complete_brokers, complete_partitions
from kframe.cli.findings import emit_mode, emit_release
from kframe.cli.numbers import IDS, broker_ids
from kframe.cli.output import (
    OutputTable,
    echo_text,
    emit_assumptions,
    emit_heading,
    emit_record,
    emit_rows,
    output_option,
)
from kframe.cli.report import check_page, force_option, report_option, write_shown
from kframe.cli.studies import StudySettings, study_options

if TYPE_CHECKING:
    from kframe.whatif.results.explanation import Decision


@click.command("explain")
@study_options
@click.argument("name", metavar="TOPIC-PARTITION", shell_complete=complete_partitions)
@click.option(
    "--fail",
    multiple=True,
    callback=broker_ids,
    metavar=IDS,
    shell_complete=complete_brokers,
    help="Explain it after these brokers fail together; may be repeated.",
)
@report_option
@force_option
@output_option
def command(
    study: StudySettings, name: str, fail: tuple[int, ...], page: Path | None, force: bool, output: str
) -> None:
    """Explain which rule chose the leader of a partition in SNAPSHOT, and why it rejected the other replicas."""
    from kframe.model.topic_partitions import parse_topic_partition

    check_page(page, force=force)
    topic, partition = parse_topic_partition("TOPIC-PARTITION", name)
    whatif = study.open()
    explanation = whatif.explain(topic, partition, fail)
    write_shown(page, explanation)
    emit_mode(explanation.rules, output)
    emit_release(explanation.release, output)
    if output not in ("table", "wide"):
        emit_record("kframe.explanation/v1", explanation, output)
        return
    emit_heading(f"{topic}-{partition}: replicas {_ids(explanation.replicas)}", output)
    for decision in (explanation.before, *explanation.elections):
        _emit_decision(decision, output)
    if fail:
        leader = "no leader" if explanation.leader is None else f"led by broker {explanation.leader}"
        if not explanation.elections:
            echo_text(
                f"\nafter broker{'s' if len(fail) > 1 else ''} {_ids(fail)} failed: no election was needed", output
            )
        click.echo(f"\nfinal state: {leader}, ISR {_ids(explanation.isr)}")
    emit_assumptions(explanation.assumptions, output)


def _emit_decision(decision: Decision, output: str) -> None:
    click.echo()
    emit_heading("present state" if decision.step is None else f"after {decision.step}", output)
    echo_text(decision.text, output)
    echo_text(f"rule: {decision.rule}" + (f" (selector {decision.selector})" if decision.selector else ""), output)
    click.echo(f"ISR: {_ids(decision.isr)}")
    if decision.elr is not None and decision.last_known_elr is not None:
        click.echo(f"ELR: {_ids(decision.elr)}; last-known ELR: {_ids(decision.last_known_elr)}")
    columns = ("position", "broker_id", "outcome", "reason")
    emit_rows(OutputTable("", columns, decision.candidates), output)


def _ids(broker_ids: tuple[int, ...]) -> str:
    return ",".join(map(str, broker_ids)) or "none"
