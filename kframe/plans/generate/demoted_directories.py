"""The replicas in log directories that a request demotes."""

from __future__ import annotations

import numpy as np

from kframe.errors import ParameterError
from kframe.model.arrays import Bool, Int32, Ragged
from kframe.model.kafka_uuids import uuid_text
from kframe.plans.generate.request import PlanRequest
from kframe.ports.administration import DirectoryName
from kframe.snapshot import Snapshot


def demoted_replicas(snapshot: Snapshot, request: PlanRequest, original: Ragged, ids: Int32) -> Ragged:
    """The brokers on which each row has a replica in a demoted directory. ``original`` has indexes of ``ids``.

    Raises InputError for a directory that is neither listed by its broker nor in the metadata.
    """
    mask = np.zeros(len(original.values), np.bool_)
    for directory in request.demote_directories:
        on_broker = ids[original.values] == directory.broker_id
        mask |= on_broker & (
            _with_id(snapshot, directory)
            if _has_id(snapshot, directory)
            else _listed(snapshot, request, directory, original)
        )
    return original.keep(mask)


def _has_id(snapshot: Snapshot, directory: DirectoryName) -> bool:
    """Whether the metadata has a log directory of this id on the broker."""
    facts = next((broker for broker in snapshot.brokers if broker.broker_id == directory.broker_id), None)
    registration = None if facts is None else facts.registration
    return registration is not None and directory.path in map(uuid_text, registration.directories)


def _with_id(snapshot: Snapshot, directory: DirectoryName) -> Bool:
    """(s,) replicas in the directory of an id."""
    directories, kraft = snapshot.partitions.directories, snapshot.kraft
    if directories is None or kraft is None:
        raise ParameterError(
            "demote_directories", f"directory id {directory.path}", "metadata with directories of replicas"
        )
    positions = [position for position, uuid in enumerate(kraft.directory_ids) if uuid_text(uuid) == directory.path]
    return np.isin(directories.values, positions)


def _listed(snapshot: Snapshot, request: PlanRequest, directory: DirectoryName, original: Ragged) -> Bool:
    """(s,) replicas of the partitions that a directory lists."""
    listed = request.log_directories.get(directory.broker_id, ())
    logs = next((item.logs for item in listed if item.path == directory.path), None)
    if logs is None:
        paths = ", ".join(item.path for item in listed) or "none is known"
        expected = f"a log directory of broker {directory.broker_id}: {paths}"
        raise ParameterError("demote_directories", directory.path, expected)
    names = {(log.topic, log.partition) for log in logs if not log.is_future}
    topics = snapshot.topics
    pairs = zip(topics.topic_of_rows().tolist(), topics.partition_of_rows().tolist(), strict=True)
    rows = np.fromiter(((topics.names[topic], number) in names for topic, number in pairs), np.bool_, len(original))
    return np.repeat(rows, original.counts)
