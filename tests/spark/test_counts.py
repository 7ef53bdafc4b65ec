"""Accepted and quarantined rows of a source add up to its content, in every format."""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from pyarrow import parquet

from kframe.snapshot import generate
from kframe.snapshot.faults import FaultNotes
from kframe.spark.fleet import part
from kframe.spark.ingest import ingest_source
from kframe.spark.reading import read_tolerantly
from kframe.spark.schema import QUARANTINE
from kframe.spark.sources import SnapshotSource, find_sources
from tests.snapshot.samples import assignment, dump, dump_text, state
from tests.spark.fleets import resign, snapshot_directory

#: Partitions of each topic.
Topics = list[int]


def describe_lines(topics: Topics) -> list[str]:
    lines = []
    for number, count in enumerate(topics):
        lines.append(f"Topic: t{number}\tPartitionCount: {count}\tReplicationFactor: 2\tConfigs: ")
        for partition in range(count):
            lines.append(f"\tTopic: t{number}\tPartition: {partition}\tLeader: 1\tReplicas: 1,2\tIsr: 1,2")
    return lines


def describe(data: st.DataObject, topics: Topics, directory: Path) -> tuple[Path, int]:
    """Lines lack a label, have an invalid value, are missing, or are repeated."""
    lines = describe_lines(topics)
    for index in data.draw(st.lists(st.integers(0, len(lines) - 1), max_size=4, unique=True)):
        old, new = data.draw(
            st.sampled_from(
                [
                    ("Topic:", "Tpoic:"),
                    ("Topic: t", "Topic: other"),
                    ("Topic: t", "Topic: no/name"),
                    ("Leader: 1", "Leader: x"),
                    ("Leader: 1", "Leader: 9"),
                    ("Isr: 1,2", "Isr: 1,,2"),
                    ("Replicas:", "Replica:"),
                    ("PartitionCount:", "Count:"),
                    ("Partition: ", "Partition: -"),
                    ("Replicas: 1,2", "Replicas: 1,1"),
                    ("Partition: 1", "Partition: 0"),
                    ("Leader", "\udcff"),
                ]
            )
        )
        lines[index] = lines[index].replace(old, new)
    repeated_line = data.draw(st.none() | st.integers(0, len(lines) - 1))
    if repeated_line is not None:
        lines.append(lines[repeated_line])
    dropped = data.draw(st.none() | st.integers(0, len(lines) - 1))
    if dropped is not None:
        del lines[dropped]
    path = directory / "c.txt"
    path.write_bytes("".join(f"{line}\n" for line in lines).encode(errors="surrogateescape"))
    return path, sum(bool(re.search(r"(?:^|\s)Partition:", line)) for line in lines)


def kcat(data: st.DataObject, topics: Topics, directory: Path) -> tuple[Path, int]:
    """Topics lack a field, have a field of another type, or are repeated."""
    rows = [
        {
            "topic": f"t{number}",
            "partitions": [
                {"partition": partition, "leader": 1, "replicas": [{"id": 1}, {"id": 2}], "isrs": [{"id": 1}]}
                for partition in range(count)
            ],
        }
        for number, count in enumerate(topics)
    ]
    for topic in data.draw(st.lists(st.sampled_from(rows), max_size=3)) if rows else []:
        for spoil in data.draw(
            st.lists(
                st.sampled_from(
                    [
                        lambda topic: topic.update(topic="no/name"),
                        lambda topic: topic.update(topic=5),
                        lambda topic: topic.update(topic="t0"),
                        lambda topic: topic["partitions"][0].update(leader="x"),
                        lambda topic: topic["partitions"][-1].update(partition=7),
                        lambda topic: topic["partitions"][0].pop("isrs", None),
                        lambda topic: topic["partitions"][0].update(leader=3),
                    ]
                ),
                min_size=1,
                max_size=2,
            )
        ):
            spoil(topic)
    path = directory / "c.json"
    path.write_text(json.dumps({"brokers": [{"id": 1, "name": "h:1"}, {"id": 2, "name": "h:2"}], "topics": rows}))
    return path, sum(len(topic["partitions"]) for topic in rows)


def zookeeper(data: st.DataObject, topics: Topics, directory: Path) -> tuple[Path, int]:
    """Assignments and states are invalid JSON, or the leader of a state is not a replica."""
    assignments = [
        assignment(f"x{number}", {partition: [1, 2] for partition in range(count)})
        for number, count in enumerate(topics)
    ]
    states = [
        state(f"x{number}", partition, 1, [1, 2]) for number, count in enumerate(topics) for partition in range(count)
    ]
    for znode in data.draw(st.lists(st.sampled_from(assignments + states), max_size=4)):
        znode["data"] = data.draw(st.sampled_from(["{", "[]", znode["data"].replace("1", "77")]))
    if data.draw(st.booleans()):
        states.append(dict(data.draw(st.sampled_from(states))))
    path = directory / "c.jsonl"
    base = dump()
    path.write_text(dump_text(base) + dump_text(assignments) + dump_text(states))
    return path, sum(topics) + 2


def reassignment(data: st.DataObject, topics: Topics, directory: Path) -> tuple[Path, int]:
    """Entries lack a field, have a field of another type, or are repeated."""
    entries: list[dict[str, Any]] = [
        {"topic": f"t{number}", "partition": partition, "replicas": [1, 2]}
        for number, count in enumerate(topics)
        for partition in range(count)
    ]
    for entry in data.draw(st.lists(st.sampled_from(entries), max_size=4)):
        field, value = data.draw(
            st.sampled_from(
                [
                    ("topic", 5),
                    ("topic", "no/name"),
                    ("partition", -1),
                    ("partition", 0),
                    ("replicas", []),
                    ("replicas", [1, 1]),
                    ("replicas", "1,2"),
                    ("replicas", [-4]),
                ]
            )
        )
        entry[field] = value
    if data.draw(st.booleans()):
        entries.append(dict(data.draw(st.sampled_from(entries))))
    path = directory / "c.reassignment.json"
    path.write_text(json.dumps({"version": 1, "partitions": entries}))
    return path, len(entries)


def directory_of(data: st.DataObject, topics: Topics, directory: Path) -> tuple[Path, int]:
    """Rows of partitions have an invalid leader, epoch or ISR."""
    path = snapshot_directory(directory / "c", generate(sum(topics) * 3, 4, topics=len(topics)))
    file = path / "partitions.parquet"
    rows = parquet.read_table(file)
    values = {name: rows[name].to_pylist() for name in ("leader", "leader_epoch", "isr")}
    for index in data.draw(st.lists(st.integers(0, rows.num_rows - 1), max_size=3)):
        name, value = data.draw(st.sampled_from([("leader", 99), ("leader_epoch", -5), ("isr", [1, 1])]))
        values[name][index] = value
    for name, column in values.items():
        index = rows.schema.get_field_index(name)
        rows = rows.set_column(index, rows.schema.field(index), pa.array(column, rows.schema.field(index).type))
    parquet.write_table(rows, file, store_schema=False)
    resign(path)
    return path, rows.num_rows


@pytest.mark.parametrize(
    "make", [describe, kcat, zookeeper, reassignment, directory_of], ids=lambda make: make.__name__
)
@given(data=st.data())
def test_accepted_and_quarantined_partitions_equal_source(
    make: Callable[[st.DataObject, Topics, Path], tuple[Path, int]], data: st.DataObject
) -> None:
    topics = data.draw(st.lists(st.integers(1, 8), min_size=1, max_size=5))
    with tempfile.TemporaryDirectory() as directory:
        path, count_in_source = make(data, topics, Path(directory))
        snapshot, quarantine = read_tolerantly(SnapshotSource(str(path), "c"))
    if snapshot is None:
        event("refused")
        assert quarantine.num_rows == 1
        return
    event("some left out" if quarantine.num_rows else "whole")
    quarantined = sum(row["partitions"] or 0 for row in quarantine.to_pylist())
    assert (len(snapshot), quarantined) == (len(snapshot), count_in_source - len(snapshot))


def test_listing_without_topic_line_counts_all_partitions(tmp_path: Path) -> None:
    lines = describe_lines([42, 7])
    del lines[43]
    path = tmp_path / "c.txt"
    path.write_text("".join(f"{line}\n" for line in lines))
    snapshot, quarantine = read_tolerantly(SnapshotSource(str(path), "c"))
    assert snapshot is not None
    assert (len(snapshot), quarantine.to_pylist()[0]["partitions"]) == (42, 7)


# -- unreadable sources


def dangling(path: Path) -> str:
    path.symlink_to(path.parent / "nothing")
    return "a link to nothing"


def pipe(path: Path) -> str:
    os.mkfifo(path)
    return "a named pipe"


def empty(path: Path) -> str:
    path.touch()
    return "an empty file"


def loop(path: Path) -> str:
    path.symlink_to(path.parent)
    return "no such file"


def no_manifest(path: Path) -> str:
    snapshot_directory(path, generate(10, 3))
    (path / "manifest.json").unlink()
    return "no such file"


def unreadable(path: Path) -> str:
    path.write_text("Topic: t")
    path.chmod(0)
    return "Permission denied"


def unlistable(path: Path) -> str:
    path.mkdir(0)
    return "Permission denied"


@pytest.mark.parametrize(
    "make",
    [dangling, pipe, empty, loop, no_manifest, unreadable, unlistable],
    ids=lambda make: make.__name__,
)
def test_unreadable_source_is_refused_cluster(make: Callable[[Path], str], tmp_path: Path) -> None:
    if make in (unreadable, unlistable) and os.geteuid() == 0:
        pytest.skip("root may read everything")
    directory, out = tmp_path / "exports", tmp_path / "out"
    directory.mkdir()
    snapshot_directory(directory / "good", generate(20, 3))
    message = make(directory / "bad")
    try:
        sources = find_sources([str(directory)])
        assert [source.cluster for source in sources] == ["bad", "good"]
        rows = [ingest_source(source, out).to_pylist()[0] for source in sources]
    finally:
        if not (directory / "bad").is_symlink():
            (directory / "bad").chmod(0o700)
    assert [row["status"] for row in rows] == ["rejected", "ingested"]
    assert message in rows[0]["reason"]
    assert str(directory / "bad") in rows[0]["reason"]
    (quarantined,) = parquet.ParquetFile(part(out, QUARANTINE, "bad") / "part-0.parquet").read().to_pylist()
    assert quarantined["source"] == str(directory / "bad")
    assert ingest_source(sources[0], out).to_pylist()[0]["status"] == (
        "rejected" if make not in (empty, loop, no_manifest) else "unchanged"
    )


def test_partitions_of_a_line_without_a_topic_are_counted_with_it() -> None:
    from kframe.errors import SnapshotError
    from kframe.spark.reading import quarantine_rows

    notes = FaultNotes()
    notes(SnapshotError("c.txt:3", "nothing", "something"), None, 1)
    assert quarantine_rows(SnapshotSource("c.txt", "c"), notes).to_pylist()[0]["partitions"] == 1
