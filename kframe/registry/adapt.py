"""From a selector's spec to a LeaderSelector, whatever its tier."""

from __future__ import annotations

from collections.abc import Mapping

from kframe.errors import KframeError, PluginError
from kframe.model.elections import LeaderSelector
from kframe.registry.native import NativeSelector
from kframe.registry.scalar import ScalarSelector
from kframe.registry.specs import SelectorSpec, Tier


def make_selector(spec: SelectorSpec, options: Mapping[str, object]) -> LeaderSelector:
    """Make the selector that ``spec`` offers, with ``options`` by name.

    Raises ConfigError if an option is unknown or of a wrong type, PluginError if the factory fails or makes something
    else than its tier says.
    """
    values = spec.values(options)
    try:
        made = spec.factory(**values)
    except KframeError:
        raise
    except Exception as error:
        raise PluginError(f"selector {spec.name!r} cannot be made: {type(error).__name__}: {error}") from error
    if spec.tier is Tier.NATIVE:
        return NativeSelector(spec.name, made)
    if spec.tier is Tier.SCALAR and callable(made):
        return ScalarSelector(spec.name, made)
    if spec.tier is Tier.BULK and isinstance(made, LeaderSelector):
        if made.name != spec.name:
            raise PluginError(f"selector {spec.name!r}: its factory made one that is called {made.name!r}")
        return made
    expected = "a function" if spec.tier is Tier.SCALAR else "a LeaderSelector"
    raise PluginError(f"selector {spec.name!r}: its factory made {type(made).__name__}, expected {expected}")
