"""``kframe controller run``: build a controller, describe it, and run it until a signal stops it."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import kframe
from kframe.cli.live import CONNECT
from kframe.cli.monitor import LISTENER as METRICS
from kframe.cli.monitor import Monitor, is_loopback, parse_address
from kframe.cli.output import BadInput
from kframe.cli.run_keys import ID_KEYS, LISTENERS
from kframe.cli.selectors import ChosenSelectors, selectors_text
from kframe.cli.stop_signal import StopSignal
from kframe.errors import ConfigError, PluginError
from kframe.model.config import KEYS, NEVER_REPLICAS, ControllerConfig
from kframe.model.whole_numbers import INT32_MAX, parse_whole
from kframe.ports.server import Server
from kframe.ports.store import Store
from kframe.registry.registry import Registry
from kframe.runtime.builder import ControllerBuilder
from kframe.runtime.controller import Controller
from kframe.settings.settings import Settings
from kframe.snapshot.instances import Instance, InstanceRegistration

_log = logging.getLogger("kframe.controller")

PROTOCOL: Final = "inter.broker.protocol.version"
#: Transport and server for Kafka's protocol, and the transport without the plugin.
WIRE: Final = "kafka:"
RECORDING: Final = "recording:"
NO_SELECTORS: Final = ChosenSelectors({})
#: Kafka assigns ids above this value to brokers without an id (Kafka's default).
RESERVED_MAX: Final = ("reserved.broker.max.id", 1000)


@dataclass(frozen=True, slots=True)
class NetworkSettings:
    """The transport and the servers of a controller."""

    transport: str
    servers: tuple[str, ...]
    metrics_listen: str | None


def own_id(settings: Settings) -> int:
    """The controller id for the election. Raises BadInput and ConfigError."""
    key = next((key for key in ID_KEYS if settings.get(key) is not None), None)
    if key is None:
        raise BadInput(f"no id for the controller: give --id, or a file with {ID_KEYS[0]} by --config")
    text = (settings.get(key) or "").strip()
    number = parse_whole(text)
    if number is None:
        raise ConfigError(f"{settings.origin(key)} key {key}", repr(text[:80]), f"a number from 0 to {INT32_MAX}")
    return number


def refuse_id_of_broker(settings: Settings, addresses: Mapping[int, str], duplicate: bool) -> None:
    """Raise ConfigError if a registered broker has our id, unless ``duplicate``. ``addresses`` are broker addresses by
    id."""
    controller_id = own_id(settings)
    if controller_id in addresses and not duplicate:
        raise ConfigError(
            "config key broker.id",
            f"{controller_id}, which is the id of the registered broker at {addresses[controller_id]}",
            "an id that no broker has, or --allow-duplicate-id",
        )


def network_settings(
    registry: Registry, transport: str | None, servers: Sequence[str], metrics_listen: str | None
) -> NetworkSettings:
    """Apply defaults: Kafka's protocol for transport and servers if a plugin has it, else the recording transport."""
    scheme = WIRE.removesuffix(":")
    if transport is None:
        transport = WIRE if scheme in registry.transports else RECORDING
        servers = servers or ((WIRE,) if transport == WIRE and scheme in registry.servers else ())
    return NetworkSettings(transport, tuple(servers), metrics_listen)


def assemble(
    settings: Settings,
    store: Store,
    network: NetworkSettings,
    registry: Registry,
    instance: Instance | None = None,
    insist: bool | None = None,
    selectors: ChosenSelectors = NO_SELECTORS,
) -> Controller:
    """A controller, not started, whose own id never holds replicas. Its pages name ``instance``.

    ``insist``: whether instances of kframe take precedence over brokers; None: if there is another instance.
    Kafka's rule decides the kinds of election without one of ``selectors``. Raises BadInput and ConfigError.
    """
    controller_id, config = own_id(settings), settings.controller_config()
    controller_ids = {*config[NEVER_REPLICAS], controller_id}
    never = ",".join(map(str, sorted(controller_ids)))
    config = ControllerConfig({**config.originals, NEVER_REPLICAS: never})
    servers: list[Server[Controller] | str] = [*network.servers]
    if network.metrics_listen is not None:
        token = "" if instance is None else instance.token
        servers.append(Monitor(network.metrics_listen, token, selectors.records))
    builder = ControllerBuilder(
        controller_id,
        store,
        network.transport,
        config,
        settings=settings.values,
        servers=servers,
        selectors=selectors.by_kind,
        registry=registry,
        instances_first=len(controller_ids) > 1 if insist is None else insist,
    )
    try:
        with settings.located():
            return builder.build()
    except PluginError as error:
        raise BadInput(f"--transport or --server: {error}") from error


def risks(settings: Settings, network: NetworkSettings, brokers: Collection[int]) -> Iterator[str]:
    """Warnings about these settings for the operator. ``brokers`` are registered."""
    controller_id, (key, default) = own_id(settings), RESERVED_MAX
    if controller_id in brokers:
        yield f"id {controller_id} is that of a registered broker: clients and brokers cannot tell them apart"
    reserved = settings.get(key) or str(default)
    reserved_max = parse_whole(reserved.strip())
    if reserved_max is not None and controller_id > reserved_max:
        yield f"id {controller_id} is above {key}={reserved.strip()}: a broker without an id may get the same id"
    if network.transport == RECORDING:
        yield "transport recording: no request reaches a broker"
    elif not network.servers:
        yield "no server: brokers and clients cannot send requests to this controller"
    plain_listeners = [text for text in _texts(settings.get(LISTENERS)) if _is_plain(settings, text)]
    if plain_listeners and network.servers:
        yield f"{', '.join(plain_listeners)}: no TLS, traffic can be read and changed"
    if network.metrics_listen is not None and not is_loopback(parse_address(network.metrics_listen)[0]):
        yield f"--metrics-listen {network.metrics_listen}: any client may read the pages; they have no passwords"


def summary(
    settings: Settings, controller: Controller, network: NetworkSettings, selectors: ChosenSelectors = NO_SELECTORS
) -> str:
    """One line with the identity, the addresses, the protocols and the selectors of this controller."""
    config = settings.controller_config()
    protocol, listener = config.originals.get(PROTOCOL, KEYS[PROTOCOL].default), config["inter.broker.listener.name"]
    served = [f"{name} on {address}" for server in controller.servers for name, address in server.addresses.items()]
    return (
        f"kframe {kframe.__version__} is a candidate for controller as {own_id(settings)} at {settings.get(CONNECT)}, "
        f"transport {network.transport}, listeners {', '.join(served) or 'none'}, "
        f"inter-broker protocol {protocol}, listener {listener}, leader selectors {selectors_text(selectors.records)}"
    )


def serve(
    controller: Controller,
    settings: Settings,
    network: NetworkSettings,
    selectors: ChosenSelectors,
    store: Store,
    instance: Instance,
    *,
    takeover: bool,
) -> None:
    """Run until a signal arrives. A second signal ends the process as without a handler.

    The summary is logged after everything is open, and the addresses of the pages are published to other instances if
    the store supports it. The controller stops in order: finish the current event, resign, answer waiting callers,
    close.
    """
    with StopSignal() as stop_signal:
        controller.start(takeover=takeover)
        addresses = [server.addresses[METRICS] for server in controller.servers if METRICS in server.addresses]
        if isinstance(store, InstanceRegistration) and addresses:
            store.register_instance(replace(instance, metrics=addresses[0]))
        _log.info("%s", summary(settings, controller, network, selectors))
        try:
            stop_signal.wait()
            _log.info("received a signal to stop")
        finally:
            controller.stop()
        _log.info("stopped")


def _is_plain(settings: Settings, listener: str) -> bool:
    """Whether a listener has no TLS, by its name or by ``listener.security.protocol.map``."""
    name = listener.partition("://")[0].upper()
    protocols = (
        text.upper().replace(" ", "").partition(":") for text in _texts(settings.get("listener.security.protocol.map"))
    )
    return {key: protocol for key, _, protocol in protocols}.get(name, name) in ("PLAINTEXT", "SASL_PLAINTEXT")


def _texts(value: str | None) -> list[str]:
    return [text.strip() for text in (value or "").split(",") if text.strip()]
