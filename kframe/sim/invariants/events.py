"""Rules of a controller at work: its gauges, its answers, what it survives, how much it does at once (I24 to I30)."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from kframe.core.doomed import Doomed
from kframe.core.gauges import Gauges
from kframe.model.cluster import ClusterState
from kframe.model.ids import NO_STATE, PartitionState
from kframe.sim.watch import Ended, Replied, Watch

#: No event of a world this small needs more effects.
EFFECTS_MAX: Final = 400
#: No queue of a world this small is longer, whatever happens.
QUEUE_MAX: Final = 400


def gauges_are_recounts(watch: Watch, ended: Ended) -> str | None:
    """I24: the gauges are what a recount of the columns finds, and 0 while the process is not controller."""
    controller = ended.process.loop.controller
    gauges = controller.gauges()
    if not controller.active:
        left = {name: value for name, value in gauges.items() if value}
        return f"gauges of a process that is not controller: {left}" if left else None
    cluster = controller.cluster
    counted = b"".join([column.tobytes() for column in _counted(cluster)])
    known, recount = watch.recounts.get(ended.process.controller_id, (b"", {}))
    if known != counted:
        recount = Gauges(cluster, Doomed(cluster)).values()
        watch.recounts[ended.process.controller_id] = counted, recount
    wrong = {name: (gauges[name], value) for name, value in recount.items() if gauges[name] != value}
    return f"gauges (shown, recounted): {wrong}" if wrong else None


def _counted(cluster: ClusterState) -> tuple[NDArray[Any], ...]:
    """All that a recount of the gauges looks at: it need not be made again where none of this has changed."""
    p, topics = cluster.partitions, cluster.topics
    return (
        p.topic, p.partition_epoch, p.state, p.leader, p.slot_start, p.replica_count, p.isr_count, p.replica, p.isr,
        p.replica_flags, p.replica_state, topics.deleting, topics.deletion_started, topics.deletion_halted,
        np.array(topics.known_count), cluster.brokers.registered,
    )  # fmt: skip


def states_fit_columns(watch: Watch, ended: Ended) -> str | None:
    """I25: what the state machines say of partitions fits what is known of them. Who was followed by another controller
    and has not heard of it may have read what that one has written."""
    controller = ended.process.loop.controller
    if not ended.process.active or controller.controller_epoch < watch.world.ensemble.controller_epoch():
        return None
    cluster = ended.process.loop.controller.cluster
    p = cluster.partitions
    rows = (p.topic >= 0).nonzero()[0]
    state, leader, stated = p.state[rows], p.leader[rows], p.partition_epoch[rows] != NO_STATE
    bad = ((state == PartitionState.ONLINE) & ~(stated & (leader >= 0))) | ((state == PartitionState.NEW) & stated)
    for row in rows[bad].tolist():
        return f"{cluster.name(row)}: {PartitionState(int(p.state[row])).name}, leader {p.leader[row]}"
    return None


def answered_once(watch: Watch, replied: Replied) -> str | None:
    """I26: whoever asks is answered exactly once, with a code for all that was asked."""
    if replied.times != 1:
        return f"{replied.what} was answered {replied.times} times"
    return None if replied.whole else f"{replied.what}: the answer leaves something out"


def repeats_change_nothing(watch: Watch, ended: Ended) -> str | None:
    """I28: what is told twice causes no write the second time."""
    if ended.repeated and ended.written:
        return f"{type(ended.event).__name__} came twice, and {sorted(ended.written)} were written again"
    return None


def failures_are_explained(watch: Watch, ended: Ended) -> str | None:
    """I29: no event fails by itself: whatever stands in storage or comes from a broker."""
    reason = watch.world.unexplained_failure(ended.process)
    return None if reason is None else f"{type(ended.event).__name__} failed: {reason}"


def steps_are_bounded(watch: Watch, ended: Ended) -> str | None:
    """I30: an event ends after a bounded number of effects, and queues stay short."""
    process = ended.process
    if process.effects > EFFECTS_MAX:
        return f"{type(ended.event).__name__} took {process.effects} effects"
    longest = max([len(process.loop.queue), *(len(one.waiting) for one in process.transport.channels.values())])
    return f"a queue holds {longest}" if longest > QUEUE_MAX else None
