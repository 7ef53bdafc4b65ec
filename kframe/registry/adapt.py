"""Makes a LeaderSelector of any tier from its SelectorSpec."""

from __future__ import annotations

from collections.abc import Mapping

from kframe.errors import KframeError, PluginError
from kframe.model.elections import LeaderSelector
from kframe.registry.native import NativeSelector
from kframe.registry.scalar import ScalarSelector
from kframe.registry.specs import SelectorSpec, Tier


def make_selector(spec: SelectorSpec, options: Mapping[str, object]) -> LeaderSelector:
    """Make the selector of ``spec`` with ``options`` by name.

    Raises ConfigError for an unknown option or an option of the wrong type. Raises PluginError if the factory fails or
    returns an object of another tier.
    """
    values = spec.values(options)
    try:
        selector = spec.factory(**values)
    except KframeError:
        raise
    except Exception as error:
        raise PluginError(f"selector {spec.name!r} cannot be made: {type(error).__name__}: {error}") from error
    if spec.tier is Tier.NATIVE:
        return NativeSelector(spec.name, selector)
    if spec.tier is Tier.SCALAR and callable(selector):
        return ScalarSelector(spec.name, selector)
    if spec.tier is Tier.BULK and isinstance(selector, LeaderSelector):
        if selector.name != spec.name:
            raise PluginError(f"selector {spec.name!r}: its factory returned a selector named {selector.name!r}")
        return selector
    expected = "a function" if spec.tier is Tier.SCALAR else "a LeaderSelector"
    raise PluginError(f"selector {spec.name!r}: its factory returned {type(selector).__name__}, expected {expected}")
