"""A page: an address, the parameters of its URL, and the value that HTML, JSON, CSV and Parquet show."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVar, get_args, get_type_hints

from msgspec import Struct

from kframe_console.jobs.jobs import Jobs
from kframe_console.plans.executions import Executions
from kframe_console.plans.session import Plans
from kframe_console.security.identities import LOCAL, Identity
from kframe_console.sources.monitor import ClusterMonitor
from kframe_console.sources.reading import ClusterSource, Reading
from kframe_console.sources.state_changes import StateChangeLog
from kframe_console.tables.cache import ResultCache
from kframe_console.tables.table import ColumnTable

Row = TypeVar("Row")
Kind = TypeVar("Kind")
#: The links of a table of partitions.
PARTITION_LINKS: Final = {"topic": "/topics/{topic}", "partition": "/topics/{topic}/{partition}"}


class NoParameters(Struct, forbid_unknown_fields=True):
    """The parameters of a page that has none."""


@dataclass(frozen=True, slots=True)
class PageContext:
    """What a page is made from: a reading of the source, shared results, jobs, and the running controllers."""

    source: ClusterSource
    reading: Reading
    cache: ResultCache
    """Tables and contents. Those of a reading are few."""
    rows: ResultCache
    """Sort orders, filters and selections of rows, which are many: they displace no table."""
    jobs: Jobs
    plans: Plans
    monitor: ClusterMonitor
    executions: Executions | None = None
    """None: the console executes no plans."""
    state_changes: StateChangeLog | None = None
    """The state-change.log of the cluster, if the user has named it."""
    user: Identity = LOCAL


@dataclass(frozen=True, slots=True)
class Redirect:
    """The content is on another page. ``values`` are its parameters, including those in braces of its path."""

    path: str
    values: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Download:
    """A content that is a file: its name, its media type, and its text in parts."""

    name: str
    media_type: str
    parts: Iterable[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsolePage:
    """An address and its response. ``path`` may have fields of ``parameters`` in braces, as ``/topics/{topic}``.

    ``doc`` describes it, and ``schema`` names the type of its JSON.
    """

    name: str
    title: str
    path: str
    doc: str
    schema: str
    template: str
    parameters: type[Struct] = NoParameters
    in_navigation: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ContentPage(ConsolePage):
    """A page with one value. ``build(context, parameters)`` returns a ``content``; it runs in a thread, and raises
    InputError for unusable parameters.

    ``extras(context, parameters, content)`` returns what only HTML shows, such as the choices of a form; with it,
    ``build`` may return None for parameters that ask for nothing yet. It may return a Redirect or a Download instead.
    """

    content: type
    build: Callable[[PageContext, Any], Any]
    extras: Callable[[PageContext, Any, Any], Any] = lambda _context, _parameters, _content: None


@dataclass(frozen=True, slots=True, kw_only=True)
class TablePage(ConsolePage):
    """A page with a table whose rows have the type ``row``. ``build(context)`` makes the table of a reading once.

    ``links`` has for columns the address of what a cell names, as ``/topics/{topic}``. With ``parameters``, whose
    fields are no columns, ``build(context, parameters)`` finds the table of these parameters among the results of jobs.
    """

    row: type[Struct]
    build: Callable[..., ColumnTable]
    links: Mapping[str, str] = field(default_factory=dict)
    links_of: Callable[[PageContext, Any], Mapping[str, str]] | None = None
    """Further links, for the parameters."""
    template: str = "table.html"

    def table(self, context: PageContext, parameters: Struct | None = None) -> ColumnTable:
        """The table of the reading."""
        if self.parameters is not NoParameters:
            return self.build(context, parameters)
        key = (context.reading.number, self.name, "table")
        return context.cache.get(key, lambda: self.build(context), lambda table: table.nbytes)


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionPage(ConsolePage):
    """A write: it answers only POST. Each is logged with its user, and needs the CSRF token of a page.

    ``predict(context, parameters)`` returns the expected result for the log, such as the what-if of a plan;
    ``run(context, parameters)`` does it and returns a ``content`` or a Redirect. ``executes``: it changes the cluster,
    for which the console must have been started with ``--allow-execute``.
    """

    content: type
    run: Callable[[PageContext, Any], Any]
    predict: Callable[[PageContext, Any], Any] | None = None
    executes: bool = False


def page(
    kind: Callable[..., Kind], name: str, path: str, *, redirects_to: ContentPage | None = None, **fields: Any
) -> Callable[[Callable[..., Any]], Kind]:
    """A decorator that makes a page of the function that builds or performs it.

    The first paragraph of its docstring describes the page. ``fields`` of ``kind`` that are not stated follow from the
    name, from the types of the function, and from the page that it redirects to.
    """

    def decorate(answer: Callable[..., Any]) -> Kind:
        types = get_type_hints(answer)
        content = types.pop("return")
        stated = {
            "title": name.replace("-", " ").capitalize(),
            "doc": (inspect.getdoc(answer) or "").partition("\n\n")[0].replace("\n", " "),
            "schema": f"kframe.console-{name}/v1",
            "run" if kind is ActionPage else "build": answer,
        }
        if kind is not TablePage:
            stated["content"] = next(iter(get_args(content)), content)  # The other one is None.
            stated["template"] = f"{name.replace('-', '_')}.html"
        if redirects_to is not None:
            stated |= {"content": redirects_to.content, "schema": redirects_to.schema}
        *_, parameters = types.values()
        if issubclass(parameters, Struct):
            stated["parameters"] = parameters
        return kind(name=name, path=path, **{**stated, **fields})

    return decorate


class TableWindow(Struct, Generic[Row]):
    """Some rows of a table. ``total`` rows match the filters; ``rows`` are those from number ``first`` on."""

    total: int
    first: int
    rows: list[Row]
