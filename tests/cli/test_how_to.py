"""Commands and options in the how-to guides exist, and their variables set known keys."""

from __future__ import annotations

import re
import shlex

import click
import pytest

from kframe.api.settings import Settings
from kframe.cli.app import cli
from tests.architecture.source import ROOT

#: ``campaigns.md`` is for developers; its variables configure tests.
PAGES = sorted(path for path in (ROOT / "docs" / "howto").glob("*.md") if path.name != "campaigns.md")
TEXT = "\n".join(page.read_text() for page in PAGES)
BLOCKS = re.findall(r"^```text\n(.+?)^```", TEXT, re.MULTILINE | re.DOTALL)
COMMANDS = [line.removeprefix("kframe ") for block in BLOCKS for line in block.splitlines() if line[:7] == "kframe "]
VARIABLES = sorted(set(re.findall(r"KFRAME_[A-Z_]+", TEXT)))


@pytest.mark.parametrize("line", COMMANDS)
def test_command(line: str) -> None:
    words = shlex.split(line.partition(" > ")[0])
    command: click.Command | None = cli
    while isinstance(command, click.Group):
        command = command.get_command(click.Context(command), words.pop(0))
    assert command is not None
    command.make_context(line, words, resilient_parsing=True)


@pytest.mark.parametrize("name", VARIABLES)
def test_variable(name: str) -> None:
    assert list(Settings.gather({}, {name: "1"}).values.values()) == ["1"]


def test_something_is_shown() -> None:
    assert COMMANDS
    assert VARIABLES
