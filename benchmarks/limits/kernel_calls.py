"""The arguments of each bulk kernel on a cluster."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from benchmarks.limits.kernel_cluster import Arguments, Call, KernelCluster
from kframe import kernels
from kframe.model.arrays import Int32, positions_within
from kframe.model.ids import ElectionKind
from verification.reference import (
    assignments,
    describe,
    kcat_topics,
    kraft_columns,
    list_checks,
    plan_cycles,
    plans,
    restarts,
    stages,
    znode_lines,
)

#: Versions that Kafka 3.9's controller sends.
LEADER_AND_ISR, UPDATE_METADATA, STOP_REPLICA = 7, 8, 4
#: More than any request here is long: all rows go into one section.
NO_LIMIT: Final = 2**40
#: Kernels that the roofline does not measure, with the reason.
NOT_MEASURED: Final[Mapping[str, str]] = {
    "write_live_leaders": "returns once every leader is listed, after a few hundred rows",
    **dict.fromkeys(
        (
            *kraft_columns.__all__,
            "choose_kraft_leaders",
            "mark_acceptable_replicas",
            "mark_completed_reassignments",
            "mark_list_changes",
            "mark_missing_members",
            "update_elrs",
        ),
        "reads columns of KRaft mode; this cluster is in ZooKeeper mode",
    ),
    **dict.fromkeys(
        (*assignments.__all__, *describe.__all__, *kcat_topics.__all__, *znode_lines.__all__),
        "reads the text of a file; benchmarks/loading measures it",
    ),
    **dict.fromkeys(list_checks.__all__, "reads the lists of a snapshot, in every what-if that is measured"),
    **dict.fromkeys(
        ("count_replica_states", "set_replica_states", "set_replica_states_on"),
        "counts replicas of topics that are being deleted; this cluster has none",
    ),
    **dict.fromkeys(
        (*plan_cycles.__all__, *plans.__all__, *restarts.__all__, *stages.__all__),
        "reads the lists and limits of a plan; this cluster has none",
    ),
}


def _u8(count: int, fill: int = 0) -> NDArray[Any]:
    return np.full(count, fill, np.uint8)


def _i32(count: int, fill: int = 0) -> NDArray[Any]:
    return np.full(count, fill, np.int32)


def _i64(count: int, fill: int = 0) -> NDArray[Any]:
    return np.full(count, fill, np.int64)


def deciding(g: KernelCluster) -> dict[str, Call]:
    """Kernels of ``_core.pyx``: elections, removals, the states of a new controller, scans."""
    k, n, m = g.k, g.n, g.m
    leaders, lists = g.p.leaders_of(g.rows), {"isr_offsets": _i32(k + 1), "isr_values": _i32(m)}
    first = {"kind": int(ElectionKind.OFFLINE), "unclean_allowed": _u8(k)}
    planned = {"kind": int(ElectionKind.OFFLINE), "recovery_supported": True, "leader_epoch": _i32(k)}
    led_rows = int((g.isrs.values == g.b // 2).sum())
    isr_entries = g.m if led_rows == k else 2 * led_rows
    planned_of = ("changed", "leader", "leader_epoch", "expected")
    return {
        "choose_leaders": Call(first | {"leader": _i32(k)}, k, unread=("unclean_allowed",)),
        "mark_offline_isrs": Call({"offline_isr": _u8(k)}, 0),
        "plan_elections": Call(planned | {"leader": leaders, "recovery": _u8(k)} | lists, 0),
        "plan_removals": Call(
            {"brokers": _i32(k, g.b // 2), "recovery": _u8(k)} | {name: _i32(k) for name in planned_of} | lists,
            led_rows,
            # Of rows that lose no replica only the ISR is read.
            unread=() if led_rows == k else ("old_leader", "old_epoch", "status", "partition_epoch"),
            filled=dict.fromkeys((*planned_of, "recovery"), led_rows)
            | {"isr_offsets": led_rows + 1, "isr_values": min(isr_entries, m)},
        ),
        "check_transitions": Call(
            {"positions": g.rows, "status": g.p.status, "allowed": 0xFF, "valid": _u8(k)},
            k,
            addressed={"status": "row"},
        ),
        "list_stop_epochs": Call({"epochs": _i32(k)}, 0),
        "mark_rows_of_topics": Call({"chosen_topics": g.shared_arguments["deleting"], "mask": _u8(k)}, 0),
        "list_leaderless": Call(
            {"rows": _i32(n)},
            0,
            filled={"rows": 0},
            unread=("topic", "partition_epoch", "slot_start", "replica_count", "replica"),
        ),
        "mark_online_replicas": Call({"slots": g.p.slots_of(g.rows).astype(np.int32), "online": _u8(m)}, m),
        "list_in_states": Call({"rows": _i32(n), "state_mask": 0b101}, 0, unread=("topic",), filled={"rows": 0}),
        "initialize_partition_states": Call({}, 0),
        "initialize_replica_states": Call({}, g.p.slot_count),
    }


def _indexing(g: KernelCluster) -> dict[str, Call]:
    """Kernels that make and read the index of who hosts what, as a controller does."""
    arguments: Arguments = {"offsets": _i64(g.b + 1)}
    size = kernels.size_replica_index(*g.arguments("size_replica_index", Call(arguments, 0)).values())
    index_arguments: Arguments = arguments | {"last": _i32(g.b), "ends": _i64(g.b), "deltas": _u8(size)}
    run(g, "build_replica_index", Call(index_arguments, g.p.slot_count))
    written = int((index_arguments["ends"] - arguments["offsets"][:-1]).sum())
    calls = {
        "size_replica_index": Call(arguments, size),
        "build_replica_index": Call(index_arguments, g.p.slot_count, filled={"deltas": written}),
    }
    deltas = index_arguments["deltas"][: index_arguments["ends"][0]].copy()
    row_buffer = np.empty(len(deltas), np.int32)
    calls["read_replica_index"] = Call(
        {"deltas": deltas, "rows": row_buffer}, kernels.read_replica_index(deltas, row_buffer)
    )
    return calls


def placing(g: KernelCluster) -> dict[str, Call]:
    """Kernels of ``_replica_index.pyx`` and ``_reassignments.pyx``, and request batching."""
    k, m = g.k, g.m
    pairs = {"brokers": g.replicas.values, "rows": np.repeat(g.rows, 3)}
    recipients = {"skip_flags": 0, "new_flags": 0, "brokers": _i32(m), "announced": _i32(m), "is_new": _u8(m)}
    targets = {"target_offsets": g.replicas.offsets, "targets": g.replicas.values}
    planned = {"offsets": _i32(k + 1), "values": _i32(2 * m), "flags": _u8(2 * m)}
    scratch = {"old_replica": _i32(3), "old_state": _u8(3), "old_flags": _u8(3)}
    moved = {"offsets": g.replicas.offsets, "values": g.replicas.values, "flags": _u8(m)}
    counts = {name: _i32(g.b) for name in ("leads", "preferred", "replicas", "in_sync")}
    ranked = {"rank": np.arange(g.b, dtype=np.int32), "offsets": _i32(4)}
    ranked |= {name: _i32(m) for name in ("origin", "grouped_rows", "grouped_brokers")}
    on_broker = int((g.replicas.values == g.b // 2).sum())
    return {
        **_indexing(g),
        "list_replicas_on": Call({name: _i32(m) for name in ("replica_row", "positions", "slots")}, m),
        "locate_replicas": Call({"broker": g.b // 2, "positions": _i32(k), "slots": _i32(k)}, on_broker),
        "list_recipients": Call(recipients, m),
        "list_unassigned_isr_members": Call({"rows": _i32(g.n)}, 0, filled={"rows": 0}),
        "list_flagged": Call(
            {"flags": 3, "replica_row": _i32(m), "positions": _i32(m)},
            0,
            filled={"replica_row": 0, "positions": 0},
        ),
        "mark_invalid_targets": Call(
            targets | {"invalid": _u8(k)}, 0, unread=("slot_start", "replica_count", "replica", "replica_status")
        ),
        "mark_reassignment_progress": Call({"running": _u8(k), "reached": _u8(k)}, 0),
        "plan_reassignments": Call(targets | planned, m, filled={"values": m, "flags": m}),
        "group_by_rank": Call(pairs | ranked, 3),
        "group_by_broker": Call(
            pairs | {"offsets": _i32(g.b + 1), "grouped": _i32(m), "origin": _i32(m)}, len(np.unique(pairs["brokers"]))
        ),
        "assign_replicas": Call(moved | scratch | {"removed_counts": _i32(k)}, 0),
        "copy_assignments": Call({"flag_mask": 3, "offsets": _i32(k + 1), "values": _i32(m), "flags": _u8(m)}, m),
        "mark_reassigned": Call(moved | {"compared_flags": 3, "differs": _u8(k)}, 0),
        "count_by_broker": Call(counts, g.n),
    }


def storing(g: KernelCluster) -> dict[str, Call]:
    """Kernels of ``_states.pyx`` and ``_isr_proposals.pyx``: ISRs proposed, states written, partitions counted.

    Each leader proposes the stored ISR without its last member.
    """
    k, p, rows = g.k, g.p, g.rows
    proposed = g.isrs.keep(positions_within(g.isrs.counts) < g.isrs.counts[0] - 1)
    new = {f"new_{name}": getattr(p, name)[rows] for name in ("leader_epoch", "partition_epoch", "epoch_number")}
    new["new_recovery"] = p.recovery_of(rows)
    new["new_leader"] = p.leaders_of(rows)
    counted, totals = _u8(g.n), _i64(3)

    def before() -> None:
        counted[:] = 0

    proposal: Arguments = {name: new[name] for name in ("new_leader_epoch", "new_partition_epoch", "new_recovery")}
    proposal |= {"isr_offsets": proposed.offsets, "isr_values": proposed.values, "sender": -1}
    marks = {"refused_members": _u8(len(proposed.values)), "malformed": _u8(k), "eligible": _u8(g.b, 1)}
    return {
        "check_isr_proposals": Call(proposal | marks | {"check": _u8(k)}, k),
        "store_states": Call(new | {"isr_offsets": g.isrs.offsets, "isr_values": g.isrs.values, "counted": _u8(k)}, k),
        "update_partition_counts": Call(
            {"counted": counted, "totals": totals}, k, addressed={"counted": "row"}, before=before
        ),
    }


def encoding(g: KernelCluster) -> dict[str, Call]:
    """Kernels of ``_request_entries.pyx`` and ``_request_sections.pyx``, with all rows as one list in one section."""
    k, n, p = g.k, g.n, g.p
    size, pool_offset = _i32(n), _i64(n)
    arguments: Arguments = {"version": LEADER_AND_ISR, "entry_size": size}
    by_row = {"entry_size": "row", "pool_offset": "row"}
    calls: dict[str, Call] = {}
    total = kernels.size_leader_and_isr(
        g.rows, LEADER_AND_ISR, p.slot_start, p.replica_count, p.isr_count, p.replica_status, size
    )
    calls["size_leader_and_isr"] = Call(arguments, total, addressed=by_row)
    pool = _u8(total)
    calls["write_leader_and_isr"] = Call(
        arguments | {"first": 0, "pool_offset": pool_offset, "pool": pool}, k, addressed=by_row
    )
    run(g, "write_leader_and_isr", calls["write_leader_and_isr"])
    cut = _cut(g, calls, size)
    framed = _framed(g, calls, cut)
    calls["copy_entries"] = Call(
        {"is_new": _u8(k), "is_new_from_end": 3, "pool_offset": pool_offset, "pool": pool} | framed,
        k,
        addressed=by_row,
        filled={"out": total},
    )
    # One broker more than lead anything may be named, so that no search ends early.
    length = _i64(1)
    leaders = {"leader_size": _i32(g.b, 20), "last_section": _i32(g.b), "section_start": cut["section_start"]}
    measured = leaders | {"max_leaders": g.b + 1, "tail_length": length}
    tail = kernels.measure_live_leaders(*g.arguments("measure_live_leaders", Call(measured, 0)).values())
    calls["measure_live_leaders"] = Call(measured, tail)
    return calls | _others(g)


def _others(g: KernelCluster) -> dict[str, Call]:
    """UpdateMetadata and StopReplica."""
    k, p, size = g.k, g.p, _i32(g.n)
    arguments: Arguments = {"version": UPDATE_METADATA, "entry_size": size}
    total = kernels.size_update_metadata(
        g.rows,
        UPDATE_METADATA,
        p.slot_start,
        p.replica_count,
        p.isr_count,
        p.replica,
        p.replica_status,
        g.shared_arguments["live"],
        size,
    )
    calls = {"size_update_metadata": Call(arguments, total, unread=("replica",), addressed={"entry_size": "row"})}
    row_size = size[g.rows]
    entry_offset = np.append(0, np.cumsum(row_size[:-1], dtype=np.int64))
    out_arguments = {"row_size": row_size, "entry_offset": entry_offset, "out": _u8(total)}
    calls["write_update_metadata"] = Call({"version": UPDATE_METADATA} | out_arguments, k)
    stops = {"row_size": _i32(k, 10), "entry_offset": 10 * np.arange(k, dtype=np.int64), "out": _u8(10 * k)}
    stops |= {"leader_epoch": p.leader_epoch[g.rows], "delete": _u8(k)}
    calls["write_stop_replica"] = Call({"version": STOP_REPLICA} | stops, k)
    return calls


def _cut(g: KernelCluster, calls: dict[str, Call], size: Int32) -> Arguments:
    k = g.k
    cut: Arguments = {
        "row_topic": _i32(k),
        "row_size": _i32(k),
        "section_list": _i32(1),
        "section_start": _i32(2),
        "section_items": _i32(1),
        "section_length": _i64(1),
    }
    limits = {"offsets": np.array([0, k], np.int32), "first": 0, "byte_limit": NO_LIMIT, "group_limit": NO_LIMIT}
    calls["fit_sections"] = Call(limits | {"tail_max": 0, "entry_size": size} | cut, 1, addressed={"entry_size": "row"})
    run(g, "fit_sections", calls["fit_sections"])
    return cut


def _framed(g: KernelCluster, calls: dict[str, Call], cut: Arguments) -> Arguments:
    """Where the entries go. Of ``out`` the frame touches the bytes before each topic's entries, and behind them."""
    length = int(cut["section_length"][0])
    placed = {"entry_offset": _i64(g.k), "out": _u8(length), "section_offset": np.array([0, length]), "tail": b""}
    calls["frame_sections"] = Call(cut | placed, 1, filled={"out": length - int(cut["row_size"].sum())})
    run(g, "frame_sections", calls["frame_sections"])
    return {"row_size": cut["row_size"], "entry_offset": placed["entry_offset"], "out": placed["out"]}


def sweeping(g: KernelCluster) -> dict[str, Call]:
    """Kernels of ``_sweep.pyx``. They compute the outcome of every failure."""
    b, n = g.b, g.n
    rows = {"first": 0, "last": n}
    tables = {
        "totals": (2, 9),
        "brokers": (b, 9),
        "racks": (4, 9),
        "leads": (2, b),
        "broker_leads": (b, b),
        "rack_leads": (4, b),
        "successors": (7, b, b),
        "further_replicas": (7, b),
        "shared_racks": (7, b),
    }
    single = {name: np.zeros(shape, np.int32) for name, shape in tables.items()}
    pairs = {
        "scratch": np.zeros((3, 8), np.int32),
        "pairs": np.zeros((b * (b - 1) // 2, 9), np.int32),
        "lead_key": _i64(4 * n),
        "lead_change": np.zeros(4 * n, np.int8),
        "third_key": _i64(n),
        "further_pairs": np.zeros((3, b, b), np.int32),
    }
    return {
        "count_failures": Call(
            rows | single, n, ("broker_leads",), filled={"successors": b * b, "further_replicas": b}
        ),
        "count_pair_failures": Call(rows | pairs, 0, ("pairs", "lead_key", "lead_change", "further_pairs")),
    }


#: Those that take rows, which may lie far apart, and those that go through all there is.
BY_ROWS: Final = (deciding, placing, storing, encoding)
WHOLE_ONLY: Final = (
    "list_leaderless",
    "list_unassigned_isr_members",
    "list_in_states",
    "initialize_partition_states",
    "initialize_replica_states",
    "size_replica_index",
    "build_replica_index",
    "read_replica_index",
    "count_by_broker",
)


def calls_of(g: KernelCluster) -> dict[str, Call]:
    """Every call on this cluster by the kernel's name."""
    calls: dict[str, Call] = {}
    for part in BY_ROWS:
        calls |= part(g)
    if g.k == g.n:
        return calls | sweeping(g)
    return {name: call for name, call in calls.items() if name not in WHOLE_ONLY}


def run(g: KernelCluster, name: str, call: Call, module: ModuleType = kernels) -> int:
    """Call a kernel, or its reference."""
    count: int = getattr(module, name)(*g.arguments(name, call).values())
    return count
