"""Messages of commands on fleets, without their rows: recomputed clusters, problems, and findings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import click

from kframe.cli.findings import HAS_FINDINGS, exit_on_findings


def report_messages(changed: Iterable[str], problems: Iterable[str], result: Mapping[str, int], unit: str) -> None:
    """Report recomputed clusters, whose input changed, problems with their reasons, and the ``findings``. Exits with
    HAS_FINDINGS if there are problems or findings."""
    for cluster in changed:
        click.echo(f"cluster {cluster}: its input has changed since it was written; done again", err=True)
    lines = list(problems)
    for problem in lines:
        click.echo(problem, err=True)
    exit_on_findings(result, unit)
    if lines:
        click.get_current_context().exit(HAS_FINDINGS)


def rows_with(frame: Any, column: str) -> int | None:
    """Number of rows with a value above 0 in a column; None if a value is null."""
    ((unknown, positive),) = frame.selectExpr(f"count_if({column} is null)", f"count_if({column} > 0)").collect()
    return None if unknown else int(positive)
