"""Invariants of stored leadership states: leader, ISR and epochs (I4 to I9)."""

from __future__ import annotations

from kframe.model.events import AlterPartitionRequested, ElectionRequested, ElectionType
from kframe.model.protocol import InterBrokerProtocol
from kframe.model.topics import UNSET
from kframe_simulator.simulation.controller_memory import lost_dirs_known
from kframe_simulator.simulation.observations import EventCompleted, StateWritten, WriteRefused
from kframe_simulator.simulation.watch import Watch

#: After this time a controller applies a changed topic setting.
SETTINGS_READ_MS = 30_000.0


def proposed(written: StateWritten) -> bool:
    """Whether a leader has proposed this state. Other writes of the same event are the controller's, such as the end of
    a reassignment."""
    event = None if written.process is None else written.process.event
    if not isinstance(event, AlterPartitionRequested) or written.before is None:
        return False
    requested = any(tuple(event.isr[index].tolist()) == written.after.isr for index in range(len(event.isr)))
    return requested and written.after.leader_epoch == written.before.leader_epoch


def elected(written: StateWritten) -> bool:
    """Whether a controller has elected this leader with this write."""
    before, after = written.before, written.after
    if written.process is None or proposed(written) or after.leader < 0:
        return False
    return before is None or before.partition_epoch < 0 or before.leader != after.leader


def leader_is_valid(watch: Watch, written: StateWritten) -> str | None:
    """I4: the leader is -1, or an assigned ISR member that was live and not shutting down when it was elected."""
    after = written.after
    if written.process is None or after.leader == -1:
        return None
    if after.leader not in after.isr:
        return f"{written.key}: leader {after.leader} is not in isr {after.isr}"
    if elected(written) and after.leader not in after.replicas:
        return f"{written.key}: leader {after.leader} was chosen, replicas are {after.replicas}"
    if elected(written) and written.cluster is not None:
        brokers = written.cluster.brokers
        index = brokers.find(after.leader)
        if index is None or not brokers.live[index]:
            return f"{written.key}: leader {after.leader} was chosen though it was known to be dead or leaving"
    return None


def isr_is_valid(watch: Watch, written: StateWritten) -> str | None:
    """I5: the ISR is not empty and has no duplicates."""
    after = written.after
    if written.process is not None and (not after.isr or len(set(after.isr)) != len(after.isr)):
        return f"{written.key}: isr {after.isr}"
    return None


def isr_is_assigned(watch: Watch, ended: EventCompleted) -> str | None:
    """I5: after an event, no ISR contains a replica that the event removed from the assignment. As in Kafka, an
    overridden reassignment stores the assignment before it shrinks the ISR. If the controller fails in between, the
    leader removes the replica."""
    if not ended.process.active:
        return None
    for was, row in ended.written_rows(watch.simulation.ensemble.rows):
        unassigned = (set(row.isr) - set(row.replicas)) & set(was.replicas)
        if row.partition_epoch >= 0 and unassigned:
            return f"{row.key}: isr {row.isr} of replicas {row.replicas}, which were {was.replicas}"
    return None


def unclean_allowed(written: StateWritten) -> bool:
    """Whether unclean election is enabled by the topic, the default or the operator. The controller's knowledge
    counts."""
    assert written.process is not None
    assert written.cluster is not None
    event = written.process.event
    if isinstance(event, ElectionRequested) and event.election_type is ElectionType.UNCLEAN:
        return True
    topics = written.cluster.topics
    index = topics.find(written.key[0])
    own = UNSET if index is None else int(topics.unclean[index])
    return bool(written.process.loop.controller.context.term.unclean_by_default if own == UNSET else own)


def election_is_clean(watch: Watch, written: StateWritten) -> str | None:
    """I6: with unclean election disabled, the leader was in sync. The built-in selector elects the first in AR
    order."""
    before, after, cluster = written.before, written.after, written.cluster
    if not elected(written) or cluster is None or before is None or before.partition_epoch < 0:
        return None
    if after.leader not in before.isr:
        return None if unclean_allowed(written) else f"{written.key}: {after.leader} was not in isr {before.isr}"
    if watch.simulation.options.selector is not None:
        return None
    row = cluster.row(*written.key)
    live = set(cluster.brokers.ids[cluster.brokers.live != 0].tolist())
    lost = lost_dirs_known(cluster, row)
    first = next(
        (replica for replica in after.replicas if replica in before.isr and replica in live and replica not in lost),
        None,
    )
    if first is not None and first != after.leader:
        return f"{written.key}: {after.leader} was chosen before {first} of replicas {after.replicas}, isr {before.isr}"
    return None


def settings_are_applied(watch: Watch, written: StateWritten) -> str | None:
    """I6: no out-of-sync replica is elected if storage has long disabled unclean election."""
    before, process = written.before, written.process
    if process is None or before is None or before.partition_epoch < 0 or not elected(written):
        return None
    event, now = process.event, watch.simulation.scheduler.now_ms
    requested = isinstance(event, ElectionRequested) and event.election_type is ElectionType.UNCLEAN
    if written.after.leader in before.isr or requested:
        return None
    allowed = watch.simulation.ensemble.unclean_allowed_at(written.key[0])
    if allowed is None or now - allowed > SETTINGS_READ_MS:
        return f"{written.key}: {written.after.leader} was elected outside isr {before.isr}, last allowed at {allowed}"
    return None


def unclean_leader_is_alone(watch: Watch, written: StateWritten) -> str | None:
    """I7: a leader from outside the ISR becomes the whole ISR, and is recovering where the state has that field."""
    before, after = written.before, written.after
    if not elected(written) or before is None or before.partition_epoch < 0 or after.leader in before.isr:
        return None
    recovers = InterBrokerProtocol.parse(watch.simulation.options.protocol).recovery_state
    if after.isr != (after.leader,) or after.recovery != int(recovers):
        return f"{written.key}: unclean leader {after.leader}, isr {after.isr}, recovery {after.recovery}"
    return None


def leader_epoch_goes_up(watch: Watch, written: StateWritten) -> str | None:
    """I8: leader epochs never decrease. A controller's own change adds one, an accepted proposal none."""
    before, after = written.before, written.after
    if before is None or before.partition_epoch < 0:
        wrong = written.process is not None and after.leader_epoch != 0
    elif written.process is None:
        wrong = after.leader_epoch < before.leader_epoch
    else:
        wrong = after.leader_epoch != before.leader_epoch + (0 if proposed(written) else 1)
    was = None if before is None else before.leader_epoch
    return f"{written.key}: leader epoch {was} became {after.leader_epoch}" if wrong else None


def partition_epochs_are_consecutive(watch: Watch, written: StateWritten) -> str | None:
    """I9: each write replaces the version directly before it."""
    before, after = written.before, written.after
    expected = 0 if before is None or before.partition_epoch < 0 else before.partition_epoch + 1
    if after.partition_epoch != expected:
        return f"{written.key}: version {after.partition_epoch}, expected {expected}"
    return None


def only_others_cause_refusals(watch: Watch, refused: WriteRefused) -> str | None:
    """I9: a controller's write is refused for its version only if another client wrote the state last."""
    if watch.last_writer.get(refused.key) is refused.process and watch.observed.in_term(refused.process):
        return f"{refused.key}: a write was refused although this controller has written the state last"
    return None


def own_writes_are_known(watch: Watch, ended: EventCompleted) -> str | None:
    """I9: a controller knows the version of each state that it wrote last."""
    process = ended.process
    if not process.active or not ended.written:
        return None
    cluster, rows = process.loop.controller.cluster, watch.simulation.ensemble.rows
    for key in ended.written:
        row, stored = cluster.row(*key), rows.get(key)
        if row is None or stored is None or watch.last_writer.get(key) is not process:
            continue
        known = int(cluster.partitions.partition_epoch[row])
        if known != stored.partition_epoch:
            return f"{key}: the controller knows version {known}, storage has {stored.partition_epoch}"
    return None
