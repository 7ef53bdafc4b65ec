"""Random arguments for the store calls and external changes of a history."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from random import Random
from typing import Any, Final, TypeAlias

from kframe.embedded import MemoryEnsemble
from kframe.embedded.layout import CONTROLLER, DELETE_TOPICS, PREFERRED_ELECTION, REASSIGN_PARTITIONS
from kframe.embedded.records import StoredRecordError
from kframe.model.brokers import Endpoint, Registration
from kframe.model.cluster import ClusterState
from kframe.model.ids import NO_BROKER_EPOCH, NO_STATE
from kframe.testing.clusters import StateSpec
from kframe_simulator.differential.calls import Assignment
from kframe_simulator.differential.storages import Side

#: Topics and brokers of all histories.
TOPICS: Final = ("a", "b.c", "d_e")
BROKERS: Final = (1, 2, 3, 4, 5)

#: Arguments; None if the call is impossible now.
Arguments: TypeAlias = tuple[Any, ...] | None


class ArgumentState:
    """The state of the model that arguments are drawn from."""

    def __init__(self, random: Random, ensemble: MemoryEnsemble, model: Side) -> None:
        self.random, self.ensemble, self.model = random, ensemble, model
        self.claimed: dict[int, int] = {}
        """Controller epoch by session, from a successful claim until the release."""
        self._reader = ensemble.records.open_session(lambda _event: None)

    def any_session(self) -> int | None:
        """A random open session."""
        return self.random.choice(sorted(self.model.sessions)) if self.model.sessions else None

    def stored(self) -> ClusterState:
        """The content of storage."""
        return self.ensemble.stored()

    def topics(self) -> list[str]:
        """The stored topics."""
        topics = self.stored().topics
        return sorted(name for name in TOPICS if topics.find(name) is not None)

    def partitions(self, cluster: ClusterState | None) -> list[tuple[str, int]]:
        """The partitions in storage or in ``cluster``."""
        if cluster is None:
            return []
        result = [(name, cluster.topics.find(name)) for name in TOPICS]
        return [
            (name, partition)
            for name, index in result
            if index is not None
            for partition in range(len(cluster.topics.rows_of(index)))
        ]

    def below(self, path: str) -> list[str] | None:
        """The names of the records below a path. None if there is no such record."""
        with suppress(StoredRecordError):
            if self.ensemble.records.exists(self._reader, path) is not None:
                return self.ensemble.records.children(self._reader, path)
        return None


def _replicas(history: ArgumentState) -> tuple[int, ...]:
    return tuple(history.random.sample(BROKERS, history.random.randint(1, 3)))


def _states(history: ArgumentState, number: int) -> Arguments:
    session = history.model.sessions[number]
    stored = history.stored()
    # A topic with fewer partitions than the session knows was deleted and created again.
    known = [
        hosted
        for hosted in history.partitions(session.cluster)
        if stored.row(*hosted) is not None or stored.topics.find(hosted[0]) is None
    ]
    if not known:
        return None
    chosen = history.random.sample(known, min(len(known), history.random.randint(1, 3)))
    states = {f"{name}-{partition}": _state(history, name, partition) for name, partition in sorted(chosen)}
    return states, history.claimed.get(number, 0)


def _state(history: ArgumentState, name: str, partition: int) -> StateSpec:
    random, stored = history.random, history.stored()
    row = stored.row(name, partition)
    version = NO_STATE if row is None else int(stored.partitions.partition_epoch[row])
    if random.random() < 0.25:
        version = random.choice((NO_STATE, 0, version + 1, max(version - 1, 0)))
    isr = _replicas(history)
    leader = random.choice((-1, *isr))
    return StateSpec(leader, isr, random.randint(0, 9), version, int(random.random() < 0.2))


def _names_of_states(history: ArgumentState, number: int) -> Arguments:
    known = history.partitions(history.model.sessions[number].cluster)
    if not known:
        return None
    chosen = history.random.sample(known, min(len(known), history.random.randint(1, 4)))
    return (tuple(f"{name}-{partition}" for name, partition in chosen),)


def _new_topics(history: ArgumentState, number: int) -> tuple[Any, ...]:
    names = history.random.sample(TOPICS, history.random.randint(1, 2))
    configs = tuple(_config(history) for _ in names)
    topics = {name: [_replicas(history) for _ in range(history.random.randint(1, 3))] for name in names}
    return topics, configs, history.random.random() < 0.8


def _config(history: ArgumentState) -> dict[str, str]:
    choices = {"min.insync.replicas": ("1", "2"), "unclean.leader.election.enable": ("true", "false")}
    return {key: history.random.choice(values) for key, values in choices.items() if history.random.random() < 0.5}


def _assignments(history: ArgumentState, number: int) -> Arguments:
    session = history.model.sessions[number]
    known = [name for name in history.topics() if session.topic_ids.get(name) not in (None, bytes(16))]
    if not known:
        return None
    name, stored = history.random.choice(known), history.stored()
    index = stored.topics.find(name)
    assert index is not None
    lists = [_assignment(history, list(stored.view(row).replicas)) for row in stored.topics.rows_of(index).tolist()]
    if history.random.random() < 0.3 and len(lists) < 5:
        lists.append((_replicas(history), (), ()))
    return ({name: lists},)


def _assignment(history: ArgumentState, replicas: list[int]) -> Assignment:
    new = [replica for replica in _replicas(history) if replica not in replicas]
    match history.random.randrange(3):
        case 0:
            return tuple(replicas), (), ()
        case 1:
            return (*replicas, *new), tuple(new), ()
        case _:
            return (*new, *replicas), tuple(new), tuple(replicas)


def _some_topics(history: ArgumentState, number: int) -> tuple[Any, ...]:
    return (tuple(history.random.sample(TOPICS, history.random.randint(1, 2))),)


def _some_known_topics(history: ArgumentState, number: int) -> Arguments:
    known = history.topics()
    return (tuple(history.random.sample(known, min(len(known), history.random.randint(1, 2)))),) if known else None


def _draw_known_topic(history: ArgumentState, number: int) -> Arguments:
    known = history.topics()
    return ((history.random.choice(known),),) if known and history.random.random() < 0.5 else None


def _without_id(history: ArgumentState, number: int) -> Arguments:
    stored = history.stored().topics
    result = [name for name in history.topics() if not stored.ids[stored.find(name)].tobytes().strip(b"\0")]
    return (tuple(result),) if result else None


def _new_config(history: ArgumentState, number: int) -> Arguments:
    topic = history.random.choice([*history.topics(), None])
    return topic, _config(history)


def _targets(history: ArgumentState, number: int) -> tuple[Any, ...]:
    count = history.random.randint(0, 2)
    return (tuple(((name, 0), _replicas(history)) for name in history.random.sample(TOPICS, count)),)


def _unregistered(history: ArgumentState) -> Arguments:
    registered = {registration.broker_id for registration in history.ensemble.registrations()}
    free = [broker for broker in BROKERS if broker not in registered]
    if not free:
        return None
    chosen = history.random.sample(free, history.random.randint(1, len(free)))
    return (tuple(_registration(history, partition) for partition in sorted(chosen)),)


def _registration(history: ArgumentState, broker_id: int) -> Registration:
    port, rack = history.random.choice((9092, 9093)), history.random.choice((None, "r1"))
    return Registration(broker_id, NO_BROKER_EPOCH, (Endpoint("PLAINTEXT", f"b{broker_id}", port),), rack)


def _registered(history: ArgumentState) -> Arguments:
    registered = [registration.broker_id for registration in history.ensemble.registrations()]
    return (
        (tuple(history.random.sample(registered, history.random.randint(1, len(registered)))),) if registered else None
    )


def _modified(history: ArgumentState) -> Arguments:
    registered = [registration.broker_id for registration in history.ensemble.registrations()]
    return (_registration(history, history.random.choice(registered)),) if registered else None


def _isr(history: ArgumentState) -> Arguments:
    stored = history.stored()
    with_state = [
        (name, partition)
        for name, partition in history.partitions(stored)
        if (row := stored.row(name, partition)) is not None and stored.partitions.partition_epoch[row] != NO_STATE
    ]
    return (*history.random.choice(with_state), _replicas(history)) if with_state else None


def _settings(history: ArgumentState) -> Arguments:
    known = history.topics()
    return (history.random.choice(known), _config(history)) if known else None


def _unmarked(history: ArgumentState) -> Arguments:
    marked = history.below(DELETE_TOPICS) or []
    free = [name for name in history.topics() if name not in marked]
    return ((history.random.choice(free),),) if free else None


def _stored_targets(history: ArgumentState) -> Arguments:
    targets = _targets(history, 0)[0]
    return (targets,) if targets and history.below(REASSIGN_PARTITIONS) is None else None


def _role_record(history: ArgumentState) -> Arguments:
    exists = history.below(CONTROLLER) is not None
    return () if exists and history.random.random() < 0.4 else None


def _draw_session(history: ArgumentState) -> Arguments:
    number = history.any_session()
    return None if number is None or history.random.random() < 0.8 else (number,)


#: Controller calls with arguments.
OF_CALLS: Final[Mapping[str, Callable[[ArgumentState, int], Arguments]]] = {
    "write_states": _states,
    "read_states": _names_of_states,
    "create_topics": _new_topics,
    "write_assignments": _assignments,
    "assign_topic_ids": _without_id,
    "read_topics": _some_topics,
    "read_topic_settings": _some_known_topics,
    "queue_deletions": _some_known_topics,
    "drop_deletions": _some_topics,
    "delete_topics": _draw_known_topic,
    "read_configs": lambda history, number: (history.random.choice([*history.topics(), None]),),
    "write_configs": _new_config,
    "write_reassignments": _targets,
}
#: External changes by brokers and operators.
FROM_OUTSIDE: Final[Mapping[str, Callable[[ArgumentState], Arguments]]] = {
    "register_brokers": _unregistered,
    "unregister_brokers": _registered,
    "bounce_brokers": _registered,
    "modify_broker": _modified,
    "write_state": _isr,
    "configure_topic": _settings,
    "mark_for_deletion": _unmarked,
    "request_reassignments": _stored_targets,
    "request_preferred_election": lambda history: (
        ((("a", 0), ("d_e", 1)),) if history.below(PREFERRED_ELECTION) is None else None
    ),
    "notify_isr_changes": lambda history: ((("a", history.random.randrange(3)), ("b.c", 0)),),
    "notify_log_dir_event": lambda history: (history.random.choice(BROKERS),),
    "drop_controller": _role_record,
    "expire": _draw_session,
}
