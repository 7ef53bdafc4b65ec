"""A failure that is played on one partition of each form has the results of all of them."""

from __future__ import annotations

from itertools import permutations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kframe.core.kraft.context import KraftContext
from kframe.model.kraft.metadata import ClusterMetadata
from kframe.snapshot import Snapshot, Source
from kframe.whatif.engines.kraft.engine import KraftEngine
from kframe.whatif.engines.kraft.failed_rows import NO_BROKER, FailureCases, first_partitions, play_cases
from kframe.whatif.engines.kraft.partition_forms import NO_FORM, PartitionForms
from tests.kraft.strategies import clusters
from tests.whatif.kraft_samples import metadata_with, partition
from verification.support.properties import examples


def context_of(metadata: ClusterMetadata) -> KraftContext:
    return KraftEngine(Snapshot.from_metadata(metadata, source=Source("kraft", "drawn")), None).context


def forms_of(context: KraftContext) -> PartitionForms:
    rows = np.arange(len(context.metadata.partitions), dtype=np.int32)
    return PartitionForms.of(context, rows, first_partitions(context))


@examples(1)
@given(clusters(), st.data())
def test_results_are_those_of_each_case(metadata: ClusterMetadata, data: st.DataObject) -> None:
    context = context_of(metadata)
    forms, brokers = forms_of(context), range(len(context.metadata.brokers))
    failures = [list(failing) for failing in permutations([*brokers, NO_BROKER], data.draw(st.integers(1, 3)))]
    rows = np.arange(len(context.metadata.partitions), dtype=np.int32)
    cases = FailureCases(
        np.repeat(rows, len(failures)), np.tile(np.array(failures, np.int32), (len(rows), 1)), directory=None
    )
    played, expected = forms.play(cases), play_cases(context, cases, forms.first)
    assert played.flags.tolist() == expected.flags.tolist()
    assert played.leader.tolist() == expected.leader.tolist()


def test_partitions_that_differ_in_broker_ids_share_a_form() -> None:
    context = context_of(
        metadata_with(
            [
                partition(0, (1, 2, 3), (1, 2, 3)),
                partition(1, (3, 1, 2), (3, 2, 1)),
                partition(2, (3, 1, 2), (3, 1)),
                partition(3, (2, 1, 4), (2, 4), adding_replicas=(4,)),
            ]
        )
    )
    number = forms_of(context).number.tolist()
    assert number[0] == number[1] != number[2]
    assert number[3] == NO_FORM
