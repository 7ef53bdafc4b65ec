"""Load modules at first use: the only mechanism for it, so that commands import only what they need.

The stub of a package imports what the package offers; ``load_at_access`` loads each module when a name is first read.
A table of functions in modules that one use rarely needs together, such as the readers of formats, holds
``load_at_call``. All other modules import at their top. Commands import in their functions, because ``--help`` of every
command builds all its options.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def load_at_access(package: str) -> tuple[str, ...]:
    """Let a package load its public names, which its stub ``__init__.pyi`` imports. They become its ``__all__``.

    The stub is the only list of them, for type checkers and at run time. A line is ``from MODULE import NAME as
    PUBLIC``; ``NAME`` may be a submodule. Returns the public names.
    """
    names = _names_of(package)

    class LazyPackage(ModuleType):
        """A package whose public names are loaded at first access."""

        def __getattr__(self, name: str) -> Any:
            if name not in names:
                raise AttributeError(f"module {package!r} has no attribute {name!r}")
            self.__dict__[name] = value = _load_without_collecting(*names[name])
            return value

        def __setattr__(self, name: str, value: object) -> None:
            """Set an attribute, but not a public name to the submodule of that name, as the import of it does."""
            if not (name in names and isinstance(value, ModuleType)):
                super().__setattr__(name, value)

        def __dir__(self) -> list[str]:
            return sorted({*self.__dict__, *names})

    sys.modules[package].__class__ = LazyPackage
    sys.modules[package].__dict__["__all__"] = [*names]
    return tuple(names)


def _load_without_collecting(defined_in: str, attribute: str) -> Any:
    """An attribute or a submodule. Objects of imports last, so that a search for garbage among them is in vain: without
    it, ``from kframe import WhatIf`` takes a twentieth less."""
    import gc  # ``import kframe`` needs no further module.

    collects = gc.isenabled()
    gc.disable()
    try:
        module = import_module(defined_in)
        has_attribute = hasattr(module, attribute)
        return getattr(module, attribute) if has_attribute else import_module(f"{defined_in}.{attribute}")
    finally:
        if collects:
            gc.enable()


def _names_of(package: str) -> dict[str, tuple[str, str]]:
    """The module and the attribute of each name that the stub of a package imports."""
    spec: Any = sys.modules[package].__spec__
    stub: bytes = spec.loader.get_data(f"{spec.submodule_search_locations[0]}/__init__.pyi")
    imports = [line.split() for line in stub.decode().splitlines() if line.startswith("from ")]
    return {public: (module, attribute) for _, module, _, attribute, _, public in imports}


def load(module: str, name: str) -> Any:
    """The attribute ``name`` of a module, which is imported if it is not yet."""
    return getattr(import_module(module), name)


def load_at_call(module: str, name: str) -> Callable[..., Any]:
    """A function that calls the function ``name`` of ``module``, which is imported at the first call."""

    def call(*args: Any, **kwargs: Any) -> Any:
        return load(module, name)(*args, **kwargs)

    return call
