"""Leader selectors of plugins decide the elections of a KRaft controller, within KRaft's safety rules."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Final

import pytest
from kframe_kraft.server.serving import ServedController

from kframe.model.arrays import Int32
from kframe.plugin import ElectionBatch, ElectionKind
from kframe.plugin.kraft import ControllerResult
from kframe.plugin.kraft_controller import KraftContext
from verification.kraft.served_controller import FakeBroker, connected, formatted, served

WAIT_S: Final = 20


class LastReplica:
    """Chooses the last candidate that may lead, or the last of all, which is not allowed."""

    name = "last-replica"

    def __init__(self, *, is_safe: bool) -> None:
        self._is_safe = is_safe

    def elect(self, batch: ElectionBatch, leader: Int32) -> None:
        for position in range(len(batch)):
            span = slice(batch.candidates.offsets[position], batch.candidates.offsets[position + 1])
            candidates, may_lead = batch.candidates.values[span], batch.may_lead[span]
            leader[position] = candidates[may_lead != 0][-1] if self._is_safe else candidates[-1]


def leader_after_fencing(controller: ServedController, *fenced: int) -> int:
    """The leader of a partition on brokers 0, 1, 2 and 3 after some have been fenced, in this order."""
    brokers = [FakeBroker(connected(controller), broker_id) for broker_id in range(4)]
    for broker in brokers:
        broker.register()
        broker.heartbeat(broker.epoch)
    assignment = [{"partition_index": 0, "broker_ids": [0, 1, 2, 3]}]
    topic = {"name": "a", "num_partitions": -1, "replication_factor": -1, "assignments": assignment, "configs": []}
    with closing(connected(controller)) as client:
        response = client.ask(19, {"topics": [topic], "timeout": 1000, "validate_only": False})
    assert [each["error_code"] for each in response["topics"]] == [0]
    for broker_id in fenced:
        brokers[broker_id].heartbeat(brokers[broker_id].epoch, want_fence=True)
    for broker in brokers:
        broker.client.close()
    assert controller.node is not None
    assert controller.node.loop is not None
    return controller.node.loop.submit(_leader).result(WAIT_S)


def _leader(context: KraftContext) -> ControllerResult[int]:
    metadata = context.metadata
    return ControllerResult((), int(metadata.brokers.ids[metadata.partitions.leader[0]]))


@pytest.mark.parametrize(
    ("selector", "leader", "faults"),
    [
        pytest.param(None, 1, 0, id="Kafka's rule"),
        pytest.param(LastReplica(is_safe=True), 2, 0, id="selector"),
        pytest.param(LastReplica(is_safe=False), 1, 1, id="selector that chooses a fenced broker"),
    ],
)
def test_selector_decides_where_it_obeys_the_rules(
    tmp_path: Path, selector: LastReplica | None, leader: int, faults: int
) -> None:
    selectors = {} if selector is None else {ElectionKind.OFFLINE: selector}
    with served(formatted(tmp_path), selectors=selectors) as controller:
        assert leader_after_fencing(controller, 3, 0) == leader
        metrics = controller.metrics()
    assert metrics.get('kframe_selector_faults_total{selector="last-replica"}', 0) == faults
