"""One generated plan: its report, its moves as a table, and its file."""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct

from kframe.plugin.plans import GeneratedPlanDocument, PlanFile
from kframe_console.pages.page import PARTITION_LINKS, ContentPage, Download, PageContext, TablePage, page
from kframe_console.pages.plans import PlanSummary
from kframe_console.plans.session import GOALS, PlanLink, StoredPlan
from kframe_console.tables.columns import DataColumn, ListsColumn, NamedColumn, NumericColumn
from kframe_console.tables.table import ColumnTable

_FILE_TYPE: Final = "application/json"


class PlanContent(Struct):
    """A plan of this session. ``plan`` is what ``kframe plan generate -o json`` prints.

    ``is_current``: the cluster is still as it was when the plan was made.
    """

    id: str
    request: str
    options: str
    is_current: bool
    plan: GeneratedPlanDocument


class PlanMoveRow(Struct):
    """A partition that a plan changes: its replicas before, and after."""

    topic: str
    partition: int
    replicas: list[int]
    target: list[int]
    adding: list[int]
    removing: list[int]


def _sections(context: PageContext, link: PlanLink, content: PlanContent) -> dict[str, Any]:
    """The sections of the plan, as the page for its approval has them, and the other plans."""
    stored = context.plans.generated(context.reading, link)
    others = [PlanSummary.of(other) for other in context.plans.stored() if other.id != stored.id]
    return {"page": {**stored.page, "generated": content.plan}, "others": others}


@page(ContentPage, "plan", "/plans/{plan}", extras=_sections)
def plan_page(context: PageContext, link: PlanLink) -> PlanContent:
    """A generated plan and its effect on brokers, racks and topics: kframe plan generate.

    Raises InputError for an unknown plan and an invalid request.
    """
    stored = context.plans.generated(context.reading, link)
    is_current = stored.id == context.plans.id_of(context.reading, stored.texts)
    return PlanContent(stored.id, stored.query, GOALS.command_line(stored.texts), is_current, stored.document)


@page(ContentPage, "plan-file", "/plans/{plan}/reassignment.json", content=PlanFile, schema="kframe.plan-file/v1")
def file_page(context: PageContext, link: PlanLink) -> Download:
    """The plan as kafka-reassign-partitions reads it."""
    stored = context.plans.generated(context.reading, link)
    return Download(f"reassignment-{stored.id}.json", _FILE_TYPE, stored.lines())


@page(TablePage, "plan-moves", "/plan-moves", title="Moves of a plan", row=PlanMoveRow, links=PARTITION_LINKS)
def moves_page(context: PageContext, link: PlanLink) -> ColumnTable:
    """The partitions that a plan changes."""
    stored = context.plans.generated(context.reading, link)
    key = ("plan-moves", stored.id)
    return context.cache.get(key, lambda: _moves(stored), lambda table: table.nbytes)


def _moves(stored: StoredPlan) -> ColumnTable:
    targets = stored.plan.targets
    columns: dict[str, DataColumn] = {
        "topic": NamedColumn(targets.names, targets.topic),
        "partition": NumericColumn(targets.partition),
        "replicas": ListsColumn(stored.before),
        "target": ListsColumn(targets.replicas),
        "adding": ListsColumn(stored.adding),
        "removing": ListsColumn(stored.removing),
    }
    return ColumnTable(("plan-moves", stored.id), columns, len(targets))
