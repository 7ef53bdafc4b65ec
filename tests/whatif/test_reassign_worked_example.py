"""docs/explanation/reassignment.md: its tables equal the states that the engine stores from {1,2,3} to {4,5,6}."""

from __future__ import annotations

import numpy as np
import pytest

from kframe.core.controller import ControllerCore
from kframe.core.selectors.leader_selection import Selection
from kframe.embedded import MemoryEnsemble, MemoryStore, RecordingTransport, VirtualClock
from kframe.model.arrays import Ragged
from kframe.model.config import ControllerConfig
from kframe.model.events import AlterPartitionRequested, ReassignmentRequested
from kframe.model.tables import RequestedPartitions, Targets
from kframe.ports.store_requests import Reply, StoreRequest, WriteAssignments, WriteStates
from kframe.runtime.loop import ControllerLoop
from kframe.testing.clusters import cluster_of, healthy
from tests.architecture.source import ROOT

PAGE = ROOT / "docs" / "explanation" / "reassignment.md"


class RecordingStore(MemoryStore):
    """A store that records the stored partition after every write."""

    def __init__(self, ensemble: MemoryEnsemble) -> None:
        super().__init__(ensemble.records, ensemble.states, ensemble.topics)
        self._ensemble = ensemble
        self.rows: list[list[str]] = []

    def perform(self, request: StoreRequest[Reply]) -> Reply:
        reply = super().perform(request)
        if isinstance(request, WriteStates | WriteAssignments):
            self.record()
        return reply

    def record(self) -> None:
        """Record the partition as stored."""
        view = self._ensemble.states.cluster["t", 0]
        lists = (view.replicas, view.adding_replicas, view.removing_replicas)
        cells = [",".join(map(str, broker_ids)) or "–" for broker_ids in lists]
        self.rows.append([*cells, f"{view.leader} / {','.join(map(str, view.isr))}", str(view.leader_epoch)])


def documented_rows(heading: str) -> list[list[str]]:
    """Return the rows of the table under a heading, without their number and description."""
    text = PAGE.read_text().partition(f"## {heading}\n")[2]
    table = text[text.index("| step |") :].split("\n\n")[0].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split("|")][2:] for line in table]


@pytest.mark.parametrize(
    "config, heading",
    [
        ({}, "The worked example: {1,2,3} to {4,5,6}"),
        ({"reassignment.protocol": "0.8"}, "The same with Kafka 0.8"),
    ],
    ids=["today", "0.8"],
)
def test_table_equals_states_written_by_engine(config: dict[str, object], heading: str) -> None:
    ensemble = MemoryEnsemble.from_cluster(cluster_of({"t": [healthy(1, 2, 3)]}, range(1, 7)))
    store = RecordingStore(ensemble)
    controller = ControllerCore(1, ControllerConfig(config), Selection({}))
    loop = ControllerLoop(controller, store, RecordingTransport(), VirtualClock())
    loop.adopt()
    store.record()
    loop.submit(lambda token: ReassignmentRequested(Targets.of([(("t", 0), (4, 5, 6))]), token))
    loop.run_until_idle()
    for joined in ((1, 2, 3, 4), (1, 2, 3, 4, 5), (1, 2, 3, 4, 5, 6)):
        view, brokers = controller.cluster["t", 0], controller.cluster.brokers
        leader = brokers.find(1)
        assert leader is not None
        loop.submit(
            lambda token, isr=joined, state=view, epoch=int(brokers.broker_epoch[leader]): AlterPartitionRequested(  # type: ignore[misc]
                1,
                epoch,
                1,
                RequestedPartitions.of([("t", 0)]),
                np.array([state.leader_epoch], np.int32),
                np.array([state.partition_epoch], np.int32),
                np.zeros(1, np.uint8),
                Ragged.of([isr]),
                token,
            )
        )
        loop.run_until_idle()
    assert store.rows == documented_rows(heading)
