"""The leader selectors that a program gives to a builder, as objects or by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

from kframe.errors import PluginError
from kframe.model.elections import LeaderSelector
from kframe.model.ids import ElectionKind
from kframe.registry.registry import Registry

#: Selectors by kind of election, or names of selectors, each for all its kinds.
GivenSelectors: TypeAlias = Mapping[ElectionKind, LeaderSelector | str] | Iterable[str]


def selectors_by_kind(
    given: GivenSelectors, options: Mapping[str, Mapping[str, object]], registry: Callable[[], Registry]
) -> Mapping[ElectionKind, LeaderSelector]:
    """The selector of each kind. ``options`` are those of selectors given by name; ``registry`` is called for names.

    Raises PluginError for an unknown name, and for a selector that is not for its kind.
    """
    if not isinstance(given, Mapping):
        names = tuple(given)
        return registry().selectors_for(names, options) if names else {}
    return {
        kind: _named(kind, selector, options.get(selector), registry()) if isinstance(selector, str) else selector
        for kind, selector in given.items()
    }


def _named(kind: ElectionKind, name: str, options: Mapping[str, object] | None, registry: Registry) -> LeaderSelector:
    selector = registry.selector(name, options)
    if kind not in registry.selectors[name].kinds:
        raise PluginError(f"selector {name!r} is not for {kind.name} elections")
    return selector
