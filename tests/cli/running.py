"""Run ``kframe`` in this process, and the example cluster that kframe ships."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

from click.testing import CliRunner, Result

from kframe import read_snapshot
from kframe.cli.app import cli
from tests.architecture.source import ROOT
from tests.schemas import problems

CLUSTER: Final = ROOT / "examples" / "clusters" / "kafka-3.9.1-six-brokers"
HEALTHY: Final = CLUSTER / "healthy.zookeeper.jsonl.gz"
PLAN: Final = CLUSTER / "reassignment.json"


def size_rows(size_of_row: Callable[[int], int]) -> list[dict[str, Any]]:
    """Sizes of all partitions of the healthy cluster, for files of ``--weights``."""
    snapshot = read_snapshot(HEALTHY)
    names = [snapshot.topics.name_of_row(row).rsplit("-", 1) for row in range(len(snapshot))]
    return [
        {"topic": topic, "partition": int(number), "bytes": size_of_row(row)}
        for row, (topic, number) in enumerate(names)
    ]


def size_lines(rows: list[dict[str, Any]]) -> str:
    """The same sizes as CSV."""
    return "\n".join(["topic,partition,bytes", *(",".join(map(str, row.values())) for row in rows)])


def kframe(*arguments: object) -> Result:
    """Run ``kframe ARGUMENTS``."""
    return CliRunner().invoke(cli, [*map(str, arguments)], prog_name="kframe")


def whatif(*arguments: object) -> Result:
    """Run ``kframe whatif ARGUMENTS``."""
    return kframe("whatif", *arguments)


def document(*arguments: object, code: int = 0) -> dict[str, Any]:
    """Return the JSON output of ``kframe whatif ARGUMENTS``, which is valid and ends with this exit code."""
    result = whatif(*arguments, "-o", "json")
    assert result.exit_code == code, result.output
    parsed: dict[str, Any] = json.loads(result.stdout)
    assert problems(parsed, parsed["schema"]) == []
    return parsed
