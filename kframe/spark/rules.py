"""Rules that the partitions of a healthy cluster satisfy, across rows and against the brokers.

``kframe.snapshot.checks`` has the rules of single partitions that every valid source satisfies. The rules here can fail
in a valid source. The leader is a live member of the ISR, the ISR is a part of the replicas
(docs/reference/invariants.md, I4 and I5), and the rules across rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from kframe.model.arrays import Bool, Ragged, ragged_positions
from kframe.model.ids import NO_STATE, RecoveryState
from kframe.model.lists import distinct_values, members
from kframe.snapshot.checks import partition_faults
from kframe.snapshot.facts import LIST_COLUMNS, NUMBER_COLUMNS, PartitionFacts
from kframe.snapshot.tables import OBSERVERS
from kframe.spark.modes import ZookeeperRows
from kframe.spark.row_types import ViolationRow
from kframe.spark.rows import partition_facts
from kframe.spark.schema import INT, TEXT, FleetTable, columns_of

#: A row a violation.
VIOLATIONS: Final = FleetTable("violations", columns_of(ViolationRow, partition=INT))
_ALWAYS: Final = ("topic", "partition", "replicas")
ERROR: Final = "error"
WARNING: Final = "warning"


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule, and the severity of its violation. ERROR: no cluster should violate it. WARNING: clusters in trouble
    do."""

    severity: str
    expected: str


#: By name, in the order in which ``kframe spark validate`` lists them.
RULES: Final[Mapping[str, Rule]] = {
    "partly_unknown": Rule(ERROR, "a column that is known of all partitions of a cluster or of none"),
    "null_in_list": Rule(ERROR, "lists without nulls"),
    "cluster_row": Rule(ERROR, "one valid row of the cluster in the clusters table"),
    "key_unknown": Rule(ERROR, "a value in each column of the key, and a partition count of each topic"),
    "partition_missing": Rule(ERROR, "partitions from 0 to the topic's count, each once"),
    "partition_repeated": Rule(ERROR, "partitions from 0 to the topic's count, each once"),
    "partition_beyond": Rule(ERROR, "partitions from 0 to the topic's count, each once"),
    "topic_unlisted": Rule(ERROR, "a topic of the cluster's topics"),
    "topic_id_differs": Rule(ERROR, "one id for all partitions of a topic"),
    "topic_id_shared": Rule(ERROR, "an id that no other topic has"),
    "replicas_empty": Rule(ERROR, "at least one replica"),
    "replicas_too_many": Rule(ERROR, "no more replicas than a controller holds"),
    "replicas_range": Rule(ERROR, "broker ids from 0"),
    "replicas_repeated": Rule(ERROR, "each broker once"),
    "isr_range": Rule(ERROR, "broker ids from 0"),
    "isr_repeated": Rule(ERROR, "each broker once"),
    "isr_not_in_replicas": Rule(ERROR, "an ISR of replicas only"),
    "isr_empty": Rule(
        ERROR, "at least one broker in the ISR of a partition that has a state, unless it may have an ELR"
    ),
    "adding_replicas_range": Rule(ERROR, "broker ids from 0"),
    "adding_replicas_repeated": Rule(ERROR, "each broker once"),
    "adding_replicas_not_in_replicas": Rule(ERROR, "replicas being added among the replicas"),
    "removing_replicas_range": Rule(ERROR, "broker ids from 0"),
    "removing_replicas_repeated": Rule(ERROR, "each broker once"),
    "removing_replicas_not_in_replicas": Rule(ERROR, "replicas being removed among the replicas"),
    "elr_range": Rule(ERROR, "broker ids from 0"),
    "elr_repeated": Rule(ERROR, "each broker once"),
    "elr_in_isr": Rule(ERROR, "an ELR without members of the ISR"),
    "last_known_elr_range": Rule(ERROR, "broker ids from 0"),
    "last_known_elr_repeated": Rule(ERROR, "each broker once"),
    "observers_range": Rule(ERROR, "broker ids from 0"),
    "observers_repeated": Rule(ERROR, "each broker once"),
    "observers_not_in_replicas": Rule(ERROR, "observers among the replicas"),
    "directories_unlike_replicas": Rule(ERROR, "one log directory a replica"),
    "leader_range": Rule(ERROR, "a broker id, or -1 for none"),
    "leader_not_in_replicas": Rule(ERROR, "a replica"),
    "leader_not_in_isr": Rule(ERROR, "a member of the ISR"),
    "partition_epoch_range": Rule(ERROR, "0 or more, or -1 for no state"),
    "leader_epoch_range": Rule(ERROR, "0 or more, or -1 where there is no state"),
    "controller_epoch_range": Rule(ERROR, "0 or more, or -1 where there is no state"),
    "recovery_range": Rule(ERROR, "0 or 1"),
    "recovering_isr": Rule(ERROR, "an ISR of one broker while it recovers from an unclean election"),
    "stateless_with_state": Rule(ERROR, "no leader and no ISR where there is no state"),
    "broker_unlisted": Rule(ERROR, "brokers of the cluster's brokers"),
    "more_replicas_than_brokers": Rule(ERROR, "at most as many replicas as the cluster has brokers"),
    "leader_not_live": Rule(WARNING, "a registered broker that is not fenced"),
    "offline": Rule(WARNING, "a leader"),
    "under_min_isr": Rule(WARNING, "at least min.insync.replicas brokers in the ISR"),
    "one_rack": Rule(WARNING, "replicas in more than one rack"),
}


@dataclass(frozen=True, slots=True)
class RegisteredBrokers:
    """The brokers of one cluster, ascending by ``ids``. ``live``: 1 registered and not fenced, 0 not, -1 not
    known. ``racks``: a
    number for each rack, -1 where none is known."""

    ids: NDArray[np.int64]
    live: NDArray[np.int8]
    racks: NDArray[np.int32]

    @staticmethod
    def of(table: pa.Table) -> RegisteredBrokers:
        """From rows with ``broker_id``, ``registered``, ``fenced`` and ``rack``. An id that is there twice counts
        once, a row without an id not at all."""
        table = table.filter(table["broker_id"].is_valid())
        order = pc.sort_indices(table["broker_id"])
        ids, first = np.unique(table["broker_id"].take(order).to_numpy(), return_index=True)
        rows = order.take(pa.array(first))
        up = pc.and_not(table["registered"], table["fenced"].fill_null(False)).take(rows)
        live = up.cast(pa.int8()).fill_null(-1).to_numpy().astype(np.int8)
        racks = table["rack"].take(rows).combine_chunks().dictionary_encode().indices.fill_null(-1).to_numpy()
        return RegisteredBrokers(ids.astype(np.int64), live, racks.astype(np.int32))

    def find(self, broker_ids: NDArray[Any]) -> NDArray[np.int64]:
        """The index of each id, -1 for an unknown id."""
        if not len(self.ids):
            return np.full(len(broker_ids), -1, np.int64)
        index = np.minimum(np.searchsorted(self.ids, broker_ids), len(self.ids) - 1)
        return np.where(self.ids[index] == broker_ids, index, -1)


@dataclass(frozen=True, slots=True)
class ClusterContext:
    """The facts of a cluster that its partitions are checked against: its brokers, the expected number of partitions of
    each topic, the rules of its mode, and the default of ``min.insync.replicas``."""

    brokers: RegisteredBrokers
    counts: Mapping[str, int]
    in_mode: ZookeeperRows
    min_insync: int = 1


def violations(cluster: str, rows: pa.Table, context: ClusterContext) -> Iterator[pa.RecordBatch]:
    """Violations in complete topics of one cluster, as batches of VIOLATIONS.

    ``rows`` (PARTITIONS, in any order) holds every partition of each topic that is in it or in ``context.counts``.
    """
    known, unknown, with_nulls = _split(rows)
    mode = context.in_mode.mode
    report = _Report(cluster, rows, mode)
    if len(unknown):
        yield report.rows("partly_unknown", unknown, pa.repeat(pa.scalar("null in a column", TEXT), len(unknown)))
    if len(with_nulls):
        yield report.rows("null_in_list", with_nulls, pa.repeat(pa.scalar("null in a list", TEXT), len(with_nulls)))
    named = rows.filter(pc.and_(rows["topic"].is_valid(), rows["partition"].is_valid()))
    yield from _numbering(_Report(cluster, named, mode), named, context.counts)
    rows = rows.take(pa.array(known, pa.int64()))
    report = _Report(cluster, rows, mode)
    yield from _topic_ids(report, rows)
    facts = partition_facts(rows, cluster, context.in_mode.lists)
    for fault in partition_faults(facts):
        yield report.column(fault.rule, fault.rows, fault.column)
    yield from _states(report, facts, has_elr=context.in_mode.has_elr(facts))
    yield from _placement(report, facts, context.brokers)
    if facts.isr is not None:
        few = np.flatnonzero(facts.isr.counts < context.in_mode.min_isr(rows, facts, context.min_insync))
        if len(few):
            yield report.column("under_min_isr", few, "isr")


def shared_topic_ids(cluster: str, topics: pa.Table, mode: str = ZookeeperRows.mode) -> Iterator[pa.RecordBatch]:
    """Topics of one cluster (all its rows of TOPICS) whose id another has too."""
    with_id = topics.filter(topics["topic_id"].is_valid())
    indexes = with_id["topic_id"].combine_chunks().dictionary_encode().indices.to_numpy()
    shared = np.flatnonzero(np.bincount(indexes)[indexes] > 1)
    if len(shared):
        rows = with_id.select(["topic"]).append_column("partition", pa.nulls(with_id.num_rows, INT))
        yield _Report(cluster, rows, mode).rows("topic_id_shared", shared, with_id["topic_id"].take(pa.array(shared)))


class _Report:
    """Makes rows of VIOLATIONS of rows of partitions."""

    def __init__(self, cluster: str, rows: pa.Table, mode: str) -> None:
        self._cluster, self._rows, self._mode = cluster, rows, mode

    def rows(self, rule: str, rows: NDArray[np.int64], values: Any) -> pa.RecordBatch:
        """One violation for each row number, with the texts of what was found."""
        indexes = pa.array(rows, pa.int64())
        topic, partition = (self._rows[name].take(indexes).combine_chunks() for name in ("topic", "partition"))
        return self.batch(rule, topic, partition, values)

    def column(self, rule: str, rows: NDArray[np.int64], name: str) -> pa.RecordBatch:
        """One violation for each row number, with the value of a column."""
        return self.rows(rule, rows, _texts(self._rows[name].take(pa.array(rows, pa.int64()))))

    def batch(self, rule: str, topic: Any, partition: Any, values: Any) -> pa.RecordBatch:
        """One violation for each topic, partition (may be null) and text."""
        count = len(topic)
        severity, expected = RULES[rule].severity, RULES[rule].expected
        texts = (self._cluster, rule, severity, expected, self._mode)
        fixed = [pa.repeat(pa.scalar(text, TEXT), count) for text in texts]
        values = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
        columns = [*fixed[:3], topic.cast(TEXT), partition, values, *fixed[3:]]
        return pa.RecordBatch.from_arrays(columns, schema=VIOLATIONS.schema)


def _texts(column: Any) -> pa.Array:
    """Numbers and lists of numbers as text."""
    column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if not pa.types.is_list(column.type):
        return column.cast(TEXT)
    joined = pc.binary_join(column.cast(pa.list_(TEXT)), ", ")
    return pc.binary_join_element_wise("[", joined, "]", "")


def _numbering(report: _Report, rows: pa.Table, counts: Mapping[str, int]) -> Iterator[pa.RecordBatch]:
    """Missing, repeated and unlisted partitions, by the topics' counts. A topic that has none is not listed."""
    if not rows.num_rows and not counts:
        return
    names = sorted({*counts, *pc.unique(rows["topic"]).to_pylist()})
    topic = pc.index_in(rows["topic"], pa.array(names, TEXT)).to_numpy().astype(np.int64)
    number = rows["partition"].to_numpy().astype(np.int64)
    order = np.lexsort((number, topic))
    repeated = order[1:][(topic[order[1:]] == topic[order[:-1]]) & (number[order[1:]] == number[order[:-1]])]
    if len(repeated):
        yield report.column("partition_repeated", np.sort(repeated), "partition")
    expected_counts = np.array([counts.get(name, -1) for name in names], np.int64)
    unlisted = np.flatnonzero(expected_counts < 0)
    if len(unlisted):
        first = np.unique(topic, return_index=True)[1]
        yield report.column("topic_unlisted", first[np.isin(topic[first], unlisted)], "topic")
    yield from _missing(report, names, np.maximum(expected_counts, 0), topic, number)


def _missing(
    report: _Report,
    names: list[str],
    expected_counts: NDArray[np.int64],
    topic: NDArray[np.int64],
    number: NDArray[np.int64],
) -> Iterator[pa.RecordBatch]:
    starts = np.cumsum(expected_counts) - expected_counts
    present = np.zeros(int(expected_counts.sum()), bool)
    counted = (number >= 0) & (number < expected_counts[topic])
    present[starts[topic[counted]] + number[counted]] = True
    beyond = np.flatnonzero(~counted & (expected_counts[topic] > 0))
    if len(beyond):
        yield report.column("partition_beyond", beyond, "partition")
    missing = np.flatnonzero(~present)
    if len(missing):
        owner = np.repeat(np.arange(len(names)), expected_counts)[missing]
        position = ragged_positions(np.zeros(len(names), np.int64), expected_counts)[missing]
        topics_of_missing = pa.array(names, TEXT).take(pa.array(owner))
        values = pa.array(["no such row"] * len(missing), TEXT)
        yield report.batch("partition_missing", topics_of_missing, pa.array(position, INT), values)


def _topic_ids(report: _Report, rows: pa.Table) -> Iterator[pa.RecordBatch]:
    """Partitions whose topic id is not that of the topic's first row."""
    topic = rows["topic"].combine_chunks().dictionary_encode().indices.to_numpy()
    ids = rows["topic_id"].combine_chunks().dictionary_encode().indices.fill_null(-1).to_numpy()
    if len(topic):
        first = np.unique(topic, return_index=True)[1]
        differing = np.flatnonzero(ids != ids[first][topic])
        if len(differing):
            yield report.rows(
                "topic_id_differs", differing, rows["topic_id"].take(pa.array(differing)).fill_null("none")
            )


def _split(rows: pa.Table) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Rows that have a value in every column that is not null everywhere, and in every place of a list. Then rows
    without such a value, and rows with a null in a list."""
    missing, with_nulls = np.zeros(rows.num_rows, bool), np.zeros(rows.num_rows, bool)
    for name in (*_ALWAYS, *NUMBER_COLUMNS, *LIST_COLUMNS, "directories", OBSERVERS):
        column = rows[name].combine_chunks()
        if column.null_count and (name in _ALWAYS or column.null_count < rows.num_rows):
            missing |= column.is_null().to_numpy(zero_copy_only=False)
        if pa.types.is_list(column.type) and column.flatten().null_count:
            owners = pc.list_parent_indices(column).to_numpy()
            with_nulls[owners[column.flatten().is_null().to_numpy(zero_copy_only=False)]] = True
    return np.flatnonzero(~missing & ~with_nulls), np.flatnonzero(missing), np.flatnonzero(with_nulls)


def _states(report: _Report, facts: PartitionFacts, *, has_elr: bool) -> Iterator[pa.RecordBatch]:
    """Invariants I4 and I5 for single partitions. A partition without state violates neither. With
    eligible leader replicas an ISR may be empty, and no member of it is in the ELR."""
    if facts.leader is None or facts.isr is None:
        return
    stored = np.ones(len(facts), bool) if facts.partition_epoch is None else facts.partition_epoch != NO_STATE
    leaders = Ragged(np.arange(len(facts) + 1, dtype=np.int32), facts.leader)
    checks = {
        "isr_empty": ("isr", stored & (facts.isr.counts == 0) & (not has_elr)),
        "leader_not_in_isr": ("leader", stored & (facts.leader >= 0) & ~members(leaders, facts.isr)),
    }
    if facts.leader_recovery_state is not None:
        recovering = facts.leader_recovery_state == RecoveryState.RECOVERING
        checks["recovering_isr"] = ("isr", stored & recovering & (facts.isr.counts != 1))
    if facts.elr is not None:
        checks["elr_in_isr"] = ("elr", facts.elr.any(members(facts.elr, facts.isr)))
    if facts.directories is not None:
        differing = facts.directories.counts != facts.replicas.counts
        checks["directories_unlike_replicas"] = ("directories", differing)
    checks["offline"] = ("leader", facts.leader < 0)
    for rule, (column, wrong) in checks.items():
        if wrong.any():
            yield report.column(rule, np.flatnonzero(wrong), column)


def _placement(report: _Report, facts: PartitionFacts, brokers: RegisteredBrokers) -> Iterator[pa.RecordBatch]:
    """Rules that need the brokers."""
    broker_index = brokers.find(facts.replicas.values)
    violations_by_rule: dict[str, tuple[str, Bool]] = {
        "broker_unlisted": ("replicas", facts.replicas.any((broker_index < 0) & (facts.replicas.values >= 0))),
        "more_replicas_than_brokers": ("replicas", facts.replicas.counts > len(brokers.ids)),
        "one_rack": ("replicas", _same_rack(facts.replicas, broker_index, brokers)),
    }
    if facts.leader is not None:
        leader = brokers.find(facts.leader)
        violations_by_rule["leader_not_live"] = ("leader", (leader >= 0) & (np.append(brokers.live, -1)[leader] == 0))
    for rule, (column, wrong) in violations_by_rule.items():
        if wrong.any():
            yield report.column(rule, np.flatnonzero(wrong), column)


def _same_rack(replicas: Ragged, broker_index: NDArray[np.int64], brokers: RegisteredBrokers) -> Bool:
    """Whether all of two or more replicas are in one rack. The cluster must have more racks, and all must be known."""
    if len(distinct_values(brokers.racks[brokers.racks >= 0])) < 2:
        return np.zeros(len(replicas), bool)
    racks = np.append(brokers.racks, -1)[broker_index]
    first = np.repeat(racks[np.minimum(replicas.offsets[:-1], max(len(racks) - 1, 0))], replicas.counts)
    return (replicas.counts > 1) & ~replicas.any((racks != first) | (racks < 0))
