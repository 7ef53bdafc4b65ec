"""Differential tests: seeded histories compare a plugin's store or transport with kframe's in-memory one.

A difference names the seed and the step::

    from kframe_simulator.differential import play_history

    assert play_history(seed=7, storage=MyStorage()) is None
"""

from kframe.testing.transport_sandbox import EmbeddedSandbox, TransportSandbox
from kframe_simulator.differential.storages import Storage, StorageDifference
from kframe_simulator.differential.stores import play_bare, play_history
from kframe_simulator.differential.transports import play_batches

__all__ = [
    "EmbeddedSandbox",
    "Storage",
    "StorageDifference",
    "TransportSandbox",
    "play_bare",
    "play_batches",
    "play_history",
]
