"""Putting a controller together from parts of one's own, and from what plugins offer by name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from kframe.api.controller import Controller
from kframe.api.serving import Server
from kframe.core import controller as core
from kframe.core.selectors.leader_selection import Selection
from kframe.errors import PluginError
from kframe.model.config import ControllerConfig
from kframe.model.elections import LeaderSelector
from kframe.model.ids import ElectionKind
from kframe.model.ports import Clock, Store, StoreReader, Transport
from kframe.registry.registry import Registry, build_registry
from kframe.registry.specs import Observer
from kframe.runtime.clock import SystemClock
from kframe.runtime.loop import ControllerLoop


@dataclass(slots=True)
class ControllerBuilder:
    """What a controller is made of; every part may be replaced. Nothing is opened or started here.

    What is named, by URL or by name, is looked up among plugins; they are loaded only then.
    """

    controller_id: int
    """The id under which it stands for election; a broker's, or one that no broker has."""
    store: Store | str
    """Where state is kept: a store that nobody else uses, or a URL such as ``memory:``."""
    transport: Transport | str
    """How requests reach brokers: a transport that nobody else uses, or a URL such as ``embedded:``."""
    config: Mapping[str, object] | ControllerConfig = field(default_factory=dict)
    """Values by Kafka's keys; what is left out has Kafka's default."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """Values by any of Kafka's keys, as texts, for the transport and the servers that are given by URL. They read what
    stands in ``config`` too, which counts where both say something; ``broker.id`` is the controller's id to them."""
    servers: Iterable[Server | str] = ()
    """What others reach the controller by: servers that nobody else uses, or URLs."""
    selectors: Mapping[ElectionKind, LeaderSelector | str] | Iterable[str] = ()
    """Who chooses leaders: by kind of election, or names of selectors, each for all the kinds that it is for. Kafka's
    own rule chooses where nobody is named."""
    selector_options: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    """Options of the selectors that are given by name."""
    observers: Iterable[Observer | str] = ()
    """Who is shown every step: objects, or names."""
    instances_first: bool = False
    """Whether it comes before brokers: a standby claims the role at the notification that it is free, and takes it from
    a broker that has it, never from ``kframe.never.replicas`` or another node that is no broker."""
    clock: Clock = field(default_factory=SystemClock)
    registry: Registry | None = None
    """The plugins to look names up in; without it, all that are installed."""

    def build(self) -> Controller:
        """Make the controller; it does nothing yet.

        Raises ConfigError for a key or value of the configuration, PluginError for a name or URL that no plugin
        serves, or a selector that is not for its kind of election. Build one controller from one builder, unless store
        and transport are URLs.
        """
        config = self.config if isinstance(self.config, ControllerConfig) else ControllerConfig(self.config)
        selection = Selection(self._selectors())
        store = self._plugins().open_store(self.store) if isinstance(self.store, str) else self.store
        settings = {**self.settings, **config.given, "broker.id": str(self.controller_id)}
        transport = (
            self._plugins().open_transport(self.transport, settings)
            if isinstance(self.transport, str)
            else self.transport
        )
        if isinstance(transport, StoreReader):
            transport.attach_store(store)
        servers = [self._plugins().open_server(one, settings) if isinstance(one, str) else one for one in self.servers]
        observers = [self._observer(one) for one in self.observers]
        controller = core.Controller(self.controller_id, config, selection)
        loop = ControllerLoop(
            controller, store, transport, self.clock, observers, instances_first=self.instances_first
        )  # fmt: skip
        return Controller(loop, servers)

    def _plugins(self) -> Registry:
        if self.registry is None:
            self.registry = build_registry()
        return self.registry

    def _selectors(self) -> Mapping[ElectionKind, LeaderSelector]:
        if not isinstance(self.selectors, Mapping):
            names = tuple(self.selectors)
            return self._plugins().selectors_for(names, self.selector_options) if names else {}
        return {kind: self._selector(kind, one) for kind, one in self.selectors.items()}

    def _selector(self, kind: ElectionKind, selector: LeaderSelector | str) -> LeaderSelector:
        if not isinstance(selector, str):
            return selector
        made = self._plugins().selector(selector, self.selector_options.get(selector))
        if kind not in self._plugins().selectors[selector].kinds:
            raise PluginError(f"selector {selector!r} is not for {kind.name} elections")
        return made

    def _observer(self, observer: Observer | str) -> tuple[str, Observer]:
        if isinstance(observer, str):
            return observer, self._plugins().observer(observer)
        return str(getattr(observer, "name", type(observer).__name__)), observer
