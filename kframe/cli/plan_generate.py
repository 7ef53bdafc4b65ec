"""``kframe plan generate``: its report, and a picture of the brokers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from kframe.cli.exits import FAILED
from kframe.cli.inputs import INPUT, check_distinct
from kframe.cli.options import collected
from kframe.cli.output import (
    BadInput,
    OutputTable,
    echo_more,
    emit_data,
    emit_heading,
    emit_record,
    emit_rows,
    emit_section,
    plain,
)
from kframe.cli.report import check_page, force_option, report_option, write_page
from kframe.model.texts import duration_text

if TYPE_CHECKING:
    from kframe.plans.generate import PlanRequest
    from kframe.plans.generate.document import DivertedReplica, GeneratedPlanDocument, UnmetPartition
    from kframe.snapshot import Snapshot
    from kframe.snapshot.files import InputFile

#: Characters of the longest bar.
BAR_WIDTH: Final = 24
_BROKERS: Final = (
    "broker_id",
    "rack",
    "received",
    "replicas_before",
    "replicas_after",
    "replicas",
    "leaders_before",
    "leaders_after",
    "leaders",
)
_STDOUT: Final = "-"


weights_option: Final = click.option(
    "--weights",
    type=INPUT,
    metavar="FILE",
    help="Sizes: Parquet, CSV or JSON with topic, partition and bytes, or the output of kafka-log-dirs --describe.",
)


@dataclass(frozen=True, slots=True)
class PlanOutput:
    """Where the plan is written: a file, standard output (``-``) or nowhere; and the file of the page about it.

    ``force`` replaces files.
    """

    out: str | None
    page: Path | None
    force: bool

    @property
    def on_stdout(self) -> bool:
        """Whether the plan, and not the report, is the output."""
        return self.out == _STDOUT

    def check(self, inputs: Iterable[tuple[str, InputFile | str | None]]) -> None:
        """Raise InputError or UsageError unless the plan and the page may be written to their files.

        ``inputs`` are the files that the command reads, each with the name of its option.
        """
        from kframe.whatif.files import check_file

        if self.out == "":
            raise BadInput("--out: found an empty name, expected a path, or - for standard output")
        check_distinct([*inputs, ("--out", self.out), ("--report", self.page)])
        check_page(self.page, force=self.force)
        if self.out is not None and not self.on_stdout:
            check_file(Path(self.out), force=self.force)

    def write(self, lines: Iterable[str]) -> None:
        """Write the plan, if it is to be written. Raises InputError if the file cannot be written."""
        from kframe.whatif.files import replacing

        if self.out is None:
            return
        if self.on_stdout:
            for line in lines:
                click.echo(line, nl=False)
            return

        with replacing(Path(self.out)) as new, new.open("w", encoding="utf-8") as file:
            file.writelines(lines)


#: Adds options to a command, which receives them as ``writing``.
out_options: Final = collected(
    "writing",
    PlanOutput,
    click.option("--out", metavar="FILE", help="Write the plan, Kafka's reassignment JSON; - is stdout."),
    report_option,
    force_option,
)


def generate(snapshot: Snapshot, request: PlanRequest, writing: PlanOutput, output: str, limit: int) -> int:
    """Make a plan, write it and the page about it, and print its report. Return the exit code."""
    from kframe.plans.check.resolve import resolve_plan
    from kframe.plans.file.write import plan_lines
    from kframe.plans.generate import plan
    from kframe.plans.generate.document import GeneratedBroker
    from kframe.plans.generate.page import render_page
    from kframe.plans.generate.report import SCHEMA, report_document
    from kframe.plans.generate.review import PlanReview

    proposal = plan(snapshot, request)
    document = report_document(proposal)
    if writing.out is not None or writing.page is not None:
        generated_plan = proposal.plan
        checked = resolve_plan(generated_plan, snapshot, one_rack=request.one_rack)
        lines = list(plan_lines(generated_plan, checked.stamp()))
        writing.write(lines)
        if writing.page is not None:
            review = PlanReview.of_proposal(proposal, checked)
            write_page(writing.page, render_page(review, "".join(lines).encode()))
    if writing.on_stdout:
        _emit_messages(document, limit)
    elif not emit_data(SCHEMA, document, GeneratedBroker.__struct_fields__, document.brokers, output):
        _emit_tables(document, output, limit)
    elif output in ("csv", "jsonl"):
        _emit_messages(document, limit)
    return 0 if proposal.meets_request else FAILED


def _emit_messages(document: GeneratedPlanDocument, limit: int) -> None:
    """Print the summary and what the reader must know on standard error, beside the plan on standard output."""
    click.echo(document.summary, err=True)
    for text in document.warnings:
        click.echo(f"warning: {text}", err=True)
    for lines in (list(map(_unmet_line, document.unmet)), list(map(_diverted_line, document.diverted))):
        for line in lines[:limit]:
            click.echo(line, err=True)
        if len(lines) > limit:
            click.echo(f"and {len(lines) - limit:,} more", err=True)


def _unmet_line(row: UnmetPartition) -> str:
    return f"{row.topic}-{row.partition} stays on {','.join(map(str, row.replicas))}: {row.reason}"


def _diverted_line(row: DivertedReplica) -> str:
    receivers = ",".join(map(str, row.receivers))
    return f"{row.topic}-{row.partition} goes to {receivers} instead of {row.replacement}: {row.reason}"


def _emit_tables(document: GeneratedPlanDocument, output: str, limit: int) -> None:
    emit_heading(document.summary, output)
    fields, racks = plain(document), document.racks
    crowded = "unknown"
    if racks.crowded_after is not None:
        crowded = f"{racks.crowded_before:,} before, {racks.crowded_after:,} after"
    emit_record(
        "",
        {
            "partitions": {
                name: f"{count:,}" for name, count in fields["partitions"].items() if count or name == "changed"
            },
            "leaders that change": document.moves.leaders,
            **({} if document.moves.seconds is None else {"expected duration": duration_text(document.moves.seconds)}),
            "targets met": document.targets_met,
            **{name.replace("_", " "): fields[name] for name in ("goal", "cost_terms") if fields[name]},
            "partitions uneven over racks": crowded,
            **({"warning": document.warnings} if document.warnings else {}),
            "note": document.notes,
        },
        output,
    )
    emit_section(document.unmet, output, limit=limit)
    emit_section(document.diverted, output, limit=limit)
    rows = [{"load": name.replace("_", " "), **skew} for name, skew in fields["skew"].items()]
    emit_section(rows, output)
    click.echo()
    brokers = fields["brokers"]
    known = [kind for kind in ("bytes", "goal") if brokers[0][f"{kind}_before"] is not None]
    kinds = ["replicas", "leaders", *known]
    maxima = {kind: max(max(row[f"{kind}_before"], row[f"{kind}_after"]) for row in brokers) for kind in kinds}
    columns = (*_BROKERS, *(name for kind in known for name in (f"{kind}_before", f"{kind}_after", kind)))
    rows_with_bars = (
        {**row, **{kind: _bar(row[f"{kind}_before"], row[f"{kind}_after"], maxima[kind]) for kind in kinds}}
        for row in brokers[:limit]
    )
    emit_rows(OutputTable("", columns, list(rows_with_bars)), output)
    echo_more(len(brokers) - limit, "data has them all")


def _bar(before: int, after: int, maximum: int) -> str:
    """A bar of the load: unchanged, removed (``-``) or added (``+``)."""
    stays, end = (round(BAR_WIDTH * load / max(maximum, 1)) for load in sorted((before, after)))
    return "█" * stays + ("+" if after > before else "-") * (end - stays) or "-"
