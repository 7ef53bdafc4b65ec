"""The warnings, errors and refusals in the sources of a live controller, each with ``…`` for its values."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from tests.architecture.source import ROOT

SOURCES: Final = (
    "kframe/runtime",
    "kframe/settings",
    "kframe/cli/monitor.py",
    "kframe/cli/run.py",
    "kframe/core/selectors/leader_selection.py",
    "kframe/registry/loading.py",
    "kframe/cli/run_quorum.py",
    "plugins/kraft/kframe_kraft/controller",
    "plugins/kraft/kframe_kraft/server",
    "plugins/zookeeper/kframe_zookeeper",
    "plugins/kafka_wire/kframe_kafka_wire",
)
#: Method of a logger, or level of a template, to the level in the log. The level of ``log`` depends on the cause.
_LEVELS: Final = {
    "warning": "WARN",
    "log": "WARN",
    "error": "ERROR",
    "exception": "ERROR",
    "WARNING": "WARN",
    "ERROR": "ERROR",
}
#: Functions that return or pass on the text of a warning.
_WARNING_TEXTS: Final = re.compile(r"risks|warn_of_\w+")
#: Exceptions of the start that end ``kframe controller run`` with exit code 2.
_REFUSALS: Final = frozenset({"BadInput"})
_VALUE: Final = re.compile(r"%(?:\.\d)?[a-z]|\{[^}]*\}")


class LogMessage(NamedTuple):
    """A level (``WARN``, ``ERROR``, or ``exit 2``) and a text."""

    level: str
    text: str


def log_messages() -> set[LogMessage]:
    """Return the messages of all sources."""
    return {
        message for source in SOURCES for path in _files(ROOT / source) for message in messages_in(path.read_text())
    }


def messages_in(source: str) -> Iterator[LogMessage]:
    """Return the messages of a module."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call):
            yield from _of_call(node)
        elif isinstance(node, ast.FunctionDef) and _WARNING_TEXTS.fullmatch(node.name):
            yield from (LogMessage("WARN", text) for text in _texts(node))


def _files(path: Path) -> list[Path]:
    modules = [path] if path.is_file() else sorted(path.rglob("*.py"))
    return [module for module in modules if "testing" not in module.parts]


def _of_call(call: ast.Call) -> Iterator[LogMessage]:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    arguments = call.args
    if name in _REFUSALS:
        level, text = "exit 2", arguments[0]
    elif name == "Template" and isinstance(arguments[0], ast.Name) and arguments[0].id in _LEVELS:
        level, text = _LEVELS[arguments[0].id], arguments[1]
    elif name in _LEVELS and isinstance(call.func, ast.Attribute) and ast.unparse(call.func.value) == "_log":
        level, text = _LEVELS[name], arguments[1 if name == "log" else 0]
    else:
        return
    template = _text(text)
    if template is not None and template != "…":  # the text of "%s" is collected where it is composed
        yield LogMessage(level, template)


def _texts(function: ast.FunctionDef) -> Iterator[str]:
    """The texts with at least five words in a function, but not its docstring."""
    for statement in function.body[1:] if ast.get_docstring(function) else function.body:
        parts = {part for node in ast.walk(statement) if isinstance(node, ast.JoinedStr) for part in ast.walk(node)}
        nodes = (node for node in ast.walk(statement) if isinstance(node, ast.JoinedStr) or node not in parts)
        yield from (text for text in map(_text, nodes) if text is not None and len(text.split()) >= 5)


def _text(node: ast.AST) -> str | None:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return _VALUE.sub("…", node.value).replace("……", "…")
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in node.values)
    return None
