"""Helpers for tests of elections: a small cluster, and a record of the selectors that are called."""

from __future__ import annotations

from kframe.core.selectors.leader_selection import Selection
from kframe.core.state_machines import partition_state_machine
from kframe.core.state_machines.leader_election import Strategy
from kframe.model.cluster import ClusterState
from kframe.model.columns import Int32, UInt8
from kframe.model.ids import ElectionKind, PartitionState
from tests.core.driver import Driver

UNCLEAN = {"unclean.leader.election.enable": "true"}


class RecordingSelection(Selection):
    """The built-in selectors with a record of their calls. It has the election kind and partitions."""

    def __init__(self) -> None:
        super().__init__({})
        self.elections: list[tuple[ElectionKind, list[str], list[int]]] = []

    def choose(self, cluster: ClusterState, kind: ElectionKind, rows: Int32, unclean_allowed: UInt8) -> Int32:
        if len(rows):
            self.elections.append((kind, [cluster.name(row) for row in rows.tolist()], unclean_allowed.tolist()))
        return super().choose(cluster, kind, rows, unclean_allowed)


def elect(driver: Driver, strategy: Strategy) -> None:
    rows = driver.rows("t-0")
    driver.run(partition_state_machine.transition(driver.context, rows, PartitionState.ONLINE, strategy))
