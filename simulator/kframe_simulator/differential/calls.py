"""Store calls whose results can be compared between two storages."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import numpy as np

from kframe.model.arrays import Ragged
from kframe.model.cluster import ClusterState
from kframe.model.ids import NO_STATE
from kframe.model.tables import Targets, TopicTable, reassignment_flags
from kframe.ports.store_requests import (
    AllocateProducerIds,
    AssignTopicIds,
    Claim,
    CreateTopics,
    DeleteTopics,
    DropDeletions,
    DropNotifications,
    DropPreferredElection,
    Load,
    OwnsRole,
    Prepare,
    QueueDeletions,
    ReadBrokers,
    ReadConfigs,
    ReadController,
    ReadDeletions,
    ReadIsrChanges,
    ReadLogDirEvents,
    ReadPreferredElection,
    ReadReassignments,
    ReadStates,
    ReadTopicNames,
    ReadTopics,
    ReadTopicSettings,
    ReleaseRole,
    StoreRequest,
    WriteAssignments,
    WriteConfigs,
    WriteReassignments,
    WriteStates,
)
from kframe.testing.clusters import StateSpec, change_of, described, rows_of
from kframe_simulator.differential.storages import OpenStore, Side

#: Replicas, those being added, and those being removed.
Assignment = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]
#: Performs a call of a session with its arguments. Returns the result in comparable form.
Call: TypeAlias = Callable[..., Any]


def load(side: Side, session: OpenStore) -> Any:
    """The whole cluster by names and ids."""
    cluster = session.cluster = session.store.perform(Load())
    topics = cluster.topics
    current = [index for index in range(len(topics)) if topics.find(topics.names[index]) == index]
    session.topic_ids = {topics.names[index]: topics.ids[index].tobytes() for index in current}
    settings = {
        topics.names[index]: (
            side.topic_id(topics.ids[index].tobytes()),
            int(topics.unclean[index]),
            int(topics.min_insync[index]),
        )
        for index in sorted(current, key=topics.names.__getitem__)
    }
    registrations = [cluster.brokers.registrations[index] for index in np.flatnonzero(cluster.brokers.registered)]
    brokers = sorted(side.registration(registration) for registration in registrations if registration is not None)
    return {"partitions": described(cluster), "topics": settings, "brokers": brokers}


def write_states(side: Side, session: OpenStore, states: Mapping[str, StateSpec], controller_epoch: int) -> Any:
    """The code of each state. Also its version."""
    cluster = _cluster(session)
    result = session.store.perform(WriteStates(cluster, change_of(cluster, states, controller_epoch)))
    versions = np.where(result.accepted, result.partition_epoch, NO_STATE)
    return dict(zip(states, zip(result.codes.tolist(), versions.tolist(), strict=True), strict=True))


def read_states(side: Side, session: OpenStore, names: Sequence[str]) -> Any:
    """The state at each path. None if there is none."""
    cluster = _cluster(session)
    result = session.store.perform(ReadStates(cluster, rows_of(cluster, names)))
    ids = cluster.brokers.ids
    return {
        name: (
            int(ids[result.leader[i]]) if result.leader[i] >= 0 else int(result.leader[i]),
            int(result.leader_epoch[i]),
            int(result.controller_epoch[i]),
            int(result.partition_epoch[i]),
            int(result.recovery[i]),
            ids[result.isr[i]].tolist(),
        )
        if result.exists[i]
        else None
        for i, name in enumerate(names)
    }


def read_topics(side: Side, session: OpenStore, names: tuple[str, ...]) -> Any:
    """Ids and assignments of the topics that exist."""
    table = session.store.perform(ReadTopics(names))
    session.topic_ids.update(zip(table.names, table.topic_ids, strict=True))
    lists = [
        [replica[row].tolist() for replica in (table.replicas, table.adding, table.removing)]
        for row in range(len(table.replicas))
    ]
    result, first = {}, 0
    for name, topic_id, count in zip(table.names, table.topic_ids, table.partition_counts.tolist(), strict=True):
        result[name] = side.topic_id(topic_id), lists[first : first + count]
        first += count
    return result


def create_topics(
    side: Side,
    session: OpenStore,
    topics: Mapping[str, Sequence[tuple[int, ...]]],
    configs: tuple[Mapping[str, str], ...],
    with_ids: bool,
) -> Any:
    """One code for each topic."""
    table = TopicTable.of(tuple(topics), tuple(topics.values()))
    return [int(code) for code in session.store.perform(CreateTopics(table, configs, with_ids=with_ids))]


def write_assignments(side: Side, session: OpenStore, topics: Mapping[str, Sequence[Assignment]]) -> Any:
    """One code for each topic."""
    assignments = [partition for partitions in topics.values() for partition in partitions]
    replicas, adding, removing = (Ragged.of([assignment[index] for assignment in assignments]) for index in range(3))
    counts = np.array([len(partitions) for partitions in topics.values()], np.int32)
    ids = tuple(session.topic_ids.get(name) for name in topics)
    flags = reassignment_flags(replicas, adding, removing)
    codes = session.store.perform(WriteAssignments(TopicTable(tuple(topics), ids, counts, replicas, flags)))
    return [int(code) for code in codes]


def assign_topic_ids(side: Side, session: OpenStore, names: tuple[str, ...]) -> Any:
    """The topic ids."""
    ids = session.store.perform(AssignTopicIds(names))
    session.topic_ids.update(zip(names, ids, strict=True))
    return [side.topic_id(broker_id) for broker_id in ids]


def delete_topics(side: Side, session: OpenStore, names: tuple[str, ...]) -> Any:
    """Nothing; the session removes the topics from its columns as a controller does."""
    session.store.perform(DeleteTopics(names))
    for name in names:
        session.topic_ids.pop(name, None)
    if session.cluster is not None:
        deleted = [index for name in names if (index := session.cluster.topics.find(name)) is not None]
        session.cluster.drop_topics(np.array(deleted, np.int32))


def _request(kind: Callable[..., StoreRequest[Any]], convert: Callable[[Side, Any], Any] | None = None) -> Call:
    """A call of one request. ``convert`` makes its reply comparable."""

    def call(side: Side, session: OpenStore, *arguments: Any) -> Any:
        reply = session.store.perform(kind(*arguments))
        return reply if convert is None else convert(side, reply)

    return call


def _described(targets: Targets | None) -> Any:
    """The target replicas, in order."""
    if targets is None:
        return None
    return [(*key, targets.replicas[index].tolist()) for index, key in enumerate(targets.partitions())]


def _notified(session: OpenStore, request: StoreRequest[Any]) -> Any:
    """The number of notifications, and the partitions or brokers in them. The session can delete them later."""
    notifications = session.store.perform(request)
    session.paths = notifications.paths
    return len(notifications.paths), list(notifications.items)


def _cluster(session: OpenStore) -> ClusterState:
    assert session.cluster is not None, "a history writes states only after it has loaded"
    return session.cluster


#: The function of each port call.
CALLS: Final[Mapping[str, Call]] = {
    "claim": lambda side, session: session.store.perform(Claim(session.controller_id)),
    "take_over": lambda side, session: session.store.perform(Claim(session.controller_id, takeover=True)),
    "controller": _request(ReadController, lambda side, holder: holder.controller_id),
    "owns_role": _request(OwnsRole),
    "may_act": lambda side, session: session.store.may_act(),
    "connected": lambda side, session: session.store.connected(),
    "quarantined": lambda side, session: session.store.quarantined(),
    "prepare": _request(Prepare),
    "release": _request(ReleaseRole),
    "load": load,
    "read_brokers": _request(ReadBrokers, lambda side, brokers: sorted(map(side.registration, brokers))),
    "write_states": write_states,
    "read_states": read_states,
    "read_topics": read_topics,
    "read_topic_names": _request(ReadTopicNames, lambda side, names: sorted(names)),
    "read_topic_settings": _request(
        ReadTopicSettings, lambda side, topics: [(settings.unclean, settings.min_insync) for settings in topics]
    ),
    "create_topics": create_topics,
    "write_assignments": write_assignments,
    "assign_topic_ids": assign_topic_ids,
    "delete_topics": delete_topics,
    "queue_deletions": _request(QueueDeletions),
    "read_deletions": _request(ReadDeletions, lambda side, names: sorted(names)),
    "drop_deletions": _request(DropDeletions),
    "write_reassignments": _request(lambda targets: WriteReassignments(Targets.of(targets))),
    "read_reassignments": _request(ReadReassignments, lambda side, targets: _described(targets)),
    "read_preferred_election": _request(ReadPreferredElection),
    "drop_preferred_election": _request(DropPreferredElection),
    "read_isr_changes": lambda side, session: _notified(session, ReadIsrChanges()),
    "read_log_dir_events": lambda side, session: _notified(session, ReadLogDirEvents()),
    "drop_notifications": lambda side, session: session.store.perform(DropNotifications(session.paths)),
    "allocate_producer_ids": lambda side, session: side.ordinal(
        "producer ids", session.store.perform(AllocateProducerIds(session.controller_id))
    ),
    "read_configs": _request(ReadConfigs, lambda side, config: dict(config)),
    "write_configs": _request(WriteConfigs),
}
