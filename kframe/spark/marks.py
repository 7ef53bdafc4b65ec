"""Completion marks of the directories that stages write, with a fingerprint of their inputs.

    OUT/impacts/cluster=east/scenario=broker-7/part-….parquet
    OUT/_done/impacts/cluster=east/scenario=broker-7         written last, removed first
    OUT/_left_out/impacts.json                               clusters and scenarios without rows

A directory without a mark is incomplete. A mark has two fingerprints: of the scenario and settings, and of the input of
the cluster. A later run compares them to find what is left to do, and why.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

import msgspec
import pyarrow as pa
from pyarrow import parquet

from kframe.snapshot.decode import decode
from kframe.spark.fleet import directory_of, read_files, write_json
from kframe.spark.row_types import LeftOutCluster
from kframe.spark.schema import FleetTable

_DONE: Final = "_done"
_LEFT_OUT: Final = "_left_out"


@dataclass(frozen=True, slots=True)
class Writing:
    """The output directory of a stage, if any, and whether existing results are replaced.

    ``planned`` is called before the stage begins, with the marks that ``out`` will have after it.
    """

    out: str | None = None
    force: bool = False
    planned: Callable[[Marks, Mapping[Path, Mark]], None] = lambda _store, _marks: None


class Mark(msgspec.Struct, frozen=True):
    """Fingerprints of the settings (``how``) and of the inputs of a part. ``inputs`` is None if they are unknown."""

    how: str
    inputs: str | None = None

    @staticmethod
    def of(how: Any, inputs: str | None) -> Mark:
        """``how`` is plain data. Values that JSON lacks are converted to text."""
        text = json.dumps(how, sort_keys=True, default=str)
        return Mark(hashlib.sha256(text.encode()).hexdigest(), inputs)


_MARK: Final = msgspec.json.Decoder(Mark)
_LEFT_OUT_PARTS: Final = msgspec.json.Decoder(list[LeftOutCluster])


class Marks:
    """The marks of one stage, called ``name``, in ``out``. A part is a directory such as ``cluster=east``."""

    def __init__(self, out: str | Path, name: str) -> None:
        self.out, self.name = Path(out), name
        self._directory = self.out / _DONE / name

    def __getitem__(self, part: Path) -> Mark | None:
        """The mark of a part that is whole. None for any other."""
        try:
            return _MARK.decode((self._directory / part).read_bytes())
        except (OSError, msgspec.MsgspecError):
            return None

    def count(self, marks: Mapping[Path, Mark]) -> int:
        """How many parts are whole and made as these marks say."""
        return sum(self[part] == mark for part, mark in marks.items())

    def parts(self, depth: int) -> list[Path]:
        """Parts with a mark, ascending. They are nested directories of ``depth`` levels."""
        return [path.relative_to(self._directory) for path in sorted(self._directory.glob("/".join(["*=*"] * depth)))]

    def put(self, part: Path, tables: Mapping[FleetTable, pa.Table], mark: Mark, staged: Path) -> None:
        """Replace one part of these tables and mark it. Several processes may do that at a time, for different parts.

        Files are written below ``staged`` first, a directory of this writer alone on the same file system. A table
        without rows has no file.
        """
        (self._directory / part).unlink(missing_ok=True)
        for table in tables:
            shutil.rmtree(self.out / table.name / part, ignore_errors=True)
        directory_columns = {name.partition("=")[0] for name in part.parts}
        for table, rows in tables.items():
            if not rows.num_rows:
                continue
            building, target = staged / table.name, self.out / table.name / part
            building.mkdir(parents=True)
            columns = rows.select([name for name in table.schema.names if name not in directory_columns])
            parquet.write_table(columns, building / "part-0.parquet", compression="zstd")
            target.parent.mkdir(parents=True, exist_ok=True)
            building.rename(target)
        path = self._directory / part
        path.parent.mkdir(parents=True, exist_ok=True)
        staged.mkdir(parents=True, exist_ok=True)
        building = staged / "mark"
        building.write_bytes(msgspec.json.encode(mark))
        building.rename(path)

    def write_left_out(self, parts: Iterable[LeftOutCluster], clusters: Set[str], scenarios: Set[str]) -> None:
        """Save what has no rows of this stage. Forget what an earlier run saved of ``clusters`` and, of each of these,
        of ``scenarios``."""
        saved = [
            part
            for part in self.left_out()
            if part.cluster not in clusters or not (part.scenario is None or part.scenario in scenarios)
        ]
        write_json(self.out, self._left_out, [*saved, *parts])

    def left_out(self) -> list[LeftOutCluster]:
        """What has no rows of this stage, as the runs that wrote here saved it. Raises SnapshotError if that cannot be
        read."""
        try:
            raw = self._left_out.read_bytes()
        except FileNotFoundError:
            return []
        return decode(_LEFT_OUT_PARTS, raw, str(self._left_out))

    @property
    def _left_out(self) -> Path:
        return self.out / _LEFT_OUT / f"{self.name}.json"

    def rows(self, table: FleetTable, part: Path) -> pa.Table:
        """The rows of a part, read in this process. The columns that its directories name are added.

        Raises SnapshotError for a file that cannot be read.
        """
        values = {name: unquote(value) for name, _, value in (level.partition("=") for level in part.parts)}
        return read_files(self.out / table.name / part, table, values, "what an earlier run wrote")


def part_of(cluster: str, scenario: str | None) -> Path:
    """The directory of a scenario, or without one of the cluster, within a table."""
    directory = Path(directory_of("cluster", cluster))
    return directory if scenario is None else directory / directory_of("scenario", scenario)


def pair_of_part(part: Path) -> tuple[str, str]:
    """The cluster and scenario of the directory of a scenario within a table."""
    cluster, scenario = (unquote(name.partition("=")[2]) for name in part.parts)
    return cluster, scenario
