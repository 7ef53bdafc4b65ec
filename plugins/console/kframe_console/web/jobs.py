"""The page of a job: its progress, and a button that cancels it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

import anyio
from msgspec import Struct, to_builtins
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from kframe_console.jobs.jobs import Cancelled, Job, Jobs, JobState
from kframe_console.security.csrf import HEADER, CsrfTokens
from kframe_console.web.actions import Forbidden
from kframe_console.web.responses import View, html_response, json_response

JOB_PATH: Final = "/jobs/{job_id}"
_SCHEMA: Final = "kframe.console-job/v1"
_POLL_S: Final = 0.02


class JobContent(Struct):
    """A computation: ``done`` of ``total`` steps are complete; ``total`` 0 is unknown."""

    id: str
    title: str
    state: JobState
    done: int
    total: int


def job_endpoint(jobs: Jobs, tokens: CsrfTokens) -> Callable[[Request], Awaitable[Response]]:
    """GET returns a job; POST cancels it. htmx receives a part of the page, and reloads it when the job has ended."""

    async def respond(request: Request) -> Response:
        job = jobs.find(request.path_params["job_id"])
        if job is None:
            raise HTTPException(404, "found no such job, expected one that runs or has just ended")
        if request.method == "POST":
            if problem := tokens.problem(request, request.state.user, request.headers.get(HEADER, "")):
                raise Forbidden(problem)
            jobs.cancel(job)
        if "hx-request" not in request.headers:
            content = JobContent(job.id, job.title, job.state, job.done, job.total)
            return json_response({"schema": _SCHEMA, **to_builtins(content)})
        response = html_response("job.html", job=job)
        if job.state in ("done", "failed"):
            response.headers["hx-refresh"] = "true"
        return response

    return respond


def progress_page(view: View, job: Job) -> Response:
    """The page that is shown until a job has ended."""
    return html_response("progress.html", 202, view=view, job=job)


async def ended(job: Job) -> None:
    """Wait for a job without a thread. Raises Cancelled if a user cancels it."""
    while not job.has_ended:
        await anyio.sleep(_POLL_S)
    if job.state == "cancelled":
        raise Cancelled(f"{job.title}: cancelled")
