"""Controller epochs by number."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kframe.errors import ShapeError
from kframe.model.arrays import Int32, Ragged
from kframe.model.columns import Partitions
from kframe.model.epoch_table import EPOCHS_MAX, NO_CONTROLLER_EPOCH, EpochTable

EPOCHS = st.lists(st.sampled_from([-1, 0, 1, 2, 7, 2**31 - 1]), max_size=8)


def rows_of(partitions: Partitions, epochs: Int32) -> Int32:
    count = len(epochs)
    numbers = np.arange(count, dtype=np.int32)
    return partitions.append(numbers, numbers, Ragged.empty(count), values={"controller_epoch": epochs})


@given(st.lists(EPOCHS, max_size=4))
def test_rows_have_the_epochs_that_they_were_given(batches: list[list[int]]) -> None:
    partitions, expected = Partitions(), list[int]()
    for epochs in batches:
        rows_of(partitions, np.array(epochs, np.int32))
        expected += epochs
        for table in (partitions, partitions.copy()):
            assert table.controller_epochs_of(np.arange(len(expected))).tolist() == expected
    assert set(partitions.epoch_table.epochs.tolist()) == {NO_CONTROLLER_EPOCH, *expected}


def test_new_rows_have_no_controller_epoch() -> None:
    partitions = Partitions()
    rows = partitions.append(np.zeros(2, np.int32), np.arange(2, dtype=np.int32), Ragged.empty(2))
    assert partitions.controller_epochs_of(rows).tolist() == [NO_CONTROLLER_EPOCH] * 2


def test_too_many_epochs_raise_and_append_nothing() -> None:
    partitions = Partitions()
    rows_of(partitions, np.arange(EPOCHS_MAX - 1, dtype=np.int32))
    with pytest.raises(ShapeError, match="65537 controller epochs; the maximum is 65536"):
        rows_of(partitions, np.array([0, EPOCHS_MAX], np.int32))
    assert (len(partitions), len(partitions.epoch_table.epochs)) == (EPOCHS_MAX - 1, EPOCHS_MAX)


def test_numbers_of_known_epochs_stay() -> None:
    table = EpochTable.empty().extended(np.array([5, 9], np.int32))
    extended = table.extended(np.array([7, 5], np.int32))
    assert extended.epochs[: len(table.epochs)].tolist() == table.epochs.tolist()
    assert extended.extended(np.array([9], np.int32)) is extended
