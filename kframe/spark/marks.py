"""Marks of what is whole in a directory that stages write to, and what it was made of.

    OUT/impacts/cluster=east/scenario=broker-7/part-….parquet
    OUT/_done/impacts/cluster=east/scenario=broker-7         written last, taken away first

What has no mark is half-written. A mark has a fingerprint of how it was made (scenario and settings) and of what (the
input of the cluster), so that a later run knows what is left to do, and can say why.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from kframe.spark.fleet import directory_of
from kframe.spark.schema import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_DONE: Final = "_done"


@dataclass(frozen=True, slots=True)
class Writing:
    """Where a stage is to be written, if anywhere, and whether what is there is to be replaced."""

    out: str | None = None
    force: bool = False


@dataclass(frozen=True, slots=True)
class Found:
    """What a stage has found: its summary, and why clusters or scenarios could not be done, as frames; and clusters
    that were done again since their input has changed."""

    shown: DataFrame
    problems: DataFrame
    changed: tuple[str, ...] = ()


class Mark(msgspec.Struct, frozen=True):
    """Fingerprints of how and of what something was made; ``inputs`` is None where that is not known."""

    how: str
    inputs: str | None = None

    @staticmethod
    def of(how: Any, inputs: str | None) -> Mark:
        """``how`` is plain data; texts stand for what JSON does not have."""
        text = json.dumps(how, sort_keys=True, default=str)
        return Mark(hashlib.sha256(text.encode()).hexdigest(), inputs)


_MARK: Final = msgspec.json.Decoder(Mark)


class Marks:
    """The marks of one stage, called ``name``, in ``out``; a part is a directory such as ``cluster=east``."""

    def __init__(self, out: str | Path, name: str) -> None:
        self.out = Path(out)
        self._place = self.out / _DONE / name

    def __getitem__(self, part: Path) -> Mark | None:
        """The mark of a part that is whole; None for any other."""
        try:
            return _MARK.decode((self._place / part).read_bytes())
        except (OSError, msgspec.MsgspecError):
            return None

    def parts(self, depth: int) -> list[Path]:
        """Parts with a mark, ascending: directories within one another, ``depth`` of them."""
        return [one.relative_to(self._place) for one in sorted(self._place.glob("/".join(["*=*"] * depth)))]

    def write(self, made: Mapping[Table, DataFrame], marks: Mapping[Path, Mark], by: Iterable[str]) -> None:
        """Replace these parts of the tables by what is made, by these columns, and mark them."""
        for part in marks:
            (self._place / part).unlink(missing_ok=True)
            for table in made:
                shutil.rmtree(self.out / table.name / part, ignore_errors=True)
        for table, frame in made.items():
            frame.write.mode("append").partitionBy(*by).parquet(str(self.out / table.name))
        for part, mark in marks.items():
            place = self._place / part
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(msgspec.json.encode(mark))

    def read(self, session: SparkSession, table: Table, parts: Iterable[Path]) -> DataFrame:
        """What a table has of these parts."""
        paths = [str(place) for part in parts if (place := self.out / table.name / part).is_dir()]
        if not paths:
            return session.createDataFrame([], table.ddl)
        reader = session.read.schema(table.ddl).option("basePath", str(self.out / table.name))
        return reader.parquet(*paths).select(*table.schema.names)


@dataclass(frozen=True, slots=True)
class Left:
    """Parts that are still to be done, with the marks that they will get, and those whose input has changed."""

    marks: Mapping[Path, Mark]
    changed: frozenset[Path]

    @staticmethod
    def of(store: Marks | None, wanted: Mapping[Path, Mark], force: bool) -> Left:
        """What is left of ``wanted``: what has no mark, another one, or with ``force`` all."""
        if store is None:
            return Left(wanted, frozenset())
        known = {part: store[part] for part in wanted}
        changed = {part for part, mark in known.items() if mark is not None and mark.inputs != wanted[part].inputs}
        return Left({part: mark for part, mark in wanted.items() if force or known[part] != mark}, frozenset(changed))

    def without(self, bad: Iterable[Path]) -> dict[Path, Mark]:
        """The marks of those that have no problem."""
        some = set(bad)
        return {part: mark for part, mark in self.marks.items() if part not in some}


def part_of_cluster(cluster: str) -> Path:
    """Where a table has a cluster."""
    return Path(directory_of("cluster", cluster))


def part_of_scenario(cluster: str, scenario: str) -> Path:
    """Where a table has a scenario of a cluster."""
    return part_of_cluster(cluster) / directory_of("scenario", scenario)
