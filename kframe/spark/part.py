"""A shard as a snapshot: some partitions of a cluster, and all of its brokers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import numpy as np
import pyarrow as pa

from kframe.errors import InputError, SnapshotError
from kframe.snapshot import BrokerFacts, KraftFacts, Snapshot, Source, TopicFacts
from kframe.snapshot.checks import check_brokers_listed
from kframe.snapshot.facts import own_configs
from kframe.spark.kraft import is_kraft, kraft_facts_of
from kframe.spark.rows import (
    broker_facts,
    check_keys,
    cluster_partitions,
    configs_of,
    highest_controller_epoch,
    topic_ids,
)
from kframe.spark.schema import BROKERS, INT, KRAFT_FACTS, LONG, TEXT
from kframe.spark.shards import SHARDS, unpack

#: A shard, and the facts of its cluster that every shard needs; ``cluster_rows`` counts its rows in CLUSTERS.
SHARD_WITH_FACTS: Final = pa.schema(
    [*SHARDS.schema, ("controller_id", INT), ("broker_default_configs", pa.map_(TEXT, TEXT)), ("mode", TEXT),
     *KRAFT_FACTS, ("cluster_rows", LONG), ("brokers", pa.list_(pa.struct(list(BROKERS.schema)[1:])))]
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    """The facts of a cluster that every shard needs. ``controller_epoch`` is the highest known."""

    name: str
    brokers: tuple[BrokerFacts, ...]
    controller_id: int | None
    controller_epoch: int | None
    defaults: dict[str, str] | None
    is_kraft: bool = False
    kraft: KraftFacts | None = None

    @staticmethod
    def of(row: dict[str, Any]) -> ClusterFacts:
        """From a row that has ``brokers`` as a list of rows of BROKERS.

        Raises SnapshotError for a broker twice, and for a cluster with several rows in CLUSTERS.
        """
        where = f"cluster {row['cluster']}"
        if (count := row.get("cluster_rows") or 1) > 1:
            raise SnapshotError(f"{where} table clusters", f"{count} rows", "one row of each cluster")
        brokers = sorted(
            (broker_facts(facts, where) for facts in row["brokers"] or ()), key=lambda facts: facts.broker_id
        )
        for facts, after in pairwise(brokers):
            if facts.broker_id == after.broker_id:
                raise SnapshotError(f"{where} table brokers", f"broker {facts.broker_id} twice", "each broker once")
        return ClusterFacts(
            row["cluster"], tuple(brokers), row["controller_id"], row["controller_epoch"],
            configs_of(row["broker_default_configs"], f"{where} field broker_default_configs"),
            (kraft_mode := is_kraft(row)),
            kraft_facts_of(row) if kraft_mode else None,
        )  # fmt: skip

    @staticmethod
    def of_snapshot(name: str, snapshot: Snapshot) -> ClusterFacts:
        """From a snapshot of the whole cluster."""
        defaults = snapshot.broker_default_configs
        return ClusterFacts(
            name, snapshot.brokers, snapshot.controller_id, highest_controller_epoch(snapshot),
            None if defaults is None else dict(defaults), snapshot.is_kraft, snapshot.kraft,
        )  # fmt: skip


def parts_of(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[dict[str, Any], Snapshot | str]]:
    """Yield each row of SHARD_WITH_FACTS without its pieces, and the shard as a snapshot, or the reason why it is
    invalid. ``brokers`` is None for a cluster that the clusters table lacks."""
    for batch in batches:
        facts = batch.select([name for name in batch.schema.names if name != "pieces"])
        for index in range(batch.num_rows):
            row = facts.slice(index, 1).to_pylist()[0]
            if row["brokers"] is None:
                yield row, unlisted(row["cluster"])
                continue
            try:
                yield (
                    row,
                    part_of(
                        unpack([piece.as_buffer() for piece in batch["pieces"][index].values]), ClusterFacts.of(row)
                    ),
                )
            except InputError as problem:
                yield row, str(problem)


def part_of(rows: pa.Table, facts: ClusterFacts) -> Snapshot:
    """Rows of a shard, as ``unpack`` returns them, as a snapshot.

    Raises SnapshotError, which names the cluster. Causes are unknown leaders, a repeated partition, a column that is
    null in some rows only, and a broker that the cluster does not have.
    """
    where = f"cluster {facts.name}"
    check_keys(rows, where)
    topics = _topics(rows, where)
    partitions = cluster_partitions(rows, where, facts.is_kraft, facts.kraft)
    if partitions.leader is None or partitions.isr is None:
        raise leaders_unknown(where)
    snapshot = Snapshot(
        facts.brokers, topics, partitions, Source("shard", facts.name), controller_id=facts.controller_id,
        controller_epoch=facts.controller_epoch, broker_default_configs=facts.defaults,
        kraft=facts.kraft,
    )  # fmt: skip
    check_brokers_listed(snapshot, where)
    return snapshot


def unlisted(cluster: str | None) -> str:
    """The problem of a cluster without a row in CLUSTERS, which other tables name. None: they name no cluster."""
    if cluster is None:
        return "rows without a cluster: found null, expected the name of a cluster"
    return f"rows of cluster {cluster}, which the clusters table lacks"


def leaders_unknown(where: str) -> SnapshotError:
    """The error for a cluster without leaders or ISRs."""
    return SnapshotError(where, "nothing about who leads", "partitions whose leaders and ISRs are known")


def _topics(rows: pa.Table, where: str) -> TopicFacts:
    topic = rows["topic"].combine_chunks()
    if isinstance(topic, pa.ChunkedArray):  # of no chunk
        return TopicFacts((), np.empty(0, np.int32), configs={})
    code, number = topic.indices.to_numpy(), rows["partition"].to_numpy()
    firsts = np.flatnonzero(np.concatenate([[True], code[1:] != code[:-1]])) if len(code) else np.empty(0, np.int64)
    repeated = np.flatnonzero((code[1:] == code[:-1]) & (number[1:] == number[:-1]))
    if len(repeated):
        name = f"{topic[int(repeated[0])].as_py()}-{number[repeated[0]]}"
        raise SnapshotError(f"{where} table partitions", f"partition {name} twice", "each partition once")
    first_rows = pa.array(firsts)
    ids, deleting = rows["topic_id"].take(first_rows), rows["deleting"].take(first_rows)
    return TopicFacts(
        tuple(topic.dictionary.take(topic.indices.take(first_rows)).to_pylist()),
        np.diff(np.append(firsts, len(code))).astype(np.int32),
        topic_ids(ids.to_pylist(), where) if ids.null_count < len(ids) else None,
        deleting.fill_null(False).to_numpy().astype(np.uint8) if deleting.null_count < len(deleting) else None,
        _configs(rows, first_rows) if _all_true(rows["configs_known"]) else None,
        np.asarray(number, np.int32),
    )


def _all_true(column: pa.ChunkedArray) -> bool:
    return not column.null_count and bool(column.to_numpy().all())


def _configs(rows: pa.Table, first_rows: pa.Array) -> dict[int, dict[str, str]]:
    """The topics' own settings, by topic index, without topics that have none."""
    unclean, min_insync = rows["unclean"].take(first_rows), rows["min_insync_replicas"].take(first_rows)
    configured = np.flatnonzero(unclean.is_valid().to_numpy() | min_insync.is_valid().to_numpy())
    configured_rows = pa.array(configured)
    settings = (column.take(configured_rows).to_pylist() for column in (unclean, min_insync))
    return dict(zip(configured.tolist(), map(own_configs, *settings), strict=True))
