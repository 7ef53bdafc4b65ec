"""One grammar of all commands: the snapshot first, ``--type`` for elections, verbs in groups, imperative help."""

from __future__ import annotations

from typing import Final

import click
import pytest

from kframe.cli.app import cli
from tests.cli.test_exits import leaves

COMMANDS: Final = [pytest.param(path, command, id=" ".join(path)) for path, command in leaves(cli)]
#: Commands whose argument is a plan alone: their cluster is live.
LIVE_PLANS: Final = {("plan", "apply"), ("plan", "cancel"), ("plan", "execute")}
#: The first words of help texts.
VERBS: Final = frozenset({
    "Add", "Apply", "Be", "Cancel", "Change", "Check", "Compare", "Continue", "Count", "Create", "Delete", "Elect",
    "Execute", "Explain", "Fail", "Fence", "Leave", "List", "Make", "Move", "Order", "Plan", "Play", "Print", "Put",
    "Read", "Reassign", "Report", "Say", "Show", "Shut", "Start", "Sum", "Summarize", "Take", "Time", "Unfence",
    "Write",
})  # fmt: skip


@pytest.mark.parametrize(("path", "command"), COMMANDS)
def test_snapshot_is_the_first_argument(path: tuple[str, ...], command: click.Command) -> None:
    names = [parameter.metavar or "" for parameter in command.params if isinstance(parameter, click.Argument)]
    assert all("SNAPSHOT" not in name for name in names[1:])
    assert "PLAN" not in names[:1] or path in LIVE_PLANS
    assert not any("--snapshot" in option.opts for option in command.params)


@pytest.mark.parametrize(("path", "command"), COMMANDS)
def test_elections_are_chosen_by_type(path: tuple[str, ...], command: click.Command) -> None:
    del path
    choices = [p for p in command.params if isinstance(p.type, click.Choice) and "preferred" in p.type.choices]
    assert all(choice.opts == ["--type"] for choice in choices)


@pytest.mark.parametrize(("path", "command"), COMMANDS)
def test_help_begins_with_a_verb(path: tuple[str, ...], command: click.Command) -> None:
    del path
    assert (command.help or "").split()[0] in VERBS
