"""The sources of plugins: entry points, a directory, and objects of the caller."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import Final

from kframe.errors import ConfigError
from kframe.registry.hookspecs import PROJECT

#: The prefix of modules from ``--plugins-dir`` in ``sys.modules``.
MODULE_PREFIX: Final = "kframe_plugins_dir_"


class PluginSource(StrEnum):
    """Where a plugin comes from."""

    BUILTIN = "builtin"
    ENTRY_POINT = "entry point"
    DIRECTORY = "plugins dir"
    EXTRA = "extra"


@dataclass(frozen=True, slots=True)
class DiscoveredPlugin:
    """A plugin before loading. ``load`` imports it and may raise any exception."""

    name: str
    distribution: str
    source: PluginSource
    load: Callable[[], object]


def from_entry_points() -> Iterator[DiscoveredPlugin]:
    """Entry points in the group ``kframe`` of all installed distributions, by name."""
    points = [(point.name, _distribution(point), point.load) for point in entry_points(group=PROJECT)]
    for name, distribution, load in sorted(points, key=lambda point: point[:2]):
        yield DiscoveredPlugin(name, distribution, PluginSource.ENTRY_POINT, load)


def from_directory(directory: Path) -> Iterator[DiscoveredPlugin]:
    """Python files and packages in ``directory``, by name. Names that start with ``_`` or ``.`` are excluded.

    Raises ConfigError if the directory does not exist.
    """
    if not directory.is_dir():
        raise ConfigError("plugins directory", str(directory), "an existing directory")
    for path in sorted(directory.iterdir()):
        file = path / "__init__.py" if path.is_dir() else path
        if path.name[0] not in "_." and file.suffix == ".py" and file.is_file():
            yield DiscoveredPlugin(path.stem, str(path), PluginSource.DIRECTORY, _loader(path.stem, file))


def from_objects(plugins: Iterable[object]) -> Iterator[DiscoveredPlugin]:
    """Objects of the caller as plugins, named after their module or class."""
    for plugin in plugins:
        name = plugin.__name__ if isinstance(plugin, ModuleType | type) else type(plugin).__name__
        yield DiscoveredPlugin(name, f"extra {name}", PluginSource.EXTRA, lambda plugin=plugin: plugin)  # type: ignore[misc]


def _distribution(entry_point: EntryPoint) -> str:
    if entry_point.dist is None:
        return "unknown distribution"
    metadata = entry_point.dist.metadata  # Each access parses the file.
    return f"{metadata['Name']} {metadata['Version']}"


def _loader(stem: str, file: Path) -> Callable[[], ModuleType]:
    def load() -> ModuleType:
        name = MODULE_PREFIX + stem
        spec = importlib.util.spec_from_file_location(name, file)
        if spec is None or spec.loader is None:
            raise ImportError(f"{file} is no Python module")
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module  # dataclasses and pickles look their module up
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del sys.modules[name]
            raise
        return module

    return load
