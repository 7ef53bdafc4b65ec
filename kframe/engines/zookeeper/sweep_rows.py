"""The counts of a sweep as Arrow rows that add up over the parts of a cluster.

Count each part, sum the rows, and evaluate the sums::

    rows = pa.Table.from_batches([rows_of(part_counts(part, config)) for part in parts])
    swept = sweep_of(counts_of(rows.group_by(KEY).aggregate([("count", "sum")]), brokers))

Rows name brokers by id, so parts may index them differently. Zero counts have no row.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from kframe.engines.results.sweep import METRICS
from kframe.engines.settings import config_of
from kframe.engines.zookeeper.sweep_counts import DeletingTopics, FailureCounts, count_failures, summed
from kframe.model.columns import Int32, Int64
from kframe.snapshot import Snapshot
from kframe.snapshot.facts import BrokerFacts

#: ``failure`` is one of FAILURES. ``broker`` and ``other`` (the higher id) are the failed brokers. ``name`` is a rack,
#: or a topic under deletion. ``metric`` is one of METRICS, ``leaders`` or ``replicas`` on the broker ``holder``, or
#: ``halts``. Null is none. Rows with an equal KEY add up in ``count``.
SCHEMA: Final = pa.schema(
    [("failure", pa.string()), ("broker", pa.int32()), ("other", pa.int32()), ("name", pa.string()),
     ("metric", pa.string()), ("holder", pa.int32()), ("count", pa.int64())]
)  # fmt: skip
KEY: Final = tuple(SCHEMA.names[:-1])
#: The present state, and the state after elections for all leaderless partitions. Then what a failure adds to that.
#: Then the counts of a topic under deletion.
FAILURES: Final = ("before", "none", "broker", "pair", "rack", "topic")

_METRICS: Final = (*METRICS, "leaders", "replicas", "halts")
_LEADERS, _REPLICAS, _HALTS = (_METRICS.index(name) for name in ("leaders", "replicas", "halts"))
_BEFORE, _NONE, _BROKER, _PAIR, _RACK, _TOPIC = range(len(FAILURES))


def part_counts(
    part: Snapshot, config: Mapping[str, object] | None = None, *, depth: int = 2, racks: bool = True
) -> FailureCounts:
    """Count the failures of a part of a cluster: some of its partitions, and all of its brokers."""
    return count_failures(part.to_cluster(), config_of(part, config), depth=depth, racks=racks)


def rows_of(counts: FailureCounts) -> pa.RecordBatch:
    """The counts as rows of SCHEMA. Cost in proportion to the arrays of ``counts``."""
    parts = [_entries(*table) for table in _tables(counts)]
    if counts.pairs is not None:
        pair, holder = np.divmod(counts.pair_lead_keys, max(len(counts.broker_ids), 1))
        parts.append(_stack(_PAIR, pair, _LEADERS, holder, counts.pair_lead_changes))
    failure, line, metric, holder, count = np.concatenate(parts, axis=1)
    low, high = np.triu_indices(len(counts.broker_ids), 1)
    broker, other, name = (np.full(len(line), -1, np.int64) for _ in range(3))
    of_broker, of_pair = failure == _BROKER, failure == _PAIR
    broker[of_broker] = line[of_broker]
    broker[of_pair], other[of_pair] = low[line[of_pair]], high[line[of_pair]]
    for kind, first in ((_RACK, 0), (_TOPIC, len(counts.rack_names))):
        name[failure == kind] = line[failure == kind] + first
    names = [*counts.rack_names, *counts.deleting_topics.topics]
    columns = [
        _texts(FAILURES, failure),
        *(_ids(counts.broker_ids, brokers_) for brokers_ in (broker, other)),
        _texts(names, name),
        _texts(_METRICS, metric),
        _ids(counts.broker_ids, holder),
        pa.array(count),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


def counts_of(rows: pa.Table | pa.RecordBatch, brokers: Sequence[BrokerFacts], *, pairs: bool = True) -> FailureCounts:
    """The counts of a whole cluster from the rows of all of its parts. The rows may be summed already."""
    ordered = sorted(brokers, key=lambda facts: facts.broker_id)
    ids = np.array([facts.broker_id for facts in ordered], np.int32)
    registered = np.array([bool(facts.registered) for facts in ordered], np.uint8)
    failure, metric = (_indexes(rows[name], names) for name, names in (("failure", FAILURES), ("metric", _METRICS)))
    topics = tuple(sorted(rows["name"].filter(pa.array(failure == _TOPIC)).unique().to_pylist()))
    shape = (len(topics), len(ids))
    deleting_topics = DeletingTopics(
        topics, np.zeros(shape, np.int32), np.zeros(shape, np.int32), np.zeros(len(topics), np.int32)
    )
    counts = FailureCounts.none(
        ids, registered, [facts.rack for facts in ordered], pairs=pairs, deleting_topics=deleting_topics
    )
    broker, other, holder = (
        np.searchsorted(ids, rows[name].fill_null(0).to_numpy(zero_copy_only=False))
        if len(ids)
        else np.empty(0, np.int64)
        for name in ("broker", "other", "holder")
    )
    line = np.where(failure == _BROKER, broker, 0)
    line = np.where(failure == _PAIR, broker * (2 * len(ids) - broker - 1) // 2 + other - broker - 1, line)
    for kind, names in ((_RACK, counts.rack_names), (_TOPIC, topics)):
        line = np.where(failure == kind, _indexes(rows["name"], names), line)
    count = rows["count"].to_numpy(zero_copy_only=False)
    for kind, table_metric, table in _tables(counts):
        in_table = (failure == kind) & (metric < len(METRICS) if table_metric is None else metric == table_metric)
        column = metric if table_metric is None else holder if table_metric != _HALTS else np.zeros_like(metric)
        np.add.at(table, (line[in_table], column[in_table]), count[in_table])
    leads = (failure == _PAIR) & (metric == _LEADERS)
    keys, changes = summed(line[leads] * len(ids) + holder[leads], count[leads])
    return replace(counts, pair_lead_keys=keys, pair_lead_changes=changes)


def _tables(counts: FailureCounts) -> Iterator[tuple[int, int | None, Int32]]:
    """The arrays of the counts, each with its failure and its metric. A column is a holder, or without metric one of
    METRICS."""
    for when, line in ((_BEFORE, slice(0, 1)), (_NONE, slice(1, 2))):
        yield when, None, counts.totals[line]
        yield when, _LEADERS, counts.leads[line]
    yield _BROKER, None, counts.brokers
    yield _BROKER, _LEADERS, counts.broker_leads
    if counts.pairs is not None:
        yield _PAIR, None, counts.pairs
    yield _RACK, None, counts.racks
    yield _RACK, _LEADERS, counts.rack_leads
    yield _TOPIC, _REPLICAS, counts.deleting_topics.replicas
    yield _TOPIC, _LEADERS, counts.deleting_topics.leads
    yield _TOPIC, _HALTS, counts.deleting_topics.halts.reshape(-1, 1)


def _entries(failure: int, metric: int | None, table: Int32) -> Int64:
    line, column = np.nonzero(table)
    if metric is None:
        return _stack(failure, line, column, -1, table[line, column])
    return _stack(failure, line, metric, -1 if metric == _HALTS else column, table[line, column])


def _stack(failure: int, line: NDArray[Any], metric: Any, holder: Any, count: NDArray[Any]) -> Int64:
    """(5, k) numbers: failure, line, metric, holder, count."""
    return np.stack(np.broadcast_arrays(failure, line, metric, holder, count)).astype(np.int64)


def _texts(names: Sequence[str], indexes: Int64) -> pa.Array:
    """Names by index. -1 is null."""
    return pa.array(list(names), pa.string()).take(pa.array(indexes, mask=indexes < 0))


def _ids(ids: Int32, indexes: Int64) -> pa.Array:
    """Ids by broker index. -1 is null."""
    return pa.array(np.append(ids, np.int32(-1))[indexes], pa.int32(), mask=indexes < 0)


def _indexes(texts: Any, names: Sequence[str]) -> Int64:
    """The place of each text in ``names``, -1 for others."""
    matches = pc.index_in(texts, value_set=pa.array(list(names), pa.string())).fill_null(-1)
    indexes: Int64 = matches.to_numpy(zero_copy_only=False).astype(np.int64)
    return indexes
