"""Encodes control requests directly from the columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Final

import numpy as np

from kframe.errors import ConfigError, ShapeError
from kframe.model.arrays import Int32
from kframe.model.brokers import Registration
from kframe.model.cluster import ClusterState
from kframe.model.requests import BrokerRows, ControlRequests
from kframe.wire.brokers import live_brokers, live_leaders
from kframe.wire.header import REQUEST_BYTES_MAX
from kframe.wire.leader_and_isr import leader_and_isr_requests
from kframe.wire.request import EncodedRequest
from kframe.wire.scratch import Scratch
from kframe.wire.stop_replica import stop_replica_requests
from kframe.wire.update_metadata import update_metadata_requests
from kframe.wire.versions import ControlVersions

#: Well below the limit of a broker (``socket.request.max.bytes``, 100 MiB).
BYTE_LIMIT: Final = 64 * 2**20


class Encoder:
    """Encodes batches for brokers of one inter-broker protocol version.

    ``listener`` is the inter-broker listener, on which followers fetch from their leaders. Bodies have at most
    ``byte_limit`` bytes: a longer request is split between two partitions. A single partition beyond the limit gets its
    own request. ``others`` are named as live brokers in every UpdateMetadata although they are not registered: a
    controller that is not a broker names itself. Raises ConfigError for an invalid ``byte_limit``, and for one of
    ``others`` that cannot be encoded (see ``kframe.wire.brokers``).
    """

    def __init__(
        self,
        versions: ControlVersions,
        listener: str = "PLAINTEXT",
        byte_limit: int = BYTE_LIMIT,
        others: Sequence[Registration] = (),
    ) -> None:
        if not 0 < byte_limit <= REQUEST_BYTES_MAX:
            raise ConfigError("byte limit of control requests", str(byte_limit), f"1 to {REQUEST_BYTES_MAX}")
        self._versions = versions
        self._leaders = live_leaders(versions.leader_and_isr, listener)
        self._brokers = live_brokers(versions.update_metadata, others)
        self._byte_limit = byte_limit
        self._scratch = Scratch()

    def encode(self, cluster: ClusterState, requests: ControlRequests) -> Iterator[EncodedRequest]:
        """The requests of a batch: all LeaderAndIsr, then all UpdateMetadata, then all StopReplica.

        Requests are encoded on iteration: consume them all before the columns change. Requests of one kind share
        memory, at most 8 MiB unless a single request is longer. Several threads encode large batches. Raises before the
        first request: ShapeError if the batch has rows or brokers that the cluster does not have; ConfigError if a
        broker cannot be encoded (see ``kframe.wire.brokers``).
        """
        check_batch(cluster, requests)
        versions, limit, scratch = self._versions, self._byte_limit, self._scratch
        return chain(
            leader_and_isr_requests(cluster, requests, versions.leader_and_isr, self._leaders, limit, scratch),
            update_metadata_requests(cluster, requests, versions.update_metadata, self._brokers, limit, scratch),
            stop_replica_requests(cluster, requests, versions.stop_replica, limit),
        )


def check_batch(cluster: ClusterState, requests: ControlRequests) -> None:
    """Raise ShapeError unless the arrays of a batch have matching lengths and name rows and brokers of ``cluster``."""
    _check_lists("LeaderAndIsr", cluster, requests.leader_and_isr, len(requests.is_new))
    _check_lists(
        "StopReplica", cluster, requests.stop_replica, len(requests.stop_leader_epoch), len(requests.stop_delete)
    )
    _check_range("brokers of UpdateMetadata", requests.metadata_brokers, len(cluster.brokers))
    _check_range("rows of UpdateMetadata", requests.metadata_rows, len(cluster))


def _check_lists(name: str, cluster: ClusterState, batch: BrokerRows, *parallel_lengths: int) -> None:
    lengths = {len(batch.rows), int(batch.offsets[-1]), *parallel_lengths}
    if len(lengths) != 1 or len(batch.offsets) != len(batch.brokers) + 1:
        raise ShapeError(
            f"{name}: {len(batch.brokers)} brokers, {len(batch.offsets)} offsets, arrays of {sorted(lengths)}"
        )
    if batch.offsets[0] != 0 or np.any(batch.offsets[1:] < batch.offsets[:-1]):
        raise ShapeError(f"{name}: offsets do not ascend from 0")
    _check_range(f"brokers of {name}", batch.brokers, len(cluster.brokers))
    _check_range(f"rows of {name}", batch.rows, len(cluster))


def _check_range(name: str, values: Int32, count: int) -> None:
    if len(values) and not 0 <= int(values.min()) <= int(values.max()) < count:
        raise ShapeError(f"{name}: {int(values.min())} to {int(values.max())}, but there are {count}")
