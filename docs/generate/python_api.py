"""Reference of the Python names: those of ``kframe``, ``kframe.plugin`` and ``kframe.testing``, from their docstrings.

A name that several modules offer is documented once; the other modules name it.
"""

from __future__ import annotations

import ast
import inspect
import pkgutil
import textwrap
from collections.abc import Callable, Iterator
from enum import Enum
from functools import cached_property
from importlib import import_module
from types import ModuleType
from typing import Any, ForwardRef

from msgspec import Struct
from sphinx.errors import PycodeError
from sphinx.pycode import ModuleAnalyzer

import kframe
import kframe.plugin
import kframe.testing
from docs.generate.markdown import escape, inline_code, paragraphs


def python_names() -> str:
    """Return the names of ``kframe``, and a section for each module of ``kframe.plugin`` and ``kframe.testing``."""
    reference = PythonReference()
    plugin, testing = (
        [import_module(f"{package.__name__}.{module.name}") for module in pkgutil.iter_modules(package.__path__)]
        for package in (kframe.plugin, kframe.testing)
    )
    parts = ["## Names of kframe", "### kframe", reference.members(kframe, sorted(kframe._PUBLIC), "kframe")]
    parts += ["## Names for plugins", *(reference.section(module) for module in [kframe.plugin, *plugin])]
    parts += ["## Names for the tests of plugins", *(reference.section(module) for module in testing)]
    return "\n\n".join(parts)


class PythonReference:
    """Sections of modules, in the order in which they are requested."""

    def __init__(self) -> None:
        self._documented: dict[int, str] = {}

    def section(self, module: ModuleType) -> str:
        """Return the docstring and the public names of a module."""
        text = paragraphs(inspect.getdoc(module) or "")
        return f"### {escape(module.__name__)}\n\n{text}\n\n{self.members(module, _names(module), module.__name__)}"

    def members(self, module: ModuleType, names: list[str], prefix: str) -> str:
        """Return the names of a module, which readers import from ``prefix``."""
        documented, others = [], []
        for name in names:
            path, member = f"{prefix}.{name}", getattr(module, name)
            shared = isinstance(member, type) or inspect.isroutine(member)
            first = self._documented.setdefault(id(member), path) if shared else path
            if isinstance(member, ModuleType):
                documented += [f"#### {escape(path)}", paragraphs(inspect.getdoc(member) or "")]
                documented.append(self.members(member, _names(member), path))
            elif first == path:
                documented += [f"#### {escape(path)}", _entry(module, name)]
            else:
                others.append(inline_code(first))
        return "\n\n".join([*filter(None, documented), *([f"Also: {', '.join(others)}."] if others else [])])


def _names(module: ModuleType) -> list[str]:
    """Return the public names of a module: those of ``__all__``, or what it defines."""
    names: list[str] = getattr(module, "__all__", None) or [
        name
        for name, member in vars(module).items()
        if not name.startswith("_") and getattr(member, "__module__", None) == module.__name__
    ]
    return sorted(names)


def _entry(module: ModuleType, name: str) -> str:
    """Return signature and docstring of a name; of a class also its documented members."""
    member = getattr(module, name)
    if isinstance(member, type):
        has_signature = not issubclass(member, BaseException | Enum) and not getattr(member, "_is_protocol", False)
        signature = _signature(member) if has_signature else ""
        parts = [inline_code(f"class {name}{signature}"), paragraphs(_own_doc(member)), _values(member)]
        parts.append("\n".join(_members(member)))
        return "\n\n".join(filter(None, parts))
    if inspect.isroutine(member):
        return f"{inline_code(name + _signature(member))}\n\n{paragraphs(inspect.getdoc(member) or '')}"
    has_short_value = isinstance(member, int | float | str | bytes | tuple) and len(repr(member)) < 60
    value = inline_code(f"{name} = {member!r}") if has_short_value else inline_code(name)
    return f"{value}\n\n{paragraphs(chr(10).join(_comment(module, name)))}"


def _values(kind: type) -> str:
    """Return the members of an enumeration with their values, empty for any other class."""
    if not issubclass(kind, Enum):
        return ""
    values = (f"{inline_code(member.name)} {escape(str(member.value))}" for member in kind)
    return f"Values: {', '.join(values)}."


def _own_doc(kind: type) -> str:
    """Return the docstring of a class, without a generated one of a dataclass and those of its bases."""
    text = inspect.cleandoc(vars(kind).get("__doc__") or "")
    return "" if text.startswith(f"{kind.__name__}(") else text


def _members(kind: type) -> Iterator[str]:
    """Return an item for each public member of a class with a docstring, in the order of its source."""
    attributes, order = _attributes(kind)
    texts = {name: (_attribute(kind, name), text) for name, text in attributes.items()}
    for name, member in vars(kind).items():
        if not inspect.isroutine(member) and not isinstance(member, property | cached_property):
            continue
        function = member.__func__ if isinstance(member, classmethod | staticmethod) else member
        text = function.__doc__
        if not text or name.startswith("_") or name in texts:
            continue
        if not callable(function):  # A property, which may compute its value once.
            texts[name] = (name, text)
        elif inspect.isroutine(function):
            texts[name] = (name + _signature(getattr(kind, name), bound=inspect.isfunction(member)), text)
    for name in sorted(texts, key=lambda name: order.get(f"{kind.__qualname__}.{name}", 0)):
        heading, text = texts[name]
        yield f"- {inline_code(heading)}: {textwrap.indent(paragraphs(inspect.cleandoc(text)), '  ').lstrip()}"


def _attributes(kind: type) -> tuple[dict[str, str], dict[str, int]]:
    """Return the documented attributes of a class, and the position of each name in its module."""
    try:
        analyzer = ModuleAnalyzer.for_module(kind.__module__)
        documented = analyzer.find_attr_docs()
    except PycodeError:  # A compiled module.
        return {}, {}
    names = {
        name: "\n".join(lines)
        for (owner, name), lines in documented.items()
        if owner == kind.__qualname__ and not name.startswith("_")
    }
    return names, analyzer.tagorder


def _attribute(kind: type, name: str) -> str:
    annotation = inspect.get_annotations(kind).get(name)
    return name if annotation is None else f"{name}: {_annotation(annotation)}"


def _signature(member: Any, bound: bool = False) -> str:
    """Return the parameters and the result with annotations as in the source. ``bound`` omits ``self``."""
    try:
        signature = inspect.signature(member)
    except ValueError:
        return "(...)"
    written = _field_annotations(member)
    parameters = [
        parameter.replace(
            annotation=_Text.of(written.get(parameter.name, parameter.annotation), _annotation),
            default=_Text.of(parameter.default, _default),
        )
        for parameter in signature.parameters.values()
    ]
    result = _Text.of(signature.return_annotation, _annotation)
    return str(signature.replace(parameters=parameters[bound:], return_annotation=result))


def _field_annotations(member: Any) -> dict[str, object]:
    """Return the annotations of the fields of a Struct, whose signature has their values; nothing for others."""
    if not (isinstance(member, type) and issubclass(member, Struct)):
        return {}
    return {name: text for kind in reversed(member.__mro__) for name, text in inspect.get_annotations(kind).items()}


class _Text:
    """An annotation or a default value in a signature, shown without quotes."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text

    @staticmethod
    def of(value: object, text: Callable[[object], str]) -> object:
        """Return ``value`` as ``text`` shows it; what is empty stays empty."""
        return value if value is inspect.Parameter.empty else _Text(text(value))


def _annotation(annotation: object) -> str:
    if isinstance(annotation, ForwardRef):  # of a named tuple
        return annotation.__forward_arg__
    return annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)


def _default(value: object) -> str:
    """Return a default value as in the source: the name of a member or a function, ``...`` for any other object."""
    if isinstance(value, Enum):
        return f"{type(value).__name__}.{value.name}"
    if inspect.isfunction(value) and value.__name__.isidentifier():
        return value.__name__
    text = repr(value)
    return "..." if text.startswith("<") else text


def _comment(module: ModuleType, name: str) -> list[str]:
    """Return the lines of the comment ``#:`` of a constant, from the module that defines it."""
    for node in ast.parse(inspect.getsource(module)).body:
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            for alias in node.names:
                if (alias.asname or alias.name) == name:
                    return _comment(import_module(node.module), alias.name)
    return ModuleAnalyzer.for_module(module.__name__).find_attr_docs().get(("", name), [])
