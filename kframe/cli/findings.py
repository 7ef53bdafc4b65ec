"""``--fail-on``: the exit code of a command depends on the problems that it finds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Final

import click

from kframe.cli.exits import HAS_FINDINGS
from kframe.cli.layout import broken
from kframe.cli.output import BadInput
from kframe.model.texts import counted

if TYPE_CHECKING:
    from kframe.whatif import FailOn
    from kframe.whatif.results.release import ReleaseRecord

#: The values of ``kframe.whatif.FailOn``, repeated here so that ``--help`` does not import NumPy.
FAIL_ON: Final = ("offline", "under-min-isr", "data-loss", "possible-data-loss")

fail_on_option: Final = click.option(
    "--fail-on", multiple=True, type=click.Choice(FAIL_ON), help="Exit with 3 if this is found; may be repeated."
)


def findings(fail_on: Iterable[str], count: Callable[[FailOn], int | None]) -> dict[str, int]:
    """The count of each requested condition with a count above 0. Raises BadInput if ``count`` returns None, which
    means unknown."""
    if not fail_on:
        return {}
    from kframe.whatif import FailOn

    counts = {condition: count(FailOn(condition)) for condition in dict.fromkeys(fail_on)}
    for condition, number in counts.items():
        if number is None:
            problem = "found a snapshot without topic settings, expected topic settings with min.insync.replicas"
            raise BadInput(f"--fail-on {condition}: {problem}")
    return {condition: number for condition, number in counts.items() if number}


def emit_mode(rules: str, output: str) -> None:
    """The mode of the cluster as a line before tables; see ``emit_preface``."""
    emit_preface(f"mode: {rules}", output)


def emit_release(release: ReleaseRecord | None, output: str) -> None:
    """A line before tables about an assumed release, and whether it matters; see ``emit_preface``."""
    if release is not None and release.text is not None:
        emit_preface(release.text, output)


def emit_preface(text: str, output: str) -> None:
    """A line before tables, on stderr with CSV. JSON and YAML have it in the document."""
    if output not in ("json", "yaml"):
        for line in broken(text) if output == "table" else [text]:
            click.echo(line, err=output not in ("table", "wide"))


def exit_on_findings(result: Mapping[str, int], unit: str) -> None:
    """Print the ``findings``, counted in ``unit`` (singular), and exit with HAS_FINDINGS if there are any."""
    for condition, count in result.items():
        click.echo(f"--fail-on {condition}: {counted(count, unit)}", err=True)
    if result:
        click.get_current_context().exit(HAS_FINDINGS)
