"""The failures of every broker, every two brokers and every rack."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Annotated, Any, Literal, TypeAlias

import msgspec
import numpy as np
from msgspec import Meta, Struct

from kframe.plugin.live import Progress
from kframe.plugin.whatif import (
    FAILURE_METRICS,
    Failure,
    SortBy,
    Sweep,
    SweepDocument,
    SweepRow,
    sweep,
    sweep_document,
)
from kframe_console.pages.page import ContentPage, PageContext, TablePage, page
from kframe_console.tables.columns import DataColumn, DecimalColumn, ListsColumn, NamedColumn, numeric
from kframe_console.tables.table import ColumnTable

Elr: TypeAlias = Literal["on", "off"]


class FailuresParameters(Struct, frozen=True, forbid_unknown_fields=True):
    """``elr`` turns eligible leader replicas of a KRaft cluster on or off first."""

    elr: Elr | None = None


class SweepParameters(Struct, frozen=True, forbid_unknown_fields=True):
    """``by`` ranks the failures, of which JSON has ``limit``. The heat map has ``units``; ``elr`` is as in
    FailuresParameters."""

    by: SortBy = SortBy.OFFLINE
    units: Literal["brokers", "racks"] = "brokers"
    elr: Elr | None = None
    limit: Annotated[int, Meta(ge=0, le=1_000)] = 100


@dataclass(frozen=True, slots=True, eq=False)
class SweepResult:
    """A sweep, and the table of its failures, the worst first."""

    swept: Sweep
    failures: ColumnTable
    nbytes: int


def sweep_result(context: PageContext, elr: Elr | None) -> SweepResult:
    """The sweep of the reading. Raises InputError, Unfinished and what the job raises."""
    snapshot, key = context.reading.snapshot, (context.reading.number, "sweep", elr)

    def compute(progress: Progress) -> SweepResult:
        swept = sweep(snapshot, elr=elr_enabled(elr), progress=progress)
        columns = (getattr(swept, field.name) for field in fields(swept))
        nbytes = sum(column.nbytes for column in columns if isinstance(column, np.ndarray))
        return SweepResult(swept, _failures_table(key, swept), 2 * nbytes)

    title = "Fail every broker, every two brokers and every rack"
    return context.jobs.result(key, title, compute, lambda result: result.nbytes)


def elr_enabled(elr: Elr | None) -> bool | None:
    """``elr`` as an argument of ``sweep``."""
    return None if elr is None else elr == "on"


@page(ContentPage, "sweep", "/sweep", schema="kframe.sweep/v1", in_navigation=True)
def sweep_page(context: PageContext, parameters: SweepParameters) -> SweepDocument:
    """Every failure of a broker, two brokers and a rack: kframe whatif sweep. /sweep/failures has all of them."""
    swept = sweep_result(context, parameters.elr).swept
    rows = msgspec.convert(swept.worst(parameters.limit, parameters.by), list[SweepRow])
    return msgspec.structs.replace(sweep_document(swept, context.reading.snapshot), rows=rows)


def _failures_table(key: tuple[Any, ...], swept: Sweep) -> ColumnTable:
    rows, count = swept.ranked(), len(swept)
    columns: dict[str, DataColumn] = {
        "kind": NamedColumn(tuple(map(str, Failure)), swept.kind[rows].astype(np.int32)),
        "brokers": ListsColumn(swept.failed_ids(rows)),
        "rack": NamedColumn(swept.rack_names, swept.rack[rows]),
    }
    if swept.directories is not None:
        columns["directory"] = NamedColumn(swept.directories.ids, swept.directories.directory[rows])
        columns["may_lose_data"] = numeric(swept.directories.may_lose_data[rows], count)
    for name in FAILURE_METRICS:
        column = swept.column(name)
        columns[name] = numeric(None if column is None else column[rows], count)
    columns["leaders_max"] = numeric(swept.leaders_max[rows], count)
    columns["leaders_mean"] = DecimalColumn(swept.leaders_mean[rows])
    columns["leader_skew"] = DecimalColumn(swept.max_mean_ratio[rows])
    return ColumnTable((*key, "failures"), columns, count)


@page(
    TablePage,
    "sweep-failures",
    "/sweep/failures",
    title="Failures",
    row=SweepRow,
    schema="kframe.sweep-failures/v1",
    links={
        "brokers": "/whatif?operation=fail&brokers={brokers}",
        "rack": "/whatif?operation=fail&racks={rack}",
        "directory": "/whatif?operation=fail-directories&broker={brokers}&directories={directory}",
    },
)
def failures_page(context: PageContext, parameters: FailuresParameters) -> ColumnTable:
    """Every failure of a sweep: the rows of kframe whatif sweep, the worst first."""
    return sweep_result(context, parameters.elr).failures
