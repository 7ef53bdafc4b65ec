"""The requests of a failover. They are grouped by broker, and each kind is encoded."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final, NamedTuple, TypeAlias

import numpy as np

from kframe.bench.clusters import whole_cluster
from kframe.bench.digests import digest_of
from kframe.bench.workload import FunctionWorkload
from kframe.core.request_batch import RequestBatch
from kframe.model.arrays import Int32
from kframe.model.cluster import ClusterState
from kframe.model.requests import ControlRequests
from kframe.wire.brokers import live_brokers, live_leaders
from kframe.wire.encode import BYTE_LIMIT
from kframe.wire.leader_and_isr import leader_and_isr_requests
from kframe.wire.request import EncodedRequest
from kframe.wire.stop_replica import stop_replica_requests
from kframe.wire.update_metadata import update_metadata_requests

Encoding: TypeAlias = Callable[[ClusterState, ControlRequests], list[EncodedRequest]]
_CONTROLLER: Final = (1_000_000, 2)
"""Controller id and epoch of the requests."""


class Recipients(NamedTuple):
    """A cluster and the recipients of its state: ``brokers[i]`` gets ``rows[i]``. ``all_rows`` has each row once."""

    cluster: ClusterState
    brokers: Int32
    rows: Int32
    all_rows: Int32


class PreparedBatch(NamedTuple):
    """A batch and the columns that it refers to."""

    cluster: ClusterState
    requests: ControlRequests


def batching() -> FunctionWorkload:
    """Group by broker: LeaderAndIsr for every replica, and UpdateMetadata of all partitions for every broker."""
    return FunctionWorkload(
        _recipients, lambda recipients: partial(_batch, recipients), _answer_of_batch, _count_of_batch
    )


def encoding(encode: Encoding) -> FunctionWorkload:
    """Encode one kind of request for all brokers."""
    return FunctionWorkload(_prepared_batch, lambda batch: lambda: encode(*batch), _answer_of_bytes, _count_of_bytes)


def leader_and_isr(version: int) -> FunctionWorkload:
    """LeaderAndIsr for every replica."""
    leaders = live_leaders(version, "PLAINTEXT")
    return encoding(
        lambda cluster, requests: list(leader_and_isr_requests(cluster, requests, version, leaders, BYTE_LIMIT))
    )


def update_metadata(version: int) -> FunctionWorkload:
    """UpdateMetadata of all partitions for every broker."""
    brokers = live_brokers(version, ())
    return encoding(
        lambda cluster, requests: list(update_metadata_requests(cluster, requests, version, brokers, BYTE_LIMIT))
    )


def stop_replica(version: int) -> FunctionWorkload:
    """StopReplica for every replica."""
    return encoding(lambda cluster, requests: list(stop_replica_requests(cluster, requests, version, BYTE_LIMIT)))


def _recipients(partitions: int, brokers: int) -> Recipients:
    cluster = whole_cluster(partitions, brokers)
    all_rows = np.arange(partitions, dtype=np.int32)
    replicas = cluster.partitions.lists("replica", all_rows)
    return Recipients(cluster, replicas.values, all_rows[replicas.owners], all_rows)


def _batch(recipients: Recipients) -> ControlRequests:
    batch = RequestBatch(recipients.cluster)
    batch.add_leader_and_isr(recipients.brokers, recipients.rows, recipients.all_rows, is_new=False)
    return batch.close(*_CONTROLLER)


def _prepared_batch(partitions: int, brokers: int) -> PreparedBatch:
    recipients = _recipients(partitions, brokers)
    batch = RequestBatch(recipients.cluster)
    batch.add_leader_and_isr(recipients.brokers, recipients.rows, recipients.all_rows, is_new=False)
    batch.add_stop_replica(recipients.brokers, recipients.rows, delete=True)
    return PreparedBatch(recipients.cluster, batch.close(*_CONTROLLER))


def _answer_of_batch(batch: ControlRequests) -> str:
    lists = batch.leader_and_isr
    return digest_of(
        [lists.brokers, lists.offsets, lists.rows, batch.is_new, batch.metadata_brokers, batch.metadata_rows]
    )


def _count_of_batch(batch: ControlRequests) -> Mapping[str, float]:
    return {"requests": len(batch.leader_and_isr.brokers) + len(batch.metadata_brokers)}


def _answer_of_bytes(encoded: list[EncodedRequest]) -> str:
    chunks = {id(chunk): chunk for request in encoded for chunk in request.chunks}
    indexes = {name: index for index, name in enumerate(chunks)}
    shape = [
        (request.api_key, request.broker, request.nbytes, *(indexes[id(chunk)] for chunk in request.chunks))
        for request in encoded
    ]
    return digest_of([repr(shape), *chunks.values()])


def _count_of_bytes(encoded: list[EncodedRequest]) -> Mapping[str, float]:
    chunks = {id(chunk): len(chunk) for request in encoded for chunk in request.chunks}
    sent = sum(request.nbytes for request in encoded)
    return {"requests": len(encoded), "sent_bytes": sent, "made_bytes": sum(chunks.values())}
