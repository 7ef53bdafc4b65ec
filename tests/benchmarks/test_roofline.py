"""``python -m benchmarks.limits.roofline`` measures every kernel. It counts its bytes and checks its result."""

from __future__ import annotations

import json
from inspect import isroutine
from pathlib import Path

import numpy as np
import pytest

from benchmarks.limits import roofline
from benchmarks.limits.kernel_calls import LINE_BYTES, NOT_MEASURED, WHOLE_ONLY, KernelCluster, calls_of, run
from kframe import kernels
from verification import reference

PARTITIONS, BROKERS = 1_200, 40

#: Bytes per row that a kernel must read, then write, in a cluster of RF 3, counted by hand.
BYTES_A_ROW = {
    # rows, slot_start, both counts, replica and isr, flags; the leader.
    "choose_leaders": 4 + 4 + 2 + 2 + 6 + 6 + 3 + 4,
    # flags and leader: healthy rows need no other column.
    "list_leaderless": 3 + 2,
    # state alone.
    "list_in_states": 1,
    # slot_start, replica_count, replica, flags; replica_state.
    "initialize_replica_states": 4 + 2 + 6 + 3 + 3,
    # slot_start, replica_count, replica; one step per replica, of one byte for adjacent rows as here.
    "build_replica_index": 4 + 2 + 6 + 3,
    # rows, slot_start, isr_offsets and values, five new columns; six columns, isr.
    "store_states": 4 + 4 + 4 + 12 + (4 + 4 + 1 + 4 + 4) + (2 + 4 + 1 + 4 + 4 + 2) + 6,
    # is_new, rows, size, two addresses; an entry, read and written: fixed, is_new, recovery, end, four lengths, ids.
    "copy_entries": 1 + 4 + 4 + 8 + 8 + 2 * (20 + 1 + 1 + 1 + 4 + 24),
}


@pytest.fixture(scope="module", params=[False, True], ids=["all", "one-brokers"])
def kernel_cluster(request: pytest.FixtureRequest) -> KernelCluster:
    return KernelCluster(PARTITIONS, BROKERS, scattered=request.param)


def test_every_kernel_is_measured_or_excluded_with_reason() -> None:
    whole, scattered = (set(calls_of(KernelCluster(200, 5, scattered=scattered))) for scattered in (False, True))
    assert whole | NOT_MEASURED.keys() == {name for name, kernel in vars(kernels).items() if isroutine(kernel)}
    assert whole - scattered == set(WHOLE_ONLY) | {"count_failures", "count_pair_failures"}
    assert set(roofline.NOTES) | set(roofline.LIMITS) <= whole


@pytest.mark.extended
def test_kernel_results_equal_references(kernel_cluster: KernelCluster) -> None:
    scattered = kernel_cluster.k < kernel_cluster.n
    assert kernel_cluster.k == (3 * PARTITIONS // BROKERS if scattered else PARTITIONS)
    for name in calls_of(kernel_cluster):
        results = []
        for module in (kernels, reference):
            cluster = KernelCluster(PARTITIONS, BROKERS, scattered=scattered)
            call = calls_of(cluster)[name]
            call.before()
            count = run(cluster, name, call, module)
            arrays = {key: value.tolist() for key, value in cluster.arguments(name, call).items()
                    if isinstance(value, np.ndarray)}  # fmt: skip
            results.append((count, arrays))
            assert count == call.expected, name
        assert results[0] == results[1], name


def test_byte_counts_equal_manual_counts() -> None:
    kernel_cluster = KernelCluster(PARTITIONS, BROKERS)
    calls = calls_of(kernel_cluster)
    for name, each in BYTES_A_ROW.items():
        # Broker tables and list ends: a few bytes per broker, for any number of rows.
        assert 0 <= kernel_cluster.bytes_of(name, calls[name]) - each * PARTITIONS <= 24 * BROKERS, name


def test_bytes_of_scattered_rows_are_whole_cache_lines() -> None:
    kernel_cluster = KernelCluster(PARTITIONS, BROKERS, scattered=True)
    call = calls_of(kernel_cluster)["list_replicas_on"]
    lines = {(name, int(row) * size // LINE_BYTES)
             for name, size in (("slot_start", 4), ("replica_count", 2)) for row in kernel_cluster.rows}  # fmt: skip
    slots = [3 * int(row) + index for row in kernel_cluster.rows for index in range(3)]
    lines |= {("replica", slot * 2 // LINE_BYTES) for slot in slots}
    other_bytes = 4 * kernel_cluster.k + 2 * 12 * kernel_cluster.k + BROKERS
    assert kernel_cluster.bytes_of("list_replicas_on", call) == LINE_BYTES * len(lines) + other_bytes


def test_roofline_command_writes_record(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "roofline.json"
    words = ["--partitions", "400", "--brokers", "8", "--runs", "1", "--copied", "1000", "--cached", "100", "300",
             "--out", str(out)]  # fmt: skip
    assert roofline.main(words) == 0
    section = json.loads(out.read_text())["roofline"]
    for row in section["kernels"]:
        assert row["times"] == pytest.approx(row["seconds"] * row["limit_rate"] / row["bytes"])
        assert {"cached_seconds", "all_cores_seconds"} <= row.keys() or row["rows"] != "all"
    assert {row["limit"] for row in section["kernels"]} == {"copy", "gather", "scatter"}
    assert "choose_leaders" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (
            {"kernel": "update_partition_counts", "cached_seconds": 3e-9},
            "3.0 ns a row with all of it in cache, 4.0 without",
        ),
        ({"kernel": "update_partition_counts"}, "no note yet"),
        ({"kernel": "plan_removals"}, roofline.NOTES["plan_removals"]),
    ],
)
def test_kernel_beyond_limit_has_reason(row: dict[str, object], reason: str) -> None:
    assert roofline.why({"rows": "all", "row_count": 100, "seconds": 4e-7, **row}) == reason


def test_wrong_kernel_result_raises() -> None:
    kernel_cluster = KernelCluster(200, 5)
    call = calls_of(kernel_cluster)["choose_leaders"]
    kernel_cluster.shared_arguments["live"] = np.zeros(5, np.uint8)
    with pytest.raises(AssertionError, match="choose_leaders returned 0, expected 200"):
        roofline._checked(kernel_cluster, "choose_leaders", call)()
