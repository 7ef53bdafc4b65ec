"""The modes of clusters: what their rows have, and the rules that hold. Only ``grouping`` compares modes,
before rows are read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kframe.errors import InputError, SnapshotError
from kframe.model.kafka_uuids import uuid_text
from kframe.model.kraft.ids import ELR_VERSION, ResourceType
from kframe.model.kraft.records import ConfigRecord
from kframe.model.texts import short_repr
from kframe.snapshot import KraftFacts, PartitionFacts, Snapshot
from kframe.snapshot.content import Mode
from kframe.snapshot.facts import ELR_COLUMNS, LIST_COLUMNS, MIN_INSYNC_CONFIG
from kframe.snapshot.kraft_tables import read_records
from kframe.snapshot.tables import records_table
from kframe.spark.schema import KRAFT_FACTS
from kframe.whatif.engines.kraft.settings import directory_id


@dataclass(frozen=True, slots=True)
class ZookeeperRows:
    """The rows of a cluster in ZooKeeper mode. ``row`` is that of the cluster in CLUSTERS."""

    row: Mapping[str, Any] = field(default_factory=dict)
    mode: ClassVar[Mode] = "zookeeper"
    lists: ClassVar[tuple[str, ...]] = tuple(name for name in LIST_COLUMNS if name not in ELR_COLUMNS)
    """The lists of partitions besides the replicas."""
    sweep_parts: ClassVar[int] = 1
    """How many tasks can count the failures of one cluster. Reading 1,000,000 partitions of 100 brokers from a fleet
    takes 40 times as long as counting their failures, and each task would read them all."""
    why_no_request: ClassVar[str] = "its controller sends no request in these scenarios"

    def check(self, partitions: pa.Table, where: str) -> None:
        """Raise SnapshotError for partitions with ELRs: the cluster is not known to run KRaft."""
        if any(partitions[name].null_count < partitions.num_rows for name in ELR_COLUMNS):
            expected = "a cluster that this version of kframe has ingested"
            raise SnapshotError(f"{where} table partitions", "ELRs in a cluster whose mode is not kraft", expected)

    def facts(self) -> KraftFacts | None:
        """What the row has of a KRaft cluster; None where its source had ELRs alone. Raises SnapshotError."""
        return None

    def node_min_insync(self) -> str | None:
        """``min.insync.replicas`` of the controller's node, if it precedes that of the cluster."""
        return None

    def has_elr(self, partitions: PartitionFacts) -> bool:
        """Whether partitions may have eligible leader replicas, so that an ISR may be empty."""
        return False

    def min_isr(self, rows: pa.Table, partitions: PartitionFacts, default: int) -> NDArray[Any]:
        """The effective ``min.insync.replicas`` of each row."""
        minimum: NDArray[Any] = rows["min_insync_replicas"].fill_null(default).to_numpy()
        return minimum


@dataclass(frozen=True, slots=True)
class KraftRows(ZookeeperRows):
    """The rows of a KRaft cluster."""

    mode: ClassVar[Mode] = "kraft"
    lists: ClassVar[tuple[str, ...]] = (*LIST_COLUMNS, "directories")
    sweep_parts: ClassVar[int] = 8
    """Counting the failures of 50 brokers in 200,000 partitions takes six times as long as reading them."""
    why_no_request: ClassVar[str] = "the controller of a KRaft cluster sends no requests"

    def check(self, partitions: pa.Table, where: str) -> None:
        """Accept ELRs."""

    def facts(self) -> KraftFacts | None:
        """See ``ZookeeperRows``."""
        row, where = self.row, f"cluster {self.row['cluster']}"
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
            records=None
            if row["records"] is None
            else read_records(
                ((record["type"], record["record"]) for record in row["records"]), f"{where} field records"
            ),
            directory_ids=directory_ids,
            offset=row["offset"],
            voters=None if row["voters"] is None else tuple(row["voters"]),
        )

    def node_min_insync(self) -> str | None:
        """See ``ZookeeperRows`` and ``KraftContext.min_isr``."""
        facts = self.facts() if self.row["records"] else None
        for record in () if facts is None else facts.records or ():
            if not isinstance(record, ConfigRecord) or record.resource_type != ResourceType.BROKER:
                continue
            if (record.resource_name, record.name) == (str(self.row["controller_id"]), MIN_INSYNC_CONFIG):
                return record.value
        return None

    def has_elr(self, partitions: PartitionFacts) -> bool:
        """See ``ZookeeperRows``. If the features are unknown: whether partitions have ELRs."""
        if self.row["features"] is None:
            return partitions.elr is not None
        return bool(dict(self.row["features"]).get(ELR_VERSION, 0) > 0)

    def min_isr(self, rows: pa.Table, partitions: PartitionFacts, default: int) -> NDArray[Any]:
        """See ``ZookeeperRows``. The replicas of partition 0 bound that of its topic (Kafka 4.4
        ``ReplicationControlManager.getTopicEffectiveMinIsr``)."""
        topic = rows["topic"].combine_chunks().dictionary_encode().indices.to_numpy()
        widths = np.full(int(topic.max(initial=-1)) + 1, np.iinfo(np.int64).max)
        first = np.flatnonzero(rows["partition"].to_numpy() == 0)
        widths[topic[first]] = partitions.replicas.counts[first]
        bounded: NDArray[Any] = np.minimum(ZookeeperRows.min_isr(self, rows, partitions, default), widths[topic])
        return bounded


MODES: Final[Mapping[str, type[ZookeeperRows]]] = {"zookeeper": ZookeeperRows, "kraft": KraftRows}


def rows_in_mode(row: Mapping[str, Any]) -> ZookeeperRows:
    """The rows of a cluster with this row in CLUSTERS. Without a mode they are in ZooKeeper mode.

    Raises SnapshotError for another mode.
    """
    mode = "zookeeper" if row["mode"] is None else row["mode"]
    if mode not in MODES:
        raise SnapshotError(f"cluster {row['cluster']} field mode", short_repr(mode), "zookeeper or kraft")
    return MODES[mode](row)


def inferred_mode(partitions: pa.Table) -> Mode:
    """The mode of a cluster by its partitions alone: KRaft if one has an ELR."""
    return "zookeeper" if partitions["elr"].null_count == partitions.num_rows else "kraft"


def kraft_columns(snapshot: Snapshot) -> dict[str, Any]:
    """The columns of KRAFT_FACTS in the row of a cluster, which are null in ZooKeeper mode."""
    facts = snapshot.kraft
    if facts is None:
        return dict.fromkeys(KRAFT_FACTS.names)
    return {
        "features": None if facts.features is None else sorted(facts.features.items()),
        "directory_ids": list(map(uuid_text, facts.directory_ids)),
        "offset": facts.offset,
        "voters": None if facts.voters is None else list(facts.voters),
        "records": None if facts.records is None else records_table(facts.records).to_pylist(),
    }
