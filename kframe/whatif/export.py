"""An Outcome as a directory of Parquet tables beside its summary in JSON. It appears whole or not at all."""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kframe.errors import EXISTS, InputError
from kframe.snapshot import Snapshot
from kframe.whatif.document import NamesPartitions, broker_records, summary_document, timeline_records
from kframe.whatif.files import parquet_module
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
    outcome: Outcome, snapshot: Snapshot, cluster: NamesPartitions, path: Path, *, force: bool = False
) -> None:
    """Write partitions.parquet (those that changed), brokers.parquet, timeline.parquet and outcome.json.

    Raises InputError if the place is taken or cannot be written, or pyarrow is missing; then nothing has changed.
    """
    check_target(path, force=force)
    parquet = parquet_module()
    tables = {
        PARTITIONS_FILE: outcome.to_arrow(),
        BROKERS_FILE: brokers_table(outcome),
        TIMELINE_FILE: timeline_table(outcome),
    }
    try:
        building = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
        try:
            new = building / "new"
            new.mkdir()
            for name, table in tables.items():
                parquet.write_table(table, new / name, compression="zstd")
            text = json.dumps(summary_document(outcome, snapshot, cluster), indent=2)
            (new / SUMMARY_FILE).write_text(f"{text}\n", encoding="utf-8")
            _rename_into(new, path, building / "old")
        finally:
            shutil.rmtree(building, ignore_errors=True)
    except OSError as problem:
        raise InputError(str(path), problem.strerror or str(problem), "a place that can be written") from problem


def brokers_table(outcome: Outcome) -> pa.Table:
    """Every broker, a row each."""
    import pyarrow as pa

    rows = list(broker_records(outcome))
    kinds = {
        "rack": pa.string(),
        "registered_before": pa.bool_(),
        "registered_after": pa.bool_(),
        "broker_id": pa.int32(),
    }
    names = rows[0] if rows else ()
    return pa.Table.from_pylist(rows, pa.schema([(name, kinds.get(name, pa.int64())) for name in names]))


def timeline_table(outcome: Outcome) -> pa.Table:
    """Everything that happened, a row each. A column that does not go with it is null."""
    import pyarrow as pa

    schema = pa.schema([(name, pa.type_for_alias(kind)) for name, kind in _TIMELINE.items()])
    return pa.Table.from_pylist(list(timeline_records(outcome)), schema)


def _rename_into(new: Path, path: Path, backup: Path) -> None:
    """Rename; what stood there before is put back if that fails."""
    if not path.exists():
        new.rename(path)
        return
    path.rename(backup)
    try:
        new.rename(path)
    except OSError:
        backup.rename(path)
        raise
