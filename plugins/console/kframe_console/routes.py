"""All pages, in the order of the navigation."""

from __future__ import annotations

from typing import Final

from kframe_console.pages import (
    brokers,
    executions,
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
from kframe_console.pages.page import Page

_NAVIGATION: Final = (overview, brokers, topics, partitions, live, whatif, sweep, restarts, plans)
_FURTHER: Final = (topic, partition, sweep_heat, plan_comparison, plan, plan_stages)
_EXECUTIONS: Final = (executions, plan_execution)
_BY_NAME: Final[dict[str, Page]] = {
    value.name: value
    for module in (*_NAVIGATION, *_FURTHER, *_EXECUTIONS)
    for value in vars(module).values()
    if isinstance(value, Page)
}
PAGES: Final = tuple(_BY_NAME.values())
