"""The files of an outcome: complete or absent, and equal to the printed output."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyarrow import parquet

from kframe.errors import InputError
from kframe.whatif import Outcome, WhatIf
from kframe.whatif.document import SCHEMA, plain_document, summary_document
from kframe.whatif.export import write_outcome
from tests.whatif.samples import small

FILES = {"brokers.parquet", "outcome.json", "partitions.parquet", "timeline.parquet"}


@pytest.fixture
def whatif() -> WhatIf:
    return WhatIf(small())


@pytest.fixture
def outcome(whatif: WhatIf) -> Outcome:
    return whatif.fail([1])


def write(outcome: Outcome, whatif: WhatIf, path: Path, *, force: bool = False) -> None:
    write_outcome(outcome, whatif.snapshot, whatif.cluster, path, force=force)


def test_tables_equal_records(whatif: WhatIf, outcome: Outcome, tmp_path: Path) -> None:
    write(outcome, whatif, tmp_path / "out")
    tables = {
        name: parquet.read_table(tmp_path / "out" / f"{name}.parquet") for name in ("partitions", "brokers", "timeline")
    }
    rows = tables["partitions"].to_pylist()
    records = list(outcome.changes.records())
    assert rows == records
    document = plain_document(summary_document(outcome, whatif.snapshot, whatif.cluster))
    assert tables["brokers"].to_pylist() == document["brokers"]
    lines = [
        {name: value for name, value in row.items() if value is not None} for row in tables["timeline"].to_pylist()
    ]
    assert lines == [
        {"step": number, "name": step["name"], **{name: value for name, value in event.items() if value is not None}}
        for number, step in enumerate(document["steps"], 1)
        for event in step["timeline"]
    ]
    assert json.loads((tmp_path / "out" / "outcome.json").read_text()) == document
    assert document["schema"] == SCHEMA
    assert {path.name for path in (tmp_path / "out").iterdir()} == FILES
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize("existing", ["file", "link", "folder", "foreign"])
def test_existing_target_is_refused(whatif: WhatIf, outcome: Outcome, tmp_path: Path, existing: str) -> None:
    path = tmp_path / "out"
    if existing == "file":
        path.write_text("mine")
    elif existing == "link":
        path.symlink_to(tmp_path)
    else:
        path.mkdir()
        (path / "mine.txt").write_text("mine") if existing == "foreign" else None
    with pytest.raises(InputError, match="already exists"):
        write(outcome, whatif, path)
    if existing != "folder":
        with pytest.raises(InputError, match="something that is not an outcome"):
            write(outcome, whatif, path, force=True)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_force_replaces_outcome(whatif: WhatIf, outcome: Outcome, tmp_path: Path) -> None:
    path = tmp_path / "out"
    write(outcome, whatif, path)
    (path / "timeline.parquet").write_text("damaged")
    write(outcome, whatif, path, force=True)
    assert parquet.read_table(path / "timeline.parquet").num_rows > 0
    assert [path_.name for path_ in tmp_path.iterdir()] == ["out"]


def test_missing_folder_is_named(whatif: WhatIf, outcome: Outcome, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such directory"):
        write(outcome, whatif, tmp_path / "no" / "out")
