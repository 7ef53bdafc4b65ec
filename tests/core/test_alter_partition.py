"""AlterPartition (``controller.md`` section 13.1): every check in order, in each version."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import pytest
from msgspec.structs import replace as replace_fields

from kframe.core.operations.alter_partition import AlterPartitionResponse
from kframe.embedded import Api
from kframe.errors import ErrorCode
from kframe.model.arrays import Ragged
from kframe.model.events import AlterPartitionRequested
from kframe.model.ids import RecoveryState
from kframe.model.tables import RequestedPartitions
from kframe.ports.store_requests import ReadController, WriteStates
from kframe.testing.clusters import PartitionSpec, registration
from tests.core.driver import Driver, quiet

RECOVERED, RECOVERING = RecoveryState.RECOVERED, RecoveryState.RECOVERING
VERSIONS: Final = (0, 1, 2, 3)
#: Topic ids replace topic names from this version on.
IDS_SINCE: Final = 2

#: The stored partition: leader 1 at leader epoch 5, partition epoch 3.
SPEC = PartitionSpec((1, 2, 3), 1, (1, 2), leader_epoch=5, controller_epoch=1, partition_epoch=3)


@dataclass(frozen=True)
class Proposal:
    """The proposal of a leader for one partition."""

    isr: tuple[int, ...] = (1, 2, 3)
    leader_epoch: int = 5
    partition_epoch: int = 3
    recovery: RecoveryState = RECOVERED
    topic: str = "t"
    partition: int = 0


def make_driver(spec: PartitionSpec = SPEC) -> Driver:
    """Brokers 1 to 4 are registered; 4 is shutting down, 5 is dead. The topics have ids."""
    brokers = [registration(broker_id, broker_epoch=100 + broker_id) for broker_id in (1, 2, 3, 4)]
    driver = quiet({"t": [spec, SPEC, PartitionSpec((1, 2))], "u": [SPEC]}, brokers)
    topics = driver.cluster.topics
    for index, name in enumerate(topics.names):
        topics.set_id(index, name.encode() * 16)
    driver.cluster.brokers.index_of([5])
    driver.cluster.brokers.shutting_down[driver.cluster.brokers.index_of([4])] = 1
    return driver


def request(
    proposals: Sequence[Proposal], version: int, sender: int = 1, broker_epoch: int | None = None, token: int = 1
) -> AlterPartitionRequested:
    def column(name: str, dtype: Any) -> Any:
        return np.array([getattr(entry, name) for entry in proposals], dtype)

    by_id = version >= IDS_SINCE
    return AlterPartitionRequested(
        sender,
        100 + sender if broker_epoch is None else broker_epoch,
        version,
        RequestedPartitions.of(
            (entry.topic.encode() * 16 if by_id else entry.topic, entry.partition) for entry in proposals
        ),
        column("leader_epoch", np.int32),
        column("partition_epoch", np.int32),
        column("recovery", np.uint8),
        Ragged.of([entry.isr for entry in proposals]),
        token,
    )


NOT_CONTROLLER, FENCED = ErrorCode.NOT_CONTROLLER, ErrorCode.FENCED_LEADER_EPOCH
STALE, INVALID = ErrorCode.INVALID_UPDATE_VERSION, ErrorCode.INVALID_REQUEST
UNKNOWN, NONE = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.NONE
INELIGIBLE = ErrorCode.INELIGIBLE_REPLICA
RECOVERING_SPEC = replace(SPEC, isr=(1,), recovery=RECOVERING)

#: (row of 13.1, state of the partition, proposal, error code, whether it is stored).
TABLE: list[tuple[str, PartitionSpec, Proposal, ErrorCode, bool]] = [
    ("1 no leadership", SPEC, Proposal(partition=2), UNKNOWN, False),
    ("1 no such partition", SPEC, Proposal(partition=9), UNKNOWN, False),
    ("1 negative partition", SPEC, Proposal(partition=-1), UNKNOWN, False),
    ("2 partition epoch ahead", SPEC, Proposal(partition_epoch=4), NOT_CONTROLLER, False),
    ("2 leader epoch ahead", SPEC, Proposal(leader_epoch=6), NOT_CONTROLLER, False),
    ("2 before 3", SPEC, Proposal(leader_epoch=4, partition_epoch=4), NOT_CONTROLLER, False),
    ("2 before 5", SPEC, Proposal(leader_epoch=6, partition_epoch=2), NOT_CONTROLLER, False),
    ("3 leader epoch behind", SPEC, Proposal(leader_epoch=4), FENCED, False),
    ("3 before 4", SPEC, Proposal((1, 2), leader_epoch=4), FENCED, False),
    ("3 before 5", SPEC, Proposal(leader_epoch=4, partition_epoch=2), FENCED, False),
    ("4 the same", SPEC, Proposal((1, 2)), NONE, False),
    ("4 the same, older", SPEC, Proposal((1, 2), partition_epoch=0), NONE, False),
    ("4 another order is a change", SPEC, Proposal((2, 1)), NONE, True),
    ("4 another order, older", SPEC, Proposal((2, 1), partition_epoch=2), STALE, False),
    ("4 another recovery is a change", RECOVERING_SPEC, Proposal((1,)), NONE, True),
    ("4 the same, recovering", RECOVERING_SPEC, Proposal((1,), recovery=RECOVERING), NONE, False),
    ("5 partition epoch behind", SPEC, Proposal(partition_epoch=2), STALE, False),
    ("5 before 6", RECOVERING_SPEC, Proposal(partition_epoch=2, recovery=RECOVERING), STALE, False),
    ("5 before 8", SPEC, Proposal((1, 5), partition_epoch=2), STALE, False),
    ("6 recovering in company", RECOVERING_SPEC, Proposal((1, 2), recovery=RECOVERING), INVALID, False),
    ("6 before 8", RECOVERING_SPEC, Proposal((1, 5), recovery=RECOVERING), INVALID, False),
    ("7 back to recovering", SPEC, Proposal((1,), recovery=RECOVERING), INVALID, False),
    ("8 dead", SPEC, Proposal((1, 5)), INELIGIBLE, False),
    ("8 never heard of", SPEC, Proposal((1, 77)), INELIGIBLE, False),
    ("9 grows", SPEC, Proposal(), NONE, True),
    ("9 shrinks", SPEC, Proposal((1,)), NONE, True),
    ("9 recovered in company", RECOVERING_SPEC, Proposal((1, 2)), NONE, True),
]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("spec, proposal, code, stored", [row[1:] for row in TABLE], ids=[row[0] for row in TABLE])
def test_proposal_gets_first_matching_error_code(
    spec: PartitionSpec, proposal: Proposal, code: ErrorCode, stored: bool, version: int
) -> None:
    """controller 13.1: per partition, the first match; the leader epoch is not bumped."""
    driver = make_driver(spec)
    response: AlterPartitionResponse = driver.ask(request([proposal], version))
    if code is INELIGIBLE and version < IDS_SINCE:
        code = ErrorCode.OPERATION_NOT_ATTEMPTED
    assert (response.error, response.codes.tolist()) == (NONE, [code])
    view = driver.stored("t-0")
    expected = proposal.isr if stored else spec.isr
    assert (view.isr, view.partition_epoch, view.leader_epoch) == (expected, 4 if stored else 3, 5)
    assert view.recovery == (proposal.recovery if stored else spec.recovery)
    assert driver.known("t-0").isr == view.isr
    assert bool(driver.performed(WriteStates)) == stored


@pytest.mark.parametrize("partition, confirmed", [(9, True), (2, True), (0, False)], ids=["unknown", "new", "known"])
def test_role_is_confirmed_before_partition_is_refused_as_unknown(partition: int, confirmed: bool) -> None:
    """Simulator seed 40000648: the next controller had created the partition, and its leader proposed no other ISR."""
    driver = make_driver()
    proposals = request([Proposal(leader_epoch=4, partition=partition)], 3)
    assert driver.ask(proposals).error == NONE
    assert bool(driver.performed(ReadController)) == confirmed
    driver.ensemble.drop_controller()
    assert driver.ask(replace_fields(proposals, token=2)).error == NOT_CONTROLLER
    assert not driver.controller.active


@pytest.mark.parametrize("version", VERSIONS)
def test_shutting_down_isr_member_is_ineligible_from_version_1(version: int) -> None:
    """KAFKA-14140. A broker that supports only version 0 would never propose an ISR for that partition again."""
    driver = make_driver(SPEC)
    response: AlterPartitionResponse = driver.ask(request([Proposal((1, 4))], version))
    refused = INELIGIBLE if version >= IDS_SINCE else ErrorCode.OPERATION_NOT_ATTEMPTED
    assert response.codes.tolist() == [refused if version else NONE]
    assert driver.stored("t-0").isr == (SPEC.isr if version else (1, 4))


def test_response_has_current_partition_state() -> None:
    """controller 13.1: success with the cached value, also where nothing was written."""
    driver = make_driver()
    response: AlterPartitionResponse = driver.ask(
        request([Proposal((1, 2)), Proposal((3, 1), partition=1), Proposal(leader_epoch=4, topic="u")], 3)
    )
    states = response.states
    assert states is not None
    assert (response.codes.tolist(), states.exists.tolist()) == ([NONE, NONE, FENCED], [True, True, False])
    ids = driver.cluster.brokers.ids_of
    assert [ids(states.isr[i]) for i in (0, 1)] == [[1, 2], [3, 1]]
    assert (ids(states.leader[:2]), states.partition_epoch[:2].tolist()) == ([1, 1], [3, 4])


@pytest.mark.parametrize(
    "epochs, code",
    [
        ((101, 102, 103), NONE),
        ((-1, -1, -1), NONE),
        ((101, -1, 103), NONE),
        ((101, 102, 99), INELIGIBLE),
        ((101, 102, 104), INELIGIBLE),
    ],
    ids=["all current", "no epochs", "one without epoch", "earlier registration", "later registration"],
)
def test_replica_with_stale_broker_epoch_is_ineligible(epochs: tuple[int, ...], code: ErrorCode) -> None:
    """controller 13.1: row 8, members whose broker epoch is not the present one (version 3), stricter than Kafka."""
    driver = make_driver()
    sent = replace_fields(request([Proposal()], 3), isr_epochs=np.array(epochs, np.int64))
    assert driver.ask(sent).codes.tolist() == [code]


@pytest.mark.parametrize("checked, code", [(True, INELIGIBLE), (False, NONE)])
def test_broker_epoch_check_can_be_disabled(checked: bool, code: ErrorCode) -> None:
    """controller 13.1: row 8, members whose broker epoch is another, unless that is switched off (X1)."""
    brokers = [registration(broker_id, broker_epoch=100 + broker_id) for broker_id in (1, 2, 3)]
    driver = quiet({"t": [SPEC]}, brokers, kframe_alter_partition_check_epochs=checked)
    driver.cluster.topics.set_id(0, b"t" * 16)
    sent = replace_fields(request([Proposal()], 3), isr_epochs=np.array([101, 102, 99], np.int64))
    assert driver.ask(sent).codes.tolist() == [code]


#: (case, sender, isr, error code of strict checks). Without strict checks all are stored.
UNSOUND = [
    ("sender does not lead", 2, (1, 2, 3), INVALID),
    ("lacks the leader", 1, (2, 3), INVALID),
    ("empty", 1, (), INVALID),
    ("not assigned", 1, (1, 6), INVALID),
    ("sound", 1, (1, 3), NONE),
]


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("sender, isr, code", [row[1:] for row in UNSOUND], ids=[row[0] for row in UNSOUND])
def test_strict_mode_rejects_malformed_isr(sender: int, isr: tuple[int, ...], code: ErrorCode, strict: bool) -> None:
    """controller 13.1: kframe may add checks (answer 42). They are disabled by default."""
    brokers = [registration(broker_id, broker_epoch=100 + broker_id) for broker_id in (1, 2, 3, 6)]
    driver = quiet({"t": [SPEC]}, brokers, kframe_alter_partition_strict=strict)
    driver.cluster.topics.set_id(0, b"t" * 16)
    response = driver.ask(request([Proposal(isr)], 3, sender))
    assert response.codes.tolist() == [code if strict else NONE]
    assert (driver.stored("t-0").isr == isr) == (not strict or code is NONE)


def test_last_proposal_of_repeated_partition_is_used() -> None:
    """controller 13.1: the last proposal of a partition counts."""
    driver = make_driver()
    driver.ask(request([Proposal((1,)), Proposal()], 3))
    assert [len(change) for change in driver.writes()] == [1]
    assert (driver.stored("t-0").isr, driver.stored("t-0").partition_epoch) == ((1, 2, 3), 4)


@pytest.mark.parametrize(
    "sender, broker_epoch, error",
    [
        (1, 101, NONE),
        (9, 109, ErrorCode.STALE_BROKER_EPOCH),
        (5, 105, ErrorCode.STALE_BROKER_EPOCH),
        (1, 100, ErrorCode.STALE_BROKER_EPOCH),
        (1, 102, ErrorCode.STALE_BROKER_EPOCH),
        (1, -1, ErrorCode.STALE_BROKER_EPOCH),
    ],
    ids=["good", "unknown", "dead", "older", "later", "none"],
)
def test_sender_needs_current_broker_epoch(sender: int, broker_epoch: int, error: ErrorCode) -> None:
    """controller 3.5: the broker epoch of an AlterPartition is equal to the cached one.
    controller 13.1: requester not registered 77, epoch not equal 77, at the top.
    """
    driver = make_driver()
    response = driver.ask(request([Proposal()], 3, sender, broker_epoch))
    assert response.error is error
    assert (driver.stored("t-0").isr == (1, 2, 3)) == (error is NONE)
    assert driver.batches == [] or error is NONE


@pytest.mark.parametrize(
    "version, code", [(0, UNKNOWN), (1, UNKNOWN), (2, ErrorCode.UNKNOWN_TOPIC_ID), (3, ErrorCode.UNKNOWN_TOPIC_ID)]
)
def test_unknown_topic_returns_error_code(version: int, code: ErrorCode) -> None:
    """controller 13.1: v >= 2, topic id unknown 100. The other partitions go on."""
    driver = make_driver()
    response = driver.ask(request([Proposal(topic="x"), Proposal()], version))
    assert response.codes.tolist() == [code, NONE]


def test_every_requested_partition_is_announced_to_all_brokers() -> None:
    """controller 13.1: UpdateMetadata for every partition of the request, failed ones too. Nothing else is sent."""
    driver = make_driver()
    proposals = [Proposal(), Proposal(partition=1, leader_epoch=4), Proposal(partition=2), Proposal(topic="x")]
    driver.ask(request(proposals, 3))
    assert {request["api"] for batch in driver.batches for request in batch} == {Api.UPDATE_METADATA}
    assert (
        driver.recipients(Api.UPDATE_METADATA, "t-0") == driver.recipients(Api.UPDATE_METADATA, "t-1") == [1, 2, 3, 4]
    )
    assert driver.recipients(Api.UPDATE_METADATA, "t-2") == driver.recipients(Api.UPDATE_METADATA, "u-0") == []


def test_stale_version_in_storage_returns_invalid_update_version() -> None:
    """controller 13.1: conditional set, BADVERSION 95."""
    driver = make_driver()
    driver.before(WriteStates, lambda: driver.ensemble.write_state("t", 0, isr=(1,)))
    response = driver.ask(request([Proposal(), Proposal(partition=1)], 3))
    assert response.codes.tolist() == [STALE, NONE]
    assert driver.stored("t-0").isr == (1,)
