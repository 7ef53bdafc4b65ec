"""YAML without surprises: repeated keys and plain values that YAML 1.1 reads differently from 1.2 are errors."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

import yaml

from kframe.errors import ScenarioError

_TAG: Final = "tag:yaml.org,2002:"
#: Plain values that YAML 1.1 and 1.2 read alike, by the tag that YAML 1.1 gives them.
_UNAMBIGUOUS: Final = {
    f"{_TAG}bool": re.compile(r"true|True|TRUE|false|False|FALSE"),
    f"{_TAG}int": re.compile(r"[-+]?(?:0|[1-9][0-9]*)"),
    f"{_TAG}float": re.compile(
        r"[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][-+][0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"
    ),
    f"{_TAG}null": re.compile(r"~|null|Null|NULL|"),
}
_KINDS: Final = {
    f"{_TAG}bool": "true, false, or a quoted text",
    f"{_TAG}int": "a decimal number without leading zeros, or a quoted text",
    f"{_TAG}float": "a decimal number, or a quoted text",
    f"{_TAG}timestamp": "a quoted text",
}


def load(text: str, source: str) -> Any:
    """The document of a YAML text as plain Python values.

    Raises ScenarioError for text that is not YAML and for a key that occurs twice in a mapping. Plain values such as
    ``yes``, ``010``, ``1_000``, ``1:30`` or ``2026-11-24`` raise it, too. It names ``source`` and the line.
    """
    try:
        loader = yaml.SafeLoader(text)
    except yaml.YAMLError as error:
        character = getattr(error, "character", None)
        actual = "a text that is no YAML" if character is None else f"character U+{character:04X}"
        raise ScenarioError(source, actual, "characters that YAML permits") from error
    try:
        root = loader.get_single_node()
        if root is None:
            return None
        for node in _nodes(root):
            _check(node, source)
        return loader.construct_document(root)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"{source}:{mark.line + 1}" if mark else source
        problem = str(getattr(error, "problem", None) or error).removeprefix("but ").removeprefix("found ")
        raise ScenarioError(where, problem, "YAML") from error
    except (RecursionError, ValueError) as error:
        raise ScenarioError(source, f"unreadable YAML ({error})", "a scenario") from error
    finally:
        loader.dispose()


def _nodes(root: yaml.Node) -> Iterator[yaml.Node]:
    """Every node once, although aliases may lead to it again."""
    pending, seen = [root], {id(root)}
    while pending:
        node = pending.pop()
        yield node
        children: list[yaml.Node] = []
        if isinstance(node, yaml.MappingNode):
            children = [part for pair in node.value for part in pair]
        elif isinstance(node, yaml.SequenceNode):
            children = node.value
        unvisited = [child for child in children if id(child) not in seen]
        seen.update(map(id, unvisited))
        pending += unvisited


def _check(node: yaml.Node, source: str) -> None:
    where = f"{source}:{node.start_mark.line + 1}"
    if isinstance(node, yaml.MappingNode):
        keys: set[tuple[str, str]] = set()
        for key, _ in node.value:
            name = (key.tag, str(key.value))
            if isinstance(key, yaml.ScalarNode) and name in keys:
                raise ScenarioError(f"{source}:{key.start_mark.line + 1}", f"key {key.value} again", "each key once")
            keys.add(name)
    elif isinstance(node, yaml.ScalarNode) and node.style is None and node.tag in _KINDS:
        unambiguous = _UNAMBIGUOUS.get(node.tag)
        if unambiguous is None or not unambiguous.fullmatch(node.value):
            raise ScenarioError(where, f"{node.value}, whose meaning depends on the version of YAML", _KINDS[node.tag])
