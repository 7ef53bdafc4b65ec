"""Failed log directories of brokers in a what-if on a KRaft cluster, and what a restart assumes of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from uuid import UUID

import numpy as np

from kframe.model.kafka_uuids import uuid_text
from kframe.model.kraft.directories import LOST
from kframe.model.kraft.directory_ids import is_reserved
from kframe.model.kraft.metadata import ClusterMetadata


def failed_directories(metadata: ClusterMetadata, broker_id: int, reported: frozenset[UUID]) -> tuple[UUID, ...]:
    """The failed log directories of a broker: those ``reported`` in this what-if, and those of its replicas that its
    registration does not list."""
    registration = metadata.brokers.registrations[broker_id]
    used = metadata.directories.ids_of(_used_directories(metadata, broker_id))
    unlisted = {directory for directory in used if not is_reserved(directory)} - set(registration.directories)
    return tuple(sorted(reported | (unlisted if registration.directories else set())))


def directory_assumptions(
    metadata: ClusterMetadata, brokers: Sequence[int], reported: Mapping[int, frozenset[UUID]]
) -> Iterator[str]:
    """What restarts of ``brokers`` without a repair assume, a sentence each."""
    for broker_id in brokers:
        failed = failed_directories(metadata, broker_id, reported.get(broker_id, frozenset()))
        subject = f"log directories of broker {broker_id}"
        if failed:
            names = ", ".join(map(uuid_text, failed))
            starts = set(metadata.brokers.registrations[broker_id].directories) - set(failed)
            effect = "" if starts else ", so the broker does not start"
            yield f"{subject}: the restart leaves {names} failed{effect} (--repair-directories: it repairs them)"
        elif LOST in _used_directories(metadata, broker_id):
            yield f"{subject}: replicas in a lost directory stay offline after the restart"


def _used_directories(metadata: ClusterMetadata, broker_id: int) -> list[int]:
    """Indexes of the directories of a broker's replicas, ascending."""
    p, broker = metadata.partitions, metadata.brokers.find(broker_id)
    rows = np.flatnonzero(p.topic >= 0).astype(np.int32)
    replicas, directories = p.lists("replica", rows), p.lists("directory", rows)
    used: list[int] = np.unique(directories.values[replicas.values == broker]).tolist()
    return used
