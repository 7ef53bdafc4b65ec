"""Values of requests that Kafka's own brokers do not send. The expected answers are those of Kafka 4.4's classes."""

from __future__ import annotations

from uuid import UUID

import pytest

from kframe.core.kraft.controller_result import RequestRefused
from kframe.core.kraft.replication.alter_partition import KraftIsrProposal, alter_partitions
from kframe.errors import ErrorCode
from kframe.model.kraft import directory_ids
from kframe.model.kraft.brokers import BrokerRegistration
from tests.kraft.large import large_cluster

DIRECTORY = UUID(int=1000)


@pytest.mark.parametrize("recovery", [-128, -1, 2, 127])
def test_unknown_recovery_state_is_refused(recovery: int) -> None:
    """Brokers could not read a record with one."""
    context = large_cluster(3, 1)
    metadata = context.metadata
    broker_epoch = metadata.brokers.registrations[0].broker_epoch
    topic_id = next(iter(metadata.topics.index_by_id))
    proposal = KraftIsrProposal(topic_id, 0, ((0, -1),), 0, 0, recovery)
    with pytest.raises(RequestRefused, match=f"Value {recovery} is not a valid leader recovery state") as caught:
        alter_partitions(context, 0, broker_epoch, [proposal])
    assert caught.value.error is ErrorCode.UNKNOWN_SERVER_ERROR


@pytest.mark.parametrize(
    ("directory", "of_none", "of_one"),
    [
        (directory_ids.MIGRATING, True, True),
        (directory_ids.UNASSIGNED, True, True),
        (directory_ids.LOST, False, False),
        (UUID(int=7), True, False),
        (UUID(int=99), True, False),
        (DIRECTORY, True, True),
        (UUID(int=1001), True, False),
    ],
)
def test_replica_is_online_in_its_directory(directory: UUID, of_none: bool, of_one: bool) -> None:
    """``of_none``: the broker has named no directory. Only three of the reserved ids have a meaning of their own."""
    answers = [registered(directories).has_online_directory(directory) for directories in ((), (DIRECTORY,))]
    assert answers == [of_none, of_one]


def registered(directories: tuple[UUID, ...]) -> BrokerRegistration:
    return BrokerRegistration(
        broker_id=1, broker_epoch=5, incarnation_id=UUID(int=11), directories=directories, fenced=False
    )
