"""Every pair of states of both state machines: illegal transitions change nothing, are logged and returned."""

from __future__ import annotations

import itertools
from typing import Final

import numpy as np
import pytest

from kframe.core.state_machines import partition_state_machine, replica_state_machine
from kframe.core.state_machines.transitions import to_dot
from kframe.model.ids import PartitionState as P
from kframe.model.ids import ReplicaState as R
from kframe.runtime.log_text import PARTITION_STATES
from kframe.testing.clusters import PartitionSpec, cluster_of, healthy
from tests.core.driver import Driver, refusals

#: Target state to its legal previous states.
PARTITION: Final = {
    P.NEW: {P.NON_EXISTENT},
    P.ONLINE: {P.NEW, P.ONLINE, P.OFFLINE},
    P.OFFLINE: {P.NEW, P.ONLINE, P.OFFLINE},
    P.NON_EXISTENT: {P.OFFLINE},
}
REPLICA: Final = {
    R.NEW: {R.NON_EXISTENT},
    R.ONLINE: {R.NEW, R.ONLINE, R.OFFLINE, R.DELETION_INELIGIBLE},
    R.OFFLINE: {R.NEW, R.ONLINE, R.OFFLINE, R.DELETION_INELIGIBLE},
    R.DELETION_STARTED: {R.OFFLINE},
    R.DELETION_SUCCESSFUL: {R.DELETION_STARTED},
    R.DELETION_INELIGIBLE: {R.OFFLINE, R.DELETION_STARTED},
    R.NON_EXISTENT: {R.DELETION_SUCCESSFUL},
}


@pytest.mark.parametrize("state, target", list(itertools.product(P, P)), ids=lambda state: state.name)
def test_partition_transition(state: P, target: P, caplog: pytest.LogCaptureFixture) -> None:
    """state-machines 2: legal moves.
    state-machines 2: New, Offline and NonExistent are state only.
    """
    spec = PartitionSpec((1, 2)) if state is P.NEW else healthy(1, 2)
    driver = Driver(cluster_of({"t": [spec]}, (1, 2)))
    rows = driver.adopt().cluster.partitions
    rows.set_states(np.array([0]), state)
    driver.forget()
    result = driver.run(partition_state_machine.transition(driver.context, driver.rows("t-0"), target))
    legal = state in PARTITION[target]
    assert driver.known("t-0").state is (target if legal else state)
    assert result.invalid.tolist() == ([] if legal else [0])
    assert bool(driver.effects) is (legal and target is P.ONLINE)
    assert len(refusals(caplog)) == (0 if legal else 1)
    if not legal:
        assert f"partition t-0 from {PARTITION_STATES[state]} to {PARTITION_STATES[target]}" in refusals(caplog)[0]


@pytest.mark.parametrize("state, target", list(itertools.product(R, R)), ids=lambda state: state.name)
def test_replica_transition(state: R, target: R, caplog: pytest.LogCaptureFixture) -> None:
    """state-machines 3: legal moves.
    state-machines 5: Offline to ReplicaDeletionIneligible is legal, as since 2.3.
    """
    driver = Driver(cluster_of({"t": [healthy(1, 2)]}, (1, 2)))
    driver.adopt()
    replica = driver.replicas("t-0@2")
    p = driver.cluster.partitions
    p.set_replica_states(replica.slots(p), state)
    driver.forget()
    refused = driver.run(replica_state_machine.transition(driver.context, replica, target))
    legal = state in REPLICA[target]
    assert p.replica_states(replica.slots(p)).tolist() == [target if legal else state]
    assert refused.positions.tolist() == ([] if legal else replica.positions.tolist())
    assert len(refusals(caplog)) == (0 if legal else 1)
    if not legal:
        assert driver.effects == []
        assert f"t-0: no legal transition to {target.name}" in refusals(caplog)[0]


def test_dot_has_every_state_and_legal_transition() -> None:
    dot = to_dot()
    for name, transitions in (("partition", PARTITION), ("replica", REPLICA)):
        for target, sources in transitions.items():
            assert f"{name}_{target.name} [label=" in dot
            for source in sources:
                assert f"{name}_{source.name} -> {name}_{target.name};" in dot
    assert dot.count("->") == sum(map(len, PARTITION.values())) + sum(map(len, REPLICA.values()))
