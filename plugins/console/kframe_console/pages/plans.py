"""The plans of this session, and the form of a new one."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final
from urllib.parse import urlencode

from msgspec import Struct

from kframe_console.pages.page import ContentPage, PageContext, Redirect, page
from kframe_console.plans.forms import FormField
from kframe_console.plans.session import GOALS, StoredPlan

#: The fields of the form in groups.
_GROUPS: Final[dict[str, tuple[str, ...]]] = {
    "Brokers": ("remove_brokers", "add_brokers", "replace", "evacuate_racks", "exclude_brokers"),
    "Balance": ("rebalance", "broker_caps", "capacities", "tolerance", "goal", "cost_terms"),
    "Racks and replicas": ("fix_racks", "one_rack", "replication_factors"),
    "Leaders only, no data moves": (
        "leaders_only",
        "demote_brokers",
        "demote_racks",
        "demote_directories",
        "leader_racks",
    ),
    "Scope and search": ("topics", "exclude_topics", "rate", "exact", "seed"),
}


class PlanSummary(Struct):
    """A plan of this session. ``request`` is its request as a query, ``options`` as options of the command line."""

    id: str
    request: str
    options: str
    summary: str
    replicas: int
    unit: str
    cost: int
    bound: int
    leaders: int
    targets_met: bool
    made_at: datetime

    @staticmethod
    def of(stored: StoredPlan) -> PlanSummary:
        """The summary of a plan."""
        document = stored.document
        moves = document.moves
        return PlanSummary(
            stored.id,
            stored.query,
            GOALS.command_line(stored.texts),
            document.summary,
            moves.replicas,
            moves.unit,
            moves.cost,
            moves.bound,
            moves.leaders,
            document.targets_met,
            stored.made_at,
        )


class PlansContent(Struct):
    """The plans that this session retains, the last used first. The oldest are dropped beyond ``bytes_max`` bytes or
    ``results_max`` results."""

    plans: list[PlanSummary]
    bytes_max: int
    results_max: int


def field_groups() -> dict[str, list[FormField]]:
    """The form of a new plan: the fields of each part by its title."""
    fields = {field.name: field for field in GOALS.fields}
    return {title: [fields[name] for name in names] for title, names in _GROUPS.items()}


@page(
    ContentPage,
    "plans",
    "/plans",
    parameters=GOALS.parameters,
    in_navigation=True,
    extras=lambda _context, _parameters, _content: field_groups(),
)
def plans_page(context: PageContext, _parameters: Any) -> PlansContent:
    """The reassignment plans of this session, and the form of a new one."""
    return PlansContent(
        list(map(PlanSummary.of, context.plans.stored())), context.jobs.bytes_max, context.jobs.results_max
    )


@page(
    ContentPage,
    "plans-new",
    "/plans/generate",
    content=PlanSummary,
    schema="kframe.console-plan/v1",
    parameters=GOALS.parameters,
)
def new_page(context: PageContext, parameters: Any) -> Redirect:
    """The address of the plan for a request: kframe plan generate.

    Raises InputError for an invalid request.
    """
    texts = GOALS.texts_of(parameters)
    context.plans.check(context.reading, texts)
    return Redirect("/plans/{plan}", {"plan": context.plans.id_of(context.reading, texts), "request": urlencode(texts)})
