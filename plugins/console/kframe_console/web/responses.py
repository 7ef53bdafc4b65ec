"""The response to a request for a page, in the requested format."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, Final
from urllib.parse import quote, urlencode

import msgspec
from jinja2 import Environment, PackageLoader
from markupsafe import Markup
from starlette.responses import RedirectResponse, Response, StreamingResponse

from kframe.plugin import InputError, Int32, ParameterError, duration_text
from kframe.plugin.pages import environment
from kframe.plugin.plans import TEMPLATES as PLAN_TEMPLATES
from kframe_console.pages.page import (
    ActionPage,
    ConsolePage,
    ContentPage,
    Download,
    PageContext,
    Redirect,
    TablePage,
    TableWindow,
)
from kframe_console.security.identities import LOCAL, Identity
from kframe_console.sources.logged import time_of
from kframe_console.sources.reading import NO_CLUSTER
from kframe_console.tables.query import COUNT_DEFAULT, RESERVED, SORT, TableQuery, table_query
from kframe_console.tables.table import ColumnTable
from kframe_console.web.assets import ASSETS
from kframe_console.web.formats import csv_blocks, parquet_blocks
from kframe_console.web.parameters import AT, FORMAT, typed_parameters

JSON: Final = "application/json"
#: The name of the page that lists the clusters of a fleet.
CLUSTERS: Final = "clusters"
#: The formats of tables, and those of other pages.
TABLE_FORMATS: Final = ("html", "json", "csv", "parquet")
CONTENT_FORMATS: Final = ("html", "json")
MEDIA_TYPES: Final = {
    "html": "text/html",
    "json": JSON,
    "csv": "text/csv",
    "parquet": "application/vnd.apache.parquet",
}


@dataclass(frozen=True, slots=True)
class View:
    """What every template shows around the content: the page, its path and parameters, and the navigation."""

    page: ConsolePage
    path: str
    parameters: Mapping[str, str]
    pages: tuple[ConsolePage, ...]
    user: Identity = LOCAL
    token: str = ""
    """The CSRF token of writes from this page."""
    allow_execute: bool = False

    @property
    def navigation(self) -> tuple[ConsolePage, ...]:
        """The pages that every page links to."""
        return tuple(page for page in self.pages if page.in_navigation)

    def link(self, path: str, **values: object) -> str:
        """The address of a page with these parameters, at the same position of the source's history, or of the same
        cluster of a fleet. Fields in braces are those of ``values``."""
        for name in [name for name in values if f"{{{name}}}" in path]:
            path = path.replace(f"{{{name}}}", quote(str(values.pop(name)), safe=""))
        parameters = {name: value for name, value in values.items() if value is not None}
        lists_clusters = path == "/" and self.pages[0].name == CLUSTERS
        if self.parameters.get(AT) and not lists_clusters:
            parameters[AT] = self.parameters[AT]
        return f"{path}?{urlencode(parameters)}" if parameters else path

    def points(self, context: PageContext) -> str:
        """The positions of the history as JSON: the offset and the time of each."""
        points = [
            (point.end - 1, "" if point.time_ms is None else time_of(point).isoformat(timespec="milliseconds"))
            for point in context.source.points
        ]
        return json.dumps(points)

    def position(self, context: PageContext) -> int:
        """The index of the last of these positions that the reading has reached."""
        end = 0 if context.reading.point is None else context.reading.point.end
        return max(bisect_right([point.end for point in context.source.points], end) - 1, 0)


def page_response(view: View, context: PageContext, format_name: str) -> Response:
    """The page of ``view``. Raises InputError for parameters that it cannot answer."""
    page = view.page
    parameters = {name: text for name, text in view.parameters.items() if name != AT and text.strip()}
    if context.reading.number == NO_CLUSTER and page.path != "/":
        raise ParameterError(AT, "no cluster", "the name of a cluster of the fleet")
    if isinstance(page, TablePage):
        response = _table_response(view, page, context, parameters, format_name)
    else:
        assert isinstance(page, ContentPage)
        typed = typed_parameters(page.parameters, parameters)
        content = page.build(context, typed)
        is_shown = format_name == "html" and not isinstance(content, Redirect | Download)
        extras = page.extras(context, typed, content) if is_shown else None
        response = content_response(view, page, context, content, format_name, extras)
    response.headers["kframe-reading"] = str(context.reading.number)
    return response


def content_response(
    view: View,
    page: ContentPage | ActionPage,
    context: PageContext,
    content: Any,
    format_name: str,
    extras: Any = None,
) -> Response:
    """A content as JSON, or in the template of its page. Raises InputError for JSON without a content."""
    if isinstance(content, Redirect):
        formats = {} if format_name == "html" else {FORMAT: format_name}
        return RedirectResponse(view.link(content.path, **content.values, **formats), 303)
    if isinstance(content, Download):
        disposition = {"content-disposition": f'attachment; filename="{content.name}"'}
        return StreamingResponse(content.parts, media_type=content.media_type, headers=disposition)
    if format_name == "json":
        if content is None:
            raise InputError(page.path, "no parameters", "those of a question")
        return json_response({"schema": page.schema, **msgspec.to_builtins(content)})
    values = {"content": content, "embedded": partial(_embedded, view, context), "extras": extras}
    return html_response(page.template, view=view, context=context, **values)


def _table_response(
    view: View, page: TablePage, context: PageContext, parameters: Mapping[str, str], format_name: str
) -> Response:
    table, rows, shown = _shown_table(view, page, context, parameters)
    query = shown.query
    match format_name:
        case "json":
            window = rows[query.first : query.first + query.count]
            content = TableWindow(len(rows), query.first, list(table.records(window)))
            return json_response({"schema": page.schema, **msgspec.structs.asdict(content)})
        case "csv":
            return _download(page, "csv", csv_blocks(table, rows))
        case "parquet":
            return _download(page, "parquet", parquet_blocks(table, rows))
    return html_response(page.template, view=view, context=context, table=shown)


def _embedded(view: View, context: PageContext, page_name: str, /, **parameters: str) -> ShownTable:
    """The table of another page with these parameters, for a part of this page."""
    page = next(page for page in view.pages if isinstance(page, TablePage) and page.name == page_name)
    return _shown_table(view, page, context, parameters, is_part=True)[2]


def _shown_table(
    view: View, page: TablePage, context: PageContext, parameters: Mapping[str, str], *, is_part: bool = False
) -> tuple[ColumnTable, Int32, ShownTable]:
    """The table that the parameters of the page choose, the rows that all others select, and the part of a template."""
    fields = page.parameters.__struct_fields__
    arguments = {name: text for name, text in parameters.items() if name in fields and text.strip()}
    typed = typed_parameters(page.parameters, arguments)
    table = page.table(context, typed)
    query = table_query({name: text for name, text in parameters.items() if name not in fields}, tuple(table.columns))
    rows = table.rows(query, context.rows)
    links = {**page.links, **({} if page.links_of is None else page.links_of(context, typed))}
    window = TableWindow(len(rows), 0, list(table.records(rows[:COUNT_DEFAULT])))
    shown = ShownTable(page, table.columns, query, window, table.count, view, arguments, links, is_part)
    return table, rows, shown


@dataclass(frozen=True, slots=True)
class ShownTable:
    """A table for its template and its script: which rows match, and where to fetch them."""

    page: TablePage
    columns: Mapping[str, Any]
    query: TableQuery
    window: TableWindow[Any]
    """The first rows that match."""
    count: int
    view: View
    arguments: Mapping[str, str]
    """The parameters that choose the table."""
    links: Mapping[str, str]
    is_part: bool = False
    """Whether it is a part of a page with another content, whose URL has no state of the table."""

    @property
    def parameters(self) -> str:
        """All parameters and the position of the history as a query."""
        parameters = {**self.arguments, **self.filters, SORT: self.sort, AT: self.view.parameters.get(AT, "")}
        return urlencode({name: text for name, text in parameters.items() if text})

    def download(self, format_name: str) -> str:
        """The address of all these rows in a format."""
        return self.view.link(
            self.page.path, format=format_name, sort=self.sort or None, **self.arguments, **self.filters
        )

    @property
    def filters(self) -> dict[str, str]:
        """The text of each filter."""
        return dict(self.query.filters)

    @property
    def sort(self) -> str:
        """The sort order, as the parameter has it."""
        return ",".join(f"{'-' if descending else ''}{name}" for name, descending in self.query.sort)

    @property
    def description(self) -> str:
        """The table as JSON for the script: columns with their kinds and the names of special values."""
        columns = [
            {"name": name, "kind": column.kind, "texts": dict(getattr(column, "texts", {}))}
            for name, column in self.columns.items()
        ]
        description = {"path": self.page.path, "columns": columns, "links": dict(self.links), "reserved": RESERVED}
        return json.dumps(description)

    @property
    def first_rows(self) -> Markup:
        """The first rows as JSON for the script, within an element ``script``."""
        window = {**msgspec.structs.asdict(self.window), "count": COUNT_DEFAULT}
        return Markup(msgspec.json.encode(window).decode().replace("<", r"\u003c"))


def json_response(content: Any, status: int = 200) -> Response:
    """``content`` as JSON."""
    return Response(msgspec.json.encode(content), status, media_type=JSON)


def html_response(template: str, http_status: int = 200, **values: Any) -> Response:
    """A template as a page."""
    text = templates().get_template(template).render(values)
    return Response(text, http_status, media_type="text/html; charset=utf-8")


@cache
def templates() -> Environment:
    """The templates of the console. They may import ``parts.html`` of kframe."""
    result = environment(PackageLoader("kframe_console"), PLAN_TEMPLATES)
    result.filters["duration"] = duration_text
    result.globals["assets"] = ASSETS
    return result


def _download(page: ConsolePage, suffix: str, blocks: Any) -> Response:
    disposition = {"content-disposition": f'attachment; filename="{page.name}.{suffix}"'}
    return StreamingResponse(blocks, media_type=MEDIA_TYPES[suffix], headers=disposition)
