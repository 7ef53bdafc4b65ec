"""``kframe plan generate``: the options of a plan's goals, its report, and a picture of the brokers."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from kframe.cli.exits import FAILED
from kframe.cli.inputs import INPUT, check_distinct
from kframe.cli.numbers import (
    IDS,
    IDS_MAX,
    DecimalNumber,
    WholeNumber,
    broker_ids,
    parse_count,
    parse_decimal,
    parse_ids,
)
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
    with_options,
)
from kframe.cli.studies import PATH
from kframe.cli.topics import PATTERNS, TOPICS, topic_names
from kframe.model.whole_numbers import parse_whole

if TYPE_CHECKING:
    from kframe.cli.plugins import PluginSettings
    from kframe.plans.generate import PlanRequest
    from kframe.plans.generate.document import DivertedReplica, GeneratedPlanDocument, UnmetPartition
    from kframe.plans.generate.review import PlanReview
    from kframe.snapshot import Snapshot
    from kframe.snapshot.files import InputFile

#: Characters of the longest bar.
BAR_WIDTH: Final = 24
_BROKERS: Final = (
    "broker_id", "rack", "received", "replicas_before", "replicas_after", "replicas", "leaders_before", "leaders_after",
    "leaders",
)  # fmt: skip
_STDOUT: Final = "-"


def pairs(
    expected: str, number: Callable[[str], Any]
) -> Callable[[click.Context, click.Parameter, Any], dict[str, Any]]:
    """Callback of an option that is repeated or separated by commas: texts such as ``KEY=VALUE``, by key.

    A key that is given twice is refused. ``number`` raises ValueError.
    """

    def parse(_ctx: click.Context, _option: click.Parameter, values: Iterable[str]) -> dict[str, Any]:
        parsed: dict[str, Any] = {}
        for text in (part for value in values for part in value.split(",")):
            key, equals, value = text.rpartition("=")
            if equals and not key:
                raise click.BadParameter(f"found {text!r}, expected {expected}")
            if key in parsed:
                raise click.BadParameter(f"found {key or 'a value for all'} twice, expected it once")
            try:
                parsed[key] = number(value)
            except ValueError as problem:
                raise click.BadParameter(f"found {text!r}, expected {expected}: {problem}") from problem
        return parsed

    return parse


def _broker_racks(_ctx: click.Context, _option: click.Parameter, values: Iterable[str]) -> dict[int, str | None]:
    """Callback of ``--add-brokers``: ``7,8-9:rack-a`` as {7: None, 8: "rack-a", 9: "rack-a"}."""
    brokers: dict[int, str | None] = {}
    for text in (part for value in values for part in value.split(",")):
        ids, colon, rack = text.partition(":")
        if colon and not rack:
            raise click.BadParameter(f"found {text!r} without a rack, expected ID or ID:RACK")
        try:
            brokers_of_text = parse_ids(ids)
        except ValueError as problem:
            raise click.BadParameter(f"found {text!r}, expected broker ids such as 7, 7-9 or 7:rack-a") from problem
        for broker_id in brokers_of_text:
            if broker_id in brokers:
                raise click.BadParameter(f"found broker {broker_id} twice, expected each broker once")
            brokers[broker_id] = rack or None
        if len(brokers) > IDS_MAX:
            raise click.BadParameter(f"found {len(brokers)} ids, expected at most {IDS_MAX}")
    return brokers


def goal_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of a ``PlanRequest`` to a command, as ``goals``: its keywords except the weights."""

    @functools.wraps(command)
    def with_goals(
        *args: Any, add_brokers: dict[int, str | None], replace: dict[str, int], replication_factors: dict[str, int],
        broker_caps: dict[str, int], capacities: dict[str, float], **kwargs: Any,
    ) -> Any:  # fmt: skip
        names = ("remove_brokers", "evacuate_racks", "fix_racks", "rebalance", "leaders_only", "topics",
                 "exclude_topics", "exclude_brokers", "tolerance", "seed", "exact")  # fmt: skip
        goals = {name: kwargs.pop(name) for name in names}
        goals |= {
            "add_brokers": tuple(add_brokers),
            "racks": {broker_id: rack for broker_id, rack in add_brokers.items() if rack is not None},
            "replace": _replacements(replace),
            "replication_factors": replication_factors,
            "broker_caps": {None: broker_caps.pop("")} if "" in broker_caps else {},
            "capacities": by_id("--capacity", capacities),
        }
        goals["broker_caps"] |= by_id("--broker-cap", broker_caps)
        if "" in replication_factors:
            raise BadInput("--replication-factor: found no topic, expected TOPIC=N")
        return command(*args, goals=goals, **kwargs)

    return with_options(
        with_goals,
        click.option("--remove-brokers", multiple=True, callback=broker_ids, metavar=IDS,
                     help="Move all replicas off these brokers; may be repeated."),
        click.option("--add-brokers", multiple=True, callback=_broker_racks, metavar="ID[-ID][:RACK],...",
                     help="Give these brokers their share of the replicas; may be repeated."),
        click.option("--replace", multiple=True, callback=pairs("OLD=NEW broker ids", parse_count), metavar="OLD=NEW",
                     help="Give all replicas of a broker to another; may be repeated."),
        click.option("--evacuate-rack", "evacuate_racks", multiple=True, metavar="RACK",
                     help="Move all replicas off the brokers of a rack; may be repeated."),
        click.option("--replication-factor", "replication_factors", multiple=True, metavar="TOPIC=N",
                     callback=pairs("TOPIC=N", parse_count),
                     help="Change the replication factor of topics; may be repeated."),
        click.option("--fix-racks", is_flag=True, help="Spread partitions over as many racks as they can span."),
        click.option("--rebalance", is_flag=True, help="Give every broker its share of replicas and leaders."),
        click.option("--leaders-only", is_flag=True, help="Balance preferred leaders by order; move no data."),
        click.option("--topics", multiple=True, callback=topic_names, metavar=TOPICS,
                     help=f"Plan only these topics; {PATTERNS}."),
        click.option("--exclude-topics", multiple=True, callback=topic_names, metavar=TOPICS,
                     help=f"Leave these topics out; {PATTERNS}."),
        click.option("--exclude-brokers", multiple=True, callback=broker_ids, metavar=IDS,
                     help="Brokers that receive no replicas, and that a rebalance takes none from; may be repeated."),
        click.option("--broker-cap", "broker_caps", multiple=True, metavar="[ID[-ID]=]N",
                     callback=pairs("N or ID=N", parse_count), help="The most replicas of a broker; may be repeated."),
        click.option("--capacity", "capacities", multiple=True, metavar="ID[-ID]=NUMBER",
                     callback=pairs("ID=NUMBER", parse_decimal),
                     help="Relative capacity of a broker; may be repeated.  [default: 1]"),
        click.option("--tolerance", type=DecimalNumber(0, 100), default=1.0, show_default=True, metavar="PERCENT",
                     help="Deviation from the share of bytes that a rebalance with --weights allows."),
        click.option("--exact", is_flag=True, help="Solve a small problem to the optimum (needs highspy)."),
        click.option("--seed", type=WholeNumber(), default=0, show_default=True,
                     help="Order in which partitions are considered."),
    )  # fmt: skip


def by_id(option: str, values: dict[str, Any]) -> dict[int, Any]:
    """The pairs by broker id; a key may be a range. Raises BadInput for another key, and for an id in two keys."""
    pairs_by_id: dict[int, Any] = {}
    for key, value in values.items():
        try:
            ids = parse_ids(key)
        except ValueError as problem:
            raise BadInput(f"{option}: found {key!r}, expected a broker id, or a range such as 1-3") from problem
        for broker_id in ids:
            if broker_id in pairs_by_id:
                raise BadInput(f"{option}: found broker {broker_id} twice, expected it once")
            pairs_by_id[broker_id] = value
        if len(pairs_by_id) > IDS_MAX:
            raise BadInput(f"{option}: found {len(pairs_by_id)} ids, expected at most {IDS_MAX}")
    return pairs_by_id


def _replacements(values: dict[str, int]) -> dict[int, int]:
    """The brokers of ``--replace``: each replaced by another. Raises BadInput."""
    replacements: dict[int, int] = {}
    for old, new in values.items():
        broker_id = parse_whole(old)
        if broker_id is None:
            raise BadInput(f"--replace: found {old!r}, expected a broker id")
        if broker_id in replacements:
            raise BadInput(f"--replace: found broker {broker_id} twice, expected it once")
        replacements[broker_id] = new
    return replacements


def term_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``--goal`` and ``--cost`` to a command. It receives them as ``goal`` and ``cost_terms``, names."""
    return with_options(
        command,
        click.option("--goal", metavar="NAME", help="Balance brokers by the goal of a plugin."),
        click.option("--cost", "cost_terms", multiple=True, metavar="NAME",
                     help="Cost term of a plugin that adds to the cost of moves; may be repeated."),
    )  # fmt: skip


def chosen_terms(plugins: PluginSettings, goal: str | None, cost_terms: Iterable[str]) -> dict[str, Any]:
    """The fields of a ``PlanRequest`` for names of plugins; no plugin is loaded if there is none. Raises BadInput."""
    from kframe.errors import PluginError

    names = tuple(dict.fromkeys(cost_terms))
    if goal is None and not names:
        return {}
    try:
        registry = plugins.registry()
        return {
            "goal": None if goal is None else registry.goal(goal),
            "cost_terms": tuple(registry.cost_term(name) for name in names),
        }
    except PluginError as error:
        raise BadInput(str(error)) from error


weights_option: Final = click.option(
    "--weights",
    type=INPUT,
    metavar="FILE",
    help="Sizes: Parquet, CSV or JSON with topic, partition and bytes, or the output of kafka-log-dirs --describe.",
)


force_option: Final = click.option("--force", is_flag=True, help="Replace an existing FILE.")
report_option: Final = click.option(
    "--report", "page", metavar="FILE", type=PATH, help="Also write an HTML report for the review of the plan."
)


@dataclass(frozen=True, slots=True)
class PlanOutput:
    """Where the plan is written: a file, standard output (``-``) or nowhere; and the file of the page about it.

    ``force`` replaces files.
    """

    target: str | None
    page: Path | None
    force: bool

    @property
    def on_stdout(self) -> bool:
        """Whether the plan, and not the report, is the output."""
        return self.target == _STDOUT

    def check(self, inputs: Iterable[tuple[str, InputFile | str | None]]) -> None:
        """Raise InputError or UsageError unless the plan and the page may be written to their files.

        ``inputs`` are the files that the command reads, each with the name of its option.
        """
        from kframe.whatif.files import check_file

        if self.target == "":
            raise BadInput("--out: found an empty name, expected a path, or - for standard output")
        check_distinct([*inputs, ("--out", self.target), ("--report", self.page)])
        if self.page is not None:
            check_file(self.page, force=self.force)
        if self.target is not None and not self.on_stdout:
            check_file(Path(self.target), force=self.force)

    def write(self, lines: Iterable[str]) -> None:
        """Write the plan, if it is to be written. Raises InputError if the file cannot be written."""
        from kframe.whatif.files import replacing

        if self.target is None:
            return
        if self.on_stdout:
            for line in lines:
                click.echo(line, nl=False)
            return

        with replacing(Path(self.target)) as new, new.open("w", encoding="utf-8") as file:
            file.writelines(lines)


def out_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``--out``, ``--report`` and ``--force`` to a command. It receives a ``PlanOutput`` as ``writing``."""

    @functools.wraps(command)
    def with_output(*args: Any, out: str | None, page: Path | None, force: bool, **kwargs: Any) -> Any:
        return command(*args, writing=PlanOutput(out, page, force), **kwargs)

    return with_options(
        with_output,
        click.option("--out", metavar="FILE", help="Write the plan, Kafka's reassignment JSON; - is stdout."),
        report_option,
        force_option,
    )


def generate(snapshot: Snapshot, request: PlanRequest, writing: PlanOutput, output: str, limit: int) -> int:
    """Make a plan, write it and the page about it, and print its report. Return the exit code."""
    from kframe.errors import PluginError
    from kframe.plans.check.resolve import resolve_plan
    from kframe.plans.file.write import plan_lines
    from kframe.plans.generate import plan
    from kframe.plans.generate.document import GeneratedBroker
    from kframe.plans.generate.report import SCHEMA, report_document
    from kframe.plans.generate.review import PlanReview

    try:
        proposal = plan(snapshot, request)
    except PluginError as error:
        raise BadInput(str(error)) from error
    document = report_document(proposal)
    if writing.target is not None or writing.page is not None:
        generated_plan = proposal.plan
        checked = resolve_plan(generated_plan, snapshot)
        lines = list(plan_lines(generated_plan, checked.stamp()))
        writing.write(lines)
        if writing.page is not None:
            write_page(writing.page, PlanReview.of_proposal(proposal, checked), "".join(lines).encode())
    if writing.on_stdout:
        _emit_messages(document, limit)
    elif not emit_data(SCHEMA, document, GeneratedBroker.__struct_fields__, document.brokers, output):
        _emit_tables(document, output, limit)
    elif output in ("csv", "jsonl"):
        _emit_messages(document, limit)
    return 0 if proposal.meets_request else FAILED


def write_page(path: Path, review: PlanReview, plan_file: bytes) -> None:
    """Write the page about a plan. Raises InputError if the file cannot be written."""
    from kframe.plans.generate.page import render_page
    from kframe.whatif.files import replacing

    page = render_page(review, plan_file)
    with replacing(path) as new:
        new.write_text(page, encoding="utf-8")


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
    emit_record("", {
        "partitions": {
            name: f"{count:,}" for name, count in fields["partitions"].items() if count or name == "changed"
        },
        "leaders that change": document.moves.leaders,
        "targets met": document.targets_met,
        **{name.replace("_", " "): fields[name] for name in ("goal", "cost_terms") if fields[name]},
        "partitions in too few racks": crowded,
        **({"warning": document.warnings} if document.warnings else {}),
        "note": document.notes,
    }, output)  # fmt: skip
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
