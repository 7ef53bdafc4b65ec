"""Reference of the Python names: those of ``kframe``, ``kframe.plugin`` and ``kframe.testing``, from their docstrings.

A name that several modules offer is documented once; the other modules link it.
"""

from __future__ import annotations

import ast
import inspect
import pkgutil
from importlib import import_module
from types import ModuleType

from sphinx.pycode import ModuleAnalyzer

import kframe
import kframe.plugin
import kframe.testing


def python_names() -> str:
    """Return the names of ``kframe``, and a section for each module of ``kframe.plugin`` and ``kframe.testing``."""
    reference = PythonReference()
    plugin, testing = (
        [import_module(f"{package.__name__}.{module.name}") for module in pkgutil.iter_modules(package.__path__)]
        for package in (kframe.plugin, kframe.testing)
    )
    parts = ["## Names of kframe", _rst(reference.members(kframe, sorted(kframe._PUBLIC), "kframe"))]
    parts += ["## Names for plugins", *(reference.section(module) for module in [kframe.plugin, *plugin])]
    parts += ["## Names for the tests of plugins", *(reference.section(module) for module in testing)]
    return "\n\n".join(parts)


class PythonReference:
    """Sections of modules, in the order in which they are requested."""

    def __init__(self) -> None:
        self._documented: dict[int, str] = {}

    def section(self, module: ModuleType) -> str:
        """Return the docstring and the public names of a module."""
        text = f"{inspect.getdoc(module)}\n\n{self.members(module, _names(module), module.__name__)}"
        return f"### {module.__name__}\n\n{_rst(text)}"

    def members(self, module: ModuleType, names: list[str], prefix: str) -> str:
        """Return the directives of names of a module, which readers import from ``prefix``."""
        directives, links = [], []
        for name in names:
            path, member = f"{prefix}.{name}", getattr(module, name)
            shared = isinstance(member, type) or inspect.isroutine(member)
            first = self._documented.setdefault(id(member), path) if shared else path
            if isinstance(member, ModuleType):
                directives.append(f".. py:module:: {path}\n\n{inspect.getdoc(member)}\n")
                directives.append(self.members(member, _names(member), path))
                directives.append("\n.. py:currentmodule:: None\n")
            elif first == path:
                directives.append(_directive(path, module, name))
            else:
                links.append(f":py:obj:`{first}`")
        return "\n".join([*directives, *([f"Also: {', '.join(links)}."] if links else [])])


def _names(module: ModuleType) -> list[str]:
    """Return the public names of a module: those of ``__all__``, or what it defines."""
    names: list[str] = getattr(module, "__all__", None) or [
        name
        for name, member in vars(module).items()
        if not name.startswith("_") and getattr(member, "__module__", None) == module.__name__
    ]
    return sorted(names)


def _rst(text: str) -> str:
    return f"````{{eval-rst}}\n{text}\n````"


def _directive(path: str, module: ModuleType, name: str) -> str:
    member = getattr(module, name)
    if isinstance(member, type):
        return f".. autoclass:: {path}\n   :members:\n"
    if inspect.isroutine(member):
        return f".. autofunction:: {path}\n"
    lines = [f".. py:data:: {path}"]
    if isinstance(member, int | float | str | bytes | tuple) and len(repr(member)) < 60:
        lines.append(f"   :value: {member!r}")
    return "\n".join([*lines, "", *(f"   {line}" for line in _comment(module, name)), ""])


def _comment(module: ModuleType, name: str) -> list[str]:
    """Return the lines of the comment ``#:`` of a constant, from the module that defines it."""
    for node in ast.parse(inspect.getsource(module)).body:
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            for alias in node.names:
                if (alias.asname or alias.name) == name:
                    return _comment(import_module(node.module), alias.name)
    return ModuleAnalyzer.for_module(module.__name__).find_attr_docs().get(("", name), [])
