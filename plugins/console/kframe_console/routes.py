"""All pages, in the order of the navigation."""

from __future__ import annotations

from typing import Final

from kframe_console.pages import (
    brokers,
    overview,
    partition,
    partitions,
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
    topic.PAGE,
    partition.PAGE,
    whatif.PAGE,
    whatif_partitions.PAGE,
    sweep.PAGE,
    sweep.FAILURES_PAGE,
    sweep_heat.PAGE,
    restarts.PAGE,
)
