"""Embedded brokers that answer at once, and whose replicas join the ISR, as a reassignment needs."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from kframe.embedded import Api, EmbeddedBrokers, Request, VirtualClock
from kframe.plugin.cluster import ClusterState
from kframe.plugin.columns import Ragged
from kframe.plugin.transport import AlterPartitionRequested, ControlRequests, RequestedPartitions

#: The last version of AlterPartition with topic names instead of ids.
_BY_NAME = 1


class AnsweringBrokers(EmbeddedBrokers):
    """Each leader that learns of its partition proposes an ISR: all live replicas except new ones on ``slow``
    brokers."""

    def __init__(self, slow: Collection[int] = ()) -> None:
        super().__init__(VirtualClock())
        self._slow = frozenset(slow)
        self.received = 0
        """The number of requests that brokers have received."""

    def send(self, cluster: ClusterState, requests: ControlRequests) -> None:
        """Answer a batch, and send the proposals of the leaders."""
        super().send(cluster, requests)
        live = cluster.brokers.ids_of(np.flatnonzero(cluster.brokers.live))
        for request in self.take():
            self.received += 1
            if request["api"] != Api.STOP_REPLICA and request["broker"] in live:
                self._propose(cluster, request, [broker for broker in live if broker not in self._slow])

    def _propose(self, cluster: ClusterState, request: Request, ready: Collection[int]) -> None:
        led = {name: state for name, state in request["partitions"].items() if state["leader"] == request["broker"]}
        proposed = {name: _in_sync(state, ready) for name, state in led.items()}
        names = [name for name, isr in proposed.items() if isr != tuple(led[name]["isr"])]
        if not names or self._notify is None:
            return
        split = [name.rpartition("-") for name in names]
        index = cluster.brokers.find(request["broker"])
        self._notify(
            AlterPartitionRequested(
                request["broker"], int(cluster.brokers.broker_epoch[index]), _BY_NAME,
                RequestedPartitions.of((topic, int(number)) for topic, _, number in split),
                np.array([led[name]["leader_epoch"] for name in names], np.int32),
                np.array([led[name]["partition_epoch"] for name in names], np.int32),
                np.zeros(len(names), np.uint8), Ragged.of([proposed[name] for name in names]),
            )
        )  # fmt: skip


def _in_sync(state: Mapping[str, Any], ready: Collection[int]) -> tuple[int, ...]:
    """The assigned members of the ISR, then the replicas that are ready to join."""
    isr = tuple(replica for replica in state["isr"] if replica in state["replicas"])
    return isr + tuple(replica for replica in state["replicas"] if replica in ready and replica not in isr)
