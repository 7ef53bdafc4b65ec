"""What kframe itself offers, by the same hooks as any plugin."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from kframe.core.selectors import SHIPPED
from kframe.model.elections import LeaderSelector
from kframe.plug.hookspecs import hookimpl
from kframe.plug.specs import SelectorSpec, StoreSpec, Tier, TransportSpec


@hookimpl
def kframe_leader_selectors() -> Iterator[SelectorSpec]:
    """Kafka's rules by name."""
    for selector, kinds in SHIPPED.items():
        yield SelectorSpec(selector.name, Tier.BULK, _giving(selector), kinds, _summary(selector))


@hookimpl
def kframe_stores() -> list[StoreSpec]:
    """The store in memory."""
    return [
        StoreSpec("memory", "kframe.embedded:open_store", "In memory, with ZooKeeper's rules; gone with the process.")
    ]


@hookimpl
def kframe_transports() -> list[TransportSpec]:
    """The transports in memory."""
    return [TransportSpec("recording", "kframe.embedded:open_transport", "Keeps every request in memory, sends none.")]


def _giving(selector: LeaderSelector) -> Callable[[], LeaderSelector]:
    return lambda: selector


def _summary(selector: LeaderSelector) -> str:
    return (type(selector).__doc__ or "").partition("\n")[0]
