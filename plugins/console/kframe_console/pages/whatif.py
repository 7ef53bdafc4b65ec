"""What-if: an operation that readers choose by pointing at brokers, and what it does to the cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from kframe.plugin import ParameterError
from kframe.plugin.live import Progress
from kframe.plugin.pages import BarsPart
from kframe.plugin.settings import nearest
from kframe.plugin.snapshot import Snapshot
from kframe.plugin.whatif import PartitionChanges, WhatIf, WhatIfDocument, summary_document
from kframe_console.pages.operations import OPERATIONS, OperationForm, WhatIfParameters, operations_of
from kframe_console.pages.overview import RackContent, racks_content
from kframe_console.pages.page import ContentPage, PageContext, page
from kframe_console.tables.columns import DataColumn, ListsColumn, NamedColumn, NumericColumn, numeric
from kframe_console.tables.table import ColumnTable

_LEADERS: Final = {-1: "none"}
_YES: Final = {0: "no", 1: "yes"}


@dataclass(frozen=True, slots=True, eq=False)
class WhatIfResult:
    """What is retained of an outcome."""

    document: WhatIfDocument
    changes: ColumnTable
    pictures: Sequence[BarsPart]
    nbytes: int


@dataclass(frozen=True, slots=True)
class WhatIfExtras:
    """The operations of the cluster, the form of the chosen one, brokers to point at, and pictures of the result."""

    operations: Mapping[str, OperationForm]
    form: OperationForm | None
    racks: Sequence[RackContent]
    pictures: Sequence[BarsPart]


def whatif_result(context: PageContext, parameters: WhatIfParameters) -> WhatIfResult:
    """The result of an operation, a job's. Raises InputError, Unfinished and what else a job raises."""
    form = _form(context.reading.snapshot, parameters)
    if form is None or not form.is_complete(parameters):
        name = "operation" if form is None else form.required[0]
        raise ParameterError(name, "no value", "one of " + ", ".join(OPERATIONS) if form is None else "one")
    snapshot, key = context.reading.snapshot, (context.reading.number, "whatif", parameters)

    def compute(progress: Progress) -> WhatIfResult:
        whatif = WhatIf(snapshot)
        whatif.step_progress = progress
        progress(0, 0)
        outcome = form.play(whatif, parameters)
        document = summary_document(outcome, whatif.snapshot, whatif.cluster)
        return WhatIfResult(
            document,
            _changes_table(key, outcome.changes),
            outcome.brokers.pictures(),
            _nbytes(outcome.changes) + 1_000 * len(document.brokers),
        )

    return context.jobs.result(key, f"{form.title}: what-if", compute, lambda result: result.nbytes)


def whatif_extras(context: PageContext, parameters: WhatIfParameters, content: WhatIfDocument | None) -> WhatIfExtras:
    """What only HTML shows."""
    snapshot = context.reading.snapshot
    return WhatIfExtras(
        operations_of(snapshot.is_kraft),
        _form(snapshot, parameters),
        racks_content(context),
        () if content is None else whatif_result(context, parameters).pictures,
    )


@page(
    ContentPage,
    "whatif",
    "/whatif",
    title="What if",
    schema="kframe.whatif/v1",
    in_navigation=True,
    extras=whatif_extras,
)
def whatif_page(context: PageContext, parameters: WhatIfParameters) -> WhatIfDocument | None:
    """The outcome of an operation: kframe whatif. The changed partitions are in /whatif/partitions."""
    form = _form(context.reading.snapshot, parameters)
    if form is None or not form.is_complete(parameters):
        return None
    return whatif_result(context, parameters).document


def _form(snapshot: Snapshot, parameters: WhatIfParameters) -> OperationForm | None:
    """The form of the chosen operation. Raises ParameterError for one that the cluster does not have."""
    known = operations_of(snapshot.is_kraft)
    if parameters.operation and parameters.operation not in known:
        raise ParameterError("operation", repr(parameters.operation), nearest(parameters.operation, tuple(known)))
    return known.get(parameters.operation)


def _changes_table(key: tuple[object, ...], changes: PartitionChanges) -> ColumnTable:
    count = len(changes)
    columns: dict[str, DataColumn] = {
        "topic": NamedColumn(changes.topic_names, changes.topic),
        "partition": NumericColumn(changes.partition),
        "leader_before": NumericColumn(changes.leader_before, _LEADERS),
        "leader_after": NumericColumn(changes.leader_after, _LEADERS),
        "went_offline": NumericColumn(changes.went_offline, _YES),
        "came_online": NumericColumn(changes.came_online, _YES),
        "unclean": NumericColumn(changes.unclean, _YES),
        **{name: ListsColumn(lists) for name, lists in changes.lists().items()},
        **{
            name: numeric(getattr(changes, name), count)
            for name in (
                "leader_epoch_before",
                "leader_epoch_after",
                "partition_epoch_before",
                "partition_epoch_after",
            )
        },
    }
    return ColumnTable((*key, "partitions"), columns, count)


def _nbytes(changes: PartitionChanges) -> int:
    arrays = (getattr(changes, name) for name in PartitionChanges.__dataclass_fields__)
    lists = sum(ragged.values.nbytes + ragged.offsets.nbytes for ragged in changes.lists().values())
    return lists + sum(array.nbytes for array in arrays if isinstance(array, np.ndarray))
