"""The tables of a cluster that a caller does not have, inferred from its partitions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kframe.model.arrays import Int32
from kframe.model.lists import distinct_values
from kframe.snapshot.content import Mode
from kframe.snapshot.facts import own_configs
from kframe.spark.modes import KraftRows, inferred_mode
from kframe.spark.rows import check_keys, partition_facts
from kframe.spark.schema import BROKERS, CLUSTERS, PARTITIONS, TOPICS

_PROVENANCE: Final[Mapping[str, tuple[tuple[str, str], ...]]] = {
    BROKERS.name: (
        (
            "brokers.registered",
            "written from partitions alone; brokers that lead or are in a led partition's ISR are live",
        ),
        ("brokers.rack", "written from partitions alone"),
    ),
    TOPICS.name: (("topics.configs", "written from partitions alone: only the two that a controller goes by"),),
}


def completed(cluster: str, tables: Mapping[str, pa.Table], mode: Mode | None = None) -> dict[str, pa.Table]:
    """The four tables of a cluster: those in ``tables``, which has ``partitions``, and the others from its partitions.

    Brokers that lead, or are in the ISR of a partition with a leader, are registered where the table does not know of
    any broker. Without ``clusters`` the cluster runs in ``mode``; None: KRaft if a partition has an ELR, else ZooKeeper
    mode. Raises SnapshotError for a partition without a topic or number, or with a list that is only partly known.
    """
    partitions = tables[PARTITIONS.name]
    check_keys(partitions, f"cluster {cluster}")
    clusters = tables.get(CLUSTERS.name)
    if clusters is None:
        # Directories are positions in a list that only the row of a cluster has.
        index = partitions.schema.get_field_index("directories")
        field = partitions.schema.field(index)
        partitions = partitions.set_column(index, field, pa.nulls(partitions.num_rows, field.type))
        provenance = [pair for name, pairs in _PROVENANCE.items() if name not in tables for pair in pairs]
        row = {
            "cluster": cluster,
            "source_format": "spark",
            "source_name": cluster,
            "provenance": provenance,
            "mode": mode or inferred_mode(partitions),
        }
        clusters = pa.Table.from_pylist([row], CLUSTERS.schema)
    brokers, topics = tables.get(BROKERS.name), tables.get(TOPICS.name)
    if brokers is None or brokers["registered"].null_count == brokers.num_rows:
        brokers = _with_registrations(cluster, partitions, brokers)
    return {
        PARTITIONS.name: partitions,
        BROKERS.name: brokers,
        CLUSTERS.name: clusters,
        TOPICS.name: _named_topics(cluster, partitions) if topics is None else topics,
    }


def _with_registrations(cluster: str, partitions: pa.Table, brokers: pa.Table | None) -> pa.Table:
    """The brokers, or those that partitions name, with those that are seen to be live as registered."""
    named, live = _named_brokers(cluster, partitions)
    if brokers is None:
        columns = {"cluster": pa.repeat(cluster, len(named)), "broker_id": pa.array(named)}
        brokers = pa.table(
            {field.name: columns.get(field.name, pa.nulls(len(named), field.type)) for field in BROKERS.schema},
            BROKERS.schema,
        )
    is_live = pc.is_in(brokers["broker_id"], pa.array(live))
    registered = pc.if_else(is_live, True, pa.scalar(None, pa.bool_()))
    return brokers.set_column(brokers.schema.get_field_index("registered"), "registered", registered)


def _named_brokers(cluster: str, partitions: pa.Table) -> tuple[Int32, Int32]:
    """The brokers that partitions name, and those of them that lead or are in the ISR of a partition with a leader."""
    facts = partition_facts(partitions, f"cluster {cluster}", KraftRows.lists)
    named = [lists.values for lists in (facts.replicas, *facts.lists().values()) if lists is not None]
    live = np.empty(0, np.int32)
    if facts.leader is not None and facts.isr is not None:
        led = np.flatnonzero(facts.leader >= 0)
        live = distinct_values(np.concatenate([facts.leader[led], facts.isr.take(led).values]))
    return distinct_values(np.concatenate([*named, live])), live


def _named_topics(cluster: str, partitions: pa.Table) -> pa.Table:
    names = partitions["topic"].combine_chunks().dictionary_encode()
    if isinstance(names, pa.ChunkedArray):  # of no chunk
        return TOPICS.schema.empty_table()
    first = np.unique(names.indices.to_numpy(), return_index=True)[1]
    first_rows = partitions.take(pa.array(first))
    columns = {name: first_rows[name].to_pylist() for name in ("topic_id", "deleting", "configs_known")}
    settings = (first_rows[name].to_pylist() for name in ("unclean", "min_insync_replicas"))
    known = [
        list(config.items()) if is_known else None
        for config, is_known in zip(map(own_configs, *settings), columns["configs_known"], strict=True)
    ]
    return pa.table(
        {
            "cluster": [cluster] * len(first),
            "topic": first_rows["topic"].to_pylist(),
            "partition_count": np.bincount(names.indices.to_numpy()).astype(np.int32),
            "topic_id": columns["topic_id"],
            "deleting": columns["deleting"],
            "configs": known,
        },
        TOPICS.schema,
    )
