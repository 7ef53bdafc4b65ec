"""Run ``kframe`` in this process, and the example cluster that kframe ships."""

from __future__ import annotations

import json
from typing import Any, Final

from click.testing import CliRunner, Result

from kframe.cli.app import cli
from tests.architecture.source import ROOT

CLUSTER: Final = ROOT / "examples" / "clusters" / "kafka-3.9.1-six-brokers"
HEALTHY: Final = CLUSTER / "healthy.zookeeper.jsonl.gz"
PLAN: Final = CLUSTER / "reassignment.json"


def kframe(*arguments: object) -> Result:
    """Run ``kframe ARGUMENTS``."""
    return CliRunner().invoke(cli, [*map(str, arguments)], prog_name="kframe")


def whatif(*arguments: object) -> Result:
    """Run ``kframe whatif ARGUMENTS``."""
    return kframe("whatif", *arguments)


def document(*arguments: object, code: int = 0) -> dict[str, Any]:
    """Return the JSON output of ``kframe whatif ARGUMENTS``, which ends with this exit code."""
    result = whatif(*arguments, "-o", "json")
    assert result.exit_code == code, result.output
    parsed: dict[str, Any] = json.loads(result.stdout)
    return parsed
