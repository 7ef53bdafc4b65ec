"""A page about a plan that a reviewer signs: self-contained HTML without scripts, below 5 MB for any plan."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any, Final

from jinja2 import PackageLoader
from msgspec.structs import asdict

from kframe import __version__
from kframe.model.texts import counted
from kframe.pages.render import environment
from kframe.plans.generate.document import GeneratedPlanDocument
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
    page = page_values(review, hashlib.sha256(plan_file).hexdigest())
    return environment(PackageLoader("kframe.plans.generate")).get_template("plan.html").render(page=page)


def page_values(review: PlanReview, digest: str, first: int = 0, count: int | None = None) -> dict[str, Any]:
    """What the template ``plan_sections.html`` shows of a plan, whose file has this SHA-256.

    The moves begin with number ``first``. There are ``count``; None: as many as a page has room for.
    """
    snapshot = review.checked.snapshot
    return {
        "title": f"Reassignment plan for {snapshot.cluster_id or snapshot.source.name or 'a cluster'}",
        "identity": _identity(review, digest),
        "request": list(review.request_rows()),
        "generated": review.generated,
        "copied": f"{counted(int(review.copied.sum()), 'replica')} copied",
        "moves": _moves(review.generated),
        "exceptions": _exceptions(review.generated),
        "brokers": _loads(review.brokers(), "broker_id"),
        "racks": _loads(review.rack_rows(), "rack"),
        "largest": _largest(review),
        "findings": _findings(review),
        "partitions": _partitions(review, first, count),
    }


def _identity(review: PlanReview, digest: str) -> list[tuple[str, object]]:
    checked, snapshot = review.checked, review.checked.snapshot
    sizes = ((len(snapshot.brokers), "broker"), (len(snapshot.topics), "topic"), (len(snapshot), "partition"))
    return [
        ("plan file SHA-256", digest),
        ("partitions in the plan", len(checked.plan)),
        ("snapshot", f"{snapshot.source.name} ({snapshot.source.format})"),
        ("snapshot size", ", ".join(counted(*size) for size in sizes)),
        ("snapshot digest", snapshot.digest()),
        ("assignments of the plan's partitions", checked.stamp().assignments),
        ("checked by", checked.rules.name),
        ("kframe", __version__),
    ]


def _moves(generated: GeneratedPlanDocument | None) -> list[tuple[str, object]]:
    """The numbers of a generated plan."""
    if generated is None:
        return []
    copied = generated.moves
    return [
        ("replicas copied", copied.replicas),
        (f"cost in {copied.unit}", copied.cost),
        *((("goal", generated.goal),) if generated.goal else ()),
        *((("cost terms", ", ".join(generated.cost_terms)),) if generated.cost_terms else ()),
        (f"lower bound in {copied.unit}", copied.bound),
        ("leaders that change", copied.leaders),
        ("targets met", generated.targets_met),
        *((f"partitions {name}", count) for name, count in asdict(generated.partitions).items()),
    ]


def _exceptions(generated: GeneratedPlanDocument | None) -> list[dict[str, Any]]:
    """Tables of partitions that are not as requested; those that have a row."""
    if generated is None:
        return []
    return [
        {
            "name": name,
            "columns": rows[0].__struct_fields__,
            **_listed(list(map(asdict, rows[:_FINDINGS_MAX])), len(rows)),
        }
        for name, rows in (("unmet", generated.unmet), ("diverted", generated.diverted))
        if rows
    ]


def _listed(rows: Sequence[Any], total: int) -> dict[str, Any]:
    """The rows of a table, and how many they are of how many."""
    return {"rows": rows, "listed": len(rows), "total": total}


def _loads(rows: Sequence[dict[str, Any]], key: str) -> dict[str, Any]:
    """Pictures and a table of brokers or racks; those with the most copies if there are too many."""
    kinds = [kind for kind in _LOADS if rows and rows[0][f"{kind}_before"] is not None]
    pictured = _busiest(rows, _PICTURED_MAX)
    pictures = [
        (
            f"{kind.capitalize()} before (grey) and after (blue)",
            [(_label(row, key), row[f"{kind}_before"], row[f"{kind}_after"]) for row in pictured],
        )
        for kind in kinds
    ]
    columns = [column for column in (rows[0] if rows else ()) if not column.startswith("bytes") or "bytes" in kinds]
    return {
        "pictures": pictures,
        "pictured": {"listed": len(pictured), "total": len(rows)},
        "columns": columns,
        **_listed(_busiest(rows, _BROKERS_MAX), len(rows)),
    }


def _busiest(rows: Sequence[dict[str, Any]], limit: int) -> list[dict[str, Any]]:
    """The rows that copy and delete most, in their own order."""
    order = sorted(
        range(len(rows)), key=lambda index: -rows[index]["replicas_copied"] - rows[index]["replicas_deleted"]
    )
    return [rows[index] for index in sorted(order[:limit])]


def _label(row: dict[str, Any], key: str) -> str:
    return f"{row[key]} ({row['rack']})" if key == "broker_id" and row["rack"] is not None else str(row[key] or "none")


def _largest(review: PlanReview) -> dict[str, Any]:
    known = review.weights is not None
    return {
        "topic_columns": ("topic", "partitions", "copied", *(("bytes",) if known else ())),
        "topics": review.topics(_TOP),
        "partitions": review.largest(_TOP) if known else None,
    }


def _findings(review: PlanReview) -> dict[str, Any]:
    rows = list(map(asdict, islice(review.findings.folded_rows(), _FINDINGS_MAX)))
    return {
        "counts": [(kind, counted(count, kind)) for kind, count in review.findings.counts().items()],
        "columns": _FINDING,
        **_listed(rows, review.findings.folded_count),
        "notes": (*review.findings.notes, *review.checked.snapshot.assumptions),
    }


def _partitions(review: PlanReview, first: int, count: int | None) -> dict[str, Any]:
    """The moves from number ``first`` on in parts that open by a click, as many as the page has room for."""
    table_row: Callable[..., str] = environment().get_template("parts.html").module.table_row  # type: ignore[attr-defined]
    columns = (*_MOVE, *(() if review.weights is None else ("bytes",)))
    pages: list[dict[str, Any]] = []
    listed = size = 0
    for row in islice(review.partitions(), first, None if count is None else first + count):
        if listed % _PAGE_ROWS == 0:
            pages.append({"first": first + listed + 1, "rows": []})
        rendered = table_row(columns, row)
        pages[-1]["rows"].append(rendered)
        listed, size = listed + 1, size + len(rendered.encode())
        pages[-1]["last"] = first + listed
        if size > _MOVES_BYTES:
            break
    total = int((review.moved & ~review.checked.unchanged).sum())
    return {"columns": columns, "pages": pages, "listed": listed, "total": total}
