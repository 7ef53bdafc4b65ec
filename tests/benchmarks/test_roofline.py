"""``python -m benchmarks.limits.roofline`` measures every kernel, and counts its bytes."""

from __future__ import annotations

from inspect import isroutine

from benchmarks.limits import roofline
from benchmarks.limits.kernel_calls import NOT_MEASURED, WHOLE_ONLY, calls_of
from benchmarks.limits.kernel_cluster import KernelCluster
from kframe import kernels

PARTITIONS, BROKERS = 1_200, 40

#: Bytes per row that a kernel must read, then write, in a cluster of RF 3, counted by hand.
BYTES_A_ROW = {
    # rows, slot_start, both counts, replica and isr, flags; the leader.
    "choose_leaders": 4 + 4 + 2 + 2 + 6 + 6 + 3 + 4,
    # flags and leader: healthy rows need no other column.
    "list_leaderless": 3 + 2,
    # status alone.
    "list_in_states": 1,
    # slot_start, replica_count, replica; status.
    "initialize_replica_states": 4 + 2 + 6 + 3,
    # slot_start, replica_count, replica; one step per replica, of one byte for adjacent rows as here.
    "build_replica_index": 4 + 2 + 6 + 3,
    # rows, slot_start, isr_offsets and values, five new columns; six columns, isr.
    "store_states": 4 + 4 + 4 + 12 + (4 + 4 + 1 + 4 + 2) + (2 + 4 + 1 + 4 + 2 + 2) + 6 + 1,
    # is_new, rows, size, two addresses; an entry, read and written: fixed, is_new, recovery, end, four lengths, ids.
    "copy_entries": 1 + 4 + 4 + 8 + 8 + 2 * (20 + 1 + 1 + 1 + 4 + 24),
}


def test_every_kernel_is_measured_or_excluded_with_reason() -> None:
    whole, scattered = (set(calls_of(KernelCluster(200, 5, scattered=scattered))) for scattered in (False, True))
    assert whole | NOT_MEASURED.keys() == {name for name, kernel in vars(kernels).items() if isroutine(kernel)}
    assert whole - scattered == set(WHOLE_ONLY) | {"count_failures", "count_pair_failures"}
    assert set(roofline.NOTES) | set(roofline.LIMITS) <= whole


def test_byte_counts_equal_manual_counts() -> None:
    kernel_cluster = KernelCluster(PARTITIONS, BROKERS)
    calls = calls_of(kernel_cluster)
    for name, each in BYTES_A_ROW.items():
        # Broker tables and list ends: a few bytes per broker, for any number of rows.
        assert 0 <= kernel_cluster.bytes_of(name, calls[name]) - each * PARTITIONS <= 24 * BROKERS, name
