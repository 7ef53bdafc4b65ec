"""What kernels read of a file equals what the readers of single lines read of it, errors included."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from kframe.errors import SnapshotError
from kframe.plans.file import read as plan_module
from kframe.plans.file.read import load_plan
from kframe.snapshot import files, read_snapshot
from kframe.snapshot import kcat as kcat_module
from kframe.snapshot import reassignment as reassignment_module
from kframe.snapshot.assemble import Assembly
from kframe.snapshot.assignments import read_assignments
from kframe.snapshot.decode import topic_id_text
from kframe.snapshot.describe_lines import DescribeLines
from kframe.snapshot.faults import REFUSE, FaultNotes
from kframe.snapshot.kcat_topics import read_topics
from kframe.snapshot.znode_lines import LineKind, ZnodeLines
from tests.snapshot.corrupted import corrupted, dumps, listings, reassignments, responses
from tests.snapshot.samples import (
    DESCRIBE,
    TOPIC_ID,
    assignment,
    dump,
    dump_text,
    kcat,
    reassignment,
    state,
    topic_id_of,
    znode,
)

pytestmark = pytest.mark.kernel

#: Blocks that end within lines, and blocks that hold everything.
BLOCKS: Final = st.sampled_from([1, 64, 1 << 18])
#: States in a form that the kernel reads, and in a form that it leaves to other readers.
STATES_TWICE: Final = [
    *dump(),
    state("t", 0, 1, [1]),
    state("t", 0, 1, [1], other=1),
    state("t", 1, 1, [1], other=1),
    state("t", 1, 1, [1]),
]
STATES_WITHOUT_TOPIC: Final = [
    *dump(),
    state("v", 0, 1, [1]),
    state("w", 0, 1, [1], other=1),
    state("v", 1, 1, [1], other=1),
]
CHECKED: Final = settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])


def outcome(path: Path, source_format: str, tolerant: bool) -> Any:
    """The digest and the provenance of a snapshot with the noted faults, or the error."""
    faults = FaultNotes() if tolerant else REFUSE
    result: Any
    try:
        snapshot = read_snapshot(path, source_format, faults=faults)
        result = (snapshot.digest(), snapshot.brokers, dict(snapshot.provenance))
    except SnapshotError as error:
        result = str(error)
    if not isinstance(faults, FaultNotes):
        return result
    return result, [(str(note.fault), note.topic, note.partitions) for note in faults.noted], faults.partitions


def compare(
    content: bytes, source_format: str, block: int, path: Path, single: Callable[[pytest.MonkeyPatch], None]
) -> None:
    """Assert that both ways to read a file have the same outcome. ``single`` turns the kernel off."""
    path.write_bytes(content)
    for tolerant in (False, True):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(files, "_BLOCK_BYTES", block)
            actual = outcome(path, source_format, tolerant)
            single(patch)
            assert actual == outcome(path, source_format, tolerant)


def read_no_listed_line(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(DescribeLines, "read", lambda self, block, start, topic: start)


@CHECKED
@given(content=corrupted(listings()), block=BLOCKS)
@example(content=DESCRIBE.encode(), block=1)
def test_listings(content: bytes, block: int, tmp_path: Path) -> None:
    compare(content, "describe", block, tmp_path / "c.txt", read_no_listed_line)


@CHECKED
@given(content=corrupted(dumps()), block=BLOCKS)
@example(content=dump_text(dump()).encode(), block=7)
@example(content=dump_text(STATES_TWICE).encode(), block=1 << 18)
@example(content=dump_text(STATES_WITHOUT_TOPIC).encode(), block=1 << 18)
def test_dumps(content: bytes, block: int, tmp_path: Path) -> None:
    def read_no_znode(patch: pytest.MonkeyPatch) -> None:
        patch.setattr(ZnodeLines, "read", lambda self, block, start: start)

    compare(content, "zookeeper", block, tmp_path / "c.jsonl", read_no_znode)


def test_kernel_reads_topics_and_partitions_of_a_dump() -> None:
    lines = ZnodeLines()
    block = dump_text(
        [
            assignment("t", {1: [2, 3], 0: [1]}),
            znode("/brokers/topics/t/partitions"),
            znode("/brokers/topics/t/partitions/0"),
            state("t", 0, -1, []),
            state("t", 1, 2, [2, 1], version=7, leader_recovery_state=1),
            state("u", 0, 1, [1]),
            znode("/config/topics/t", {"config": {}}),
            assignment("u", {0: [1]}, adding_replicas={"0": [1]}),
            assignment("v", {}),
        ]
    ).encode()
    assert lines.read(block, 0) == len(block)
    assert (lines.line_count, lines.rows) == (9, 3)
    assert [(LineKind(group.kind).name, group.line, group.name(block), group.rows) for group in lines.groups()] == [
        ("TOPIC", 0, "t", 2),
        ("STATES", 3, "t", 2),
        ("STATES", 5, "u", 1),
        ("OTHER", 6, "", 0),
        ("OTHER", 7, "", 0),
        ("TOPIC", 8, "v", 0),
    ]
    first, *_, last = lines.groups()
    assert first.text(block) == block[: block.index(b"\n") + 1]
    assert [topic_id_text(group.topic_id(block) or b"") for group in (first, last)] == [TOPIC_ID, topic_id_of("v")]
    assert [part.tolist() for part in lines.assignments()] == [[1, 0], [2, 1], [2, 3, 1]]
    assert lines.numbers[:, :3].T.tolist() == [[0, 0, -1, 5, 2, 0], [1, 7, 2, 5, 2, 1], [0, 0, 1, 5, 2, 0]]
    assert [part.tolist() for part in lines.isrs()] == [[0, 2, 1], [2, 1, 1]]


@CHECKED
@given(content=corrupted(reassignments()), block=BLOCKS)
@example(content=json.dumps(reassignment()).encode(), block=7)
def test_reassignments(content: bytes, block: int, tmp_path: Path) -> None:
    def read_no_entry(patch: pytest.MonkeyPatch) -> None:
        patch.setattr(reassignment_module, "read_assignments", lambda blocks: None)

    compare(content, "reassignment", block, tmp_path / "c.json", read_no_entry)


@CHECKED
@given(content=corrupted(responses()), block=BLOCKS)
@example(content=json.dumps(kcat()).encode(), block=7)
def test_responses(content: bytes, block: int, tmp_path: Path) -> None:
    def read_no_topic(patch: pytest.MonkeyPatch) -> None:
        patch.setattr(kcat_module, "read_topics", lambda blocks, assembly: None)

    compare(content, "kcat", block, tmp_path / "c.json", read_no_topic)


def plan_outcome(path: Path) -> Any:
    """The columns of a plan, or the error."""
    try:
        plan = load_plan(path)
    except SnapshotError as error:
        return str(error)
    targets = plan.targets
    columns = (
        targets.topic,
        targets.partition,
        targets.replicas.offsets,
        targets.replicas.values,
        plan.log_dirs_differ,
    )
    return targets.names, [(str(column.dtype), column.tolist()) for column in columns]


@CHECKED
@given(content=corrupted(reassignments()), block=BLOCKS)
@example(content=json.dumps(reassignment()).encode(), block=7)
def test_plans(content: bytes, block: int, tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_bytes(content)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "_BLOCK_BYTES", block)
        actual = plan_outcome(path)
        patch.setattr(plan_module, "read_assignments", lambda blocks: None)
        assert actual == plan_outcome(path)


@pytest.mark.parametrize(
    "document, count",
    [
        (reassignment(), 2),
        (
            {
                "partitions": [{"replicas": [2, 1], "partition": 7, "log_dirs": ["any", "any"], "topic": "t"}],
                "version": 1,
            },
            1,
        ),
    ],
)
@pytest.mark.parametrize("indent", [None, 1])
def test_kernel_reads_entries_of_tools(document: dict[str, Any], count: int, indent: int | None) -> None:
    assignments = read_assignments([json.dumps(document, indent=indent).encode()])
    assert assignments is not None
    assert len(assignments) == count


@pytest.mark.parametrize("indent", [None, 1])
def test_kernel_reads_topics_of_kcat(indent: int | None) -> None:
    document = kcat()
    document["topics"].insert(0, {"topic": "u", "error": "Broker: Topic authorization failed", "partitions": []})
    document["topics"][1]["partitions"][0]["error"] = "Broker: Leader not available"
    assembly = Assembly(str, ("leader",), ("isr",))
    topics = read_topics([json.dumps(document, indent=indent).encode()], assembly)
    assert topics is not None
    assert (topics.names, topics.failed.tolist()) == (["u", "t"], [True, False])
    assert len(assembly.finish().replicas) == 2


def test_kernel_reads_lines_of_all_releases() -> None:
    lines = DescribeLines()
    header = b"Topic: t\tPartitionCount: 9\tReplicationFactor: 2\tConfigs: \n"
    rows = [
        b"\tTopic: t\tPartition: 0\tLeader: 2\tReplicas: 2,1\tIsr: 2,1\n",
        b"\tTopic: t\tPartition: 1\tLeader: none\tReplicas: 2,1\tIsr: \tOffline: 2,1\r\n",
        b"\tTopic: t\tPartition: 2\tLeader: 2\tReplicas: 2,1\tIsr: 2\tAdding Replicas: 3\tRemoving Replicas: \n",
        b"\tTopic: t\tPartition: 3\tLeader: 2\tReplicas: 2,1\tIsr: 2,1\tElr: N/A\tLastKnownElr: N/A\n",
        b"\tTopic: t\tPartition: 4\tLeader: none\tReplicas: 2,1\tIsr: \tElr: 2,1\tLastKnownElr: \n",
        b"Topic:t  Partition:5  Leader:2  Replicas:2,1  Isr:2\n",
    ]
    block = header + b"".join(rows)
    assert lines.read(block, 0, "") == len(block)
    assert (lines.line_count, lines.row_count) == (len(rows) + 1, len(rows))
    assert lines.partition[: len(rows)].tolist() == list(range(len(rows)))
