"""Invariants of topics: ids, assignments and deletion (I19 to I23)."""

from __future__ import annotations

from kframe.model.events import ReassignmentRequested
from kframe.model.ids import NO_STATE
from kframe_simulator.broker.messages import NO_ID, LeaderAndIsr
from kframe_simulator.simulation.observations import RequestQueued, TopicWritten
from kframe_simulator.simulation.watch import Watch


def deletion_was_confirmed(watch: Watch, written: TopicWritten) -> str | None:
    """I19: a topic is deleted from storage only after the broker of every replica has confirmed its deletion.

    As in Kafka, replicas that a reassignment has removed need no confirmation. If the topic was unreadable at its end,
    storage still lists them as removing. A partition without a state needs none either: it was added during the
    deletion, and no broker knows it.
    """
    if not written.before:
        watch.confirmed = {topic for topic in watch.confirmed if topic[0][0] != written.name}
    if written.after or written.process is None:
        return None
    for row in written.before.values():
        if row.partition_epoch == NO_STATE:
            continue
        dropped = row.removing if row.key in watch.unreadable else ()
        for replica in row.replicas:
            if replica not in dropped and (row.key, replica) not in watch.confirmed:
                return f"{written.name} was deleted before broker {replica} had deleted {row.key}"
    return None


def topic_id_is_constant(watch: Watch, written: TopicWritten) -> str | None:
    """I20: a topic keeps its id as long as it exists, and no other topic ever has it."""
    name, topic_id = written.name, written.topic_id
    known = watch.known_id.get(name, NO_ID)
    if not written.after:
        watch.known_id.pop(name, None)
        watch.mismatched_topics.discard(name)
        return None
    watch.known_id[name] = topic_id
    if topic_id == NO_ID:
        return None  # A client without topic ids has written it. Only a controller that knows the id can restore it.
    if known not in (NO_ID, topic_id):
        return f"{name} had another id before"
    if known == NO_ID and watch.ids_used.get(topic_id, name) != name:
        return f"{name} has an id that {watch.ids_used[topic_id]} had"
    if known == NO_ID and written.before and watch.ids_used.get(topic_id) != name:
        watch.mismatched_topics.add(name)
    watch.ids_used[topic_id] = name
    return None


def requests_name_the_topic(watch: Watch, queued: RequestQueued) -> str | None:
    """I20: LeaderAndIsr has the current or an earlier id of each topic."""
    message = queued.request.message
    if isinstance(message, LeaderAndIsr):
        for name, topic_id in message.topic_ids.items():
            if watch.ids_used.get(topic_id) != name:
                return f"{name} is sent to broker {queued.request.broker_id} under an id that it never had"
    return None


def reassignments_were_requested(watch: Watch, written: TopicWritten) -> str | None:
    """I21: a controller changes replicas only for a requested reassignment, which ends at its target or its origin."""
    if written.process is None:
        return None
    for number, after in written.after.items():
        before = written.before.get(number)
        if before is None or before[7:10] == after[7:10]:
            continue
        allowed = {before.target, before.origin} | watch.requested_targets[after.key]
        if after.target not in allowed and frozenset(before.origin) != frozenset(after.target):
            return f"{after.key}: {before[7:10]} became {after[7:10]}, which no request caused"
    return None


def requests_add_live_replicas(watch: Watch, written: TopicWritten) -> str | None:
    """I21: an API reassignment adds replicas on live brokers only (Kafka 3.9 ``validateReplicaAssignment``)."""
    process = written.process
    if process is None or not isinstance(process.event, ReassignmentRequested):
        return None
    live = watch.observed.live(process)
    for number, after in written.after.items():
        before = written.before.get(number)
        added = set(after.adding) - set(() if before is None else before.replicas) - live
        if added and before is not None:
            return f"{after.key}: brokers {sorted(added)} were added, live are {sorted(live)}"
    return None


def replica_lists_are_valid(watch: Watch, written: TopicWritten) -> str | None:
    """I5, I29: a controller replaces no replica list by an empty one, and stores no duplicates."""
    for number, after in written.after.items() if written.process is not None else ():
        before = written.before.get(number)
        emptied = before is not None and before.replicas and not after.replicas
        if emptied or len(set(after.replicas)) != len(after.replicas):
            return f"{after.key}: replicas {after.replicas}"
    return None


def partitions_stay(watch: Watch, written: TopicWritten) -> str | None:
    """I23: partitions are numbered from 0 without a gap, and are only added."""
    if not written.after or written.process is None:
        return None
    if written.name in watch.observed.marked():
        return None  # A topic under deletion does not grow: partitions of other clients are removed.
    if sorted(written.after) != list(range(len(written.after))) or len(written.after) < len(written.before):
        return f"{written.name}: partitions {sorted(written.before)} became {sorted(written.after)}"
    return None


def added_partitions_keep_replicas(watch: Watch, written: TopicWritten) -> str | None:
    """I23: added partitions leave the replicas of the others unchanged."""
    if written.process is None or not written.before or len(written.after) <= len(written.before):
        return None
    for number, before in written.before.items():
        if written.after[number][7:10] != before[7:10]:
            return f"{written.after[number].key}: replicas were changed while partitions were added"
    return None
