"""Every code block of the pages runs, or is read as what it is; ``not_run.py`` lists the exceptions with reasons."""

from __future__ import annotations

import configparser
import json
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from kframe.scenario.format import parse_scenario
from kframe.scenario.strict_yaml import load
from kframe.settings.settings import KNOWN, SELECTOR_PREFIX
from tests.architecture.source import ROOT
from tests.docs.blocks import Block, blocks, pages, steps
from tests.docs.command_lines import command_lines, usage_error
from tests.docs.not_run import FILES, reason
from tests.docs.run_page import SHELL, prepare_folder, run_page

PAGES: Final = {str(page.relative_to(ROOT)): blocks(page) for page in pages()}
RUNNABLE: Final = [name for name in PAGES if any(block.language in {*SHELL, "python"} for block in PAGES[name])]
BLOCKS: Final = [block for name in PAGES for block in PAGES[name]]


def read_json(block: Block) -> object:
    """Read a document, or one document a line."""
    lines = block.text.splitlines()
    try:
        return json.loads(block.text)
    except json.JSONDecodeError:
        return [json.loads(line) for line in lines]


def read_yaml(block: Block) -> object:
    """Read a scenario completely, any other YAML by the rules for scenario files."""
    document = load(block.text, block.location)
    scenario = isinstance(document, dict) and str(document.get("schema", "")).startswith("kframe.scenario/")
    return parse_scenario(block.text, block.location) if scenario else document


def read_keys(block: Block) -> object:
    """Read a ``server.properties`` file; its keys must be known."""
    keys = [line.partition("=")[0] for line in block.text.splitlines() if line.strip() and not line.startswith("#")]
    assert {key for key in keys if not key.startswith(SELECTOR_PREFIX)} <= KNOWN, block.location
    return keys


def read_text(block: Block) -> object:
    """Check that a text is no command."""
    commands = [line for line in block.text.splitlines() if line.startswith(("kframe ", "make ", "$ "))]
    assert commands == [], f"{block.location}: use the language sh or console"
    return block.text


#: How to read the blocks that do not run, by language.
READERS: Final[dict[str, Callable[[Block], object]]] = {
    "diff": lambda block: None,
    "ini": lambda block: configparser.ConfigParser().read_string(block.text),
    "json": read_json,
    "properties": read_keys,
    "text": read_text,
    "toml": lambda block: tomllib.loads(block.text),
    "yaml": read_yaml,
}


#: Pages whose blocks ``make test`` runs, those that a new user reads first. ``make test-all`` runs all pages.
FIRST_PAGES: Final = ("README.md", "docs/tutorial/first-what-if.md")


@pytest.mark.parametrize(
    "page", [pytest.param(page, marks=() if page in FIRST_PAGES else pytest.mark.extended) for page in RUNNABLE]
)
def test_page_runs(page: str, tmp_path: Path) -> None:
    prepare_folder(tmp_path, {name: ROOT / source for name, source in FILES.get(page, {}).items()})
    run_page(ROOT / page, tmp_path, excluded=lambda start: reason(page, start) is not None)


@pytest.mark.parametrize(
    "block", [block for block in BLOCKS if block.language not in {*SHELL, "python"}], ids=lambda block: block.location
)
def test_block_is_read(block: Block) -> None:
    assert block.language in READERS, "name its language"
    READERS[block.language](block)


@pytest.mark.parametrize(
    "block", [block for block in BLOCKS if block.language in SHELL], ids=lambda block: block.location
)
def test_command_lines_are_valid(block: Block) -> None:
    lines = [words for step in steps(block) for words in command_lines(step.command)]
    assert [error for error in map(usage_error, lines) if error] == []
