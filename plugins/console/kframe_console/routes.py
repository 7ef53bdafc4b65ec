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
)
from kframe_console.pages.page import ConsolePage

PAGES: Final[tuple[ConsolePage, ...]] = (
    overview.overview_page,
    brokers.brokers_page,
    topics.topics_page,
    partitions.partitions_page,
    live.live_page,
    topic.topic_page,
    partition.partition_page,
    groups.groups_page,
    whatif.whatif_page,
    whatif.changed_partitions_page,
    sweep.sweep_page,
    sweep.failures_page,
    sweep_heat.heat_page,
    restarts.restarts_page,
    plans.plans_page,
    plans.new_page,
    plan_comparison.comparison_page,
    plan.plan_page,
    plan.file_page,
    plan.moves_page,
    plan_stages.stages_page,
    plan_stages.stage_page,
    plan_execution.preview_page,
    plan_execution.begin_page,
    executions.list_page,
    executions.execution_page,
    executions.goal_page,
    executions.change_page,
    live.demo_page,
)
#: The pages of a fleet: the first one lists its clusters.
FLEET_PAGES: Final = (clusters.clusters_page, replace(overview.overview_page, path="/overview"), *PAGES[1:])
