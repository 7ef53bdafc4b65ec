"""What-if: an operation on brokers that users point at, and its effect on partitions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import click
import numpy as np
from msgspec import Struct, defstruct

from kframe.plugin import ParameterError
from kframe.plugin.commands import WHATIF_OPERATIONS
from kframe.plugin.live import Progress
from kframe.plugin.pages import BarsPart
from kframe.plugin.settings import nearest, short_repr
from kframe.plugin.snapshot import Snapshot
from kframe.plugin.whatif import ChangedPartition, PartitionChanges, Verb, WhatIf, WhatIfDocument, summary_document
from kframe_console.pages.overview import racks_content
from kframe_console.pages.page import PARTITION_LINKS, ContentPage, PageContext, TablePage, page
from kframe_console.plans.forms import OptionForm
from kframe_console.tables.columns import DataColumn, ListsColumn, NamedColumn, NumericColumn, numeric
from kframe_console.tables.table import ColumnTable

_LEADERS: Final = {-1: "none"}
_YES: Final = {0: "no", 1: "yes"}
_KRAFT_ONLY: Final = frozenset({"fence", "unfence", "fail-directories", "update-features", "unregister"})
#: The operations by the command of ``kframe whatif``. A plan of reassignments has a page of its own.
OPERATIONS: Final = {
    name: OptionForm(name, click.pass_obj(act), *options)
    for name, (act, options) in WHATIF_OPERATIONS.items()
    if name != "reassign"
}
#: An operation, and the options of all operations.
WhatIfParameters: Final[type[Struct]] = defstruct(
    "WhatIfParameters",
    [
        ("operation", str, ""),
        *(
            (name, str | None, None)
            for name in {field.name: 0 for form in OPERATIONS.values() for field in form.fields}
        ),
    ],
    forbid_unknown_fields=True,
)


@dataclass(frozen=True, slots=True, eq=False)
class WhatIfResult:
    """The retained parts of an outcome."""

    document: WhatIfDocument
    changes: ColumnTable
    pictures: Sequence[BarsPart]
    nbytes: int


def operations_of(snapshot: Snapshot) -> dict[str, OptionForm]:
    """The operations on a cluster of this mode."""
    return {name: form for name, form in OPERATIONS.items() if snapshot.is_kraft or name not in _KRAFT_ONLY}


def _chosen_form(snapshot: Snapshot, parameters: Any) -> tuple[OptionForm | None, dict[str, str]]:
    """The form of the chosen operation, and its texts. Raises ParameterError for parameters that it does not have."""
    forms, name = operations_of(snapshot), parameters.operation
    if name and name not in forms:
        raise ParameterError("operation", repr(name), nearest(name, tuple(forms)))
    form = forms.get(name)
    if form is None:
        return None, {}
    names = {"operation", *(field.name for field in form.fields)}
    for field in WhatIfParameters.__struct_fields__:
        if field not in names and (getattr(parameters, field) or "").strip():
            expected = "none: the operation does not have it"
            raise ParameterError(field, short_repr(getattr(parameters, field)), expected)
    return form, form.texts_of(parameters)


def whatif_result(context: PageContext, parameters: Any) -> WhatIfResult:
    """The result of an operation. Raises InputError, Unfinished and what the job raises."""
    snapshot, name = context.reading.snapshot, parameters.operation
    form, texts = _chosen_form(snapshot, parameters)
    if form is None:
        raise ParameterError("operation", "no value", "one of " + ", ".join(OPERATIONS))
    key = (context.reading.number, "whatif", name, *texts.items())

    def compute(progress: Progress) -> WhatIfResult:
        whatif = WhatIf(snapshot)
        whatif.step_progress = progress
        progress(0, 0)
        outcome = form.request(texts, whatif)
        document = summary_document(outcome, whatif.snapshot, whatif.cluster)
        return WhatIfResult(
            document,
            _changes_table(key, outcome.changes),
            outcome.brokers.pictures(),
            _nbytes(outcome.changes) + 1_000 * len(document.brokers),
        )

    title = name.replace("-", " ").capitalize()
    return context.jobs.result(key, f"{title}: what-if", compute, lambda result: result.nbytes)


def _extras(context: PageContext, parameters: Any, content: WhatIfDocument | None) -> dict[str, Any]:
    """The operations of the cluster, the form of the chosen one, brokers to point at, and pictures of the result."""
    form, texts = _chosen_form(context.reading.snapshot, parameters)
    fields = () if form is None else form.fields
    return {
        "operations": operations_of(context.reading.snapshot),
        "fields": {field.name: field for field in fields},
        "texts": texts,
        "racks": racks_content(context),
        "pictures": () if content is None else whatif_result(context, parameters).pictures,
    }


@page(
    ContentPage, "whatif", "/whatif", title="What if", schema="kframe.whatif/v1", in_navigation=True,
    parameters=WhatIfParameters, extras=_extras,
)  # fmt: skip
def whatif_page(context: PageContext, parameters: Any) -> WhatIfDocument | None:
    """The outcome of an operation: kframe whatif. The changed partitions are in /whatif/partitions.

    None until the operation and what it is applied to are chosen.
    """
    _, texts = _chosen_form(context.reading.snapshot, parameters)
    return whatif_result(context, parameters).document if texts else None


def _partition_links(context: PageContext, parameters: Any) -> Mapping[str, str]:
    """Links to the explanation of each partition after a failure of brokers; none for other operations."""
    operation = whatif_result(context, parameters).document.operation
    if operation.verb != Verb.FAIL:
        return {}
    return {"partition": f"/topics/{{topic}}/{{partition}}?fail={','.join(map(str, operation.brokers))}"}


@page(
    TablePage, "whatif-partitions", "/whatif/partitions", title="Changed partitions", row=ChangedPartition,
    schema="kframe.whatif-partitions/v1", links=PARTITION_LINKS, links_of=_partition_links, parameters=WhatIfParameters,
)  # fmt: skip
def changed_partitions_page(context: PageContext, parameters: Any) -> ColumnTable:
    """The partitions that an operation changes, before and after: the partitions of kframe whatif -o json."""
    return whatif_result(context, parameters).changes


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
