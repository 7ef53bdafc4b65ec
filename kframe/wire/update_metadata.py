"""UpdateMetadata requests: every broker is told the same partitions and live brokers, encoded once and shared."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from kframe.model.cluster import ClusterState
from kframe.model.columns import Int32
from kframe.model.requests import ControlRequests
from kframe.wire import kernels
from kframe.wire.apis import UPDATE_METADATA
from kframe.wire.brokers import live_brokers
from kframe.wire.request import EncodedRequest
from kframe.wire.sections import Cutter, Section, check_topics, require_as_measured


def update_metadata_requests(
    cluster: ClusterState, requests: ControlRequests, api_version: int, byte_limit: int
) -> Iterator[EncodedRequest]:
    """The UpdateMetadata of each broker of the batch, one at least. Raises ConfigError as ``live_brokers`` does."""
    check_topics(UPDATE_METADATA.name, cluster, requests.metadata_rows)
    told = live_brokers(cluster.brokers, api_version) if len(requests.metadata_brokers) else b""
    return _encode(cluster, requests, api_version, told, byte_limit)


def _encode(
    cluster: ClusterState, requests: ControlRequests, api_version: int, told: bytes, byte_limit: int
) -> Iterator[EncodedRequest]:
    prefixes = [
        (broker, UPDATE_METADATA.prefix(api_version, requests, int(cluster.brokers.broker_epoch[broker])))
        for broker in requests.metadata_brokers.tolist()
    ]
    if not prefixes:
        return
    room = byte_limit - len(prefixes[0][1]) - len(told)
    sections = [section.view for section in _sections(cluster, requests.metadata_rows, api_version, room)]
    for broker, prefix in prefixes:
        for partitions in sections:
            yield EncodedRequest(broker, UPDATE_METADATA.api_key, api_version, (prefix, partitions, told))


def _sections(cluster: ClusterState, rows: Int32, api_version: int, byte_limit: int) -> Iterator[Section]:
    p, brokers, live = cluster.partitions, cluster.brokers, cluster.brokers.live
    # Only the rows of the batch are written to or read, so that memory for the others is never touched.
    entry_size = np.empty(len(p), np.int32)
    kernels.size_update_metadata(
        rows, api_version, p.slot_start, p.replica_count, p.isr_count, p.replica, p.replica_flags, live, entry_size
    )
    for section in Cutter(cluster, UPDATE_METADATA.layout(api_version)).cut(rows, entry_size, byte_limit):
        written = kernels.write_update_metadata(
            section.rows, api_version, p.topic, p.partition, p.leader, p.leader_epoch, p.controller_epoch,
            p.partition_epoch, p.slot_start, p.replica_count, p.isr_count, p.replica, p.isr, p.replica_flags,
            brokers.ids, live, cluster.topics.deleting, section.row_size, section.entry_at, section.out,
        )  # fmt: skip
        require_as_measured(written, len(section.rows))
        yield section
