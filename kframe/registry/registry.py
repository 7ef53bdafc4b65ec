"""The registry: what all plugins offer, by name.

Only ``build_registry`` loads plugins. Broken plugins are reported and offer nothing; two plugins that offer the same
name are an error. Names are resolved once, before a controller starts; pluggy is not involved afterwards.
"""

from __future__ import annotations

import difflib
import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from kframe.errors import KframeError, PluginError
from kframe.model.elections import LeaderSelector
from kframe.model.ids import ElectionKind
from kframe.ports.administration import Administration
from kframe.ports.live_cluster import LiveCluster
from kframe.ports.observer import Observer
from kframe.ports.quorum_controller import CommitObserver, QuorumController
from kframe.ports.server import Server
from kframe.ports.store import Store
from kframe.ports.transport import Transport
from kframe.registry import builtin, sources, specs
from kframe.registry.known_plugins import plugin_of_scheme
from kframe.registry.loading import Plugin, Spec, Trace, load_plugin
from kframe.registry.native import NativeSelector
from kframe.registry.placements import CostTerm, PlanGoal, make_cost_term, make_goal
from kframe.registry.scalar import ScalarSelector
from kframe.registry.sources import DiscoveredPlugin, PluginSource

if TYPE_CHECKING:
    import click

_log = logging.getLogger("kframe.plugins")

_Spec = TypeVar("_Spec", bound=Spec)

#: The plugin that kframe itself is.
BUILTIN: Final = DiscoveredPlugin("builtin", "kframe-controller", PluginSource.BUILTIN, lambda: builtin)


def build_registry(
    disabled: Collection[str] = (),
    plugins_dir: Path | None = None,
    extra: Iterable[object] = (),
    allowed: Collection[str] | None = None,
    trace: Trace = lambda line: None,
) -> Registry:
    """Find plugins, load them, and resolve the names that they offer.

    Plugins are ``builtin``, the entry points in group ``kframe``, the modules in ``plugins_dir`` and the objects in
    ``extra``, in this order and by name. Plugins in ``disabled`` are not loaded, nor are entry points missing from
    ``allowed`` unless it is None. ``trace`` receives a line for each step.

    Raises PluginError if two enabled plugins have or offer the same name or if ``disabled`` names no plugin, and
    ConfigError if the directory does not exist. Broken plugins are in ``Registry.broken``.
    """
    discovered = [BUILTIN, *sources.from_entry_points()]
    discovered += sources.from_directory(plugins_dir) if plugins_dir is not None else ()
    discovered += sources.from_objects(extra)
    refused = set(disabled)
    for name in sorted(refused - {plugin.name for plugin in discovered}):
        names = ", ".join(sorted(plugin.name for plugin in discovered))
        raise PluginError(f"disabled plugins: found {name}, expected one of {names}")
    if allowed is not None:
        refused |= {
            plugin.name
            for plugin in discovered
            if plugin.source is PluginSource.ENTRY_POINT and plugin.name not in allowed
        }
    _require_unique(
        [(plugin.name, plugin.distribution) for plugin in discovered if plugin.name not in refused], "plugin"
    )
    return Registry(
        [
            Plugin(plugin.name, plugin.distribution, plugin.source, disabled=True)
            if plugin.name in refused
            else load_plugin(plugin, trace)
            for plugin in discovered
        ]
    )


class Registry:
    """All plugins, and what they offer by name or URL scheme. See ``build_registry``."""

    def __init__(self, plugins: Sequence[Plugin]) -> None:
        self.plugins: Final = tuple(plugins)
        """In the order of loading, with broken and disabled plugins."""
        self.selectors: Final = _by_key(plugins, specs.SelectorSpec, "leader selector")
        self.stores: Final = _by_key(plugins, specs.StoreSpec, "store for the URL scheme")
        self.transports: Final = _by_key(plugins, specs.TransportSpec, "transport for the URL scheme")
        self.clusters: Final = _by_key(plugins, specs.ClusterSpec, "live cluster for the URL scheme")
        self.admins: Final = _by_key(plugins, specs.AdminSpec, "admin API for the URL scheme")
        self.servers: Final = _by_key(plugins, specs.ServerSpec, "server for the URL scheme")
        self.controllers: Final = _by_key(plugins, specs.ControllerSpec, "controller for the URL scheme")
        self.observers: Final = _by_key(plugins, specs.ObserverSpec, "observer")
        self.checks: Final = _by_key(plugins, specs.CheckSpec, "check")
        self.broker_models: Final = _by_key(plugins, specs.BrokerModelSpec, "broker model")
        self.snapshot_formats: Final = _by_key(plugins, specs.SnapshotFormatSpec, "snapshot format")
        self.documents: Final = _by_key(plugins, specs.DocumentSpec, "document")
        self.cost_terms: Final = _by_key(plugins, specs.CostTermSpec, "cost term")
        self.goals: Final = _by_key(plugins, specs.GoalSpec, "goal")

    @property
    def broken(self) -> tuple[Plugin, ...]:
        """Plugins that could not be loaded."""
        return tuple(plugin for plugin in self.plugins if plugin.error is not None)

    def selector(self, name: str, options: Mapping[str, object] | None = None) -> LeaderSelector:
        """Make the selector called ``name``.

        Raises PluginError if it does not exist or its factory fails, ConfigError for an unknown or mistyped option.
        """
        return make_selector(self._find(self.selectors, name, "leader selector"), options or {})

    def selectors_for(
        self, names: Iterable[str], options: Mapping[str, Mapping[str, object]] | None = None
    ) -> dict[ElectionKind, LeaderSelector]:
        """Make the selectors called ``names`` and return them by the kinds of election that they are for.

        ``options`` has their options by selector name. Raises as ``selector``, and PluginError if two selectors are for
        the same kind.
        """
        selector_by_kind: dict[ElectionKind, LeaderSelector] = {}
        for name in names:
            selector = self.selector(name, (options or {}).get(name))
            for kind in self.selectors[name].kinds:
                if kind in selector_by_kind:
                    both = f"{selector_by_kind[kind].name!r} and {name!r}"
                    raise PluginError(f"selectors {both} are both for {kind.name} elections; choose one")
                selector_by_kind[kind] = selector
        return selector_by_kind

    def cost_term(self, name: str) -> CostTerm:
        """Make the cost term called ``name``. Raises PluginError if it does not exist or its factory fails."""
        return make_cost_term(self._find(self.cost_terms, name, "cost term"))

    def goal(self, name: str) -> PlanGoal:
        """Make the goal called ``name``. Raises PluginError if it does not exist or its factory fails."""
        return make_goal(self._find(self.goals, name, "goal"))

    def open_store(self, url: str) -> Store:
        """Make the store for a URL; raises PluginError if no plugin serves its scheme."""
        store: Store = self._find(self.stores, url.partition(":")[0], "store for the URL scheme").make(url)
        return store

    def open_transport(self, url: str, config: Mapping[str, str] | None = None) -> Transport:
        """Make the transport for a URL, not open yet.

        ``config`` are values by Kafka's keys. Raises PluginError if no plugin serves the scheme, and ConfigError for a
        key or value that does not fit.
        """
        spec = self._find(self.transports, url.partition(":")[0], "transport for the URL scheme")
        transport: Transport = spec.make(url, dict(config or {}))
        return transport

    def open_server(self, url: str, config: Mapping[str, str] | None = None) -> Server[Any]:
        """Make the server for a URL, not started. Arguments and errors as above."""
        spec = self._find(self.servers, url.partition(":")[0], "server for the URL scheme")
        server: Server[Any] = spec.make(url, dict(config or {}))
        return server

    def open_controller(self, url: str, config: Mapping[str, str] | None = None) -> QuorumController:
        """Make the controller for a URL, not started. Arguments and errors as above."""
        spec = self._find(self.controllers, url.partition(":")[0], "controller for the URL scheme")
        controller: QuorumController = spec.make(url, dict(config or {}))
        return controller

    def open_cluster(self, url: str, config: Mapping[str, str] | None = None) -> LiveCluster:
        """Make the live cluster for a URL, not connected yet.

        ``config`` are values by Kafka's keys. Raises PluginError if no plugin serves the scheme, and ConfigError for a
        key or value that does not fit.
        """
        spec = self._find(self.clusters, url.partition(":")[0], "live cluster for the URL scheme")
        cluster: LiveCluster = spec.make(url, dict(config or {}))
        return cluster

    def open_admin(self, url: str, config: Mapping[str, str] | None = None) -> Administration:
        """Make the admin client for a URL, not connected yet. Arguments and errors as above."""
        spec = self._find(self.admins, url.partition(":")[0], "admin API for the URL scheme")
        administration: Administration = spec.make(url, dict(config or {}))
        return administration

    def observer(self, name: str) -> Observer | CommitObserver:
        """Make the observer called ``name``; raises PluginError if there is none."""
        return self._find(self.observers, name, "observer").factory()

    def register_commands(self, cli: click.Group) -> None:
        """Let every plugin add its commands to ``cli``.

        If a plugin raises, the error is logged and its commands are removed. Raises PluginError, with the names of both
        plugins, if one replaces a command of another.
        """
        owners = dict.fromkeys(cli.commands, BUILTIN.distribution)
        for plugin in self.plugins:
            if plugin.register_commands is None:
                continue
            before = dict(cli.commands)
            try:
                plugin.register_commands(cli)
            except Exception:
                _log.exception("plugin %s (%s) cannot register its commands", plugin.name, plugin.distribution)
                cli.commands = before
            for name, command in list(cli.commands.items()):
                if before.get(name, command) is not command:
                    cli.commands = before
                    raise _name_conflict("command", name, owners[name], plugin.distribution)
                owners.setdefault(name, plugin.distribution)

    def _find(self, offers: Mapping[str, _Spec], name: str, noun: str) -> _Spec:
        if name in offers:
            return offers[name]
        similar = difflib.get_close_matches(name, offers, n=1)
        parts = [f"no {noun} {name!r}"]
        known = plugin_of_scheme(name) if noun.endswith("URL scheme") else None
        installed = {plugin.distribution.partition(" ")[0] for plugin in self.plugins}
        parts += [known.hint()] if known is not None and known.distribution not in installed else []
        parts += [f"did you mean {similar[0]!r}?"] if similar else []
        parts += [f"there are: {', '.join(sorted(offers)) or 'none'}"]
        parts += [
            f"plugin {plugin.name} ({plugin.distribution}) is {plugin.state}"
            for plugin in self.plugins
            if plugin.state != "loaded"
        ]
        raise PluginError("; ".join(parts))


def _by_key(plugins: Iterable[Plugin], kind: type[_Spec], noun: str) -> Mapping[str, _Spec]:
    offers = [
        (spec.name, spec, plugin.distribution) for plugin in plugins for spec in plugin.offers if isinstance(spec, kind)
    ]
    _require_unique([(key, distribution) for key, _, distribution in offers], noun)
    return {key: spec for key, spec, _ in offers}


def _require_unique(names_and_distributions: Iterable[tuple[str, str]], noun: str) -> None:
    owner: dict[str, str] = {}
    for name, distribution in names_and_distributions:
        if name in owner:
            raise _name_conflict(noun, name, owner[name], distribution)
        owner[name] = distribution


def _name_conflict(noun: str, name: str, first: str, second: str) -> PluginError:
    return PluginError(f"{noun} {name!r} is offered by {first} and by {second}; disable one of them with --no-plugin")


def make_selector(spec: specs.SelectorSpec, options: Mapping[str, object]) -> LeaderSelector:
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
    if spec.tier is specs.Tier.NATIVE:
        return NativeSelector(spec.name, selector)
    if spec.tier is specs.Tier.SCALAR and callable(selector):
        return ScalarSelector(spec.name, selector)
    if spec.tier is specs.Tier.BULK and isinstance(selector, LeaderSelector):
        if selector.name != spec.name:
            raise PluginError(f"selector {spec.name!r}: its factory returned a selector named {selector.name!r}")
        return selector
    expected = "a function" if spec.tier is specs.Tier.SCALAR else "a LeaderSelector"
    raise PluginError(f"selector {spec.name!r}: its factory returned {type(selector).__name__}, expected {expected}")
