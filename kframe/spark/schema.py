"""The tables of a fleet as Arrow schemas, with their Spark DDL.

A *cluster* is one snapshot of one cluster, by a name of the user's choice; a fleet over time names them like
``east@2026-11-21``. Rows are in no order. ``docs/reference/fleet-tables.md`` describes the columns of all tables.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, get_args, get_origin

import pyarrow as pa
from msgspec import Struct
from msgspec.structs import fields

from kframe.snapshot.tables import OBSERVERS, kraft_schemas

TEXT: Final = pa.string()
INT: Final = pa.int32()
LONG: Final = pa.int64()
FLAG: Final = pa.bool_()
INTS: Final = pa.list_(pa.int32())

_SPARK_NAMES: Final = {
    TEXT: "string",
    pa.int16(): "smallint",
    INT: "int",
    LONG: "bigint",
    FLAG: "boolean",
    pa.float64(): "double",
    pa.binary(): "binary",
}


#: The columns of the types of rows.
_COLUMN_TYPES: Final = {str: TEXT, int: LONG, bool: FLAG, float: pa.float64()}


def columns_of(row: type[Struct], **types: pa.DataType) -> pa.Schema:
    """The columns of rows of this type, in the order of its fields. ``types`` are those of some columns: numbers have
    64 bits."""
    columns = []
    for field in fields(row):
        kind = next((part for part in get_args(field.type) if part is not type(None)), field.type)
        default = TEXT if get_origin(kind) is Literal or isinstance(kind, str) else _COLUMN_TYPES.get(kind)
        columns.append((field.encode_name, types.get(field.encode_name, default)))
    return pa.schema(columns)


@dataclass(frozen=True, slots=True)
class FleetTable:
    """One kind of rows. It has a name, Arrow columns, and the columns that are unique together."""

    name: str
    schema: pa.Schema
    key: tuple[str, ...] = ()

    @property
    def ddl(self) -> str:
        """The columns as Spark writes them, for ``mapInArrow``, ``applyInArrow`` and readers."""
        return ", ".join(f"`{field.name}` {spark_type(field.type)}" for field in self.schema)


def spark_type(kind: pa.DataType) -> str:
    """The Spark name of an Arrow type. Raises KeyError for a type that no table uses."""
    if pa.types.is_list(kind):
        return f"array<{spark_type(kind.value_type)}>"
    if pa.types.is_map(kind):
        return f"map<{spark_type(kind.key_type)},{spark_type(kind.item_type)}>"
    if pa.types.is_struct(kind):
        return f"struct<{','.join(f'{field.name}:{spark_type(field.type)}' for field in kind)}>"
    return _SPARK_NAMES[kind]


def of_cluster(schema: pa.Schema) -> pa.Schema:
    """A table of one cluster as a table of many clusters."""
    return pa.schema([pa.field("cluster", TEXT), *schema])


def with_columns_of(schema: pa.Schema, rows: pa.Table | pa.RecordBatch) -> pa.Table:
    """Rows as rows of a schema: other columns are left out, missing ones are null."""
    known = set(rows.schema.names)
    columns = [
        rows[field.name].cast(field.type) if field.name in known else pa.nulls(rows.num_rows, field.type)
        for field in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def to_stream(rows: pa.Table | pa.RecordBatch) -> bytes:
    """Rows as a compressed Arrow stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as stream:
        stream.write(rows)
    data: bytes = sink.getvalue().to_pybytes()
    return data


_SNAPSHOT: Final = kraft_schemas()

#: A row for each partition, with the facts of its topic that a controller reads.
PARTITIONS: Final = FleetTable(
    "partitions",
    pa.schema(
        [
            *of_cluster(_SNAPSHOT["partitions"]),
            pa.field(OBSERVERS, INTS),
            pa.field("topic_id", TEXT),
            pa.field("deleting", FLAG),
            pa.field("configs_known", FLAG),
            pa.field("unclean", FLAG),
            pa.field("min_insync_replicas", INT),
        ]
    ),
    ("cluster", "topic", "partition"),
)
BROKERS: Final = FleetTable("brokers", of_cluster(_SNAPSHOT["brokers"]), ("cluster", "broker_id"))
TOPICS: Final = FleetTable("topics", of_cluster(_SNAPSHOT["topics"]), ("cluster", "topic"))
#: What a KRaft cluster has beyond its mode: ``KraftFacts``, all null where nothing of it is known.
KRAFT_FACTS: Final = pa.schema(
    [
        ("features", pa.map_(TEXT, INT)),
        ("directory_ids", pa.list_(TEXT)),
        ("offset", LONG),
        ("voters", INTS),
        ("records", pa.list_(pa.struct(list(_SNAPSHOT["records"])))),
    ]
)
CLUSTERS: Final = FleetTable(
    "clusters",
    pa.schema(
        [
            ("cluster", TEXT),
            ("cluster_id", TEXT),
            ("controller_id", INT),
            ("controller_epoch", INT),
            ("broker_default_configs", pa.map_(TEXT, TEXT)),
            ("source_format", TEXT),
            ("source_name", TEXT),
            ("partitions", LONG),
            ("topics", INT),
            ("brokers", INT),
            ("provenance", pa.map_(TEXT, TEXT)),
            ("mode", TEXT),
            ("controllers", INTS),
            *KRAFT_FACTS,
        ]
    ),
    ("cluster",),
)
#: The tables that a cluster is read from.
CLUSTER_TABLES: Final = (PARTITIONS, BROKERS, TOPICS, CLUSTERS)
#: A scenario of a cluster, or of every cluster. Columns may be null where the verb does not need them.
SCENARIOS: Final = FleetTable(
    "scenarios",
    pa.schema(
        [
            ("cluster", TEXT),
            ("scenario", TEXT),
            ("verb", TEXT),
            ("brokers", INTS),
            ("racks", pa.list_(TEXT)),
            ("together", FLAG),
            ("election", TEXT),
            ("names", pa.list_(TEXT)),
            ("plan", TEXT),
            ("partitions", INT),
            ("replication_factor", INT),
            ("seed", INT),
            ("clean", FLAG),
        ]
    ),
    ("cluster", "scenario"),
)
#: Input that was rejected. A completely rejected source has one row.
QUARANTINE: Final = FleetTable(
    "quarantine",
    pa.schema(
        [
            ("cluster", TEXT),
            ("source", TEXT),
            ("location", TEXT),
            ("actual", TEXT),
            ("expected", TEXT),
            ("topic", TEXT),
            ("partitions", LONG),
        ]
    ),
)
