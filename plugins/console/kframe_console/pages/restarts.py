"""A rolling restart: its batches, and what is at risk in each."""

from __future__ import annotations

from typing import Any, Final

from kframe.plugin.commands import restart_options
from kframe.plugin.live import Progress
from kframe.plugin.whatif import RestartPlanDocument, plan_restarts, restart_document
from kframe_console.pages.page import ContentPage, PageContext, page
from kframe_console.plans.forms import OptionForm

RESTARTS: Final = OptionForm("restart", lambda *, request: request, restart_options)


@page(
    ContentPage, "restarts", "/restarts", schema="kframe.restart-plan/v1", in_navigation=True,
    parameters=RESTARTS.parameters,
    extras=lambda _context, parameters, _content: (RESTARTS.fields, RESTARTS.texts_of(parameters)),
)  # fmt: skip
def restarts_page(context: PageContext, parameters: Any) -> RestartPlanDocument:
    """The batches of a rolling restart: kframe plan restarts.

    Raises InputError, Unfinished and what the job raises.
    """
    snapshot, texts = context.reading.snapshot, RESTARTS.texts_of(parameters)
    request = RESTARTS.request(texts)

    def compute(progress: Progress) -> RestartPlanDocument:
        plan = plan_restarts(snapshot, request)
        progress(0, 0)
        return restart_document(plan)

    key = (context.reading.number, "restarts", *texts.items())
    return context.jobs.result(key, "Plan a rolling restart", compute, _nbytes)


def _nbytes(document: RestartPlanDocument) -> int:
    return 2_000 * (len(document.batches) + len(document.blocked) + len(document.conflicts))
