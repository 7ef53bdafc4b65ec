"""Loads a plugin: imports it, registers it with pluggy, calls its hooks and validates what they return.

Each plugin has a pluggy manager of its own. A plugin that fails to import, implements an unknown hook, raises or offers
anything but specs fails alone and as a whole, and every offer belongs to a known plugin.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import pluggy

from kframe.errors import PluginError
from kframe.registry import specs
from kframe.registry.hookspecs import PROJECT, KframeHooks
from kframe.registry.sources import DiscoveredPlugin, PluginSource

if TYPE_CHECKING:
    import click

_log = logging.getLogger("kframe.plugins")

Spec: TypeAlias = (
    specs.SelectorSpec
    | specs.PortSpec
    | specs.ObserverSpec
    | specs.CheckSpec
    | specs.BrokerModelSpec
    | specs.SnapshotFormatSpec
    | specs.DocumentSpec
    | specs.CostTermSpec
    | specs.GoalSpec
)
#: Receives a line for each plugin loaded and each hook called.
Trace: TypeAlias = Callable[[str], None]

#: The type of the specs that each hook returns.
OFFERS: Final[Mapping[str, type[Spec]]] = {
    "kframe_leader_selectors": specs.SelectorSpec,
    "kframe_stores": specs.StoreSpec,
    "kframe_transports": specs.TransportSpec,
    "kframe_clusters": specs.ClusterSpec,
    "kframe_admins": specs.AdminSpec,
    "kframe_servers": specs.ServerSpec,
    "kframe_controllers": specs.ControllerSpec,
    "kframe_observers": specs.ObserverSpec,
    "kframe_plugin_checks": specs.CheckSpec,
    "kframe_broker_models": specs.BrokerModelSpec,
    "kframe_snapshot_formats": specs.SnapshotFormatSpec,
    "kframe_documents": specs.DocumentSpec,
    "kframe_cost_terms": specs.CostTermSpec,
    "kframe_goals": specs.GoalSpec,
}


@dataclass(frozen=True, slots=True)
class Plugin:
    """A plugin after loading: loaded, disabled on request, or broken with ``error``; the last two offer nothing."""

    name: str
    distribution: str
    source: PluginSource
    disabled: bool = False
    error: str | None = None
    offers: tuple[Spec, ...] = ()
    register_commands: Callable[[click.Group], None] | None = None

    @property
    def state(self) -> Literal["loaded", "disabled", "broken"]:
        """``loaded``, ``disabled`` or ``broken``."""
        return "disabled" if self.disabled else "broken" if self.error is not None else "loaded"


def load_plugin(discovered: DiscoveredPlugin, trace: Trace) -> Plugin:
    """Load a plugin and call its hooks. A broken plugin is logged and returned with its error."""
    try:
        trace(f"{discovered.name} ({discovered.distribution}): load")
        manager = _register(discovered)
        offers = tuple(spec for hook in OFFERS for spec in _call(manager, discovered.name, hook, trace))
    except (Exception, SystemExit) as error:
        _log.warning("plugin %s (%s) is broken and left out", discovered.name, discovered.distribution, exc_info=error)
        problem = str(error) if isinstance(error, PluginError) else f"{type(error).__name__}: {error}"
        return Plugin(discovered.name, discovered.distribution, discovered.source, error=problem)

    def register_commands(cli: click.Group) -> None:
        trace(f"{discovered.name}: kframe_register_commands")
        manager.hook.kframe_register_commands(cli=cli)

    has_commands = bool(manager.hook.kframe_register_commands.get_hookimpls())
    return Plugin(
        discovered.name,
        discovered.distribution,
        discovered.source,
        offers=offers,
        register_commands=register_commands if has_commands else None,
    )


def _register(discovered: DiscoveredPlugin) -> pluggy.PluginManager:
    manager = pluggy.PluginManager(PROJECT)
    manager.add_hookspecs(KframeHooks)
    plugin = discovered.load()
    manager.register(plugin, discovered.name)
    manager.check_pending()
    if not manager.get_hookcallers(plugin):
        raise PluginError("it implements no hook: hooks are plain Python functions marked with kframe.plugin.hookimpl")
    return manager


def _call(manager: pluggy.PluginManager, name: str, hook: str, trace: Trace) -> list[Spec]:
    caller = getattr(manager.hook, hook)
    if not caller.get_hookimpls():
        return []
    expected = f"a list of {OFFERS[hook].__name__}"
    results = caller()
    if not results:  # pluggy leaves None out.
        raise PluginError(f"{hook} returned nothing (None), expected {expected}: is a return statement missing?")
    for result in results:
        if not isinstance(result, Iterable):
            raise PluginError(f"{hook} returned {type(result).__name__} {result!r}, expected {expected}")
    offers: list[Any] = [offer for result in results for offer in result]
    names = (offer.name if isinstance(offer, OFFERS[hook]) else str(offer) for offer in offers)
    trace(f"{name}: {hook} -> {', '.join(names)}")
    for offer in offers:
        if not isinstance(offer, OFFERS[hook]):
            raise PluginError(f"{hook} offers {type(offer).__name__} {offer!r}, expected {OFFERS[hook].__name__}")
    return offers
