"""Builds a controller from objects, and from plugins by name or URL."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from kframe.core import controller as core
from kframe.core.selectors.leader_selection import Selection
from kframe.model.config import ControllerConfig
from kframe.ports.clock import Clock
from kframe.ports.observer import Observer
from kframe.ports.server import Server
from kframe.ports.store import Store
from kframe.ports.transport import StoreReader, Transport
from kframe.registry.registry import Registry, build_registry
from kframe.runtime.clock import SystemClock
from kframe.runtime.controller import Controller
from kframe.runtime.loop import ControllerLoop
from kframe.runtime.observers import is_observer, named_observers
from kframe.runtime.selectors import GivenSelectors, selectors_by_kind


@dataclass(slots=True)
class ControllerBuilder:
    """The parts of a controller. Nothing is opened or started here.

    Plugins are loaded only if a part is given by URL or by name.
    """

    controller_id: int
    """The id of the controller: that of a broker, or an unused id."""
    store: Store | str
    """A store of its own, or a URL such as ``memory:``."""
    transport: Transport | str
    """A transport of its own, or a URL such as ``embedded:``."""
    config: Mapping[str, object] | ControllerConfig = field(default_factory=dict)
    """Values by Kafka's keys, with Kafka's defaults."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """Texts by Kafka's keys for transports and servers given by URL. ``config`` takes precedence over these, and
    ``broker.id`` is always the id of the controller."""
    servers: Iterable[Server[Controller] | str] = ()
    """Servers that expose the controller: objects or URLs."""
    selectors: GivenSelectors = ()
    """Leader selectors by kind of election, or names of selectors, each for all its kinds. Kafka's own rule applies to
    the other kinds."""
    selector_options: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    """Options of selectors given by name."""
    observers: Iterable[Observer | str] = ()
    """Observers of every step: objects, or names."""
    instances_first: bool = False
    """Whether it takes precedence over brokers. A standby then claims the role when it becomes free, and takes it from
    a broker. It never takes the role from ``kframe.never.replicas`` or another node that is no broker."""
    clock: Clock = field(default_factory=SystemClock)
    registry: Registry | None = None
    """The plugins for names and URLs. By default all that are installed."""

    def build(self) -> Controller:
        """Make the controller, not opened.

        Raises ConfigError for an invalid key or value of the configuration. Raises PluginError for an unknown name or
        URL scheme, and for a selector that is not for its kind of election. Build several controllers from the same
        builder only if store and transport are URLs.
        """
        config = self.config if isinstance(self.config, ControllerConfig) else ControllerConfig(self.config)
        selection = Selection(selectors_by_kind(self.selectors, self.selector_options, self._plugins))
        store = self._plugins().open_store(self.store) if isinstance(self.store, str) else self.store
        settings = {**self.settings, **config.originals, "broker.id": str(self.controller_id)}
        transport = (
            self._plugins().open_transport(self.transport, settings)
            if isinstance(self.transport, str)
            else self.transport
        )
        if isinstance(transport, StoreReader):
            transport.attach_store(store)
        servers = [
            self._plugins().open_server(server, settings) if isinstance(server, str) else server
            for server in self.servers
        ]
        observers = named_observers(self.observers, is_observer, self._plugins)
        controller = core.ControllerCore(self.controller_id, config, selection)
        loop = ControllerLoop(controller, store, transport, self.clock, observers, instances_first=self.instances_first)
        return Controller(loop, servers)

    def _plugins(self) -> Registry:
        if self.registry is None:
            self.registry = build_registry()
        return self.registry
