"""Files of a fleet, names of its clusters, and files that a query need not read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import datasource as spark

from kframe.errors import InputError
from kframe.snapshot import generate
from kframe.spark.pushdown import Condition, condition
from kframe.spark.reading import Piece, ReadRequest, pieces, read_piece
from kframe.spark.schema import PARTITIONS
from kframe.spark.sources import SnapshotSource, find_sources
from tests.spark.fleets import snapshot_directory


def names(tmp_path: Path, *patterns: str, name: str | None = None) -> list[str]:
    return [source.cluster for source in find_sources([str(tmp_path / pattern) for pattern in patterns], name)]


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Two days of two clusters, a snapshot directory, and files that are ignored."""
    for path in (
        "mon/east.zookeeper.jsonl.gz",
        "mon/west.kcat.json",
        "tue/east.jsonl",
        "snap/manifest.json",
        "snap/partitions.parquet",
        "mon/_SUCCESS",
        "mon/.hidden",
    ):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text("x")
    return tmp_path


@pytest.mark.parametrize(
    "patterns,name,expected",
    [
        (["mon"], None, ["east", "west"]),
        (["mon", "snap"], None, ["east", "west", "snap"]),
        (["*/east*"], "{parent}@{stem}", ["mon@east", "tue@east"]),
        (["mon/west.kcat.json"], "w", ["w"]),
        (["mon", "mon/west.kcat.json"], None, ["east", "west"]),
    ],
)
def test_clusters_are_named_by_their_files(
    files: Path, patterns: list[str], name: str | None, expected: list[str]
) -> None:
    assert names(files, *patterns, name=name) == expected


@pytest.mark.parametrize(
    "patterns,name,message",
    [
        (
            ["mon", "tue"],
            None,
            r"tue/east.jsonl: found cluster east again, which is also in .*mon/east.zookeeper.jsonl.gz",
        ),
        (["mon"], "one", "name: found 'one' for 2 sources"),
        (["mon"], "{day}", "name: found '{day}'"),
        (["nothing"], None, "nothing: found no snapshot there"),
        (["mon/west.kcat.json"], "a/b", "cluster name 'a/b'"),
        (["mon/west.kcat.json"], "_w", "cluster name '_w'"),
    ],
)
def test_source_without_cluster_name_is_refused(
    files: Path, patterns: list[str], name: str | None, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        names(files, *patterns, name=name)


FILTERS: list[tuple[Any, Condition | None]] = [
    (spark.EqualTo(("topic",), "a"), Condition("topic", "EqualTo", "a")),
    (spark.Not(spark.In(("leader",), (1, 2))), Condition("leader", "In", (1, 2), negated=True)),
    (spark.IsNotNull(("isr",)), Condition("isr", "IsNotNull")),
    (spark.StringStartsWith(("cluster",), "a"), Condition("cluster", "StringStartsWith", "a")),
    (spark.EqualTo(("leader",), "a"), None),
    (spark.EqualTo(("isr",), [1]), None),
    (spark.EqualNullSafe(("leader",), 1), None),
    (spark.EqualTo(("a", "b"), 1), None),
    (spark.In(("leader",), (1, None)), None),
]


@pytest.mark.parametrize("spark_filter,expected", FILTERS, ids=[repr(spark_filter) for spark_filter, _ in FILTERS])
def test_supported_filters_are_pushed_down(spark_filter: Any, expected: Condition | None) -> None:
    assert condition(spark_filter, PARTITIONS.schema) == expected


CONDITIONS: list[tuple[str, list[Condition], int]] = [
    ("all", [], 10),
    ("a topic", [Condition("topic", "EqualTo", "t-0000003")], 1),
    ("two topics", [Condition("topic", "In", ("t-0000000", "t-0000009"))], 2),
    ("from a topic on", [Condition("topic", "GreaterThanOrEqual", "t-0000008")], 2),
    ("beyond a topic", [Condition("topic", "GreaterThan", "t-0000009")], 0),
    ("up to a topic", [Condition("topic", "LessThan", "t-0000001")], 1),
    ("a prefix", [Condition("topic", "StringStartsWith", "t-000000")], 10),
    ("another prefix", [Condition("topic", "StringStartsWith", "u")], 0),
    ("no such partition", [Condition("partition", "GreaterThan", 99)], 0),
    ("not a topic", [Condition("topic", "EqualTo", "t-0000003", negated=True)], 10),
    ("another cluster", [Condition("cluster", "EqualTo", "else")], 0),
    ("its cluster", [Condition("cluster", "StringStartsWith", "bi")], 10),
]


@pytest.mark.parametrize("conditions,groups", [case[1:] for case in CONDITIONS], ids=[case[0] for case in CONDITIONS])
def test_row_groups_that_cannot_match_are_not_read(tmp_path: Path, conditions: list[Condition], groups: int) -> None:
    snapshot = generate(1_000, 5, 3, topics=10)
    renamed = [f"t-{number:07}" for number in range(10)]
    object.__setattr__(snapshot.topics, "names", tuple(renamed))
    source = SnapshotSource(str(snapshot_directory(tmp_path / "big", snapshot, 100)), "big")
    pieces_ = pieces([source], ReadRequest(PARTITIONS, tuple(conditions)), 3)
    assert sum(len(piece.groups or ()) for piece in pieces_) == groups
    assert all(len(piece.groups or ()) <= 3 for piece in pieces_)
    request = ReadRequest(PARTITIONS, tuple(conditions))
    expected = [row for batch in read_piece(Piece(source), request) for row in batch.to_pylist()]
    assert [row for piece in pieces_ for batch in read_piece(piece, request) for row in batch.to_pylist()] == expected


def test_tolerant_reader_does_not_split_directory(tmp_path: Path) -> None:
    source = SnapshotSource(str(snapshot_directory(tmp_path / "big", generate(1_000, 5, 3), 100)), "big")
    assert pieces([source], ReadRequest(PARTITIONS, (), tolerant=True)) == [Piece(source)]
