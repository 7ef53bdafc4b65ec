"""What kernels read of a file equals what the readers of single lines read of it, errors included."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from kframe.errors import SnapshotError
from kframe.snapshot import files, read_snapshot
from kframe.snapshot.describe_lines import DescribeLines
from kframe.snapshot.faults import REFUSE, FaultNotes
from tests.snapshot.corrupted import corrupted, listings
from tests.snapshot.samples import DESCRIBE

#: Blocks that end within lines, and blocks that hold everything.
BLOCKS: Final = st.sampled_from([1, 64, 1 << 18])
CHECKED: Final = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


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


def test_kernel_reads_the_lines_of_all_releases() -> None:
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
