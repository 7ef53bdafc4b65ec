"""What plugins offer: named records with a factory each. Nothing is made until a name is chosen."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, Protocol

from kframe.errors import ConfigError, PluginError
from kframe.model.effects import Effect
from kframe.model.events import Answer, Event
from kframe.model.ids import ElectionKind

#: A plugin, a selector or an observer is named like this.
NAME: Final = re.compile(r"[a-z][a-z0-9]*(?:[-.][a-z0-9]+)*")
#: The scheme of a URL (RFC 3986, lower case).
SCHEME: Final = re.compile(r"[a-z][a-z0-9+.-]*")

_WORDS: Final = {"true": True, "false": False}


class Tier(StrEnum):
    """How a selector is called; all tiers are adapted to LeaderSelector."""

    BULK = "bulk"
    """An object with ``name`` and ``elect(batch, leader)``: the normal kind."""
    SCALAR = "scalar"
    """A Python function ``(PartitionElection) -> broker id or None``: easy to write, about 100 times slower."""
    NATIVE = "native"
    """A C function in a PyCapsule or NativeFunction (``kframe/plugin/selector.h``): the fastest; must not crash."""


@dataclass(frozen=True, slots=True)
class Option:
    """One setting of a selector; its value comes to the factory as a keyword argument of the same name."""

    name: str
    type: type[bool] | type[int] | type[float] | type[str]
    default: bool | int | float | str
    doc: str

    def value(self, given: object, where: str) -> object:
        """``given`` as this option's type; text, as a command line has it, is read. Raises ConfigError."""
        if isinstance(given, str) and self.type is not str:
            try:
                return _WORDS[given.lower()] if self.type is bool else self.type(given)
            except (KeyError, ValueError):
                raise ConfigError(where, repr(given), f"{self.type.__name__}") from None
        fits = type(given) is self.type or (self.type is float and type(given) is int)
        if not fits:
            raise ConfigError(where, f"{type(given).__name__} {given!r}", self.type.__name__)
        return given


@dataclass(frozen=True, slots=True)
class SelectorSpec:
    """A leader selector on offer.

    ``factory(**options)`` makes it: a LeaderSelector called ``name`` (BULK), a function (SCALAR), a capsule or
    NativeFunction (NATIVE). ``kinds`` are the elections that it is for; ``doc`` says in a sentence what it prefers.
    ``row_by_row`` promises that each choice hangs on its own partition and the brokers alone: not on others of the
    batch, its ``seed`` or the numbers of its topics. A cluster may then be played in parts (``kframe.spark``).
    Raises PluginError if a field cannot be right.
    """

    name: str
    tier: Tier
    factory: Callable[..., Any]
    kinds: tuple[ElectionKind, ...]
    doc: str
    options: tuple[Option, ...] = ()
    row_by_row: bool = False

    def __post_init__(self) -> None:
        _require(self.name, NAME, "selector")
        kinds: tuple[object, ...] = self.kinds
        if not kinds or not all(isinstance(kind, ElectionKind) for kind in kinds):
            raise PluginError(f"selector {self.name!r}: kinds are {kinds!r}, expected one ElectionKind or more")
        tier: object = self.tier
        if not isinstance(tier, Tier):
            raise PluginError(f"selector {self.name!r}: tier is {tier!r}, expected a Tier")
        if not callable(self.factory):
            raise PluginError(f"selector {self.name!r}: factory is {self.factory!r}, expected something to call")

    def values(self, given: Mapping[str, object]) -> dict[str, object]:
        """All options by name: those given, the defaults of the others. Raises ConfigError."""
        known = {option.name: option for option in self.options}
        for name in given:
            if name not in known:
                expected = f"one of {', '.join(known)}" if known else "no options"
                raise ConfigError(f"selector {self.name}", f"option {name!r}", expected)
        return {
            name: option.value(given[name], f"selector {self.name}, option {name}") if name in given else option.default
            for name, option in known.items()
        }


@dataclass(frozen=True, slots=True)
class PortSpec:
    """A store, a transport, a live cluster or a server on offer, for URLs of one scheme.

    ``factory(url)`` makes a store, ``factory(url, config)`` the others; ``config`` are values by Kafka's keys as texts,
    such as a ``server.properties`` has them. Given as ``"module:attribute"`` it is imported when it is first chosen, so
    that offering a store costs nobody the import of its client library.

    ``trials`` makes, likewise, what ``kframe plugins check`` tries a store or a transport in (``StoreSpec``,
    ``TransportSpec``).
    """

    scheme: str
    factory: Callable[..., Any] | str
    doc: str
    trials: Callable[..., Any] | str | None = None

    def __post_init__(self) -> None:
        _require(self.scheme, SCHEME, "URL scheme")

    def make(self, url: str, *further: object) -> Any:
        """What is there for ``url``. Raises PluginError if the factory cannot be imported."""
        return self._imported(self.factory)(url, *further)

    def make_trials(self, url: str, *further: object) -> Any:
        """What to try it in. Raises PluginError if none is offered, or it cannot be imported."""
        if self.trials is None:
            raise PluginError(f"{self.scheme}: nothing is offered to try it in")
        return self._imported(self.trials)(url, *further)

    def _imported(self, factory: Callable[..., Any] | str) -> Callable[..., Any]:
        return _import_factory(self.scheme, factory)


class StoreSpec(PortSpec):
    """A Store (``kframe.model.ports``) on offer.

    ``trials(url)`` makes empty storage that nobody else uses, as ``kframe.model.surroundings.ClusterContext``; without,
    stores are tried alone, and no broker comes or goes.
    """


class TransportSpec(PortSpec):
    """A Transport (``kframe.model.ports``) on offer; ``broker.id`` in ``config`` is the controller's own id.

    ``trials(url, cluster)`` makes brokers, each at its endpoint in ``cluster``, and a transport that is not open, as
    ``kframe.testing.far_end.FarEnd``; without, a transport is not tried.
    """


class ClusterSpec(PortSpec):
    """Live clusters (``kframe.snapshot.live.LiveCluster``) on offer. Nothing is connected when one is made."""


class AdminSpec(PortSpec):
    """Admin APIs of live clusters (``kframe.snapshot.administration.Administration``) on offer; ``config`` has the keys
    of Kafka's clients."""


class ServerSpec(PortSpec):
    """A Server (``kframe.api.serving``) on offer; ``broker.id`` in ``config`` is the controller's own id."""


class Observer(Protocol):
    """Watches a controller work, in whole batches. It reads; what it raises is logged and concerns nobody else."""

    def stepped(self, cause: Event | Answer, effects: Sequence[Effect]) -> None:
        """The controller has taken ``cause`` in and asks for ``effects``, in this order, none performed yet."""


@dataclass(frozen=True, slots=True)
class ObserverSpec:
    """An observer on offer; ``factory()`` makes one for each controller."""

    name: str
    factory: Callable[[], Observer]
    doc: str

    def __post_init__(self) -> None:
        _require(self.name, NAME, "observer")


@dataclass(frozen=True, slots=True)
class CheckSpec:
    """Further checks of plugins on offer, for ``kframe plugins check``.

    ``check(offer, url)`` returns the ``kframe.registry.checks.Finding`` for a SelectorSpec, StoreSpec or TransportSpec.
    ``url`` is where a store or transport is checked. It may raise InputError and PluginError for an offer that it
    cannot check. Given as ``"module:attribute"`` it is imported on first use.
    """

    name: str
    check: Callable[..., Any] | str
    doc: str

    def __post_init__(self) -> None:
        _require(self.name, NAME, "check")

    def run(self, offer: object, url: str) -> Any:
        """The finding for ``offer``. Raises PluginError if the check cannot be imported."""
        return _import_factory(self.name, self.check)(offer, url)


@dataclass(frozen=True, slots=True)
class BrokerModelSpec:
    """Broker models on offer, for scenarios with ``brokers_replicate: true``.

    ``factory(runner, settings, source)`` makes a ``kframe.scenario.replication.Replication``. Given as
    ``"module:attribute"`` it is imported on first use.
    """

    name: str
    factory: Callable[..., Any] | str
    doc: str

    def __post_init__(self) -> None:
        _require(self.name, NAME, "broker model")

    def make(self, *arguments: object) -> Any:
        """The broker models of a scenario. Raises PluginError if the factory cannot be imported."""
        return _import_factory(self.name, self.factory)(*arguments)


def _import_factory(name: str, factory: Callable[..., Any] | str) -> Callable[..., Any]:
    """``factory``, imported if it is named as ``"module:attribute"``."""
    if not isinstance(factory, str):
        return factory
    module, _, attribute = factory.partition(":")
    try:
        imported: Callable[..., Any] = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise PluginError(f"{name}: {factory} cannot be imported: {error}") from error
    return imported


def _require(name: object, pattern: re.Pattern[str], what: str) -> None:
    if not isinstance(name, str) or not pattern.fullmatch(name):
        raise PluginError(f"{what} {name!r}: expected lower-case letters and digits in words joined by dashes")
