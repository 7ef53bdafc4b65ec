"""The plugins that are installed where a task runs."""

from __future__ import annotations

import functools
from pathlib import Path

from kframe.registry.registry import Registry, build_registry


@functools.cache
def installed(disabled: tuple[str, ...], plugins_dir: str | None) -> Registry:
    """The registry of this process, without the ``disabled`` plugins. Raises PluginError."""
    return build_registry(disabled, None if plugins_dir is None else Path(plugins_dir))
