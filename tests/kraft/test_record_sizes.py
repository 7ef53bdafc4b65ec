"""Sizes that are computed from the tables of fields equal those of encoded records, one by one and in columns."""

from __future__ import annotations

from random import Random

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from kframe_kraft.records.frames import encode_record

from kframe.core.kraft.replication import isr_changes
from kframe.model.kraft.metadata import ClusterMetadata
from kframe.model.kraft.record_sizes import record_size
from kframe.whatif.engines.kraft.commit import changes_size
from tests.kraft.strategies import BROKERS, PARTITIONS, TOPICS, clusters, context_of
from verification.kraft.random_records import random_record


def test_sizes_of_random_records_of_every_type_and_version() -> None:
    random = Random(1)
    for number in range(1_000):
        record, version = random_record(number, random)
        assert record_size(record, version) == len(encode_record(record, version)), type(record).__name__


@given(clusters(), st.integers(0, BROKERS - 1), st.booleans())
def test_size_of_column_changes_equals_size_of_records(metadata: ClusterMetadata, broker_id: int, elr: bool) -> None:
    context = context_of(metadata, elr=elr)
    rows = np.arange(TOPICS * PARTITIONS, dtype=np.int32)
    changes = isr_changes.remove_unclean_broker(context, broker_id, rows)
    expected = sum(record_size(record, version) for record, version in changes.records())
    assert changes_size(changes, changes.version) == expected
