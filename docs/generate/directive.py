"""The directive ``generated``, which inserts a reference from the code into a page."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from docs.generate.command_line import command_line, exit_codes
from docs.generate.configuration import configuration_keys, environment_variables, plugin_keys, selector_options
from docs.generate.metrics import metrics
from docs.generate.plugins import plugin_hooks
from docs.generate.python_api import python_names
from docs.generate.schemas import documents, scenario_format

#: Name of a reference to the function that returns its Markdown.
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
    "selector-options": selector_options,
}


class Generated(SphinxDirective):
    """Insert the reference that the argument names."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Return the nodes of the reference."""
        name = self.arguments[0]
        if name not in REFERENCES:
            raise self.error(f"unknown reference {name}: expected one of {', '.join(sorted(REFERENCES))}")
        return self.parse_text_to_nodes(REFERENCES[name](), allow_section_headings=True)
