"""The application: routes of all pages, errors, and the parts that protect them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from kframe.plugin import InputError, KframeError, ParameterError
from kframe_console.jobs.computations import Computations, Overloaded
from kframe_console.pages.page import Page, PageContext, TablePage
from kframe_console.routes import PAGES
from kframe_console.settings import ConsoleSettings
from kframe_console.sources.reading import ClusterSource
from kframe_console.tables.cache import ResultCache
from kframe_console.web.openapi import ERROR_SCHEMA, openapi_document
from kframe_console.web.parameters import AT, FORMAT, distinct_parameters, one_of
from kframe_console.web.protection import Protection
from kframe_console.web.responses import (
    CONTENT_FORMATS,
    TABLE_FORMATS,
    View,
    html_response,
    json_response,
    page_response,
)

STATIC: Final = Path(__file__).parent / "static"
_NAVIGATION: Final = tuple(page for page in PAGES if page.in_navigation)
#: The status of each refusal.
_STATUS: Final[Mapping[type[KframeError], int]] = {InputError: 400, Overloaded: 503, KframeError: 502}


@dataclass(frozen=True, slots=True)
class Console:
    """What all requests share."""

    source: ClusterSource
    settings: ConsoleSettings
    cache: ResultCache
    computations: Computations


def application(source: ClusterSource, settings: ConsoleSettings | None = None) -> Starlette:
    """The console of a source. Starting it starts the source."""
    settings = settings or ConsoleSettings()
    computations = Computations(settings.computations_max, settings.waiting_max)
    console = Console(source, settings, ResultCache(settings.cache_bytes_max), computations)

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        source.start()
        yield
        source.close()

    return Starlette(
        routes=[
            *(Route(page.path, _endpoint(page, console), methods=["GET"], name=page.name) for page in PAGES),
            Route("/openapi.json", _openapi, methods=["GET"]),
            Mount("/static", StaticFiles(directory=STATIC), name="static"),
        ],
        middleware=[Middleware(Protection, settings=settings)],
        exception_handlers={HTTPException: _http_error, KframeError: _kframe_error},
        lifespan=lifespan,
    )


def _endpoint(page: Page, console: Console) -> Callable[[Request], Awaitable[Response]]:
    async def respond(request: Request) -> Response:
        parameters = distinct_parameters([*request.query_params.multi_items(), *request.path_params.items()])
        formats = TABLE_FORMATS if isinstance(page, TablePage) else CONTENT_FORMATS
        format_name = one_of(FORMAT, parameters.pop(FORMAT, "html"), formats)
        view = View(page, request.url.path, parameters, PAGES)

        def compute() -> Response:
            reading = console.source.reading(parameters.get(AT, ""))
            return page_response(view, PageContext(console.source, reading, console.cache), format_name)

        return await console.computations.run(compute)

    return respond


async def _openapi(_request: Request) -> Response:
    return json_response(openapi_document(PAGES))


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
    return _error(request, problem.status_code, problem.detail, None)


def _error(request: Request, status: int, message: str, parameter: str | None) -> Response:
    accepted = request.headers.get("accept", "*/*")
    if request.query_params.get(FORMAT, "html") != "html" or not ("text/html" in accepted or "*/*" in accepted):
        return json_response({"schema": ERROR_SCHEMA, "error": message, "parameter": parameter}, status)
    return html_response("error.html", status, navigation=_NAVIGATION, message=message, status=status)
