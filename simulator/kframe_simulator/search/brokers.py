"""Brokers of the small space as values: pure functions that handle requests, change ISRs and copy records.

The rules are ``broker-partition.md`` sections 2 to 7 and 10 for one replica and one record. There is no time: a
follower with less than the leader's log may be out of sync at any step, other followers never are. So the space
contains histories that real timing excludes, and omits none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kframe.errors import ErrorCode
from kframe_simulator.search.values import LEADER_UNKNOWN, Label, Message, Pool, QueuedProposal, SearchBroker

#: Errors after which the leader waits for another leader epoch (section 6).
_STUCK = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.INVALID_UPDATE_VERSION,
    ErrorCode.INVALID_REQUEST,
}
#: Errors after which the leader returns to the committed ISR.
_BACK = {ErrorCode.OPERATION_NOT_ATTEMPTED, ErrorCode.INELIGIBLE_REPLICA}


def started(broker: SearchBroker) -> SearchBroker:
    """A process that has just started and registered, with empty memory and its old log. Requests of the previous
    process are still in flight."""
    return died(broker)._replace(up=True, epoch=broker.epoch + 1)


def died(broker: SearchBroker) -> SearchBroker:
    """The broker without a process."""
    return SearchBroker(
        False,
        broker.epoch,
        has_record=broker.has_record,
        queued_proposal=broker.queued_proposal,
        shutdown_request=broker.shutdown_request,
    )


def take(broker_id: int, broker: SearchBroker, sender: int, message: Message) -> SearchBroker:
    """The broker after a control request of controller ``sender``."""
    kind, controller_epoch, broker_epoch = message[:3]
    if broker_epoch < broker.epoch or controller_epoch < broker.controller_epoch:
        return broker
    broker = broker._replace(controller_epoch=controller_epoch, controller=sender)
    match kind:
        case "U":
            return broker._replace(live=message[3])
        case "L":
            return _led(broker_id, broker, message)
    if 0 <= message[3] < broker.leader_epoch:
        return broker
    return _deleted(broker) if message[4] else broker._replace(stopped=True)


def _deleted(broker: SearchBroker) -> SearchBroker:
    """The broker without the replica and its log. The process keeps its other state."""
    return broker._replace(
        leader=LEADER_UNKNOWN,
        leader_epoch=-1,
        partition_epoch=0,
        isr=(),
        replicas=(),
        proposed=(),
        stuck=False,
        stopped=False,
        has_record=False,
        fetched=(),
    )


def _led(broker_id: int, broker: SearchBroker, message: Message) -> SearchBroker:
    _, _, _, leader, leader_epoch, isr, partition_epoch, replicas = message
    if leader_epoch <= broker.leader_epoch or partition_epoch < broker.partition_epoch:
        return broker
    if leader != broker_id and leader not in broker.live:
        return broker  # A leader that is not known to be live is not followed, and its epoch is not recorded.
    return broker._replace(
        leader=leader, leader_epoch=leader_epoch, partition_epoch=partition_epoch,
        isr=isr if leader == broker_id else (), replicas=replicas if leader == broker_id else (),
        proposed=(), stuck=False, stopped=False, fetched=(),
    )  # fmt: skip


def leads(broker_id: int, broker: SearchBroker) -> bool:
    """Whether the broker believes itself leader."""
    return broker.up and broker.leader == broker_id


def proposals(broker_id: int, broker: SearchBroker) -> list[tuple[int, ...]]:
    """The ISRs that the broker may propose now: with one more caught-up member, with one lagging member less, or the
    last proposal again."""
    if (
        not leads(broker_id, broker)
        or broker.queued_proposal
        or broker.response
        or broker.stuck
        or not broker.controller
    ):
        return []
    if broker.proposed:
        return [broker.proposed]
    joining = [
        (*broker.isr, member_id)
        for member_id in broker.fetched
        if member_id not in broker.isr and member_id in broker.live
    ]
    slow = [member_id for member_id in broker.isr if member_id != broker_id and member_id not in broker.fetched]
    return joining + [tuple(member for member in broker.isr if member != member_id) for member_id in slow]


def propose(broker: SearchBroker, isr: tuple[int, ...]) -> SearchBroker:
    """Send this ISR to the controller that the broker knows."""
    proposal = QueuedProposal(broker.controller, broker.epoch, broker.leader_epoch, broker.partition_epoch, isr)
    return broker._replace(proposed=isr, queued_proposal=proposal)


def busy(broker: SearchBroker, controller: int, action: str) -> SearchBroker:
    """Mark a request as in progress, so that no controller takes it again."""
    if action == "leave":
        return broker._replace(shutdown_request=(-controller, broker.shutdown_request[1]))
    assert broker.queued_proposal is not None
    return broker._replace(queued_proposal=broker.queued_proposal._replace(controller=-controller))


def receive_response(broker: SearchBroker, token: int, response: tuple[Any, ...]) -> SearchBroker:
    """The broker after a controller's response. It ignores a response to an earlier process."""
    if token < 10:
        mine = broker.queued_proposal is not None and broker.queued_proposal.broker_epoch == broker.epoch and broker.up
        return broker._replace(queued_proposal=None, response=response if mine else ())
    done = broker.shutdown_request[1] == broker.epoch and broker.up and response[0] == 0
    return broker._replace(shutdown_request=(0, broker.epoch) if done else (0, 0))


def read_response(broker: SearchBroker) -> SearchBroker:
    """Read the response to its proposal. Ignore it if the proposal was dropped meanwhile."""
    error, *accepted = broker.response
    broker = broker._replace(response=())
    if not broker.proposed or error != ErrorCode.NONE:
        return broker
    code, leader_epoch, partition_epoch, isr = accepted
    if code in _BACK:
        return broker._replace(proposed=())
    if code in _STUCK:
        return broker._replace(stuck=True)
    if code != ErrorCode.NONE:
        return broker
    if leader_epoch != broker.leader_epoch or partition_epoch < broker.partition_epoch:
        return broker._replace(stuck=True)
    return broker._replace(proposed=(), isr=isr, partition_epoch=partition_epoch)


def produce(broker: SearchBroker) -> SearchBroker:
    """The leader appends the record: no follower has its whole log any more."""
    return broker._replace(has_record=True, fetched=())


def fetches(leader: SearchBroker, broker: SearchBroker, broker_id: int, other: int) -> bool:
    """Whether follower ``broker_id`` fetches from ``other`` with an effect."""
    following = broker.up and leader.up and not broker.stopped and broker.leader == other == leader.leader
    following = following and broker_id in leader.replicas
    return (
        following and broker.leader_epoch == leader.leader_epoch
        and (broker_id not in leader.fetched or broker.has_record != leader.has_record)
    )  # fmt: skip


def fetch(leader: SearchBroker, broker: SearchBroker, broker_id: int) -> tuple[SearchBroker, SearchBroker]:
    """The follower copies or truncates to match the leader's log, and the leader records the fetch."""
    fetched = tuple(sorted({*leader.fetched, broker_id}))
    return leader._replace(fetched=fetched), broker._replace(has_record=leader.has_record)


def commits(broker_id: int, broker: SearchBroker, min_isr: int) -> bool:
    """Whether the record is below the high watermark: all members of the committed and the proposed ISR have it, and
    there are enough of them."""
    if not leads(broker_id, broker) or not broker.has_record or len(broker.isr) < min_isr:
        return False
    return {*broker.isr, *broker.proposed} <= {broker_id, *broker.fetched}


@dataclass(frozen=True, slots=True)
class BrokerSteps:
    """The steps that a broker can take alone. They are labels, and the numbers of the resulting values."""

    leads: bool
    proposals: tuple[tuple[Label, int], ...]
    read: tuple[Label, int] | None
    back: tuple[Label, int, int]
    """The broker after its next registration."""
    died: tuple[Label, int]
    lapses: Label
    shutdown: tuple[Label, int] | None


def broker_steps(broker_id: int, broker: SearchBroker, pool: Pool) -> BrokerSteps:
    """The steps of broker ``broker_id``. ``pool`` numbers the resulting values."""
    back = broker._replace(epoch=broker.epoch + 1) if broker.up else started(broker)
    shutdown = None
    if broker.up and broker.controller and broker.shutdown_request == (0, 0):
        asking = broker._replace(shutdown_request=(broker.controller, broker.epoch))
        shutdown = ("broker", broker_id, "asks to shut down"), pool.number(asking)
    proposed = proposals(broker_id, broker) if broker.up else []
    reads_response = ("broker", broker_id, "reads the response", broker.response)
    return BrokerSteps(
        leads=leads(broker_id, broker),
        proposals=tuple(
            (("broker", broker_id, "proposes ISR", isr), pool.number(propose(broker, isr))) for isr in proposed
        ),
        read=(reads_response, pool.number(read_response(broker))) if broker.response and broker.up else None,
        back=(("broker", broker_id, "registers again" if broker.up else "starts"), pool.number(back), back.epoch),
        died=(("broker", broker_id, "dies"), pool.number(died(broker))),
        lapses=("broker", broker_id, "loses its registration"),
        shutdown=shutdown,
    )
