"""The consumer groups that depend on a topic: their members, committed offsets and lags."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final
from urllib.parse import quote

from msgspec import Struct

from kframe.plugin import InputError
from kframe.plugin.live import Progress
from kframe_console.pages.page import PageContext, TablePage, page
from kframe_console.sources.topic_lookup import topic_index
from kframe_console.tables.records import figures_table
from kframe_console.tables.table import ColumnTable

#: How long a result is valid before the page requests it from the brokers again.
_VALID: Final = timedelta(seconds=30)


class GroupsParameters(Struct, frozen=True, forbid_unknown_fields=True):
    """The topic of a page."""

    topic: str


class GroupRow(Struct):
    """A partition from which a group reads. Null is unknown, or none; a row with a ``problem`` says what is missing.

    ``lag`` is the number of records from the ``committed`` offset to the ``end`` of the partition, ``client`` the
    client id and host of the member that has it, ``members`` the number of members of the group.
    """

    group: str | None = None
    state: str | None = None
    members: int | None = None
    partition: int | None = None
    lag: int | None = None
    committed: int | None = None
    end: int | None = None
    client: str | None = None
    problem: str | None = None


@page(
    TablePage,
    "groups",
    "/groups",
    title="Consumer groups",
    row=GroupRow,
    links_of=lambda _context, parameters: {"partition": f"/topics/{quote(parameters.topic, safe='')}/{{partition}}"},
)
def groups_page(context: PageContext, parameters: GroupsParameters) -> ColumnTable:
    """The consumer groups that read a topic, with members and lags, where the source knows them.

    Raises Unfinished while brokers are asked, ParameterError for an unknown topic, and InputError if the source does
    not know any groups.
    """
    cluster, topic = context.source.groups, parameters.topic
    if cluster is None:
        raise InputError("consumer groups", "a source that does not show them", "kafka://HOST:PORT[,HOST:PORT]...")
    topic_index(context.reading.snapshot, topic)
    key = ("groups", topic)

    def compute(progress: Progress) -> tuple[datetime, ColumnTable]:
        result, time = cluster.topic_groups(topic, progress), datetime.now(UTC)
        rows = [GroupRow(problem=problem) for problem in result.problems]
        rows += [GroupRow(**partition._asdict(), lag=partition.lag) for partition in result.partitions]
        return time, figures_table((*key, time), rows, GroupRow)

    retained = context.jobs.retained(key)
    if retained is not None and datetime.now(UTC) - retained[0] > _VALID:
        context.jobs.drop(key)
    title = f"Read the consumer groups of topic {topic}"
    return context.jobs.result(key, title, compute, lambda result: result[1].nbytes)[1]
