"""Print the outcome of a what-if as tables or as data."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import click

from kframe.cli.output import (
    Fields,
    OutputTable,
    echo_more,
    echo_text,
    emit_assumptions,
    emit_heading,
    emit_json,
    emit_record,
    emit_rows,
    emit_section,
    plain,
)
from kframe.model.texts import counted

if TYPE_CHECKING:
    from kframe.whatif import Impact, Outcome, WhatIf
    from kframe.whatif.document import ResponseRecord, WhatIfDocument
    from kframe.whatif.results.reassignment_result import ReassignmentRecord

_PARTITION_COLUMNS: Final = (
    "topic",
    "partition",
    "replicas_before",
    "replicas_after",
    "leader_before",
    "leader_after",
    "isr_before",
    "isr_after",
    "elr_before",
    "elr_after",
    "last_known_elr_before",
    "last_known_elr_after",
    "leader_epoch_before",
    "leader_epoch_after",
    "partition_epoch_before",
    "partition_epoch_after",
    "went_offline",
    "came_online",
    "unclean",
)
_PARTITION_WIDE: Final = frozenset(
    {
        "leader_epoch_before",
        "leader_epoch_after",
        "partition_epoch_before",
        "partition_epoch_after",
        "came_online",
        "unclean",
    }
)
#: Columns that only KRaft clusters have.
_ELR: Final = ("elr_before", "elr_after", "last_known_elr_before", "last_known_elr_after")
#: Shown in plain tables only where the operation changes assignments.
_PLACEMENT: Final = frozenset({"replicas_before", "replicas_after"})
_PLACING_VERBS: Final = frozenset({"reassign", "create", "create-partitions", "delete"})
_REASSIGNMENT_BROKERS: Final = (
    "broker_id",
    "copied",
    "deleted",
    "replicas_before",
    "replicas_peak",
    "replicas_after",
    "leaders_before",
    "leaders_gained",
    "leaders_after",
)
#: Refused objects that an error names.
_NAMED: Final = 5
_STATES: Final = {(True, True): "up", (True, False): "down", (False, True): "started", (False, False): "down"}


def emit_outcome(outcome: Outcome, whatif: WhatIf, output: str, limit: int) -> bool:
    """Print an outcome. Data has every changed partition. CSV and JSON lines have nothing else.

    Returns whether the controller would refuse a part of the operation, which tables say in their headline.
    """
    from kframe.whatif.document import SCHEMA, plain_document, summary_document

    document = summary_document(outcome, whatif.snapshot, whatif.cluster)
    if output in ("csv", "jsonl"):
        emit_rows(OutputTable(SCHEMA, _partition_columns(outcome), outcome.changes.records()), output)
        if not document.changed:
            click.echo(_nothing_changes(document), err=True)
        return _report_refusal(document)
    if output == "json":
        emit_json(plain_document(document), "partitions", outcome.changes.records())
    elif output == "yaml":
        emit_record(SCHEMA, {**plain_document(document), "partitions": list(outcome.changes.records())}, output)
    else:
        _emit_tables(outcome, document, output, limit)
        return bool(document.refusals())
    return _report_refusal(document)


def _report_refusal(document: WhatIfDocument) -> bool:
    """Report a refusal in addition to the data; return whether there is one."""
    text = document.refusal_text()
    if text:
        click.echo(f"error: {document.operation.text}: {text}: {_refused_objects(document)}", err=True)
    return bool(text)


def _refused_objects(document: WhatIfDocument) -> str:
    """The first refused partitions or topics, with the reasons."""
    if document.reassignment:
        named = [
            f"{row.topic}-{row.partition} ({row.reason})"
            for row in document.reassignment.problems
            if row.status == "refused"
        ]
    else:
        named = [name for response in document.responses() for name in response.named]
    return _first_names(named, sum(document.refusals().values()), "; ")


def _first_names(names: list[str], count: int, separator: str) -> str:
    """The first names of ``count`` objects, of which a document may name fewer."""
    omitted = max(count, len(names)) - min(len(names), _NAMED)
    return separator.join(names[:_NAMED]) + (f" and {omitted:,} more" if omitted > 0 else "")


def _emit_tables(outcome: Outcome, document: WhatIfDocument, output: str, limit: int) -> None:
    from kframe.whatif.results.brokers import BrokerRecord

    source = document.snapshot
    operation = ", ".join(filter(None, (document.operation.text, document.refusal_text())))
    emit_heading(f"{operation}: {counted(source.partitions, 'partition')} of {source.name or 'the snapshot'}", output)
    if not document.changed:
        echo_text(_nothing_changes(document), output)
    emit_impact(document.impact, output)
    emit_section(list(_condition_rows(document)), output)
    emit_section(list(_skew_rows(document)), output)
    emit_section(list(_timeline_rows(document)), output)
    click.echo()
    placing = document.operation.verb in _PLACING_VERBS
    hidden = frozenset[str]() if placing else _PLACEMENT
    states = _STATES | ({(True, False): "fenced"} if source.mode == "kraft" else {})
    brokers = [{**plain(row), "state": states[row.registered_before, row.registered_after]} for row in document.brokers]
    columns = ("broker_id", "rack", "state", *BrokerRecord.__struct_fields__[4:])
    requests = columns[columns.index("requests") :]  # a KRaft controller sends none
    visible = columns if outcome.traffic else [name for name in columns if name not in requests]
    emit_rows(OutputTable("", visible, brokers, hidden | {*requests[2:]}), output)
    emit_section(outcome.records or (), output)
    if document.reassignment:
        emit_reassignment(document.reassignment, output, limit)
    emit_section(document.topics or (), output)
    if outcome.feature_update is not None:
        emit_section(outcome.feature_update.blockers, output)
        emit_section(outcome.feature_update.records, output)
        emit_section(outcome.feature_update.rules, output)
    elr = outcome.changes.elr_before is not None and "ELR on" in document.rules
    _emit_partitions(outcome, output, limit, _PARTITION_WIDE | hidden | (frozenset() if elr else frozenset(_ELR)))
    for text in document.notes:
        echo_text(f"note: {text}", output)
    emit_assumptions(document.assumptions, output)
    if outcome.bytes_unknown is not None:
        echo_text(f"bytes unknown: {outcome.bytes_unknown}", output)


def _nothing_changes(document: WhatIfDocument) -> str:
    """One line for an operation without any effect. Errors in the controller's response are the reason."""
    responses = map(_response_text, document.responses())
    return "; ".join(["nothing changes", *(text for text in responses if text != "response: NONE")])


def _condition_rows(document: WhatIfDocument) -> Iterator[Fields]:
    from kframe.whatif import CONDITIONS

    for name in CONDITIONS:
        before, after = (getattr(health, name) for health in (document.before, document.after))
        yield {"partitions": name.replace("_", " "), "before": before, "after": after}


def _skew_rows(document: WhatIfDocument) -> Iterator[Fields]:
    for load in ("leader", "replica"):
        for when, health in (("before", document.before), ("after", document.after)):
            skew = plain(getattr(health, f"{load}_skew"))
            yield {"load": f"{load}s {when}", "brokers": health.registered_brokers, **skew}


def _timeline_rows(document: WhatIfDocument) -> Iterator[Fields]:
    for number, step in enumerate(document.steps, 1):
        texts = [timeline_event.text for timeline_event in step.timeline]
        if step.response is not None:
            texts.append(_response_text(step.response))
        for text in texts or ["nothing is changed or sent"]:
            yield {"step": number, "name": step.name, "what": text}


def _response_text(response: ResponseRecord) -> str:
    parts = [response.error]
    counts: dict[str, int] = response.topics or response.partitions or {}
    if isinstance(response.remaining, int):
        parts.append(f"remaining: {counted(response.remaining, 'partition')}")
    parts += [f"{count:,} {error}" for error, count in counts.items()]
    if response.named:
        errors = sum(count for error, count in counts.items() if error != "NONE")
        parts.append(_first_names(response.named, errors, ", "))
    return "response: " + "; ".join(parts)


def _partition_columns(outcome: Outcome) -> tuple[str, ...]:
    known = outcome.changes.lists()
    return tuple(name for name in _PARTITION_COLUMNS if name not in _ELR or name in known)


def _emit_partitions(outcome: Outcome, output: str, limit: int, wide: frozenset[str]) -> None:
    if len(outcome.changes) and limit:
        click.echo()
        leaders = ("leader_before", "leader_after")
        rows = (
            {**row, **{name: "none" if row[name] == -1 else row[name] for name in leaders}}
            for row in outcome.changes.records(limit)
        )
        emit_rows(OutputTable("", _partition_columns(outcome), rows, wide), output)
    echo_more(len(outcome.changes) - limit, "-o json, csv and jsonl list them all")


def emit_impact(impact: Impact, output: str) -> None:
    """The impact of an operation; zeros only in wide output."""
    fields = plain(impact).items()
    emit_record("", {key: value for key, value in fields if output == "wide" or value != 0}, output)


def emit_reassignment(record: ReassignmentRecord, output: str, limit: int) -> None:
    """The outcome of a reassignment: totals, changes by broker and topic, and problems."""
    click.echo()
    totals = {name: value for name, value in plain(record).items() if not isinstance(value, list)}
    emit_record("", totals, output)
    where = "-o json lists them all"
    emit_section(record.brokers, output, _REASSIGNMENT_BROKERS)
    emit_section(record.topics, output, limit=limit, where=where)
    emit_section(record.problems, output, limit=limit, where=where)
