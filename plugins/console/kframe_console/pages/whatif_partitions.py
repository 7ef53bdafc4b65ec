"""The partitions that a what-if changes."""

from __future__ import annotations

from collections.abc import Mapping

from kframe.plugin.whatif import ChangedPartition, Verb
from kframe_console.pages.operations import WhatIfParameters
from kframe_console.pages.page import PARTITION_LINKS, PageContext, TablePage, page
from kframe_console.pages.whatif import whatif_result
from kframe_console.tables.table import ColumnTable


def explained_by(context: PageContext, parameters: WhatIfParameters) -> Mapping[str, str]:
    """The explanation of a partition after the failure of these brokers, if the operation is one."""
    operation = whatif_result(context, parameters).document.operation
    if operation.verb != Verb.FAIL:
        return {}
    return {"partition": f"/topics/{{topic}}/{{partition}}?fail={','.join(map(str, operation.brokers))}"}


@page(
    TablePage,
    "whatif-partitions",
    "/whatif/partitions",
    title="Changed partitions",
    row=ChangedPartition,
    schema="kframe.whatif-partitions/v1",
    links=PARTITION_LINKS,
    links_of=explained_by,
)
def partitions_page(context: PageContext, parameters: WhatIfParameters) -> ColumnTable:
    """The partitions that an operation changes, before and after: the partitions of kframe whatif -o json."""
    return whatif_result(context, parameters).changes
