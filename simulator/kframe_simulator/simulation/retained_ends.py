"""The leaders that were deposed without knowing it, and lead again.

A leader that is elected again keeps the ends of its followers (Kafka 3.9 ``Replica.resetReplicaState``). It does so
even if another broker has led meanwhile, when its own LeaderAndIsr did not arrive, or had no leader. A follower that
has truncated its log since then counts as having records that it lacks, until it fetches again.
"""

from __future__ import annotations

from collections import defaultdict

from kframe.model.events import TopicPartition
from kframe_simulator.replication.control_requests import Row
from kframe_simulator.simulation.cluster import SimulatedCluster


class RetainedEnds:
    """The ends that leaders keep, of existing topics."""

    def __init__(self, simulation: SimulatedCluster) -> None:
        self._simulation = simulation
        self._leaders: defaultdict[TopicPartition, dict[int, int]] = defaultdict(dict)
        """By partition: the leader of each leader epoch, in the order in which they were stored."""

    def state_written(self, row: Row) -> None:
        """A state was stored."""
        if row.leader >= 0:
            self._leaders[row.key][row.leader_epoch] = row.leader

    def topic_deleted(self, name: str) -> None:
        """A topic was deleted."""
        for key in [key for key in self._leaders if key[0] == name]:
            del self._leaders[key]

    def overrated(self, row: Row) -> set[int]:
        """The ISR members whose logs end before the end that the leader has kept of them."""
        leader = self._simulation.brokers.get(row.leader)
        partition = None if leader is None else leader.model.partitions.get(row.key)
        if partition is None or not partition.is_leader or not self._leads_again(row):
            return set()
        ends = {member: replica.end for member, replica in partition.replicas.items() if member in row.isr}
        return {member for member, end in ends.items() if end > self._log_end(member, row.key)}

    def _leads_again(self, row: Row) -> bool:
        """Whether another broker has led between two leader epochs of the leader."""
        leaders = [leader for epoch, leader in self._leaders[row.key].items() if epoch < row.leader_epoch]
        return row.leader in leaders and set(leaders[leaders.index(row.leader) :]) != {row.leader}

    def _log_end(self, broker_id: int, key: TopicPartition) -> int:
        broker = self._simulation.brokers.get(broker_id)
        log = None if broker is None else broker.model.disks.logs.get(key)
        return 0 if log is None else log.end
