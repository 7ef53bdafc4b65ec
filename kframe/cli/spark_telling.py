"""What commands on fleets say beside their rows: what was done again, what could not be done, what was found."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import click

from kframe.cli.findings import FOUND, end_with


def tell(changed: Iterable[str], problems: Iterable[str], result: Mapping[str, int], unit: str) -> None:
    """Say which clusters were done again since their input has changed, what could not be done and why, and what
    ``findings`` found. Ends the command with FOUND if it is any of the latter two."""
    for cluster in changed:
        click.echo(f"cluster {cluster}: its input has changed since it was written; done again", err=True)
    lines = list(problems)
    for problem in lines:
        click.echo(problem, err=True)
    end_with(result, unit)
    if lines:
        click.get_current_context().exit(FOUND)


def rows_with(frame: Any, column: str) -> int | None:
    """How many rows have more than 0 in a column; None if one has null."""
    ((unknown, some),) = frame.selectExpr(f"count_if({column} is null)", f"count_if({column} > 0)").collect()
    return None if unknown else int(some)
