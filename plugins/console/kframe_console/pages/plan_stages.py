"""A plan in stages on an axis of time, and one stage with the effects of broker failures in it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

from kframe.plugin import ParameterError
from kframe.plugin.pages import SpansPart
from kframe.plugin.plans import SPANS_MAX, PlanStage, StageManifest, failure_rows, stage_axis, stage_rows
from kframe_console.pages.page import ContentPage, PageContext, page
from kframe_console.plans.session import LIMITS

#: Most rows of tables in HTML; JSON has all.
ROWS_MAX: Final = 500


class StagesContent(Struct):
    """A plan in stages within limits. ``stages`` is what ``kframe plan stage -o json`` prints, for the present cluster;
    ``options`` are the limits as options of the command line."""

    plan: str
    options: str
    stages: StageManifest


class StageContent(Struct):
    """One stage of a plan, of ``count``. Failures are those that harm more than before the plan."""

    plan: str
    count: int
    stage: PlanStage


def _axis(_context: PageContext, parameters: Any, content: StagesContent) -> Mapping[str, Any]:
    """The form of limits, and the part of the axis from a stage on."""
    first = min(max(parameters.first, 0), max(len(content.stages.stages) - 1, 0))
    axis: SpansPart = stage_axis(content.stages, first)
    return {
        "fields": LIMITS.fields,
        "limits": LIMITS.texts_of(parameters),
        "axis": axis,
        "first": first,
        "step": SPANS_MAX,
        "rows": stage_rows(content.stages)[first : first + SPANS_MAX],
        "failures": failure_rows(content.stages)[:ROWS_MAX],
    }


@page(
    ContentPage, "plan-stages", "/plans/{plan}/stages", parameters=LIMITS.parameters_with(first=(int, 0)), extras=_axis
)
def stages_page(context: PageContext, parameters: Any) -> StagesContent:
    """A plan in stages within limits, and what broker failures would harm in each: kframe plan stage.

    Raises InputError for limits that cannot be used.
    """
    manifest = context.plans.staged(context.reading, parameters)
    return StagesContent(parameters.plan, LIMITS.command_line(LIMITS.texts_of(parameters)), manifest)


@page(
    ContentPage,
    "plan-stage",
    "/plans/{plan}/stages/{stage}",
    parameters=LIMITS.parameters_with(stage=(int,)),
    extras=lambda _context, parameters, _content: {"limits": LIMITS.texts_of(parameters), "rows_max": ROWS_MAX},
)
def stage_page(context: PageContext, parameters: Any) -> StageContent:
    """One stage of a plan: what it copies, and what broker failures would harm during and after it.

    Raises InputError for a number that no stage has.
    """
    stages = context.plans.staged(context.reading, parameters).stages
    if not 1 <= parameters.stage <= len(stages):
        raise ParameterError("stage", str(parameters.stage), f"a stage from 1 to {len(stages)}")
    return StageContent(parameters.plan, len(stages), stages[parameters.stage - 1])
