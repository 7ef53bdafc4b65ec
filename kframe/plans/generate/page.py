"""A page about a plan that a reviewer signs: self-contained HTML without scripts, below 5 MB for any plan."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from itertools import islice
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import asdict

from kframe import __version__
from kframe.model.texts import counted
from kframe.plans.generate.page_parts import STYLE, bars, facts, table, table_row, text
from kframe.plans.generate.review import PlanReview

#: Most rows of each table but that of the moves.
_BROKERS_MAX: Final = 2_000
_PICTURED_MAX: Final = 400
_FINDINGS_MAX: Final = 500
_TOP: Final = 20
#: Most bytes of the table of moves, and rows of each of its pages.
_MOVES_BYTES: Final = 2_500_000
_PAGE_ROWS: Final = 500
_LOADS: Final = ("replicas", "leaders", "bytes")
_FINDING: Final = ("severity", "check", "topic", "partition", "error", "detail")
_MOVE: Final = ("topic", "partition", "change", "replicas", "target", "adding", "removing")


def render_page(review: PlanReview, plan_file: bytes) -> str:
    """The page about a plan whose file has the content ``plan_file``. Equal arguments give equal pages."""
    checked = review.checked
    title = f"Reassignment plan for {checked.snapshot.cluster_id or checked.snapshot.source.name or 'a cluster'}"
    sections = "\n".join(
        f"<section><h2>{text(heading)}</h2>\n{content}\n</section>"
        for heading, content in (
            ("Identity", _identity(review, plan_file)),
            ("Request", facts("request", review.request_rows())),
            ("Result", _result(review)),
            ("Brokers", _loads("brokers", review.brokers(), "broker_id")),
            ("Racks", _racks(review)),
            ("Largest moves", _largest(review)),
            ("Findings", _findings(review)),
            ("Partitions", _moves(review)),
            ("Decision", _decision()),
        )
    )
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
        f"<title>{text(title)}</title><style>{STYLE}</style></head>\n"
        f"<body><h1>{text(title)}</h1>\n{sections}\n</body></html>\n"
    )


def _identity(review: PlanReview, plan_file: bytes) -> str:
    checked, snapshot = review.checked, review.checked.snapshot
    size = ", ".join(
        (
            counted(len(snapshot.brokers), "broker"),
            counted(len(snapshot.topics), "topic"),
            counted(len(snapshot), "partition"),
        )
    )
    return facts("identity", [
        ("plan file SHA-256", hashlib.sha256(plan_file).hexdigest()),
        ("partitions in the plan", len(checked.plan)),
        ("snapshot", f"{snapshot.source.name} ({snapshot.source.format})"),
        ("snapshot size", size),
        ("snapshot digest", snapshot.digest()),
        ("assignments of the plan's partitions", checked.stamp().assignments),
        ("checked by", checked.rules),
        ("kframe", __version__),
    ])  # fmt: skip


def _result(review: PlanReview) -> str:
    generated = review.generated
    if generated is None:
        moves = f"{counted(int(review.copied.sum()), 'replica')} copied"
        return f'<p class="summary" id="summary">{moves}</p><p class="note">No lower bound: kframe did not make it.</p>'
    warnings = "".join(f'<li class="warning">{text(warning)}</li>' for warning in generated.warnings)
    notes = warnings + "".join(f"<li>{text(note)}</li>" for note in generated.notes)
    copied = generated.moves
    numbers = facts("moves", [
        ("replicas copied", copied.replicas),
        (f"cost in {copied.unit}", copied.cost),
        *((("goal", generated.goal),) if generated.goal else ()),
        *((("cost terms", ", ".join(generated.cost_terms)),) if generated.cost_terms else ()),
        (f"lower bound in {copied.unit}", copied.bound),
        ("leaders that change", copied.leaders),
        ("targets met", generated.targets_met),
        *((f"partitions {name}", count) for name, count in asdict(generated.partitions).items()),
    ])  # fmt: skip
    return (
        f'<p class="summary" id="summary">{text(generated.summary)}</p>'
        f'<p id="proof">{text(generated.proof)}</p>{numbers}<ul id="notes">{notes}</ul>'
        f"{_exceptions('unmet', generated.unmet)}{_exceptions('diverted', generated.diverted)}"
    )


def _exceptions(name: str, rows: Sequence[Struct]) -> str:
    """A table of partitions that are not as requested; nothing if there are none."""
    if not rows:
        return ""
    listed = list(map(asdict, rows[:_FINDINGS_MAX]))
    note = _omission_note(len(rows), len(listed), "listed", "the first of the cluster")
    return f"{table(name, list(listed[0]), listed)}{note}"


def _loads(name: str, rows: Sequence[dict[str, Any]], key: str) -> str:
    """Pictures and a table of brokers or racks; those with the most copies if there are too many."""
    kinds = [kind for kind in _LOADS if rows and rows[0][f"{kind}_before"] is not None]
    pictured, listed = _busiest(rows, _PICTURED_MAX), _busiest(rows, _BROKERS_MAX)
    pictures = "".join(
        bars(f"{kind.capitalize()} before (grey) and after (blue)", [
            (_label(row, key), row[f"{kind}_before"], row[f"{kind}_after"]) for row in pictured
        ]) for kind in kinds
    )  # fmt: skip
    columns = [column for column in (rows[0] if rows else ()) if not column.startswith("bytes") or "bytes" in kinds]
    busiest = "those with most moves"
    return (
        f'<div class="pictures">{pictures}</div>{_omission_note(len(rows), len(pictured), "pictured", busiest)}'
        f"{table(name, columns, listed)}{_omission_note(len(rows), len(listed), 'listed', busiest)}"
    )


def _busiest(rows: Sequence[dict[str, Any]], limit: int) -> list[dict[str, Any]]:
    """The rows that copy and delete most, in their own order."""
    order = sorted(
        range(len(rows)), key=lambda index: -rows[index]["replicas_copied"] - rows[index]["replicas_deleted"]
    )
    return [rows[index] for index in sorted(order[:limit])]


def _label(row: dict[str, Any], key: str) -> str:
    return f"{row[key]} ({row['rack']})" if key == "broker_id" and row["rack"] is not None else str(row[key] or "none")


def _racks(review: PlanReview) -> str:
    generated = review.generated
    crowded = "" if generated is None else facts("crowded", [
        ("partitions in too few racks before", generated.racks.crowded_before),
        ("partitions in too few racks after", generated.racks.crowded_after),
    ])  # fmt: skip
    return crowded + _loads("racks", review.rack_rows(), "rack")


def _largest(review: PlanReview) -> str:
    known = review.weights is not None
    sizes = ("bytes",) if known else ()
    topics = table("topics", ("topic", "partitions", "copied", *sizes), review.topics(_TOP))
    if not known:
        return f'{topics}<p class="note">The sizes of partitions are unknown (--weights FILE gives them).</p>'
    columns = ("topic", "partition", "replicas", "target", "bytes")
    return f"{topics}<h3>Partitions</h3>{table('largest', columns, review.largest(_TOP))}"


def _findings(review: PlanReview) -> str:
    counts = review.findings.counts()
    total = review.findings.folded_count
    numbers = ", ".join(f'<span class="{kind}">{counted(count, kind)}</span>' for kind, count in counts.items())
    rows = list(map(asdict, islice(review.findings.folded_rows(), _FINDINGS_MAX)))
    notes = (*review.findings.notes, *review.checked.snapshot.assumptions)
    assumptions = "".join(f"<li>{text(note)}</li>" for note in notes)
    return (
        f'<p id="counts">{numbers}</p>{table("findings", _FINDING, rows)}'
        f'{_omission_note(total, len(rows), "listed", "the most severe")}<ul id="assumptions">{assumptions}</ul>'
    )


def _moves(review: PlanReview) -> str:
    """The moves in parts that open by a click, as many as the page has room for."""
    columns = (*_MOVE, *(() if review.weights is None else ("bytes",)))
    heading = "".join(f"<th>{text(name)}</th>" for name in columns)
    pages: list[list[str]] = []
    listed = size = 0
    for row in review.partitions():
        if listed % _PAGE_ROWS == 0:
            pages.append([])
        pages[-1].append(table_row(columns, row))
        listed, size = listed + 1, size + len(pages[-1][-1].encode())
        if size > _MOVES_BYTES:
            break
    total = int((review.moved & ~review.checked.unchanged).sum())
    parts = "".join(
        f"<details{' open' if number == 0 else ''}><summary>{_PAGE_ROWS * number + 1:,} to "
        f'{_PAGE_ROWS * number + len(rows):,} of {total:,}</summary><table class="moves"><thead><tr>{heading}</tr>'
        f"</thead><tbody>{''.join(rows)}</tbody></table></details>"
        for number, rows in enumerate(pages)
    )
    return parts + _omission_note(total, listed, "listed", "the first of the plan file, which has all of them")


def _omission_note(total: int, listed: int, verb: str, explanation: str) -> str:
    if listed >= total:
        return ""
    return f'<p class="note left-out">{listed:,} of {total:,} are {verb}: {explanation}.</p>'


def _decision() -> str:
    fields = "".join(
        f'<label>{name} <input type="text" name="{name.lower()}" autocomplete="off"></label>'
        for name in ("Name", "Date", "Signature")
    )
    choices = "".join(
        f'<label><input type="radio" name="decision" value="{name.lower()}"> {name}</label>'
        for name in ("Approved", "Approved with changes", "Rejected")
    )
    return (
        f'<form id="decision"><fieldset><legend>The plan with the SHA-256 above is</legend>{choices}{fields}'
        '<label>Remarks <textarea name="remarks" rows="3"></textarea></label></fieldset></form>'
    )
