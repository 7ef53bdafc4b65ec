"""The transport of control requests to brokers, and what a transport may offer beyond it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from kframe.model.brokers import Registration
from kframe.model.cluster import ClusterState
from kframe.model.requests import ControlRequests
from kframe.ports.store import MayAct, Notify, Store


@runtime_checkable
class Expecting(Protocol):
    """A transport that can prepare for brokers before it connects to them."""

    def expect(self, registrations: Sequence[Registration]) -> None:
        """Prepare for a ``connect`` with these registrations, or for ``close``. The transport may start slow work, but
        must send nothing. Each call replaces the previous registrations. Does not block. The thread that calls
        ``connect`` calls it."""


@runtime_checkable
class Acknowledging(Protocol):
    """A transport that reports which batches brokers have acknowledged."""

    @property
    def acknowledges(self) -> bool:
        """Whether each UpdateMetadataResponseReceived has the controller epoch and the batch that the broker
        acknowledged. If so, the controller answers CreateTopics, CreatePartitions and DeleteTopics only after live
        brokers have."""


@runtime_checkable
class StoreReader(Protocol):
    """A transport that reads from its controller's store. An example is the cluster id."""

    def attach_store(self, store: Store) -> None:
        """Called once, when a controller is built, before ``open``. The store stays open as long as the transport."""


class WaitingTimes(Protocol):
    """How long requests waited in a queue, in milliseconds. Implemented by ``kframe.runtime.samples.Samples``."""

    @property
    def count(self) -> int:
        """Number of requests that have left the queue."""

    def quantiles(self, probabilities: tuple[float, ...]) -> list[float]:
        """Quantiles (0 to 1) of the most recent waiting times. Zeros before the first."""


@dataclass(frozen=True, slots=True)
class BrokerQueue:
    """The requests for one broker: the queue length without the request in flight (Kafka: QueueSize), and the waiting
    times of sent requests (RequestRateAndQueueTimeMs). A retry does not count as waiting again."""

    waiting: int
    times: WaitingTimes


@runtime_checkable
class Transport(Protocol):
    """Delivery of control requests to brokers. Each broker has a FIFO queue with one request in flight."""

    def open(self, notify: Notify, may_act: MayAct) -> None:
        """Get ready; responses of brokers are notified as events.

        The controller calls ``send`` only while ``Store.may_act`` is true. The transport must check ``may_act`` again
        before it sends a request that waited in a queue, and before a retry. While ``may_act`` is false, it sends
        nothing. Either storage answers and the role is certain again, or the controller resigns, which closes the
        transport.
        """

    def close(self) -> None:
        """Drop every queue and connection."""

    def connect(self, cluster: ClusterState, brokers: tuple[int, ...]) -> None:
        """These brokers (indexes) have registered; requests queued for an earlier registration are dropped."""

    def disconnect(self, cluster: ClusterState, brokers: tuple[int, ...]) -> None:
        """These brokers (indexes) have unregistered."""

    def send(self, cluster: ClusterState, requests: ControlRequests) -> None:
        """Queue a batch. Must read the columns before it returns; must not wait for any broker."""

    def queues(self) -> Mapping[int, BrokerQueue]:
        """The queue of each connected broker, by id; empty for a transport without queues. Callable from any thread."""
