"""The application: routes of all pages, errors, and the parts that protect them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from kframe.plugin import InputError, KframeError, ParameterError
from kframe_console.jobs.computations import Computations, Overloaded
from kframe_console.jobs.jobs import Cancelled, Job, Jobs, Unfinished
from kframe_console.pages.page import ActionPage, ConsolePage, PageContext, TablePage
from kframe_console.plans.executions import Executions
from kframe_console.plans.session import Plans, Sizes, no_sizes
from kframe_console.routes import PAGES
from kframe_console.security.audit import AuditLog
from kframe_console.security.csrf import CsrfTokens
from kframe_console.security.identities import Identity
from kframe_console.security.login import Login, LoginPolicy
from kframe_console.security.oidc import OidcLogin
from kframe_console.settings import ConsoleSettings
from kframe_console.sources.controllers import Controllers
from kframe_console.sources.monitor import ClusterMonitor
from kframe_console.sources.reading import ClusterSource
from kframe_console.sources.state_changes import StateChangeLog
from kframe_console.tables.cache import ResultCache
from kframe_console.web.actions import Forbidden, action_body, perform
from kframe_console.web.assets import assets_route
from kframe_console.web.jobs import JOB_PATH, ended, job_endpoint, progress_page
from kframe_console.web.openapi import ERROR_SCHEMA, openapi_document
from kframe_console.web.parameters import AT, FORMAT, checked_choice, distinct_parameters
from kframe_console.web.protection import Protection
from kframe_console.web.responses import (
    CONTENT_FORMATS,
    TABLE_FORMATS,
    View,
    content_response,
    html_response,
    json_response,
    page_response,
)

#: The status of each refusal.
_STATUS: Final[Mapping[type[KframeError], int]] = {
    InputError: 400,
    Forbidden: 403,
    Cancelled: 409,
    Overloaded: 503,
    KframeError: 502,
}


@dataclass(frozen=True, slots=True)
class Console:
    """What all requests share. ``context(position, user)`` raises InputError for an unknown position."""

    settings: ConsoleSettings
    pages: tuple[ConsolePage, ...]
    computations: Computations
    tokens: CsrfTokens
    audit: AuditLog
    context: Callable[[str, Identity], PageContext]

    def view(self, page: ConsolePage, request: Request, parameters: Mapping[str, str]) -> View:
        """What templates show around a page."""
        user = request.state.user
        execute = self.settings.allow_execute
        return View(page, request.url.path, parameters, self.pages, user, self.tokens.token(user), execute)


def application(
    source: ClusterSource,
    settings: ConsoleSettings | None = None,
    login: LoginPolicy | None = None,
    oidc: OidcLogin | None = None,
    audit: AuditLog | None = None,
    pages: tuple[ConsolePage, ...] = PAGES,
    sizes: Sizes = no_sizes,
    executions: Executions | None = None,
    controllers: Controllers | None = None,
    state_changes: StateChangeLog | None = None,
) -> Starlette:
    """The console of a source, and of the ``controllers`` that run. Starting it starts the source.

    ``sizes`` gives the bytes of replicas, if they are known. ``executions`` executes plans; None: it cannot.
    ``state_changes`` is the state-change.log of the cluster, if there is one.
    """
    settings = settings or ConsoleSettings()
    jobs = Jobs(settings.jobs_waiting_max, settings.job_results_bytes_max)
    monitor = ClusterMonitor(source, controllers)
    cache, rows, plans = ResultCache(settings.cache_bytes_max), ResultCache(settings.rows_bytes_max), Plans(jobs, sizes)
    executes = executions if settings.allow_execute else None

    def context(position: str, user: Identity) -> PageContext:
        reading = source.reading(position)
        return PageContext(source, reading, cache, rows, jobs, plans, monitor, executes, state_changes, user)

    computations = Computations(settings.computations_max, settings.waiting_max)
    console = Console(settings, pages, computations, CsrfTokens(), audit or AuditLog(None), context)

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        source.start()
        monitor.start()
        yield
        monitor.close()
        if executions is not None:
            executions.close()
        jobs.close()
        source.close()

    async def describe(_request: Request) -> Response:
        return json_response(openapi_document(pages))

    async def newest(_request: Request) -> Response:
        reading = await computations.run(lambda: source.reading(""))
        content = {"number": reading.number, "read_at": reading.read_at.isoformat(), "problem": source.problem}
        return json_response({"schema": "kframe.console-reading/v1", **content})

    app = Starlette(
        routes=[
            *(_route(page, console) for page in pages),
            Route("/reading", newest, methods=["GET"]),
            Route("/openapi.json", describe, methods=["GET"]),
            Route(JOB_PATH, job_endpoint(jobs, console.tokens), methods=["GET", "POST"], name="job"),
            *([] if oidc is None else oidc.routes()),
            assets_route(),
        ],
        middleware=[Middleware(Protection, settings=settings), Middleware(Login, policy=login or LoginPolicy())],
        exception_handlers={HTTPException: _http_error, KframeError: _kframe_error},
        lifespan=lifespan,
    )
    app.state.pages = pages
    return app


def _route(page: ConsolePage, console: Console) -> Route:
    if isinstance(page, ActionPage):
        return Route(page.path, _action_endpoint(page, console), methods=["POST"], name=page.name)
    return Route(page.path, _page_endpoint(page, console), methods=["GET"], name=page.name)


def _page_endpoint(page: ConsolePage, console: Console) -> Callable[[Request], Awaitable[Response]]:
    async def respond(request: Request) -> Response:
        parameters = distinct_parameters([*request.query_params.multi_items(), *_path_parameters(request)])
        formats = TABLE_FORMATS if isinstance(page, TablePage) else CONTENT_FORMATS
        format_name = checked_choice(FORMAT, parameters.pop(FORMAT, "html"), formats)
        view = console.view(page, request, parameters)
        return await _computed(
            console,
            lambda: page_response(view, console.context(parameters.get(AT, ""), view.user), format_name),
            lambda job: progress_page(view, job) if format_name == "html" else None,
        )

    return respond


async def _computed(
    console: Console, compute: Callable[[], Response], progress: Callable[[Job], Response | None]
) -> Response:
    """What ``compute`` returns, or the progress of the job that it needs; without one once the job has ended."""
    while True:
        try:
            return await console.computations.run(compute)
        except Unfinished as unfinished:
            page = progress(unfinished.job)
            if page is not None:
                return page
            await ended(unfinished.job)


def _action_endpoint(page: ActionPage, console: Console) -> Callable[[Request], Awaitable[Response]]:
    async def respond(request: Request) -> Response:
        body, token = await action_body(request)
        view = console.view(page, request, {})
        if problem := console.tokens.problem(request, view.user, token):
            raise Forbidden(problem)
        if page.executes and not console.settings.allow_execute:
            raise Forbidden("found no --allow-execute, expected it: this console changes no cluster")
        format_name = checked_choice(FORMAT, request.query_params.get(FORMAT, "html"), CONTENT_FORMATS)
        parameters = {**body, **dict(_path_parameters(request))}
        address = request.client.host if request.client else ""

        def compute() -> Response:
            context = console.context("", view.user)
            content = perform(page, context, parameters, address, console.audit)
            return content_response(view, page, context, content, format_name)

        return await _computed(console, compute, lambda job: None)

    return respond


def _path_parameters(request: Request) -> list[tuple[str, str]]:
    return [(name, str(text)) for name, text in request.path_params.items()]


async def _kframe_error(request: Request, problem: Exception) -> Response:
    status = next(status for kind, status in _STATUS.items() if isinstance(problem, kind))
    parameter = problem.parameter if isinstance(problem, ParameterError) else None
    if parameter in request.path_params and parameter not in request.query_params:  # There is no page for it.
        status = 404
    response = _error(request, status, str(problem), parameter)
    if status == 503:
        response.headers["retry-after"] = "1"
    return response


async def _http_error(request: Request, problem: Exception) -> Response:
    assert isinstance(problem, HTTPException)
    response = _error(request, problem.status_code, problem.detail, None)
    response.headers.update(problem.headers or {})
    return response


def _error(request: Request, status: int, message: str, parameter: str | None) -> Response:
    accepted = request.headers.get("accept", "*/*")
    if request.query_params.get(FORMAT, "html") != "html" or not ("text/html" in accepted or "*/*" in accepted):
        return json_response({"schema": ERROR_SCHEMA, "error": message, "parameter": parameter}, status)
    navigation = tuple(page for page in request.app.state.pages if page.in_navigation)
    return html_response("error.html", status, navigation=navigation, message=message, status=status)
