"""The plugin that kframe itself is: Kafka's leader selectors, and a store and transports in memory.

``kframe.embedded`` is a layer above this one, so it is imported only when a URL names its store or transports.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from functools import partial
from typing import Any, Final

from kframe.core.selectors.kafka_selectors import SHIPPED
from kframe.model.cluster import ClusterState
from kframe.registry.hookspecs import hookimpl
from kframe.registry.leader_placement import PLACED, AvoidBrokers, PreferRacks
from kframe.registry.specs import Option, SelectorSpec, StoreSpec, Tier, TransportSpec

#: Imported by name when it is chosen, because it lives above this layer.
_EMBEDDED_SANDBOX: Final = "kframe.testing.transport_sandbox:embedded_sandbox"


@hookimpl
def kframe_leader_selectors() -> Iterator[SelectorSpec]:
    """Offer Kafka's own selectors, and those that decide where leaders are."""
    for selector, kinds in SHIPPED.items():
        doc = (type(selector).__doc__ or "").partition("\n")[0]
        yield SelectorSpec(selector.name, Tier.BULK, partial(lambda shipped: shipped, selector), kinds, doc)
    brokers = Option("brokers", str, "", "Ids of brokers that lead nothing as long as another replica may lead.")
    racks = Option("racks", str, "", "Racks whose replicas lead as long as one of them may.")
    doc = "The first candidate that may lead and is on none of some brokers; if there is none, Kafka's choice."
    yield SelectorSpec("avoid-brokers", Tier.BULK, AvoidBrokers.of, PLACED, doc, (brokers,))
    doc = "The first candidate that may lead and is in one of some racks; if there is none, Kafka's choice."
    yield SelectorSpec("prefer-racks", Tier.BULK, PreferRacks.of, PLACED, doc, (racks,))


@hookimpl
def kframe_stores() -> list[StoreSpec]:
    """Offer the store in memory."""
    doc = "In memory, with ZooKeeper's rules; empty at first."
    return [StoreSpec("memory", lambda url: _memory().connect(), doc, lambda url: _memory())]


@hookimpl
def kframe_transports() -> list[TransportSpec]:
    """Offer the transports in memory."""
    return [
        TransportSpec(
            "embedded",
            lambda url, config: _embedded().EmbeddedBrokers(_embedded().VirtualClock()),
            "Brokers in memory, which respond at once and without error.",
            _EMBEDDED_SANDBOX,
        ),
        TransportSpec(
            "recording",
            lambda url, config: _embedded().RecordingTransport(),
            "Keeps every request in memory; no broker responds.",
        ),
        TransportSpec(
            "counting",
            lambda url, config: _embedded().CountingTransport(),
            "Counts requests and partitions; no broker responds.",
        ),
    ]


def _embedded() -> Any:
    return importlib.import_module("kframe.embedded")


def _memory() -> Any:
    return _embedded().MemoryEnsemble.from_cluster(ClusterState())
