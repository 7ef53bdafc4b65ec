"""Reference of configuration keys: those of the controller, of selectors, and those that plugins read."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from docs.generate.markdown import code, escape, prose, table
from kframe.errors import ConfigError
from kframe.model.config import KEYS, Key
from kframe.registry.registry import build_registry
from kframe.settings.settings import KNOWN, environment_name


def configuration_keys() -> str:
    """Return a table of the controller's keys, with type, default and meaning."""
    rows = [[code(key.name), escape(value_type(key)), code(key.default), prose(key.doc)] for key in KEYS.values()]
    return table(["key", "value", "default", "meaning"], rows)


def value_type(key: Key) -> str:
    """Return what the parser of a key expects, in the words of its error message."""
    try:
        key.read("", object())
    except ConfigError as error:
        return error.expected.replace(f" to {2**31 - 1}", " on")
    raise AssertionError(f"{key.name} accepts any value")


def environment_variables() -> str:
    """Return a table of the environment variables of the controller's keys."""
    return table(["variable", "key"], [[code(environment_name(name)), code(name)] for name in KEYS])


def selector_options() -> str:
    """Return a table of the leader selectors of the installed plugins, and one of their options."""
    offers = build_registry().selectors.values()
    rows = [[code(spec.name), code(spec.tier.name.lower()), escape(spec.doc)] for spec in offers]
    options = [
        [code(spec.name), code(option.name), code(option.type.__name__), code(option.default), escape(option.doc)]
        for spec in offers
        for option in spec.options
    ]
    parts = [table(["selector", "tier", "purpose"], rows)]
    if options:
        parts.append(table(["selector", "option", "type", "default", "meaning"], options))
    return "\n".join(parts)


def plugin_keys() -> str:
    """Return a table of the keys that the plugins of controllers read, from their sources."""
    import kframe_kafka_wire
    import kframe_kraft
    import kframe_zookeeper

    readers = {
        "kframe-kafka-wire": kframe_kafka_wire,
        "kframe-kraft": kframe_kraft,
        "kframe-zookeeper": kframe_zookeeper,
    }
    keys = {name: set(_keys_in(module)) for name, module in readers.items()}
    rows = [
        [code(key), escape(", ".join(name for name in keys if key in keys[name]))]
        for key in sorted(set().union(*keys.values()) - set(KEYS))
    ]
    return table(["key", "read by"], rows)


def _keys_in(module: ModuleType) -> Iterator[str]:
    """Return the known keys among the strings of a package, without its tools for tests."""
    (folder,) = module.__path__
    for path in Path(folder).rglob("*.py"):
        if "testing" not in path.parts:
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in KNOWN:
                    yield node.value
