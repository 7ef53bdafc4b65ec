"""Raw exports become a fleet: complete clusters, invalid input in quarantine, and repeated work only for changes."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pyarrow import parquet

from kframe.errors import InputError
from kframe.snapshot import generate, read_snapshot
from kframe.spark import fleet
from kframe.spark.fleet import FLEET, check_fleet_root, finished, part, read_part, record_of
from kframe.spark.ingest import ingest_source
from kframe.spark.rows import snapshot_of
from kframe.spark.schema import BROKERS, CLUSTERS, PARTITIONS, QUARANTINE, TOPICS
from kframe.spark.sources import SnapshotSource
from tests.snapshot.samples import dump, dump_text, kcat, state
from tests.spark.fleets import BROKEN_STATE, resign, snapshot_directory, two_topics


class Bad(NamedTuple):
    """A damaged input, its row in quarantine, and the accepted topics (None: the input is refused)."""

    name: str
    make: Callable[[Path], Path]
    where: str
    actual: str
    topics: list[str] | None = None


def file(name: str, content: str | bytes) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        path = folder / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return make


def snapshot(change: Callable[[Path], object]) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        path = snapshot_directory(folder / "c", generate(1_000, 5, 3))
        change(path)
        return path

    return make


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


def cut_and_signed(path: Path) -> None:
    cut(path / "partitions.parquet")
    resign(path)


ZIPPED = gzip.compress(two_topics().encode())
BAD = [
    Bad("half-written gzip", file("c.jsonl.gz", ZIPPED[: len(ZIPPED) // 2]), "c.jsonl.gz", "a damaged gzip file"),
    Bad("half-written dump", file("c.jsonl", two_topics()[:-30]), "c.jsonl:16", "malformed JSON"),
    Bad("dump cut at a line", file("c.jsonl", dump_text(dump()[:1])), "c.jsonl", "no znode"),
    Bad("empty file", file("c.jsonl", ""), "c.jsonl", "an empty file"),
    Bad("truncated Parquet", snapshot(lambda path: cut(path / "partitions.parquet")), "c/partitions.parquet", "bytes"),
    Bad("truncated and signed", snapshot(cut_and_signed), "c/partitions.parquet", "no readable Parquet"),
    Bad(
        "hash mismatch",
        snapshot(lambda path: (path / "topics.parquet").write_bytes((path / "topics.parquet").read_bytes()[::-1])),
        "c/topics.parquet",
        "sha256",
    ),
    Bad(
        "duplicate state",
        file("c.jsonl", two_topics() + dump_text([state("t", 1, 2, [2, 3])])),
        "c.jsonl:17",
        "a second state of partition t-1",
        ["u"],
    ),
    Bad(
        "broken state",
        file("c.jsonl", two_topics(BROKEN_STATE)),
        "c.jsonl:10 data of /brokers/topics/t/partitions/1/state",
        "malformed JSON",
        ["u"],
    ),
]


@pytest.mark.parametrize("bad", BAD, ids=lambda bad: bad.name)
def test_invalid_input_is_quarantined_with_file_and_reason(bad: Bad, tmp_path: Path) -> None:
    source, out = SnapshotSource(str(bad.make(tmp_path)), "c"), tmp_path / "out"
    (row,) = ingest_source(source, out).to_pylist()
    (quarantined,) = part_rows(out, QUARANTINE)
    assert quarantined["location"] == str(tmp_path / bad.where)
    assert bad.actual in quarantined["actual"]
    assert quarantined["source"] == source.path
    if bad.topics is None:
        assert (row["status"], row["partitions"]) == ("rejected", 0)
        assert quarantined["location"] in row["reason"]
        assert [table.name for table in FLEET if part(out, table, "c").exists()] == ["quarantine"]
    else:
        assert row["status"] == "ingested"
        assert [row["topic"] for row in part_rows(out, TOPICS)] == bad.topics
        assert quarantined["partitions"] == 2
    assert ingest_source(source, out).to_pylist()[0]["status"] == "unchanged"


def part_rows(out: Path, table: Any) -> list[dict[str, Any]]:
    path = part(out, table, "c") / "part-0.parquet"
    rows: list[dict[str, Any]] = parquet.ParquetFile(path).read().to_pylist() if path.exists() else []
    return rows


def files_of(out: Path) -> dict[str, bytes]:
    return {str(path.relative_to(out)): path.read_bytes() for path in sorted(out.rglob("*")) if path.is_file()}


def test_unchanged_input_is_ingested_once(tmp_path: Path) -> None:
    path, out = tmp_path / "c.jsonl", tmp_path / "out"
    path.write_text(two_topics())
    source = SnapshotSource(str(path), "c")
    statuses = [ingest_source(source, out)["status"][0].as_py()]
    first = files_of(out)
    statuses += [ingest_source(source, out, force=force)["status"][0].as_py() for force in (False, True)]
    assert statuses == ["ingested", "unchanged", "ingested"]
    assert files_of(out) == first
    path.write_text(two_topics(BROKEN_STATE))
    assert ingest_source(source, out).to_pylist()[0]["quarantined"] == 1
    path.write_text("")
    assert ingest_source(source, out).to_pylist()[0]["status"] == "rejected"
    assert [table.name for table in FLEET if part(out, table, "c").exists()] == ["quarantine"]


def test_interrupted_ingest_is_repeated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, out = tmp_path / "c.jsonl", tmp_path / "out"
    path.write_text(two_topics())
    source = SnapshotSource(str(path), "c")
    ingest_source(source, out)
    whole = files_of(out)
    renames: list[str] = []

    def rename(self: Path, target: Path) -> Path:
        renames.append(target.name)
        if len(renames) == 2:
            raise OSError("the disk is full")
        os.rename(self, target)
        return target

    monkeypatch.setattr(Path, "rename", rename)
    with pytest.raises(OSError, match="full"):
        ingest_source(source, out, force=True)
    monkeypatch.undo()
    assert finished(out) == []
    assert ingest_source(source, out).to_pylist()[0]["status"] == "ingested"
    assert files_of(out) == whole


def test_lost_output_is_rewritten(tmp_path: Path) -> None:
    path, out = tmp_path / "c.jsonl", tmp_path / "out"
    path.write_text(two_topics())
    ingest_source(SnapshotSource(str(path), "c"), out)
    (part(out, PARTITIONS, "c") / "part-0.parquet").unlink()
    assert record_of(out, "c") is None
    assert ingest_source(SnapshotSource(str(path), "c"), out).to_pylist()[0]["status"] == "ingested"


def test_directory_with_other_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "_staged-1").mkdir()  # of an ingest that was killed
    check_fleet_root(tmp_path)
    (tmp_path / "mine.txt").write_text("x")
    with pytest.raises(InputError, match=r"'mine\.txt' in it"):
        check_fleet_root(tmp_path)
    with pytest.raises(InputError, match="no directory _done"):
        finished(tmp_path)


def test_names_that_Spark_escapes_are_read_back(spark: Any, tmp_path: Path) -> None:  # noqa: N802
    path, name = tmp_path / "c.jsonl", "05=a:b%41 é"
    path.write_text(two_topics())
    ingest_source(SnapshotSource(str(path), name), tmp_path / "out")
    frame = fleet.read_fleet(spark, str(tmp_path / "out"), PARTITIONS)
    assert frame.schema.names == PARTITIONS.schema.names
    assert {row.cluster for row in frame.select("cluster").collect()} == {name}
    assert frame.count() == len(read_snapshot(path))


@pytest.mark.parametrize("controllers, brokers, marked", [((), 4, ()), ((1, 999), 3, (999,))])
def test_stated_instances_are_no_brokers(
    controllers: tuple[int, ...], brokers: int, marked: tuple[int, ...], tmp_path: Path
) -> None:
    """A broker that is in sync is none, whatever is stated for the other clusters of a fleet."""
    document = kcat(controllerid=999)
    document["brokers"].append({"id": 999, "name": "kframe:9099"})
    path, root = tmp_path / "c.kcat.json", tmp_path / "fleet"
    path.write_text(json.dumps(document))
    source = SnapshotSource(str(path), "c")
    ingest_source(source, root)
    (row,) = ingest_source(source, root, controllers=controllers).to_pylist()
    assert (row["status"], row["brokers"]) == ("ingested" if controllers else "unchanged", brokers)
    assert ingest_source(source, root, controllers=controllers).to_pylist()[0]["status"] == "unchanged"
    partitions, ingested_brokers, topics, clusters = (
        read_part(root, table, "c") for table in (PARTITIONS, BROKERS, TOPICS, CLUSTERS)
    )
    snapshot = snapshot_of(partitions, ingested_brokers, topics, clusters)
    assert (snapshot.controllers, len(snapshot.brokers)) == (marked, brokers)
