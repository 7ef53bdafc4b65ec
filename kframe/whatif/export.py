"""An Outcome as a directory of Parquet tables beside its summary in JSON. It appears whole or not at all."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from kframe.errors import EXISTS, InputError
from kframe.model.cluster import ClusterState
from kframe.model.kraft.metadata import ClusterMetadata
from kframe.snapshot import Snapshot
from kframe.whatif.document import WhatIfDocument, plain_document, summary_document
from kframe.whatif.files import parquet_module, replacing
from kframe.whatif.results.outcome import Outcome

if TYPE_CHECKING:
    import pyarrow as pa

SUMMARY_FILE: Final = "outcome.json"
PARTITIONS_FILE: Final = "partitions.parquet"
BROKERS_FILE: Final = "brokers.parquet"
TIMELINE_FILE: Final = "timeline.parquet"
_FILES: Final = frozenset({SUMMARY_FILE, PARTITIONS_FILE, BROKERS_FILE, TIMELINE_FILE})

#: Columns of every timeline, with their Arrow types.
_TIMELINE: Final = {
    "step": "int32", "name": "string", "what": "string", "text": "string", "kind": "string", "api": "string",
    "partitions": "int64", "elected": "int64", "unclean": "int64", "created": "int64", "shrunk": "int64",
    "leaderless": "int64", "refused": "int64", "brokers": "int64", "requests": "int64", "entries": "int64",
    "bytes": "int64", "grown": "int64", "action": "string", "topics": "int64", "adding": "int64", "removing": "int64",
    "entered": "int64", "left": "int64", "records": "int64",
}  # fmt: skip


def check_target(path: Path, *, force: bool = False) -> None:
    """Raise InputError unless ``write_outcome`` may write there: a new place, or with ``force`` an outcome."""
    if not path.parent.is_dir():
        raise InputError(str(path.parent), "no such directory", "one to write the outcome in")
    if not path.exists() and not path.is_symlink():
        return
    if not force:
        raise InputError(str(path), EXISTS, "--force to replace an outcome")
    if path.is_symlink() or not path.is_dir() or not {entry.name for entry in path.iterdir()} <= _FILES:
        raise InputError(str(path), "something that is not an outcome", "an outcome, or an empty directory")


def write_outcome(
    outcome: Outcome, snapshot: Snapshot, cluster: ClusterState | ClusterMetadata, path: Path, *, force: bool = False
) -> None:
    """Write partitions.parquet (those that changed), brokers.parquet, timeline.parquet and outcome.json.

    Raises InputError if the place is taken or cannot be written, or pyarrow is missing; then nothing has changed.
    """
    check_target(path, force=force)
    parquet = parquet_module()
    document = summary_document(outcome, snapshot, cluster)
    tables = {
        PARTITIONS_FILE: outcome.to_arrow(),
        BROKERS_FILE: brokers_table(document),
        TIMELINE_FILE: timeline_table(document),
    }
    with replacing(path) as new:
        new.mkdir()
        for name, table in tables.items():
            parquet.write_table(table, new / name, compression="zstd")
        (new / SUMMARY_FILE).write_text(f"{json.dumps(plain_document(document), indent=2)}\n", encoding="utf-8")


def brokers_table(document: WhatIfDocument) -> pa.Table:
    """Every broker, a row each."""
    import pyarrow as pa

    rows = msgspec.to_builtins(document.brokers)
    kinds = {
        "rack": pa.string(),
        "registered_before": pa.bool_(),
        "registered_after": pa.bool_(),
        "broker_id": pa.int32(),
    }
    names = rows[0] if rows else ()
    return pa.Table.from_pylist(rows, pa.schema([(name, kinds.get(name, pa.int64())) for name in names]))


def timeline_table(document: WhatIfDocument) -> pa.Table:
    """All events in order, a row each, with the number and name of its step. Null: a column that the event lacks."""
    import pyarrow as pa

    schema = pa.schema([(name, pa.type_for_alias(kind)) for name, kind in _TIMELINE.items()])
    rows = [
        {"step": number, "name": step.name, **event}
        for number, step in enumerate(document.steps, 1)
        for event in msgspec.to_builtins(step.timeline)
    ]
    return pa.Table.from_pylist(rows, schema)
