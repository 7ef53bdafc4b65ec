"""All pages, in the order of the navigation."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from kframe_console.pages import (
    brokers,
    clusters,
    executions,
    groups,
    live,
    overview,
    partition,
    partitions,
    plan,
    plan_comparison,
    plan_execution,
    plan_stages,
    plans,
    restarts,
    sweep,
    sweep_heat,
    topic,
    topics,
    whatif,
    whatif_partitions,
)
from kframe_console.pages.page import Page

PAGES: Final[tuple[Page, ...]] = (
    overview.PAGE,
    brokers.PAGE,
    topics.PAGE,
    partitions.PAGE,
    live.PAGE,
    topic.PAGE,
    partition.PAGE,
    groups.PAGE,
    whatif.PAGE,
    whatif_partitions.PAGE,
    sweep.PAGE,
    sweep.FAILURES_PAGE,
    sweep_heat.PAGE,
    restarts.PAGE,
    plans.PAGE,
    plans.NEW_PAGE,
    plan_comparison.PAGE,
    plan.PAGE,
    plan.FILE_PAGE,
    plan.MOVES_PAGE,
    plan_stages.STAGES_PAGE,
    plan_stages.STAGE_PAGE,
    plan_execution.PAGE,
    plan_execution.BEGIN,
    executions.LIST_PAGE,
    executions.PAGE,
    executions.GOAL_PAGE,
    executions.CHANGE,
    live.DEMO,
)
#: The pages of a fleet: the first one lists its clusters.
FLEET_PAGES: Final = (clusters.PAGE, replace(overview.PAGE, path="/overview"), *PAGES[1:])
