"""Invariants of leaders and ISR members (I4, I5, L1, L5). They use what a controller knows by its channels and the
ControlledShutdown requests it has received.

``states`` checks each stored state alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kframe.model.events import (
    AlterPartitionRequested,
    BrokersChanged,
    ControlledShutdownRequested,
    ReassignmentRequested,
    Reelect,
    TopicSettingsChanged,
)
from kframe.model.ids import NO_BROKER_EPOCH, NO_STATE
from kframe.ports.store_requests import DropPreferredElection, Load
from kframe_simulator.invariants.states import elected, proposed
from kframe_simulator.replication.control_requests import Row
from kframe_simulator.simulation.controllers import ControllerProcess
from kframe_simulator.simulation.observations import EventCompleted, StateWritten
from kframe_simulator.simulation.watch import Watch

#: Earlier AlterPartition versions have no error for an ineligible replica.
_REFUSED_SINCE = 1
#: After these events every partition with an eligible replica has a leader.
_CHANGES_BROKERS = (BrokersChanged, Reelect, ControlledShutdownRequested)


def proposed_members_are_live(watch: Watch, written: StateWritten) -> str | None:
    """I5: each member of a proposed ISR is live when the ISR is stored. It is registered under the broker epoch of the
    proposal, and not shutting down."""
    process = written.process
    if process is None or not proposed(written):
        return None
    event, members = process.event, written.after.isr
    assert isinstance(event, AlterPartitionRequested)
    registered = watch.observed.registered(process)
    eligible = registered.keys() if event.version < _REFUSED_SINCE else watch.observed.live(process)
    if not eligible >= set(members):
        return f"{written.key}: isr {members} was accepted, live are {sorted(eligible)}"
    for member, epoch in _isr_member_epochs(event):
        if member in members and epoch not in (NO_BROKER_EPOCH, registered[member]):
            return f"{written.key}: broker {member} of epoch {epoch} joined, it is registered as {registered[member]}"
    return None


def _isr_member_epochs(event: AlterPartitionRequested) -> Iterator[tuple[int, int]]:
    if event.isr_epochs is not None:
        yield from zip(event.isr.values.tolist(), event.isr_epochs.tolist(), strict=True)


def strict_proposals_are_valid(watch: Watch, written: StateWritten) -> str | None:
    """I5: with strict checks an ISR is stored only for its leader. It has the leader and assigned brokers only."""
    process, before, after = written.process, written.before, written.after
    if process is None or before is None or not watch.simulation.options.strict or not proposed(written):
        return None
    event = process.event
    assert isinstance(event, AlterPartitionRequested)
    if event.broker_id != before.leader:
        return f"{written.key}: broker {event.broker_id} proposed an isr, {before.leader} leads"
    if before.leader not in after.isr or not set(after.isr) <= set(after.replicas):
        return f"{written.key}: leader {before.leader} proposed isr {after.isr} of replicas {after.replicas}"
    return None


def leaders_are_live(watch: Watch, written: StateWritten) -> str | None:
    """I4: a leader is live when it is elected. So is every ISR member if the previous leader has failed, or after a
    controlled shutdown. Preferred elections and reassignments keep the ISR, also with a broker that is shutting down
    (Kafka 3.9 ``leaderForPreferredReplica``, ``leaderForReassign``). A controlled shutdown keeps a member that its
    leader has added after the controller handled its failure (``leaderForControlledShutdown``)."""
    process, after = written.process, written.after
    if process is None or not elected(written):
        return None
    live = watch.observed.live(process)
    if after.leader not in live:
        return f"{written.key}: leader {after.leader} was elected, live are {sorted(live)}"
    before = written.before
    replaced = before is None or before.partition_epoch == NO_STATE or before.leader not in live
    if before is not None and before.leader in watch.observed.registered(process):
        replaced &= isinstance(process.event, _CHANGES_BROKERS) and not (after.adding or after.removing)
    members = set(after.isr)
    if isinstance(process.event, ControlledShutdownRequested):
        members -= watch.observed.added_after_failure(written.key)
    if replaced and not members <= live:
        return f"{written.key}: leader {after.leader} was elected with isr {after.isr}, live are {sorted(live)}"
    return None


def _rows(watch: Watch, process: ControllerProcess) -> Iterator[Row]:
    """Stored states that a controller manages: of readable topics that are not being deleted."""
    ensemble, marked = watch.simulation.ensemble, watch.observed.marked()
    unreadable_at_start = watch.observed.of_term(process).unreadable
    for key, row in ensemble.rows.items():
        known = row.partition_epoch != NO_STATE and key not in unreadable_at_start
        if known and key[0] not in marked and ensemble.readable([key[0]]):
            yield row


def with_all_log_dirs(watch: Watch, brokers: Iterable[int]) -> set[int]:
    """Those of some brokers without a failed log directory."""
    return {broker for broker in brokers if not watch.simulation.brokers[broker].dead_dirs}


def _can_be_replaced(watch: Watch, process: ControllerProcess, row: Row) -> bool:
    """Whether another ISR member can lead: it is assigned and live, and has reported no failed log directory."""
    others = watch.observed.live(process).intersection(row.isr, row.replicas) - {row.leader}
    return not others <= watch.observed.with_storage_error(process, row.key)


def _running(watch: Watch, brokers: Iterable[int]) -> set[int]:
    return {broker for broker in brokers if watch.simulation.brokers[broker].running}


def failed_brokers_leave_isrs(watch: Watch, ended: EventCompleted) -> str | None:
    """I5: after a controller has handled the end of a registration, or a failover, no ISR with other members contains
    an unregistered broker, nor one that has requested a controlled shutdown.

    A leader that shuts down stays if no other member can lead (Kafka 3.9 ``leaderForControlledShutdown``). Before
    inter-broker protocol 2.7-IV2 a leader writes ISRs itself. It may add a replica after the event that has handled its
    failure, and removes it again. A failover removes it, too. A controller whose server lags decides by an earlier
    state, and changes nothing if that ISR has no other member: the broker asks again.
    """
    process, event = ended.process, ended.event
    if not isinstance(event, _CHANGES_BROKERS) or not ended.succeeded:
        return None
    present = set(watch.observed.registered(process))
    if isinstance(event, ControlledShutdownRequested):
        present -= watch.observed.leaving(process) & {event.broker_id}
    for row in _rows(watch, process):
        if row.key in ended.overwritten | ended.read_behind:
            continue  # Before inter-broker protocol 2.7-IV2 leaders write ISRs themselves.
        failed = set(row.isr).intersection(row.replicas) - present
        if not ended.requests.get(Load):
            failed -= watch.observed.added_after_failure(row.key) - ended.departed
        if isinstance(event, ControlledShutdownRequested) and row.leader == event.broker_id:
            failed -= set() if _can_be_replaced(watch, process, row) else {row.leader}
        if failed and len(row.isr) > 1:
            return f"{row.key}: after {type(event).__name__} {sorted(failed)} stay in isr {row.isr}"
    return None


def unassigned_leave_at_failover(watch: Watch, ended: EventCompleted) -> str | None:
    """I5: after a failover, no ISR with an assigned live leader contains an unassigned replica. Leaders that write ISRs
    themselves may write another one meanwhile."""
    process = ended.process
    took_over = ended.requests.get(Load) and ended.succeeded
    if not took_over or not watch.simulation.controllers_store_isrs:
        return None
    live = watch.observed.live(process)
    for row in _rows(watch, process):
        if not set(row.isr) <= set(row.replicas) and row.leader in live.intersection(row.replicas):
            return f"{row.key}: isr {row.isr} of replicas {row.replicas} after a failover"
    return None


def reassigned_partitions_have_leaders(watch: Watch, ended: EventCompleted) -> str | None:
    """L1: a partition that never had a leader has one after its reassignment to live brokers."""
    process, event = ended.process, ended.event
    if not isinstance(event, ReassignmentRequested) or not ended.succeeded:
        return None
    live = with_all_log_dirs(watch, watch.observed.live(process))
    for key in event.targets.partitions():
        row = watch.simulation.ensemble.rows.get(key)
        if row is None or key[0] not in ended.topics or key[0] in watch.observed.marked():
            continue
        if row.partition_epoch == NO_STATE and row.replicas and set(row.replicas) <= live:
            return f"{row.key}: replicas {row.replicas} are live, and none was elected"
    return None


def deletions_begin_at_once(watch: Watch, ended: EventCompleted) -> str | None:
    """L3: after a failover, deletion has begun for each topic whose replicas are all live, under reassignment or not
    (``kframe.reassignment.strict``). Excluded are topics that the failover could not read."""
    process, ensemble = ended.process, watch.simulation.ensemble
    if not ended.requests.get(Load) or not ended.succeeded:
        return None
    live = with_all_log_dirs(watch, watch.observed.live(process))
    waiting = watch.observed.of_process(process).marks_before & watch.observed.marked() & ensemble.topic_ids.keys()
    term = watch.observed.of_term(process)
    for name in sorted(waiting - watch.observed.deleting(process) - term.unreadable_topics):
        partitions = ensemble.topic_partitions(name).values()
        if all((row.key, replica) in term.sent_deletions for row in partitions for replica in row.replicas):
            continue  # UpdateMetadata has no partitions without a state.
        if ensemble.readable([name]) and all(set(row.replicas) <= live for row in partitions):
            return f"{name}: all replicas are live, and its deletion has not begun"
    return None


def settings_elect_at_once(watch: Watch, ended: EventCompleted) -> str | None:
    """L1: after a controller has handled that a topic allows unclean election, each partition with a live replica has a
    registered leader. A leader that is shutting down leads on (Kafka 3.9 ``triggerOnlinePartitionStateChange``)."""
    process, event, simulation = ended.process, ended.event, watch.simulation
    if not isinstance(event, TopicSettingsChanged) or not ended.succeeded:
        return None
    changed_again = event in process.loop.queue.waiting()
    if changed_again or event.topic not in simulation.ensemble.topic_ids or not allows_unclean(watch, event.topic):
        return None
    registered = watch.observed.registered(process)
    usable = _running(watch, with_all_log_dirs(watch, watch.observed.live(process)))
    for row in _rows(watch, process):
        if row.key[0] == event.topic and row.leader not in registered and usable.intersection(row.replicas):
            return f"{row.key}: leader {row.leader}, unclean elections are allowed, {sorted(usable)} live"
    return None


def allows_unclean(watch: Watch, name: str) -> bool:
    """Whether unclean election is enabled for a topic in storage."""
    return bool(watch.simulation.ensemble.topics.settings(name).unclean == 1)


def stored_elections_are_performed(watch: Watch, ended: EventCompleted) -> str | None:
    """L3: after the znode of a preferred election is deleted, each partition in it has its preferred leader, if that
    replica is live and in sync."""
    process = ended.process
    if not ended.requests.get(DropPreferredElection) or not ended.succeeded:
        return None
    live = watch.observed.live(process)
    usable = _running(watch, with_all_log_dirs(watch, live))
    for row in _rows(watch, process):
        led = row.key in ended.elections - ended.overwritten and row.leader in live and row.leader != row.replicas[0]
        if led and row.replicas[0] in usable.intersection(row.isr):
            return f"{row.key}: leader {row.leader} after a preferred election of replicas {row.replicas}"
    return None


def reassignments_end_after_broker_startup(watch: Watch, ended: EventCompleted) -> str | None:
    """L3: after a target broker has registered, no reassignment is in progress whose target is live, in sync and
    leading. Leaders that write ISRs themselves notify of them later. The event handles new brokers, then bounced ones
    as failed and as new, then failed ones: an unclean election that later ones cause may make the target the whole ISR,
    and ends no reassignment (Kafka 3.9 ``processBrokerChange``). A reassignment has ended if its brokers were notified
    of the target, also if the record was unreadable then and the end is not stored yet."""
    process = ended.process
    if not watch.simulation.controllers_store_isrs:
        return None
    if not isinstance(ended.event, BrokersChanged) or not ended.succeeded:
        return None
    live = watch.observed.live(process)
    usable = _running(watch, with_all_log_dirs(watch, live))
    for row in _rows(watch, process):
        target = set(row.target)
        moving = (row.adding or row.removing) and row.leader in target and target & ended.arrived
        failed_later = ended.departed if target & ended.bounced else ended.departed | ended.bounced
        end_is_sent = watch.observed.sent_assignment(process, row.key) == (row.target, (), ())
        elected_last = row.key in ended.written and failed_later.intersection(row.replicas)
        if moving and not end_is_sent and not elected_last and target <= usable.intersection(row.isr):
            return f"{row.key}: target {sorted(target)} is live and in sync, and the reassignment goes on"
    return None


def in_sync_partitions_have_leaders(watch: Watch, ended: EventCompleted) -> str | None:
    """L1, L5: after a broker failure or a controlled shutdown, a partition with a live in-sync replica has a registered
    leader. The broker that shuts down does not lead it. Partitions of other brokers that are shutting down wait for the
    next request of their leader (Kafka 3.9 ``doControlledShutdown``)."""
    process, event = ended.process, ended.event
    if not isinstance(event, _CHANGES_BROKERS) or not ended.succeeded:
        return None
    usable = _running(watch, with_all_log_dirs(watch, watch.observed.live(process)))
    present = set(watch.observed.registered(process))
    if isinstance(event, ControlledShutdownRequested):
        present -= watch.observed.leaving(process) & {event.broker_id}
    for row in _rows(watch, process):
        eligible = usable.intersection(row.isr).intersection(row.replicas)
        if row.key in ended.overwritten | ended.read_behind:
            continue  # The ISR may have grown after the controller read it, or after what its server returned.
        if row.leader not in present and eligible and not watch.simulation.waits_for_consent(row):
            return f"{row.key}: after {type(event).__name__} leader {row.leader}, though {sorted(eligible)} are in sync"
    return None
