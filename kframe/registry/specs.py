"""The records that plugins offer: names with factories, which are called when a name is configured."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from kframe.errors import ConfigError, PluginError
from kframe.model.ids import ElectionKind
from kframe.ports.observer import Observer
from kframe.ports.quorum_controller import CommitObserver

#: Names of plugins, selectors and observers.
NAME: Final = re.compile(r"[a-z][a-z0-9]*(?:[-.][a-z0-9]+)*")
#: URL schemes (RFC 3986, lower case).
SCHEME: Final = re.compile(r"[a-z][a-z0-9+.-]*")
#: Names of documents, as in their field ``schema``.
DOCUMENT: Final = re.compile(r"[a-z][a-z0-9]*(?:[-.][a-z0-9]+)*/v[1-9][0-9]*")

_BOOLEANS: Final = {"true": True, "false": False}
_INTEGER: Final = re.compile(r"-?[0-9]{1,18}")
_DECIMAL: Final = re.compile(r"-?[0-9]{1,18}(?:\.[0-9]{1,18})?(?:[eE][+-]?[0-9]{1,3})?")


class Tier(StrEnum):
    """How a selector is called. kframe adapts all tiers to LeaderSelector."""

    BULK = "bulk"
    """An object with ``name`` and ``elect(batch, leader)``: the normal kind."""
    SCALAR = "scalar"
    """A Python function ``(PartitionElection) -> broker id or None``. Easy to write, about 100 times slower."""
    NATIVE = "native"
    """A C function in a PyCapsule or NativeFunction (``kframe/plugin/selector.h``): the fastest. Must not crash."""


@dataclass(frozen=True, slots=True)
class Option:
    """A setting of a selector, passed to the factory as a keyword argument."""

    name: str
    type: type[bool] | type[int] | type[float] | type[str]
    default: bool | int | float | str
    doc: str

    def value(self, value: object, where: str) -> object:
        """``value`` as this option's type. Texts of a command line are parsed. Raises ConfigError."""
        if isinstance(value, str) and self.type is not str:
            parsed = self._parsed(value)
            if parsed is None:
                raise ConfigError(where, repr(value), f"{self.type.__name__}")
            return parsed
        fits = type(value) is self.type or (self.type is float and type(value) is int)
        if not fits:
            raise ConfigError(where, f"{type(value).__name__} {value!r}", self.type.__name__)
        return value

    def _parsed(self, text: str) -> object:
        """The value of a text; None if it has none. Numbers have ASCII digits, as on the command line."""
        if self.type is bool:
            return _BOOLEANS.get(text.lower())
        pattern = _INTEGER if self.type is int else _DECIMAL
        return self.type(text) if pattern.fullmatch(text) else None


@dataclass(frozen=True, slots=True)
class SelectorSpec:
    """A leader selector that a plugin offers.

    ``factory(**options)`` returns a LeaderSelector called ``name`` (BULK), a function (SCALAR), or a capsule or
    NativeFunction (NATIVE). ``kinds`` are the elections that it is for; ``doc`` is a sentence on what it prefers.
    Raises PluginError for invalid fields.
    """

    name: str
    tier: Tier
    factory: Callable[..., Any]
    kinds: tuple[ElectionKind, ...]
    doc: str
    options: tuple[Option, ...] = ()

    def __post_init__(self) -> None:
        _require(self.name, NAME, "selector")
        kinds: tuple[object, ...] = self.kinds
        if not kinds or not all(isinstance(kind, ElectionKind) for kind in kinds):
            raise PluginError(f"selector {self.name!r}: kinds are {kinds!r}, expected one ElectionKind or more")
        _require_factory("selector", self.name, self.tier, self.factory)

    def values(self, configured: Mapping[str, object]) -> dict[str, object]:
        """All options by name, with defaults for those not configured. Raises ConfigError."""
        known = {option.name: option for option in self.options}
        for name in configured:
            if name not in known:
                expected = f"one of {', '.join(known)}" if known else "no options"
                raise ConfigError(f"selector {self.name}", f"option {name!r}", expected)
        return {
            name: option.value(configured[name], f"selector {self.name}, option {name}")
            if name in configured
            else option.default
            for name, option in known.items()
        }


@dataclass(frozen=True, slots=True)
class PortSpec:
    """A store, a transport, a live cluster or a server that a plugin offers for the URLs of a scheme.

    ``factory(url)`` makes a store, ``factory(url, config)`` the others; ``config`` has texts by Kafka's keys, as in
    ``server.properties``. A factory written as ``"module:attribute"`` is imported when a URL first names the scheme, so
    that the offer alone does not import a client library.

    ``sandbox``, a factory of the same form, makes the environment in which ``kframe plugins check`` checks a store or a
    transport (``StoreSpec``, ``TransportSpec``).
    """

    scheme: str
    factory: Callable[..., Any] | str
    doc: str
    sandbox: Callable[..., Any] | str | None = None

    def __post_init__(self) -> None:
        _require(self.scheme, SCHEME, "URL scheme")

    @property
    def name(self) -> str:
        """The scheme."""
        return self.scheme

    def make(self, url: str, *arguments: object) -> Any:
        """Call the factory for ``url``. Raises PluginError if it cannot be imported."""
        return self._imported(self.factory)(url, *arguments)

    def make_sandbox(self, url: str, *arguments: object) -> Any:
        """Make the environment for checks. Raises PluginError if none is offered, or it cannot be imported."""
        if self.sandbox is None:
            raise PluginError(f"{self.scheme}: nothing is offered to try it in")
        return self._imported(self.sandbox)(url, *arguments)

    def _imported(self, factory: Callable[..., Any] | str) -> Callable[..., Any]:
        return _import_factory(self.scheme, factory)


class StoreSpec(PortSpec):
    """A Store (``kframe.ports.store``).

    ``sandbox(url)`` makes empty storage without other users (``kframe.ports.storage.ExternalChanges``).
    Without it, checks use a store alone, and no broker registers or unregisters.
    """


class TransportSpec(PortSpec):
    """A Transport (``kframe.ports.transport``); ``broker.id`` in ``config`` is the controller's own id.

    ``sandbox(url, cluster)`` makes brokers, each at its endpoint in ``cluster``, and a transport that is not open, as
    ``kframe.testing.transport_sandbox.TransportSandbox``. Without it, the transport is not checked.
    """


class ClusterSpec(PortSpec):
    """Live clusters (``kframe.ports.live_cluster.LiveCluster``). A factory does not connect."""


class AdminSpec(PortSpec):
    """Admin APIs of live clusters (``kframe.ports.administration.Administration``). ``config`` has the keys of
    Kafka's clients."""


class ServerSpec(PortSpec):
    """A Server (``kframe.ports.server``). ``broker.id`` in ``config`` is the controller's own id."""


class ControllerSpec(PortSpec):
    """A QuorumController (``kframe.ports.quorum_controller``). ``config`` has Kafka's keys of the node."""


@dataclass(frozen=True, slots=True)
class ObserverSpec:
    """An observer; ``factory()`` makes a new one for each controller.

    A ZooKeeper controller takes an Observer, a KRaft controller a CommitObserver. An object may be both.
    """

    name: str
    factory: Callable[[], Observer | CommitObserver]
    doc: str

    def __post_init__(self) -> None:
        _require(self.name, NAME, "observer")


@dataclass(frozen=True, slots=True)
class CheckSpec:
    """Further checks of plugins on offer, for ``kframe plugins check``.

    ``check(offer, url)`` returns the ``kframe.testing.selector_checks.Finding`` for a SelectorSpec, StoreSpec or
    TransportSpec. ``url`` is where a store or transport is checked. It may raise InputError and PluginError for an
    offer that it cannot check. Given as ``"module:attribute"`` it is imported on first use.
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

    ``factory(runner, settings, source)`` makes a ``kframe.scenario.state.BrokerModels``. Given as
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


@dataclass(frozen=True, slots=True)
class SnapshotFormatSpec:
    """A format of snapshots that ``kframe.snapshot.read_snapshot`` reads, in a file or directory.

    ``detect(path, start)`` returns whether a ``Path`` or stream is in the format; ``start`` is the beginning of a file,
    empty for a directory. ``read(path, progress, faults)`` returns a ``Snapshot`` or raises SnapshotError.
    ``write(snapshot, path, force)``, if offered, writes files whose name ends with ``suffix``. ``history(path)``, if
    offered, returns a ``kframe.plugin.live.ClusterHistory``, or None for a file without one. A function given as
    ``"module:attribute"`` is imported on first use.
    """

    name: str
    detect: Callable[..., bool] | str
    read: Callable[..., Any] | str
    doc: str
    suffix: str | None = None
    write: Callable[..., Any] | str | None = None
    history: Callable[..., Any] | str | None = None

    def __post_init__(self) -> None:
        _require(self.name, NAME, "snapshot format")

    def detects(self, path: object, start: bytes) -> bool:
        """Whether a file or directory is in the format. Raises PluginError if the function cannot be imported."""
        return bool(_import_factory(self.name, self.detect)(path, start))

    def read_snapshot(self, path: object, progress: object, faults: object) -> Any:
        """The snapshot in a file or directory. Raises PluginError if the function cannot be imported."""
        return _import_factory(self.name, self.read)(path, progress, faults)

    def open_history(self, path: object) -> Any:
        """The history in a file or directory, or None. Raises PluginError if the function cannot be imported."""
        return None if self.history is None else _import_factory(self.name, self.history)(path)

    def write_snapshot(self, snapshot: object, path: object, force: bool) -> None:
        """Write a file. Raises PluginError if the format is not written, or its function cannot be imported."""
        if self.write is None:
            raise PluginError(f"snapshot format {self.name}: it is read, but not written")
        _import_factory(self.name, self.write)(snapshot, path, force)


@dataclass(frozen=True, slots=True)
class CostTermSpec:
    """A cost of placing replicas that a plugin offers for plans: ``kframe plan generate --cost NAME``.

    ``factory()`` returns a function, by ``tier``. BULK: ``(PlacementBatch) -> costs``, int64 (k, b). SCALAR:
    ``(PartitionPlacement) -> {broker id: cost}``, where brokers without an entry cost nothing. NATIVE: a capsule or
    NativeFunction (``placement.h``). A cost is 0 to 2^53 in the unit of the plan, replicas or bytes, or FORBIDDEN.
    """

    name: str
    tier: Tier
    factory: Callable[[], Any]
    doc: str

    def __post_init__(self) -> None:
        _require(self.name, NAME, "cost term")
        _require_factory("cost term", self.name, self.tier, self.factory)


@dataclass(frozen=True, slots=True)
class GoalSpec:
    """A balance of brokers that a plugin offers for plans: ``kframe plan generate --goal NAME``.

    ``factory()`` returns a function, by ``tier``, for the weight of a replica of each partition. BULK:
    ``(PlacementBatch) -> weights``, int64 (k,). SCALAR: ``(PartitionPlacement) -> weight``. NATIVE: a capsule or
    NativeFunction (``placement.h``). A weight is 0 to 2^53 in ``unit``. ``limits(GoalTotals)`` returns the lower and
    the upper limit of the weight on each broker, two int64 (b,); None stands for shares by capacity and tolerance.
    """

    name: str
    tier: Tier
    factory: Callable[[], Any]
    doc: str
    limits: Callable[..., Any] | None = None
    unit: str = "units"

    def __post_init__(self) -> None:
        _require(self.name, NAME, "goal")
        _require_factory("goal", self.name, self.tier, self.factory)


@dataclass(frozen=True, slots=True)
class DocumentSpec:
    """A JSON document that a command prints under ``name`` (``kframe.whatif/v1``), and the type of its content.

    ``kframe schema`` prints its JSON Schema. ``kind`` is a msgspec Struct without the field ``schema``, or
    ``"module:attribute"``, which is imported on first use. With ``rows``, it is the type of a row of ``emit_rows``.
    """

    name: str
    kind: type | str
    doc: str
    rows: bool = False
    is_file: bool = False
    """Whether ``kind`` describes a file that kframe reads: the whole document, with its own ``schema`` if any."""
    open_ended: bool = False
    """Whether the document has further fields, whose names depend on its content."""
    fields: type | None = None
    """The type of the fields beside ``rows``, if there are some."""

    def __post_init__(self) -> None:
        _require(self.name, DOCUMENT, "document")

    def type(self) -> Any:
        """The type of the content. Raises PluginError if it cannot be imported."""
        return _import_factory(self.name, self.kind)


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


def _require(name: object, pattern: re.Pattern[str], noun: str) -> None:
    if not isinstance(name, str) or not pattern.fullmatch(name):
        raise PluginError(f"{noun} {name!r}: expected lower-case letters and digits in words joined by dashes")


def _require_factory(noun: str, name: str, tier: object, factory: object) -> None:
    if not isinstance(tier, Tier):
        raise PluginError(f"{noun} {name!r}: tier is {tier!r}, expected a Tier")
    if not callable(factory):
        raise PluginError(f"{noun} {name!r}: factory is {factory!r}, expected something to call")
