"""Run the campaign, and write its record and page: ``python -m verification.kraft.kills --kills 200 --record FILE``."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import click
from msgspec import to_builtins

from kframe.plugin.commands import progress
from verification.kraft.kills.campaign import Campaign, KillReport
from verification.support.evidence import facts_lines, run_facts

_TEXT: Final = """# Kills of a KRaft controller

`kframe controller run` leads a quorum of one. Three clients create topics, set `retention.ms` and delete topics, each
as fast as it gets responses. The process ends with SIGKILL: at a random time, or before or after a random operation on
the disk (`pwrite`, `fdatasync`, `fsync`, `ftruncate`, `replace`, `unlink`), also while it starts. Then the directory is
checked, and the controller starts on it again.

- Each acknowledged topic exists with its id and its acknowledged setting; each acknowledged deletion holds; no other
  topic exists. A request without a response may have either outcome.
- Each segment begins with all complete batches that it had before.
- Each start that served has a higher epoch than the one before.

Writes that are torn, and syncs that the disk ignores, are tested below the process
(`plugins/kraft/tests/test_durable_log_crashes.py`).
"""


@click.command()
@click.option("--kills", type=click.IntRange(1), default=200, show_default=True)
@click.option("--seed", type=int, default=1, show_default=True)
@click.option("--record", type=click.Path(dir_okay=False, path_type=Path), help="JSON; the page is beside it.")
def main(kills: int, seed: int, record: Path | None) -> None:
    """Kill a controller, and print what was seen. Exit code 1 after a violation."""
    facts = run_facts(f"python -m verification.kraft.kills --kills {kills} --seed {seed}")
    started = time.monotonic()
    with (
        tempfile.TemporaryDirectory() as folder,
        closing(Campaign(Path(folder), seed)) as campaign,
        progress("killing") as tick,
    ):
        for number in range(kills):
            tick(number, kills)
            campaign.kill()
    result = {**facts, "seconds": round(time.monotonic() - started), "result": to_builtins(campaign.report)}
    if record is not None:
        record.write_text(json.dumps(result, indent=1) + "\n")
        record.with_suffix(".md").write_text(page(result))
    click.echo(page(result))
    click.get_current_context().exit(1 if campaign.report.violations else 0)


def page(record: Mapping[str, Any]) -> str:
    """The page of a record, in Markdown."""
    result = record["result"]
    report = KillReport(**result)
    lines = [
        _TEXT,
        "## Result",
        "",
        f"- Violations: {len(report.violations)}.",
        f"- Acknowledged requests: {report.acknowledged:,}. Without a response: {report.open:,}.",
        f"- Snapshots: {report.snapshots:,}. Removed segments: {report.removed_segments:,}.",
        f"- Duration: {record['seconds'] / 60:.0f} minutes.",
        *facts_lines(record),
        "",
        "| killed | times |",
        "|---|---|",
        *(f"| {name} | {count} |" for name, count in sorted(report.kills.items())),
        *(["", *(f"- {text}" for text in report.violations)] if report.violations else []),
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
