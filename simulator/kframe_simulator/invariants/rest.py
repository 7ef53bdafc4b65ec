"""Invariants after recovery: brokers match storage, and no work is pending (I12, I24, L1 to L6).

Brokers no longer receive the leaders of topics that are marked for deletion. L3 reports topics that are never deleted.
"""

from __future__ import annotations

from typing import Final

from kframe.embedded.layout import NOTIFICATIONS, PREFERRED_ELECTION, REASSIGN_PARTITIONS
from kframe.model.ids import NO_STATE
from kframe_simulator.invariants.members import allows_unclean, with_all_log_dirs
from kframe_simulator.replication.control_requests import Row, read_row
from kframe_simulator.simulation.controllers import ControllerProcess
from kframe_simulator.simulation.watch import Watch

#: After this time without a change, automatic leader balancing is complete.
BALANCED_MS: Final = 21_500.0
#: ``leader.imbalance.per.broker.percentage`` as a fraction: the share of a broker's preferred partitions with other
#: leaders.
IMBALANCE_MAX: Final = 0.1


def _registered(watch: Watch) -> tuple[int, ...]:
    return tuple(sorted(broker.broker_id for broker in watch.simulation.brokers.values() if broker.registered))


def _active(watch: Watch) -> ControllerProcess | None:
    return next((controller for controller in watch.simulation.controllers if controller.active), None)


def brokers_know_their_roles(watch: Watch, _: object) -> str | None:
    """I12: every live replica's last accepted LeaderAndIsr has the stored leader and leader epoch."""
    registered, excluded = _registered(watch), watch.mismatched_topics | watch.observed.marked()
    for key, row in watch.simulation.ensemble.rows.items():
        if row.partition_epoch == NO_STATE or key[0] in excluded:
            continue
        for replica in set(row.replicas).intersection(registered):
            state = watch.memory[replica].states.get(key)
            if state is None:
                return f"{key}: broker {replica} was not notified"
            if (state.leader, state.leader_epoch) != (row.leader, row.leader_epoch):
                return (
                    f"{key}: broker {replica} knows leader {state.leader} of epoch {state.leader_epoch}, "
                    f"storage has {row.leader} of {row.leader_epoch}"
                )
            if state.replicas != row.replicas or state.adding_replicas != row.adding:
                return f"{key}: broker {replica} knows replicas {state.replicas}, storage has {row.replicas}"
    return None


def brokers_know_the_cluster(watch: Watch, _: object) -> str | None:
    """I12: every live broker has all stored partitions. As in Kafka, a broker that registers again
    while a topic is deleted receives nothing about that topic."""
    ensemble = watch.simulation.ensemble
    alive, deleting = _registered(watch), watch.observed.marked()
    addresses = {registration.broker_id: registration.endpoints for registration in ensemble.registrations()}
    for broker_id in alive:
        cache, known_addresses = watch.simulation.brokers[broker_id].model.metadata, watch.memory[broker_id].addresses
        if cache.live_brokers != set(alive):
            return f"broker {broker_id} knows the brokers {sorted(cache.live_brokers)}, there are {alive}"
        if known_addresses != addresses:
            return f"broker {broker_id} knows others at {known_addresses}, they listen at {addresses}"
        for key, row in ensemble.rows.items():
            metadata = cache.partitions.get(key)
            if row.partition_epoch == NO_STATE or key in watch.rewritten or key[0] in deleting:
                continue
            known = (
                None
                if metadata is None
                else (metadata.leader, metadata.leader_epoch, metadata.isr, metadata.partition_epoch, metadata.replicas)
            )
            stored = row.leader, row.leader_epoch, row.isr, row.partition_epoch, row.replicas
            if known != stored:
                return f"{key}: broker {broker_id}'s metadata has {known}, storage {stored}"
    return None


def brokers_know_topic_ids(watch: Watch, _: object) -> str | None:
    """I20: brokers have the stored id for each topic of their replicas."""
    ensemble = watch.simulation.ensemble
    if not watch.simulation.topic_ids_used:
        return None
    for broker_id, memory in watch.memory.items():
        for name, topic_id in ensemble.topic_ids.items():
            hosted = any(
                key[0] == name and key in ensemble.rows and broker_id in ensemble.rows[key].replicas
                for key in memory.states
            )
            if hosted and memory.topic_ids.get(name, topic_id) != topic_id:
                return f"broker {broker_id} knows another id of {name}"
    return None


def context_equals_storage(watch: Watch, _: object) -> str | None:
    """I24, L6: the controller's memory equals storage. It missed no change.

    Exempt is the last ISR of a topic under deletion. Before 2.7-IV2 its leader may have written the ISR and died before
    the notification. Only an election would read it, and there is none.
    """
    process = _active(watch)
    if process is None:
        return None
    cluster, ensemble = process.loop.controller.cluster, watch.simulation.ensemble
    p = cluster.partitions
    known: dict[tuple[str, int], Row] = {}
    for row in (p.topic >= 0).nonzero()[0].tolist():
        state = read_row(cluster, row)
        known[state.key] = state
    for key in known.keys() ^ ensemble.rows.keys():
        return f"{key} is known to {'the controller' if key in known else 'storage'} alone"
    alive, deleting = set(_registered(watch)), watch.observed.marked()
    excluded = {key for key, row in ensemble.rows.items() if key[0] in deleting and row.leader not in alive}
    for key in (known.keys() & ensemble.rows.keys()) - excluded:
        # The controller epoch is excluded: Kafka sets it in memory even if nothing has to be written.
        if key not in watch.rewritten and _compared(known[key]) != _compared(ensemble.rows[key]):
            return f"{key}: the controller has {_compared(known[key])}, storage {_compared(ensemble.rows[key])}"
    registered = tuple(cluster.brokers.registered_ids())
    stored = tuple(registration.broker_id for registration in ensemble.registrations())
    if registered != stored:
        return f"the controller knows the brokers {registered}, storage {stored}"
    for index, name in enumerate(cluster.topics.names):
        if cluster.topics.find(name) == index and cluster.topics.ids[index].tobytes() != ensemble.topic_id(name):
            return f"{name}: the controller knows another id than storage"
    return None


def _compared(row: Row) -> tuple[object, ...]:
    return (row.leader, row.leader_epoch, *row[4:10])


def partitions_have_leaders(watch: Watch, _: object) -> str | None:
    """L1: a partition with a live ISR member has a live leader."""
    simulation = watch.simulation
    alive, deleting = set(_registered(watch)), watch.observed.marked()
    for key, row in simulation.ensemble.rows.items():
        if key[0] in deleting:
            continue
        if row.partition_epoch == NO_STATE:
            if alive & set(row.replicas):
                return f"{key} never got a state though {sorted(alive & set(row.replicas))} live"
        elif row.leader not in alive and alive & set(row.isr) and not simulation.waits_for_consent(row):
            return f"{key}: leader {row.leader} of isr {row.isr}, alive are {sorted(alive)}"
    return None


def unclean_partitions_have_leaders(watch: Watch, _: object) -> str | None:
    """L1: with unclean election enabled, a partition with a live replica has a leader. As in Kafka, a replica that a
    reassignment adds to a partition without a leader waits for the next broker change or failover."""
    simulation = watch.simulation
    alive, deleted = set(_registered(watch)), watch.observed.marked()
    usable = with_all_log_dirs(watch, alive)
    for key, row in simulation.ensemble.rows.items():
        able = usable.intersection(row.replicas) - watch.reassignments.awaiting_election(key)
        if row.partition_epoch == NO_STATE or row.leader in alive or not able or key[0] in deleted:
            continue
        if allows_unclean(watch, key[0]):
            return f"{key}: leader {row.leader} of isr {row.isr}, unclean elections are allowed, {able} live"
    return None


def leaders_are_balanced(watch: Watch, _: object) -> str | None:
    """L1: after a balancing interval without changes, no broker leads too few of its preferred partitions, as far as
    partitions can be moved (Kafka 3.9 ``checkAndTriggerAutoLeaderRebalance``)."""
    simulation = watch.simulation
    if not simulation.options.rebalance or simulation.scheduler.now_ms - simulation.changed_ms < BALANCED_MS:
        return None
    alive, deleted = set(_registered(watch)), watch.observed.marked()
    usable = with_all_log_dirs(watch, alive)
    rows = [row for row in simulation.ensemble.rows.values() if row.key[0] not in deleted and row.replicas]
    for broker in usable:
        preferred = [row for row in rows if row.replicas[0] == broker]
        elsewhere = [row for row in preferred if row.partition_epoch != NO_STATE and row.leader != broker]
        able = [row.key for row in elsewhere if broker in row.isr and row.leader >= 0]
        if able and len(elsewhere) > IMBALANCE_MAX * len(preferred):
            return f"broker {broker} does not lead {able}, which prefer it"
    return None


def late_topics_have_a_new_epoch(watch: Watch, _: object) -> str | None:
    """L5: a topic that was unreadable at the failover has a new leader epoch after it became readable. Leaders whose
    proposals were refused propose again only under a new leader epoch."""
    process, ensemble = _active(watch), watch.simulation.ensemble
    late = {} if process is None else watch.observed.of_term(process).unreadable
    for key, leader_epoch in late.items():
        row = ensemble.rows.get(key)
        if (
            row is not None
            and row.leader_epoch == leader_epoch
            and key[0] not in watch.observed.marked() | watch.mismatched_topics
        ):
            return f"{key}: still of leader epoch {leader_epoch}, under which nothing is proposed"
    return None


def leaders_know_their_replicas(watch: Watch, _: object) -> str | None:
    """I12. Each leader has the stored replicas of its partition."""
    for key, row in watch.simulation.ensemble.rows.items():
        broker = watch.simulation.brokers.get(row.leader)
        partition = None if broker is None else broker.model.partitions.get(key)
        if partition is None or not partition.is_leader or key[0] in watch.mismatched_topics | watch.observed.marked():
            continue
        if partition.leader_epoch == row.leader_epoch and partition.replica_ids != row.replicas:
            return f"{key}: leader {row.leader} goes by replicas {partition.replica_ids}, storage has {row.replicas}"
    return None


def notifications_are_removed(watch: Watch, _: object) -> str | None:
    """L3: notifications of brokers are deleted after they are handled."""
    for path in NOTIFICATIONS:
        if remaining := watch.simulation.ensemble.record_names(path):
            return f"{path} still has {remaining}"
    return None


def topics_have_ids(watch: Watch, _: object) -> str | None:
    """I20: where topics have ids, each topic has one. A missing id is written back."""
    if watch.simulation.topic_ids_used:
        for name, topic_id in watch.simulation.ensemble.topic_ids.items():
            if not any(topic_id):
                return f"{name} has no id"
    return None


def single_controller(watch: Watch, _: object) -> str | None:
    """L2: there is exactly one active controller. It owns ``/controller``."""
    active = [controller.controller_id for controller in watch.simulation.controllers if controller.active]
    stored = watch.simulation.ensemble.controller_id()
    return None if active == [stored] else f"active: {active}, in storage: {stored}"


def no_operator_work_is_pending(watch: Watch, _: object) -> str | None:
    """L3: at rest no znode of an operator is left, no reassignment is in progress, no topic is under deletion, and
    every request has a response. Exempt is a partition whose state another client has rewritten: its leader cannot
    propose an ISR. So is a reassignment whose target cannot join the ISR (``_isr_cannot_grow``), and one to no
    replicas: it is reported, and the replicas stay."""
    ensemble = watch.simulation.ensemble
    moving = {key: row for key, row in ensemble.rows.items() if row.adding or set(row.removing) < set(row.replicas)}
    moving = {key: row for key, row in moving.items() if row.adding or row.removing}
    waiting = {
        key for key, row in moving.items() if not set(row.target) <= set(row.isr) and _isr_cannot_grow(watch, row)
    }
    waiting |= moving.keys() & watch.rewritten
    for path in (REASSIGN_PARTITIONS, PREFERRED_ELECTION):
        if ensemble.has_record(path) and not watch.mismatched_topics and not waiting:
            return f"{path} is still there"
    if deleting := watch.observed.marked() - watch.mismatched_topics:
        return f"marked for deletion, and still there: {sorted(deleting)}"
    for key, row in moving.items():
        if key not in waiting and key[0] not in watch.mismatched_topics:
            return f"{key} is still moving: {row.replicas}, adding {row.adding}, removing {row.removing}, isr {row.isr}"
    return f"{watch.open_requests} requests got no response" if watch.open_requests else None


def no_request_waits(watch: Watch, _: object) -> str | None:
    """L4: no request is queued for a broker that would accept it."""
    for process in watch.simulation.controllers:
        if process.active:
            for channel in process.transport.channels.values():
                if channel.waiting or channel.in_flight is not None:
                    return f"{len(channel.waiting)} requests wait for broker {channel.broker_id}"
    return None


def all_replicas_are_in_sync(watch: Watch, _: object) -> str | None:
    """L5: every broker under controlled shutdown has stopped. All replicas are in sync, unless the ISR cannot grow."""
    for broker in watch.simulation.brokers.values():
        if not broker.registered:
            return f"broker {broker.broker_id} did not come back"
    for key, row in watch.simulation.ensemble.rows.items():
        if row.partition_epoch == NO_STATE or row.leader < 0 or _isr_cannot_grow(watch, row):
            continue
        if set(row.isr) != set(row.replicas):
            return f"{key}: isr {row.isr} of replicas {row.replicas}"
    return None


def _isr_cannot_grow(watch: Watch, row: Row) -> bool:
    """Whether the leader of a partition can propose no ISR, or its followers cannot catch up.

    Another client has rewritten the state, or the controller has refused a proposal while the topic was unreadable, or
    has accepted another copy of a refused proposal. Or a broker has a log of an earlier topic: before topic ids a
    follower cannot find out where that log and its own part.
    """
    refused = row.key in watch.rewritten | watch.unreadable or row.key[0] in watch.mismatched_topics
    refused |= watch.record_history.refused_proposals.leader_is_behind(row)
    return refused or watch.record_history.has_later_epochs(row)
