"""``--fail-on``: a command that looks for trouble ends with an exit code that says whether it found any."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Final

import click

from kframe.cli.output import BadInput

if TYPE_CHECKING:
    from kframe.whatif import FailOn

#: Exit code of a command that found what it was asked for.
FOUND: Final = 3
#: The values of ``kframe.whatif.FailOn``, written out so that ``--help`` does not wait for numpy.
FAIL_ON: Final = ("offline", "under-min-isr", "loss")

fail_on_option: Final = click.option(
    "--fail-on", multiple=True, type=click.Choice(FAIL_ON), help="Exit with 3 if this is found; may be repeated."
)


def findings(fail_on: Iterable[str], count: Callable[[FailOn], int | None]) -> dict[str, int]:
    """How many of what was asked for, where there are any. ``count`` says None for what cannot be told; then this
    raises BadInput."""
    if not fail_on:
        return {}
    from kframe.whatif import FailOn

    counts = {what: count(FailOn(what)) for what in dict.fromkeys(fail_on)}
    for what, number in counts.items():
        if number is None:
            problem = "found a snapshot without topic settings, expected one that has min.insync.replicas"
            raise BadInput(f"--fail-on {what}: {problem}")
    return {what: number for what, number in counts.items() if number}


def end_with(result: Mapping[str, int], unit: str) -> None:
    """Say what ``findings`` found, counted in ``unit`` (singular), and end the command with FOUND if it is any."""
    for what, count in result.items():
        click.echo(f"--fail-on {what}: {count:,} {unit}{'s' if count > 1 else ''}", err=True)
    if result:
        click.get_current_context().exit(FOUND)
