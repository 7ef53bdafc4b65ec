"""Topics and brokers of a selection that no record of the log names."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import chain
from typing import Final
from uuid import UUID

import numpy as np

from kframe.plugin.kraft import LogError, records
from kframe.plugin.snapshot import topic_pattern
from kframe_kraft.disk import LogHistory
from kframe_kraft.records import decode_record
from kframe_kraft.time_travel.summaries import broker_ids, topic_of

#: The records that create topics and register brokers: few, and most names are in one of them.
_CREATIONS: Final = (records.TopicRecord.api_key, records.RegisterBrokerRecord.api_key)
_ALL: Final = tuple(records.RECORD_TYPES)


def check_mentioned(history: LogHistory, topics: Collection[str], brokers: Collection[int]) -> None:
    """Check that the snapshot or the log of a history names each of ``topics``, names or patterns, and ``brokers``.

    Raises LogError for the first that neither names, and RecordError for a malformed record.
    """
    missing_topics, missing_brokers = list(topics), set(brokers)
    for api_keys in (_CREATIONS, _ALL):
        names: dict[UUID, str] = {}
        for record in _records(history, api_keys):
            if not missing_topics and not missing_brokers:
                return
            if isinstance(record, records.TopicRecord):
                names[record.topic_id] = record.name
            if missing_brokers:
                missing_brokers -= broker_ids(record)
            if missing_topics and (name := topic_of(record, names)):
                missing_topics = [text for text in missing_topics if not topic_pattern([text]).match(name)]
    if missing_topics:
        raise LogError(
            "--topics", repr(missing_topics[0]), "the name of a topic in the log, or a pattern that matches some"
        )
    if missing_brokers:
        raise LogError("--brokers", f"broker {min(missing_brokers)}", "a broker that the log names")


def _records(history: LogHistory, api_keys: Collection[int]) -> Iterator[records.MetadataRecord]:
    """Yield the records with these API keys, of the snapshot, then of the log."""
    snapshot = () if history.snapshot is None else history.snapshot.batches
    for batch in chain(snapshot, history.log.batches):
        if not batch.header.is_control:
            for number in np.flatnonzero(np.isin(batch.frames().api_key, list(api_keys))).tolist():
                yield decode_record(batch.value(number), batch.name(number)).record
