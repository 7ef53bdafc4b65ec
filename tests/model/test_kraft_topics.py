"""The topics of a KRaft cluster."""

from __future__ import annotations

from uuid import UUID

from kframe.model.kraft.topics import KraftTopics


def test_topic_ids_as_bytes_are_in_index_order() -> None:
    topics = KraftTopics()
    assert topics.id_bytes.shape == (0, 16)
    topics.add("a", UUID(int=7))
    copied = topics.copy()
    topics.add("b", UUID(int=9))
    assert [UUID(bytes=row.tobytes()) for row in topics.id_bytes] == topics.ids == [UUID(int=7), UUID(int=9)]
    assert [UUID(bytes=row.tobytes()) for row in copied.id_bytes] == copied.ids == [UUID(int=7)]
