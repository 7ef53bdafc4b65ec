"""The reference pages have every command, key, metric, hook and name of the code."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

import pytest

import kframe
import kframe.plugin
from docs.generate import metrics as metrics_reference
from docs.generate.command_line import command_line, exit_codes
from docs.generate.commands import command_tree
from docs.generate.configuration import configuration_keys, environment_variables, plugin_keys, selector_options
from docs.generate.markdown import code, escape, paragraphs, prose
from docs.generate.metrics import exported_metrics, metrics
from docs.generate.plugins import hook_example, hooks, plugin_hooks
from docs.generate.reference import FOLDER, REFERENCES, parts, reference_pages
from docs.generate.schemas import SCENARIO, documents, scenario_format, type_text
from kframe.cli.documents.registry import DOCUMENTS, json_schema
from kframe.cli.exits import EXIT_CODES
from kframe.model.config import KEYS
from kframe.plugin import KframeHooks
from kframe.registry.registry import build_registry
from kframe.settings.settings import JVM_KEYS, SERVER_KEYS, environment_name

PAGES: Final = reference_pages()
PYTHON: Final = PAGES[FOLDER / "python.md"]


def test_every_reference_is_on_a_page() -> None:
    assert sorted(name for path in PAGES for name in parts(path.read_text())) == sorted(REFERENCES)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_page_has_what_the_code_has(path: Path) -> None:
    assert path.read_text() == PAGES[path], "run make reference"


def test_every_command_has_a_section_with_its_options() -> None:
    text = command_line()
    commands = list(command_tree().walk())
    names = [command.name for command in commands]
    assert {"kframe whatif fail", "kframe controller run", "kframe sim run"} <= set(names)
    assert [name for name in names if f"# {name}\n" not in text] == []
    options = {option for command in commands for option, _ in command.options}
    assert [option for option in options if f"| {code(option)} |" not in text] == []


def test_every_exit_code_is_listed() -> None:
    assert [number for number, _ in EXIT_CODES if f"| `{number}` |" not in exit_codes()] == []


def test_every_key_is_listed_with_value_default_and_meaning() -> None:
    text = configuration_keys()
    assert [name for name in KEYS if f"| `{name}` |" not in text] == []
    assert "| `min.insync.replicas` | a whole number from 1 on | `1` |" in text
    assert [name for name in KEYS if f"`{environment_name(name)}`" not in environment_variables()] == []


def test_keys_of_plugins_come_from_their_sources() -> None:
    text = plugin_keys()
    assert "| `zookeeper.connect` |" in text
    assert "| `super.users` | kframe-kafka-wire |" in text
    assert [name for name in KEYS if f"| `{name}` |" in text] == []


def test_known_keys_of_plugins_are_read_by_a_plugin() -> None:
    """Files lose unknown keys, so a misspelt known key is a setting without effect."""
    text = plugin_keys()
    assert [key for key in (*JVM_KEYS, *SERVER_KEYS) if f"`{key}`" not in text] == []


def test_every_selector_and_option_is_listed() -> None:
    text = selector_options()
    selectors = build_registry().selectors
    assert [name for name in selectors if f"| `{name}` |" not in text] == []
    assert all(f"| `{option.name}` |" in text for spec in selectors.values() for option in spec.options)


def test_every_metric_has_a_meaning(monkeypatch: pytest.MonkeyPatch) -> None:
    families = {name.partition("{")[0].removesuffix("_count") for name in exported_metrics()}
    text = metrics()
    assert [family for family in families if f"| `{family}` |" not in text] == []
    assert "| `kframe_connections_dropped_total` | counter | `reason` |" in text
    monkeypatch.setattr(metrics_reference, "MEANINGS", {"kframe_no_such_metric": "None."})
    with pytest.raises(ValueError, match="kframe_no_such_metric"):
        metrics()


def test_every_document_has_a_section_with_its_fields() -> None:
    text = f"{documents()}\n\n## {SCENARIO}\n\n{scenario_format()}"
    sections = dict(part.split("\n\n", 1) for part in text.removeprefix("## ").split("\n## "))
    assert set(sections) == set(DOCUMENTS)
    for name, section in sections.items():
        schema = json_schema(DOCUMENTS[name])
        for kind, definition in {"": schema, **schema["$defs"]}.items():
            reference = re.search(rf"^{kind}: see (\S+)\.$", section, re.MULTILINE) if kind else None
            text = section if reference is None else sections[reference[1]]
            fields = definition.get("properties", ())
            assert [field for field in fields if f"| `{field}` |" not in text] == [], (name, kind)


@pytest.mark.parametrize(
    "schema, expected",
    [
        ({"type": "string"}, "text"),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "integer or null"),
        ({"type": "array", "items": {"$ref": "#/$defs/Row"}}, "list of Row"),
        ({"$ref": "#/$defs/Verb"}, "`fail`, `elect`"),
        ({"type": "object", "additionalProperties": {"type": "number"}}, "map to number"),
        ({"type": ["string", "boolean"]}, "text or boolean"),
        ({"enum": list(range(14))}, f"{', '.join(f'`{n}`' for n in range(12))} and 2 others"),
        ({"const": "kframe.whatif/v1"}, "`kframe.whatif/v1`"),
        ({}, "any value"),
    ],
)
def test_type_of_a_field(schema: dict[str, Any], expected: str) -> None:
    definitions: dict[str, Any] = {"Row": {"properties": {"a": {}}}, "Verb": {"enum": ["fail", "elect"]}}
    assert type_text(schema, definitions) == expected


@pytest.mark.parametrize("hook", hooks(), ids=lambda hook: hook.__name__)
def test_example_of_a_hook_is_a_complete_plugin(hook: Any) -> None:
    names: dict[str, Any] = {}
    exec(compile(hook_example(hook), hook.__name__, "exec"), names)
    assert names[hook.__name__].kframe_impl is not None
    assert f"## {hook.__name__}\n" in plugin_hooks()


def test_every_public_name_is_listed() -> None:
    listed = {heading.replace("\\", "") for heading in re.findall(r"^#### (\S+)$", PYTHON, re.MULTILINE)}
    assert [name for name in kframe._PUBLIC if f"kframe.{name}" not in listed] == []
    names = {name.rpartition(".")[2] for name in listed}
    assert [name for name in kframe.plugin.__all__ if name not in names] == []
    assert set(vars(KframeHooks)) >= {hook.__name__ for hook in hooks()}


@pytest.mark.parametrize(
    "line",
    [
        "`class NewPartitions(name: str, count: int, assignments: tuple[tuple[int, ...], ...] | None = None) -> None`",
        "- `view(row: int) -> PartitionView`: One row as an object.",
        "- `registry: Registry | None`: The plugins for names and URLs. By default all that are installed.",
        "Values: `PREFERRED` 0, `UNCLEAN` 1.",
        "`class KframeError`",
    ],
)
def test_python_reference_has_signatures_and_members(line: str) -> None:
    assert line in PYTHON.splitlines()


def test_python_reference_does_not_depend_on_the_process() -> None:
    assert re.findall(r"<\w.* at 0x|<factory>|<function", PYTHON) == []


@pytest.mark.parametrize(
    "text, expected",
    [
        (escape("a*b <c> [d]\n e_f"), "a\\*b \\<c\\> \\[d\\] e\\_f"),
        (code("a|b"), "`a\\|b`"),
        (code(""), ""),
        (prose("the ``a_b`` of c_d"), "the `a_b` of c\\_d"),
        (paragraphs("A\nb::\n\n    x = 1\n\n    y\n\nC."), "A b:\n\n    x = 1\n\n    y\n\nC."),
        (paragraphs("A:\n\n- ``b``\n  c\n- d"), "A:\n\n- `b` c\n- d"),
    ],
)
def test_markdown(text: str, expected: str) -> None:
    assert text == expected
