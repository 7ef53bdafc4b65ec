"""The event that a shadow reports for a partition change that no event explains."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from uuid import UUID

import pytest

from kframe.core.kraft.causes.request_causes import ALTERED, ASSIGNED, CANCELLED, PREFERRED, REASSIGNED, UNCLEAN
from kframe.model.ids import NO_LEADER, RecoveryState
from kframe.model.kraft.records import BrokerRegistrationChangeRecord, FencingChange, PartitionChangeRecord
from kframe.ports.committed_log import CommittedBatch, CommittedRecord
from kframe.whatif.shadow.kraft import compare_batch
from kframe.whatif.shadow.kraft.changes import UNEXPLAINED
from tests.kraft.large import large_cluster

TOPIC_ID: Final = UUID(int=500)
#: The states of a partition with replicas 0, 1 and 2 before the change. Broker 2 is fenced.
HEALTHY: Final[dict[str, Any]] = {"isr": (0, 1)}
LED_BY_1: Final[dict[str, Any]] = {"isr": (0, 1), "leader": 1}
OFFLINE: Final[dict[str, Any]] = {"isr": (2,), "leader": NO_LEADER}
MOVING: Final[dict[str, Any]] = {
    "isr": (0, 1),
    "replicas": (0, 1, 2, 3),
    "directories": tuple(UUID(int=900 + broker) for broker in range(4)),
    "adding_replicas": (3,),
    "removing_replicas": (2,),
}
RECOVERING: Final = RecoveryState.RECOVERING
OTHER_DIRECTORY: Final = (UUID(int=900), UUID(int=950), UUID(int=902))


def change_of(fields: Mapping[str, Any]) -> PartitionChangeRecord:
    return PartitionChangeRecord(partition_id=0, topic_id=TOPIC_ID, **fields)


@pytest.mark.parametrize(
    "before, change, event, fields",
    [
        # The decision that differs in the fewest fields.
        (HEALTHY, {"isr": (0,), "last_known_elr": (1,)}, ALTERED, ["last_known_elr"]),
        (OFFLINE, {"leader": 0, "isr": (0,)}, UNCLEAN, ["leader_recovery_state"]),
        (OFFLINE, {"leader": 1, "isr": (1,), "leader_recovery_state": RECOVERING}, UNCLEAN, ["isr", "leader"]),
        (OFFLINE, {"directories": OTHER_DIRECTORY, "isr": (1,)}, ASSIGNED, ["isr"]),
        (
            MOVING,
            {"replicas": (0, 1, 2), "adding_replicas": (), "removing_replicas": ()},
            CANCELLED,
            ["leader", "directories"],
        ),
        # No event, if that differs in fewer fields: an election is possible, but it writes other fields.
        (OFFLINE, {"isr": (0,)}, UNEXPLAINED, ["record"]),
        (OFFLINE, {"leader": 1}, UNEXPLAINED, ["record"]),
        (OFFLINE, {"adding_replicas": (3,), "last_known_elr": (1,)}, UNEXPLAINED, ["record"]),
        (LED_BY_1, {"isr": (0, 1, 2)}, UNEXPLAINED, ["record"]),
        (LED_BY_1, {"eligible_leader_replicas": (2,)}, UNEXPLAINED, ["record"]),
        (HEALTHY, {"leader": 1}, UNEXPLAINED, ["record"]),
        # Of equals, the decision that changes more of the fields that the record changes.
        (LED_BY_1, {"leader": 2}, PREFERRED, ["leader"]),
        # Then any other event before an unclean election.
        (
            OFFLINE,
            {"replicas": (0, 1, 2, 3), "adding_replicas": (3,), "leader": 0, "isr": (0,)},
            REASSIGNED,
            ["isr", "leader", "directories"],
        ),
    ],
)
def test_difference_names_closest_event(
    before: dict[str, Any], change: dict[str, Any], event: str, fields: list[str]
) -> None:
    context = large_cluster(4, 1)
    fenced = BrokerRegistrationChangeRecord(broker_id=2, broker_epoch=2, fenced=FencingChange.FENCE)
    for record in (change_of(before), fenced):
        context.replay(record, 1)
    committed = CommittedRecord(2, change_of(change), 2)
    differences = compare_batch(context, [CommittedBatch(2, 0, 0, 0, (committed,))]).differences
    assert [(difference.event, difference.field) for difference in differences] == [(event, field) for field in fields]
