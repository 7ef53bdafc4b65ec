"""One topic: its settings, the conditions of its partitions, and their table."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from kframe.plugin.snapshot import SnapshotTopic, conditions_of, topic_rows
from kframe_console.pages.page import ContentPage, PageContext
from kframe_console.sources.parts import topic_snapshot


class TopicParameters(Struct, forbid_unknown_fields=True):
    """The topic of a page."""

    topic: str


class TopicContent(Struct):
    """A topic, and how many of its partitions are in each condition; null is unknown."""

    topic: SnapshotTopic
    conditions: dict[str, int | None]


def topic_content(context: PageContext, parameters: TopicParameters) -> TopicContent:
    """The topic of the parameters. Raises ParameterError if there is none."""
    snapshot = topic_snapshot(context.reading.snapshot, parameters.topic)
    return TopicContent(next(topic_rows(snapshot)), conditions_of(snapshot).counts())


PAGE: Final = ContentPage(
    name="topic",
    title="Topic",
    path="/topics/{topic}",
    doc="One topic: settings, and conditions of its partitions.",
    schema="kframe.console-topic/v1",
    content=TopicContent,
    build=topic_content,
    template="topic.html",
    parameters=TopicParameters,
    in_navigation=False,
)
