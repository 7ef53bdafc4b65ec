"""``kframe log`` on a written log, and the causes that it finds."""

from __future__ import annotations

import json
from typing import Any

from click.testing import CliRunner
from kframe_kraft.commands.log import group
from kframe_kraft.disk import read_history
from kframe_kraft.time_travel.causes import leader_cause
from kframe_kraft.time_travel.timelines import RetainedTimelines

from kframe.plugin.live import LeaderCause
from verification.kraft.written_log import WrittenLog


def run(*arguments: object) -> Any:
    """The JSON of a command."""
    result = CliRunner().invoke(group, [*map(str, arguments), "-o", "json"])
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def rows(*arguments: object) -> list[dict[str, Any]]:
    """The rows of a command."""
    listed: list[dict[str, Any]] = run(*arguments)["rows"]
    return listed


def cause_of(log: WrittenLog, name: str = "orders-0", end: int | None = None) -> LeaderCause:
    """Why a partition has its leader at an offset, by default the end of the log."""
    timelines = RetainedTimelines(read_history(log.log, from_oldest=True))
    return leader_cause(timelines, name, log.offset if end is None else end)
