"""The generated parts of reference pages: ``make reference`` writes them into the pages.

A part is between ``<!-- generated: NAME -->`` and ``<!-- end of NAME -->``. The pages are in the source tree, so that a
clone has them; a test compares them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from docs.generate.command_line import command_line, exit_codes
from docs.generate.configuration import configuration_keys, environment_variables, plugin_keys, selector_options
from docs.generate.metrics import metrics
from docs.generate.plugins import plugin_hooks
from docs.generate.python_api import python_names
from docs.generate.rules import features_by_release, rules_by_level, rules_by_release
from docs.generate.schemas import documents, scenario_format

FOLDER: Final = Path(__file__).resolve().parents[1] / "reference"
#: Name of a part to the function that returns its Markdown.
REFERENCES: Final[Mapping[str, Callable[[], str]]] = {
    "command-line": command_line,
    "configuration-keys": configuration_keys,
    "documents": documents,
    "environment-variables": environment_variables,
    "exit-codes": exit_codes,
    "metrics": metrics,
    "plugin-hooks": plugin_hooks,
    "plugin-keys": plugin_keys,
    "python-names": python_names,
    "scenario-format": scenario_format,
    "rules-by-release": rules_by_release,
    "features-by-release": features_by_release,
    "rules-by-level": rules_by_level,
    "selector-options": selector_options,
}
_PART: Final = re.compile(r"^<!-- generated: (?P<name>[\w-]+) -->\n.*?^<!-- end of (?P=name) -->$", re.M | re.S)


def reference_pages() -> dict[Path, str]:
    """Return the text of each page that has generated parts, by path. Raises KeyError for an unknown part."""
    pages = {path: path.read_text() for path in sorted(FOLDER.glob("*.md"))}
    return {path: _PART.sub(_part, text) for path, text in pages.items() if _PART.search(text)}


def parts(text: str) -> list[str]:
    """Return the names of the generated parts of a page."""
    return [match["name"] for match in _PART.finditer(text)]


def write_reference_pages() -> None:
    """Write the generated parts of all pages."""
    for path, text in reference_pages().items():
        path.write_text(text)


def _part(match: re.Match[str]) -> str:
    name = match["name"]
    return f"<!-- generated: {name} -->\n\n{REFERENCES[name]().strip()}\n\n<!-- end of {name} -->"


if __name__ == "__main__":
    write_reference_pages()
