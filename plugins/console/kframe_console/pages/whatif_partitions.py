"""The partitions that a what-if changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kframe.plugin.whatif import ChangedPartition, Verb
from kframe_console.pages.operations import WhatIfParameters
from kframe_console.pages.page import PageContext, TablePage
from kframe_console.pages.whatif import whatif_result
from kframe_console.tables.table import ColumnTable


def changed_partitions(context: PageContext, parameters: WhatIfParameters) -> ColumnTable:
    """The changed partitions of an operation, by topic and number."""
    return whatif_result(context, parameters).changes


def explained_by(context: PageContext, parameters: WhatIfParameters) -> Mapping[str, str]:
    """The explanation of a partition after the failure of these brokers, if the operation is one."""
    operation = whatif_result(context, parameters).document.operation
    if operation.verb != Verb.FAIL:
        return {}
    return {"partition": f"/topics/{{topic}}/{{partition}}?fail={','.join(map(str, operation.brokers))}"}


PAGE: Final = TablePage(
    name="whatif-partitions",
    title="Changed partitions",
    path="/whatif/partitions",
    doc="The partitions that an operation changes, before and after: the partitions of kframe whatif -o json.",
    schema="kframe.whatif-partitions/v1",
    row=ChangedPartition,
    build=changed_partitions,
    links={"topic": "/topics/{topic}", "partition": "/topics/{topic}/{partition}"},
    parameters=WhatIfParameters,
    links_of=explained_by,
    in_navigation=False,
)
