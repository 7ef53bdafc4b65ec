"""The facts of KRaft clusters in the tables of a fleet."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa

from kframe.errors import InputError, SnapshotError
from kframe.model.kafka_uuids import uuid_text
from kframe.model.kraft.ids import ELR_VERSION, ResourceType
from kframe.model.kraft.records import ConfigRecord
from kframe.model.texts import short_repr
from kframe.snapshot import KraftFacts, Snapshot
from kframe.snapshot.facts import ELR_COLUMNS, MIN_INSYNC_CONFIG
from kframe.snapshot.kraft_tables import read_records
from kframe.snapshot.tables import records_table
from kframe.spark.schema import KRAFT_FACTS
from kframe.whatif.engines.kraft.settings import directory_id

KRAFT: Final = "kraft"
ZOOKEEPER: Final = "zookeeper"


def kraft_columns(snapshot: Snapshot) -> dict[str, Any]:
    """The columns of KRAFT_FACTS in the row of a cluster."""
    facts = snapshot.kraft
    if facts is None:
        return dict.fromkeys(KRAFT_FACTS.names)
    return {
        "features": None if facts.features is None else sorted(facts.features.items()),
        "directory_ids": list(map(uuid_text, facts.directory_ids)),
        "offset": facts.offset,
        "records": None if facts.records is None else records_table(facts.records).to_pylist(),
    }


def is_kraft(row: Mapping[str, Any]) -> bool:
    """Whether the row of a cluster is that of a KRaft cluster. A row without a mode is in ZooKeeper mode.

    Raises SnapshotError for another mode.
    """
    mode = row["mode"]
    if mode not in (None, KRAFT, ZOOKEEPER):
        raise SnapshotError(f"cluster {row['cluster']} field mode", short_repr(mode), f"{ZOOKEEPER} or {KRAFT}")
    return bool(mode == KRAFT)


def kraft_facts_of(row: Mapping[str, Any]) -> KraftFacts | None:
    """The facts in the row of a KRaft cluster; None where its source had ELRs alone. Raises SnapshotError."""
    where = f"cluster {row['cluster']}"
    if row["directory_ids"] is None:
        return None
    features = None if row["features"] is None else dict(row["features"])
    for name, level in (features or {}).items():
        if level is None:
            raise SnapshotError(f"{where} field features", f"a null level of {name}", "a level of each feature")
    if None in (row["records"] or ()):
        raise SnapshotError(f"{where} field records", "a null in them", "a type and JSON of each record")
    try:
        directory_ids = tuple(map(directory_id, row["directory_ids"]))
    except (InputError, TypeError) as problem:
        raise SnapshotError(
            f"{where} field directory_ids", short_repr(row["directory_ids"]), "ids of log directories"
        ) from problem
    return KraftFacts(
        features=features,
        records=None if row["records"] is None else read_records(
            ((record["type"], record["record"]) for record in row["records"]), f"{where} field records"
        ),
        directory_ids=directory_ids,
        offset=row["offset"],
    )  # fmt: skip


def refuse_elrs(partitions: pa.Table, where: str) -> None:
    """Raise SnapshotError if partitions of a cluster that is not known to run KRaft have ELRs."""
    if any(partitions[name].null_count < partitions.num_rows for name in ELR_COLUMNS):
        problem = "ELRs in a cluster whose mode is not kraft"
        raise SnapshotError(f"{where} table partitions", problem, "a cluster that this version of kframe has ingested")


def has_elr(row: Mapping[str, Any]) -> bool | None:
    """Whether eligible leader replicas are enabled in the row of a KRaft cluster; None if its features are unknown."""
    return None if row["features"] is None else dict(row["features"]).get(ELR_VERSION, 0) > 0


def min_insync_of_node(row: Mapping[str, Any]) -> str | None:
    """``min.insync.replicas`` of the active controller's own node, which precedes that of the cluster, in the row of a
    KRaft cluster (``KraftContext.min_isr``); None if it has none."""
    facts = kraft_facts_of(row) if row["records"] else None
    for record in () if facts is None else facts.records or ():
        if not isinstance(record, ConfigRecord) or record.resource_type != ResourceType.BROKER:
            continue
        if (record.resource_name, record.name) == (str(row["controller_id"]), MIN_INSYNC_CONFIG):
            return record.value
    return None
