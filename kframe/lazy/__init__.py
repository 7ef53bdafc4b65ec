"""Load modules at first use: the only mechanism for it, so that commands import no more than they need.

A package names what it offers and the modules that define it; ``load_at_access`` loads each module when a name is first
read. A table of functions in modules that one use rarely needs together, such as the readers of formats, holds
``load_at_call``. All other modules import at their top. Commands import in their functions, because ``--help`` of every
command builds all its options.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any


def load_at_access(package: str, names: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Let a package load its public names: ``names`` has those of each module, ``NAME=ATTRIBUTE`` for another name.

    A name may be that of a module itself, and also that of a submodule of the package that defines it. Returns the
    public names.
    """
    modules = {entry.partition("=")[0]: (module, entry) for module, entries in names.items() for entry in entries}

    class LazyPackage(ModuleType):
        """A package whose public names are loaded at first access."""

        def __getattr__(self, name: str) -> Any:
            if name not in modules:
                raise AttributeError(f"module {package!r} has no attribute {name!r}")
            defined_in, entry = modules[name]
            module = import_module(defined_in)
            is_module = defined_in.endswith(f".{name}") and not hasattr(module, name)
            value = module if is_module else getattr(module, entry.rpartition("=")[2])
            self.__dict__[name] = value
            return value

        def __setattr__(self, name: str, value: object) -> None:
            """Set an attribute, but not a public name to the submodule of that name, as the import of it does."""
            if not (name in modules and isinstance(value, ModuleType)):
                super().__setattr__(name, value)

        def __dir__(self) -> list[str]:
            return sorted({*self.__dict__, *modules})

    sys.modules[package].__class__ = LazyPackage
    return tuple(modules)


def load(module: str, name: str) -> Any:
    """The attribute ``name`` of a module, which is imported if it is not yet."""
    return getattr(import_module(module), name)


def load_at_call(module: str, name: str) -> Callable[..., Any]:
    """A function that calls the function ``name`` of ``module``, which is imported at the first call."""

    def call(*args: Any, **kwargs: Any) -> Any:
        return load(module, name)(*args, **kwargs)

    return call
