"""A rolling restart: its batches, and what is at risk in each."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from kframe.plugin.live import Progress
from kframe.plugin.whatif import RestartPlanDocument, RestartRequest, plan_restarts, restart_document
from kframe_console.pages.page import ContentPage, PageContext, page
from kframe_console.tables.query import broker_ids


class RestartParameters(Struct, frozen=True, forbid_unknown_fields=True):
    """What the batches must observe: the options of ``kframe plan restarts``. Lists have ids with commas."""

    brokers: str = ""
    voters: str = ""
    max_at_min_isr: Annotated[int, Meta(ge=0)] | None = None
    max_batch: Annotated[int, Meta(ge=1)] | None = None
    whole_racks: bool = False
    same_rack: bool = False
    allow_unavoidable: bool = False


@page(ContentPage, "restarts", "/restarts", schema="kframe.restart-plan/v1", in_navigation=True)
def restarts_page(context: PageContext, parameters: RestartParameters) -> RestartPlanDocument:
    """The batches of a rolling restart: kframe plan restarts.

    Raises InputError, Unfinished and what else a job raises.
    """
    snapshot, key = context.reading.snapshot, (context.reading.number, "restarts", parameters)
    request = RestartRequest(
        brokers=broker_ids("brokers", parameters.brokers) or None,
        voters=broker_ids("voters", parameters.voters),
        max_at_min_isr=parameters.max_at_min_isr,
        max_batch=parameters.max_batch,
        whole_racks=parameters.whole_racks,
        same_rack=parameters.same_rack,
        allow_unavoidable=parameters.allow_unavoidable,
    )

    def compute(progress: Progress) -> RestartPlanDocument:
        plan = plan_restarts(snapshot, request)
        progress(0, 0)
        return restart_document(plan)

    return context.jobs.result(key, "Plan a rolling restart", compute, _nbytes)


def _nbytes(document: RestartPlanDocument) -> int:
    return 2_000 * (len(document.batches) + len(document.blocked) + len(document.conflicts))
