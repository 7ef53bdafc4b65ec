"""What kframe itself offers, by the same hooks as any plugin.

The ports in memory live in ``kframe.embedded``, a layer above this one; they are imported by name when they are chosen.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from kframe.core.selectors.kafka_selectors import SHIPPED
from kframe.model.cluster import ClusterState
from kframe.model.elections import LeaderSelector
from kframe.registry.hookspecs import hookimpl
from kframe.registry.specs import SelectorSpec, StoreSpec, Tier, TransportSpec

#: Imported by name when it is chosen, because it lives above this layer.
_EMBEDDED_FAR_END: Final = "kframe.testing.far_end:embedded_far_end"


@hookimpl
def kframe_leader_selectors() -> Iterator[SelectorSpec]:
    """Kafka's rules by name."""
    for selector, kinds in SHIPPED.items():
        yield SelectorSpec(selector.name, Tier.BULK, _giving(selector), kinds, _summary(selector), row_by_row=True)


@hookimpl
def kframe_stores() -> list[StoreSpec]:
    """The store in memory."""
    doc = "In memory, with ZooKeeper's rules; empty at first."
    return [StoreSpec("memory", lambda url: _memory().connect(), doc, lambda url: _memory())]


@hookimpl
def kframe_transports() -> list[TransportSpec]:
    """The transports in memory."""
    return [
        TransportSpec(
            "embedded",
            _embedded_brokers,
            "Brokers in memory, which answer at once and without error.",
            _EMBEDDED_FAR_END,
        ),
        TransportSpec("recording", _recording_transport, "Keeps every request in memory; nobody answers."),
        TransportSpec("counting", _counting_transport, "Counts requests and partitions; nobody answers."),
    ]


def _giving(selector: LeaderSelector) -> Callable[[], LeaderSelector]:
    return lambda: selector


def _summary(selector: LeaderSelector) -> str:
    return (type(selector).__doc__ or "").partition("\n")[0]


def _embedded() -> Any:
    return importlib.import_module("kframe.embedded")


def _memory() -> Any:
    return _embedded().MemoryEnsemble.from_cluster(ClusterState())


def _embedded_brokers(url: str, config: Mapping[str, str]) -> Any:
    return _embedded().EmbeddedBrokers(_embedded().VirtualClock())


def _recording_transport(url: str, config: Mapping[str, str]) -> Any:
    return _embedded().RecordingTransport()


def _counting_transport(url: str, config: Mapping[str, str]) -> Any:
    return _embedded().CountingTransport()
