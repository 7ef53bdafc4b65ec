"""One topic: its settings, the conditions of its partitions, and their table."""

from __future__ import annotations

from msgspec import Struct

from kframe.plugin.snapshot import SnapshotTopic, conditions_of, topic_rows
from kframe_console.pages.page import ContentPage, PageContext, page
from kframe_console.sources.topic_lookup import topic_snapshot


class TopicParameters(Struct, forbid_unknown_fields=True):
    """The topic of a page."""

    topic: str


class TopicContent(Struct):
    """A topic, and how many of its partitions are in each condition; null is unknown."""

    topic: SnapshotTopic
    conditions: dict[str, int | None]


@page(ContentPage, "topic", "/topics/{topic}")
def topic_page(context: PageContext, parameters: TopicParameters) -> TopicContent:
    """One topic: settings, and conditions of its partitions.

    Raises ParameterError for an unknown topic.
    """
    snapshot = topic_snapshot(context.reading.snapshot, parameters.topic)
    return TopicContent(next(topic_rows(snapshot)), conditions_of(snapshot).counts())
