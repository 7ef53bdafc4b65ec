"""What a failover tells all brokers: the batch put together, and each kind of request as bytes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final, NamedTuple, TypeAlias

import numpy as np

from kframe.bench.answers import digest_of
from kframe.bench.clusters import whole_cluster
from kframe.bench.work import PieceWork
from kframe.core.request_batch import RequestBatch
from kframe.model.cluster import ClusterState
from kframe.model.columns import Int32
from kframe.model.requests import ControlRequests
from kframe.wire.brokers import live_brokers, live_leaders
from kframe.wire.encode import BYTE_LIMIT
from kframe.wire.leader_and_isr import leader_and_isr_requests
from kframe.wire.request import EncodedRequest
from kframe.wire.stop_replica import stop_replica_requests
from kframe.wire.update_metadata import update_metadata_requests

Encoding: TypeAlias = Callable[[ClusterState, ControlRequests], list[EncodedRequest]]
_CONTROLLER: Final = (1_000_000, 2)
"""Id and epoch of the controller that sends."""


class Told(NamedTuple):
    """A cluster and who is told what of it: ``brokers[i]`` of ``rows[i]``, ``every`` row once."""

    cluster: ClusterState
    brokers: Int32
    rows: Int32
    every: Int32


class ToSend(NamedTuple):
    """A batch and the columns that it speaks of."""

    cluster: ClusterState
    requests: ControlRequests


def batching() -> PieceWork:
    """Every replica is told of its partition, and every broker of all: the pairs grouped by broker."""
    return PieceWork(_told, lambda told: partial(_batch, told), _answer_of_batch, _count_of_batch)


def encoding(encode: Encoding) -> PieceWork:
    """One kind of request made for all brokers."""
    return PieceWork(_to_send, lambda world: lambda: encode(*world), _answer_of_bytes, _count_of_bytes)


def leader_and_isr(version: int) -> PieceWork:
    """Every LeaderAndIsr of a failover."""
    leaders = live_leaders(version, "PLAINTEXT")
    return encoding(
        lambda cluster, requests: list(leader_and_isr_requests(cluster, requests, version, leaders, BYTE_LIMIT))
    )


def update_metadata(version: int) -> PieceWork:
    """Every UpdateMetadata of a failover."""
    brokers = live_brokers(version, ())
    return encoding(
        lambda cluster, requests: list(update_metadata_requests(cluster, requests, version, brokers, BYTE_LIMIT))
    )


def stop_replica(version: int) -> PieceWork:
    """StopReplica for every replica."""
    return encoding(lambda cluster, requests: list(stop_replica_requests(cluster, requests, version, BYTE_LIMIT)))


def _told(partitions: int, brokers: int) -> Told:
    cluster = whole_cluster(partitions, brokers)
    every = np.arange(partitions, dtype=np.int32)
    replicas = cluster.partitions.lists("replica", every)
    return Told(cluster, replicas.values, every[replicas.owners], every)


def _batch(told: Told) -> ControlRequests:
    batch = RequestBatch(told.cluster)
    batch.add_leader_and_isr(told.brokers, told.rows, told.every, is_new=False)
    return batch.close(*_CONTROLLER)


def _to_send(partitions: int, brokers: int) -> ToSend:
    told = _told(partitions, brokers)
    batch = RequestBatch(told.cluster)
    batch.add_leader_and_isr(told.brokers, told.rows, told.every, is_new=False)
    batch.add_stop_replica(told.brokers, told.rows, delete=True)
    return ToSend(told.cluster, batch.close(*_CONTROLLER))


def _answer_of_batch(batch: ControlRequests) -> str:
    told = batch.leader_and_isr
    return digest_of([told.brokers, told.offsets, told.rows, batch.is_new, batch.metadata_brokers, batch.metadata_rows])


def _count_of_batch(batch: ControlRequests) -> Mapping[str, float]:
    return {"requests": len(batch.leader_and_isr.brokers) + len(batch.metadata_brokers)}


def _answer_of_bytes(encoded: list[EncodedRequest]) -> str:
    fresh = {id(chunk): chunk for request in encoded for chunk in request.chunks}
    place = {name: number for number, name in enumerate(fresh)}
    shape = [
        (request.api_key, request.broker, request.nbytes, *(place[id(chunk)] for chunk in request.chunks))
        for request in encoded
    ]
    return digest_of([repr(shape), *fresh.values()])


def _count_of_bytes(encoded: list[EncodedRequest]) -> Mapping[str, float]:
    fresh = {id(chunk): len(chunk) for request in encoded for chunk in request.chunks}
    sent = sum(request.nbytes for request in encoded)
    return {"requests": len(encoded), "sent_bytes": sent, "made_bytes": sum(fresh.values())}
