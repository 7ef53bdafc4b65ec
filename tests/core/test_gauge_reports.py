"""Each change of a gauge's input is reported at once. No later step of the operation has to follow."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from kframe.core.context import Context, Operation
from kframe.core.reassignment import partition_reassignment
from kframe.core.state_machines import partition_state_machine
from kframe.core.topics import topic_deletion
from kframe.core.topics.replica_assignment import Assignments, assign, reassigned_to
from kframe.errors import ErrorCode, StoreError
from kframe.model.arrays import Ragged
from kframe.model.effects import Effect
from kframe.model.ids import PartitionState
from kframe.ports.store_requests import WriteStates
from kframe.testing.clusters import PartitionSpec, healthy
from tests.core.deletion import confirm, mark
from tests.core.driver import Driver, quiet
from tests.core.test_gauges import recount


def changed(driver: Driver, act: Callable[[], object]) -> dict[str, int]:
    """Return the change of each gauge that ``act`` changes. All gauges equal a recount before and after."""
    before = driver.controller.gauges()
    assert before == recount(driver.controller)
    act()
    after = driver.controller.gauges()
    assert after == recount(driver.controller)
    return {name: after[name] - before[name] for name in after if after[name] != before[name]}


def run_until(driver: Driver, operation: Operation[object], failing: type[Effect]) -> None:
    """Run an operation until the first effect of a kind. That effect fails."""
    driver.fail(failing, StoreError("failed"))
    with pytest.raises(StoreError):
        driver.run(operation)


def reordered(context: Context) -> Operation[object]:
    rows = np.zeros(1, np.int32)
    return partition_reassignment.reassign(context, rows, reassigned_to(context, rows, Ragged.of([[1, 0]])))


def test_offline_partition_is_counted() -> None:
    driver = quiet({"t": [healthy(1, 2)]})
    operation = partition_state_machine.transition(driver.context, driver.rows("t-0"), PartitionState.OFFLINE)
    assert changed(driver, lambda: driver.run(operation)) == {"OfflinePartitionsCount": 1}


def test_assignment_change_is_counted_before_state_is_stored() -> None:
    driver = quiet({"t": [healthy(1, 2)]})
    reported = changed(driver, lambda: run_until(driver, reordered(driver.context), WriteStates))
    assert reported == {"PreferredReplicaImbalanceCount": 1}


def test_completed_assignment_is_counted_before_state_is_stored() -> None:
    """A preferred replica that is being added counts as imbalanced while in the ISR. Once it is added, it leads."""
    driver = quiet({"t": [PartitionSpec((3, 1), 3, (1, 3), adding_replicas=(3,), removing_replicas=(1,))]})
    resumed = partition_reassignment.resume(driver.context, driver.rows("t-0"))
    reported = changed(driver, lambda: run_until(driver, resumed, WriteStates))
    assert reported == {"PreferredReplicaImbalanceCount": -1}


def test_replicas_of_deleting_topic_are_counted() -> None:
    driver = quiet({"t": [healthy(1, 2)]})
    topics, rows = driver.cluster.topics, driver.rows("t-0")
    topics.deleting[:] = 1
    driver.context.gauges.touch_topics([0])

    def grow() -> None:
        assign(driver.cluster.partitions, rows, Assignments(Ragged.of([[0, 1, 2]]), np.zeros(3, np.uint8)))
        driver.context.gauges.touch(rows)

    assert changed(driver, grow) == {"ReplicasToDeleteCount": 1}


def test_halted_and_resumed_deletion_is_counted() -> None:
    """Broker 2 has not responded yet, so that only the mark changes when the deletion halts or resumes."""
    driver = quiet({"t": [healthy(1, 2)]}, (1, 2))
    mark(driver, "t")
    confirm(driver, 1, "t-0", error=ErrorCode.KAFKA_STORAGE_ERROR)
    topics = np.zeros(1, np.int32)
    resumed = topic_deletion.resume_topics(driver.context, topics)
    assert changed(driver, lambda: driver.run(resumed)) == {"TopicsIneligibleToDeleteCount": -1}
    halted = changed(driver, lambda: topic_deletion.halt(driver.context, topics, "a test"))
    assert halted == {"TopicsIneligibleToDeleteCount": 1}
