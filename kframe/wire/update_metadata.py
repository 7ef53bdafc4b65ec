"""UpdateMetadata requests: the same partitions and live brokers for every broker, encoded once and shared."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import chain

import numpy as np

from kframe import kernels
from kframe.model.arrays import Int32
from kframe.model.cluster import ClusterState
from kframe.model.requests import ControlRequests
from kframe.wire.apis import UPDATE_METADATA
from kframe.wire.brokers import EncodedBrokers
from kframe.wire.primitives import array, end_of_struct
from kframe.wire.request import EncodedRequest, requests_of
from kframe.wire.scratch import Scratch
from kframe.wire.sections import Frame, Group, Lists, SectionWriter, check_topics, require_as_measured
from kframe.wire.threads import map_by_threads, row_blocks


def update_metadata_requests(
    cluster: ClusterState,
    requests: ControlRequests,
    api_version: int,
    broker_entries: EncodedBrokers,
    byte_limit: int,
    scratch: Scratch | None = None,
) -> Iterator[EncodedRequest]:
    """Each broker's UpdateMetadata, at least one. Raises ConfigError if a broker cannot be encoded."""
    check_topics(UPDATE_METADATA.name, cluster, requests.metadata_rows)
    if not len(requests.metadata_brokers):
        return iter(())
    tail = live_brokers(cluster, broker_entries, UPDATE_METADATA.layout(api_version).compact)
    return _encode(cluster, requests, api_version, tail, byte_limit, scratch or Scratch())


def live_brokers(cluster: ClusterState, broker_entries: EncodedBrokers, compact: bool) -> bytes:
    """The bytes after the partitions of a request. They are all registered brokers, ascending by id, and the struct's
    end."""
    return array(broker_entries.all_entries(cluster.brokers), compact=compact) + end_of_struct(compact=compact)


def _encode(
    cluster: ClusterState, requests: ControlRequests, api_version: int, tail: bytes, byte_limit: int, scratch: Scratch
) -> Iterator[EncodedRequest]:
    brokers = requests.metadata_brokers
    prefixes = UPDATE_METADATA.prefixes(api_version, requests, cluster.brokers.broker_epoch[brokers], b"")
    section_limit = byte_limit - len(prefixes[0]) - len(tail)
    with scratch.reserve(len(cluster)) as (entry_size, _):
        bodies = list(_bodies(cluster, requests.metadata_rows, api_version, tail, section_limit, entry_size))
    count = len(bodies)
    yield from requests_of(
        UPDATE_METADATA.api_key,
        api_version,
        np.repeat(brokers, count).tolist(),
        chain.from_iterable([prefix] * count for prefix in prefixes),
        [body for body, _ in bodies] * len(prefixes),
        [partitions for _, partitions in bodies] * len(prefixes),
    )


def _bodies(
    cluster: ClusterState, rows: Int32, api_version: int, tail: bytes, byte_limit: int, entry_size: Int32
) -> Iterator[tuple[memoryview, int]]:
    """Sections of up to ``byte_limit`` bytes with ``tail``, and the number of rows of each. One empty section without
    rows."""
    p, live = cluster.partitions, cluster.brokers.live
    layout = UPDATE_METADATA.layout(api_version)
    if not len(rows):
        yield memoryview(array([], compact=layout.compact) + tail), 0
    map_by_threads(
        lambda block: kernels.size_update_metadata(
            rows[block],
            api_version,
            p.slot_start,
            p.replica_count,
            p.isr_count,
            p.replica,
            p.replica_status,
            live,
            entry_size,
        ),
        row_blocks(len(rows)),
    )
    writer = SectionWriter(cluster, layout)
    for group in writer.split(Lists(np.array([0, len(rows)], np.int32), rows), entry_size, byte_limit, len(tail)):
        frame = writer.frame(group, tail, len(tail))
        blocks = row_blocks(len(group.rows))
        written = map_by_threads(partial(_write, cluster, api_version, group, frame), blocks)
        require_as_measured(sum(written), len(group.rows))
        yield from zip(frame.bodies(), group.partitions(), strict=True)


def _write(cluster: ClusterState, api_version: int, group: Group, frame: Frame, block: slice) -> int:
    """Write the entries of a block of the group's rows. Return how many have the computed size."""
    p = cluster.partitions
    return kernels.write_update_metadata(
        group.rows[block],
        api_version,
        p.topic,
        p.partition,
        p.leader,
        p.leader_epoch,
        p.epoch_number,
        p.epoch_table.epochs,
        p.partition_epoch,
        p.slot_start,
        p.replica_count,
        p.isr_count,
        p.replica,
        p.isr,
        p.replica_status,
        cluster.brokers.ids,
        cluster.brokers.live,
        cluster.topics.deleting,
        group.row_size[block],
        frame.entry_offset[block],
        frame.out,
    )
